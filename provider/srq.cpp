// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shared receive queues and XRC domains. Posting is in recv.cpp. */
#include "objects.hpp"

namespace uroce {

namespace {

void set_up_ring(Srq *srq, const struct uroce_create_srq_resp *resp)
{
	srq->ctrl = srq->map.at<struct uroce_srq_ctrl>(0);
	srq->max_sge = resp->max_sge;
	srq->ring.slots = srq->map.at<unsigned char>(resp->wqe_offset);
	srq->ring.shared_tail = &srq->ctrl->tail;
	srq->ring.entries = resp->entries;
	srq->ring.stride = resp->stride;
}

/* The kernel's half of the SRQ and its mapping; 0 or errno. */
int connect_srq(Srq *srq, struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	Cmd<struct ib_uverbs_create_xsrq> cmd = {};
	DrvResp<struct ib_uverbs_create_srq_resp, struct uroce_create_srq_resp> resp = {};
	int err;

	err = ibv_cmd_create_srq_ex(context, &srq->vsrq, attr,
				    cmd_core<struct ibv_create_xsrq>(cmd), sizeof(cmd),
				    cmd_core<struct ib_uverbs_create_srq_resp>(resp), sizeof(resp));
	if (err)
		return err;

	err = srq->map.map(context->cmd_fd, resp.drv.mmap_offset, resp.drv.mmap_len);
	if (err) {
		ibv_cmd_destroy_srq(&srq->vsrq.srq);
		return err;
	}
	set_up_ring(srq, &resp.drv);
	srq->vsrq.srq.srq_context = attr->srq_context;
	return 0;
}

/* Everything about the arguments that libibverbs and the kernel do not check; 0 or errno. */
int check_init_attr(const struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t of_xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	enum ibv_srq_type type =
		attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type : IBV_SRQT_BASIC;

	if (attr->comp_mask & ~(of_xrc | IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD) ||
	    (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC))
		return EOPNOTSUPP;
	if (type == IBV_SRQT_XRC && (attr->comp_mask & of_xrc) != of_xrc)
		return EINVAL;
	return attr->comp_mask & IBV_SRQ_INIT_ATTR_PD ? 0 : EINVAL;
}

} /* namespace */

struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	Srq *srq;
	int err = check_init_attr(attr);

	if (err) {
		errno = err;
		return nullptr;
	}
	srq = alloc_in<Srq>(attr->pd, RESOURCE_SRQ);
	if (!srq)
		return nullptr;

	srq->lock.init(needs_lock(attr->pd));
	pthread_mutex_init(&srq->resizing, nullptr);
	err = connect_srq(srq, context, attr);
	if (err) {
		pthread_mutex_destroy(&srq->resizing);
		srq->lock.destroy();
		free_in(srq);
		errno = err;
		return nullptr;
	}
	return &srq->vsrq.srq;
}

struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex attr_ex = {};
	struct ibv_srq *srq;

	attr_ex.srq_context = attr->srq_context;
	attr_ex.attr = attr->attr;
	attr_ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	attr_ex.srq_type = IBV_SRQT_BASIC;
	attr_ex.pd = pd;

	srq = create_srq_ex(pd->context, &attr_ex);
	if (srq)
		attr->attr = attr_ex.attr; /* what the kernel granted */
	return srq;
}

int modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask)
{
	Cmd<struct ib_uverbs_modify_srq> cmd = {};

	if (attr_mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	if (attr_mask & IBV_SRQ_MAX_WR)
		return resize_srq(to_srq(srq), *attr, attr_mask & IBV_SRQ_LIMIT);
	return ibv_cmd_modify_srq(srq, attr, attr_mask, cmd_core<struct ibv_modify_srq>(cmd),
				  sizeof(cmd));
}

int query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	Cmd<struct ib_uverbs_query_srq> cmd = {};

	return ibv_cmd_query_srq(srq, attr, cmd_core<struct ibv_query_srq>(cmd), sizeof(cmd));
}

int destroy_srq(struct ibv_srq *ibsrq)
{
	Srq *srq = to_srq(ibsrq);
	int err = ibv_cmd_destroy_srq(ibsrq);

	if (err)
		return err;
	srq->map.unmap();
	pthread_mutex_destroy(&srq->resizing);
	srq->lock.destroy();
	free_in(srq);
	return 0;
}

int get_srq_num(struct ibv_srq *ibsrq, uint32_t *srq_num)
{
	Srq *srq = to_srq(ibsrq);

	if (srq->vsrq.srq_type != IBV_SRQT_XRC)
		return EOPNOTSUPP; /* others have no number */
	*srq_num = srq->vsrq.srq_num;
	return 0;
}

struct ibv_xrcd *open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	Cmd<struct ib_uverbs_open_xrcd> cmd = {};
	struct ib_uverbs_open_xrcd_resp resp = {};
	auto *xrcd = alloc_zeroed<struct verbs_xrcd>();
	int err;

	if (!xrcd)
		return nullptr;

	err = ibv_cmd_open_xrcd(context, xrcd, sizeof(*xrcd), attr,
				cmd_core<struct ibv_open_xrcd>(cmd), sizeof(cmd), &resp,
				sizeof(resp));
	if (err) {
		free(xrcd);
		errno = err;
		return nullptr;
	}
	return &xrcd->xrcd;
}

int close_xrcd(struct ibv_xrcd *ibxrcd)
{
	auto *xrcd = reinterpret_cast<struct verbs_xrcd *>(ibxrcd);
	int err = ibv_cmd_close_xrcd(xrcd);

	if (!err)
		free(xrcd);
	return err;
}

} /* namespace uroce */
