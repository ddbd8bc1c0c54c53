// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Kernel consumers. They post with locks held and interrupts off, so nothing
 * is carried out here: the workqueue does.
 */
#include "engine.h"
#include "kpost.h"
#include "qp.h"

static int check_post(struct uroce_qp *qp, int lowest_state)
{
	int state = uroce_qp_state(qp);

	/* XRC targets are the kernel's, too, but have no queues */
	if (qp->uctx || qp->service == UROCE_SVC_XRC)
		return -EINVAL;
	/* ERR takes posts and flushes them */
	return state >= lowest_state ? 0 : -EINVAL;
}

static void put_sges(struct uroce_sge *to, const struct ib_sge *from, int num)
{
	for (; num > 0; num--, from++, to++) {
		to->addr = from->addr;
		to->length = from->length;
		to->lkey = from->lkey;
	}
}

static int put_inline(struct uroce_qp *qp, struct uroce_send_wqe *w,
		      const struct ib_send_wr *wr)
{
	u8 *to = (u8 *)(w + 1);
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length > qp->max_inline - w->inline_len)
			return -EINVAL;
		memcpy(to + w->inline_len, (void *)(uintptr_t)sge->addr,
		       sge->length);
		w->inline_len += sge->length;
	}
	w->num_sge = 0;
	return 0;
}

/* What stands in the WR behind the common part; -EINVAL: not for this QP */
static int put_remote(struct uroce_qp *qp, struct uroce_send_wqe *w,
		      const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
		if (!uroce_qp_is_datagram(qp))
			return 0;
		w->ud.ah = to_uah(ud_wr(wr)->ah)->handle;
		w->ud.remote_qpn = ud_wr(wr)->remote_qpn;
		w->ud.remote_qkey = ud_wr(wr)->remote_qkey;
		return 0;
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
		return 0;
	case IB_WR_REG_MR:
		w->rkey = reg_wr(wr)->key;
		/* some choose it after map_mr_sg(), when they know the XID */
		w->remote_addr = reg_wr(wr)->mr->iova;
		w->bind.access = reg_wr(wr)->access;
		return 0;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
		w->remote_addr = rdma_wr(wr)->remote_addr;
		w->rkey = rdma_wr(wr)->rkey;
		return 0;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		w->remote_addr = atomic_wr(wr)->remote_addr;
		w->rkey = atomic_wr(wr)->rkey;
		w->atomic.compare_add = atomic_wr(wr)->compare_add;
		w->atomic.swap = atomic_wr(wr)->swap;
		return 0;
	default:
		return -EINVAL;
	}
}

static int post_one_send(struct uroce_qp *qp, const struct ib_send_wr *wr)
{
	u32 tail = qp->ctrl->sq_tail;
	struct uroce_send_wqe *w;

	lockdep_assert_held(&qp->post_lock[UROCE_SEND]);

	/* pairs with complete_head(): the engine has done with the slot */
	if (tail - smp_load_acquire(&qp->comp.head) >= qp->sq.entries)
		return -ENOMEM;
	if (wr->num_sge < 0 || wr->num_sge > qp->sq.max_sge)
		return -EINVAL;

	w = uroce_ring_slot(&qp->sq, tail);
	memset(w, 0, sizeof(*w));
	w->wr_id = wr->wr_id;	/* or wr_cqe, in the same place */
	w->opcode = wr->opcode;
	w->flags = wr->send_flags & (IB_SEND_FENCE | IB_SEND_SIGNALED |
				     IB_SEND_SOLICITED | IB_SEND_INLINE);
	w->num_sge = wr->num_sge;
	w->imm_data = wr->ex.imm_data;	/* or invalidate_rkey */
	if (put_remote(qp, w, wr))
		return -EINVAL;
	if (wr->send_flags & IB_SEND_INLINE) {
		if (put_inline(qp, w, wr))
			return -EINVAL;
	} else {
		put_sges((struct uroce_sge *)(w + 1), wr->sg_list, wr->num_sge);
	}
	/* ordering pair 1 of the ABI */
	smp_store_release(&qp->ctrl->sq_tail, tail + 1);
	return 0;
}

int uroce_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad)
{
	struct uroce_qp *qp = to_uqp(ibqp);
	unsigned long flags;
	int err;

	err = check_post(qp, IB_QPS_RTS);
	spin_lock_irqsave(&qp->post_lock[UROCE_SEND], flags);
	for (; wr && !err; wr = err ? wr : wr->next)
		err = post_one_send(qp, wr);
	spin_unlock_irqrestore(&qp->post_lock[UROCE_SEND], flags);
	if (err)
		*bad = wr;

	uroce_engine_defer(qp, UROCE_SEND, UROCE_WORK_TX);
	return err;
}

/* One WR into a receive ring, under its @lock; moves @tail. */
static int put_recv(struct uroce_ring *ring, u32 *tail, u32 head,
		    const struct ib_recv_wr *wr, spinlock_t *lock)
{
	struct uroce_recv_wqe *w;

	lockdep_assert_held(lock);

	if (*tail - head >= ring->entries)
		return -ENOMEM;
	if (wr->num_sge < 0 || wr->num_sge > ring->max_sge)
		return -EINVAL;

	w = uroce_ring_slot(ring, *tail);
	w->wr_id = wr->wr_id;
	w->num_sge = wr->num_sge;
	put_sges((struct uroce_sge *)(w + 1), wr->sg_list, wr->num_sge);
	/* ordering pair 1 of the ABI */
	smp_store_release(tail, *tail + 1);
	return 0;
}

int uroce_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad)
{
	struct uroce_qp *qp = to_uqp(ibqp);
	unsigned long flags;
	int err;

	err = check_post(qp, IB_QPS_INIT) ?: qp->srq ? -EINVAL : 0;
	spin_lock_irqsave(&qp->post_lock[UROCE_RECV], flags);
	for (; wr && !err; wr = err ? wr : wr->next) {
		/* pairs with uroce_recv_complete(): it has done with the slot */
		u32 head = smp_load_acquire(&qp->resp.rq_head);

		err = put_recv(&qp->rq, &qp->ctrl->rq_tail, head, wr,
			       &qp->post_lock[UROCE_RECV]);
	}
	spin_unlock_irqrestore(&qp->post_lock[UROCE_RECV], flags);
	if (err)
		*bad = wr;

	/* ordering pair 2 of the ABI, the same for us */
	smp_mb();
	if (READ_ONCE(qp->ctrl->rq_need_kick))
		uroce_engine_defer(qp, UROCE_RECV, UROCE_WORK_FLUSH);
	return err;
}

int uroce_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad)
{
	struct uroce_srq *srq = to_usrq(ibsrq);
	unsigned long flags;
	int err;

	err = srq->uctx ? -EINVAL : 0;
	spin_lock_irqsave(&srq->post_lock, flags);
	for (; wr && !err; wr = err ? wr : wr->next) {
		/* pairs with uroce_srq_take(): it has done with the slot */
		u32 head = smp_load_acquire(&srq->head);

		err = put_recv(&srq->ring, &srq->ctrl->tail, head, wr,
			       &srq->post_lock);
	}
	spin_unlock_irqrestore(&srq->post_lock, flags);
	if (err)
		*bad = wr;
	return err;
}
