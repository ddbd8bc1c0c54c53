// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* On-demand paging; see odp.h. */
#include <linux/mmu_notifier.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "device.h"
#include "mr.h"
#include "odp.h"

/* Part of an address space that a child of an implicit region covers, bytes */
#define CHILD_SHIFT	22
#define CHILD_SIZE	BIT_ULL(CHILD_SHIFT)

/* Brought in at a time; more may be asked for */
#define CHUNK_BYTES	((u64)SZ_1M)
/* Brought in behind what was asked for, if it can be had */
#define AHEAD_BYTES	(16ULL << PAGE_SHIFT)

/* One table of pages; umem->private */
struct part {
	struct uroce_odp *odp;
	struct ib_umem_odp *umem;
	/*
	 * Who brings pages in. The core notes in the umem what it finds before
	 * it takes the umem's mutex, and a page that comes is not announced:
	 * two at once would undo each other's notes of pages in use. Held for
	 * as long as a page fault takes; taken with nothing else held.
	 */
	struct mutex fill;
};

struct uroce_odp {
	struct uroce_mr *mr;
	struct part whole;		/* of an implicit region: no pages */
	u64 start;			/* user address of the region's first byte */
	u32 pauses;			/* being taken away; under mr->key.lock */

	/* implicit: parts by address >> CHILD_SHIFT; written under grow */
	struct xarray children;
	struct mutex grow;		/* taken with nothing else held */

	/* pages for tables, charged like pinned memory; their most, in all */
	struct mm_struct *mm;
	atomic64_t charged;
	u64 charge_limit;

	refcount_t ref;
	struct completion idle;
};

/* ---- tables of pages ---- */

static struct part *part_find(struct uroce_odp *odp, u64 va)
{
	if (!odp->whole.umem->is_implicit_odp)
		return &odp->whole;
	return xa_load(&odp->children, va >> CHILD_SHIFT);
}

/* Before the umem can have any pages */
static void part_init(struct part *part, struct uroce_odp *odp,
		      struct ib_umem_odp *umem)
{
	part->odp = odp;
	part->umem = umem;
	mutex_init(&part->fill);
	umem->private = part;
}

static u64 *entry_of(struct ib_umem_odp *umem, u64 va)
{
	return &umem->dma_list[(va - ib_umem_start(umem)) >> umem->page_shift];
}

/* Without a DMA device, DMA addresses are kernel addresses. */
static void *page_of(u64 entry)
{
	return (void *)(uintptr_t)(entry & ODP_DMA_ADDR_MASK);
}

/*
 * Memory of memfd_secret() is in the table as any other, but not in the direct
 * map. A page that is there does not become such a one.
 */
static bool is_secret(void *page)
{
	u8 byte;

	return copy_from_kernel_nofault(&byte, page, sizeof(byte));
}

void *uroce_odp_span(struct uroce_odp *odp, u64 offset, bool write,
		     u64 *contiguous)
{
	u64 va = odp->start + offset, entry, in_page;
	struct part *part = part_find(odp, va);
	struct ib_umem_odp *umem;

	if (!part)
		return NULL;
	umem = part->umem;
	/* set and cleared by others, in one store */
	entry = READ_ONCE(*entry_of(umem, va));
	if (!(entry & (write ? ODP_WRITE_ALLOWED_BIT : ODP_READ_ALLOWED_BIT)) ||
	    is_secret(page_of(entry)))
		return NULL;
	in_page = va & (BIT_ULL(umem->page_shift) - 1);
	*contiguous = BIT_ULL(umem->page_shift) - in_page;
	return page_of(entry) + in_page;
}

/*
 * The core's tables are kernel memory that a process can ask for at will, 16
 * bytes for each of its pages: they count towards RLIMIT_MEMLOCK.
 */
static u64 table_pages(u64 bytes)
{
	return DIV_ROUND_UP_ULL(bytes >> PAGE_SHIFT,
				PAGE_SIZE / (2 * sizeof(u64)));
}

static int charge(struct uroce_odp *odp, u64 bytes)
{
	u64 pages = table_pages(bytes);

	if (atomic64_add_return(pages, &odp->mm->pinned_vm) > odp->charge_limit) {
		atomic64_sub(pages, &odp->mm->pinned_vm);
		return -ENOMEM;
	}
	atomic64_add(pages, &odp->charged);
	return 0;
}

static void uncharge(struct uroce_odp *odp, u64 pages)
{
	atomic64_sub(pages, &odp->charged);
	atomic64_sub(pages, &odp->mm->pinned_vm);
}

/* ---- taking pages away ---- */

