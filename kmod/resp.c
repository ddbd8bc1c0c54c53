// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Responder; see resp.h. Rules: IBTA 9.7.4, 9.8 (requests), 9.9.3 (errors). */
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include "mr.h"
#include "opcode.h"
#include "psn.h"
#include "rd_res.h"
#include "recv.h"
#include "reply.h"
#include "resp.h"
#include "rxq.h"
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
	BROKEN,		/* UC: part of a message that has lost another */
	AGAIN,		/* memory is not there: a fault was noted, nothing done */
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
		/* the state first: whoever sees the completion may ask for it */
		uroce_qp_error(qp, -1);
		uroce_recv_fail(qp, IB_WC_LOC_LEN_ERR);
		answer(qp, local, UROCE_AETH_NAK | UROCE_NAK_INV_REQ, psn);
		return;
	case RECV_PROT:
	case RECV_OP:
	case RECV_INV:
		uroce_qp_error(qp, -1);
		fail_recv(qp, outcome);
		answer(qp, local, UROCE_AETH_NAK | UROCE_NAK_REM_OP, psn);
		return;
	case SOURCE:
		/* only a local requester; nothing happened to this side */
		local->source_failed = true;
		return;
	case OK:
	case BROKEN:	/* these do not come here */
	case AGAIN:
		return;
	}
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
		uroce_qp_error(qp, -1);
		fail_recv(qp, outcome);
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

/* On the receive WQE's list, which stays where it was if that has to be redone */
static enum outcome place_in_wqe(struct uroce_qp *qp,
				 struct uroce_payload *payload)
{
	struct uroce_sgl before = qp->resp.sgl;

	switch (uroce_payload_to_sgl(payload, &qp->resp.sgl)) {
	case 0:
		return OK;
	case -EAGAIN:
		qp->resp.sgl = before;
		return AGAIN;
	default:
		return payload->sgl && payload->sgl->failed ? SOURCE : RECV_PROT;
	}
}

static enum outcome place_send(struct uroce_qp *qp, const struct uroce_pkt *pkt,
			       struct uroce_payload *payload)
{
	struct uroce_resp *resp = &qp->resp;
	enum outcome out = get_wqe(qp);

	if (out)
		return out;
	if (uroce_pkt_flags(pkt) & UROCE_F_FIRST) {
		resp->received = 0;
		uroce_sgl_seek(&resp->sgl, 0);
	}
	if ((u64)resp->received + pkt->payload_len > resp->wqe_len)
		return RECV_LEN;

	out = place_in_wqe(qp, payload);
	if (out)
		return out;
	resp->received += pkt->payload_len;

	/* the message has been placed; what it came through may go now */
	if (uroce_pkt_flags(pkt) & UROCE_F_IETH &&
	    uroce_key_invalidate(&qp->bearer, pkt->inv_rkey))
		return RECV_INV;
	return OK;
}

/* What an error of the peer's key or of the memory behind it means */
static enum outcome key_error(int err)
{
	return err == -EAGAIN ? AGAIN : err == -EACCES ? REM_ACCESS : SOURCE;
}

/* Does the key of a WRITE or READ request open all that it asks for? */
static enum outcome check_range(struct uroce_qp *qp,
				const struct uroce_pkt *pkt, int access)
{
	struct uroce_grant grant;
	int err;

	if (!pkt->dma_len)
		return OK;
	err = uroce_key_get(&qp->bearer, pkt->rkey, pkt->va, pkt->dma_len,
			    access, &grant);
	if (err)
		return key_error(err);
	uroce_key_put(&grant);
	return OK;
}

/* First packet of a WRITE: the whole range is checked before any byte. */
static enum outcome start_write(struct uroce_qp *qp,
				const struct uroce_pkt *pkt)
{
	struct uroce_resp *resp = &qp->resp;
	enum outcome out;

	if (!(qp->attr.access & IB_ACCESS_REMOTE_WRITE) ||
	    pkt->dma_len > UROCE_MAX_MSG)
		return INV_REQ;
	out = check_range(qp, pkt, IB_ACCESS_REMOTE_WRITE);
	if (out)
		return out;
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
			return key_error(err);
	}
	resp->va += pkt->payload_len;
	resp->left -= pkt->payload_len;
	resp->received += pkt->payload_len;
	return OK;
}

static enum outcome start_read(struct uroce_qp *qp, const struct uroce_pkt *pkt,
			       struct uroce_local *local)
{
	struct uroce_rd_res *res;
	enum outcome out;
	int err;

