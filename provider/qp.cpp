// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs: creation, state changes, destruction. Posting is in wr.cpp.
 *
 * After the kernel has reset or destroyed a QP it adds no CQE for it any more,
 * but some may still wait in its CQs. They are taken out under each CQ's lock;
 * from then on no poller looks the QP up. See forget_cqes().
 */
#include "objects.hpp"

namespace uroce {

namespace {

Context *context_of(const Qp *qp)
{
	return to_context(qp->vqp.qp.context);
}

/* XRC target: see struct Qp */
bool is_target(const Qp *qp)
{
	return qp->vqp.qp.qp_type == IBV_QPT_XRC_RECV;
}

void forget_cqes(Qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;

	if (ibqp->send_cq)
		cq_forget_qp(to_cq(ibqp->send_cq), ibqp->qp_num);
	if (ibqp->recv_cq && ibqp->recv_cq != ibqp->send_cq)
		cq_forget_qp(to_cq(ibqp->recv_cq), ibqp->qp_num);
}

void set_up_queues(Qp *qp, const struct uroce_create_qp_resp *resp)
{
	qp->ctrl = qp->map.at<struct uroce_qp_ctrl>(0);
	qp->db_slot = resp->db_slot;
	qp->max_send_sge = resp->max_send_sge;
	qp->max_recv_sge = resp->max_recv_sge;
	qp->max_inline = resp->max_inline;

	qp->sq.slots = qp->map.at<unsigned char>(resp->sq_offset);
	qp->sq.shared_tail = &qp->ctrl->sq_tail;
	qp->sq.entries = resp->sq_entries;
	qp->sq.stride = resp->sq_stride;

	qp->rq.slots = qp->map.at<unsigned char>(resp->rq_offset);
	qp->rq.shared_tail = &qp->ctrl->rq_tail;
	qp->rq.entries = resp->rq_entries;
	qp->rq.stride = resp->rq_stride;
}

/* The kernel's half of the QP, its mapping, its place in the table; 0 or errno. */
int connect_qp(Qp *qp, Context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_context *context = &ctx->vctx.context;
	ExCmd<struct ib_uverbs_ex_create_qp> cmd = {};
	DrvResp<struct ib_uverbs_ex_create_qp_resp, struct uroce_create_qp_resp> resp = {};
	int err;

	err = ibv_cmd_create_qp_ex2(context, &qp->vqp, attr, cmd_core<struct ibv_create_qp_ex>(cmd),
				    sizeof(cmd), cmd_core<struct ib_uverbs_ex_create_qp_resp>(resp),
				    sizeof(resp));
	if (err || is_target(qp))
		return err;

	err = qp->map.map(context->cmd_fd, resp.drv.mmap_offset, resp.drv.mmap_len);
	if (err)
		goto destroy;
	set_up_queues(qp, &resp.drv);

	err = ctx->qps.insert(qp->vqp.qp.qp_num, qp);
	if (err)
		goto unmap;
	return 0;

unmap:
	qp->map.unmap();
destroy:
	ibv_cmd_destroy_qp(&qp->vqp.qp);
	return err;
}

/* pd may be NULL. */
Qp *alloc_qp(struct ibv_pd *pd)
{
	Qp *qp = alloc_in<Qp>(pd, RESOURCE_QP);

	if (qp) {
		qp->sq_lock.init(needs_lock(pd));
		qp->rq_lock.init(needs_lock(pd));
	}
	return qp;
}

void free_qp(Qp *qp)
{
	qp->map.unmap();
	qp->rq_lock.destroy();
	qp->sq_lock.destroy();
	free_in(qp);
}

} /* namespace */

struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t passed_on = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
				   IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	const uint32_t create_flags =
		attr->qp_type == IBV_QPT_UD ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0;
	struct ibv_pd *pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : nullptr;
	struct ibv_qp_init_attr_ex cmd_attr = *attr;
	bool extended = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	Qp *qp;
	int err;

	if ((attr->comp_mask & ~passed_on) ||
	    (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
	     attr->create_flags & ~create_flags) ||
	    (extended && (attr->send_ops_flags & ~supported_send_ops(attr->qp_type)))) {
		errno = EOPNOTSUPP;
		return nullptr;
	}

