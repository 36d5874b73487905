// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The module: creates and removes devices, one platform device each, below a
 * platform driver of the personality's name.
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "rocelab.h"

static char *devices = "mlx5";
module_param(devices, charp, 0444);
MODULE_PARM_DESC(devices,
		 "devices to make, such as mlx5,bnxt; mlx5/2 has two legs");

static DEFINE_MUTEX(slots_lock);
static struct platform_device *slots[ROCELAB_DEVICES];
static struct dentry *root;

static void reset(struct rocelab_device *device)
{
	unsigned int i;

	for (i = 0; i < device->leg_count; i++)
		rocelab_leg_reset(device->legs[i]);
	rocelab_rdma_reset(device);
}

static ssize_t reset_write(struct file *file, const char __user *from,
			   size_t length, loff_t *offset)
{
	reset(file->private_data);
	return length;
}

static const struct file_operations reset_file = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = reset_write,
};

static void show(struct rocelab_device *device)
{
	struct dentry *leg;
	char name[8];
	unsigned int i;

	snprintf(name, sizeof(name), "%d", device->number);
	device->directory = debugfs_create_dir(name, root);
	debugfs_create_file("reset", 0200, device->directory, device,
			    &reset_file);
	rocelab_log_show(device);
	rocelab_rdma_show(device);
	for (i = 0; i < device->leg_count; i++) {
		snprintf(name, sizeof(name), "leg%u", i);
		leg = debugfs_create_dir(name, device->directory);
		rocelab_leg_show(device->legs[i], leg);
	}
}

/*
 * End hangs first: a query that hangs under the RTNL, or a test that waits
 * for the RTNL in one of our files, would block everything after it.
 */
static void take_down(struct rocelab_device *device)
{
	unsigned int i;

	rocelab_rdma_let_go(device);
	for (i = 0; i < device->leg_count; i++)
		rocelab_leg_let_go(device->legs[i]);
	debugfs_remove_recursive(device->directory);
	rocelab_rdma_free(device);
	while (device->leg_count)
		rocelab_leg_free(device->legs[--device->leg_count]);
	kfree(device);
}

static int build(struct rocelab_device *device, unsigned int legs)
{
	struct rocelab_leg *leg;

	while (device->leg_count < legs) {
		leg = rocelab_leg_make(device);
		if (IS_ERR(leg))
			return PTR_ERR(leg);
		device->legs[device->leg_count++] = leg;
	}
	return rocelab_rdma_make(device);
}

