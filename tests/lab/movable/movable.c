// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Makes one Soft-RoCE device movable between network namespaces (`rdma dev set NAME netns NETNS`): the kernel moves only
 * devices whose driver can take away user contexts (rdma_dev_change_netns in device.c), and rdma_rxe cannot. As in
 * mlx5 and hns the operation itself is empty; the core does the work.
 */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>

static char *netdev;
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "the network device of the Soft-RoCE device");

static void nothing_to_take_away(struct ib_ucontext *context)
{
}

static const struct ib_device_ops movable_ops = {
	.disassociate_ucontext = nothing_to_take_away,
};

static int __init movable_init(void)
{
	struct net_device *below = netdev ? dev_get_by_name(&init_net, netdev) : NULL;
	struct ib_device *found;

	if (!below)
		return -ENODEV;
	found = ib_device_get_by_netdev(below, RDMA_DRIVER_RXE);
	dev_put(below);
	if (!found)
		return -ENODEV;
	ib_set_device_ops(found, &movable_ops);
	ib_device_put(found);
	return 0;
}
module_init(movable_init);

/* No exit: the device keeps the operation, so the module stays. */
MODULE_DESCRIPTION("Makes an RDMA device movable between network namespaces");
MODULE_LICENSE("Dual MIT/GPL");
