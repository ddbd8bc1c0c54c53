/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory regions: keys, access checks, translation.
 *
 * A key is a random 24 bit table index and 8 random bits, so that a peer that
 * was not told a key has to guess 32 bits.
 *
 * Lifetime: the table owns one reference. The data path takes one for the
 * copy of one packet at the most, under BH-disabled sections that do not
 * sleep, so that deregistration waits for a bounded time. A region that goes
 * away between two packets of a message fails the second one.
 */
#ifndef UROCE_MR_H
#define UROCE_MR_H

#include <linux/completion.h>
#include <linux/refcount.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

struct uroce_dev;

struct uroce_mr {
	struct ib_mr ib;
	struct ib_pd *pd;	/* set before the key is published */
	u32 key;		/* lkey and rkey */
	int access;		/* enum ib_access_flags */
	bool identity;		/* DMA MR: addresses are kernel pointers */
	u64 iova;
	u64 length;		/* bytes; iova + length - 1 does not wrap */
	u32 page_shift;		/* of a block of contiguous memory */
	u64 first_offset;	/* of iova in the first block, bytes */
	void **pages;		/* direct-map address of each block */
	struct ib_umem *umem;
	refcount_t ref;
	struct completion freed;
	struct rcu_head rcu;
};

static inline struct uroce_mr *to_umr(struct ib_mr *ib)
{
	return container_of(ib, struct uroce_mr, ib);
}

/*
 * The region of @key, if it belongs to @pd, allows all of @access
 * (enum ib_access_flags; 0: local read) and covers [va, va + len).
 * Return: with a reference, or NULL. Any context.
 */
struct uroce_mr *uroce_mr_get(struct uroce_dev *dev, struct ib_pd *pd, u32 key,
			      u64 va, u64 len, int access);
void uroce_mr_put(struct uroce_mr *mr);

/*
 * Where @va of a region lies, and how many bytes from there are contiguous;
 * at least one. The caller holds a reference and has checked the range.
 */
void *uroce_mr_span(const struct uroce_mr *mr, u64 va, u64 *contiguous);

struct ib_mr *uroce_get_dma_mr(struct ib_pd *pd, int access);
struct ib_mr *uroce_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
				u64 iova, int access, struct ib_udata *udata);
int uroce_dereg_mr(struct ib_mr *mr, struct ib_udata *udata);

#endif
