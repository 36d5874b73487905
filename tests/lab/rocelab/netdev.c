// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * A network device without a data path, and its tables.
 */
#include <linux/etherdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include "rocelab.h"

static const struct rocelab_name pause_names[] = {
	{ "autonegotiate" }, { "receive" }, { "transmit" },
	{ "receive_frames" }, { "transmit_frames" },
};

static const struct rocelab_name fec_names[] = {
	{ "corrected_blocks" }, { "uncorrectable_blocks" }, { "corrected_bits" },
	{ "lane0_0" }, { "lane0_1_3" }, { "lane0_4_7" }, { "lane0_8_15" },
	{ "lane1_0" }, { "lane1_1_3" }, { "lane1_4_7" }, { "lane1_8_15" },
};

static const struct rocelab_name standard_names[] = {
	{ "SymbolErrorDuringCarrier" }, { "FrameCheckSequenceErrors" },
	{ "FramesReceivedOK" }, { "FramesTransmittedOK" },
	{ "MACControlFramesReceived" }, { "MACControlFramesTransmitted" },
	{ "etherStatsJabbers" },
};

static const struct rocelab_name link_names[] = {
	{ "up" }, { "speed" }, { "down_events" }, { "detached" }, { "queues" },
	{ "pfc_prevention_timeout" }, { "features" },
};

static netdev_tx_t leg_transmit(struct sk_buff *skb, struct net_device *netdev)
{
	dev_kfree_skb(skb);
	return NETDEV_TX_OK;
}

static int leg_open(struct net_device *netdev)
{
	netif_start_queue(netdev);
	return 0;
}

static int leg_stop(struct net_device *netdev)
{
	netif_stop_queue(netdev);
	return 0;
}

static const struct net_device_ops leg_ops = {
	.ndo_open = leg_open,
	.ndo_stop = leg_stop,
	.ndo_start_xmit = leg_transmit,
	.ndo_set_mac_address = eth_mac_addr,	/* needed by a bond */
	.ndo_validate_addr = eth_validate_addr,
};

static void link_changed(struct rocelab_table *table)
{
	struct rocelab_leg *leg = table->owner;
	struct rocelab_value *values = table->values;

	if (values[LINK_UP].set)
		netif_carrier_on(leg->netdev);
	else
		netif_carrier_off(leg->netdev);
	/* As while the firmware resets: every query gets ENODEV. */
	if (values[LINK_DETACHED].set)
		netif_device_detach(leg->netdev);
	else
		netif_device_attach(leg->netdev);
}

/* Only for the RTNL, which is held: names of ethtool depend on it. */
static void names_changed(struct rocelab_table *table)
{
}

static void leg_setup(struct net_device *netdev)
{
	ether_setup(netdev);
	netdev->netdev_ops = &leg_ops;
	netdev->ethtool_ops = &rocelab_ethtool_ops;
	netdev->dcbnl_ops = &rocelab_dcb_ops;
	netdev->max_mtu = 9978;
}

static void free_tables(struct rocelab_leg *leg)
{
	rocelab_table_free(&leg->access);
	rocelab_table_free(&leg->ethtool);
	rocelab_table_free(&leg->pause);
	rocelab_table_free(&leg->fec);
	rocelab_table_free(&leg->standard);
	rocelab_table_free(&leg->link);
	rocelab_table_free(&leg->dcb);
}

#define MAKE(leg, table, names) \
	rocelab_table_make(&(leg)->table, #table, names, ARRAY_SIZE(names))

static int make_tables(struct rocelab_leg *leg)
{
	int error = rocelab_table_make(&leg->access, "access", NULL, 0);

	error = error ?: rocelab_table_make(&leg->ethtool, "ethtool",
					    leg->personality->ethtool,
					    leg->personality->ethtool_count);
	error = error ?: MAKE(leg, pause, pause_names);
	error = error ?: MAKE(leg, fec, fec_names);
	error = error ?: MAKE(leg, standard, standard_names);
	error = error ?: MAKE(leg, link, link_names);
	error = error ?: rocelab_dcb_make(leg);
	if (error)
		return error;
	leg->link.changed = link_changed;
	leg->link.owner = leg;
	leg->pause.changed = names_changed;
	leg->dcb.changed = names_changed;
	leg->ethtool.refresh_ms = leg->personality->refresh_ms;
	rocelab_put(&leg->link, LINK_UP, 1);
	rocelab_put(&leg->link, LINK_SPEED, SPEED_100000);
	rocelab_put(&leg->link, LINK_QUEUES, 1);
	rocelab_put(&leg->link, LINK_PFC_TIMEOUT, PFC_STORM_PREVENTION_AUTO);
	return 0;
}

/* As of a real card: a card that is taken out and put in again has the same one. */
static void give_address(struct net_device *netdev, int card, int leg)
{
	u8 address[ETH_ALEN] = { 0x02, 0, 0, 0, 0xf0 + card, leg };

	eth_hw_addr_set(netdev, address);
}

struct rocelab_leg *rocelab_leg_make(struct rocelab_device *device)
{
	struct net_device *netdev = alloc_netdev(sizeof(struct rocelab_leg),
						 "roce%d", NET_NAME_ENUM,
						 leg_setup);
	struct rocelab_leg *leg;
	int error;

	if (!netdev)
		return ERR_PTR(-ENOMEM);
	leg = rocelab_leg_of(netdev);
	leg->netdev = netdev;
	leg->personality = device->personality;
	SET_NETDEV_DEV(netdev, device->parent);
	netdev->dev_port = device->leg_count;
	give_address(netdev, device->number, device->leg_count);
	error = make_tables(leg);
	if (!error)
		error = register_netdev(netdev);
	if (error) {
		free_tables(leg);
		free_netdev(netdev);
		return ERR_PTR(error);
	}
	return leg;
}

void rocelab_leg_show(struct rocelab_leg *leg, struct dentry *parent)
{
	rocelab_table_show(&leg->access, parent);
	rocelab_table_show(&leg->ethtool, parent);
	rocelab_table_show(&leg->pause, parent);
	rocelab_table_show(&leg->fec, parent);
	rocelab_table_show(&leg->standard, parent);
	rocelab_table_show(&leg->link, parent);
	rocelab_table_show(&leg->dcb, parent);
}

void rocelab_leg_let_go(struct rocelab_leg *leg)
{
	rocelab_table_let_go(&leg->access);
	rocelab_table_let_go(&leg->ethtool);
	rocelab_table_let_go(&leg->pause);
	rocelab_table_let_go(&leg->fec);
	rocelab_table_let_go(&leg->standard);
	rocelab_table_let_go(&leg->link);
	rocelab_table_let_go(&leg->dcb);
}

/* Restart counters from 0; keep the configuration and the link state. */
void rocelab_leg_reset(struct rocelab_leg *leg)
{
	unsigned int i;

	rocelab_table_reset(&leg->ethtool);
	rocelab_table_reset(&leg->fec);
	rocelab_table_reset(&leg->standard);
	rocelab_put(&leg->pause, PAUSE_RECEIVE_FRAMES, 0);
	rocelab_put(&leg->pause, PAUSE_TRANSMIT_FRAMES, 0);
	for (i = 0; i < ROCELAB_PRIORITIES; i++) {
		rocelab_put(&leg->dcb, DCB_REQUESTS + i, 0);
		rocelab_put(&leg->dcb, DCB_INDICATIONS + i, 0);
	}
}

void rocelab_leg_free(struct rocelab_leg *leg)
{
	struct net_device *netdev = leg->netdev;

	unregister_netdev(netdev);
	free_tables(leg);
	free_netdev(netdev);
}
