// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Responder; see resp.h. Rules: IBTA 9.7.4, 9.8 (requests), 9.9.3 (errors). */
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include "mr.h"
#include "opcode.h"
#include "psn.h"
#include "recv.h"
#include "reply.h"
#include "resp.h"
#include "wire.h"

/* Outcome of a step; how each is answered stands in fail(). */
enum outcome {
	OK,
	RNR,		/* no receive WQE */
	INV_REQ,	/* NAK invalid request */
	REM_ACCESS,	/* NAK remote access error */
	RECV_LEN,	/* receive WQE too short: its error, NAK invalid request */
	RECV_PROT,	/* receive WQE's key: its error, NAK remote operational */
	RECV_OP,	/* receive WQE malformed: the same */
	RECV_INV,	/* key to invalidate is not good: the same */
	SOURCE,		/* local message: the requester's own list is at fault */
};

/* Make a receive WQE current. */
static enum outcome get_wqe(struct uroce_qp *qp)
{
	switch (uroce_recv_get(qp)) {
	case 0:
		return OK;
	case -EAGAIN:
		return RNR;
	default:
		return RECV_OP;
	}
}

static void complete_message(struct uroce_qp *qp, const struct uroce_pkt *pkt)
{
	u32 flags = uroce_pkt_flags(pkt);
	struct uroce_cqe cqe = {
		.byte_len = qp->resp.received,
		.opcode = flags & UROCE_F_WRITE ? IB_WC_RECV_RDMA_WITH_IMM :
						  IB_WC_RECV,
		.src_qp = qp->attr.dest_qpn,
	};

	if (flags & UROCE_F_IMM) {
		cqe.imm_data = pkt->imm;
		cqe.wc_flags |= UROCE_WC_WITH_IMM;
	}
	if (flags & UROCE_F_IETH) {
		cqe.inv_rkey = pkt->inv_rkey;
		cqe.wc_flags |= UROCE_WC_WITH_INV;
	}
	uroce_recv_complete(qp, &cqe, pkt->solicited);
}

/* ---- answers ---- */

static void answer(struct uroce_qp *qp, struct uroce_local *local,
		   u8 syndrome, u32 psn)
{
	if (!local) {
		uroce_reply_ack(qp, syndrome, psn);
		return;
	}
	local->answered = true;
	local->syndrome = syndrome;
}

/* An ACK for @psn, with others of the same batch */
static void answer_ok(struct uroce_qp *qp, struct uroce_local *local, u32 psn)
{
	if (local) {
		answer(qp, local, UROCE_ACK_OK, psn);
		return;
	}
	uroce_reply_owe(qp, UROCE_ACK_OK, psn);
}

/* The receive WQE itself is at fault: its completion, whatever the service. */
static void fail_recv(struct uroce_qp *qp, enum outcome outcome)
{
	uroce_recv_fail(qp, outcome == RECV_PROT ? IB_WC_LOC_PROT_ERR :
			    outcome == RECV_OP ? IB_WC_LOC_QP_OP_ERR :
						 IB_WC_MW_BIND_ERR);
}

/* What a failure counts as, whatever the service; RNR differs. */
static void count_failure(struct uroce_qp *qp, enum outcome outcome)
{
	switch (outcome) {
	case INV_REQ:
		uroce_count(qp->dev, UROCE_CNT_RESP_INVALID_REQUEST);
		break;
	case REM_ACCESS:
		uroce_count(qp->dev, UROCE_CNT_RESP_REMOTE_ACCESS_ERRORS);
		break;
	case RECV_LEN:
		uroce_count(qp->dev, UROCE_CNT_RESP_LOCAL_LENGTH_ERROR);
		break;
	default:
		break;
	}
}

/* A request failed: NAK, completion of the receive WQE, event, state. */
static void fail(struct uroce_qp *qp, struct uroce_local *local,
		 enum outcome outcome)
{
	u32 psn = qp->resp.epsn;