static void pause(struct uroce_odp *odp)
{
	struct uroce_key *key = &odp->mr->key;

	spin_lock_bh(&key->lock);
	if (!odp->pauses++ && key->state == UROCE_KEY_VALID)
		uroce_key_revoke(key, UROCE_KEY_PAUSED);
	spin_unlock_bh(&key->lock);
}

static void resume(struct uroce_odp *odp)
{
	struct uroce_key *key = &odp->mr->key;

	spin_lock_bh(&key->lock);
	if (!--odp->pauses && key->state == UROCE_KEY_PAUSED)
		uroce_key_validate(key);
	spin_unlock_bh(&key->lock);
}

static bool invalidate(struct mmu_interval_notifier *mni,
		       const struct mmu_notifier_range *range,
		       unsigned long seq)
{
	struct ib_umem_odp *umem = container_of(mni, struct ib_umem_odp, notifier);

	if (!mmu_notifier_range_blockable(range))
		return false;

	mutex_lock(&umem->umem_mutex);
	mmu_interval_set_seq(mni, seq);
	if (umem->npages) {
		struct part *part = umem->private;

		uroce_count(to_udev(umem->umem.ibdev), UROCE_CNT_PAGE_INVALIDATIONS);
		pause(part->odp);
		ib_umem_odp_unmap_dma_pages(umem, range->start, range->end);
		resume(part->odp);
	}
	mutex_unlock(&umem->umem_mutex);
	return true;
}

static const struct mmu_interval_notifier_ops odp_ops = {
	.invalidate = invalidate,
};

/* ---- bringing pages in ---- */

static int map_pages(struct ib_umem_odp *umem, u64 va, u64 len, u64 rights,
		     bool fault)
{
	int n = ib_umem_odp_map_dma_and_lock(umem, va, len, rights, fault);

	if (n < 0)
		return n;
	mutex_unlock(&umem->umem_mutex);
	return 0;
}

/* As much of [@va, @end) as is in one page */
static u64 in_one_page(const struct ib_umem_odp *umem, u64 va, u64 end)
{
	u64 page = BIT_ULL(umem->page_shift);

	return min(end - va, page - (va & (page - 1)));
}

/* The same where some pages may be for reading only */
static int map_for_reading(struct ib_umem_odp *umem, u64 va, u64 len)
{
	u64 end = va + len, n;
	int err = 0;

	for (; !err && va < end; va += n) {
		n = in_one_page(umem, va, end);
		err = map_pages(umem, va, n, ODP_READ_ALLOWED_BIT |
				ODP_WRITE_ALLOWED_BIT, true);
		if (err && err != -EBUSY)
			err = map_pages(umem, va, n, ODP_READ_ALLOWED_BIT, true);
	}
	return err;
}

/* Bytes from @va on that are not in the table, at most up to @end */
static u64 absent(struct ib_umem_odp *umem, u64 va, u64 end)
{
	u64 start = va;

	while (va < end && !READ_ONCE(*entry_of(umem, va)))
		va += in_one_page(umem, va, end);
	return va - start;
}

/*
 * What is there anyway and not yet in the table. Pages that are in it must be
 * left alone: asked without a fault, the core notes a page as absent when its
 * mapping is about to go, and cannot take it out of the table properly then.
 */
static int map_present(struct ib_umem_odp *umem, u64 va, u64 len)
{
	u64 end = va + len, n;
	int err = 0;

	for (; !err && va < end; va += n) {
		n = absent(umem, va, end);
		if (n)
			err = map_pages(umem, va, n, ODP_READ_ALLOWED_BIT, false);
		else
			n = in_one_page(umem, va, end);
	}
	return err;
}

static int check_pages(struct ib_umem_odp *umem, u64 va, u64 len)
{
	u64 end = va + len;

	for (; va < end; va += in_one_page(umem, va, end)) {
		u64 entry = READ_ONCE(*entry_of(umem, va));

		if (entry && is_secret(page_of(entry)))
			return -EFAULT;
	}
	return 0;
}

/*
 * A page that may be written is brought in for that, also when it is just to
 * be read: the core marks those dirty that had the right to be written, and a
 * read must not take that away.
 */
static int bring_in(struct part *part, u64 va, u64 len, bool write, bool fault)
{
	struct ib_umem_odp *umem = part->umem;
	u64 rights = ODP_READ_ALLOWED_BIT;
	int err;

	lockdep_assert_held(&part->fill);

	if (umem->umem.writable)
		rights |= ODP_WRITE_ALLOWED_BIT;
	else if (write)
		return -EACCES;
	if (!fault)
		return map_present(umem, va, len);
	err = map_pages(umem, va, len, rights, true);
	if (err && err != -EBUSY && !write && umem->umem.writable)
		err = map_for_reading(umem, va, len);
	return err ?: check_pages(umem, va, len);
}

