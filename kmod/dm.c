// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Device memory; see dm.h. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "device.h"
#include "dm.h"
#include "mr.h"

/* Account @pages; -ENOMEM when the device has no more. */
static int dm_account(struct uroce_dev *dev, long pages)
{
	if (atomic_long_add_return(pages, &dev->dm_pages) >
	    UROCE_MAX_DM >> PAGE_SHIFT) {
		atomic_long_sub(pages, &dev->dm_pages);
		return -ENOMEM;
	}
	return 0;
}

struct ib_dm *uroce_alloc_dm(struct ib_device *ib, struct ib_ucontext *uctx,
			     struct ib_dm_alloc_attr *attr,
			     struct uverbs_attr_bundle *attrs)
{
	struct uroce_dev *dev = to_udev(ib);
	struct uroce_dm *dm;
	long pages;
	int err;

	if (attr->length > UROCE_MAX_DM)
		return ERR_PTR(-ENOMEM);
	/* @alignment is a logarithm; it lies at the start of a page */
	if (!attr->length || attr->alignment > PAGE_SHIFT || attr->flags)
		return ERR_PTR(-EINVAL);
	pages = PFN_UP(attr->length);
	err = dm_account(dev, pages);
	if (err)
		return ERR_PTR(err);

	err = -ENOMEM;
	dm = kzalloc(sizeof(*dm), GFP_KERNEL_ACCOUNT);
	if (!dm)
		goto err_account;
	dm->region = uroce_region_create(uctx, attr->length);
	if (IS_ERR(dm->region)) {
		err = PTR_ERR(dm->region);
		goto err_free;
	}
	return &dm->ib;

err_free:
	kfree(dm);
err_account:
	atomic_long_sub(pages, &dev->dm_pages);
	return ERR_PTR(err);
}

int uroce_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	struct uroce_dm *dm = to_udm(ibdm);

	/* the core has seen to it that no region uses it any more */
	atomic_long_sub(dm->region->len >> PAGE_SHIFT,
			&to_udev(ibdm->device)->dm_pages);
	uroce_region_destroy(dm->region);
	kfree(dm);
	return 0;
}

struct ib_mr *uroce_reg_dm_mr(struct ib_pd *pd, struct ib_dm *ibdm,
			      struct ib_dm_mr_attr *attr,
			      struct uverbs_attr_bundle *attrs)
{
	struct uroce_dm *dm = to_udm(ibdm);
	struct uroce_blocks *b;
	struct uroce_mr *mr;
	size_t num, i;
	void *page;

	/* the core has checked the range, and that it is zero-based */
	mr = uroce_mr_alloc(pd, UROCE_KEY_REGION, 0, attr->length,
			    attr->access_flags);
	if (IS_ERR(mr))
		return ERR_CAST(mr);

	b = &mr->mem.blocks;
	b->shift = PAGE_SHIFT;
	b->first_offset = offset_in_page(attr->offset);
	num = PFN_UP(b->first_offset + attr->length);
	b->addr = kvcalloc(num ?: 1, sizeof(*b->addr), GFP_KERNEL_ACCOUNT);
	if (!b->addr) {
		uroce_mr_free(mr);
		return ERR_PTR(-ENOMEM);
	}
	page = dm->region->mem + (attr->offset & PAGE_MASK);
	for (i = 0; i < num; i++, page += PAGE_SIZE)
		b->addr[i] = page_address(vmalloc_to_page(page));
	return uroce_mr_finish(mr);
}
