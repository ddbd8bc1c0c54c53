/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Device memory: memory of the kernel's own that a process may map and
 * register, as fast as any other and not swapped.
 */
#ifndef UROCE_DM_H
#define UROCE_DM_H

#include <rdma/ib_verbs.h>
#include "region.h"

struct uroce_dm {
	struct ib_dm ib;
	struct uroce_region *region;
};

static inline struct uroce_dm *to_udm(struct ib_dm *ib)
{
	return container_of(ib, struct uroce_dm, ib);
}

/* ib_device operations */
struct ib_dm *uroce_alloc_dm(struct ib_device *ib, struct ib_ucontext *uctx,
			     struct ib_dm_alloc_attr *attr,
			     struct uverbs_attr_bundle *attrs);
int uroce_dealloc_dm(struct ib_dm *dm, struct uverbs_attr_bundle *attrs);
struct ib_mr *uroce_reg_dm_mr(struct ib_pd *pd, struct ib_dm *dm,
			      struct ib_dm_mr_attr *attr,
			      struct uverbs_attr_bundle *attrs);

#endif
