// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The ethtool operations of a network device, for ioctl and netlink.
 */
#include "rocelab.h"

/* Every ethtool query, by ioctl and by netlink, begins with this one. */
static int leg_begin(struct net_device *netdev)
{
	return rocelab_query(&rocelab_leg_of(netdev)->access);
}

static bool is_told(struct rocelab_leg *leg, const struct rocelab_value *value)
{
	switch (value->scope) {
	case EACH_PFC_PRIORITY:
		return leg->dcb.values[DCB_ENABLED].set & BIT(value->index);
	case EACH_QUEUE:
		return value->index < leg->link.values[LINK_QUEUES].set;
	case FEATURE:
		return leg->link.values[LINK_FEATURES].set;
	case GLOBAL_PAUSE:
		return leg->pause.values[PAUSE_RECEIVE].set ||
		       leg->pause.values[PAUSE_TRANSMIT].set;
	default:
		return true;
	}
}

/* The fields read by is_told() change under the RTNL only: callers hold it. */
static int leg_count_strings(struct net_device *netdev, int set)
{
	struct rocelab_leg *leg = rocelab_leg_of(netdev);
	unsigned int i;
	int count = 0;

	if (set != ETH_SS_STATS)
		return -EOPNOTSUPP;
	if (leg->ethtool.fault)
		return rocelab_query(&leg->ethtool);
	for (i = 0; i < leg->ethtool.count; i++)
		count += is_told(leg, &leg->ethtool.values[i]);
	return count;
}

static void leg_strings(struct net_device *netdev, u32 set, u8 *to)
{
	struct rocelab_leg *leg = rocelab_leg_of(netdev);
	unsigned int i;

	if (set != ETH_SS_STATS)
		return;
	for (i = 0; i < leg->ethtool.count; i++) {
		if (!is_told(leg, &leg->ethtool.values[i]))
			continue;
		strscpy(to, leg->ethtool.values[i].name, ETH_GSTRING_LEN);
		to += ETH_GSTRING_LEN;
	}
}

static void leg_statistics(struct net_device *netdev,
			   struct ethtool_stats *asked, u64 *values)
{
	struct rocelab_leg *leg = rocelab_leg_of(netdev);

	rocelab_query(&leg->ethtool);
	rocelab_snapshot(&leg->ethtool, values, is_told, leg);
}

static void leg_pause(struct net_device *netdev,
		      struct ethtool_pauseparam *pause)
{
	struct rocelab_table *table = &rocelab_leg_of(netdev)->pause;

	pause->autoneg = rocelab_get(table, PAUSE_AUTONEGOTIATE);
	pause->rx_pause = rocelab_get(table, PAUSE_RECEIVE);
	pause->tx_pause = rocelab_get(table, PAUSE_TRANSMIT);
}

static int leg_set_pause(struct net_device *netdev,
			 struct ethtool_pauseparam *pause)
{
	struct rocelab_table *table = &rocelab_leg_of(netdev)->pause;

	rocelab_put(table, PAUSE_AUTONEGOTIATE, pause->autoneg);
	rocelab_put(table, PAUSE_RECEIVE, pause->rx_pause);
	rocelab_put(table, PAUSE_TRANSMIT, pause->tx_pause);
	return 0;
}

static void leg_pause_statistics(struct net_device *netdev,
				 struct ethtool_pause_stats *statistics)
{
	struct rocelab_table *table = &rocelab_leg_of(netdev)->pause;

	if (rocelab_query(table))
		return;		/* the core reports "not counted" itself */
	statistics->rx_pause_frames = rocelab_get(table, PAUSE_RECEIVE_FRAMES);
	statistics->tx_pause_frames = rocelab_get(table, PAUSE_TRANSMIT_FRAMES);
}

