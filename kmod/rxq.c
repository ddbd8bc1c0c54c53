// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Packets that wait; see rxq.h. */
#include <linux/mm.h>
#include "parse.h"
#include "rxq.h"
#include "tenant.h"

/* Packets waiting for one direction's owner */
#define QUEUE_PACKETS	512
/* Bytes waiting for QPs of one tenant */
#define TENANT_BYTES	(64L << 20)

/* Bytes waiting for QPs of one device; an eighth of it is for the kernel's only */
static long device_bytes(const struct uroce_qp *qp)
{
	long bytes = (long)totalram_pages() << PAGE_SHIFT >> 4;

	return uroce_qp_tenant(qp) ? bytes / 8 * 7 : bytes;
}

/*
 * May a tenant have @n more bytes, with which its queue has @queued and the
 * device @free? Nobody is sure to read them soon, so nobody gets all of it: a
 * user as much as is left for others then, a queue a quarter of what is left to
 * the tenant.
 */
static bool tenant_get(struct uroce_tenant *tenant, long n, long queued,
		       long free)
{
	long used;

	if (atomic_long_add_return(n, &tenant->user->rx_bytes) > free)
		goto err_user;
	used = atomic_long_add_return(n, &tenant->rx_bytes);
	if (queued > (TENANT_BYTES - used) / 4)
		goto err_tenant;
	return true;

err_tenant:
	atomic_long_sub(n, &tenant->rx_bytes);
err_user:
	atomic_long_sub(n, &tenant->user->rx_bytes);
	return false;
}

static bool room_get(struct uroce_qp *qp, long n, long queued)
{
	struct uroce_tenant *tenant = uroce_qp_tenant(qp);
	long free;

	free = device_bytes(qp) - atomic_long_add_return(n, &qp->dev->rx_bytes);
	if (free >= 0 && (!tenant || tenant_get(tenant, n, queued, free)))
		return true;
	atomic_long_sub(n, &qp->dev->rx_bytes);
	return false;
}

static void room_put(struct uroce_qp *qp, long n)
{
	struct uroce_tenant *tenant = uroce_qp_tenant(qp);

	atomic_long_sub(n, &qp->dev->rx_bytes);
	if (tenant) {
		atomic_long_sub(n, &tenant->rx_bytes);
		atomic_long_sub(n, &tenant->user->rx_bytes);
	}
}

bool uroce_rxq_put(struct uroce_qp *qp, enum uroce_dir dir, struct sk_buff *skb)
{
	struct uroce_pkt *pkt = (void *)skb->cb;
	u32 waiting = skb_queue_len_lockless(&qp->rxq[dir]);

	pkt->charged = waiting > 0;
	/* what others of the queue take is guessed from this one */
	if (waiting >= QUEUE_PACKETS ||
	    (waiting && !room_get(qp, skb->truesize,
				  (long)waiting * skb->truesize)))
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

	/* it may wait for long now, also the one that was free */
	if (!pkt->charged && !room_get(qp, skb->truesize, skb->truesize)) {
		uroce_count(qp->dev, UROCE_CNT_DROP_QUEUE_FULL);
		kfree_skb(skb);
		return;
	}
	pkt->charged = 1;
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