/* A part more of an implicit region. An ERR_PTR() when it fails. */
static struct part *child_add(struct uroce_odp *odp, u64 va)
{
	struct ib_umem_odp *umem;
	struct part *child;
	int err;

	lockdep_assert_held(&odp->grow);

	err = charge(odp, CHILD_SIZE);
	if (err)
		return ERR_PTR(err);
	err = -ENOMEM;
	child = kmalloc(sizeof(*child), GFP_KERNEL_ACCOUNT);
	if (!child)
		goto err_charge;
	umem = ib_umem_odp_alloc_child(odp->whole.umem, ALIGN_DOWN(va, CHILD_SIZE),
				       CHILD_SIZE, &odp_ops);
	err = PTR_ERR_OR_ZERO(umem);
	if (err)
		goto err_child;
	part_init(child, odp, umem);
	err = xa_err(xa_store(&odp->children, va >> CHILD_SHIFT, child, GFP_KERNEL));
	if (!err)
		return child;

	ib_umem_odp_release(umem);
err_child:
	kfree(child);
err_charge:
	uncharge(odp, table_pages(CHILD_SIZE));
	return ERR_PTR(err);
}

static bool is_mapped(struct mm_struct *mm, u64 va)
{
	bool mapped;

	if (!mmget_not_zero(mm))
		return false;
	mmap_read_lock(mm);
	mapped = vma_lookup(mm, va);
	mmap_read_unlock(mm);
	mmput(mm);
	return mapped;
}

/* The part that has @va; a new one if need be. An ERR_PTR() when it fails. */
static struct part *part_get(struct uroce_odp *odp, u64 va)
{
	struct part *part = part_find(odp, va);

	if (part)
		return part;
	/* a peer can name any address: tables for what is there, no others */
	if (!is_mapped(odp->mm, va))
		return ERR_PTR(-EFAULT);

	mutex_lock(&odp->grow);
	part = part_find(odp, va);
	if (!part)
		part = child_add(odp, va);
	mutex_unlock(&odp->grow);
	return part;
}

static int page_in(struct uroce_odp *odp, u64 va, u64 len, bool write,
		   bool fault)
{
	int err = 0;
	u64 n;

	for (; !err && len; va += n, len -= n) {
		struct part *part = part_get(odp, va);

		if (IS_ERR(part))
			return PTR_ERR(part);
		n = min3(len, ib_umem_end(part->umem) - va, CHUNK_BYTES);
		if (mutex_lock_killable(&part->fill))
			return -EINTR;
		err = bring_in(part, va, n, write, fault);
		mutex_unlock(&part->fill);
		cond_resched();
		if (!err && fatal_signal_pending(current))
			err = -EINTR;
	}
	return err;
}

/* What a key of an on-demand region opens */
struct wanted {
	struct uroce_odp *odp;	/* with a reference; NULL: memory that stays */
	u64 va;			/* user address */
};

/*
 * May @who do @access to [@va, @va + @len)? 0, and wanted_put() when it is done
 * with *@wanted; or -EACCES.
 */
static int wanted_get(const struct uroce_bearer *who, u32 value, u64 va,
		      u64 len, int access, struct wanted *wanted)
{
	struct uroce_key *key;
	int err = -EACCES;

	rcu_read_lock();
	key = uroce_key_find(who->dev, value);
	if (!key)
		goto out;
	spin_lock_bh(&key->lock);
	if ((key->state == UROCE_KEY_VALID || key->state == UROCE_KEY_PAUSED) &&
	    uroce_key_allows(key, who, value, va, len, access)) {
		wanted->odp = key->mr->mem.odp;
		if (wanted->odp) {
			/* there is one until the key has been revoked */
			refcount_inc(&wanted->odp->ref);
			wanted->va = wanted->odp->start + (va - key->iova);
		}
		err = 0;
	}
	spin_unlock_bh(&key->lock);
out:
	rcu_read_unlock();
	return err;
}

static void wanted_put(const struct wanted *wanted)
{
	if (wanted->odp && refcount_dec_and_test(&wanted->odp->ref))
		complete(&wanted->odp->idle);
}

/* What lies behind @va and happens to be there will be asked for next. */
static void look_ahead(struct uroce_odp *odp, u64 va, bool write)
{
	u64 end = odp->start + odp->mr->key.length;
	struct part *part;

	part = va < end ? part_find(odp, va) : NULL;
	if (!part || !mutex_trylock(&part->fill))
		return;
	end = min3(end, (u64)ib_umem_end(part->umem), va + AHEAD_BYTES);
	bring_in(part, va, end - va, write, false);
	mutex_unlock(&part->fill);
}

