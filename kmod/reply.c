// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Reply packets; see reply.h. */
#include "net.h"
#include "opcode.h"
#include "psn.h"
#include "reply.h"
#include "timer.h"
#include "wire.h"

static struct sk_buff *reply_alloc(struct uroce_qp *qp, u8 opcode, u32 psn,
				   u8 syndrome, u32 payload)
{
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

static int reply_xmit(struct uroce_qp *qp, struct sk_buff *skb)
{
	struct uroce_flow flow = {
		.av = &qp->attr.av,
		.dst = &qp->dst,
		.sport = qp->attr.sport,
		.ip_id = atomic_inc_return(&qp->ip_id),
	};

	return uroce_net_xmit(qp->dev, &flow, skb);
}

void uroce_reply_ack(struct uroce_qp *qp, u8 syndrome, u32 psn)
{
	struct sk_buff *skb;

	uroce_qp_assert_owned(qp, UROCE_RECV);

	qp->resp.ack_due = false;
	skb = reply_alloc(qp, UROCE_OP_ACK, psn, syndrome, 0);
	/* lost or never sent is the same to the peer: it asks again */
	if (skb)
		reply_xmit(qp, skb);
}

void uroce_reply_ack_due(struct uroce_qp *qp)
{
	if (qp->resp.ack_due)
		uroce_reply_ack(qp, UROCE_ACK_OK,
				qp->resp.ack_psn);
}

void uroce_reply_atomic(struct uroce_qp *qp, u32 psn, u64 orig)
{
	struct uroce_atomic_ack_eth eth = { .orig = cpu_to_be64(orig) };
	struct sk_buff *skb;

	uroce_qp_assert_owned(qp, UROCE_RECV);

	/* it acknowledges what came before */
	qp->resp.ack_due = false;
	skb = reply_alloc(qp, UROCE_OP_ATOMIC_ACK, psn,
			  UROCE_ACK_OK, 0);
	if (!skb)
		return;
	memcpy(skb->data + sizeof(struct uroce_bth) + sizeof(struct uroce_aeth),
	       &eth, sizeof(eth));
	reply_xmit(qp, skb);
}

void uroce_reply_read(struct uroce_qp *qp, const struct uroce_pkt *pkt,
		      bool again)
{
	uroce_qp_assert_owned(qp, UROCE_RECV);

	/* the responses acknowledge what came before */
	qp->resp.ack_due = false;
	qp->resp.reply = (struct uroce_reply) {
		.active = true,
		.first = true,
		.again = again,
		.psn = pkt->psn,
		.va = pkt->va,
		.rkey = pkt->rkey,
		.left = pkt->dma_len,
	};
}

/*
 * The region went away under the READ. When that is asked for again, the peer
 * may have had the data already, and the owner of the region is free to take it
 * away: then the NAK is old news for the peer, and no error of the QP.
 */
static void reply_fail(struct uroce_qp *qp)
{
	qp->resp.reply.active = false;
	uroce_count(qp->dev, UROCE_CNT_RESP_REMOTE_ACCESS_ERRORS);
	uroce_reply_ack(qp, UROCE_AETH_NAK | UROCE_NAK_REM_ACCESS,
			qp->resp.reply.psn);
	if (!qp->resp.reply.again)
		uroce_qp_error(qp, IB_EVENT_QP_ACCESS_ERR);
}

/* Return 0, -EAGAIN to come back later, -EACCES when the region is gone */
static int reply_send_one(struct uroce_qp *qp)
{
	struct uroce_reply *r = &qp->resp.reply;
	u32 len = min(r->left, qp->attr.mtu);
	bool last = len == r->left;
	struct sk_buff *skb;
	u8 opcode;
	int err;

	opcode = uroce_opcode_part(UROCE_OP_READ_RESP_ONLY, r->first, last);
	skb = reply_alloc(qp, opcode, r->psn,
			  UROCE_ACK_OK, len);
	if (!skb)
		return -EAGAIN;
	if (len && uroce_mr_to_buf(&qp->bearer, r->rkey, r->va,
				   skb->data + uroce_opcodes[opcode].hdr_len,
				   len)) {
		kfree_skb(skb);
		return -EACCES;
	}
	err = reply_xmit(qp, skb);
	if (err == -EAGAIN)
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
		err = reply_send_one(qp);
		if (err == -EACCES) {
			reply_fail(qp);
			return false;
		}
		if (err) {
			uroce_timer_start(&qp->reply_timer, UROCE_BACKOFF_NS);
			return false;
		}
		if (--*budget <= 0 && qp->resp.reply.active)
			return true;
	}
	return false;
}
