// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The RDMA device: port state, counters and hw_counters. The verbs of those
 * personalities that have some are in verbs.c.
 */
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>
#include "rocelab.h"

#define PMA_DATA	64	/* after the header and 40 reserved bytes */
#define NEVER_FRESH	(-1UL)

static const struct rocelab_name port_names[] = {
	{ "symbol_error", ONCE, 16 }, { "link_error_recovery", ONCE, 8 },
	{ "link_downed", ONCE, 8 }, { "port_rcv_errors", ONCE, 16 },
	{ "port_xmit_discards", ONCE, 16 }, { "port_xmit_wait", ONCE, 32 },
	{ "port_xmit_data" }, { "port_rcv_data" },
	{ "port_xmit_packets" }, { "port_rcv_packets" },
};

static const struct rocelab_name state_names[] = {
	{ "state" }, { "physical_state" }, { "speed" }, { "width" },
};

static int query_device(struct ib_device *ib, struct ib_device_attr *attr,
			struct ib_udata *udata)
{
	memset(attr, 0, sizeof(*attr));
	return 0;
}

/* 0 in a value of "state" means: follow the link below. */
static int query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr)
{
	struct rocelab_device *device = rocelab_device_of(ib);
	struct net_device *netdev = device->legs[0]->netdev;
	bool up = netif_running(netdev) && netif_carrier_ok(netdev);
	struct rocelab_table *table = &device->state;

	attr->state = rocelab_get(table, STATE_STATE) ?:
		(up ? IB_PORT_ACTIVE : IB_PORT_DOWN);
	attr->phys_state = rocelab_get(table, STATE_PHYSICAL) ?:
		(up ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED);
	attr->active_speed = rocelab_get(table, STATE_SPEED);
	attr->active_width = rocelab_get(table, STATE_WIDTH);
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_4096;
	attr->gid_tbl_len = device->personality->gids;
	attr->pkey_tbl_len = 1;
	return rocelab_query(table);
}

static int port_immutable(struct ib_device *ib, u32 port,
			  struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = rocelab_device_of(ib)->personality->gids;
	immutable->pkey_tbl_len = 1;
	immutable->core_cap_flags = RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP |
				    RDMA_CORE_CAP_PROT_ROCE;
	return 0;
}

static enum rdma_link_layer link_layer(struct ib_device *ib, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int keep_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static int query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey)
{
	*pkey = 0xffff;
	return 0;
}

static void firmware_text(struct ib_device *ib, char *text)
{
	strscpy(text, rocelab_device_of(ib)->personality->firmware,
		IB_FW_VERSION_NAME_MAX);
}

/* Optional counters are off until "rdma statistic set ... optional-counters". */
struct rdma_hw_stats *rocelab_make_statistics(struct rocelab_device *device)
{
	struct rocelab_table *table = &device->counters;
	struct rdma_hw_stats *stats;
	unsigned int i;

	stats = rdma_alloc_hw_stats_struct(device->descriptions, table->count,
					   RDMA_HW_STATS_DEFAULT_LIFESPAN);
	for (i = 0; stats && i < table->count; i++)
		if (table->values[i].scope == OPTIONAL)
			set_bit(i, stats->is_disabled);
	return stats;
}

static struct rdma_hw_stats *make_port_statistics(struct ib_device *ib,
						  u32 port)
{
	return rocelab_make_statistics(rocelab_device_of(ib));
}

static bool has_errors(struct rocelab_table *table)
{
	unsigned int i;

	for (i = 0; i < table->count; i++)
		if (rocelab_error(table, i))
			return true;
	return false;
}

/*
 * RDMA netlink reads index 0 and gets all counters; sysfs reads one index, and
 * does not call again for 10 ms if all were renewed. While single counters
 * fail nothing may be reported as renewed, or their error would be hidden.
 */
static int read_statistics(struct ib_device *ib, struct rdma_hw_stats *stats,
			   u32 port, int index)
{
	struct rocelab_table *table = &rocelab_device_of(ib)->counters;
	int error;

	if (!port)
		return -EOPNOTSUPP;
	error = rocelab_query(table);
	if (!error && index < table->count)
		error = rocelab_error(table, index);
	if (error)
		return error;
	rocelab_snapshot(table, stats->value, NULL, NULL);
	stats->lifespan = has_errors(table) ? NEVER_FRESH :
		msecs_to_jiffies(RDMA_HW_STATS_DEFAULT_LIFESPAN);
	return table->count;
}

