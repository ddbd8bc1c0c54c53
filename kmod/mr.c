// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory regions: life, and those of a process's memory; see mr.h. */
#include <linux/mm.h>
#include <linux/slab.h>
#include "device.h"
#include "dmabuf.h"
#include "mr.h"
#include "odp.h"

/* Promises of the caller that need nothing from us, and what is done here */
#define ACCESS_IGNORED	(IB_ACCESS_OPTIONAL | IB_ACCESS_HUGETLB | IB_ZERO_BASED)

/* ---- life of a region ---- */

static bool access_supported(int access)
{
	return !(access & ~(UROCE_ACCESS_RIGHTS | ACCESS_IGNORED));
}

void uroce_mr_set_access(struct uroce_mr *mr, int access)
{
	mr->access = access;
	mr->key.access = (access & UROCE_ACCESS_RIGHTS) | UROCE_ACCESS_LOCAL;
	mr->key.iova = access & IB_ZERO_BASED ? 0 : mr->iova;
}

struct uroce_mr *uroce_mr_alloc(struct ib_pd *pd, enum uroce_key_kind kind,
				u64 iova, u64 length, int access)
{
	struct uroce_dev *dev = to_udev(pd->device);
	struct uroce_mr *mr;
	int err;

	if (!access_supported(access))
		return ERR_PTR(-EOPNOTSUPP);
	if (length && iova + length - 1 < iova)
		return ERR_PTR(-EINVAL);

	err = uroce_object_get(dev, UROCE_OBJ_MR, pd->uobject);
	if (err)
		return ERR_PTR(err);

	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr) {
		uroce_object_put(dev, UROCE_OBJ_MR);
		return ERR_PTR(-ENOMEM);
	}
	mr->ib.device = pd->device;
	/* the core sets them for some kinds only */
	mr->ib.length = length;
	mr->ib.iova = iova;
	mr->iova = iova;
	uroce_key_init(&mr->key, kind, pd);
	mr->key.mr = mr;
	mr->key.length = length;
	uroce_mr_set_access(mr, access);
	return mr;
}

static void backing_release(struct uroce_backing *mem)
{
	if (mem->umem)
		ib_umem_release(mem->umem);
	if (mem->attach)
		uroce_dmabuf_release(mem);
	if (mem->odp)
		uroce_odp_release(mem->odp);
	kvfree(mem->blocks.addr);
}

void uroce_mr_free(struct uroce_mr *mr)
{
	uroce_object_put(to_udev(mr->ib.device), UROCE_OBJ_MR);
	backing_release(&mr->mem);
	kvfree(mr->next.addr);
	kfree_rcu(mr, rcu);
}

struct ib_mr *uroce_mr_finish(struct uroce_mr *mr)
{
	int err;

	/* nobody can find it yet, but the rule is the rule */
	spin_lock_bh(&mr->key.lock);
	if (mr->key.kind == UROCE_KEY_REGION)
		uroce_key_validate(&mr->key);
	spin_unlock_bh(&mr->key.lock);

	err = uroce_key_publish(to_udev(mr->ib.device), &mr->key);
	if (err) {
		uroce_mr_free(mr);
		return ERR_PTR(err);
	}
	mr->ib.lkey = mr->key.value;
	mr->ib.rkey = mr->key.value;
	return &mr->ib;
}

int uroce_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct uroce_mr *mr = to_umr(ibmr);
	int err = 0;

	spin_lock_bh(&mr->key.lock);
	if (mr->windows)
		err = -EBUSY;
	else
		uroce_key_revoke(&mr->key, UROCE_KEY_DEAD);
	spin_unlock_bh(&mr->key.lock);
	if (err)
		return err;

	uroce_key_unpublish(to_udev(ibmr->device), &mr->key);
	uroce_mr_free(mr);
	return 0;
}

/* ---- windows ---- */

struct uroce_mr *uroce_mr_bind(const struct uroce_bearer *who, u32 value,
			       u64 va, u64 len, int access, u64 *offset)
{
	struct uroce_key *key = uroce_key_find(who->dev, value);
	struct uroce_mr *mr = NULL;

	/* a window's key fails for lack of UROCE_ACCESS_LOCAL */
	if (!key)
		return NULL;

	/*
	 * Not of pages that come and go: who takes them away waits for the
	 * users of the region's key, not of its windows' keys.
	 */
	spin_lock(&key->lock);
	if (key->state == UROCE_KEY_VALID && !key->mr->mem.odp &&
	    uroce_key_allows(key, who, value, va, len,
			     access | UROCE_ACCESS_LOCAL | IB_ACCESS_MW_BIND)) {
		mr = key->mr;
		mr->windows++;
		*offset = key->offset + (va - key->iova);
	}
	spin_unlock(&key->lock);
	return mr;
}

void uroce_mr_unbind(struct uroce_mr *mr)
{
	/* dereg may come in between and free it: after a grace period */
	spin_lock(&mr->key.lock);
	mr->windows--;
	spin_unlock(&mr->key.lock);
}

/* ---- memory ---- */

void *uroce_mr_span(const struct uroce_grant *grant, u64 offset,
		    u64 *contiguous)
{
	const struct uroce_mr *mr = grant->mr;
	const struct uroce_blocks *b = &mr->mem.blocks;
	u64 in_block;

	offset += grant->offset;
	if (mr->mem.odp)
		return uroce_odp_span(mr->mem.odp, offset,
				      grant->access & UROCE_ACCESS_WRITES,
				      contiguous);
	if (mr->identity) {
		*contiguous = U64_MAX - offset;
		return (void *)(uintptr_t)offset;
	}

	offset += b->first_offset;
	in_block = offset & ((1ULL << b->shift) - 1);
	*contiguous = (1ULL << b->shift) - in_block;
	return b->addr[offset >> b->shift] + in_block;
}