	count_failure(qp, outcome);
	switch (outcome) {
	case RNR:
		uroce_count(qp->dev, UROCE_CNT_OUT_OF_BUFFER);
		/* what follows is out of sequence; no NAK for that */
		qp->resp.nak_sent = true;
		answer(qp, local, UROCE_AETH_RNR_NAK | qp->attr.min_rnr_timer, psn);
		return;
	case INV_REQ:
		answer(qp, local, UROCE_AETH_NAK | UROCE_NAK_INV_REQ, psn);
		uroce_qp_error(qp, IB_EVENT_QP_REQ_ERR);
		return;
	case REM_ACCESS:
		answer(qp, local, UROCE_AETH_NAK | UROCE_NAK_REM_ACCESS, psn);
		uroce_qp_error(qp, IB_EVENT_QP_ACCESS_ERR);
		return;
	case RECV_LEN:
		uroce_recv_fail(qp, IB_WC_LOC_LEN_ERR);
		answer(qp, local, UROCE_AETH_NAK | UROCE_NAK_INV_REQ, psn);
		break;
	case RECV_PROT:
	case RECV_OP:
	case RECV_INV:
		fail_recv(qp, outcome);
		answer(qp, local, UROCE_AETH_NAK | UROCE_NAK_REM_OP, psn);
		break;
	case SOURCE:
		/* only a local requester; nothing happened to this side */
		local->source_failed = true;
		return;
	case OK:
		return;
	}
	uroce_qp_error(qp, -1);
}

/*
 * The same for UC and UD, where the sender never hears of it: the message is
 * dropped, the receive WQE waits for the next one. Only a fault of this side's
 * own ends the QP.
 */
static void fail_unreliable(struct uroce_qp *qp, struct uroce_local *local,
			    enum outcome outcome)
{
	count_failure(qp, outcome);
	switch (outcome) {
	case RNR:
		uroce_count(qp->dev, UROCE_CNT_DROP_NO_RECV);
		break;
	case RECV_PROT:
	case RECV_OP:
	case RECV_INV:
		fail_recv(qp, outcome);
		uroce_qp_error(qp, -1);
		break;
	case SOURCE:
		local->source_failed = true;
		break;
	default:
		break;
	}
}

/* ---- requests ---- */

/* Is this packet the right part of a message now, and of the right length? */
static enum outcome check_sequence(struct uroce_qp *qp,
				   const struct uroce_pkt *pkt, bool local)
{
	u32 flags = uroce_pkt_flags(pkt);
	u32 kind = flags & (UROCE_F_SEND | UROCE_F_WRITE);
	bool first = flags & UROCE_F_FIRST, last = flags & UROCE_F_LAST;
	u32 mtu = qp->attr.mtu;

	if (first ? qp->resp.in_message : qp->resp.in_message != kind)
		return INV_REQ;
	if (!kind || local)
		return OK;
	if (!last)
		return pkt->payload_len == mtu ? OK : INV_REQ;
	if (pkt->payload_len > mtu || (!first && !pkt->payload_len))
		return INV_REQ;
	return OK;
}

static enum outcome place_send(struct uroce_qp *qp, const struct uroce_pkt *pkt,
			       struct uroce_payload *payload)
{
	struct uroce_resp *resp = &qp->resp;
	enum outcome out = get_wqe(qp);
	int err;

	if (out)
		return out;
	if (uroce_pkt_flags(pkt) & UROCE_F_FIRST) {
		resp->received = 0;
		uroce_sgl_seek(&resp->sgl, 0);
	}
	if ((u64)resp->received + pkt->payload_len > resp->wqe_len)
		return RECV_LEN;

	err = uroce_payload_to_sgl(payload, &resp->sgl);
	if (err)
		return payload->sgl && payload->sgl->failed ? SOURCE : RECV_PROT;
	resp->received += pkt->payload_len;

