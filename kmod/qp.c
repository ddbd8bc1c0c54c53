// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs: memory, numbers, references; see qp.h. */
#include <linux/log2.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "qp.h"
#include "rxq.h"
#include "wire.h"

static_assert(sizeof(struct uroce_send_wqe) == 64);
static_assert(sizeof(struct uroce_qp_ctrl) == 192);

/*
 * All QPs of all devices by number, so that a packet finds its QP without
 * knowing the device first. Numbers go round, so that a late packet of a
 * destroyed QP does not meet a new one.
 */
static DEFINE_XARRAY_FLAGS(qp_table, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_BH);
static u32 qpn_next;

void uroce_qpn_init(void)
{
	/* who cannot see the packets shall not know the numbers */
	qpn_next = get_random_u32() & UROCE_BTH_24_MASK;
}

struct uroce_qp *uroce_qp_get(u32 qpn)
{
	struct uroce_qp *qp;

	rcu_read_lock();
	qp = xa_load(&qp_table, qpn);
	if (qp && !uroce_qp_try_get(qp))
		qp = NULL;
	rcu_read_unlock();
	return qp;
}

bool uroce_qp_try_get(struct uroce_qp *qp)
{
	return refcount_inc_not_zero(&qp->ref);
}

void uroce_qp_put(struct uroce_qp *qp)
{
	if (refcount_dec_and_test(&qp->ref))
		complete(&qp->freed);
}

void uroce_qp_event(struct uroce_qp *qp, enum ib_event_type type)
{
	struct ib_event event = {
		.device = &qp->dev->ib,
		.element.qp = qp->ib,
		.event = type,
	};

	if (qp->ib->event_handler)
		qp->ib->event_handler(&event, qp->ib->qp_context);
}

void uroce_qp_error(struct uroce_qp *qp, int event)
{
	/* the owners of both directions may get here at once */
	if (xchg(&qp->state, IB_QPS_ERR) == IB_QPS_ERR)
		return;
	uroce_qp_mark(qp, UROCE_SEND, UROCE_WORK_FLUSH);
	uroce_qp_mark(qp, UROCE_RECV, UROCE_WORK_FLUSH);
	if (event >= 0)
		uroce_qp_event(qp, event);
}

void uroce_qp_send_error(struct uroce_qp *qp)
{
	int state = uroce_qp_state(qp);

	uroce_qp_assert_owned(qp, UROCE_SEND);

	if (uroce_qp_is_reliable(qp)) {
		uroce_qp_error(qp, -1);
		return;
	}
	do {
		/* the RECV owner may have gone to ERR: that stays */
		if (!uroce_state_sends(state))
			return;
	} while (!try_cmpxchg(&qp->state, &state, IB_QPS_SQE));
	uroce_qp_mark(qp, UROCE_SEND, UROCE_WORK_FLUSH);
}

static enum uroce_service service_of(enum ib_qp_type type)
{
	switch (type) {
	case IB_QPT_UC:
		return UROCE_SVC_UC;
	case IB_QPT_UD:
	case IB_QPT_GSI:
		return UROCE_SVC_UD;
	case IB_QPT_XRC_INI:
	case IB_QPT_XRC_TGT:
		return UROCE_SVC_XRC;
	default:
		return UROCE_SVC_RC;
	}
}

/* Queues that the QP does not have, whatever is asked for */
static void drop_queues(struct ib_qp_init_attr *init)
{
	bool target = init->qp_type == IB_QPT_XRC_TGT;

	if (init->srq || target || init->qp_type == IB_QPT_XRC_INI) {
		init->cap.max_recv_wr = 0;
		init->cap.max_recv_sge = 0;
	}
	if (target) {
		init->cap.max_send_wr = 0;
		init->cap.max_send_sge = 0;
		init->cap.max_inline_data = 0;
	}
}

static int qp_check_cap(const struct ib_qp_init_attr *init)
{
	const struct ib_qp_cap *cap = &init->cap;

	if (cap->max_send_wr > UROCE_MAX_QP_WR ||
	    cap->max_recv_wr > UROCE_MAX_QP_WR ||
	    cap->max_send_sge > UROCE_MAX_SGE ||
	    cap->max_recv_sge > UROCE_MAX_SGE ||
	    cap->max_inline_data > UROCE_MAX_INLINE)
		return -EINVAL;
	return 0;
}