int uroce_odp_fault(const struct uroce_fault *fault)
{
	bool write = fault->access & UROCE_ACCESS_WRITES;
	u64 len = min(fault->len, CHUNK_BYTES);
	struct wanted wanted;
	int err;

	if (wanted_get(&fault->who, fault->key, fault->va, fault->len,
		       fault->access, &wanted) || !wanted.odp)
		return 0;	/* the next attempt will tell */

	uroce_count(fault->who.dev, UROCE_CNT_PAGE_FAULTS);
	err = page_in(wanted.odp, wanted.va, len, write, true);
	if (!err)
		look_ahead(wanted.odp, wanted.va + len, write);
	wanted_put(&wanted);
	/*
	 * The core gives up after a second in which the process' memory changed
	 * all the time: the memory can be had, and will be asked for again.
	 */
	return err == -EBUSY ? 0 : err;
}

int uroce_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice,
		    u32 flags, struct ib_sge *sg_list, u32 num_sge,
		    struct uverbs_attr_bundle *attrs)
{
	struct uroce_bearer who = { .dev = to_udev(pd->device), .pd = pd };
	bool write = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	bool fault = advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	int access = UROCE_ACCESS_LOCAL | (write ? IB_ACCESS_LOCAL_WRITE : 0);
	struct wanted wanted;
	int err = 0;
	u32 i;

	if (advice > IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return -EOPNOTSUPP;

	for (i = 0; !err && i < num_sge; i++) {
		if (wanted_get(&who, sg_list[i].lkey, sg_list[i].addr,
			       sg_list[i].length, access, &wanted))
			return -EFAULT;
		if (!wanted.odp)
			continue;
		uroce_count(who.dev, UROCE_CNT_PAGE_PREFETCH);
		err = page_in(wanted.odp, wanted.va, sg_list[i].length, write,
			      fault);
		wanted_put(&wanted);
	}
	return err;
}

/* ---- life ---- */

void uroce_odp_release(struct uroce_odp *odp)
{
	struct wanted own = { .odp = odp };
	unsigned long index;
	struct part *child;

	wanted_put(&own);
	wait_for_completion(&odp->idle);

	xa_for_each(&odp->children, index, child) {
		ib_umem_odp_release(child->umem);
		kfree(child);
	}
	xa_destroy(&odp->children);
	if (odp->whole.umem)	/* NULL: it was never finished */
		ib_umem_odp_release(odp->whole.umem);
	uncharge(odp, atomic64_read(&odp->charged));
	mmdrop(odp->mm);
	kfree(odp);
}

static struct uroce_odp *odp_alloc(struct uroce_mr *mr, u64 start)
{
	struct uroce_odp *odp = kzalloc(sizeof(*odp), GFP_KERNEL_ACCOUNT);

	if (!odp)
		return NULL;
	odp->mr = mr;
	odp->start = start;
	xa_init(&odp->children);
	mutex_init(&odp->grow);
	odp->mm = current->mm;
	mmgrab(odp->mm);
	odp->charge_limit = capable(CAP_IPC_LOCK) ?
			    S64_MAX : rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	refcount_set(&odp->ref, 1);
	init_completion(&odp->idle);
	return odp;
}

static int odp_init(struct uroce_odp *odp, struct ib_device *ib, u64 length,
		    int access)
{
	bool implicit = !odp->start && length == U64_MAX;
	struct ib_umem_odp *umem;
	int err;

	if (implicit) {
		umem = ib_umem_odp_alloc_implicit(ib, access);
	} else {
		err = charge(odp, PAGE_ALIGN(length) + PAGE_SIZE);
		if (err)
			return err;
		umem = ib_umem_odp_get(ib, odp->start, length, access, &odp_ops);
	}
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	/* nobody can bring in pages before the key is published */
	part_init(&odp->whole, odp, umem);
	return 0;
}

struct ib_mr *uroce_odp_reg(struct ib_pd *pd, u64 start, u64 length, u64 iova,
			    int access, struct uroce_ucontext *uctx)
{
	struct uroce_mr *mr;
	int err;

	if (start + length < start)
		return ERR_PTR(-EINVAL);
	if (uctx) {
		err = uroce_tenant_allow_faults(&uctx->tenant);
		if (err)
			return ERR_PTR(err);
	}
	mr = uroce_mr_alloc(pd, UROCE_KEY_REGION, iova, length,
			    access & ~IB_ACCESS_ON_DEMAND);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->mem.odp = odp_alloc(mr, start);
	err = -ENOMEM;
	if (mr->mem.odp)
		err = odp_init(mr->mem.odp, pd->device, length, access);
	if (err) {
		uroce_mr_free(mr);
		return ERR_PTR(err);
	}
	return uroce_mr_finish(mr);
}
