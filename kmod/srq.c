// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shared receive queues; see srq.h. */
#include <linux/log2.h>
#include <linux/slab.h>
#include "cq.h"
#include "device.h"
#include "srq.h"
#include "ucontext.h"
#include "wire.h"

static_assert(sizeof(struct uroce_srq_ctrl) == 128);

static int srq_check(const struct ib_srq_init_attr *init)
{
	if (init->srq_type != IB_SRQT_BASIC && init->srq_type != IB_SRQT_XRC)
		return -EOPNOTSUPP;
	if (init->srq_type == IB_SRQT_XRC && !init->ext.xrc.xrcd)
		return -EINVAL;
	if (!init->attr.max_wr || init->attr.max_wr > UROCE_MAX_SRQ_WR ||
	    init->attr.max_sge > UROCE_MAX_SGE)
		return -EINVAL;
	return 0;
}

struct uroce_region *uroce_srq_region_create(struct uroce_ucontext *uctx,
					     u32 entries, u32 stride)
{
	return uroce_region_create(uctx ? &uctx->ib : NULL,
				   UROCE_SRQ_WQE_OFFSET +
				   (size_t)entries * stride);
}

void uroce_srq_set_region(struct uroce_srq *srq, struct uroce_region *region,
			  u32 entries)
{
	srq->region = region;
	srq->ctrl = region->mem;
	srq->ring.mem = region->mem + UROCE_SRQ_WQE_OFFSET;
	srq->ring.entries = entries;
}

static int srq_alloc_ring(struct uroce_srq *srq, struct ib_srq_attr *attr)
{
	struct uroce_ring *ring = &srq->ring;
	struct uroce_region *region;
	u32 entries;

	entries = roundup_pow_of_two(attr->max_wr);
	ring->max_sge = max(attr->max_sge, 1U);
	ring->stride = uroce_recv_stride(ring->max_sge);
	region = uroce_srq_region_create(srq->uctx, entries, ring->stride);
	if (IS_ERR(region))
		return PTR_ERR(region);
	uroce_srq_set_region(srq, region, entries);

	attr->max_wr = ring->entries;
	attr->max_sge = ring->max_sge;
	return 0;
}

static int srq_respond(const struct uroce_srq *srq, struct ib_udata *udata)
{
	struct uroce_create_srq_resp resp = {
		.mmap_offset = uroce_region_offset(srq->region),
		.mmap_len = srq->region->len,
		.wqe_offset = UROCE_SRQ_WQE_OFFSET,
		.entries = srq->ring.entries,
		.stride = srq->ring.stride,
		.max_sge = srq->ring.max_sge,
	};

	return ib_copy_to_udata(udata, &resp, sizeof(resp));
}

/*
 * Numbers of XRC SRQs go round, so that a late request for a destroyed one does
 * not meet a new one. May sleep.
 */
static int srq_get_number(struct uroce_dev *dev, struct uroce_srq *srq)
{
	struct uroce_srq_entry *entry;

	if (srq->ib.srq_type != IB_SRQT_XRC)
		return 0;
	entry = kzalloc(sizeof(*entry), GFP_KERNEL_ACCOUNT);
	if (!entry)
		return -ENOMEM;
	if (xa_alloc_cyclic(&dev->srqs, &srq->number, NULL,
			    XA_LIMIT(1, UROCE_BTH_24_MASK), &dev->next_srq,
			    GFP_KERNEL_ACCOUNT) < 0) {
		kfree(entry);
		return -ENOMEM;
	}
	entry->srq = srq;
	refcount_set(&entry->ref, 1);
	init_completion(&entry->idle);
	srq->entry = entry;
	srq->cq = to_ucq(srq->ib.ext.cq);
	srq->ib.ext.xrc.srq_num = srq->number;
	return 0;
}

/* Requests do not find it any more, and those that have are done. May sleep. */
static void srq_put_number(struct uroce_dev *dev, struct uroce_srq *srq)
{
	if (!srq->number)
		return;
	xa_erase(&dev->srqs, srq->number);
	uroce_srq_put(srq);
	wait_for_completion(&srq->entry->idle);
	kfree_rcu(srq->entry, rcu);
}

struct uroce_srq *uroce_srq_get(struct uroce_dev *dev, struct ib_xrcd *xrcd,
				u32 number)
{
	struct uroce_srq_entry *entry;
	struct uroce_srq *srq = NULL;

	rcu_read_lock();
	entry = xa_load(&dev->srqs, number);
	if (entry && refcount_inc_not_zero(&entry->ref))
		srq = entry->srq;
	rcu_read_unlock();
	if (!srq || srq->ib.ext.xrc.xrcd == xrcd)
		return srq;
	uroce_srq_put(srq);
	return NULL;
}

void uroce_srq_put(struct uroce_srq *srq)
{
	/* the last look at the SRQ, which goes when the last one has put it */
	struct uroce_srq_entry *entry = srq->entry;

	if (refcount_dec_and_test(&entry->ref))
		complete(&entry->idle);
}