static int switch_statistics(struct ib_device *ib, u32 port, u32 index,
			     bool enable)
{
	/* The core records it for the port; a counter set needs it, too. */
	assign_bit(index, rocelab_device_of(ib)->optional_on, enable);
	return 0;
}

static void tell_port(struct rocelab_table *table,
		      struct ib_pma_portcounters *to)
{
	to->symbol_error_counter = cpu_to_be16(rocelab_get(table, PORT_SYMBOL));
	to->link_error_recovery_counter = rocelab_get(table, PORT_RECOVERY);
	to->link_downed_counter = rocelab_get(table, PORT_DOWNED);
	to->port_rcv_errors =
		cpu_to_be16(rocelab_get(table, PORT_RECEIVE_ERRORS));
	to->port_xmit_discards =
		cpu_to_be16(rocelab_get(table, PORT_DISCARDS));
	to->port_xmit_wait = cpu_to_be32(rocelab_get(table, PORT_WAIT));
}

static void tell_port_extended(struct rocelab_table *table,
			       struct ib_pma_portcounters_ext *to)
{
	to->port_xmit_data =
		cpu_to_be64(rocelab_get(table, PORT_TRANSMIT_DATA));
	to->port_rcv_data = cpu_to_be64(rocelab_get(table, PORT_RECEIVE_DATA));
	to->port_xmit_packets =
		cpu_to_be64(rocelab_get(table, PORT_TRANSMIT_PACKETS));
	to->port_rcv_packets =
		cpu_to_be64(rocelab_get(table, PORT_RECEIVE_PACKETS));
}

