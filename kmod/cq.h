/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion queues. The kernel writes CQEs into the shared ring and never
 * reads them back, except for kernel consumers, whose ring nobody maps.
 */
#ifndef UROCE_CQ_H
#define UROCE_CQ_H

#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>
#include "region.h"
#include "uapi/uroce-abi.h"

struct uroce_cq {
	struct ib_cq ib;		/* first: allocated by the core */
	struct uroce_region *region;
	struct uroce_cq_ctrl *ctrl;	/* shared */
	struct uroce_cqe *ring;		/* shared */
	u32 entries;			/* power of two */
	u32 shift;			/* log2 of it */
	bool user;

	spinlock_t lock;		/* everything below; leaf lock, irqsave */
	u32 pi;				/* next slot to write */
	u32 ci;				/* consumer: last seen (user), or ours */
	bool overflow;			/* final */
	bool news;			/* CQEs since the last notify */
	bool news_solicited;		/* a solicited or failed one among them */
	u32 fired;			/* user: value of arm last fired for */
	u32 armed;			/* kernel consumer: UROCE_ARM_* or 0 */
};

static inline struct uroce_cq *to_ucq(struct ib_cq *ib)
{
	return container_of(ib, struct uroce_cq, ib);
}

/*
 * Write one CQE (owner and timestamp are filled in here). @ibqp: for
 * ib_wc.qp of kernel consumers. Any context.
 * -ENOSPC: the ring is full; the CQ is in error for good and its event
 * handler has been told.
 */
int uroce_cq_post(struct uroce_cq *cq, const struct uroce_cqe *cqe,
		  struct ib_qp *ibqp, bool solicited);

/* For kernel consumers: the VLAN that a datagram's destination is in */
void uroce_cqe_set_vlan(struct uroce_cqe *cqe, u16 id);

/*
 * After a batch of posts: raise the completion event if the consumer armed
 * for one of them. Any context, no locks of ours held.
 */
void uroce_cq_notify(struct uroce_cq *cq);

/*
 * For kernel consumers: take the CQEs of a QP that is being destroyed back, as
 * they would lead to it. Nothing is posted for it any more. A process's
 * provider does this by itself.
 */
void uroce_cq_forget(struct uroce_cq *cq, const struct ib_qp *ibqp);

/*
 * For kernel consumers that have the core call them from a workqueue: wait for
 * a call that is running. Sleeps; not for callers inside such a call.
 */
void uroce_cq_flush_handler(struct uroce_cq *cq);

int uroce_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    uroce_create_cq_arg *arg);
int uroce_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int uroce_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
int uroce_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);

#endif
