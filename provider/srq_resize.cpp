// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Another size for a shared receive queue in use. */
#include "objects.hpp"

#include <cstring>

#include "method.hpp"

namespace uroce {

namespace {

int resize_method(const Srq *srq, const struct uroce_resize_srq_req &req,
		  struct uroce_resize_srq_resp *resp)
{
	Method<3> method(UVERBS_OBJECT_SRQ, UROCE_METHOD_SRQ_RESIZE);
	struct ib_uverbs_attr *attr;
	int err;

	method.attr(0, UROCE_ATTR_SRQ_RESIZE_HANDLE)->data = srq->vsrq.srq.handle;
	attr = method.attr(1, UROCE_ATTR_SRQ_RESIZE_REQ);
	attr->len = sizeof(req);
	attr->data = reinterpret_cast<uintptr_t>(&req);
	attr = method.attr(2, UROCE_ATTR_SRQ_RESIZE_RESP);
	attr->len = sizeof(*resp);
	attr->data = reinterpret_cast<uintptr_t>(resp);
	err = method.call(srq->vsrq.srq.context->cmd_fd);
	return err == EPROTONOSUPPORT ? EOPNOTSUPP : err; /* an older kernel */
}

/*
 * Lets the kernel and those who post go over to the ring of `resp`, mapped in
 * *map, and leaves the old one there; or errno. The caller holds the lock: no
 * WQE is added, but the kernel takes some. Those are in both rings.
 */
int commit(Srq *srq, struct uroce_resize_srq_req *req, const struct uroce_resize_srq_resp &resp,
	   Mapping *map)
{
	auto *ctrl = map->at<struct uroce_srq_ctrl>(0);
	const uint32_t first = load_acquire(&srq->ctrl->head);
	Mapping old = srq->map;
	struct uroce_resize_srq_resp unused;
	Ring next = srq->ring;
	int err;

	if (next.tail - first > resp.entries)
		return EINVAL;
	next.slots = map->at<unsigned char>(resp.wqe_offset);
	next.entries = resp.entries;
	next.shared_tail = &ctrl->tail;
	for (uint32_t i = first; i != next.tail; i++)
		memcpy(next.slot<void>(i), srq->ring.slot<void>(i), next.stride);
	next.publish(next.tail);

	req->step = UROCE_RESIZE_SRQ_COMMIT;
	req->mmap_offset = resp.mmap_offset;
	err = resize_method(srq, *req, &unused);
	if (err)
		return err;

	srq->ring = next;
	srq->ctrl = ctrl;
	srq->map = *map;
	*map = old;
	return 0;
}

} /* namespace */

int resize_srq(Srq *srq, const struct ibv_srq_attr &attr, bool set_limit)
{
	struct uroce_resize_srq_req req = {};
	struct uroce_resize_srq_resp resp;
	Mapping map = {};
	int err;

	pthread_mutex_lock(&srq->resizing);
	req.step = UROCE_RESIZE_SRQ_PREPARE;
	req.max_wr = attr.max_wr;
	req.srq_limit = attr.srq_limit;
	req.flags = set_limit ? UROCE_RESIZE_SRQ_LIMIT : 0;
	err = resize_method(srq, req, &resp);
	if (!err)
		err = map.map(srq->vsrq.srq.context->cmd_fd, resp.mmap_offset, resp.mmap_len);
	if (!err) {
		Guard guard(srq->lock);

		err = commit(srq, &req, resp, &map);
	}
	pthread_mutex_unlock(&srq->resizing);
	map.unmap(); /* what is not in use any more, or never was */
	return err;
}

} /* namespace uroce */
