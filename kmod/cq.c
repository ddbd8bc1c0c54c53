// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues; see cq.h. */
#include <linux/log2.h>
#include <linux/timekeeping.h>
#include "cq.h"
#include "device.h"
#include "ucontext.h"

static_assert(sizeof(struct uroce_cqe) == 64);
static_assert(offsetof(struct uroce_cqe, owner) == 60);

static enum hrtimer_restart moderation_fn(struct hrtimer *timer);

void uroce_cq_set_region(struct uroce_cq *cq, struct uroce_region *region,
			 u32 entries)
{
	cq->region = region;
	cq->ctrl = region->mem;
	cq->ring = region->mem + UROCE_CQE_OFFSET;
	cq->entries = entries;
	cq->shift = ilog2(entries);
	cq->ib.cqe = entries;
}

/* The user's wishes beyond the core's; old programs have none. */
static int cq_request(struct uroce_cq *cq, struct ib_udata *udata)
{
	struct uroce_create_cq_req req = {};
	int err;

	if (!udata)
		return 0;
	if (udata->outlen < sizeof(struct uroce_create_cq_resp))
		return -EINVAL;
	if (udata->inlen > sizeof(req) &&
	    !ib_is_udata_cleared(udata, sizeof(req), udata->inlen - sizeof(req)))
		return -EOPNOTSUPP;
	err = ib_copy_from_udata(&req, udata, min(sizeof(req), udata->inlen));
	if (err)
		return err;
	if (req.flags & ~UROCE_CQ_WALLCLOCK)
		return -EOPNOTSUPP;
	cq->wallclock = req.flags & UROCE_CQ_WALLCLOCK;
	return 0;
}

static int cq_respond(struct uroce_cq *cq, struct ib_udata *udata)
{
	struct uroce_create_cq_resp resp = {
		.mmap_offset = uroce_region_offset(cq->region),
		.mmap_len = cq->region->len,
		.cqe_offset = UROCE_CQE_OFFSET,
		.cqe_entries = cq->entries,
	};

	return ib_copy_to_udata(udata, &resp, sizeof(resp));
}

int uroce_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    uroce_create_cq_arg *arg)
{
	struct ib_udata *udata = uroce_create_cq_udata(arg);
	struct uroce_dev *dev = to_udev(ibcq->device);
	struct uroce_cq *cq = to_ucq(ibcq);
	struct uroce_ucontext *uctx;
	struct uroce_region *region;
	u32 entries;
	int err;

	/* IGNORE_OVERRUN: a CQE written over is one that nobody finds again */
	if (attr->flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > UROCE_MAX_CQE ||
	    attr->comp_vector >= ibcq->device->num_comp_vectors)
		return -EINVAL;
	err = cq_request(cq, udata);
	if (err)
		return err;
	err = uroce_object_get(dev, UROCE_OBJ_CQ, udata);
	if (err)
		return err;

	uctx = rdma_udata_to_drv_context(udata, struct uroce_ucontext, ib);
	cq->user = uctx;
	mutex_init(&cq->resize_mutex);
	spin_lock_init(&cq->lock);
	hrtimer_setup(&cq->timer, moderation_fn, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_SOFT);

	entries = roundup_pow_of_two(attr->cqe);
	region = uroce_cq_region_create(uctx ? &uctx->ib : NULL, entries);
	if (IS_ERR(region)) {
		err = PTR_ERR(region);
		goto err_count;
	}
	uroce_cq_set_region(cq, region, entries);

	if (uctx) {
		err = cq_respond(cq, udata);
		if (err)
			goto err_region;
	}
	return 0;

err_region:
	uroce_region_destroy(region);
err_count:
	uroce_object_put(dev, UROCE_OBJ_CQ);
	return err;
}

int uroce_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct uroce_cq *cq = to_ucq(ibcq);

	/* the core has seen to it that no QP uses it any more */
	hrtimer_cancel(&cq->timer);
	if (cq->next)
		uroce_region_destroy(cq->next);
	uroce_region_destroy(cq->region);
	mutex_destroy(&cq->resize_mutex);
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

/* The ring of a kernel consumer is private: its CQEs have ib_wc.qp here. */
static void cqe_set_qp(struct uroce_cqe *cqe, struct ib_qp *qp)
{
	cqe->wallclock = (uintptr_t)qp;
}

static struct ib_qp *cqe_get_qp(const struct uroce_cqe *cqe)
{
	return (struct ib_qp *)(uintptr_t)cqe->wallclock;
}

/* Bit 16 of the spare word: there is a VLAN id below it. */
#define CQE_HAS_VLAN	BIT(16)

