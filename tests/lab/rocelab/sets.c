// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Counter sets: counters that the kernel binds to queue pairs, in the way of
 * mlx5. The device has a few, each with a table of its own. The kernel decides
 * which queue pairs share a set (drivers/infiniband/core/counters.c).
 */
#include <linux/bitops.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "rocelab.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
#define PORT_ARGUMENT
#define with_optional(counter)	false
#else
#define PORT_ARGUMENT	, u32 port
#define with_optional(counter)	((counter)->mode.bind_opcnt)
#endif

static const char *const numbers[ROCELAB_SETS] = {
	"1", "2", "3", "4", "5", "6", "7", "8",
};

/* The same names in the same order as the port, as the kernel expects. */
static struct rdma_hw_stats *make_statistics(struct rdma_counter *counter)
{
	return rocelab_make_statistics(rocelab_device_of(counter->device));
}

static int take_set(struct rocelab_device *device)
{
	unsigned int i;

	for (i = 0; i < ROCELAB_SETS; i++)
		if (!test_and_set_bit(i, &device->sets_in_use)) {
			rocelab_table_reset(&device->sets[i]);
			return i + 1;
		}
	return -ENOSPC;
}

/* The first queue pair of a counter allocates the set. 0 is the port's. */
static int bind_pair(struct rdma_counter *counter, struct ib_qp *qp
		     PORT_ARGUMENT)
{
	int number;

	if (!counter->id) {
		number = take_set(rocelab_device_of(counter->device));
		if (number < 0)
			return number;
		counter->id = number;
	}
	qp->counter = counter;
	return 0;
}

static int unbind_pair(struct ib_qp *qp PORT_ARGUMENT)
{
	qp->counter = NULL;
	return 0;
}

static int free_set(struct rdma_counter *counter)
{
	struct rocelab_device *device = rocelab_device_of(counter->device);

	if (counter->id)
		clear_bit(counter->id - 1, &device->sets_in_use);
	return 0;
}

static bool is_of_port_only(struct rocelab_device *device, const char *name)
{
	const char *const *prefix = device->personality->not_in_sets;

	for (; *prefix; prefix++)
		if (!strncmp(name, *prefix, strlen(*prefix)))
			return true;
	return false;
}

/* Values that the driver does not fill stay 0, and are listed all the same. */
static void fill(struct rdma_counter *counter, struct rocelab_table *table,
		 const u64 *values)
{
	struct rocelab_device *device = rocelab_device_of(counter->device);
	struct rdma_hw_stats *to = counter->stats;
	unsigned int i;

	for (i = 0; i < table->count; i++) {
		if (is_of_port_only(device, table->values[i].name))
			continue;
		if (table->values[i].scope == OPTIONAL) {
			if (!with_optional(counter) ||
			    !test_bit(i, device->optional_on))
				continue;
			clear_bit(i, to->is_disabled);
		}
		to->value[i] = values[i];
	}
}

static int read_set(struct rdma_counter *counter)
{
	struct rocelab_device *device = rocelab_device_of(counter->device);
	struct rocelab_table *table;
	u64 *values;
	int error;

	if (!counter->id)
		return -EINVAL;
	table = &device->sets[counter->id - 1];
	error = rocelab_query(table);
	if (error)
		return error;
	values = kcalloc(table->count, sizeof(*values), GFP_KERNEL);
	if (!values)
		return -ENOMEM;
	rocelab_snapshot(table, values, NULL, NULL);
	fill(counter, table, values);
	kfree(values);
	return 0;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
struct rocelab_counter {
	struct rdma_counter counter;
};

static void prepare_counter(struct rdma_counter *counter)
{
}
#endif

const struct ib_device_ops rocelab_set_ops = {
	.counter_alloc_stats = make_statistics,
	.counter_bind_qp = bind_pair,
	.counter_unbind_qp = unbind_pair,
	.counter_dealloc = free_set,
	.counter_update_stats = read_set,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	.counter_init = prepare_counter,
	INIT_RDMA_OBJ_SIZE(rdma_counter, rocelab_counter, counter),
#endif
};

int rocelab_sets_make(struct rocelab_device *device)
{
	const struct rocelab_personality *personality = device->personality;
	unsigned int i;
	int error = 0;

	for (i = 0; personality->not_in_sets && !error && i < ROCELAB_SETS; i++)
		error = rocelab_table_make(&device->sets[i], numbers[i],
					   personality->rdma,
					   personality->rdma_count);
	return error;
}

void rocelab_sets_show(struct rocelab_device *device)
{
	struct dentry *place;
	unsigned int i;

	if (!device->personality->not_in_sets)
		return;
	place = debugfs_create_dir("sets", device->directory);
	for (i = 0; i < ROCELAB_SETS; i++)
		rocelab_table_show(&device->sets[i], place);
}

void rocelab_sets_let_go(struct rocelab_device *device)
{
	unsigned int i;

	for (i = 0; i < ROCELAB_SETS; i++)
		rocelab_table_let_go(&device->sets[i]);
}

void rocelab_sets_reset(struct rocelab_device *device)
{
	unsigned int i;

	for (i = 0; device->personality->not_in_sets && i < ROCELAB_SETS; i++)
		rocelab_table_reset(&device->sets[i]);
}

void rocelab_sets_free(struct rocelab_device *device)
{
	unsigned int i;

	for (i = 0; i < ROCELAB_SETS; i++)
		rocelab_table_free(&device->sets[i]);
}
