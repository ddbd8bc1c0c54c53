// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues; see cq.h. */
#include <linux/log2.h>
#include <linux/timekeeping.h>
#include "cq.h"
#include "device.h"
#include "ucontext.h"

#define CQE_OFFSET	ALIGN(sizeof(struct uroce_cq_ctrl), sizeof(struct uroce_cqe))

static_assert(sizeof(struct uroce_cqe) == 64);
static_assert(offsetof(struct uroce_cqe, owner) == 60);

int uroce_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    uroce_create_cq_arg *arg)
{
	struct ib_udata *udata = uroce_create_cq_udata(arg);
	struct uroce_dev *dev = to_udev(ibcq->device);
	struct uroce_cq *cq = to_ucq(ibcq);
	struct uroce_create_cq_resp resp = {};
	struct uroce_ucontext *uctx;
	int err;

	if (attr->flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > UROCE_MAX_CQE)
		return -EINVAL;
	if (udata && udata->outlen < sizeof(resp))
		return -EINVAL;

	err = uroce_object_get(dev, UROCE_OBJ_CQ);
	if (err)
		return err;

	uctx = rdma_udata_to_drv_context(udata, struct uroce_ucontext, ib);
	spin_lock_init(&cq->lock);
	cq->user = uctx;
	cq->entries = roundup_pow_of_two(attr->cqe);
	cq->shift = ilog2(cq->entries);
	cq->region = uroce_region_create(uctx ? &uctx->ib : NULL, CQE_OFFSET +
					 (size_t)cq->entries * sizeof(struct uroce_cqe));
	if (IS_ERR(cq->region)) {
		err = PTR_ERR(cq->region);
		goto err_count;
	}
	cq->ctrl = cq->region->mem;
	cq->ring = cq->region->mem + CQE_OFFSET;
	ibcq->cqe = cq->entries;

	if (uctx) {
		resp.mmap_offset = uroce_region_offset(cq->region);
		resp.mmap_len = cq->region->len;
		resp.cqe_offset = CQE_OFFSET;
		resp.cqe_entries = cq->entries;
		err = ib_copy_to_udata(udata, &resp, sizeof(resp));
		if (err)
			goto err_region;
	}
	return 0;

err_region:
	uroce_region_destroy(cq->region);
err_count:
	uroce_object_put(dev, UROCE_OBJ_CQ);
	return err;
}

int uroce_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct uroce_cq *cq = to_ucq(ibcq);

	/* the core has seen to it that no QP uses it any more */
	uroce_region_destroy(cq->region);
	uroce_object_put(to_udev(ibcq->device), UROCE_OBJ_CQ);
	return 0;
}

static bool cq_full(struct uroce_cq *cq)
{
	lockdep_assert_held(&cq->lock);

	if (cq->pi - cq->ci < cq->entries)
		return false;
	if (!cq->user)
		return true;
	/* input of the process: a wrong one costs it CQEs of its own */
	cq->ci = READ_ONCE(cq->ctrl->ci);
	return cq->pi - cq->ci >= cq->entries;
}

/* For kernel consumers the ring is private: keep ib_wc.qp in the spare words. */
static void cqe_set_qp(struct uroce_cqe *cqe, struct ib_qp *qp)
{
	memcpy(cqe->reserved, &qp, sizeof(qp));
}

/* Bit 16 of the last spare word: there is a VLAN id below it. */
#define CQE_HAS_VLAN	BIT(16)

void uroce_cqe_set_vlan(struct uroce_cqe *cqe, u16 id)
{
	cqe->reserved[2] = CQE_HAS_VLAN | id;
}

static struct ib_qp *cqe_get_qp(const struct uroce_cqe *cqe)
{
	struct ib_qp *qp;

	memcpy(&qp, cqe->reserved, sizeof(qp));
	return qp;
}

int uroce_cq_post(struct uroce_cq *cq, const struct uroce_cqe *cqe,
		  struct ib_qp *ibqp, bool solicited)
{
	struct ib_event event = {
		.device = cq->ib.device,
		.element.cq = &cq->ib,
		.event = IB_EVENT_CQ_ERR,
	};
	struct uroce_cqe *slot;
	unsigned long flags;
	bool was_overflow;

	spin_lock_irqsave(&cq->lock, flags);
	if (cq->overflow || cq_full(cq))
		goto overflow;

	slot = &cq->ring[cq->pi & (cq->entries - 1)];
	memcpy(slot, cqe, offsetof(struct uroce_cqe, owner));
	slot->timestamp = ktime_get_raw_ns();
	if (!cq->user)
		cqe_set_qp(slot, ibqp);
	/* ordering pair 3 of the ABI: the rest of the CQE is there first */
	smp_store_release(&slot->owner, (cq->pi >> cq->shift) + 1);
	cq->pi++;
	cq->news = true;
	cq->news_solicited |= solicited || cqe->status;
	spin_unlock_irqrestore(&cq->lock, flags);
	return 0;

overflow:
	was_overflow = cq->overflow;
	cq->overflow = true;
	spin_unlock_irqrestore(&cq->lock, flags);