	/* the message has been placed; what it came through may go now */
	if (uroce_pkt_flags(pkt) & UROCE_F_IETH &&
	    uroce_key_invalidate(&qp->bearer, pkt->inv_rkey))
		return RECV_INV;
	return OK;
}

/* Does the key of a WRITE or READ request open all that it asks for? */
static bool range_ok(struct uroce_qp *qp, const struct uroce_pkt *pkt,
		     int access)
{
	struct uroce_grant grant;

	if (!pkt->dma_len)
		return true;
	if (!uroce_key_get(&qp->bearer, pkt->rkey, pkt->va, pkt->dma_len,
			   access, &grant))
		return false;
	uroce_key_put(&grant);
	return true;
}

/* First packet of a WRITE: the whole range is checked before any byte. */
static enum outcome start_write(struct uroce_qp *qp,
				const struct uroce_pkt *pkt)
{
	struct uroce_resp *resp = &qp->resp;

	if (!(qp->attr.access & IB_ACCESS_REMOTE_WRITE) ||
	    pkt->dma_len > UROCE_MAX_MSG)
		return INV_REQ;
	if (!range_ok(qp, pkt, IB_ACCESS_REMOTE_WRITE))
		return REM_ACCESS;
	resp->va = pkt->va;
	resp->rkey = pkt->rkey;
	resp->left = pkt->dma_len;
	resp->received = 0;
	return OK;
}

static enum outcome place_write(struct uroce_qp *qp,
				const struct uroce_pkt *pkt,
				struct uroce_payload *payload)
{
	u32 flags = uroce_pkt_flags(pkt);
	struct uroce_resp *resp = &qp->resp;
	enum outcome out = OK;
	int err;

	/* an immediate needs a receive WQE; ask before anything is done */
	if (flags & UROCE_F_IMM)
		out = get_wqe(qp);
	if (!out && flags & UROCE_F_FIRST)
		out = start_write(qp, pkt);
	if (out)
		return out;
	if (pkt->payload_len > resp->left ||
	    (flags & UROCE_F_LAST && pkt->payload_len != resp->left))
		return INV_REQ;

	if (pkt->payload_len) {
		err = uroce_payload_to_mr(payload, &qp->bearer, resp->rkey,
					  resp->va);
		if (err)
			return err == -EACCES ? REM_ACCESS : SOURCE;
	}
	resp->va += pkt->payload_len;
	resp->left -= pkt->payload_len;
	resp->received += pkt->payload_len;
	return OK;
}

/* Room to remember a READ or atomic; the oldest goes. */
static struct uroce_rd_res *new_res(struct uroce_qp *qp,
				    const struct uroce_pkt *pkt)
{
	struct uroce_resp *resp = &qp->resp;
	struct uroce_rd_res *res = &resp->res[resp->res_next];

	resp->res_next = (resp->res_next + 1) % resp->res_num;
	memset(res, 0, sizeof(*res));
	res->kind = uroce_pkt_flags(pkt) &
		    (UROCE_F_READ | UROCE_F_ATOMIC | UROCE_F_ATOMIC_WRITE);
	res->first_psn = pkt->psn;
	res->num_psn = 1;
	res->rkey = pkt->rkey;
	res->va = pkt->va;
	return res;
}

static const struct uroce_rd_res *find_res(struct uroce_qp *qp, u32 psn)
{
	u32 num = qp->resp.res_num, i;

	/* the newest first: PSNs come round */
	for (i = 1; i <= num; i++) {
		const struct uroce_rd_res *res =
			&qp->resp.res[(qp->resp.res_next + num - i) % num];

		if (uroce_psn_in(psn, res->first_psn, res->num_psn))
			return res;
	}
	return NULL;
}

static enum outcome start_read(struct uroce_qp *qp, const struct uroce_pkt *pkt,
			       struct uroce_local *local)
{
	struct uroce_rd_res *res;
	int err;

