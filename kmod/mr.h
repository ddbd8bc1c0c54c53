/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory regions: the memory behind a key (key.h), whatever it is made of.
 *
 * A region is found by its key only. Its memory changes (re-registration,
 * fast registration) and goes (deregistration) when the key has been revoked,
 * so that no copy is under way; a region with windows bound to it stays.
 */
#ifndef UROCE_MR_H
#define UROCE_MR_H

#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include "key.h"

struct dma_buf_attachment;
struct uroce_odp;

/* Blocks of contiguous memory, all of one size, that follow each other */
struct uroce_blocks {
	void **addr;		/* in the kernel's direct map */
	u32 shift;		/* size, log2 of bytes */
	u64 first_offset;	/* where the region begins in the first, bytes */
};

/* What holds a region's memory */
struct uroce_backing {
	struct uroce_blocks blocks;
	struct ib_umem *umem;	/* memory of a process, or NULL */
	struct dma_buf_attachment *attach;	/* a dma-buf, or NULL */
	struct sg_table *sgt;	/* of attach */
	struct uroce_odp *odp;	/* pages that come and go, or NULL */
};

struct uroce_mr {
	struct ib_mr ib;
	struct uroce_key key;
	u32 windows;		/* bound to it; under key.lock */

	/* stable for users of the key */
	bool identity;		/* DMA MR: offsets are kernel addresses */
	struct uroce_backing mem;

	/* as registered; key.iova is 0 when zero-based */
	u64 iova;
	int access;

	/* fast-register: what map_mr_sg() has prepared for the next REG_MR */
	struct uroce_blocks next;
	u32 max_blocks;		/* room in both arrays */
	u32 next_num;		/* blocks prepared */
	u64 next_length;

	struct rcu_head rcu;
};

static inline struct uroce_mr *to_umr(struct ib_mr *ib)
{
	return container_of(ib, struct uroce_mr, ib);
}

/*
 * Where byte @offset of what has been granted lies, and how many bytes from
 * there are contiguous; at least one. NULL: the memory is not there.
 */
void *uroce_mr_span(const struct uroce_grant *grant, u64 offset,
		    u64 *contiguous);

/*
 * A new region of @length bytes at @iova, not yet published. Its memory is
 * put into mr->mem before uroce_mr_finish(), which takes the region away again
 * when it fails; uroce_mr_free() does so for one that was never finished.
 */
struct uroce_mr *uroce_mr_alloc(struct ib_pd *pd, enum uroce_key_kind kind,
				u64 iova, u64 length, int access);
struct ib_mr *uroce_mr_finish(struct uroce_mr *mr);
void uroce_mr_free(struct uroce_mr *mr);
/* enum ib_access_flags of the region, for writers of its key */
void uroce_mr_set_access(struct uroce_mr *mr, int access);

/*
 * For windows: the region of the key @value, if it can be bound to for all of
 * @access, with one window more; NULL otherwise. BH disabled, RCU read lock.
 */
struct uroce_mr *uroce_mr_bind(const struct uroce_bearer *who, u32 value,
			       u64 va, u64 len, int access, u64 *offset);
/* One window less. In the RCU read section that took the window from it. */
void uroce_mr_unbind(struct uroce_mr *mr);

/*
 * Carry out IB_WR_REG_MR: what was mapped becomes the memory of the key
 * @value, at @iova. BH disabled. -EINVAL: not a region of @who in a state for that.
 */
int uroce_mr_fast_reg(const struct uroce_bearer *who, u32 value, u64 iova,
		      int access);

/* ib_device operations */
struct ib_mr *uroce_get_dma_mr(struct ib_pd *pd, int access);
struct ib_mr *uroce_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
				u64 iova, int access, struct ib_udata *udata);
struct ib_mr *uroce_rereg_user_mr(struct ib_mr *mr, int flags, u64 start,
				  u64 length, u64 iova, int access,
				  struct ib_pd *pd, struct ib_udata *udata);
int uroce_dereg_mr(struct ib_mr *mr, struct ib_udata *udata);
struct ib_mr *uroce_alloc_mr(struct ib_pd *pd, enum ib_mr_type type,
			     u32 max_num_sg);
int uroce_map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int nents,
		    unsigned int *sg_offset);

#endif
