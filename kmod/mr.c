// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory regions; see mr.h. */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "device.h"
#include "mr.h"

#define KEY_INDEX_BITS	24
#define KEY_TRIES	64

#define ACCESS_SUPPORTED (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			  IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)

/* Promises of the caller that need nothing from us */
#define ACCESS_IGNORED	(IB_ACCESS_OPTIONAL | IB_ACCESS_MW_BIND | \
			 IB_ACCESS_HUGETLB)

static struct uroce_mr *mr_alloc(struct ib_pd *pd, int access)
{
	struct uroce_dev *dev = to_udev(pd->device);
	struct uroce_mr *mr;
	int err;

	if (access & ~(ACCESS_SUPPORTED | ACCESS_IGNORED))
		return ERR_PTR(-EOPNOTSUPP);

	err = uroce_object_get(dev, UROCE_OBJ_MR);
	if (err)
		return ERR_PTR(err);

	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr) {
		uroce_object_put(dev, UROCE_OBJ_MR);
		return ERR_PTR(-ENOMEM);
	}
	mr->ib.device = pd->device;
	mr->pd = pd;
	mr->access = access;
	refcount_set(&mr->ref, 1);
	init_completion(&mr->freed);
	return mr;
}

static void mr_free(struct uroce_mr *mr)
{
	uroce_object_put(to_udev(mr->ib.device), UROCE_OBJ_MR);
	if (mr->umem)
		ib_umem_release(mr->umem);
	kvfree(mr->pages);
	kfree_rcu(mr, rcu);
}

/* Last step of a registration: from here on packets find the region. */
static int mr_publish(struct uroce_mr *mr)
{
	struct uroce_dev *dev = to_udev(mr->ib.device);
	int tries, err = -EBUSY;
	u32 index;

	for (tries = 0; tries < KEY_TRIES && err == -EBUSY; tries++) {
		mr->key = get_random_u32();
		index = mr->key >> (32 - KEY_INDEX_BITS);
		if (!index)	/* no key looks like an unset one */
			continue;
		mr->ib.lkey = mr->key;
		mr->ib.rkey = mr->key;
		err = xa_insert(&dev->mrs, index, mr, GFP_KERNEL_ACCOUNT);
	}
	return err == -EBUSY ? -ENOMEM : err;
}

static struct uroce_mr *mr_finish(struct uroce_mr *mr)
{
	int err = mr_publish(mr);

	if (!err)
		return mr;
	mr_free(mr);
	return ERR_PTR(err);
}

struct ib_mr *uroce_get_dma_mr(struct ib_pd *pd, int access)
{
	struct uroce_mr *mr = mr_alloc(pd, access);

	if (IS_ERR(mr))
		return ERR_CAST(mr);

	mr->identity = true;
	mr->length = U64_MAX;
	mr = mr_finish(mr);
	return IS_ERR(mr) ? ERR_CAST(mr) : &mr->ib;
}

/*
 * Direct-map address of each block, of the largest size that fits them all.
 * @start: user address that iova stands for; any offset between them is fine.
 */
static int mr_fill_pages(struct uroce_mr *mr, u64 start)
{
	unsigned long size = ib_umem_find_best_pgsz(mr->umem, PAGE_MASK, start);
	struct sg_page_iter iter;
	u64 want = 0;
	size_t i = 0, n;

	if (!size)
		return -EINVAL;
	mr->page_shift = __ffs(size);
	mr->first_offset = start & (size - 1);
	n = ib_umem_num_dma_blocks(mr->umem, size);

	mr->pages = kvcalloc(n, sizeof(*mr->pages), GFP_KERNEL_ACCOUNT);
	if (!mr->pages)
		return -ENOMEM;

	/*
	 * Walk single pages and note each that starts a block. The first one
	 * may start inside its block: step back to where the block would be.
	 */
	for_each_sgtable_page(&mr->umem->sgt_append.sgt, &iter, 0) {
		void *page = page_address(sg_page_iter_page(&iter));
		u64 va = i ? want : ALIGN_DOWN(start, PAGE_SIZE);

		if (i == 0) {
			mr->pages[i++] = page - (va & (size - 1));
			want = ALIGN_DOWN(va, size) + size;
			n = (want - va) >> PAGE_SHIFT;
		} else if (n == 0) {
			mr->pages[i++] = page;
			want += size;
			n = size >> PAGE_SHIFT;
		}
		n--;
	}
	return 0;
}

struct ib_mr *uroce_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
				u64 iova, int access, struct ib_udata *udata)
{
	struct uroce_mr *mr;
	int err;

	if (!length || iova + length - 1 < iova)
		return ERR_PTR(-EINVAL);

	mr = mr_alloc(pd, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);

	mr->iova = iova;
	mr->length = length;
	mr->umem = ib_umem_get(pd->device, start, length, access);
	if (IS_ERR(mr->umem)) {
		err = PTR_ERR(mr->umem);
		mr->umem = NULL;
		goto err_free;
	}

	err = mr_fill_pages(mr, start);
	if (err)
		goto err_free;

	mr = mr_finish(mr);
	return IS_ERR(mr) ? ERR_CAST(mr) : &mr->ib;

err_free:
	mr_free(mr);
	return ERR_PTR(err);
}

int uroce_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct uroce_mr *mr = to_umr(ibmr);

	xa_erase(&to_udev(ibmr->device)->mrs,
		 mr->key >> (32 - KEY_INDEX_BITS));
	uroce_mr_put(mr);
	wait_for_completion(&mr->freed);
	mr_free(mr);
	return 0;
}

void uroce_mr_put(struct uroce_mr *mr)
{
	if (refcount_dec_and_test(&mr->ref))
		complete(&mr->freed);
}

static bool mr_allows(const struct uroce_mr *mr, struct ib_pd *pd, u32 key,
		      u64 va, u64 len, int access)
{
	return mr->key == key && mr->pd == pd &&
	       (mr->access & access) == access &&
	       va >= mr->iova && len <= mr->length &&
	       va - mr->iova <= mr->length - len;
}

struct uroce_mr *uroce_mr_get(struct uroce_dev *dev, struct ib_pd *pd, u32 key,
			      u64 va, u64 len, int access)
{
	struct uroce_mr *mr;

	rcu_read_lock();
	mr = xa_load(&dev->mrs, key >> (32 - KEY_INDEX_BITS));
	if (mr && (!mr_allows(mr, pd, key, va, len, access) ||
		   !refcount_inc_not_zero(&mr->ref)))
		mr = NULL;
	rcu_read_unlock();
	return mr;
}

void *uroce_mr_span(const struct uroce_mr *mr, u64 va, u64 *contiguous)
{
	u64 offset, in_page;

	if (mr->identity) {
		*contiguous = U64_MAX - va;
		return (void *)(uintptr_t)va;
	}

	offset = va - mr->iova + mr->first_offset;
	in_page = offset & ((1ULL << mr->page_shift) - 1);
	*contiguous = (1ULL << mr->page_shift) - in_page;
	return mr->pages[offset >> mr->page_shift] + in_page;
}