	if (!(qp->attr.access & IB_ACCESS_REMOTE_READ) || !qp->resp.res_num ||
	    pkt->dma_len > UROCE_MAX_MSG)
		return INV_REQ;
	if (!range_ok(qp, pkt, IB_ACCESS_REMOTE_READ))
		return REM_ACCESS;
	if (local) {
		err = pkt->dma_len ?
		      uroce_mr_to_sgl(&qp->bearer, pkt->rkey, pkt->va,
				      local->sink, pkt->dma_len) : 0;
		if (err)
			return err == -EACCES ? REM_ACCESS : SOURCE;
		return OK;
	}

	res = new_res(qp, pkt);
	res->len = pkt->dma_len;
	res->num_psn = uroce_read_psns(qp, pkt->dma_len);
	uroce_reply_read(qp, pkt, false);
	return OK;
}

static enum outcome do_atomic(struct uroce_qp *qp, const struct uroce_pkt *pkt,
			      struct uroce_local *local)
{
	bool cas = uroce_pkt_op(pkt) == UROCE_OP_CMP_SWAP;
	struct uroce_rd_res *res;
	struct uroce_grant grant;
	enum outcome out = OK;
	u64 run, orig = 0;
	atomic64_t *p;

	if (!(qp->attr.access & IB_ACCESS_REMOTE_ATOMIC) || !qp->resp.res_num ||
	    pkt->va & 7)
		return INV_REQ;
	if (!uroce_key_get(&qp->bearer, pkt->rkey, pkt->va, sizeof(u64),
			   IB_ACCESS_REMOTE_ATOMIC, &grant))
		return REM_ACCESS;

	/* an address space shifted by an odd number of bytes */
	p = uroce_mr_span(grant.mr, grant.offset, &run);
	if ((uintptr_t)p & 7)
		out = INV_REQ;
	else if (cas)
		orig = atomic64_cmpxchg(p, pkt->compare, pkt->swap_add);
	else
		orig = atomic64_fetch_add(pkt->swap_add, p);
	uroce_key_put(&grant);
	if (out)
		return out;

	if (local) {
		local->orig = orig;
		return OK;
	}
	/* kept, so that a repeated request gets the same answer (9.4.5) */
	res = new_res(qp, pkt);
	res->orig = orig;
	return OK;
}

/* Eight bytes that appear at once (IBTA 9.4.7) */
static enum outcome do_atomic_write(struct uroce_qp *qp,
				    const struct uroce_pkt *pkt,
				    struct uroce_payload *payload,
				    bool local)
{
	struct uroce_grant grant;
	enum outcome out = OK;
	u64 run, value, *p;

	if (!(qp->attr.access & IB_ACCESS_REMOTE_WRITE) || !qp->resp.res_num ||
	    pkt->va & 7 || pkt->dma_len != sizeof(value) ||
	    pkt->payload_len != sizeof(value) ||
	    uroce_payload_to_buf(payload, &value))
		return INV_REQ;
	if (!uroce_key_get(&qp->bearer, pkt->rkey, pkt->va, sizeof(value),
			   IB_ACCESS_REMOTE_WRITE, &grant))
		return REM_ACCESS;

	p = uroce_mr_span(grant.mr, grant.offset, &run);
	if ((uintptr_t)p & 7)	/* an address space shifted by an odd number */
		out = INV_REQ;
	else
		smp_store_release(p, value);	/* what came before is seen before it */
	uroce_key_put(&grant);

	if (!out && !local)
		new_res(qp, pkt);
	return out;
}

static enum outcome execute(struct uroce_qp *qp, const struct uroce_pkt *pkt,
			    struct uroce_payload *payload,
			    struct uroce_local *local)
{
	u32 flags = uroce_pkt_flags(pkt);

