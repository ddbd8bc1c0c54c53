/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory that the kernel and a process share: rings and doorbells. For
 * kernel consumers the same memory, without the process.
 *
 * Lifetime: the owning object creates a region and puts it away with
 * uroce_region_destroy() when the kernel has stopped using it. Mappings count
 * page references of their own, so that the pages stay harmless memory of the
 * process until it unmaps them; a running mmap() holds the entry.
 */
#ifndef UROCE_REGION_H
#define UROCE_REGION_H

#include <rdma/ib_verbs.h>

struct uroce_region {
	struct rdma_user_mmap_entry rdma;	/* unused for kernel consumers */
	void *mem;		/* zeroed, page aligned */
	u32 len;		/* bytes, multiple of PAGE_SIZE */
	bool user;
};

/*
 * @uctx: context whose process may map it, or NULL.
 * @len: bytes, rounded up to whole pages. May sleep. ERR_PTR on failure.
 */
struct uroce_region *uroce_region_create(struct ib_ucontext *uctx, size_t len);
void uroce_region_destroy(struct uroce_region *region);

/* Byte offset for mmap(2) on the uverbs fd */
static inline u64 uroce_region_offset(const struct uroce_region *region)
{
	return rdma_user_mmap_get_offset(&region->rdma);
}

int uroce_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma);
void uroce_mmap_free(struct rdma_user_mmap_entry *entry);

#endif