/* Performance management (InfiniBand Architecture Specification, chapter 16). */
static int process_mad(struct ib_device *ib, int flags, u32 port,
		       const struct ib_wc *wc, const struct ib_grh *grh,
		       const struct ib_mad *in, struct ib_mad *out,
		       size_t *size, u16 *pkey_index)
{
	struct rocelab_table *table = &rocelab_device_of(ib)->port;
	void *data = (u8 *)out + PMA_DATA;

	if (rocelab_query(table))
		return IB_MAD_RESULT_FAILURE;
	if (in->mad_hdr.attr_id == IB_PMA_CLASS_PORT_INFO)
		((struct ib_class_port_info *)data)->capability_mask =
			IB_PMA_CLASS_CAP_EXT_WIDTH;
	else if (in->mad_hdr.attr_id == IB_PMA_PORT_COUNTERS)
		tell_port(table, data);
	else if (in->mad_hdr.attr_id == IB_PMA_PORT_COUNTERS_EXT)
		tell_port_extended(table, data);
	else
		return IB_MAD_RESULT_FAILURE;
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

static struct rocelab_device *device_behind(struct device *place)
{
	return rocelab_device_of(rdma_device_to_ibdev(place));
}

static ssize_t hca_type_show(struct device *place,
			     struct device_attribute *attr, char *to)
{
	return sysfs_emit(to, "%s\n", device_behind(place)->personality->model);
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t board_id_show(struct device *place,
			     struct device_attribute *attr, char *to)
{
	return sysfs_emit(to, "%s\n", device_behind(place)->personality->board);
}
static DEVICE_ATTR_RO(board_id);

static ssize_t hw_rev_show(struct device *place, struct device_attribute *attr,
			   char *to)
{
	return sysfs_emit(to, "0\n");
}
static DEVICE_ATTR_RO(hw_rev);

static struct attribute *attributes[] = {
	&dev_attr_hw_rev.attr,
	&dev_attr_hca_type.attr,
	&dev_attr_board_id.attr,
	NULL,
};

static umode_t is_visible(struct kobject *object, struct attribute *attribute,
			  int number)
{
	const struct rocelab_personality *personality =
		device_behind(kobj_to_dev(object))->personality;

	if (attribute == &dev_attr_hca_type.attr && !personality->model)
		return 0;
	if (attribute == &dev_attr_board_id.attr && !personality->board)
		return 0;
	return attribute->mode;
}

static const struct attribute_group group = {
	.attrs = attributes,
	.is_visible = is_visible,
};

static const struct ib_device_ops rdma_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.query_device = query_device,
	.query_port = query_port,
	.get_port_immutable = port_immutable,
	.get_link_layer = link_layer,
	.add_gid = keep_gid,
	.del_gid = keep_gid,
	.query_pkey = query_pkey,
	.get_dev_fw_str = firmware_text,
	.device_group = &group,
};

static const struct ib_device_ops statistics_ops = {
	.alloc_hw_port_stats = make_port_statistics,
	.get_hw_stats = read_statistics,
	.modify_hw_stat = switch_statistics,
};

static const struct ib_device_ops port_counter_ops = {
	.process_mad = process_mad,
};

static int make_tables(struct rocelab_device *device)
{
	const struct rocelab_personality *personality = device->personality;
	struct rocelab_table *counters = &device->counters;
	unsigned int i;
	int error;

	error = rocelab_table_make(counters, "rdma", personality->rdma,
				   personality->rdma_count);
	error = error ?: rocelab_table_make(&device->port, "port", port_names,
					    ARRAY_SIZE(port_names));
	error = error ?: rocelab_table_make(&device->state, "state",
					    state_names,
					    ARRAY_SIZE(state_names));
	error = error ?: rocelab_sets_make(device);
	if (error)
		return error;
	if (counters->count > ROCELAB_COUNTERS)
		return -E2BIG;
	rocelab_put(&device->state, STATE_SPEED, IB_SPEED_EDR);
	rocelab_put(&device->state, STATE_WIDTH, IB_WIDTH_4X);
	device->descriptions = kcalloc(counters->count,
				       sizeof(*device->descriptions),
				       GFP_KERNEL);
	if (!device->descriptions)
		return -ENOMEM;
	for (i = 0; i < counters->count; i++) {
		device->descriptions[i].name = counters->values[i].name;
		if (counters->values[i].scope == OPTIONAL)
			device->descriptions[i].flags = IB_STAT_FLAG_OPTIONAL;
	}
	return 0;
}

static int register_rdma(struct rocelab_device *device)
{
	struct ib_device *ib = &device->rdma->ib;
	int error;

	device->rdma->device = device;
	ib->phys_port_cnt = 1;
	ib->node_type = RDMA_NODE_IB_CA;
	ib->num_comp_vectors = 1;
	ib->dev.parent = device->parent;
	ib->node_guid = cpu_to_be64(0x02000000000000f0ULL + device->number);
	strscpy(ib->node_desc, "rocelab", sizeof(ib->node_desc));
	ib_set_device_ops(ib, &rdma_ops);
	if (device->personality->rdma_count)
		ib_set_device_ops(ib, &statistics_ops);
	if (device->personality->port_counters)
		ib_set_device_ops(ib, &port_counter_ops);
	if (device->personality->not_in_sets) {
		ib_set_device_ops(ib, &rocelab_verbs_ops);
		ib_set_device_ops(ib, &rocelab_set_ops);
	}
	error = ib_device_set_netdev(ib, device->legs[0]->netdev, 1);
	if (error)
		return error;
	return ib_register_device(ib, device->personality->rdma_name, NULL);
}

int rocelab_rdma_make(struct rocelab_device *device)
{
	int error = make_tables(device);

	if (error)
		return error;
	device->rdma = ib_alloc_device(rocelab_rdma, ib);
	if (!device->rdma)
		return -ENOMEM;
	error = register_rdma(device);
	if (error) {
		ib_dealloc_device(&device->rdma->ib);
		device->rdma = NULL;
	}
	return error;
}

void rocelab_rdma_show(struct rocelab_device *device)
{
	rocelab_table_show(&device->counters, device->directory);
	rocelab_table_show(&device->state, device->directory);
	rocelab_sets_show(device);
	if (device->personality->port_counters)
		rocelab_table_show(&device->port, device->directory);
}

void rocelab_rdma_let_go(struct rocelab_device *device)
{
	rocelab_table_let_go(&device->counters);
	rocelab_table_let_go(&device->port);
	rocelab_table_let_go(&device->state);
	rocelab_sets_let_go(device);
}

void rocelab_rdma_reset(struct rocelab_device *device)
{
	rocelab_table_reset(&device->counters);
	rocelab_table_reset(&device->port);
	rocelab_sets_reset(device);
}

void rocelab_rdma_free(struct rocelab_device *device)
{
	if (device->rdma) {
		ib_unregister_device(&device->rdma->ib);
		ib_dealloc_device(&device->rdma->ib);
	}
	rocelab_table_free(&device->counters);
	rocelab_table_free(&device->port);
	rocelab_table_free(&device->state);
	rocelab_sets_free(device);
	kfree(device->descriptions);
}
