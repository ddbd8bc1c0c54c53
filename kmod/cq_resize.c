// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Another size for a CQ in use. The kernel goes over to a new ring and looks
 * back at nothing; the process, which alone knows what it has polled, carries
 * the CQEs over that it has not (uapi/uroce-abi.h).
 */
#include <linux/log2.h>
#include "cq.h"
#include "device.h"
#include "ucontext.h"

/* A region of the new size, in the place of one that was never used. */
static int resize_prepare(struct uroce_cq *cq, u32 entries,
			  struct ib_udata *udata)
{
	struct uroce_ucontext *uctx;
	struct uroce_resize_cq_resp resp = {};
	struct uroce_region *region;
	int err;

	lockdep_assert_held(&cq->resize_mutex);

	uctx = rdma_udata_to_drv_context(udata, struct uroce_ucontext, ib);
	region = uroce_cq_region_create(&uctx->ib, entries);
	if (IS_ERR(region))
		return PTR_ERR(region);

	resp.mmap_offset = uroce_region_offset(region);
	resp.mmap_len = region->len;
	resp.cqe_offset = UROCE_CQE_OFFSET;
	resp.cqe_entries = entries;
	err = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (err) {
		uroce_region_destroy(region);
		return err;
	}
	if (cq->next)
		uroce_region_destroy(cq->next);
	cq->next = region;
	cq->next_entries = entries;
	return 0;
}

/* Go over to @region; -EINVAL if what waits in the CQ does not fit there. */
static int resize_switch(struct uroce_cq *cq, struct uroce_region *region,
			 u32 entries)
{
	struct uroce_cq_ctrl *ctrl = region->mem;
	u32 ci;

	lockdep_assert_held(&cq->lock);

	/* input of the process, with which it cannot have polled the future */
	ci = READ_ONCE(ctrl->ci);
	if (cq->overflow || cq->pi - ci > cq->entries || cq->pi - ci > entries)
		return -EINVAL;

	WRITE_ONCE(ctrl->fired, cq->fired);
	WRITE_ONCE(ctrl->first, cq->pi);
	cq->ci = ci;
	uroce_cq_set_region(cq, region, entries);
	return 0;
}

static int resize_commit(struct uroce_cq *cq, u64 mmap_offset)
{
	struct uroce_region *region = cq->next, *old;
	unsigned long flags;
	int err;

	lockdep_assert_held(&cq->resize_mutex);

	/* another thread of the process may have prepared meanwhile */
	if (!region || uroce_region_offset(region) != mmap_offset)
		return -EBUSY;
	cq->next = NULL;

	spin_lock_irqsave(&cq->lock, flags);
	old = cq->region;
	err = resize_switch(cq, region, cq->next_entries);
	spin_unlock_irqrestore(&cq->lock, flags);

	uroce_region_destroy(err ? region : old);
	return err;
}

int uroce_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	struct uroce_cq *cq = to_ucq(ibcq);
	struct uroce_resize_cq_req req;
	int err;

	if (!udata || !cq->user)
		return -EOPNOTSUPP;
	if (udata->inlen < sizeof(req) ||
	    udata->outlen < sizeof(struct uroce_resize_cq_resp))
		return -EINVAL;
	err = ib_copy_from_udata(&req, udata, sizeof(req));
	if (err)
		return err;
	if (cqe <= 0 || cqe > UROCE_MAX_CQE)
		return -EINVAL;

	mutex_lock(&cq->resize_mutex);
	switch (req.step) {
	case UROCE_RESIZE_CQ_PREPARE:
		/* not 1: its last owner word would be that of fresh memory */
		err = resize_prepare(cq, max(2UL, roundup_pow_of_two(cqe)),
				     udata);
		break;
	case UROCE_RESIZE_CQ_COMMIT:
		err = resize_commit(cq, req.mmap_offset);
		break;
	default:
		err = -EOPNOTSUPP;
		break;
	}
	mutex_unlock(&cq->resize_mutex);
	return err;
}