	/* the CQs that the type does not have */
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		cmd_attr.send_cq = nullptr;
	if (attr->qp_type == IBV_QPT_XRC_RECV || attr->qp_type == IBV_QPT_XRC_SEND)
		cmd_attr.recv_cq = nullptr;

	qp = alloc_qp(pd);
	if (!qp)
		return nullptr;

	qp->base_flags = attr->sq_sig_all ? UROCE_SEND_SIGNALED : 0;
	err = connect_qp(qp, to_context(context), &cmd_attr);
	if (err) {
		free_qp(qp);
		errno = err;
		return nullptr;
	}
	attr->cap = cmd_attr.cap; /* what the kernel granted */

	if (extended) {
		qp->vqp.comp_mask |= VERBS_QP_EX;
		set_wr_builders(&qp->vqp.qp_ex);
	}
	return &qp->vqp.qp;
}

struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex attr_ex = {};
	struct ibv_qp *qp;

	attr_ex.qp_context = attr->qp_context;
	attr_ex.send_cq = attr->send_cq;
	attr_ex.recv_cq = attr->recv_cq;
	attr_ex.srq = attr->srq;
	attr_ex.cap = attr->cap;
	attr_ex.qp_type = attr->qp_type;
	attr_ex.sq_sig_all = attr->sq_sig_all;
	attr_ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr_ex.pd = pd;

	qp = create_qp_ex(pd->context, &attr_ex);
	if (qp)
		attr->cap = attr_ex.cap;
	return qp;
}

/* A handle of this process's on an XRC target QP that another one has made. */
struct ibv_qp *open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	Cmd<struct ib_uverbs_open_qp> cmd = {};
	struct ib_uverbs_create_qp_resp resp = {};
	Qp *qp = alloc_qp(nullptr);
	int err;

	if (!qp)
		return nullptr;

	err = ibv_cmd_open_qp(context, &qp->vqp, sizeof(qp->vqp), attr,
			      cmd_core<struct ibv_open_qp>(cmd), sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free_qp(qp);
		errno = err;
		return nullptr;
	}
	return &qp->vqp.qp;
}

int query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask,
	     struct ibv_qp_init_attr *init_attr)
{
	Cmd<struct ib_uverbs_query_qp> cmd = {};

	return ibv_cmd_query_qp(ibqp, attr, attr_mask, init_attr,
				cmd_core<struct ibv_query_qp>(cmd), sizeof(cmd));
}

int modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask)
{
	Cmd<struct ib_uverbs_modify_qp> cmd = {};
	Qp *qp = to_qp(ibqp);
	int err;

	err = ibv_cmd_modify_qp(ibqp, attr, attr_mask, cmd_core<struct ibv_modify_qp>(cmd),
				sizeof(cmd));
	if (err || !(attr_mask & IBV_QP_STATE) || is_target(qp))
		return err;
	if (attr->qp_state != IBV_QPS_RESET) {
		store_release(&qp->state, attr->qp_state);
		return 0;
	}

	/* First the CQEs: a poller that meets one moves the heads. */
	forget_cqes(qp);
	{
		Guard guard(qp->sq_lock);

		/* no more posts from here on; who posts looks under his lock */
		store_release(&qp->state, IBV_QPS_RESET);
		qp->sq.reset();
	}
	{
		Guard guard(qp->rq_lock);

		qp->rq.reset();
	}
	return 0;
}

int destroy_qp(struct ibv_qp *ibqp)
{
	Qp *qp = to_qp(ibqp);
	int err = ibv_cmd_destroy_qp(ibqp);

	if (err)
		return err;
	if (!is_target(qp)) {
		forget_cqes(qp);
		context_of(qp)->qps.erase(ibqp->qp_num);
	}
	free_qp(qp);
	return 0;
}

int attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return ibv_cmd_attach_mcast(qp, gid, lid);
}

int detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return ibv_cmd_detach_mcast(qp, gid, lid);
}

} /* namespace uroce */
