// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completer; see comp.h. */
#include "comp.h"
#include "local_msg.h"
#include "opcode.h"
#include "psn.h"
#include "timer.h"
#include "wire.h"

/* ---- completions ---- */

static void complete_head(struct uroce_qp *qp, struct uroce_swqe *swqe,
			  u8 status, u32 vendor_err)
{
	bool signalled = qp->sig_all || swqe->w.flags & UROCE_SEND_SIGNALED;
	struct uroce_cqe cqe = {
		.wr_id = swqe->w.wr_id,
		.qpn = qp->qpn,
		.byte_len = swqe->length,
		.status = status,
		.opcode = swqe->wc_opcode,
		.vendor_err = vendor_err,
		.wqe_index = qp->comp.head,
		.queue = UROCE_CQE_SQ,
	};

	/* a kernel consumer may fill the slot again; pairs with kpost */
	smp_store_release(&qp->comp.head, qp->comp.head + 1);
	if (!status && !signalled)
		return;
	if (status)
		uroce_count(qp->dev, status == IB_WC_WR_FLUSH_ERR ?
			    UROCE_CNT_REQ_CQE_FLUSH_ERROR :
			    UROCE_CNT_REQ_CQE_ERROR);
	if (uroce_cq_post(qp->send_cq, &cqe, qp->ib, false))
		uroce_qp_error(qp, IB_EVENT_QP_FATAL);
}

/*
 * The oldest WQE that is not done; memory operations before it, which wait for
 * nothing but their turn, complete here. NULL: there is none.
 */
static struct uroce_swqe *oldest(struct uroce_qp *qp)
{
	struct uroce_comp *comp = &qp->comp;
	struct uroce_req *req = &qp->req;
	struct uroce_swqe *swqe;

	while (comp->head != req->fetched) {
		swqe = uroce_qp_swqe(qp, comp->head);
		if (swqe->memop != UROCE_MEMOP_DONE)
			return swqe;
		if (req->cur == comp->head)	/* it had gone back */
			req->cur++;
		complete_head(qp, swqe, IB_WC_SUCCESS, 0);
		/* a fence may have waited for this */
		if (comp->head != req->fetched)
			uroce_qp_mark(qp, UROCE_SEND, UROCE_WORK_TX);
	}
	return NULL;
}

/* The oldest WQE fails, and with it the QP. */
static void fail_head(struct uroce_qp *qp, u8 status, u32 vendor_err)
{
	struct uroce_swqe *swqe = oldest(qp);

	if (!swqe)
		return;
	/* first: whoever sees the completion may ask for the state */
	uroce_qp_send_error(qp);
	complete_head(qp, swqe, status, vendor_err);
}

/* ---- sequence ---- */

/* Packets sent and not acknowledged */
static u32 in_flight(const struct uroce_qp *qp)
{
	return uroce_psn_dist(qp->req.high_psn, qp->comp.una);
}

/* Send again from the oldest unacknowledged packet on. */
static void go_back(struct uroce_qp *qp)
{
	qp->req.psn = qp->comp.una;
	qp->req.cur = qp->comp.head;
	qp->req.rd_inflight = 0;
	qp->req.since_ack_req = 0;
	uroce_qp_mark(qp, UROCE_SEND, UROCE_WORK_TX);
}

/*
 * A loss was seen from a NAK or a gap: go back at once, but only once until
 * there is progress, since one loss shows in many packets.
 */
static void go_back_once(struct uroce_qp *qp)
{
	struct uroce_comp *comp = &qp->comp;

	if (comp->went_back_valid && comp->went_back == comp->una)
		return;
	comp->went_back = comp->una;
	comp->went_back_valid = true;
	go_back(qp);
}

