// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The files below /sys/kernel/debug/rocelab/N/ with which a test controls one
 * table: values, fault, delay_us, refresh_ms, queries; and "log", which
 * writes to the kernel log.
 */
#include <linux/rtnetlink.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include "rocelab.h"

#define LONGEST_WRITE	SZ_512K
#define LONGEST_LINE	900

static const struct {
	const char *name;
	int number;
} errors[] = {
	{ "none", 0 },
	{ "EINVAL", -EINVAL },
	{ "EIO", -EIO },
	{ "ENODEV", -ENODEV },
	{ "EAGAIN", -EAGAIN },
	{ "EBUSY", -EBUSY },
	{ "ENOMEM", -ENOMEM },
	{ "EPERM", -EPERM },
	{ "ETIMEDOUT", -ETIMEDOUT },
	{ "EOPNOTSUPP", -EOPNOTSUPP },
};

static int error_named(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(errors); i++)
		if (!strcmp(name, errors[i].name))
			return errors[i].number;
	return 1;
}

static const char *name_of_error(int number)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(errors); i++)
		if (number == errors[i].number)
			return errors[i].name;
	return "?";
}

static struct rocelab_value *value_named(struct rocelab_table *table,
					 const char *name)
{
	unsigned int i;

	for (i = 0; i < table->count; i++)
		if (!strcmp(name, table->values[i].name))
			return &table->values[i];
	return NULL;
}

struct change {
	struct rocelab_value *value;
	u64 number;
};

/* Names may contain spaces: the last one separates the number. */
static int parse_change(struct rocelab_table *table, char *line,
			struct change *change)
{
	char *space = strrchr(line, ' ');

	if (!space)
		return -EINVAL;
	*space = '\0';
	change->value = value_named(table, line);
	if (!change->value)
		return -ENOENT;
	return kstrtou64(space + 1, 0, &change->number);
}

static int parse_changes(struct rocelab_table *table, char *text,
			 struct change *changes, unsigned int *count)
{
	char *line;
	int error;

	*count = 0;
	while ((line = strsep(&text, "\n"))) {
		if (!*line)
			continue;
		error = parse_change(table, line, &changes[*count]);
		if (error)
			return error;
		(*count)++;
	}
	return 0;
}

static void apply(struct rocelab_table *table, const struct change *changes,
		  unsigned int count)
{
	unsigned int i;

	/* Before the first value, so that a refresh in between is not missed. */
	if (count)
		rocelab_get(table, 0);
	spin_lock(&table->lock);
	for (i = 0; i < count; i++)
		changes[i].value->set = changes[i].number;
	spin_unlock(&table->lock);
}

static ssize_t values_write(struct file *file, const char __user *from,
			    size_t length, loff_t *offset)
{
	struct rocelab_table *table =
		((struct seq_file *)file->private_data)->private;
	struct change *changes;
	unsigned int count;
	char *text;
	int error;

	if (length > LONGEST_WRITE)
		return -E2BIG;
	text = memdup_user_nul(from, length);
	if (IS_ERR(text))
		return PTR_ERR(text);
	/* The shortest line is a letter, a space, a digit and its end. */
	changes = kvcalloc(length / 4 + 1, sizeof(*changes), GFP_KERNEL);
	error = changes ? parse_changes(table, text, changes, &count) : -ENOMEM;
	if (!error && table->changed) {
		rtnl_lock();
		apply(table, changes, count);
		table->changed(table);
		rtnl_unlock();
	} else if (!error) {
		apply(table, changes, count);
	}
	kvfree(changes);
	kfree(text);
	return error ? error : length;
}

static int values_show(struct seq_file *to, void *unused)
{
	struct rocelab_table *table = to->private;
	unsigned int i;

	for (i = 0; i < table->count; i++)
		seq_printf(to, "%s %llu\n", table->values[i].name,
			   READ_ONCE(table->values[i].set));
	return 0;
}

