/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared receive queues: WQEs for whichever QP a message comes to first.
 *
 * A message takes a WQE when it begins, in posting order: under the lock the
 * WQE is copied into the QP, and its slot comes free at once. What was taken is
 * the QP's, until it completes it, in whatever order among QPs.
 *
 * Lifetime: the core refuses to destroy an SRQ while a QP uses it. XRC SRQs are
 * used by no QP, but found by number and kept by a reference that lasts no longer
 * than one request; destroy waits for these.
 */
#ifndef UROCE_SRQ_H
#define UROCE_SRQ_H

#include <linux/completion.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>
#include "region.h"
#include "ring.h"
#include "tenant.h"

struct uroce_cq;
struct uroce_dev;
struct uroce_srq;
struct uroce_ucontext;

#define UROCE_SRQ_WQE_OFFSET	ALIGN(sizeof(struct uroce_srq_ctrl), 64)

/*
 * An XRC SRQ in dev->srqs. The core frees the SRQ as soon as it is destroyed;
 * this stays until nobody can be looking at it.
 */
struct uroce_srq_entry {
	struct uroce_srq *srq;		/* while there are references */
	refcount_t ref;			/* requests that use the SRQ, and itself */
	struct completion idle;		/* there are none */
	struct rcu_head rcu;
};

struct uroce_srq {
	struct ib_srq ib;		/* first: allocated by the core */
	struct uroce_cq *cq;		/* XRC: of its completions, else NULL */
	struct uroce_srq_entry *entry;	/* XRC */
	u32 number;			/* XRC: in dev->srqs */
	struct uroce_ucontext *uctx;	/* NULL: a kernel consumer's */
	spinlock_t post_lock;		/* kernel consumers' posts; leaf, irqsave */

	struct mutex resize_mutex;	/* the two below */
	struct uroce_region *next;	/* prepared, or NULL */
	u32 next_entries;

	/*
	 * The fields below, but for kernel consumers' posts: those keep their
	 * region for good. Leaf, BH disabled.
	 */
	spinlock_t lock;
	struct uroce_region *region;
	struct uroce_srq_ctrl *ctrl;	/* shared */
	struct uroce_ring ring;		/* shared; stride, max_sge: constant */
	u32 head;			/* index of the next WQE to be taken */
	u32 limit;			/* event when fewer WQEs are left; 0: off */
};

static inline struct uroce_srq *to_usrq(struct ib_srq *ib)
{
	return container_of(ib, struct uroce_srq, ib);
}

/* A domain of XRC SRQs and of the QPs that may be sent to for them */
struct uroce_xrcd {
	struct ib_xrcd ib;		/* first: allocated by the core */
	struct uroce_tenant tenant;	/* its targets have no context */
};

static inline struct uroce_xrcd *to_uxrcd(struct ib_xrcd *ib)
{
	return container_of(ib, struct uroce_xrcd, ib);
}

/*
 * The XRC SRQ of that number, if it belongs to @xrcd, with a reference; NULL: no
 * such SRQ. Any context; destroying the SRQ waits for uroce_srq_put().
 */
struct uroce_srq *uroce_srq_get(struct uroce_dev *dev, struct ib_xrcd *xrcd,
				u32 number);
void uroce_srq_put(struct uroce_srq *srq);

/*
 * Take the next WQE: a copy of it and of its elements, for which @sge has room
 * (UROCE_MAX_SGE). Raises the limit event. BH disabled, no locks of ours held.
 * -EAGAIN: there is none. -EINVAL: taken, but malformed.
 */
int uroce_srq_take(struct uroce_srq *srq, struct uroce_recv_wqe *wqe,
		   struct uroce_sge *sge);

/* A region for a ring of @entries slots; @uctx may be NULL. ERR_PTR. May sleep. */
struct uroce_region *uroce_srq_region_create(struct uroce_ucontext *uctx,
					     u32 entries, u32 stride);
/* Use it. Holds srq->lock, unless nobody else knows the SRQ. */
void uroce_srq_set_region(struct uroce_srq *srq, struct uroce_region *region,
			  u32 entries);

/*
 * A new limit, 0 for none; the caller holds srq->lock. true: fewer WQEs than that
 * are left already, and the caller raises the event when it holds no lock.
 */
bool uroce_srq_set_limit(struct uroce_srq *srq, u32 limit);
void uroce_srq_limit_event(struct uroce_srq *srq);

/* User SRQs; uapi has the protocol (srq_resize.c). May sleep. */
int uroce_resize_srq(struct uroce_srq *srq,
		     const struct uroce_resize_srq_req *req,
		     struct uroce_resize_srq_resp *resp);

int uroce_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		     struct ib_udata *udata);
int uroce_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		     enum ib_srq_attr_mask mask, struct ib_udata *udata);
int uroce_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int uroce_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int uroce_alloc_xrcd(struct ib_xrcd *xrcd, struct ib_udata *udata);
int uroce_dealloc_xrcd(struct ib_xrcd *xrcd, struct ib_udata *udata);

#endif
