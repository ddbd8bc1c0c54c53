// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* QP state machine and attributes (IBTA 10.3.1, 11.2.4.2). */
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include "psn.h"
#include "qp.h"
#include "wire.h"

static bool code_bad(const struct ib_qp_attr *attr, int mask)
{
	return (mask & IB_QP_TIMEOUT && attr->timeout > 31) ||
	       (mask & IB_QP_RETRY_CNT && attr->retry_cnt > 7) ||
	       (mask & IB_QP_RNR_RETRY && attr->rnr_retry > 7) ||
	       (mask & IB_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31);
}

static bool path_bad(struct uroce_qp *qp, const struct ib_qp_attr *attr,
		     int mask)
{
	return (mask & IB_QP_PORT && attr->port_num != 1) ||
	       (mask & IB_QP_PKEY_INDEX && attr->pkey_index) ||
	       (mask & IB_QP_PATH_MTU && (attr->path_mtu < IB_MTU_256 ||
		attr->path_mtu > uroce_device_mtu(qp->dev))) ||
	       (mask & IB_QP_DEST_QPN &&
		attr->dest_qp_num > UROCE_BTH_24_MASK) ||
	       /* no alternate path: it is not advertised */
	       mask & IB_QP_ALT_PATH ||
	       (mask & IB_QP_PATH_MIG_STATE &&
		attr->path_mig_state != IB_MIG_MIGRATED);
}

static bool limits_bad(const struct ib_qp_attr *attr, int mask)
{
	const int access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
			   IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |
			   IB_ACCESS_MW_BIND | IB_ACCESS_ON_DEMAND |
			   IB_ACCESS_OPTIONAL;

	return (mask & IB_QP_MAX_QP_RD_ATOMIC &&
		attr->max_rd_atomic > UROCE_MAX_RD_ATOMIC) ||
	       (mask & IB_QP_MAX_DEST_RD_ATOMIC &&
		attr->max_dest_rd_atomic > UROCE_MAX_RD_ATOMIC) ||
	       (mask & IB_QP_ACCESS_FLAGS && attr->qp_access_flags & ~access) ||
	       mask & IB_QP_CAP;
}

/* Without credit a READ that was fetched already would wait for ever. */
static bool credit_bad(struct uroce_qp *qp, const struct ib_qp_attr *attr,
		       int mask)
{
	return mask & IB_QP_MAX_QP_RD_ATOMIC && !attr->max_rd_atomic &&
	       qp->comp.head != qp->req.fetched;
}

static int attr_check(struct uroce_qp *qp, const struct ib_qp_attr *attr,
		      int mask, enum ib_qp_state *from, enum ib_qp_state *to)
{
	*from = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	*to = mask & IB_QP_STATE ? attr->qp_state : *from;

	if (*from != qp->state ||
	    !ib_modify_qp_is_ok(*from, *to, qp->type, mask) ||
	    code_bad(attr, mask) || path_bad(qp, attr, mask) ||
	    limits_bad(attr, mask) || credit_bad(qp, attr, mask))
		return -EINVAL;
	return 0;
}

static void set_path(struct uroce_qp *qp, const struct ib_qp_attr *attr,
		     int mask, const struct uroce_av *av)
{
	struct uroce_qp_attr *a = &qp->attr;

	if (mask & IB_QP_DEST_QPN)
		a->dest_qpn = attr->dest_qp_num;
	if (mask & IB_QP_PATH_MTU) {
		a->path_mtu = attr->path_mtu;
		a->mtu = ib_mtu_enum_to_int(attr->path_mtu);
	}
	if (mask & IB_QP_AV) {
		a->av = *av;
		a->ah = attr->ah_attr;
		a->ah.grh.sgid_attr = NULL;
		dst_cache_reset(&qp->dst);
	}
	if (mask & (IB_QP_AV | IB_QP_DEST_QPN))
		a->sport = rdma_get_udp_sport(a->av.flow_label, qp->qpn,
					      a->dest_qpn);
}

static void set_values(struct uroce_qp *qp, const struct ib_qp_attr *attr,
		       int mask)
{
	struct uroce_qp_attr *a = &qp->attr;

	if (mask & IB_QP_TIMEOUT)
		a->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		a->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		a->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_MIN_RNR_TIMER)
		a->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_QKEY)
		a->qkey = attr->qkey;
	if (mask & IB_QP_ACCESS_FLAGS)
		a->access = attr->qp_access_flags;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		a->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
		a->sqd_notify = attr->en_sqd_async_notify;
	else if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_SQD)
		a->sqd_notify = false;	/* each drain is asked for anew */
	if (mask & IB_QP_SQ_PSN) {
		a->sq_psn = attr->sq_psn & UROCE_PSN_MASK;
		qp->req.psn = a->sq_psn;
		qp->req.high_psn = a->sq_psn;
		qp->req.next_psn = a->sq_psn;
		qp->req.window = UROCE_WINDOW;
		qp->comp.una = a->sq_psn;
	}
	if (mask & IB_QP_RQ_PSN) {
		a->rq_psn = attr->rq_psn & UROCE_PSN_MASK;
		qp->resp.epsn = a->rq_psn;
	}
	if (mask & (IB_QP_RETRY_CNT | IB_QP_RNR_RETRY)) {
		qp->comp.retry_left = a->retry_cnt;
		qp->comp.rnr_left = a->rnr_retry;
	}
}