static void progress(struct uroce_qp *qp)
{
	struct uroce_comp *comp = &qp->comp;
	struct uroce_req *req = &qp->req;

	comp->retry_left = qp->attr.retry_cnt;
	comp->rnr_left = qp->attr.rnr_retry;
	comp->went_back_valid = false;
	req->window = min_t(u32, req->window * 2, UROCE_WINDOW);
	/* what was going to be sent again has arrived after all */
	if (uroce_psn_diff(req->psn, comp->una) < 0) {
		req->psn = comp->una;
		req->cur = comp->head;
		req->rd_inflight = 0;
	}
	uroce_timer_ack_progress(qp, in_flight(qp) &&
				 req->pause != UROCE_PAUSE_RNR);
	uroce_qp_mark(qp, UROCE_SEND, UROCE_WORK_TX);
}

/*
 * Everything before PSN @upto has been received by the peer: retire it, as
 * far as no READ or atomic among it still lacks its response.
 * Return: false if one does.
 */
static bool advance(struct uroce_qp *qp, u32 upto)
{
	struct uroce_comp *comp = &qp->comp;
	u32 start = comp->una;
	bool all = true;

	while (comp->una != upto) {
		struct uroce_swqe *swqe = oldest(qp);
		u32 end;

		/* what has PSNs before @upto is among what was fetched */
		if (WARN_ON_ONCE(!swqe))
			break;
		end = uroce_psn_add(swqe->first_psn, swqe->num_psn);
		if (uroce_swqe_has_response(swqe)) {
			all = false;
			break;
		}
		if (uroce_psn_dist(end, comp->una) > uroce_psn_dist(upto, comp->una)) {
			comp->una = upto;
			break;
		}
		comp->una = end;
		complete_head(qp, swqe, IB_WC_SUCCESS, 0);
	}
	if (comp->una != start)
		progress(qp);
	return all;
}

/* Responses of READs or atomics before this packet are missing. */
static void implied_nak(struct uroce_qp *qp)
{
	uroce_count(qp->dev, UROCE_CNT_IMPLIED_NAK_SEQ_ERR);
	go_back_once(qp);
}

/* ---- acknowledgments ---- */

static void handle_rnr(struct uroce_qp *qp, u8 code)
{
	struct uroce_comp *comp = &qp->comp;

	if (qp->req.pause == UROCE_PAUSE_RNR)
		return;
	uroce_count(qp->dev, UROCE_CNT_RNR_NAK_RETRY_ERR);
	if (!comp->rnr_left) {
		fail_head(qp, IB_WC_RNR_RETRY_EXC_ERR, UROCE_AETH_RNR_NAK | code);
		return;
	}
	if (qp->attr.rnr_retry != 7)	/* 7: for ever */
		comp->rnr_left--;

	qp->req.pause = UROCE_PAUSE_RNR;
	uroce_timer_ack_progress(qp, false);
	uroce_timer_start(&qp->resume_timer, uroce_rnr_timer_ns(code));
}

static void handle_nak(struct uroce_qp *qp, u8 code)
{
	switch (code) {
	case UROCE_NAK_SEQ:
		uroce_count(qp->dev, UROCE_CNT_PACKET_SEQ_ERR);
		if (qp->req.pause != UROCE_PAUSE_RNR)
			go_back_once(qp);
		break;
	case UROCE_NAK_INV_REQ:
		uroce_count(qp->dev, UROCE_CNT_REQ_REMOTE_INVALID_REQUEST);
		fail_head(qp, IB_WC_REM_INV_REQ_ERR, UROCE_AETH_NAK | code);
		break;
	case UROCE_NAK_REM_ACCESS:
		uroce_count(qp->dev, UROCE_CNT_REQ_REMOTE_ACCESS_ERRORS);
		fail_head(qp, IB_WC_REM_ACCESS_ERR, UROCE_AETH_NAK | code);
		break;
	case UROCE_NAK_REM_OP:
		fail_head(qp, IB_WC_REM_OP_ERR, UROCE_AETH_NAK | code);
		break;
	}
}

/* Reserved kinds and codes mean nothing, not even that something arrived. */
static bool syndrome_is_known(u8 kind, u8 value)
{
	return kind == UROCE_AETH_ACK || kind == UROCE_AETH_RNR_NAK ||
	       (kind == UROCE_AETH_NAK && value <= UROCE_NAK_REM_OP);
}

