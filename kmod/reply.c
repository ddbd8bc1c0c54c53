// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Reply packets; see reply.h. */
#include "net.h"
#include "opcode.h"
#include "psn.h"
#include "recv.h"
#include "reply.h"
#include "timer.h"
#include "wire.h"

/* @op: enum uroce_op, without the service */
static struct sk_buff *reply_alloc(struct uroce_qp *qp, u8 op, u32 psn,
				   u8 syndrome, u32 payload)
{
	u8 opcode = qp->service | op;
	const struct uroce_opcode *row = &uroce_opcodes[opcode];
	u32 pad = uroce_pad(payload);
	struct uroce_aeth aeth;
	struct uroce_bth *bth;
	struct sk_buff *skb;

	skb = uroce_net_alloc(row->hdr_len + payload + pad);
	if (!skb)
		return NULL;

	bth = (void *)skb->data;
	uroce_bth_put(bth, opcode, pad, 0, qp->attr.dest_qpn, psn, 0);
	if (row->flags & UROCE_F_AETH) {
		aeth = uroce_aeth_make(syndrome, qp->resp.msn);
		memcpy(bth + 1, &aeth, sizeof(aeth));
	}
	memset(skb_tail_pointer(skb) - pad, 0, pad);
	return skb;
}

/* 0: it is on its way, or lost. -EAGAIN: this host refused it for now. */
static int reply_xmit(struct uroce_qp *qp, struct sk_buff *skb)
{
	struct uroce_flow flow = {
		.av = &qp->attr.av,
		.dst = &qp->dst,
		.sport = qp->attr.sport,
		.ip_id = atomic_inc_return(&qp->ip_id),
	};

	return uroce_backoff(&qp->resp.refused,
			     uroce_net_xmit(qp->dev, &flow, skb)) ? -EAGAIN : 0;
}

void uroce_reply_owe(struct uroce_qp *qp, u8 syndrome, u32 psn)
{
	uroce_qp_assert_owned(qp, UROCE_RECV);

	qp->resp.ack_due = true;
	qp->resp.ack_syndrome = syndrome;
	qp->resp.ack_psn = psn;
}

void uroce_reply_ack_due(struct uroce_qp *qp)
{
	struct uroce_resp *resp = &qp->resp;
	struct sk_buff *skb;

	uroce_qp_assert_owned(qp, UROCE_RECV);

	if (!resp->ack_due)
		return;
	skb = reply_alloc(qp, UROCE_OP_ACK, resp->ack_psn, resp->ack_syndrome, 0);
	if (!skb || reply_xmit(qp, skb))
		uroce_timer_start(&qp->reply_timer,
				  uroce_backoff_ns(qp->resp.refused));
	else
		resp->ack_due = false;
}

void uroce_reply_ack(struct uroce_qp *qp, u8 syndrome, u32 psn)
{
	uroce_reply_owe(qp, syndrome, psn);
	uroce_reply_ack_due(qp);
}

static void reply_start(struct uroce_qp *qp, const struct uroce_reply *reply)
{
	uroce_qp_assert_owned(qp, UROCE_RECV);

	/* the response acknowledges what came before */
	qp->resp.ack_due = false;
	qp->resp.reply = *reply;
	qp->resp.reply.active = true;
}

void uroce_reply_atomic(struct uroce_qp *qp, u32 psn, u64 orig)
{
	struct uroce_reply reply = {
		.atomic = true,
		.psn = psn,
		.orig = orig,
	};

	reply_start(qp, &reply);
}

void uroce_reply_read(struct uroce_qp *qp, const struct uroce_pkt *pkt,
		      bool again)
{
	struct uroce_reply reply = {
		.first = true,
		.again = again,
		.psn = pkt->psn,
		.va = pkt->va,
		.rkey = pkt->rkey,
		.srqn = pkt->srqn,
		.left = pkt->dma_len,
	};

	reply_start(qp, &reply);
}