	uroce_count(to_udev(cq->ib.device), UROCE_CNT_CQ_OVERFLOW);
	if (!was_overflow && cq->ib.event_handler)
		cq->ib.event_handler(&event, cq->ib.cq_context);
	return -ENOSPC;
}

/* Is the consumer waiting for what came since the last look? Disarms. */
static bool cq_take_arm(struct uroce_cq *cq)
{
	u32 arm = 0, kind = cq->armed;

	lockdep_assert_held(&cq->lock);

	if (cq->user) {
		arm = READ_ONCE(cq->ctrl->arm);
		kind = arm == cq->fired ? 0 : arm & UROCE_ARM_KIND_MASK;
	}
	if (!kind || (kind == UROCE_ARM_SOLICITED && !cq->news_solicited))
		return false;

	cq->armed = 0;
	if (cq->user) {
		cq->fired = arm;
		WRITE_ONCE(cq->ctrl->fired, arm);
	}
	return true;
}

void uroce_cq_notify(struct uroce_cq *cq)
{
	unsigned long flags;
	bool fire;

	spin_lock_irqsave(&cq->lock, flags);
	/* ordering pair 4 of the ABI: CQEs, of all posters, before arm */
	smp_mb();
	fire = cq->news && cq_take_arm(cq);
	/*
	 * A solicited-only arm stays; news that did not fire is forgotten, as
	 * the consumer polls after arming.
	 */
	cq->news = false;
	cq->news_solicited = false;
	spin_unlock_irqrestore(&cq->lock, flags);

	if (fire && cq->ib.comp_handler)
		cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
}

void uroce_cq_forget(struct uroce_cq *cq, const struct ib_qp *ibqp)
{
	u32 mask = cq->entries - 1, from, to;
	unsigned long flags;

	if (cq->user)
		return;

	spin_lock_irqsave(&cq->lock, flags);
	for (from = to = cq->ci; from != cq->pi; from++) {
		if (cqe_get_qp(&cq->ring[from & mask]) == ibqp)
			continue;
		cq->ring[to++ & mask] = cq->ring[from & mask];
	}
	cq->pi = to;
	spin_unlock_irqrestore(&cq->lock, flags);
}

void uroce_cq_flush_handler(struct uroce_cq *cq)
{
	enum ib_poll_context ctx = cq->ib.poll_ctx;

	if (!cq->user &&
	    (ctx == IB_POLL_WORKQUEUE || ctx == IB_POLL_UNBOUND_WORKQUEUE))
		flush_work(&cq->ib.work);
}

static void cqe_to_wc(const struct uroce_cqe *cqe, struct ib_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = cqe->wr_id;
	wc->status = cqe->status;
	wc->opcode = cqe->opcode;
	wc->vendor_err = cqe->vendor_err;
	wc->byte_len = cqe->byte_len;
	wc->qp = cqe_get_qp(cqe);
	wc->src_qp = cqe->src_qp;
	wc->pkey_index = cqe->pkey_index;
	wc->sl = cqe->sl;
	wc->port_num = 1;
	if (cqe->wc_flags & UROCE_WC_GRH)
		wc->wc_flags |= IB_WC_GRH;
	if (cqe->reserved[2] & CQE_HAS_VLAN) {
		wc->wc_flags |= IB_WC_WITH_VLAN;
		wc->vlan_id = (u16)cqe->reserved[2];
	}
	if (cqe->wc_flags & UROCE_WC_WITH_IMM) {
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = cqe->imm_data;
	}
	if (cqe->wc_flags & UROCE_WC_WITH_INV) {
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = cqe->inv_rkey;
	}
}

/* Kernel consumers; processes poll their mapping. */
int uroce_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct uroce_cq *cq = to_ucq(ibcq);
	unsigned long flags;
	int n = 0;

	if (cq->user)
		return -EINVAL;

	spin_lock_irqsave(&cq->lock, flags);
	while (n < num && cq->ci != cq->pi) {
		cqe_to_wc(&cq->ring[cq->ci & (cq->entries - 1)], &wc[n++]);
		cq->ci++;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

/* Kernel consumers; processes store into their mapping. */
int uroce_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct uroce_cq *cq = to_ucq(ibcq);
	unsigned long irq;
	int missed;

	if (cq->user)
		return -EINVAL;

	spin_lock_irqsave(&cq->lock, irq);
	/* armed for any completion stays so when asked for solicited ones */
	if (cq->armed != UROCE_ARM_NEXT)
		cq->armed = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED ?
				 UROCE_ARM_SOLICITED : UROCE_ARM_NEXT;
	missed = (flags & IB_CQ_REPORT_MISSED_EVENTS) && cq->ci != cq->pi;
	spin_unlock_irqrestore(&cq->lock, irq);
	return missed;
}