static void ring_size(struct uroce_ring *ring, u32 wr, u32 sge)
{
	ring->entries = wr ? roundup_pow_of_two(wr) : 0;
	ring->max_sge = wr ? max(sge, 1U) : 0;
}

/* Sizes of the rings and of the private copies */
static void qp_layout(struct uroce_qp *qp, struct ib_qp_cap *cap,
		      struct uroce_create_qp_resp *resp)
{
	u32 room;

	ring_size(&qp->sq, cap->max_send_wr, cap->max_send_sge);
	ring_size(&qp->rq, cap->max_recv_wr, cap->max_recv_sge);

	/* elements and inline data share the room behind the header */
	room = max_t(u32, qp->sq.max_sge * sizeof(struct uroce_sge),
		     cap->max_inline_data);
	qp->sq.stride = ALIGN(sizeof(struct uroce_send_wqe) + room, 64);
	room = qp->sq.stride - sizeof(struct uroce_send_wqe);
	qp->max_inline = min_t(u32, room, UROCE_MAX_INLINE);
	qp->sq.max_sge = min_t(u32, room / sizeof(struct uroce_sge), UROCE_MAX_SGE);
	qp->swqe_size = ALIGN(sizeof(struct uroce_swqe) + room, 8);
	qp->rq.stride = uroce_recv_stride(qp->rq.max_sge);

	resp->sq_offset = ALIGN(sizeof(struct uroce_qp_ctrl), 64);
	resp->sq_entries = qp->sq.entries;
	resp->sq_stride = qp->sq.stride;
	resp->rq_offset = resp->sq_offset + qp->sq.entries * qp->sq.stride;
	resp->rq_entries = qp->rq.entries;
	resp->rq_stride = qp->rq.stride;
	resp->max_send_sge = qp->sq.max_sge;
	resp->max_recv_sge = qp->rq.max_sge;
	resp->max_inline = qp->max_inline;

	cap->max_send_wr = qp->sq.entries;
	cap->max_recv_wr = qp->rq.entries;
	cap->max_send_sge = qp->sq.max_sge;
	cap->max_recv_sge = qp->rq.max_sge;
	cap->max_inline_data = qp->max_inline;
}

static int qp_alloc_queues(struct uroce_qp *qp, struct ib_qp_cap *cap,
			   struct uroce_create_qp_resp *resp)
{
	size_t len;

	qp_layout(qp, cap, resp);

	if (qp->sq.entries) {
		qp->swqes = kvcalloc(qp->sq.entries, qp->swqe_size,
				     GFP_KERNEL_ACCOUNT);
		if (!qp->swqes)
			return -ENOMEM;
	}

	len = resp->rq_offset + (size_t)qp->rq.entries * qp->rq.stride;
	qp->region = uroce_region_create(qp->uctx ? &qp->uctx->ib : NULL, len);
	if (IS_ERR(qp->region)) {
		kvfree(qp->swqes);
		return PTR_ERR(qp->region);
	}
	qp->ctrl = qp->region->mem;
	qp->sq.mem = qp->region->mem + resp->sq_offset;
	qp->rq.mem = qp->region->mem + resp->rq_offset;
	if (qp->uctx) {
		resp->mmap_offset = uroce_region_offset(qp->region);
		resp->mmap_len = qp->region->len;
	}
	return 0;
}

int uroce_qp_init(struct uroce_qp *qp, struct uroce_dev *dev,
		  struct ib_qp_init_attr *init, struct uroce_ucontext *uctx,
		  struct uroce_create_qp_resp *resp)
{
	int dir, err;

	drop_queues(init);
	err = qp_check_cap(init);
	if (err)
		return err;
	err = uroce_object_get(dev, UROCE_OBJ_QP,
			       uctx || init->qp_type == IB_QPT_XRC_TGT);
	if (err)
		return err;

	qp->dev = dev;
	qp->uctx = uctx;
	qp->type = init->qp_type;
	qp->service = service_of(init->qp_type);
	if (uroce_qp_requests(qp)) {
		qp->pd = qp->ib->pd;
		qp->send_cq = to_ucq(init->send_cq);
	} else {
		qp->xrcd = init->xrcd;
	}
	if (qp->service != UROCE_SVC_XRC)
		qp->recv_cq = to_ucq(init->recv_cq);
	qp->bearer = (struct uroce_bearer) {
		.dev = dev,
		.pd = qp->pd,
		.fault = &qp->fault[UROCE_RECV],
	};
	qp->srq = init->srq ? to_usrq(init->srq) : NULL;
	qp->sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->no_mcast_loop = init->create_flags &
			    IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	qp->state = IB_QPS_RESET;
	refcount_set(&qp->ref, 1);
	init_completion(&qp->freed);
	mutex_init(&qp->mutex);
	atomic_set(&qp->ip_id, get_random_u32());
	for (dir = 0; dir < UROCE_NUM_DIR; dir++) {
		skb_queue_head_init(&qp->rxq[dir]);
		spin_lock_init(&qp->post_lock[dir]);
	}

