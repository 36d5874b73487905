// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The verbs that a process needs for queue pairs: contexts, protection
 * domains, completion queues and queue pairs with their states. They have no
 * data path: nothing is sent, and no completion arrives.
 */
#include "rocelab.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define cq_arguments ib_udata
#else
#define cq_arguments uverbs_attr_bundle
#endif

#define FIRST_QUEUE_PAIR	0x100

struct rocelab_context {
	struct ib_ucontext ib;
};

struct rocelab_domain {
	struct ib_pd ib;
};

struct rocelab_queue {
	struct ib_cq ib;
};

struct rocelab_pair {
	struct ib_qp ib;
	enum ib_qp_state state;
};

static struct rocelab_pair *pair_of(struct ib_qp *qp)
{
	return container_of(qp, struct rocelab_pair, ib);
}

static int open_context(struct ib_ucontext *context, struct ib_udata *udata)
{
	return 0;
}

/* Also makes it possible to remove the device while contexts are open. */
static void close_context(struct ib_ucontext *context)
{
}

static int make_domain(struct ib_pd *domain, struct ib_udata *udata)
{
	return 0;
}

static int free_domain(struct ib_pd *domain, struct ib_udata *udata)
{
	return 0;
}

static int make_queue(struct ib_cq *queue, const struct ib_cq_init_attr *wanted,
		      struct cq_arguments *arguments)
{
	queue->cqe = wanted->cqe;
	return 0;
}

static int free_queue(struct ib_cq *queue, struct ib_udata *udata)
{
	return 0;
}

static int make_pair(struct ib_qp *qp, struct ib_qp_init_attr *wanted,
		     struct ib_udata *udata)
{
	struct rocelab_device *device = rocelab_device_of(qp->device);

	qp->qp_num = FIRST_QUEUE_PAIR + atomic_inc_return(&device->pairs_made);
	pair_of(qp)->state = IB_QPS_RESET;
	return 0;
}

static int change_pair(struct ib_qp *qp, struct ib_qp_attr *wanted, int mask,
		       struct ib_udata *udata)
{
	struct rocelab_pair *pair = pair_of(qp);
	enum ib_qp_state next =
		mask & IB_QP_STATE ? wanted->qp_state : pair->state;

	if (!ib_modify_qp_is_ok(pair->state, next, qp->qp_type, mask))
		return -EINVAL;
	pair->state = next;
	return 0;
}

static int query_pair(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
		      struct ib_qp_init_attr *made_with)
{
	attr->qp_state = pair_of(qp)->state;
	attr->cur_qp_state = attr->qp_state;
	attr->port_num = qp->port;
	return 0;
}

static int free_pair(struct ib_qp *qp, struct ib_udata *udata)
{
	return 0;
}

const struct ib_device_ops rocelab_verbs_ops = {
	.uverbs_abi_ver = 1,
	.alloc_ucontext = open_context,
	.dealloc_ucontext = close_context,
	.disassociate_ucontext = close_context,
	.alloc_pd = make_domain,
	.dealloc_pd = free_domain,
	.create_cq = make_queue,
	.destroy_cq = free_queue,
	.create_qp = make_pair,
	.modify_qp = change_pair,
	.query_qp = query_pair,
	.destroy_qp = free_pair,

	INIT_RDMA_OBJ_SIZE(ib_ucontext, rocelab_context, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, rocelab_domain, ib),
	INIT_RDMA_OBJ_SIZE(ib_cq, rocelab_queue, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, rocelab_pair, ib),
};
