// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posting receives, to the queue of a QP or to a shared one: memory alone, but
 * for a QP in the error state, which has to be told.
 */
#include "objects.hpp"
#include "wqe.hpp"

namespace uroce {

namespace {

/*
 * WQEs for a list of WRs, published at once. *wr becomes the first that was not
 * posted, *posted says whether any was. `head` is the index of the oldest WQE
 * whose slot is not free. Caller holds the ring's lock. 0 or errno.
 */
int put_recvs(Ring &ring, const uint32_t *head, uint32_t max_sge, struct ibv_recv_wr **wr,
	      bool *posted)
{
	uint32_t next = ring.tail;
	int err = 0;

	for (; *wr; *wr = (*wr)->next, next++) {
		struct uroce_recv_wqe *wqe;

		if ((*wr)->num_sge < 0 || static_cast<uint32_t>((*wr)->num_sge) > max_sge)
			err = EINVAL;
		else if (next - load_acquire(head) >= ring.entries)
			err = ENOMEM;
		if (err)
			break;

		wqe = ring.slot<struct uroce_recv_wqe>(next);
		wqe->wr_id = (*wr)->wr_id;
		wqe->reserved = 0;
		put_sges(wqe, (*wr)->sg_list, static_cast<size_t>((*wr)->num_sge));
	}
	*posted = next != ring.tail;
	if (*posted)
		ring.publish(next);
	return err;
}

} /* namespace */

int post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	Qp *qp = to_qp(ibqp);
	bool posted;
	int err;

	*bad_wr = wr;
	if (ibqp->srq || !ibqp->recv_cq)
		return EINVAL;
	if (device_is_gone(qp->vqp.qp.context))
		return EIO;

	{
		Guard guard(qp->rq_lock);

		if (load_relaxed(&qp->state) == IBV_QPS_RESET)
			return EINVAL;
		err = put_recvs(qp->rq, &qp->rq.head, qp->max_recv_sge, &wr, &posted);
	}
	*bad_wr = wr;
	if (!posted)
		return err;

	full_fence(); /* ordering pair 2: the tail against rq_need_kick */
	if (load_relaxed(&qp->ctrl->rq_need_kick))
		kick(ibqp->context->cmd_fd, qp->db_slot);
	return err;
}

int post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	Srq *srq = to_srq(ibsrq);
	bool posted;
	int err;

	*bad_wr = wr;
	if (device_is_gone(ibsrq->context))
		return EIO;

	{
		Guard guard(srq->lock);

		err = put_recvs(srq->ring, &srq->ctrl->head, srq->max_sge, &wr, &posted);
	}
	*bad_wr = wr;
	return err;
}

} /* namespace uroce */