void uroce_reply_atomic_write(struct uroce_qp *qp, u32 psn)
{
	struct uroce_reply reply = {
		.first = true,
		.psn = psn,
	};

	reply_start(qp, &reply);
}

/*
 * The region went away under the READ. When that is asked for again, the peer
 * may have had the data already, and the owner of the region is free to take it
 * away: then the NAK is old news for the peer, and no error of the QP.
 */
static void reply_fail(struct uroce_qp *qp)
{
	struct uroce_reply *r = &qp->resp.reply;

	r->active = false;
	uroce_reply_ack(qp, UROCE_AETH_NAK | UROCE_NAK_REM_ACCESS, r->psn);
	if (r->again)
		return;
	uroce_count(qp->dev, UROCE_CNT_RESP_REMOTE_ACCESS_ERRORS);
	uroce_qp_error(qp, IB_EVENT_QP_ACCESS_ERR);
}

/* Return 0 or -EAGAIN to come back later */
static int reply_send_atomic(struct uroce_qp *qp)
{
	struct uroce_reply *r = &qp->resp.reply;
	struct uroce_atomic_ack_eth eth = { .orig = cpu_to_be64(r->orig) };
	struct sk_buff *skb;

	skb = reply_alloc(qp, UROCE_OP_ATOMIC_ACK, r->psn, UROCE_ACK_OK, 0);
	if (!skb)
		return -EAGAIN;
	memcpy(skb->data + sizeof(struct uroce_bth) + sizeof(struct uroce_aeth),
	       &eth, sizeof(eth));
	if (reply_xmit(qp, skb))
		return -EAGAIN;
	r->active = false;
	return 0;
}

/* 0, -EACCES (of an XRC target the SRQ may be gone, too), -EAGAIN: a fault */
static int reply_copy(struct uroce_qp *qp, void *to, u32 len)
{
	struct uroce_reply *r = &qp->resp.reply;
	int err = -EACCES;

	if (!len)
		return 0;
	if (uroce_recv_enter(qp, r->srqn))
		err = uroce_mr_to_buf(&qp->bearer, r->rkey, r->va, to, len);
	uroce_recv_leave(qp);
	return err;
}

/*
 * Return 0, -EAGAIN to come back later, -EINPROGRESS to come back after a
 * fault, -EACCES when the region is gone
 */
static int reply_send_read(struct uroce_qp *qp)
{
	struct uroce_reply *r = &qp->resp.reply;
	u32 len = min(r->left, qp->attr.mtu);
	bool last = len == r->left;
	struct sk_buff *skb;
	u8 op;
	int err;

	op = uroce_opcode_part(UROCE_OP_READ_RESP_ONLY, r->first, last);
	skb = reply_alloc(qp, op, r->psn, UROCE_ACK_OK, len);
	if (!skb)
		return -EAGAIN;
	/* the responses of all services have the same headers */
	err = reply_copy(qp, skb->data + uroce_opcodes[op].hdr_len, len);
	if (err) {
		kfree_skb(skb);
		return err == -EAGAIN ? -EINPROGRESS : err;
	}
	err = reply_xmit(qp, skb);
	if (err)
		return err;

	r->psn = uroce_psn_add(r->psn, 1);
	r->va += len;
	r->left -= len;
	r->first = false;
	r->active = !last;
	return 0;
}

bool uroce_reply_run(struct uroce_qp *qp, int *budget)
{
	int err;

	uroce_qp_assert_owned(qp, UROCE_RECV);

	while (qp->resp.reply.active) {
		err = qp->resp.reply.atomic ? reply_send_atomic(qp) :
					      reply_send_read(qp);
		if (err == -EACCES) {
			reply_fail(qp);
			return false;
		}
		if (err == -EAGAIN)
			uroce_timer_start(&qp->reply_timer,
					  uroce_backoff_ns(qp->resp.refused));
		if (err)
			return false;
		if (--*budget <= 0 && qp->resp.reply.active)
			return true;
	}
	return false;
}