	err = dst_cache_init(&qp->dst, GFP_KERNEL_ACCOUNT);
	if (err)
		goto err_count;
	err = qp_alloc_queues(qp, &init->cap, resp);
	if (err)
		goto err_dst;
	if (uctx) {
		err = uroce_slot_get(uctx, &qp->slot);
		if (err)
			goto err_queues;
		resp->db_slot = qp->slot;
	}
	return 0;

err_queues:
	uroce_region_destroy(qp->region);
	kvfree(qp->swqes);
err_dst:
	dst_cache_destroy(&qp->dst);
err_count:
	uroce_object_put(dev, UROCE_OBJ_QP);
	return err;
}

int uroce_qp_publish(struct uroce_qp *qp)
{
	if (qp->type == IB_QPT_GSI) {
		if (rcu_access_pointer(qp->dev->gsi))
			return -EBUSY;
		qp->qpn = UROCE_QPN_GSI;
		qp->ib->qp_num = qp->qpn;
		rcu_assign_pointer(qp->dev->gsi, qp);
		return 0;
	}

	/* reserve the number, then let packets find a complete QP */
	if (xa_alloc_cyclic_bh(&qp_table, &qp->qpn, NULL,
			       XA_LIMIT(UROCE_QPN_MIN, UROCE_QPN_MULTICAST - 1),
			       &qpn_next, GFP_KERNEL_ACCOUNT) < 0)
		return -ENOMEM;
	qp->ib->qp_num = qp->qpn;
	qp->bearer.qpn = qp->qpn;
	xa_store_bh(&qp_table, qp->qpn, qp, GFP_KERNEL_ACCOUNT);
	if (qp->uctx)
		uroce_slot_set(qp->uctx, qp->slot, qp);
	return 0;
}

void uroce_qp_unpublish(struct uroce_qp *qp)
{
	if (qp->type == IB_QPT_GSI)
		RCU_INIT_POINTER(qp->dev->gsi, NULL);
	else
		xa_erase_bh(&qp_table, qp->qpn);
	if (qp->uctx)
		uroce_slot_put(qp->uctx, qp->slot);
}

void uroce_qp_free(struct uroce_qp *qp)
{
	struct uroce_dev *dev = qp->dev;
	int dir;

	for (dir = 0; dir < UROCE_NUM_DIR; dir++)
		uroce_rxq_purge(qp, dir);
	uroce_region_destroy(qp->region);
	kvfree(qp->swqes);
	kfree(qp->resp.res);
	dst_cache_destroy(&qp->dst);
	kfree_rcu(qp, rcu);
	uroce_object_put(dev, UROCE_OBJ_QP);
}

void uroce_qp_reset(struct uroce_qp *qp)
{
	struct uroce_rd_res *res = qp->resp.res;
	u32 res_num = qp->resp.res_num;
	int dir;

	uroce_qp_assert_owned(qp, UROCE_SEND);
	uroce_qp_assert_owned(qp, UROCE_RECV);

	hrtimer_cancel(&qp->ack_timer);
	hrtimer_cancel(&qp->resume_timer);
	hrtimer_cancel(&qp->reply_timer);
	for (dir = 0; dir < UROCE_NUM_DIR; dir++) {
		/* one that is under way comes to an end by itself */
		qp->fault[dir].stale = true;
		qp->fault[dir].held = 0;
		uroce_rxq_purge(qp, dir);
	}

	memset(&qp->req, 0, sizeof(qp->req));
	memset(&qp->comp, 0, sizeof(qp->comp));
	memset(&qp->resp, 0, sizeof(qp->resp));
	if (res)
		memset(res, 0, sizeof(*res) * res_num);
	qp->resp.res = res;
	qp->resp.res_num = res_num;

	WRITE_ONCE(qp->ctrl->sq_tail, 0);
	WRITE_ONCE(qp->ctrl->rq_tail, 0);
	WRITE_ONCE(qp->ctrl->rq_need_kick, 0);
	dst_cache_reset_now(&qp->dst);
}
