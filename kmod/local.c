// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Local path; see local.h.
 *
 * PSNs advance on both sides as packets would make them, so that at every
 * piece boundary the message can go on as packets instead. Local messages are
 * used only while no packet of the QP is in flight, which keeps the order.
 */
#include "comp.h"
#include "engine.h"
#include "local.h"
#include "opcode.h"
#include "own.h"
#include "psn.h"
#include "req.h"
#include "resp.h"
#include "rxq.h"
#include "timer.h"
#include "wire.h"

/* Bytes carried out in one go; bounds the time with softirqs off */
#define PIECE_BYTES	(256 * 1024)
/* Bytes that count as much as a message in the budget */
#define BUDGET_BYTES	4096

/* One step of a message: all of it, or a run of whole packets */
struct piece {
	u32 offset;	/* bytes */
	u32 len;
	u32 psns;
	bool first;
	bool last;
};

static void cut_piece(const struct uroce_qp *qp, const struct uroce_swqe *swqe,
		      struct piece *p)
{
	u32 mtu = qp->attr.mtu;
	u32 n = uroce_psn_dist(qp->req.psn, swqe->first_psn);

	p->offset = n * mtu;
	p->psns = min_t(u32, swqe->num_psn - n, PIECE_BYTES / mtu);
	p->first = n == 0;
	p->last = n + p->psns == swqe->num_psn;
	p->len = p->last ? swqe->length - p->offset : p->psns * mtu;
}

static void make_pkt(const struct uroce_qp *qp, const struct uroce_swqe *swqe,
		     const struct piece *p, struct uroce_pkt *pkt)
{
	const struct uroce_send_wqe *w = &swqe->w;

	memset(pkt, 0, sizeof(*pkt));
	pkt->qpn = qp->attr.dest_qpn;
	pkt->psn = qp->req.psn;
	pkt->rkey = w->rkey;
	pkt->va = w->remote_addr;
	pkt->imm = w->imm_data;		/* or the key to invalidate */
	if (qp->service == UROCE_SVC_XRC)
		pkt->srqn = w->remote_srqn & UROCE_BTH_24_MASK;

	if (uroce_swqe_is_atomic(swqe)) {
		bool cas = swqe->op == UROCE_OP_CMP_SWAP;

		pkt->opcode = qp->service | swqe->op;
		pkt->swap_add = cas ? w->atomic.swap : w->atomic.compare_add;
		pkt->compare = w->atomic.compare_add;
	} else if (uroce_swqe_is_read(swqe)) {
		/* like a READ request for a part of the whole */
		pkt->opcode = qp->service | swqe->op;
		pkt->va += p->offset;
		pkt->dma_len = p->len;
	} else {
		pkt->opcode = qp->service | uroce_opcode_part(swqe->op, p->first, p->last);
		pkt->payload_len = p->len;
		pkt->dma_len = swqe->length;
		pkt->solicited = p->last && w->flags & UROCE_SEND_SOLICITED;
	}
}

/*
 * The peer waits for memory of its own. It would hold up packets as well, and
 * they can be lost. But one page fault of it is not waited for longer than an
 * acknowledgment would be, or about a second where there is none.
 */
static void wait_for_peer(struct uroce_qp *qp)
{
	qp->req.pause = UROCE_PAUSE_PEER;
	uroce_timer_start(&qp->resume_timer, uroce_backoff_ns(qp->req.peer_waits));
	if (uroce_qp_is_reliable(qp))
		uroce_timer_ack_arm(qp);
}

/* It begins to; what it waited for before has come */
static void wait_anew(struct uroce_qp *qp)
{
	qp->req.peer_waits = 0;
	qp->comp.deadline = 0;
	qp->comp.retry_left = qp->attr.retry_cnt;
	wait_for_peer(qp);
}

static void carry_out(struct uroce_qp *qp, struct uroce_qp *peer,
		      struct uroce_swqe *swqe, const struct piece *p)
{
	struct uroce_local local = { .num_psn = p->psns };
	struct uroce_payload payload = {};
	struct uroce_pkt pkt;
	struct uroce_sgl sgl;

	uroce_sgl_init(&sgl, qp->dev, qp->pd, &qp->fault[UROCE_SEND], swqe->sge,
		       swqe->w.num_sge);
	uroce_sgl_seek(&sgl, p->offset);
	if (uroce_swqe_is_read(swqe) || uroce_swqe_is_atomic(swqe)) {
		local.sink = &sgl;
	} else {
		payload.len = p->len;
		payload.sgl = &sgl;
		payload.buf = uroce_swqe_inline(swqe);
		if (payload.buf)
			payload.buf += p->offset;
	}
	make_pkt(qp, swqe, p, &pkt);