static int values_open(struct inode *inode, struct file *file)
{
	return single_open(file, values_show, inode->i_private);
}

static const struct file_operations values_file = {
	.owner = THIS_MODULE,
	.open = values_open,
	.read = seq_read,
	.write = values_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static int set_fault(struct rocelab_table *table, char *text)
{
	char *space = strrchr(text, ' ');
	struct rocelab_value *value = NULL;
	bool hang = !strcmp(text, "hang");
	int error = hang ? 0 : error_named(space ? space + 1 : text);

	if (error > 0)
		return -EINVAL;
	if (space) {
		*space = '\0';
		value = value_named(table, text);
		if (!value)
			return -ENOENT;
	}
	spin_lock(&table->lock);
	if (value) {
		value->error = error;
	} else {
		table->fault = error;
		table->hanging = hang;
	}
	spin_unlock(&table->lock);
	wake_up_all(&table->released);
	return 0;
}

static ssize_t fault_write(struct file *file, const char __user *from,
			   size_t length, loff_t *offset)
{
	struct rocelab_table *table =
		((struct seq_file *)file->private_data)->private;
	char text[64];
	int error;

	if (length >= sizeof(text))
		return -E2BIG;
	if (copy_from_user(text, from, length))
		return -EFAULT;
	text[length] = '\0';
	error = set_fault(table, strim(text));
	return error ? error : length;
}

static int fault_show(struct seq_file *to, void *unused)
{
	struct rocelab_table *table = to->private;
	unsigned int i;

	seq_printf(to, "%s\n",
		   table->hanging ? "hang" : name_of_error(table->fault));
	for (i = 0; i < table->count; i++)
		if (table->values[i].error)
			seq_printf(to, "%s %s\n", table->values[i].name,
				   name_of_error(table->values[i].error));
	return 0;
}

static int fault_open(struct inode *inode, struct file *file)
{
	return single_open(file, fault_show, inode->i_private);
}

static const struct file_operations fault_file = {
	.owner = THIS_MODULE,
	.open = fault_open,
	.read = seq_read,
	.write = fault_write,
	.llseek = seq_lseek,
	.release = single_release,
};

void rocelab_table_show(struct rocelab_table *table, struct dentry *parent)
{
	struct dentry *place = debugfs_create_dir(table->title, parent);

	if (table->count)
		debugfs_create_file("values", 0600, place, table, &values_file);
	debugfs_create_file("fault", 0600, place, table, &fault_file);
	debugfs_create_u32("delay_us", 0600, place, &table->delay_us);
	debugfs_create_u32("refresh_ms", 0600, place, &table->refresh_ms);
	debugfs_create_atomic_t("queries", 0400, place, &table->queries);
}

/*
 * One line as a driver writes it: "err TEXT" with dev_err(), "info TEXT" with
 * dev_info(), "net TEXT" with netdev_info() of the first network device.
 */
static int write_line(struct rocelab_device *device, char *text)
{
	char *how = strsep(&text, " ");

	if (!text || !device->leg_count)
		return -EINVAL;
	if (!strcmp(how, "err"))
		dev_err(device->parent, "%s\n", text);
	else if (!strcmp(how, "info"))
		dev_info(device->parent, "%s\n", text);
	else if (!strcmp(how, "net"))
		netdev_info(device->legs[0]->netdev, "%s\n", text);
	else
		return -EINVAL;
	return 0;
}

static ssize_t log_write(struct file *file, const char __user *from,
			 size_t length, loff_t *offset)
{
	char *text;
	int error;

	if (length > LONGEST_LINE)
		return -E2BIG;
	text = memdup_user_nul(from, length);
	if (IS_ERR(text))
		return PTR_ERR(text);
	error = write_line(file->private_data, strim(text));
	kfree(text);
	return error ? error : length;
}

static const struct file_operations log_file = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = log_write,
};

void rocelab_log_show(struct rocelab_device *device)
{
	debugfs_create_file("log", 0200, device->directory, device, &log_file);
}
