// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shared memory regions; see region.h. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "region.h"

static void region_free(struct uroce_region *region)
{
	vfree(region->mem);
	kfree(region);
}

struct uroce_region *uroce_region_create(struct ib_ucontext *uctx, size_t len)
{
	struct uroce_region *region;
	int err = -ENOMEM;

	len = PAGE_ALIGN(len);
	if (len > U32_MAX)
		return ERR_PTR(-EINVAL);

	region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);
	if (!region)
		return ERR_PTR(-ENOMEM);

	/* the process' memory cgroup pays */
	region->mem = __vmalloc(len, GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!region->mem)
		goto err_free;
	region->len = len;

	if (uctx) {
		err = rdma_user_mmap_entry_insert(uctx, &region->rdma, len);
		if (err)
			goto err_free;
		region->user = true;
	}
	return region;

err_free:
	region_free(region);
	return ERR_PTR(err);
}

void uroce_region_destroy(struct uroce_region *region)
{
	if (region->user)
		rdma_user_mmap_entry_remove(&region->rdma);
	else
		region_free(region);
}

/* The core calls this with the last reference on the entry. */
void uroce_mmap_free(struct rdma_user_mmap_entry *entry)
{
	region_free(container_of(entry, struct uroce_region, rdma));
}

static int map_pages(struct vm_area_struct *vma,
		     const struct uroce_region *region)
{
	u32 offset;
	int err = 0;

	/*
	 * As long as it is; of no use in a core dump; and not for a child, that
	 * would post to its parent's queues.
	 */
	uroce_vma_set_flags(vma, VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	for (offset = 0; !err && offset < region->len; offset += PAGE_SIZE)
		err = vm_insert_page(vma, vma->vm_start + offset,
				     vmalloc_to_page(region->mem + offset));
	return err;
}

int uroce_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	struct uroce_region *region;
	int err;

	/* checks that the mapping is shared, whole, and starts at the entry */
	entry = rdma_user_mmap_entry_get(uctx, vma);
	if (!entry)
		return -EINVAL;

	region = container_of(entry, struct uroce_region, rdma);
	err = map_pages(vma, region);
	rdma_user_mmap_entry_put(entry);
	return err;
}