static int rocelab_probe(struct platform_device *pdev)
{
	const struct rocelab_order *order = dev_get_platdata(&pdev->dev);
	struct rocelab_device *device;
	int error;

	if (!order)
		return -ENODEV;
	device = kzalloc(sizeof(*device), GFP_KERNEL);
	if (!device)
		return -ENOMEM;
	device->number = pdev->id;
	device->parent = &pdev->dev;
	device->personality = order->personality;
	error = build(device, order->legs);
	if (error) {
		take_down(device);
		return error;
	}
	show(device);
	platform_set_drvdata(pdev, device);
	return 0;
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
static int rocelab_remove(struct platform_device *pdev)
{
	take_down(platform_get_drvdata(pdev));
	return 0;
}
#else
static void rocelab_remove(struct platform_device *pdev)
{
	take_down(platform_get_drvdata(pdev));
}
#endif

static struct platform_driver drivers[ROCELAB_PERSONALITIES];

/* A text such as "mlx5" or "mlx5/2". */
static int add(char *text)
{
	struct rocelab_order order = { .legs = 1 };
	struct platform_device *pdev;
	char *legs = strchr(text, '/');
	int number, error;

	if (legs) {
		*legs = '\0';
		error = kstrtouint(legs + 1, 10, &order.legs);
		if (error || !order.legs || order.legs > ROCELAB_LEGS)
			return -EINVAL;
	}
	order.personality = rocelab_personality_named(text);
	if (!order.personality)
		return -EINVAL;
	for (number = 0; number < ROCELAB_DEVICES && slots[number]; number++)
		;
	if (number == ROCELAB_DEVICES)
		return -ENOSPC;
	pdev = platform_device_register_data(NULL, order.personality->driver,
					     number, &order, sizeof(order));
	if (IS_ERR(pdev))
		return PTR_ERR(pdev);
	/* The probe's own error is lost in the driver core. */
	if (!platform_get_drvdata(pdev)) {
		platform_device_unregister(pdev);
		return -EIO;
	}
	slots[number] = pdev;
	return 0;
}

static int remove(char *text)
{
	unsigned int number;

	if (kstrtouint(text, 10, &number))
		return -EINVAL;
	if (number >= ROCELAB_DEVICES || !slots[number])
		return -ENOENT;
	platform_device_unregister(slots[number]);
	slots[number] = NULL;
	return 0;
}

static ssize_t order_write(const char __user *from, size_t length,
			   int (*order)(char *text))
{
	char text[32];
	int error;

	if (length >= sizeof(text))
		return -E2BIG;
	if (copy_from_user(text, from, length))
		return -EFAULT;
	text[length] = '\0';
	mutex_lock(&slots_lock);
	error = order(strim(text));
	mutex_unlock(&slots_lock);
	return error ? error : length;
}

static ssize_t add_write(struct file *file, const char __user *from,
			 size_t length, loff_t *offset)
{
	return order_write(from, length, add);
}

static ssize_t remove_write(struct file *file, const char __user *from,
			    size_t length, loff_t *offset)
{
	return order_write(from, length, remove);
}

static const struct file_operations add_file = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = add_write,
};

static const struct file_operations remove_file = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = remove_write,
};

static void unregister_drivers(unsigned int count)
{
	while (count)
		platform_driver_unregister(&drivers[--count]);
}

static int register_drivers(void)
{
	const struct rocelab_personality *personality;
	unsigned int i;
	int error;

	for (i = 0; (personality = rocelab_personality_at(i)); i++) {
		drivers[i].probe = rocelab_probe;
		drivers[i].remove = rocelab_remove;
		drivers[i].driver.name = personality->driver;
		error = platform_driver_register(&drivers[i]);
		if (error) {
			unregister_drivers(i);
			return error;
		}
	}
	return 0;
}

static void remove_devices(void)
{
	unsigned int i;

	for (i = 0; i < ROCELAB_DEVICES; i++)
		if (slots[i])
			platform_device_unregister(slots[i]);
}

static int add_devices(void)
{
	char *list = kstrdup(devices, GFP_KERNEL);
	char *rest = list, *one;
	int error = list ? 0 : -ENOMEM;

	while (!error && (one = strsep(&rest, ",")))
		if (*one)
			error = add(one);
	kfree(list);
	return error;
}

static unsigned int driver_count(void)
{
	unsigned int count = 0;

	while (rocelab_personality_at(count))
		count++;
	return count;
}

static int __init rocelab_init(void)
{
	int error = register_drivers();

	if (error)
		return error;
	root = debugfs_create_dir("rocelab", NULL);
	error = add_devices();
	if (error) {
		remove_devices();
		debugfs_remove_recursive(root);
		unregister_drivers(driver_count());
		return error;
	}
	/* Last: no device may be added while the module can fail to load. */
	debugfs_create_file("add", 0200, root, NULL, &add_file);
	debugfs_create_file("remove", 0200, root, NULL, &remove_file);
	return 0;
}

static void __exit rocelab_exit(void)
{
	debugfs_lookup_and_remove("add", root);
	debugfs_lookup_and_remove("remove", root);
	remove_devices();
	debugfs_remove_recursive(root);
	unregister_drivers(driver_count());
}

module_init(rocelab_init);
module_exit(rocelab_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("RoCE network cards without hardware, for tests");