static int leg_fec(struct net_device *netdev, struct ethtool_fecparam *fec)
{
	fec->active_fec = ETHTOOL_FEC_RS;
	fec->fec = ETHTOOL_FEC_AUTO;
	return rocelab_query(&rocelab_leg_of(netdev)->fec);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
static const struct ethtool_fec_hist_range fec_ranges[] = {
	{ 0, 0 }, { 1, 3 }, { 4, 7 }, { 8, 15 }, { 0, 0 },
};

/* Two lanes: each bin has a value of the first and one of the second. */
static void leg_fec_histogram(struct rocelab_table *table,
			      struct ethtool_fec_hist *histogram)
{
	struct ethtool_fec_hist_value *value = histogram->values;
	unsigned int i;

	histogram->ranges = fec_ranges;
	for (i = 0; i < FEC_BINS; i++, value++) {
		value->per_lane[0] = rocelab_get(table, FEC_BIN + i);
		value->per_lane[1] = rocelab_get(table,
						 FEC_BIN + FEC_BINS + i);
	}
}

static void leg_fec_statistics(struct net_device *netdev,
			       struct ethtool_fec_stats *statistics,
			       struct ethtool_fec_hist *histogram)
#else
static void leg_fec_statistics(struct net_device *netdev,
			       struct ethtool_fec_stats *statistics)
#endif
{
	struct rocelab_table *table = &rocelab_leg_of(netdev)->fec;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
	leg_fec_histogram(table, histogram);
#endif
	statistics->corrected_blocks.total = rocelab_get(table, FEC_CORRECTED);
	statistics->uncorrectable_blocks.total =
		rocelab_get(table, FEC_UNCORRECTABLE);
	statistics->corrected_bits.total = rocelab_get(table, FEC_BITS);
}

static void leg_phy_statistics(struct net_device *netdev,
			       struct ethtool_eth_phy_stats *statistics)
{
	struct rocelab_table *table = &rocelab_leg_of(netdev)->standard;

	if (!rocelab_query(table))
		statistics->SymbolErrorDuringCarrier =
			rocelab_get(table, STANDARD_SYMBOL);
}

static void leg_mac_statistics(struct net_device *netdev,
			       struct ethtool_eth_mac_stats *statistics)
{
	struct rocelab_table *table = &rocelab_leg_of(netdev)->standard;

	if (rocelab_query(table))
		return;
	statistics->FrameCheckSequenceErrors = rocelab_get(table, STANDARD_FCS);
	statistics->FramesReceivedOK = rocelab_get(table, STANDARD_RECEIVED);
	statistics->FramesTransmittedOK = rocelab_get(table, STANDARD_SENT);
}

static void leg_control_statistics(struct net_device *netdev,
				   struct ethtool_eth_ctrl_stats *statistics)
{
	struct rocelab_table *table = &rocelab_leg_of(netdev)->standard;

	if (rocelab_query(table))
		return;
	statistics->MACControlFramesReceived =
		rocelab_get(table, STANDARD_CONTROL_RECEIVED);
	statistics->MACControlFramesTransmitted =
		rocelab_get(table, STANDARD_CONTROL_SENT);
}

static void leg_rmon_statistics(struct net_device *netdev,
				struct ethtool_rmon_stats *statistics,
				const struct ethtool_rmon_hist_range **ranges)
{
	struct rocelab_table *table = &rocelab_leg_of(netdev)->standard;

	if (!rocelab_query(table))
		statistics->jabbers = rocelab_get(table, STANDARD_JABBERS);
}

static int leg_link_settings(struct net_device *netdev,
			     struct ethtool_link_ksettings *settings)
{
	struct rocelab_table *table = &rocelab_leg_of(netdev)->link;

	settings->base.speed = netif_carrier_ok(netdev) ?
		rocelab_get(table, LINK_SPEED) : SPEED_UNKNOWN;
	settings->base.duplex = DUPLEX_FULL;
	settings->base.autoneg = AUTONEG_ENABLE;
	settings->lanes = 4;
	return rocelab_query(table);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
static void leg_link_statistics(struct net_device *netdev,
				struct ethtool_link_ext_stats *statistics)
{
	statistics->link_down_events =
		rocelab_get(&rocelab_leg_of(netdev)->link, LINK_DOWN_EVENTS);
}
#endif

static void leg_driver(struct net_device *netdev, struct ethtool_drvinfo *info)
{
	const struct rocelab_personality *personality =
		rocelab_leg_of(netdev)->personality;

	strscpy(info->driver, personality->driver, sizeof(info->driver));
	strscpy(info->fw_version, personality->firmware,
		sizeof(info->fw_version));
}

static void leg_channels(struct net_device *netdev,
			 struct ethtool_channels *channels)
{
	channels->max_combined = ROCELAB_QUEUES;
	channels->combined_count =
		rocelab_get(&rocelab_leg_of(netdev)->link, LINK_QUEUES);
}

static int leg_set_channels(struct net_device *netdev,
			    struct ethtool_channels *channels)
{
	rocelab_put(&rocelab_leg_of(netdev)->link, LINK_QUEUES,
		    channels->combined_count);
	return 0;
}

static int leg_tunable(struct net_device *netdev,
		       const struct ethtool_tunable *tunable, void *to)
{
	if (tunable->id != ETHTOOL_PFC_PREVENTION_TOUT)
		return -EOPNOTSUPP;
	*(u16 *)to = rocelab_get(&rocelab_leg_of(netdev)->link, LINK_PFC_TIMEOUT);
	return 0;
}

static int leg_coalescing(struct net_device *netdev,
			  struct ethtool_coalesce *coalescing,
			  struct kernel_ethtool_coalesce *more,
			  struct netlink_ext_ack *extack)
{
	coalescing->stats_block_coalesce_usecs =
		rocelab_leg_of(netdev)->ethtool.refresh_ms * USEC_PER_MSEC;
	return 0;
}

const struct ethtool_ops rocelab_ethtool_ops = {
	.begin = leg_begin,
	.get_sset_count = leg_count_strings,
	.get_strings = leg_strings,
	.get_ethtool_stats = leg_statistics,
	.get_pauseparam = leg_pause,
	.set_pauseparam = leg_set_pause,
	.get_pause_stats = leg_pause_statistics,
	.get_fecparam = leg_fec,
	.get_fec_stats = leg_fec_statistics,
	.get_eth_phy_stats = leg_phy_statistics,
	.get_eth_mac_stats = leg_mac_statistics,
	.get_eth_ctrl_stats = leg_control_statistics,
	.get_rmon_stats = leg_rmon_statistics,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = leg_link_settings,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	.get_link_ext_stats = leg_link_statistics,
#endif
	.get_drvinfo = leg_driver,
	.get_channels = leg_channels,
	.set_channels = leg_set_channels,
	.get_tunable = leg_tunable,
	.get_coalesce = leg_coalescing,
};