int uroce_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		     struct ib_udata *udata)
{
	struct uroce_dev *dev = to_udev(ibsrq->device);
	struct uroce_srq *srq = to_usrq(ibsrq);
	int err;

	err = srq_check(init);
	if (err)
		return err;
	/* a target's completions would outlive it in a kernel consumer's CQ */
	if (!udata && init->srq_type == IB_SRQT_XRC)
		return -EOPNOTSUPP;
	if (udata && udata->outlen < sizeof(struct uroce_create_srq_resp))
		return -EINVAL;
	err = uroce_object_get(dev, UROCE_OBJ_SRQ, udata);
	if (err)
		return err;

	srq->uctx = rdma_udata_to_drv_context(udata, struct uroce_ucontext, ib);
	spin_lock_init(&srq->lock);
	spin_lock_init(&srq->post_lock);
	mutex_init(&srq->resize_mutex);
	err = srq_alloc_ring(srq, &init->attr);
	if (err)
		goto err_count;
	err = srq_get_number(dev, srq);
	if (err)
		goto err_region;
	if (srq->uctx) {
		err = srq_respond(srq, udata);
		if (err)
			goto err_number;
	}
	/* last: from here on requests find it */
	if (srq->number)
		xa_store(&dev->srqs, srq->number, srq->entry, GFP_KERNEL_ACCOUNT);
	return 0;

err_number:
	srq_put_number(dev, srq);
err_region:
	uroce_region_destroy(srq->region);
err_count:
	mutex_destroy(&srq->resize_mutex);
	uroce_object_put(dev, UROCE_OBJ_SRQ);
	return err;
}

int uroce_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct uroce_dev *dev = to_udev(ibsrq->device);
	struct uroce_srq *srq = to_usrq(ibsrq);

	srq_put_number(dev, srq);
	if (srq->next)
		uroce_region_destroy(srq->next);
	uroce_region_destroy(srq->region);
	mutex_destroy(&srq->resize_mutex);
	uroce_object_put(dev, UROCE_OBJ_SRQ);
	return 0;
}

int uroce_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	struct uroce_dev *dev = to_udev(ibxrcd->device);
	struct uroce_xrcd *xrcd = to_uxrcd(ibxrcd);
	int err;

	err = uroce_object_get(dev, UROCE_OBJ_XRCD, udata);
	if (err)
		return err;
	err = uroce_tenant_init(&xrcd->tenant);
	if (err)
		goto err_count;
	err = uroce_tenant_allow_faults(&xrcd->tenant);
	if (err)
		goto err_tenant;
	return 0;

err_tenant:
	uroce_tenant_exit(&xrcd->tenant);
err_count:
	uroce_object_put(dev, UROCE_OBJ_XRCD);
	return err;
}

int uroce_dealloc_xrcd(struct ib_xrcd *xrcd, struct ib_udata *udata)
{
	uroce_tenant_exit(&to_uxrcd(xrcd)->tenant);
	uroce_object_put(to_udev(xrcd->device), UROCE_OBJ_XRCD);
	return 0;
}

static u32 srq_pending(const struct uroce_srq *srq)
{
	lockdep_assert_held(&srq->lock);
	return uroce_ring_pending(&srq->ring, &srq->ctrl->tail, srq->head);
}

/* Fewer than the limit are left? Then the limit has done its work: disarmed. */
static bool srq_take_limit(struct uroce_srq *srq, u32 left)
{
	lockdep_assert_held(&srq->lock);

	if (!srq->limit || left >= srq->limit)
		return false;
	WRITE_ONCE(srq->limit, 0);
	return true;
}

bool uroce_srq_set_limit(struct uroce_srq *srq, u32 limit)
{
	WRITE_ONCE(srq->limit, limit);
	/* what is below the limit already is told at once, not with the next */
	return srq_take_limit(srq, srq_pending(srq));
}

void uroce_srq_limit_event(struct uroce_srq *srq)
{
	struct ib_event event = {
		.device = srq->ib.device,
		.element.srq = &srq->ib,
		.event = IB_EVENT_SRQ_LIMIT_REACHED,
	};

	if (srq->ib.event_handler)
		srq->ib.event_handler(&event, srq->ib.srq_context);
}

int uroce_srq_take(struct uroce_srq *srq, struct uroce_recv_wqe *wqe,
		   struct uroce_sge *sge)
{
	bool fire;
	int err;
	u32 n;

	spin_lock(&srq->lock);
	n = srq_pending(srq);
	if (!n) {
		spin_unlock(&srq->lock);
		return -EAGAIN;
	}
	err = uroce_ring_copy_recv(&srq->ring, srq->head, wqe, sge);
	/* a kernel consumer may fill the slot again; pairs with kpost */
	smp_store_release(&srq->head, srq->head + 1);
	/* and a process; ordering pair 1 of the ABI */
	smp_store_release(&srq->ctrl->head, srq->head);
	fire = srq_take_limit(srq, n - 1);
	spin_unlock(&srq->lock);

	if (fire)
		uroce_srq_limit_event(srq);
	return err;
}

/*
 * The limit. The size of a process' SRQ has a method of its own, which can
 * answer where the new ring is; kernel consumers have none: nobody calls it.
 */
int uroce_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		     enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct uroce_srq *srq = to_usrq(ibsrq);
	bool fire = false;
	int err = 0;

	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EINVAL;
	if (mask & IB_SRQ_MAX_WR)
		return -EOPNOTSUPP;
	if (!(mask & IB_SRQ_LIMIT))
		return 0;

	spin_lock_bh(&srq->lock);
	if (attr->srq_limit > srq->ring.entries)
		err = -EINVAL;
	else
		fire = uroce_srq_set_limit(srq, attr->srq_limit);
	spin_unlock_bh(&srq->lock);

	if (fire)
		uroce_srq_limit_event(srq);
	return err;
}

int uroce_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct uroce_srq *srq = to_usrq(ibsrq);

	attr->max_wr = READ_ONCE(srq->ring.entries);
	attr->max_sge = srq->ring.max_sge;
	attr->srq_limit = READ_ONCE(srq->limit);
	return 0;
}
