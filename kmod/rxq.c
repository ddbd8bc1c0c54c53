// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Packets that wait; see rxq.h. */
#include <linux/mm.h>
#include "parse.h"
#include "rxq.h"

/* Packets waiting for one direction's owner */
#define QUEUE_PACKETS	512
/* Bytes waiting for QPs of one context */
#define CONTEXT_BYTES	(64L << 20)

/* Bytes waiting for QPs of one device */
static long device_bytes(void)
{
	return (long)totalram_pages() << PAGE_SHIFT >> 4;
}

static bool charge(atomic_long_t *bytes, long n, long limit)
{
	if (atomic_long_add_return(n, bytes) <= limit)
		return true;
	atomic_long_sub(n, bytes);
	return false;
}

static bool room_get(struct uroce_qp *qp, long n)
{
	if (!charge(&qp->dev->rx_bytes, n, device_bytes()))
		return false;
	if (!qp->uctx || charge(&qp->uctx->rx_bytes, n, CONTEXT_BYTES))
		return true;
	atomic_long_sub(n, &qp->dev->rx_bytes);
	return false;
}

static void room_take(struct uroce_qp *qp, long n)
{
	atomic_long_add(n, &qp->dev->rx_bytes);
	if (qp->uctx)
		atomic_long_add(n, &qp->uctx->rx_bytes);
}

static void room_put(struct uroce_qp *qp, long n)
{
	atomic_long_sub(n, &qp->dev->rx_bytes);
	if (qp->uctx)
		atomic_long_sub(n, &qp->uctx->rx_bytes);
}

bool uroce_rxq_put(struct uroce_qp *qp, enum uroce_dir dir, struct sk_buff *skb)
{
	struct uroce_pkt *pkt = (void *)skb->cb;
	u32 waiting = skb_queue_len_lockless(&qp->rxq[dir]);

	pkt->charged = waiting > 0;
	if (waiting >= QUEUE_PACKETS ||
	    (waiting && !room_get(qp, skb->truesize)))
		return false;
	skb_queue_tail(&qp->rxq[dir], skb);
	return true;
}

struct sk_buff *uroce_rxq_take(struct uroce_qp *qp, enum uroce_dir dir)
{
	struct sk_buff *skb = skb_dequeue(&qp->rxq[dir]);
	struct uroce_pkt *pkt;

	if (!skb)
		return NULL;
	pkt = (void *)skb->cb;
	if (pkt->charged)
		room_put(qp, skb->truesize);
	pkt->charged = 0;
	return skb;
}

void uroce_rxq_put_back(struct uroce_qp *qp, enum uroce_dir dir,
			struct sk_buff *skb)
{
	struct uroce_pkt *pkt = (void *)skb->cb;

	/* it may wait for long now, also the one that was free; never refused */
	if (!pkt->charged) {
		room_take(qp, skb->truesize);
		pkt->charged = 1;
	}
	skb_queue_head(&qp->rxq[dir], skb);
}

void uroce_rxq_purge(struct uroce_qp *qp, enum uroce_dir dir)
{
	struct sk_buff *skb;

	while ((skb = uroce_rxq_take(qp, dir))) {
		uroce_count(qp->dev, UROCE_CNT_DROP_QP_STATE);
		kfree_skb(skb);
	}
}
