// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What changes a completion queue that is in use: its size, and how long its
 * events wait.
 */
#include "objects.hpp"

#include <cstring>

namespace uroce {

namespace {

/* A region of the new size, mapped and filled, that is not the CQ's yet. */
struct NextRing {
	Mapping map;
	struct uroce_cq_ctrl *ctrl;
	struct uroce_cqe *cqes;
	uint32_t entries;
	uint64_t mmap_offset;
};

int resize_command(struct ibv_cq *cq, int cqe, const struct uroce_resize_cq_req &req,
		   struct uroce_resize_cq_resp *resp)
{
	DrvCmd<struct ib_uverbs_resize_cq, struct uroce_resize_cq_req> cmd = {};
	DrvResp<struct ib_uverbs_resize_cq_resp, struct uroce_resize_cq_resp> out = {};
	int err;

	cmd.drv = req;
	err = ibv_cmd_resize_cq(cq, cqe, cmd_core<struct ibv_resize_cq>(cmd), sizeof(cmd),
				cmd_core<struct ib_uverbs_resize_cq_resp>(out), sizeof(out));
	*resp = out.drv;
	return err;
}

/* Everything that takes time and may fail for want of memory; 0 or errno. */
int prepare(struct ibv_cq *cq, int cqe, NextRing *next)
{
	struct uroce_resize_cq_req req = {};
	struct uroce_resize_cq_resp resp;
	int err;

	req.step = UROCE_RESIZE_CQ_PREPARE;
	err = resize_command(cq, cqe, req, &resp);
	if (err)
		return err;
	err = next->map.map(cq->context->cmd_fd, resp.mmap_offset, resp.mmap_len);
	if (err)
		return err;

	next->ctrl = next->map.at<struct uroce_cq_ctrl>(0);
	next->cqes = next->map.at<struct uroce_cqe>(resp.cqe_offset);
	next->entries = resp.cqe_entries;
	next->mmap_offset = resp.mmap_offset;
	return 0;
}

/*
 * The CQEs that were not polled, and that the kernel wrote before it went over
 * to the new ring, go to where they would be had they been written there.
 */
void take_cqes_along(const Cq *cq, const NextRing &next)
{
	const auto shift = static_cast<uint32_t>(__builtin_ctz(next.entries));
	const uint32_t end = load_relaxed(&next.ctrl->first);

	for (uint32_t i = cq->ci; i != end; i++) {
		struct uroce_cqe *to = &next.cqes[i & (next.entries - 1)];

		memcpy(to, &cq->cqes[i & (cq->entries - 1)], sizeof(*to));
		to->owner = (i >> shift) + 1;
	}
}

/*
 * Lets kernel and pollers go over to the new ring and leaves the old one in
 * next.map; or errno. The caller holds both locks: neither ci nor arm changes
 * between here and there.
 */
int commit(Cq *cq, int cqe, NextRing &next)
{
	Mapping old = cq->map;
	struct uroce_resize_cq_req req = {};
	struct uroce_resize_cq_resp resp;
	int err;

	next.ctrl->ci = cq->ci;
	next.ctrl->arm = cq->ctrl->arm;
	req.mmap_offset = next.mmap_offset;
	req.step = UROCE_RESIZE_CQ_COMMIT;
	err = resize_command(&cq->vcq.cq, cqe, req, &resp);
	if (err)
		return err;

	take_cqes_along(cq, next);
	cq_set_ring(cq, next.ctrl, next.cqes, next.entries);
	cq->map = next.map;
	next.map = old;
	return 0;
}

} /* namespace */

int resize_cq(struct ibv_cq *ibcq, int cqe)
{
	Cq *cq = to_cq(ibcq);
	NextRing next = {};
	int err;

	pthread_mutex_lock(&cq->resizing);
	err = prepare(ibcq, cqe, &next);
	if (!err) {
		Guard guard(cq->lock);
		Guard arm_guard(cq->arm_lock);

		/* a single-threaded CQ between start_poll and end_poll */
		err = cq->polling ? EBUSY : commit(cq, cqe, next);
	}
	pthread_mutex_unlock(&cq->resizing);
	next.map.unmap(); /* what is not in use any more, or never was */
	return err;
}

int modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	ExCmd<struct ib_uverbs_ex_modify_cq> cmd = {};

	return ibv_cmd_modify_cq(cq, attr, cmd_core<struct ibv_modify_cq>(cmd), sizeof(cmd));
}

} /* namespace uroce */