	if (!uroce_resp_request(peer, &pkt, &payload, &local)) {
		/* memory of ours ends the run; what is the peer's, it brings in */
		if (!uroce_fault_pending(&qp->fault[UROCE_SEND]))
			wait_anew(qp);
		return;
	}
	qp->req.peer_waits = 0;
	uroce_count(qp->dev, UROCE_CNT_LOCAL_MSGS);
	if (local.dropped && !payload.buf) {
		/* a key that is not good is the requester's fault in any case */
		uroce_sgl_seek(&sgl, p->offset);
		local.source_failed = uroce_sgl_check(&sgl, p->len) == -EFAULT;
	}
	uroce_comp_local(qp, swqe, &local, p->last);
}

/*
 * The QP at the other end, if it is of this device, connected to us, and its
 * responder is free and stands where we do. With a reference and ownership of
 * its RECV direction; NULL: let packets do it, they know every other case.
 */
static struct uroce_qp *own_peer(struct uroce_qp *qp)
{
	struct uroce_qp *peer;

	if (uroce_qp_is_datagram(qp) || !READ_ONCE(qp->dev->local_path) ||
	    !ipv6_addr_equal(&qp->attr.av.saddr, &qp->attr.av.daddr))
		return NULL;
	peer = uroce_qp_get(qp->attr.dest_qpn);
	if (!peer)
		return NULL;
	/* a guess first: the responder is not taken from a QP that has another peer */
	if (peer->dev != qp->dev || READ_ONCE(peer->attr.dest_qpn) != qp->qpn ||
	    !uroce_own_try(peer, UROCE_RECV))
		goto put;

	if (peer->service == qp->service && uroce_qp_responds(peer) &&
	    uroce_state_receives(uroce_qp_state(peer)) &&
	    peer->attr.dest_qpn == qp->qpn &&
	    peer->attr.mtu == qp->attr.mtu &&
	    ipv6_addr_equal(&peer->attr.av.saddr, &qp->attr.av.daddr) &&
	    ipv6_addr_equal(&peer->attr.av.daddr, &qp->attr.av.saddr))
		return peer;

	uroce_engine_release(peer, UROCE_RECV);
put:
	uroce_qp_put(peer);
	return NULL;
}

/* Can the peer's responder take our next request without packets between? */
static bool in_step(const struct uroce_qp *qp, const struct uroce_qp *peer)
{
	return qp->req.psn == qp->req.high_psn &&
	       qp->req.psn == qp->comp.una &&
	       qp->req.psn == peer->resp.epsn && !peer->resp.reply.active &&
	       uroce_rxq_empty(peer, UROCE_RECV) &&
	       uroce_state_receives(uroce_qp_state(peer));
}

/* True when the budget ended it. */
static bool run_with_peer(struct uroce_qp *qp, struct uroce_qp *peer,
			  int *budget)
{
	struct uroce_swqe *swqe;
	struct piece piece;

	while (uroce_qp_state(qp) == IB_QPS_RTS && !qp->req.pause &&
	       !uroce_fault_pending(&qp->fault[UROCE_SEND]) &&
	       in_step(qp, peer)) {
		swqe = uroce_req_current(qp);
		if (!swqe || swqe->error)
			return false;
		cut_piece(qp, swqe, &piece);
		carry_out(qp, peer, swqe, &piece);
		if (swqe->error)
			return false;
		*budget -= 1 + piece.len / BUDGET_BYTES;
		if (*budget <= 0)
			return true;
	}
	return false;
}

bool uroce_local_run(struct uroce_qp *qp, int *budget)
{
	struct uroce_qp *peer;
	bool more = false;

	uroce_qp_assert_owned(qp, UROCE_SEND);

	if (uroce_qp_state(qp) != IB_QPS_RTS || qp->req.pause ||
	    qp->req.psn != qp->comp.una || !uroce_req_current(qp))
		return false;
	peer = own_peer(qp);
	if (!peer)
		return false;

	if (!uroce_fault_pending(&peer->fault[UROCE_RECV]))
		more = run_with_peer(qp, peer, budget);
	else if (uroce_backoff(&qp->req.peer_waits, -EAGAIN))
		wait_for_peer(qp);
	uroce_engine_release(peer, UROCE_RECV);
	uroce_qp_put(peer);
	return more;
}