	switch (flags & UROCE_F_REQUEST) {
	case UROCE_F_SEND:
		return place_send(qp, pkt, payload);
	case UROCE_F_WRITE:
		return place_write(qp, pkt, payload);
	case UROCE_F_READ:
		return start_read(qp, pkt, local);
	case UROCE_F_ATOMIC_WRITE:
		return do_atomic_write(qp, pkt, payload, local);
	case UROCE_F_ATOMIC:
		return do_atomic(qp, pkt, local);
	default:	/* cannot be: the opcode was checked */
		return INV_REQ;
	}
}

/* Expect what comes behind the request. */
static void advance(struct uroce_qp *qp, const struct uroce_pkt *pkt,
		    const struct uroce_local *local)
{
	u32 psns = 1;

	if (local)
		psns = local->num_psn;
	else if (uroce_pkt_flags(pkt) & UROCE_F_READ)
		psns = uroce_read_psns(qp, pkt->dma_len);
	qp->resp.epsn = uroce_psn_add(qp->resp.epsn, psns);
}

/* The request is carried out: another message, or the next part of this one? */
static void finish_part(struct uroce_qp *qp, const struct uroce_pkt *pkt)
{
	u32 flags = uroce_pkt_flags(pkt);
	struct uroce_resp *resp = &qp->resp;

	resp->in_message = 0;
	if (!(flags & UROCE_F_LAST)) {
		resp->in_message = flags & (UROCE_F_SEND | UROCE_F_WRITE);
	} else {
		resp->msn = uroce_psn_add(resp->msn, 1);
		if (flags & UROCE_F_SEND || flags & UROCE_F_IMM)
			complete_message(qp, pkt);
	}
}

/* The request is done: advance, complete, acknowledge. */
static void finish(struct uroce_qp *qp, const struct uroce_pkt *pkt,
		   struct uroce_local *local)
{
	u32 flags = uroce_pkt_flags(pkt);

	advance(qp, pkt, local);
	finish_part(qp, pkt);

	if (local) {
		answer_ok(qp, local, pkt->psn);
		return;
	}
	switch (flags & UROCE_F_REQUEST) {
	case UROCE_F_READ:	/* its responses are under way */
		break;
	case UROCE_F_ATOMIC:
		uroce_reply_atomic(qp, pkt->psn, find_res(qp, pkt->psn)->orig);
		break;
	case UROCE_F_ATOMIC_WRITE:
		uroce_reply_atomic_write(qp, pkt->psn);
		break;
	default:
		if (pkt->ack_req)
			answer_ok(qp, NULL, pkt->psn);
		break;
	}
}

/* ---- duplicates ---- */

/* A READ may ask again for the rest of what it asked for, nothing else. */
static bool read_again_ok(struct uroce_qp *qp, const struct uroce_rd_res *res,
			  const struct uroce_pkt *pkt)
{
	u32 skip = uroce_psn_dist(pkt->psn, res->first_psn) * qp->attr.mtu;

	return pkt->rkey == res->rkey && skip <= res->len &&
	       pkt->va == res->va + skip && pkt->dma_len <= res->len - skip;
}

/*
 * The PSN to acknowledge with: of the newest request done, but none that READ
 * responses or an atomic's still have to answer, as far as duplicate @pkt tells.
 */
static u32 psn_done(struct uroce_qp *qp, const struct uroce_pkt *pkt)
{
	u32 psn = uroce_psn_add(qp->resp.epsn, -1);
	const struct uroce_rd_res *res;

	while ((res = find_res(qp, psn)) &&
	       uroce_psn_diff(res->first_psn, pkt->psn) > 0)
		psn = uroce_psn_add(res->first_psn, -1);
	return psn;
}

