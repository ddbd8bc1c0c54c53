/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* User contexts: ABI handshake, doorbell region, doorbell slots. */
#ifndef UROCE_UCONTEXT_H
#define UROCE_UCONTEXT_H

#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include "region.h"
#include "tenant.h"
#include "uapi/uroce-abi.h"

struct uroce_qp;

struct uroce_ucontext {
	struct ib_ucontext ib;		/* first: allocated by the core */
	struct uroce_region *db;	/* struct uroce_db_region */
	struct xarray slots;		/* doorbell slot -> struct uroce_qp, RCU */
	struct uroce_tenant tenant;
};

static inline struct uroce_ucontext *to_uctx(struct ib_ucontext *ib)
{
	return container_of(ib, struct uroce_ucontext, ib);
}

/* What a process needs to know to use the context */
void uroce_ucontext_describe(const struct uroce_ucontext *uctx,
			     struct uroce_alloc_ucontext_resp *resp);

int uroce_alloc_ucontext(struct ib_ucontext *ibuctx, struct ib_udata *udata);
int uroce_query_ucontext(struct ib_ucontext *ibuctx,
			 struct uverbs_attr_bundle *attrs);
void uroce_dealloc_ucontext(struct ib_ucontext *ibuctx);
void uroce_disassociate_ucontext(struct ib_ucontext *ibuctx);

/* Reserve a doorbell slot, then let kicks find @qp in it; may sleep. */
int uroce_slot_get(struct uroce_ucontext *uctx, u32 *slot);
void uroce_slot_set(struct uroce_ucontext *uctx, u32 slot, struct uroce_qp *qp);
void uroce_slot_put(struct uroce_ucontext *uctx, u32 slot);

/* Forget what was rung for @slot; before a kick looks at the queues. */
void uroce_slot_clear(struct uroce_ucontext *uctx, u32 slot);

#endif
