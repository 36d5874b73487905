// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Data centre bridging of a network device: PFC, scheduling, buffers and
 * trust, which "dcb ... show" reads and "dcb ... set" changes.
 */
#include <linux/dcbnl.h>
#include <net/dcbnl.h>
#include "rocelab.h"

#define TOTAL_BUFFER	524160

static const struct rocelab_name dcb_names[] = {
	{ "pfc_capable" }, { "pfc_enabled" }, { "pfc_delay" },
	{ "total_buffer" },
	{ "requests_%u", EACH_PRIORITY },
	{ "indications_%u", EACH_PRIORITY },
	{ "class_%u", EACH_PRIORITY },
	{ "bandwidth_%u", EACH_PRIORITY },
	{ "algorithm_%u", EACH_PRIORITY },
	{ "priority_buffer_%u", EACH_PRIORITY },
	{ "buffer_%u", EACH_PRIORITY },
};

static int get_pfc(struct net_device *netdev, struct ieee_pfc *pfc)
{
	struct rocelab_table *table = &rocelab_leg_of(netdev)->dcb;
	unsigned int i;

	pfc->pfc_cap = rocelab_get(table, DCB_CAPABLE);
	pfc->pfc_en = rocelab_get(table, DCB_ENABLED);
	pfc->delay = rocelab_get(table, DCB_DELAY);
	for (i = 0; i < ROCELAB_PRIORITIES; i++) {
		pfc->requests[i] = rocelab_get(table, DCB_REQUESTS + i);
		pfc->indications[i] = rocelab_get(table, DCB_INDICATIONS + i);
	}
	return rocelab_query(table);
}

static int set_pfc(struct net_device *netdev, struct ieee_pfc *pfc)
{
	rocelab_put(&rocelab_leg_of(netdev)->dcb, DCB_ENABLED, pfc->pfc_en);
	return 0;
}

static int get_ets(struct net_device *netdev, struct ieee_ets *ets)
{
	struct rocelab_table *table = &rocelab_leg_of(netdev)->dcb;
	unsigned int i;

	ets->ets_cap = ROCELAB_PRIORITIES;
	for (i = 0; i < ROCELAB_PRIORITIES; i++) {
		ets->prio_tc[i] = rocelab_get(table, DCB_CLASS + i);
		ets->tc_tx_bw[i] = rocelab_get(table, DCB_BANDWIDTH + i);
		ets->tc_tsa[i] = rocelab_get(table, DCB_ALGORITHM + i);
	}
	return rocelab_query(table);
}

static int set_ets(struct net_device *netdev, struct ieee_ets *ets)
{
	struct rocelab_table *table = &rocelab_leg_of(netdev)->dcb;
	unsigned int i;

	for (i = 0; i < ROCELAB_PRIORITIES; i++) {
		rocelab_put(table, DCB_CLASS + i, ets->prio_tc[i]);
		rocelab_put(table, DCB_BANDWIDTH + i, ets->tc_tx_bw[i]);
		rocelab_put(table, DCB_ALGORITHM + i, ets->tc_tsa[i]);
	}
	return 0;
}

static int get_buffer(struct net_device *netdev, struct dcbnl_buffer *buffer)
{
	struct rocelab_table *table = &rocelab_leg_of(netdev)->dcb;
	unsigned int i;

	for (i = 0; i < ROCELAB_PRIORITIES; i++) {
		buffer->prio2buffer[i] =
			rocelab_get(table, DCB_PRIORITY_BUFFER + i);
		buffer->buffer_size[i] = rocelab_get(table, DCB_BUFFER + i);
	}
	buffer->total_size = rocelab_get(table, DCB_TOTAL_BUFFER);
	return rocelab_query(table);
}

static u8 get_dcbx(struct net_device *netdev)
{
	return DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
static int get_trust(struct net_device *netdev, u8 *selectors, int *count)
{
	struct rocelab_leg *leg = rocelab_leg_of(netdev);

	memcpy(selectors, leg->trust, leg->trusted);
	*count = leg->trusted;
	return 0;
}

static int set_trust(struct net_device *netdev, u8 *selectors, int count)
{
	struct rocelab_leg *leg = rocelab_leg_of(netdev);

	if (count > ARRAY_SIZE(leg->trust))
		return -EINVAL;
	memcpy(leg->trust, selectors, count);
	leg->trusted = count;
	return 0;
}
#endif

const struct dcbnl_rtnl_ops rocelab_dcb_ops = {
	.ieee_getpfc = get_pfc,
	.ieee_setpfc = set_pfc,
	.ieee_getets = get_ets,
	.ieee_setets = set_ets,
	.dcbnl_getbuffer = get_buffer,
	.getdcbx = get_dcbx,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	.dcbnl_getapptrust = get_trust,
	.dcbnl_setapptrust = set_trust,
#endif
};

/* Typical settings of a RoCE host: PFC on priority 3, DSCP trusted. */
int rocelab_dcb_make(struct rocelab_leg *leg)
{
	struct rocelab_table *table = &leg->dcb;
	unsigned int i;
	int error = rocelab_table_make(table, "dcb", dcb_names,
				       ARRAY_SIZE(dcb_names));

	if (error)
		return error;
	rocelab_put(table, DCB_CAPABLE, ROCELAB_PRIORITIES);
	rocelab_put(table, DCB_ENABLED, BIT(3));
	rocelab_put(table, DCB_DELAY, 7);
	rocelab_put(table, DCB_TOTAL_BUFFER, TOTAL_BUFFER);
	rocelab_put(table, DCB_BUFFER, TOTAL_BUFFER / 2);
	rocelab_put(table, DCB_BUFFER + 1, TOTAL_BUFFER / 4);
	rocelab_put(table, DCB_PRIORITY_BUFFER + 3, 1);
	for (i = 0; i < ROCELAB_PRIORITIES; i++)
		rocelab_put(table, DCB_CLASS + i, i);
	leg->trust[0] = IEEE_8021QAZ_APP_SEL_DSCP;
	leg->trusted = 1;
	return 0;
}