static void duplicate(struct uroce_qp *qp, const struct uroce_pkt *pkt)
{
	u32 flags = uroce_pkt_flags(pkt);
	const struct uroce_rd_res *res;

	uroce_count(qp->dev, UROCE_CNT_DUPLICATE_REQUEST);
	if (flags & (UROCE_F_SEND | UROCE_F_WRITE)) {
		answer_ok(qp, NULL, psn_done(qp, pkt));
		return;
	}

	/* too old to be remembered, or not the same request: drop */
	res = find_res(qp, pkt->psn);
	if (!res || !(flags & res->kind))
		return;
	switch (res->kind) {
	case UROCE_F_READ:
		if (read_again_ok(qp, res, pkt))
			uroce_reply_read(qp, pkt, true);
		break;
	case UROCE_F_ATOMIC:
		uroce_reply_atomic(qp, pkt->psn, res->orig);
		break;
	case UROCE_F_ATOMIC_WRITE:
		uroce_reply_atomic_write(qp, pkt->psn);
		break;
	}
}

static enum outcome check_and_execute(struct uroce_qp *qp,
				      const struct uroce_pkt *pkt,
				      struct uroce_payload *payload,
				      struct uroce_local *local)
{
	enum outcome out;

	if (!qp->resp.comm_est && uroce_qp_state(qp) == IB_QPS_RTR) {
		qp->resp.comm_est = true;
		uroce_qp_event(qp, IB_EVENT_COMM_EST);
	}
	out = check_sequence(qp, pkt, local);
	return out ? out : execute(qp, pkt, payload, local);
}

/* XRC: a message does not change over to another SRQ on its way. */
static bool enter_srq(struct uroce_qp *qp, const struct uroce_pkt *pkt)
{
	struct uroce_resp *resp = &qp->resp;

	if (qp->xrcd && resp->msg_srqn != pkt->srqn) {
		if (resp->in_message)
			return false;
		/* taken for a message that its sender could not even begin */
		uroce_recv_give_back(qp);
		resp->msg_srqn = pkt->srqn;
	}
	return uroce_recv_enter(qp, pkt->srqn);
}

static void reliable_request(struct uroce_qp *qp, const struct uroce_pkt *pkt,
			     struct uroce_payload *payload,
			     struct uroce_local *local)
{
	s32 ahead = uroce_psn_diff(pkt->psn, qp->resp.epsn);
	enum outcome out;

	if (ahead < 0) {
		duplicate(qp, pkt);
		return;
	}
	if (ahead > 0) {
		uroce_count(qp->dev, UROCE_CNT_OUT_OF_SEQUENCE);
		if (!qp->resp.nak_sent)
			uroce_reply_ack(qp, UROCE_AETH_NAK | UROCE_NAK_SEQ,
					qp->resp.epsn);
		qp->resp.nak_sent = true;
		return;
	}

	qp->resp.nak_sent = false;
	rcu_read_lock();
	if (!enter_srq(qp, pkt))
		out = INV_REQ;
	else
		out = check_and_execute(qp, pkt, payload, local);
	if (out)
		fail(qp, local, out);
	else
		finish(qp, pkt, local);
	uroce_recv_leave(qp);
	rcu_read_unlock();
}

/*
 * UC (IBTA 9.8.2.2): a message that has lost a part is dropped, what is left of
 * it, too; any packet that begins a message begins anew. What was placed of a
 * broken one stays, a receive WQE waits for the next.
 */
static void unreliable_request(struct uroce_qp *qp, const struct uroce_pkt *pkt,
			       struct uroce_payload *payload,
			       struct uroce_local *local)
{
	struct uroce_resp *resp = &qp->resp;
	enum outcome out;

	if (pkt->psn != resp->epsn) {
		uroce_count(qp->dev, UROCE_CNT_OUT_OF_SEQUENCE);
		resp->epsn = pkt->psn;
		resp->in_message = 0;
	}
	advance(qp, pkt, local);
	if (local)	/* it arrived; what became of it is not told */
		answer_ok(qp, local, pkt->psn);