static void handle_ack(struct uroce_qp *qp, const struct uroce_pkt *pkt)
{
	u8 kind = pkt->syndrome & UROCE_AETH_KIND_MASK;
	u8 value = pkt->syndrome & UROCE_AETH_VALUE_MASK;

	if (!syndrome_is_known(kind, value)) {
		uroce_count(qp->dev, UROCE_CNT_DROP_RESPONSE);
		return;
	}
	/* an ACK covers its own PSN, a NAK what is before it */
	if (!advance(qp, uroce_psn_add(pkt->psn, kind == UROCE_AETH_ACK))) {
		implied_nak(qp);
		return;
	}

	switch (kind) {
	case UROCE_AETH_ACK:
		break;
	case UROCE_AETH_RNR_NAK:
		handle_rnr(qp, value);
		break;
	case UROCE_AETH_NAK:
		handle_nak(qp, value);
		break;
	}
}

/* ---- responses with data ---- */

static int scatter(struct uroce_qp *qp, struct uroce_swqe *swqe, u32 offset,
		   struct uroce_payload *payload)
{
	struct uroce_sgl sgl;

	uroce_sgl_init(&sgl, qp->dev, qp->pd, &qp->fault[UROCE_SEND], swqe->sge,
		       swqe->w.num_sge);
	uroce_sgl_seek(&sgl, offset);
	return uroce_payload_to_sgl(payload, &sgl);
}

/* The WQE that a response with data must be for, or NULL */
static struct uroce_swqe *expect_data(struct uroce_qp *qp,
				      const struct uroce_pkt *pkt)
{
	struct uroce_swqe *swqe;

	/* data acknowledges all that was posted before it */
	advance(qp, pkt->psn);
	if (qp->comp.una != pkt->psn) {
		implied_nak(qp);
		return NULL;
	}
	swqe = oldest(qp);
	if (swqe && (uroce_pkt_flags(pkt) & UROCE_F_READ_RESP ?
		     !uroce_swqe_is_atomic(swqe) && uroce_swqe_has_response(swqe) :
		     uroce_swqe_is_atomic(swqe)))
		return swqe;
	uroce_count(qp->dev, UROCE_CNT_DROP_RESPONSE);
	return NULL;
}

static void rd_done(struct uroce_qp *qp)
{
	/* 0 when it was asked for before the requester went back */
	if (qp->req.rd_inflight)
		qp->req.rd_inflight--;
}

/*
 * Is the packet the part of a READ's responses that it must be at packet @n of
 * the message? Requests end where units end; they begin where units begin and
 * wherever the requester went back to.
 */
static bool read_part_ok(const struct uroce_pkt *pkt,
			 const struct uroce_swqe *swqe, u32 n)
{
	u32 flags = uroce_pkt_flags(pkt);
	bool at_end = n + 1 == uroce_read_unit_end(swqe, n);
	bool at_start = n % UROCE_READ_UNIT == 0;

	return !!(flags & UROCE_F_LAST) == at_end &&
	       (!at_start || flags & UROCE_F_FIRST);
}

/* A response that is one packet, and the last news of its WQE */
static void only_response_done(struct uroce_qp *qp, struct uroce_swqe *swqe,
			       const struct uroce_pkt *pkt)
{
	qp->comp.una = uroce_psn_add(pkt->psn, 1);
	rd_done(qp);
	complete_head(qp, swqe, IB_WC_SUCCESS, 0);
	progress(qp);
}

/* 0 or an error of uroce_payload_to_sgl() */
static int handle_read_response(struct uroce_qp *qp,
				const struct uroce_pkt *pkt,
				struct uroce_payload *payload)
{
	struct uroce_swqe *swqe = expect_data(qp, pkt);
	u32 mtu = qp->attr.mtu, n, offset;
	int err;

	if (!swqe)
		return 0;
	if (uroce_swqe_is_atomic_write(swqe)) {
		if (pkt->payload_len || !uroce_pkt_is_only(pkt))
			fail_head(qp, IB_WC_BAD_RESP_ERR, 0);
		else
			only_response_done(qp, swqe, pkt);
		return 0;
	}
	n = uroce_psn_dist(pkt->psn, swqe->first_psn);
	offset = n * mtu;
	if (pkt->payload_len != min(mtu, swqe->length - offset) ||
	    !read_part_ok(pkt, swqe, n)) {
		fail_head(qp, IB_WC_BAD_RESP_ERR, 0);
		return 0;
	}
	err = scatter(qp, swqe, offset, payload);
	if (err)
		return err;