/*
 * Out of SQE. The caller has flushed everything; the next message takes the PSNs
 * that the failed one did not get to use.
 */
static void restart_sq(struct uroce_qp *qp)
{
	struct uroce_req *req = &qp->req;

	WARN_ON(qp->comp.head != req->fetched);
	req->cur = req->fetched;
	req->next_psn = req->psn;
	req->high_psn = req->psn;
	qp->comp.una = req->psn;
}

static void set_state(struct uroce_qp *qp, enum ib_qp_state from,
		      enum ib_qp_state to)
{
	WRITE_ONCE(qp->state, to);

	switch (to) {
	case IB_QPS_RESET:
		uroce_qp_reset(qp);
		break;
	case IB_QPS_ERR:
		uroce_qp_mark(qp, UROCE_SEND, UROCE_WORK_FLUSH);
		uroce_qp_mark(qp, UROCE_RECV, UROCE_WORK_FLUSH);
		break;
	case IB_QPS_SQD:
		qp->req.draining = from != IB_QPS_SQD || qp->req.draining;
		uroce_qp_mark(qp, UROCE_SEND, UROCE_WORK_TX);
		break;
	case IB_QPS_RTS:
		if (from == IB_QPS_SQE)
			restart_sq(qp);
		qp->req.draining = false;
		uroce_qp_mark(qp, UROCE_SEND, UROCE_WORK_TX);
		break;
	default:
		break;
	}
}

/*
 * Another depth of READs and atomics at the responder, which does not run now.
 * In SQD it is at work: what the peer may ask for again is kept, the newest first.
 */
static int resize_rd_res(struct uroce_qp *qp, u8 num)
{
	struct uroce_resp *resp = &qp->resp;
	u32 kept = min_t(u32, num, resp->res_num), i;
	struct uroce_rd_res *res;

	res = kcalloc(num ?: 1, sizeof(*res), GFP_KERNEL_ACCOUNT);
	if (!res)
		return -ENOMEM;
	for (i = 0; i < kept; i++)
		res[i] = resp->res[(resp->res_next + resp->res_num - kept + i) %
				   resp->res_num];
	kfree(resp->res);
	resp->res = res;
	resp->res_num = num;
	resp->res_next = num ? kept % num : 0;
	qp->attr.max_dest_rd_atomic = num;
	return 0;
}

int uroce_qp_modify(struct uroce_qp *qp, const struct ib_qp_attr *attr,
		    int mask)
{
	enum ib_qp_state from, to;
	struct uroce_av av;
	int err;

	uroce_qp_assert_owned(qp, UROCE_SEND);
	uroce_qp_assert_owned(qp, UROCE_RECV);

	/* everything that can fail first: a refused modify changes nothing */
	err = attr_check(qp, attr, mask, &from, &to);
	if (err)
		return err;
	if (mask & IB_QP_AV) {
		err = uroce_av_init(qp->dev, &attr->ah_attr, &av);
		if (err)
			return err;
	}
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC) {
		err = resize_rd_res(qp, attr->max_dest_rd_atomic);
		if (err)
			return err;
	}

	set_path(qp, attr, mask, &av);
	set_values(qp, attr, mask);
	if (mask & IB_QP_STATE)
		set_state(qp, from, to);
	return 0;
}

void uroce_qp_query(struct uroce_qp *qp, struct ib_qp_attr *attr,
		    struct ib_qp_init_attr *init)
{
	const struct uroce_qp_attr *a = &qp->attr;

	memset(attr, 0, sizeof(*attr));
	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	attr->path_mtu = a->path_mtu;
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->qkey = a->qkey;
	attr->rq_psn = qp->state >= IB_QPS_RTR ? qp->resp.epsn : a->rq_psn;
	attr->sq_psn = qp->state >= IB_QPS_RTS ? qp->req.next_psn : a->sq_psn;
	attr->dest_qp_num = a->dest_qpn;
	attr->qp_access_flags = a->access;
	attr->cap.max_send_wr = qp->sq.entries;
	attr->cap.max_recv_wr = qp->rq.entries;
	attr->cap.max_send_sge = qp->sq.max_sge;
	attr->cap.max_recv_sge = qp->rq.max_sge;
	attr->cap.max_inline_data = qp->max_inline;
	attr->ah_attr = a->ah;
	attr->en_sqd_async_notify = a->sqd_notify;
	attr->sq_draining = qp->state == IB_QPS_SQD && qp->req.draining;
	attr->max_rd_atomic = a->max_rd_atomic;
	attr->max_dest_rd_atomic = a->max_dest_rd_atomic;
	attr->min_rnr_timer = a->min_rnr_timer;
	attr->port_num = 1;
	attr->timeout = a->timeout;
	attr->retry_cnt = a->retry_cnt;
	attr->rnr_retry = a->rnr_retry;

	memset(init, 0, sizeof(*init));
	init->event_handler = qp->ib->event_handler;
	init->qp_context = qp->ib->qp_context;
	init->send_cq = qp->ib->send_cq;
	init->recv_cq = qp->ib->recv_cq;
	init->srq = qp->ib->srq;
	init->xrcd = qp->ib->xrcd;
	init->cap = attr->cap;
	init->sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init->qp_type = qp->type;
	if (qp->no_mcast_loop)
		init->create_flags = IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
}