	if (uroce_pkt_flags(pkt) & UROCE_F_FIRST) {
		resp->in_message = 0;
	} else if (!resp->in_message) {
		uroce_count(qp->dev, UROCE_CNT_DROP_BROKEN);
		if (local)
			local->dropped = true;
		return;
	}
	out = check_and_execute(qp, pkt, payload, local);
	if (!out) {
		finish_part(qp, pkt);
		return;
	}
	resp->in_message = 0;
	if (local && out != SOURCE)
		local->dropped = true;
	fail_unreliable(qp, local, out);
}

void uroce_resp_request(struct uroce_qp *qp, const struct uroce_pkt *pkt,
			struct uroce_payload *payload,
			struct uroce_local *local)
{
	uroce_qp_assert_owned(qp, UROCE_RECV);

	if (uroce_qp_is_reliable(qp))
		reliable_request(qp, pkt, payload, local);
	else
		unreliable_request(qp, pkt, payload, local);
}

/* ---- datagrams ---- */

/* What a receiver of a datagram finds in the first 40 bytes (annex 17.4.5) */
static void make_grh(const struct sk_buff *skb, u8 *grh)
{
	if (ip_hdr(skb)->version == 6) {
		memcpy(grh, ipv6_hdr(skb), UROCE_GRH_LEN);
		return;
	}
	memset(grh, 0, UROCE_GRH_LEN - sizeof(struct iphdr));
	memcpy(grh + UROCE_GRH_LEN - sizeof(struct iphdr), ip_hdr(skb),
	       sizeof(struct iphdr));
}

static enum outcome place_datagram(struct uroce_qp *qp,
				   const struct uroce_pkt *pkt,
				   const struct sk_buff *skb,
				   struct uroce_payload *payload)
{
	struct uroce_resp *resp = &qp->resp;
	enum outcome out = get_wqe(qp);
	u8 grh[UROCE_GRH_LEN];

	if (out)
		return out;
	if (UROCE_GRH_LEN + pkt->payload_len > resp->wqe_len)
		return RECV_LEN;
	make_grh(skb, grh);
	if (uroce_sgl_write(&resp->sgl, grh, sizeof(grh)) ||
	    uroce_payload_to_sgl(payload, &resp->sgl))
		return RECV_PROT;
	return OK;
}

void uroce_resp_datagram(struct uroce_qp *qp, const struct uroce_pkt *pkt,
			 struct sk_buff *skb, struct uroce_payload *payload)
{
	struct uroce_cqe cqe = {
		.byte_len = UROCE_GRH_LEN + pkt->payload_len,
		.opcode = IB_WC_RECV,
		.wc_flags = UROCE_WC_GRH,
		.src_qp = pkt->src_qp,
	};
	enum outcome out;

	uroce_qp_assert_owned(qp, UROCE_RECV);

	if (pkt->qkey != qp->attr.qkey) {
		uroce_count(qp->dev, UROCE_CNT_DROP_QKEY);
		return;
	}
	out = place_datagram(qp, pkt, skb, payload);
	if (out) {
		fail_unreliable(qp, NULL, out);
		return;
	}
	if (uroce_pkt_flags(pkt) & UROCE_F_IMM) {
		cqe.imm_data = pkt->imm;
		cqe.wc_flags |= UROCE_WC_WITH_IMM;
	}
	if (skb_vlan_tag_present(skb))
		uroce_cqe_set_vlan(&cqe, skb_vlan_tag_get_id(skb));
	uroce_recv_complete(qp, &cqe, pkt->solicited);
}

/* ---- errors ---- */

bool uroce_resp_flush(struct uroce_qp *qp, int *budget)
{
	uroce_qp_assert_owned(qp, UROCE_RECV);

	/* ordering pair 2 of the ABI: from now on a post kicks */
	WRITE_ONCE(qp->ctrl->rq_need_kick, 1);
	smp_mb();	/* before the look at rq_tail in uroce_recv_get() */

	skb_queue_purge(&qp->rxq[UROCE_RECV]);
	qp->resp.reply.active = false;
	return uroce_recv_flush(qp, budget);
}