	qp->comp.una = uroce_psn_add(pkt->psn, 1);
	if (n + 1 == uroce_read_unit_end(swqe, n))
		rd_done(qp);
	if (n + 1 == swqe->num_psn)
		complete_head(qp, swqe, IB_WC_SUCCESS, 0);
	progress(qp);
	return 0;
}

static int handle_atomic_ack(struct uroce_qp *qp, const struct uroce_pkt *pkt)
{
	struct uroce_swqe *swqe = expect_data(qp, pkt);
	u64 orig = pkt->orig;
	struct uroce_payload payload = { .buf = &orig, .len = sizeof(orig) };
	int err;

	if (!swqe)
		return 0;
	err = scatter(qp, swqe, 0, &payload);
	if (!err)
		only_response_done(qp, swqe, pkt);
	return err;
}

bool uroce_comp_packet(struct uroce_qp *qp, const struct uroce_pkt *pkt,
		       struct uroce_payload *payload)
{
	u32 flags = uroce_pkt_flags(pkt);
	int state = uroce_qp_state(qp), err = 0;

	uroce_qp_assert_owned(qp, UROCE_SEND);

	if (!uroce_state_sends(state) ||
	    uroce_psn_dist(pkt->psn, qp->comp.una) >= in_flight(qp)) {
		/* old news, or nothing we sent */
		uroce_count(qp->dev, UROCE_CNT_DROP_RESPONSE);
		return true;
	}

	if (flags & UROCE_F_READ_RESP)
		err = handle_read_response(qp, pkt, payload);
	else if (flags & UROCE_F_ATOMIC_ACK_ETH)
		err = handle_atomic_ack(qp, pkt);
	else
		handle_ack(qp, pkt);

	if (err == -EAGAIN)
		return false;
	if (err)
		fail_head(qp, IB_WC_LOC_PROT_ERR, 0);
	return true;
}

/* ---- local path ---- */

/* A piece arrived: as if it had been sent and acknowledged in one. */
static void local_done(struct uroce_qp *qp, struct uroce_swqe *swqe,
		       const struct uroce_local *local, bool last)
{
	struct uroce_req *req = &qp->req;

	req->psn = uroce_psn_add(req->psn, local->num_psn);
	req->high_psn = req->psn;
	qp->comp.una = req->psn;
	qp->comp.retry_left = qp->attr.retry_cnt;
	qp->comp.rnr_left = qp->attr.rnr_retry;
	/* of a packet that this host refused, and that was not sent again */
	uroce_timer_ack_progress(qp, false);
	if (last) {
		oldest(qp);	/* @swqe, once those before it are through */
		req->cur++;
		complete_head(qp, swqe, IB_WC_SUCCESS, 0);
	}
}

/*
 * The atomic has been carried out; store its result. -EAGAIN: not now;
 * it is for us as if the answer had been lost, and the request goes out again,
 * as a packet, which the peer knows for a duplicate.
 */
static int local_result(struct uroce_qp *qp, struct uroce_swqe *swqe,
			const struct uroce_local *local)
{
	u64 orig = local->orig;
	struct uroce_payload payload = { .buf = &orig, .len = sizeof(orig) };
	int err = scatter(qp, swqe, 0, &payload);

	if (err == -EAGAIN)
		qp->req.high_psn = uroce_psn_add(qp->req.psn, 1);
	return err;
}

