// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Another size for an SRQ in use. The process carries its WQEs over, since it
 * can keep itself from posting meanwhile (uapi/uroce-abi.h); the kernel, which
 * goes on taking them from the old ring, goes over to the new one between two.
 */
#include <linux/log2.h>
#include "device.h"
#include "srq.h"

/* A region of the new size, in the place of one that was never used. */
static int resize_prepare(struct uroce_srq *srq, u32 max_wr,
			  struct uroce_resize_srq_resp *resp)
{
	struct uroce_region *region;
	u32 entries;

	lockdep_assert_held(&srq->resize_mutex);

	if (!max_wr || max_wr > UROCE_MAX_SRQ_WR)
		return -EINVAL;
	entries = roundup_pow_of_two(max_wr);
	region = uroce_srq_region_create(srq->uctx, entries, srq->ring.stride);
	if (IS_ERR(region))
		return PTR_ERR(region);
	if (srq->next)
		uroce_region_destroy(srq->next);
	srq->next = region;
	srq->next_entries = entries;

	resp->mmap_offset = uroce_region_offset(region);
	resp->mmap_len = region->len;
	resp->wqe_offset = UROCE_SRQ_WQE_OFFSET;
	resp->entries = entries;
	return 0;
}

/* Go over to @region; -EINVAL if the WQEs, or the limit, do not fit there. */
static int resize_switch(struct uroce_srq *srq, struct uroce_region *region,
			 u32 entries, u32 limit)
{
	struct uroce_srq_ctrl *ctrl = region->mem;

	lockdep_assert_held(&srq->lock);

	/* the tail is input: what it says is no more than what is taken next */
	if (READ_ONCE(ctrl->tail) - srq->head > entries || limit > entries)
		return -EINVAL;

	WRITE_ONCE(ctrl->head, srq->head);
	uroce_srq_set_region(srq, region, entries);
	return 0;
}

static int resize_commit(struct uroce_srq *srq,
			 const struct uroce_resize_srq_req *req)
{
	struct uroce_region *region = srq->next, *old;
	bool set_limit = req->flags & UROCE_RESIZE_SRQ_LIMIT;
	bool fire = false;
	int err;

	lockdep_assert_held(&srq->resize_mutex);

	/* another thread of the process may have prepared meanwhile */
	if (!region || uroce_region_offset(region) != req->mmap_offset)
		return -EBUSY;
	srq->next = NULL;

	spin_lock_bh(&srq->lock);
	old = srq->region;
	err = resize_switch(srq, region, srq->next_entries,
			    set_limit ? req->srq_limit : srq->limit);
	if (!err && set_limit)
		fire = uroce_srq_set_limit(srq, req->srq_limit);
	spin_unlock_bh(&srq->lock);

	if (fire)
		uroce_srq_limit_event(srq);
	uroce_region_destroy(err ? region : old);
	return err;
}

int uroce_resize_srq(struct uroce_srq *srq,
		     const struct uroce_resize_srq_req *req,
		     struct uroce_resize_srq_resp *resp)
{
	int err;

	if (req->flags & ~UROCE_RESIZE_SRQ_LIMIT)
		return -EINVAL;

	mutex_lock(&srq->resize_mutex);
	switch (req->step) {
	case UROCE_RESIZE_SRQ_PREPARE:
		err = resize_prepare(srq, req->max_wr, resp);
		break;
	case UROCE_RESIZE_SRQ_COMMIT:
		err = resize_commit(srq, req);
		break;
	default:
		err = -EOPNOTSUPP;
		break;
	}
	mutex_unlock(&srq->resize_mutex);
	return err;
}
