/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets that wait for the owner of a direction.
 *
 * A peer, or a process of this host that talks to itself, can send faster than
 * requests are answered. So a queue is bounded in packets, and all queues of a
 * tenant, a user and a device in bytes, by what skbs really take. The only packet
 * of a queue is free: as a rule it is served at once.
 */
#ifndef UROCE_RXQ_H
#define UROCE_RXQ_H

#include "qp.h"

/* Append; false when there is no room: the skb stays the caller's. Softirq. */
bool __must_check uroce_rxq_put(struct uroce_qp *qp, enum uroce_dir dir,
				struct sk_buff *skb);
/* The first, or NULL. For the owner, as are the others. */
struct sk_buff *uroce_rxq_take(struct uroce_qp *qp, enum uroce_dir dir);
/* It comes first again, or is lost where there is no room for it to wait. */
void uroce_rxq_put_back(struct uroce_qp *qp, enum uroce_dir dir,
			struct sk_buff *skb);
/* The QP's state does not allow for them any more: drop and count them all. */
void uroce_rxq_purge(struct uroce_qp *qp, enum uroce_dir dir);

static inline bool uroce_rxq_empty(const struct uroce_qp *qp,
				   enum uroce_dir dir)
{
	return skb_queue_empty_lockless(&qp->rxq[dir]);
}

#endif