void uroce_cqe_set_vlan(struct uroce_cqe *cqe, u16 id)
{
	cqe->reserved = CQE_HAS_VLAN | id;
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
	if (!cq->user) {
		cqe_set_qp(slot, ibqp);
	} else {
		slot->wallclock = cq->wallclock ? ktime_get_real_ns() : 0;
		slot->reserved = 0;
	}
	/* ordering pair 3 of the ABI: the rest of the CQE is there first */
	smp_store_release(&slot->owner, (cq->pi >> cq->shift) + 1);
	cq->pi++;
	cq->news++;
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

/* What the consumer waits for: UROCE_ARM_*, or 0 */
static u32 cq_armed(const struct uroce_cq *cq, u32 *arm)
{
	lockdep_assert_held(&cq->lock);

	*arm = 0;
	if (!cq->user)
		return cq->armed;
	*arm = READ_ONCE(cq->ctrl->arm);
	return *arm == cq->fired ? 0 : *arm & UROCE_ARM_KIND_MASK;
}

static void cq_disarm(struct uroce_cq *cq, u32 arm)
{
	lockdep_assert_held(&cq->lock);

	cq->held = 0;
	cq->armed = 0;
	if (cq->user) {
		cq->fired = arm;
		WRITE_ONCE(cq->ctrl->fired, arm);
	}
}

/* Moderation: shall the event for the news wait for more of them? */
static bool cq_hold(struct uroce_cq *cq)
{
	lockdep_assert_held(&cq->lock);

	if (!cq->mod_count && !cq->mod_period)
		return false;
	if (!cq->held && cq->mod_period)
		cq->due = ktime_add_us(ktime_get(), cq->mod_period);
	cq->held += cq->news;
	/* nothing can follow what fills the ring */
	if ((cq->mod_count && cq->held >= cq->mod_count) || cq_full(cq))
		return false;
	if (cq->mod_period && !hrtimer_is_queued(&cq->timer))
		hrtimer_start(&cq->timer, cq->due, HRTIMER_MODE_ABS_SOFT);
	return true;
}

/* Is an event due for what came since the last look? Disarms if so. */
static bool cq_take_event(struct uroce_cq *cq)
{
	u32 arm, kind = cq_armed(cq, &arm);

	if (kind != UROCE_ARM_NEXT)
		cq->held = 0;
	if (!kind || (kind == UROCE_ARM_SOLICITED && !cq->news_solicited))
		return false;
	if (kind == UROCE_ARM_NEXT && cq_hold(cq))
		return false;

	cq_disarm(cq, arm);
	return true;
}

/* The events that were held back are due. Disarms if there are any. */
static bool cq_take_held(struct uroce_cq *cq)
{
	u32 arm;

	if (!cq->held || cq_armed(cq, &arm) != UROCE_ARM_NEXT)
		return false;
	cq_disarm(cq, arm);
	return true;
}

static void cq_event(struct uroce_cq *cq)
{
	if (cq->ib.comp_handler)
		cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
}

void uroce_cq_notify(struct uroce_cq *cq)
{
	unsigned long flags;
	bool fire;

	spin_lock_irqsave(&cq->lock, flags);
	/* ordering pair 4 of the ABI: CQEs, of all posters, before arm */
	smp_mb();
	fire = cq->news && cq_take_event(cq);
	/*
	 * A solicited-only arm stays; news that did not fire is forgotten, as
	 * the consumer polls after arming.
	 */
	cq->news = 0;
	cq->news_solicited = false;
	spin_unlock_irqrestore(&cq->lock, flags);

	if (fire)
		cq_event(cq);
}

static enum hrtimer_restart moderation_fn(struct hrtimer *timer)
{
	struct uroce_cq *cq = container_of(timer, struct uroce_cq, timer);
	unsigned long flags;
	bool fire = false;

	spin_lock_irqsave(&cq->lock, flags);
	/* what it was started for may have had its event, and more have come */
	if (!cq->held || !ktime_after(cq->due, ktime_get()))
		fire = cq_take_held(cq);
	else if (!hrtimer_is_queued(timer))
		hrtimer_start(timer, cq->due, HRTIMER_MODE_ABS_SOFT);
	spin_unlock_irqrestore(&cq->lock, flags);

	if (fire)
		cq_event(cq);
	return HRTIMER_NORESTART;
}

int uroce_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	struct uroce_cq *cq = to_ucq(ibcq);
	unsigned long flags;
	bool fire;

	spin_lock_irqsave(&cq->lock, flags);
	cq->mod_count = count;
	cq->mod_period = period;
	/* begin anew; a timer that runs already finds nothing */
	hrtimer_try_to_cancel(&cq->timer);
	fire = cq_take_held(cq);
	spin_unlock_irqrestore(&cq->lock, flags);

	if (fire)
		cq_event(cq);
	return 0;
}

void uroce_cq_forget(struct uroce_cq *cq, const struct ib_qp *ibqp)
{
	unsigned long flags;
	u32 mask, from, to;

	if (cq->user)
		return;

	spin_lock_irqsave(&cq->lock, flags);
	mask = cq->entries - 1;
	for (from = to = cq->ci; from != cq->pi; from++) {
		if (cqe_get_qp(&cq->ring[from & mask]) == ibqp)
			continue;
		cq->ring[to++ & mask] = cq->ring[from & mask];
	}
	cq->pi = to;
	if (cq->ci == to)
		cq->held = 0;
	spin_unlock_irqrestore(&cq->lock, flags);

	/*
	 * The core frees the CQ's work item before it has us destroy the CQ, so
	 * no event may come by then that nobody has a completion for.
	 */
	hrtimer_cancel(&cq->timer);
	spin_lock_irqsave(&cq->lock, flags);
	if (cq->held && cq->mod_period && !hrtimer_is_queued(&cq->timer))
		hrtimer_start(&cq->timer, cq->due, HRTIMER_MODE_ABS_SOFT);
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
	wc->port_num = 1;
	if (cqe->wc_flags & UROCE_WC_GRH)
		wc->wc_flags |= IB_WC_GRH;
	if (cqe->reserved & CQE_HAS_VLAN) {
		wc->wc_flags |= IB_WC_WITH_VLAN;
		wc->vlan_id = (u16)cqe->reserved;
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
