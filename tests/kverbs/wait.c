// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Posting, and the log of completions. */
#include <linux/delay.h>
#include <linux/sched.h>
#include "kverbs.h"

void kv_wr_init(struct kv_side *side, struct kv_wr *w, u32 id,
		enum ib_wr_opcode opcode, u32 offset, u32 len)
{
	struct ib_mr *remote = side->peer->mr;

	memset(w, 0, sizeof(*w));
	w->wr.wr_cqe = &side->id[id].cqe;
	w->wr.opcode = opcode;
	w->wr.send_flags = IB_SEND_SIGNALED;
	w->wr.sg_list = w->sge;
	w->wr.num_sge = 1;
	w->sge[0].addr = side->dma + offset;
	w->sge[0].length = len;
	w->sge[0].lkey = side->pd->local_dma_lkey;

	switch (opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
		w->rdma.remote_addr = remote->iova + offset;
		w->rdma.rkey = remote->rkey;
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		w->atomic.remote_addr = remote->iova + offset;
		w->atomic.rkey = remote->rkey;
		break;
	case IB_WR_REG_MR:
	case IB_WR_LOCAL_INV:
		w->wr.sg_list = NULL;
		w->wr.num_sge = 0;
		break;
	default:
		break;
	}
}

int kv_post(struct kv_side *side, const struct kv_wr *w)
{
	return ib_post_send(side->qp, &w->wr, NULL);
}

struct ib_recv_wr *kv_recv_init(struct kv_side *side, struct ib_recv_wr *wr,
				struct ib_sge *sge, u32 id, u32 offset, u32 len)
{
	*sge = (struct ib_sge) {
		.addr = side->dma + offset,
		.length = len,
		.lkey = side->pd->local_dma_lkey,
	};
	*wr = (struct ib_recv_wr) {
		.wr_cqe = &side->id[id].cqe,
		.sg_list = sge,
		.num_sge = 1,
	};
	return wr;
}

int kv_recv(struct kv_side *side, u32 id, u32 offset, u32 len)
{
	struct ib_recv_wr wr;
	struct ib_sge sge;

	kv_recv_init(side, &wr, &sge, id, offset, len);
	return ib_post_recv(side->qp, &wr, NULL);
}

/* ---- the log ---- */

/* Is this where the CQ's completions are to come? */
static bool right_context(const struct kv_side *side)
{
	switch (side->poll) {
	case IB_POLL_SOFTIRQ:
		return in_serving_softirq();
	case IB_POLL_WORKQUEUE:
	case IB_POLL_UNBOUND_WORKQUEUE:
		return !in_interrupt() && current->flags & PF_WQ_WORKER;
	default:
		return true;
	}
}

void kv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kv_side *side = container_of(wc->wr_cqe, struct kv_cqe, cqe)->side;
	unsigned long flags;

	spin_lock_irqsave(&side->lock, flags);
	if (!right_context(side))
		side->wrong_context++;
	if (side->logged - side->seen < KV_LOG)
		side->log[side->logged % KV_LOG] = *wc;
	side->logged++;
	spin_unlock_irqrestore(&side->lock, flags);
	wake_up(&side->wait);
}

static bool log_empty(struct kv_side *side)
{
	return READ_ONCE(side->logged) == side->seen;
}

int kv_poll(struct kv_side *side)
{
	struct ib_wc wc;
	int n = 0;

	if (side->poll == IB_POLL_DIRECT)
		return ib_process_cq_direct(side->cq, -1);
	if (side->poll != KV_POLL_PLAIN)
		return 0;
	while (ib_poll_cq(side->cq, 1, &wc) > 0) {
		wc.wr_cqe->done(side->cq, &wc);
		n++;
	}
	return n;
}

/* Wait for the log to have something */
static bool wait_log(struct kv_side *side)
{
	unsigned long end = jiffies + kv_patience(side->kv);

	if (side->poll != IB_POLL_DIRECT && side->poll != KV_POLL_PLAIN)
		return wait_event_timeout(side->wait, !log_empty(side),
					  kv_patience(side->kv));
	for (;;) {
		kv_poll(side);
		if (!log_empty(side))
			return true;
		if (time_after(jiffies, end))
			return false;
		usleep_range(50, 200);
	}
}

bool kv_wc(struct kv_side *side, struct ib_wc *wc)
{
	unsigned long flags;

	if (!wait_log(side)) {
		side->kv->lost = true;
		kv_fail(side->kv, "no completion of QP %u", side->qp->qp_num);
		memset(wc, 0, sizeof(*wc));
		return false;
	}
	spin_lock_irqsave(&side->lock, flags);
	*wc = side->log[side->seen % KV_LOG];
	side->seen++;
	spin_unlock_irqrestore(&side->lock, flags);
	return true;
}

u32 kv_wc_id(const struct kv_side *side, const struct ib_wc *wc)
{
	return container_of(wc->wr_cqe, struct kv_cqe, cqe) - side->id;
}

bool kv_expect(struct kv_side *side, struct ib_wc *wc, u32 id,
	       enum ib_wc_status status, enum ib_wc_opcode opcode)
{
	struct ib_wc own;

	wc = wc ?: &own;
	if (!kv_wc(side, wc))
		return false;
	if (kv_wc_id(side, wc) == id && wc->status == status &&
	    (status || wc->opcode == opcode) && wc->qp == side->qp)
		return true;
	kv_fail(side->kv, "completion of %u, %s, opcode %d%s; not of %u, %s, opcode %d",
		kv_wc_id(side, wc), ib_wc_status_msg(wc->status), wc->opcode,
		wc->qp == side->qp ? "" : ", of another QP", id,
		ib_wc_status_msg(status), opcode);
	return false;
}

void kv_expect_none(struct kv_side *side)
{
	kv_poll(side);
	kv_eq(side->kv, READ_ONCE(side->logged) - side->seen, 0);
}

bool kv_do(struct kv_side *side, struct kv_wr *w, enum ib_wc_opcode opcode)
{
	u32 id = container_of(w->wr.wr_cqe, struct kv_cqe, cqe) - side->id;

	return kv_eq(side->kv, kv_post(side, w), 0) &&
	       kv_expect(side, NULL, id, IB_WC_SUCCESS, opcode);
}

bool kv_do_fail(struct kv_side *side, struct kv_wr *w, enum ib_wc_status status)
{
	u32 id = container_of(w->wr.wr_cqe, struct kv_cqe, cqe) - side->id;

	return kv_eq(side->kv, kv_post(side, w), 0) &&
	       kv_expect(side, NULL, id, status, 0);
}

/* ---- memory ---- */

void kv_fill(struct kv_side *side, u32 offset, u32 len, u8 seed)
{
	u32 i;

	for (i = 0; i < len; i++)
		side->buf[offset + i] = seed + i * 7 + (i >> 8);
}

bool kv_same(struct kv_side *to, u32 to_offset, struct kv_side *from,
	     u32 from_offset, u32 len)
{
	u32 i;

	for (i = 0; i < len; i++) {
		if (to->buf[to_offset + i] == from->buf[from_offset + i])
			continue;
		kv_fail(to->kv, "byte %u of %u: %02x, not %02x", i, len,
			to->buf[to_offset + i], from->buf[from_offset + i]);
		return false;
	}
	return true;
}