struct ib_mr *uroce_get_dma_mr(struct ib_pd *pd, int access)
{
	struct uroce_mr *mr;

	mr = uroce_mr_alloc(pd, UROCE_KEY_REGION, 0, U64_MAX, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->identity = true;
	return uroce_mr_finish(mr);
}

/*
 * Direct-map address of each block, of the largest size that fits them all.
 * @start: user address of the first byte.
 */
static int fill_blocks(struct uroce_backing *mem, u64 start)
{
	unsigned long size = ib_umem_find_best_pgsz(mem->umem, PAGE_MASK, start);
	struct uroce_blocks *b = &mem->blocks;
	struct sg_page_iter iter;
	u64 want = 0;
	size_t i = 0, n;

	if (!size)
		return -EINVAL;
	b->shift = __ffs(size);
	b->first_offset = start & (size - 1);
	n = ib_umem_num_dma_blocks(mem->umem, size);

	b->addr = kvcalloc(n, sizeof(*b->addr), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!b->addr)
		return -ENOMEM;

	/*
	 * Walk single pages and note each that starts a block. The first one
	 * may start inside its block: step back to where the block would be.
	 */
	for_each_sgtable_page(&mem->umem->sgt_append.sgt, &iter, 0) {
		void *page = page_address(sg_page_iter_page(&iter));
		u64 va = i ? want : ALIGN_DOWN(start, PAGE_SIZE);

		if (i == 0) {
			b->addr[i++] = page - (va & (size - 1));
			want = ALIGN_DOWN(va, size) + size;
			n = (want - va) >> PAGE_SHIFT;
		} else if (n == 0) {
			b->addr[i++] = page;
			want += size;
			n = size >> PAGE_SHIFT;
		}
		n--;
		cond_resched();
	}
	return 0;
}

/* Pin memory of the calling process. @mem is empty again when it fails. */
static int backing_pin(struct uroce_backing *mem, struct ib_device *ib,
		       u64 start, u64 length, int access)
{
	int err;

	mem->umem = ib_umem_get(ib, start, length, access);
	if (IS_ERR(mem->umem)) {
		err = PTR_ERR(mem->umem);
		mem->umem = NULL;
		return err;
	}

	err = fill_blocks(mem, start);
	if (err) {
		backing_release(mem);
		memset(mem, 0, sizeof(*mem));
	}
	return err;
}

struct ib_mr *uroce_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
				u64 iova, int access, struct ib_udata *udata)
{
	struct uroce_mr *mr;
	int err;

	if (!length)
		return ERR_PTR(-EINVAL);
	if (access & IB_ACCESS_ON_DEMAND)
		return uroce_odp_reg(pd, start, length, iova, access,
				     rdma_udata_to_drv_context(udata, struct uroce_ucontext, ib));
	mr = uroce_mr_alloc(pd, UROCE_KEY_REGION, iova, length, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);

	err = backing_pin(&mr->mem, pd->device, start, length, access);
	if (err) {
		uroce_mr_free(mr);
		return ERR_PTR(err);
	}
	return uroce_mr_finish(mr);
}

/* ---- re-registration ---- */

/*
 * Memory for a region after a re-registration, if it cannot keep what it has:
 * other memory, or the same for writing when it was pinned for reading only.
 * Return: 1 when @mem is new, 0 when the old one will do.
 */
static int rereg_pin(struct uroce_mr *mr, int flags, u64 start, u64 *length,
		     int access, struct uroce_backing *mem)
{
	const struct ib_umem *umem = mr->mem.umem;
	int err;

	if (!(flags & IB_MR_REREG_TRANS)) {
		if (!(flags & IB_MR_REREG_ACCESS) || !umem ||
		    umem->writable || !ib_access_writable(access))
			return 0;
		/* the addresses mean something in the process that pinned only */
		if (umem->owning_mm != current->mm)
			return -EINVAL;
		start = umem->address;
		*length = umem->length;
	}
	if (!*length)
		return -EINVAL;
	err = backing_pin(mem, mr->ib.device, start, *length, access);
	return err ?: 1;
}

/*
 * Everything that can fail comes first: a region whose re-registration failed
 * is as before. Its key stays the same.
 */
struct ib_mr *uroce_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				  u64 length, u64 iova, int access,
				  struct ib_pd *pd, struct ib_udata *udata)
{
	struct uroce_mr *mr = to_umr(ibmr);
	struct uroce_backing mem = {};
	int fresh;

	if (!(flags & IB_MR_REREG_ACCESS))
		access = mr->access;
	/* on-demand regions stay as they are */
	if (!access_supported(access) || mr->mem.odp)
		return ERR_PTR(-EOPNOTSUPP);
	if (flags & IB_MR_REREG_TRANS && iova + length - 1 < iova)
		return ERR_PTR(-EINVAL);
	fresh = rereg_pin(mr, flags, start, &length, access, &mem);
	if (fresh < 0)
		return ERR_PTR(fresh);

	spin_lock_bh(&mr->key.lock);
	if (mr->windows) {
		spin_unlock_bh(&mr->key.lock);
		backing_release(&mem);
		return ERR_PTR(-EBUSY);
	}
	uroce_key_revoke(&mr->key, UROCE_KEY_FREE);
	if (fresh) {
		swap(mr->mem, mem);
		mr->key.length = length;
	}
	if (flags & IB_MR_REREG_TRANS)
		mr->iova = iova;
	if (flags & IB_MR_REREG_PD)
		mr->key.pd = pd;
	uroce_mr_set_access(mr, access);
	uroce_key_validate(&mr->key);
	spin_unlock_bh(&mr->key.lock);

	backing_release(&mem);
	return NULL;	/* the same object goes on */
}