	if (!(qp->attr.access & IB_ACCESS_REMOTE_READ) || !qp->resp.res_num ||
	    pkt->dma_len > UROCE_MAX_MSG)
		return INV_REQ;
	out = check_range(qp, pkt, IB_ACCESS_REMOTE_READ);
	if (out)
		return out;
	if (local) {
		err = pkt->dma_len ?
		      uroce_mr_to_sgl(&qp->bearer, pkt->rkey, pkt->va,
				      local->sink, pkt->dma_len) : 0;
		return err ? key_error(err) : OK;
	}

	res = uroce_rd_res_new(qp, pkt);
	res->len = pkt->dma_len;
	res->num_psn = uroce_read_psns(qp, pkt->dma_len);
	uroce_reply_read(qp, pkt, false);
	return OK;
}

/*
 * Open the eight bytes of an atomic: aligned in the address space of the key
 * and, which may be shifted by an odd number, in memory.
 */
static enum outcome open_word(struct uroce_qp *qp, const struct uroce_pkt *pkt,
			      int access, struct uroce_grant *grant, void **word)
{
	u64 run;
	int err;

	if (pkt->va & 7)
		return INV_REQ;
	err = uroce_key_get(&qp->bearer, pkt->rkey, pkt->va, sizeof(u64),
			    access, grant);
	if (err)
		return key_error(err);

	*word = uroce_mr_span(grant, 0, &run);
	if (*word && !((uintptr_t)*word & 7))
		return OK;
	err = *word ? 0 : uroce_fault_note_grant(grant);
	uroce_key_put(grant);
	return err ? key_error(err) : INV_REQ;
}

static enum outcome do_atomic(struct uroce_qp *qp, const struct uroce_pkt *pkt,
			      struct uroce_local *local)
{
	struct uroce_rd_res *res;
	struct uroce_grant grant;
	enum outcome out;
	void *word;
	u64 orig;

	if (!(qp->attr.access & IB_ACCESS_REMOTE_ATOMIC) || !qp->resp.res_num)
		return INV_REQ;
	out = open_word(qp, pkt, IB_ACCESS_REMOTE_ATOMIC, &grant, &word);
	if (out)
		return out;
	if (uroce_pkt_op(pkt) == UROCE_OP_CMP_SWAP)
		orig = atomic64_cmpxchg((atomic64_t *)word, pkt->compare,
					pkt->swap_add);
	else
		orig = atomic64_fetch_add(pkt->swap_add, (atomic64_t *)word);
	uroce_key_put(&grant);

	/* kept, so that a repeated request gets the same answer (9.4.5) */
	res = uroce_rd_res_new(qp, pkt);
	res->orig = orig;
	if (local)
		local->orig = orig;
	return OK;
}

