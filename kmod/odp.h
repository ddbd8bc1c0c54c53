/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * On-demand paging: regions whose pages are not pinned. They are brought in by
 * a fault (fault.h) or a prefetch, and taken away when the process' memory
 * changes: unmapped, swapped out, moved, copied on write after a fork.
 *
 * The core's umem has a table of the pages that are there. Copies read it
 * without a lock, as users of the region's key. Whoever takes pages away pauses
 * the key: it waits for the users there are and keeps new ones out.
 *
 * An implicit region is the whole address space; it grows tables for those
 * parts of it that are used, and keeps them.
 *
 * One at a time brings pages into a table: a page that takes long holds up the
 * other faults of its region, or of its 4 MiB of an implicit one.
 *
 * Lifetime
 *   A region's, but faults and prefetches, which sleep in the middle, hold
 *   references; deregistration revokes the key and waits for them.
 */
#ifndef UROCE_ODP_H
#define UROCE_ODP_H

#include <rdma/ib_umem_odp.h>
#include <rdma/ib_verbs.h>
#include "fault.h"
#include "ucontext.h"

struct uroce_odp;

/* For uroce_mr_span(): byte @offset of the region, or NULL */
void *uroce_odp_span(struct uroce_odp *odp, u64 offset, bool write,
		     u64 *contiguous);

/*
 * Bring in what a fault has noted, as far as its key is good for that. May
 * sleep for as long as the process' own access would. 0 or an error.
 */
int uroce_odp_fault(const struct uroce_fault *fault);

/* The key has been revoked for good. May sleep. */
void uroce_odp_release(struct uroce_odp *odp);

/*
 * @start 0 and @length U64_MAX: the whole address space. @uctx: of the process,
 * NULL for a kernel consumer.
 */
struct ib_mr *uroce_odp_reg(struct ib_pd *pd, u64 start, u64 length, u64 iova,
			    int access, struct uroce_ucontext *uctx);

/* ib_device operation */
int uroce_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice,
		    u32 flags, struct ib_sge *sg_list, u32 num_sge,
		    struct uverbs_attr_bundle *attrs);

#endif
