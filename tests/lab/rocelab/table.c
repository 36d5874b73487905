// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Tables of values that a test sets and a driver's query returns, with the
 * faults, the delay and the refresh of that query.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include "rocelab.h"

static unsigned int copies_of(const struct rocelab_name *name)
{
	switch (name->scope) {
	case EACH_PRIORITY:
	case EACH_PFC_PRIORITY:
		return ROCELAB_PRIORITIES;
	case EACH_QUEUE:
		return ROCELAB_QUEUES;
	default:
		return 1;
	}
}

static void fill(struct rocelab_value *value, const struct rocelab_name *name,
		 unsigned int index)
{
	/* Some contain "%u"; no name has another percent sign. */
	snprintf(value->name, sizeof(value->name), name->text, index);
	value->scope = name->scope;
	value->bits = name->bits ? name->bits : 64;
	value->index = index;
}

int rocelab_table_make(struct rocelab_table *table, const char *title,
		       const struct rocelab_name *names, unsigned int count)
{
	unsigned int i, j;

	table->title = title;
	spin_lock_init(&table->lock);
	init_waitqueue_head(&table->released);
	for (i = 0; i < count; i++)
		table->count += copies_of(&names[i]);
	table->values = kvcalloc(table->count, sizeof(*table->values), GFP_KERNEL);
	if (!table->values)
		return -ENOMEM;
	table->count = 0;
	for (i = 0; i < count; i++)
		for (j = 0; j < copies_of(&names[i]); j++)
			fill(&table->values[table->count++], &names[i], j);
	return 0;
}

void rocelab_table_free(struct rocelab_table *table)
{
	kvfree(table->values);
	table->values = NULL;
}

/* End every hang, because the device is about to be removed. */
void rocelab_table_let_go(struct rocelab_table *table)
{
	if (!table->title)
		return;
	spin_lock(&table->lock);
	table->gone = true;
	spin_unlock(&table->lock);
	wake_up_all(&table->released);
}

static bool goes_on(struct rocelab_table *table)
{
	bool goes;

	spin_lock(&table->lock);
	goes = !table->hanging || table->gone;
	spin_unlock(&table->lock);
	return goes;
}

/*
 * A query of the firmware: it delays, hangs or fails as the test configured.
 * A signal does not interrupt it, as with a command to real firmware.
 */
int rocelab_query(struct rocelab_table *table)
{
	u32 delay = READ_ONCE(table->delay_us);
	int error;

	atomic_inc(&table->queries);
	if (delay)
		fsleep(delay);
	wait_event_idle(table->released, goes_on(table));
	spin_lock(&table->lock);
	error = table->gone ? -ENODEV : table->fault;
	spin_unlock(&table->lock);
	return error;
}

/*
 * Reads return the values set before the last whole refresh period. Called
 * before every read and every write, so no timer is needed.
 */
static void renew(struct rocelab_table *table)
{
	u32 refresh = READ_ONCE(table->refresh_ms);
	u64 period;
	unsigned int i;

	if (!refresh)
		return;
	period = div_u64(ktime_to_ms(ktime_get()), refresh);
	if (period == table->period)
		return;
	table->period = period;
	for (i = 0; i < table->count; i++)
		table->values[i].copy = table->values[i].set;
}

static u64 told(const struct rocelab_table *table,
		const struct rocelab_value *value)
{
	u64 number = table->refresh_ms ? value->copy : value->set;

	return value->bits < 64 ? number & (BIT_ULL(value->bits) - 1) : number;
}

u64 rocelab_get(struct rocelab_table *table, unsigned int position)
{
	u64 number;

	spin_lock(&table->lock);
	renew(table);
	number = told(table, &table->values[position]);
	spin_unlock(&table->lock);
	return number;
}

void rocelab_put(struct rocelab_table *table, unsigned int position, u64 value)
{
	spin_lock(&table->lock);
	renew(table);
	table->values[position].set = value;
	spin_unlock(&table->lock);
}

int rocelab_error(struct rocelab_table *table, unsigned int position)
{
	int error;

	spin_lock(&table->lock);
	error = table->values[position].error;
	spin_unlock(&table->lock);
	return error;
}

/* All values of one moment; with is_told only those that it accepts. */
void rocelab_snapshot(struct rocelab_table *table, u64 *values,
		      bool (*is_told)(struct rocelab_leg *leg,
				      const struct rocelab_value *value),
		      struct rocelab_leg *leg)
{
	unsigned int i;

	spin_lock(&table->lock);
	renew(table);
	for (i = 0; i < table->count; i++)
		if (!is_told || is_told(leg, &table->values[i]))
			*values++ = told(table, &table->values[i]);
	spin_unlock(&table->lock);
}

/* As after a reset of the firmware: restart counters from 0. */
void rocelab_table_reset(struct rocelab_table *table)
{
	unsigned int i;

	spin_lock(&table->lock);
	for (i = 0; i < table->count; i++) {
		table->values[i].set = 0;
		table->values[i].copy = 0;
	}
	spin_unlock(&table->lock);
}
