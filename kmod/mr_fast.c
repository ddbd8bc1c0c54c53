// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fast-register regions of kernel consumers (IBTA 10.6.6). Consumers map new
 * memory while the old is still valid and the WRs that invalidate it are not
 * even posted; so what is mapped waits in mr->next for its REG_MR.
 */
#include <linux/log2.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include "device.h"
#include "mr.h"

struct ib_mr *uroce_alloc_mr(struct ib_pd *pd, enum ib_mr_type type,
			     u32 max_num_sg)
{
	struct uroce_mr *mr;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > UROCE_MAX_FAST_REG)
		return ERR_PTR(-EINVAL);

	mr = uroce_mr_alloc(pd, UROCE_KEY_FAST, 0, 0, 0);
	if (IS_ERR(mr))
		return ERR_CAST(mr);

	mr->max_blocks = max_num_sg;
	mr->mem.blocks.addr = kvcalloc(max_num_sg, sizeof(void *), GFP_KERNEL);
	mr->next.addr = kvcalloc(max_num_sg, sizeof(void *), GFP_KERNEL);
	if (!mr->mem.blocks.addr || !mr->next.addr) {
		uroce_mr_free(mr);
		return ERR_PTR(-ENOMEM);
	}
	return uroce_mr_finish(mr);
}

static int set_block(struct ib_mr *ibmr, u64 addr)
{
	struct uroce_mr *mr = to_umr(ibmr);

	if (mr->next_num == mr->max_blocks)
		return -ENOMEM;
	/* without a DMA device, DMA addresses are kernel addresses */
	mr->next.addr[mr->next_num++] = (void *)(uintptr_t)addr;
	return 0;
}

/* The consumer sees to it that no REG_MR of the region is under way. */
int uroce_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		    unsigned int *sg_offset)
{
	struct uroce_mr *mr = to_umr(ibmr);
	int n;

	/* consumers ask for 4 KiB whatever a page is here */
	if (mr->key.kind != UROCE_KEY_FAST || ibmr->page_size < SZ_4K ||
	    !is_power_of_2(ibmr->page_size))
		return -EINVAL;

	mr->next_num = 0;
	n = ib_sg_to_pages(ibmr, sg, nents, sg_offset, set_block);
	if (n <= 0) {
		mr->next_num = 0;
		return n;
	}
	mr->next.shift = ilog2(ibmr->page_size);
	mr->next.first_offset = ibmr->iova & (ibmr->page_size - 1);
	mr->next_length = ibmr->length;
	return n;
}

static bool may_register(const struct uroce_mr *mr,
			 const struct uroce_bearer *who, u64 iova, int access)
{
	const struct uroce_key *key = &mr->key;

	return key->state == UROCE_KEY_FREE && key->pd == who->pd &&
	       mr->next_num && !mr->windows &&
	       iova + mr->next_length - 1 >= iova &&
	       !(access & ~(UROCE_ACCESS_RIGHTS | IB_ACCESS_OPTIONAL |
			    IB_ZERO_BASED));
}

int uroce_mr_fast_reg(const struct uroce_bearer *who, u32 value, u64 iova,
		      int access)
{
	struct uroce_key *key;
	struct uroce_mr *mr;
	int err = -EINVAL;

	rcu_read_lock();
	key = uroce_key_find(who->dev, value);
	if (key && key->kind == UROCE_KEY_FAST) {
		mr = container_of(key, struct uroce_mr, key);
		spin_lock(&key->lock);
		if (may_register(mr, who, iova, access)) {
			/* it is free, but somebody may just be finding that out */
			uroce_key_revoke(key, UROCE_KEY_FREE);
			swap(mr->mem.blocks, mr->next);
			mr->next_num = 0;
			key->value = value;
			key->length = mr->next_length;
			mr->iova = iova;
			uroce_mr_set_access(mr, access);
			uroce_key_validate(key);
			err = 0;
		}
		spin_unlock(&key->lock);
	}
	rcu_read_unlock();
	return err;
}
