// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Receive WQEs; see recv.h. */
#include "recv.h"

bool uroce_recv_enter(struct uroce_qp *qp, u32 srqn)
{
	if (!qp->xrcd)
		return true;
	uroce_qp_assert_owned(qp, UROCE_RECV);

	qp->srq = uroce_srq_get(qp->dev, qp->xrcd, srqn);
	if (!qp->srq)
		return false;
	qp->bearer.pd = qp->srq->ib.pd;
	return true;
}

void uroce_recv_leave(struct uroce_qp *qp)
{
	if (!qp->xrcd)
		return;
	if (qp->srq)
		uroce_srq_put(qp->srq);
	qp->srq = NULL;
	qp->bearer.pd = NULL;
}

static int take_wqe(struct uroce_qp *qp)
{
	struct uroce_resp *resp = &qp->resp;

	if (qp->srq)
		return uroce_srq_take(qp->srq, &resp->wqe, resp->wqe_sge);
	if (!uroce_ring_pending(&qp->rq, &qp->ctrl->rq_tail, resp->rq_head))
		return -EAGAIN;
	return uroce_ring_copy_recv(&qp->rq, resp->rq_head, &resp->wqe,
				    resp->wqe_sge);
}

/* The PD of the queue that the WQE comes from, which its keys are of */
static struct ib_pd *wqe_pd(const struct uroce_qp *qp)
{
	return qp->srq ? qp->srq->ib.pd : qp->pd;
}

int uroce_recv_get(struct uroce_qp *qp)
{
	struct uroce_resp *resp = &qp->resp;
	int err;

	uroce_qp_assert_owned(qp, UROCE_RECV);

	if (resp->have_wqe)
		return 0;
	err = take_wqe(qp);
	if (err == -EAGAIN)
		return err;

	resp->have_wqe = true;
	resp->wqe_srqn = qp->srq ? qp->srq->number : 0;
	/* no message is longer, so that its bytes can be counted in 32 bits */
	resp->wqe_len = min_t(u64, UROCE_MAX_MSG,
			      uroce_sgl_length(resp->wqe_sge,
					       resp->wqe.num_sge));
	uroce_sgl_init(&resp->sgl, qp->dev, wqe_pd(qp), &qp->fault[UROCE_RECV],
		       resp->wqe_sge, resp->wqe.num_sge);
	return err;
}

void uroce_recv_complete(struct uroce_qp *qp, struct uroce_cqe *cqe,
			 bool solicited)
{
	struct uroce_cq *cq = qp->xrcd ? qp->srq->cq : qp->recv_cq;
	struct uroce_resp *resp = &qp->resp;

	uroce_qp_assert_owned(qp, UROCE_RECV);

	cqe->wr_id = resp->wqe.wr_id;
	cqe->qpn = qp->qpn;
	cqe->queue = UROCE_CQE_SRQ;
	if (cqe->status)
		uroce_count(qp->dev, cqe->status == IB_WC_WR_FLUSH_ERR ?
			    UROCE_CNT_RESP_CQE_FLUSH_ERROR :
			    UROCE_CNT_RESP_CQE_ERROR);

	resp->have_wqe = false;
	if (!qp->srq) {
		cqe->queue = UROCE_CQE_RQ;
		cqe->wqe_index = resp->rq_head;
		/* a kernel consumer may fill the slot again; pairs with kpost */
		smp_store_release(&resp->rq_head, resp->rq_head + 1);
	}
	if (uroce_cq_post(cq, cqe, qp->ib, solicited))
		uroce_qp_error(qp, IB_EVENT_QP_FATAL);
	/* the engine, which does this at the end of a run, knows recv_cq only */
	if (qp->xrcd)
		uroce_cq_notify(cq);
}

void uroce_recv_fail(struct uroce_qp *qp, u8 status)
{
	struct uroce_cqe cqe = { .opcode = IB_WC_RECV, .status = status };

	uroce_recv_complete(qp, &cqe, false);
}

/*
 * What is left in the SRQ is for other QPs. This one takes nothing from it any
 * more, which the consumer has to know before it frees the buffers (IBTA
 * 10.9.6.2, "last WQE reached").
 */
static void flush_taken(struct uroce_qp *qp)
{
	struct uroce_resp *resp = &qp->resp;

	if (resp->have_wqe)
		uroce_recv_fail(qp, IB_WC_WR_FLUSH_ERR);
	if (resp->last_wqe)
		return;
	resp->last_wqe = true;
	uroce_qp_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
}

void uroce_recv_give_back(struct uroce_qp *qp)
{
	struct uroce_resp *resp = &qp->resp;

	if (!resp->have_wqe)
		return;
	if (uroce_recv_enter(qp, resp->wqe_srqn)) {
		uroce_recv_fail(qp, IB_WC_WR_FLUSH_ERR);
		uroce_recv_leave(qp);
	}
	resp->have_wqe = false;
}

bool uroce_recv_flush(struct uroce_qp *qp, int *budget)
{
	uroce_qp_assert_owned(qp, UROCE_RECV);

	if (qp->xrcd) {
		uroce_recv_give_back(qp);
		return false;
	}
	if (qp->srq) {
		flush_taken(qp);
		return false;
	}
	while (uroce_recv_get(qp) != -EAGAIN) {
		uroce_recv_fail(qp, IB_WC_WR_FLUSH_ERR);
		if (--*budget <= 0)
			return true;
	}
	return false;
}