void uroce_comp_local(struct uroce_qp *qp, struct uroce_swqe *swqe,
		      const struct uroce_local *local, bool last)
{
	u8 value = local->syndrome & UROCE_AETH_VALUE_MASK;
	int err = 0;

	uroce_qp_assert_owned(qp, UROCE_SEND);

	if (local->source_failed || !local->answered) {
		swqe->error = IB_WC_LOC_PROT_ERR;
		return;
	}

	switch (local->syndrome & UROCE_AETH_KIND_MASK) {
	case UROCE_AETH_ACK:
		if (uroce_swqe_is_atomic(swqe))
			err = local_result(qp, swqe, local);
		if (!err)
			local_done(qp, swqe, local, last);
		else if (err != -EAGAIN)
			swqe->error = IB_WC_LOC_PROT_ERR;
		break;
	case UROCE_AETH_RNR_NAK:
		handle_rnr(qp, value);
		break;
	default:
		handle_nak(qp, value);
		break;
	}
}

/* ---- timers ---- */

void uroce_comp_timeout(struct uroce_qp *qp)
{
	struct uroce_comp *comp = &qp->comp;
	int state = uroce_qp_state(qp);

	uroce_qp_assert_owned(qp, UROCE_SEND);

	if (!uroce_state_sends(state) || !comp->deadline)
		return;
	if (ktime_before(ktime_get(), comp->deadline)) {
		hrtimer_start(&qp->ack_timer, comp->deadline,
			      HRTIMER_MODE_ABS_SOFT);
		return;
	}

	comp->deadline = 0;
	/* this host holds back what the peer needs in order to answer */
	if (qp->req.pause == UROCE_PAUSE_LOCAL) {
		uroce_timer_ack_arm(qp);
		return;
	}
	uroce_count(qp->dev, UROCE_CNT_LOCAL_ACK_TIMEOUT_ERR);
	if (!comp->retry_left) {
		fail_head(qp, IB_WC_RETRY_EXC_ERR, 0);
		return;
	}
	comp->retry_left--;
	comp->went_back_valid = false;
	/*
	 * The peer or the way to it may just be slow. One packet is enough to
	 * find out; all of them again would make it slower still.
	 */
	qp->req.window = 1;
	go_back(qp);
}

void uroce_comp_resume(struct uroce_qp *qp)
{
	uroce_qp_assert_owned(qp, UROCE_SEND);

	/* the end of an earlier wait: the timer runs again */
	if (hrtimer_is_queued(&qp->resume_timer))
		return;
	/* after a local pause the refused packet is the next one anyway */
	if (qp->req.pause == UROCE_PAUSE_RNR)
		go_back(qp);
	qp->req.pause = UROCE_PAUSE_NONE;
}

/* ---- errors, draining ---- */

/* Unreliable: done when sent. */
static void retire_sent(struct uroce_qp *qp)
{
	qp->comp.una = qp->req.psn;
	while (qp->comp.head != qp->req.cur)
		complete_head(qp, uroce_qp_swqe(qp, qp->comp.head),
			      IB_WC_SUCCESS, 0);
}

void uroce_comp_settle(struct uroce_qp *qp)
{
	struct uroce_req *req = &qp->req;
	struct uroce_swqe *swqe;
	int state = uroce_qp_state(qp);

	uroce_qp_assert_owned(qp, UROCE_SEND);

	if (!uroce_state_sends(state))
		return;

	if (!uroce_qp_is_reliable(qp))
		retire_sent(qp);

	swqe = oldest(qp);
	if (swqe) {
		if (swqe->error)
			fail_head(qp, swqe->error, 0);
	} else if (req->ring_broken) {
		uroce_qp_error(qp, IB_EVENT_QP_FATAL);
	} else if (state == IB_QPS_SQD && req->draining) {
		req->draining = false;
		if (qp->attr.sqd_notify)
			uroce_qp_event(qp, IB_EVENT_SQ_DRAINED);
	}
}

bool uroce_comp_flush(struct uroce_qp *qp, int *budget)
{
	uroce_qp_assert_owned(qp, UROCE_SEND);

	qp->comp.deadline = 0;
	qp->req.pause = UROCE_PAUSE_NONE;
	while (qp->comp.head != qp->req.fetched) {
		complete_head(qp, uroce_qp_swqe(qp, qp->comp.head),
			      IB_WC_WR_FLUSH_ERR, 0);
		if (--*budget <= 0)
			return true;
	}
	return false;
}