/* Eight bytes that appear at once (IBTA 9.4.7) */
static enum outcome do_atomic_write(struct uroce_qp *qp,
				    const struct uroce_pkt *pkt,
				    struct uroce_payload *payload,
				    bool local)
{
	struct uroce_grant grant;
	enum outcome out;
	void *word;
	u64 value;

	if (!(qp->attr.access & IB_ACCESS_REMOTE_WRITE) || !qp->resp.res_num ||
	    pkt->dma_len != sizeof(value) ||
	    pkt->payload_len != sizeof(value) ||
	    uroce_payload_to_buf(payload, &value))
		return INV_REQ;
	out = open_word(qp, pkt, IB_ACCESS_REMOTE_WRITE, &grant, &word);
	if (out)
		return out;
	smp_store_release((u64 *)word, value);	/* seen after what came before */
	uroce_key_put(&grant);

	if (!local)
		uroce_rd_res_new(qp, pkt);
	return OK;
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
		uroce_reply_atomic(qp, pkt->psn, uroce_rd_res_find(qp, pkt->psn)->orig);
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

static void duplicate(struct uroce_qp *qp, const struct uroce_pkt *pkt)
{
	u32 flags = uroce_pkt_flags(pkt);
	const struct uroce_rd_res *res;

	uroce_count(qp->dev, UROCE_CNT_DUPLICATE_REQUEST);
	if (flags & (UROCE_F_SEND | UROCE_F_WRITE)) {
		answer_ok(qp, NULL, uroce_rd_res_done(qp, pkt->psn));
		return;
	}

	/* too old to be remembered, or not the same request: drop */
	res = uroce_rd_res_find(qp, pkt->psn);
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

/* False: to be repeated, see uroce_resp_request(). */
static bool reliable_request(struct uroce_qp *qp, const struct uroce_pkt *pkt,
			     struct uroce_payload *payload,
			     struct uroce_local *local)
{
	s32 ahead = uroce_psn_diff(pkt->psn, qp->resp.epsn);
	enum outcome out;

	if (ahead < 0) {
		duplicate(qp, pkt);
		return true;
	}
	if (ahead > 0) {
		uroce_count(qp->dev, UROCE_CNT_OUT_OF_SEQUENCE);
		if (!qp->resp.nak_sent)
			uroce_reply_ack(qp, UROCE_AETH_NAK | UROCE_NAK_SEQ,
					qp->resp.epsn);
		qp->resp.nak_sent = true;
		return true;
	}

	qp->resp.nak_sent = false;
	if (!enter_srq(qp, pkt))
		out = INV_REQ;
	else
		out = check_and_execute(qp, pkt, payload, local);
	if (!out)
		finish(qp, pkt, local);
	else if (out != AGAIN)
		fail(qp, local, out);
	uroce_recv_leave(qp);
	return out != AGAIN;
}

/*
 * UC (IBTA 9.8.2.2): a message that has lost a part is dropped, what is left of
 * it, too; any packet that begins a message begins anew. What was placed of a
 * broken one stays, a receive WQE waits for the next.
 */
static bool unreliable_request(struct uroce_qp *qp, const struct uroce_pkt *pkt,
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
	if (uroce_pkt_flags(pkt) & UROCE_F_FIRST) {
		resp->in_message = 0;
	} else if (!resp->in_message) {
		uroce_count(qp->dev, UROCE_CNT_DROP_BROKEN);
		out = BROKEN;
		goto arrived;
	}
	out = check_and_execute(qp, pkt, payload, local);
	if (out == AGAIN)
		return false;
	if (!out) {
		finish_part(qp, pkt);
	} else {
		resp->in_message = 0;
		fail_unreliable(qp, local, out);
	}
arrived:
	advance(qp, pkt, local);
	if (local) {	/* it arrived; what became of it is not told */
		answer_ok(qp, local, pkt->psn);
		local->dropped = out && out != SOURCE;
	}
	return true;
}

bool uroce_resp_request(struct uroce_qp *qp, const struct uroce_pkt *pkt,
			struct uroce_payload *payload,
			struct uroce_local *local)
{
	uroce_qp_assert_owned(qp, UROCE_RECV);

	if (uroce_qp_is_reliable(qp))
		return reliable_request(qp, pkt, payload, local);
	return unreliable_request(qp, pkt, payload, local);
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
	int err;

	if (out)
		return out;
	if (UROCE_GRH_LEN + pkt->payload_len > resp->wqe_len)
		return RECV_LEN;
	make_grh(skb, grh);
	uroce_sgl_seek(&resp->sgl, 0);
	err = uroce_sgl_write(&resp->sgl, grh, sizeof(grh));
	if (!err)
		err = uroce_payload_to_sgl(payload, &resp->sgl);
	return !err ? OK : err == -EAGAIN ? AGAIN : RECV_PROT;
}

bool uroce_resp_datagram(struct uroce_qp *qp, const struct uroce_pkt *pkt,
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
		return true;
	}
	out = place_datagram(qp, pkt, skb, payload);
	if (out == AGAIN)
		return false;
	if (out) {
		fail_unreliable(qp, NULL, out);
		return true;
	}
	if (uroce_pkt_flags(pkt) & UROCE_F_IMM) {
		cqe.imm_data = pkt->imm;
		cqe.wc_flags |= UROCE_WC_WITH_IMM;
	}
	/* where programs look for what the first 40 bytes are (17.4.5.1) */
	cqe.sl = UROCE_CQE_SL_UDP | (ip_hdr(skb)->version == 6 ?
				     UROCE_CQE_SL_IPV6 : UROCE_CQE_SL_IPV4);
	if (skb_vlan_tag_present(skb))
		uroce_cqe_set_vlan(&cqe, skb_vlan_tag_get_id(skb));
	uroce_recv_complete(qp, &cqe, pkt->solicited);
	return true;
}

/* ---- errors ---- */

bool uroce_resp_flush(struct uroce_qp *qp, int *budget)
{
	uroce_qp_assert_owned(qp, UROCE_RECV);

	/* ordering pair 2 of the ABI: from now on a post kicks */
	WRITE_ONCE(qp->ctrl->rq_need_kick, 1);
	smp_mb();	/* before the look at rq_tail in uroce_recv_get() */

	uroce_rxq_purge(qp, UROCE_RECV);
	qp->resp.reply.active = false;
	return uroce_recv_flush(qp, budget);
}
