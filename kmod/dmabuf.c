// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Regions of dma-buf memory; see dmabuf.h. */
#include <linux/dma-buf.h>
#include <linux/dma-direct.h>
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "dmabuf.h"
#include "mr.h"

void uroce_dmabuf_init_device(struct device *dma)
{
	dma_coerce_mask_and_coherent(dma, DMA_BIT_MASK(64));
#if defined(CONFIG_ARCH_HAS_SYNC_DMA_FOR_DEVICE) || \
	defined(CONFIG_ARCH_HAS_SYNC_DMA_FOR_CPU) || \
	defined(CONFIG_ARCH_HAS_SYNC_DMA_FOR_CPU_ALL)
	dma->dma_coherent = true;
#endif
#ifdef CONFIG_SWIOTLB
	dma->dma_io_tlb_mem = NULL;	/* also where others must bounce */
#endif
}

/*
 * The pages from byte @offset on, @num of them, as addresses in the direct
 * map. -EINVAL: the buffer is too short. -EOPNOTSUPP: memory that the kernel
 * does not have in its direct map, as a device's own.
 */
static int fill_pages(struct uroce_backing *mem, struct device *dma,
		      u64 offset, size_t num)
{
	struct uroce_blocks *b = &mem->blocks;
	u64 skip = offset >> PAGE_SHIFT;
	struct sg_dma_page_iter iter;
	size_t i = 0;

	b->shift = PAGE_SHIFT;
	b->first_offset = offset & ~PAGE_MASK;
	b->addr = kvcalloc(num, sizeof(*b->addr), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!b->addr)
		return -ENOMEM;

	for_each_sgtable_dma_page(mem->sgt, &iter, skip) {
		phys_addr_t phys = dma_to_phys(dma, sg_page_iter_dma_address(&iter));

		if (!pfn_valid(PHYS_PFN(phys)) ||
		    is_zone_device_page(pfn_to_page(PHYS_PFN(phys))))
			return -EOPNOTSUPP;
		b->addr[i++] = phys_to_virt(phys);
		if (i == num)
			return 0;
	}
	return -EINVAL;
}

static int attach(struct uroce_backing *mem, struct device *dma,
		  struct dma_buf *dmabuf)
{
	int err;

	mem->attach = dma_buf_attach(dmabuf, dma);
	if (IS_ERR(mem->attach)) {
		err = PTR_ERR(mem->attach);
		mem->attach = NULL;
		return err;
	}
	mem->sgt = dma_buf_map_attachment_unlocked(mem->attach,
						   DMA_BIDIRECTIONAL);
	if (IS_ERR_OR_NULL(mem->sgt)) {
		err = mem->sgt ? PTR_ERR(mem->sgt) : -ENOMEM;
		mem->sgt = NULL;
		return err;
	}
	return 0;
}

void uroce_dmabuf_release(struct uroce_backing *mem)
{
	struct dma_buf *dmabuf = mem->attach->dmabuf;

	if (mem->sgt)
		dma_buf_unmap_attachment_unlocked(mem->attach, mem->sgt,
						  DMA_BIDIRECTIONAL);
	dma_buf_detach(dmabuf, mem->attach);
	dma_buf_put(dmabuf);
}

struct ib_mr *uroce_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length,
				       u64 iova, int fd, int access,
				       uroce_reg_dmabuf_arg *arg)
{
	struct dma_buf *dmabuf;
	struct uroce_mr *mr;
	int err;

	if (!length || offset + length < offset)
		return ERR_PTR(-EINVAL);
	/* an IOMMU of the platform's, or Xen */
	if (get_dma_ops(&pd->device->dev))
		return ERR_PTR(-EOPNOTSUPP);
	dmabuf = dma_buf_get(fd);
	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);
	err = -EINVAL;
	if (offset + length > dmabuf->size)
		goto put;

	mr = uroce_mr_alloc(pd, UROCE_KEY_REGION, iova, length, access);
	if (IS_ERR(mr)) {
		err = PTR_ERR(mr);
		goto put;
	}
	err = attach(&mr->mem, &pd->device->dev, dmabuf);
	if (!err)
		err = fill_pages(&mr->mem, &pd->device->dev, offset,
				 PFN_UP(offset_in_page(offset) + length));
	if (!err)
		return uroce_mr_finish(mr);

	if (mr->mem.attach)
		dmabuf = NULL;	/* goes with the attachment */
	uroce_mr_free(mr);
put:
	if (dmabuf)
		dma_buf_put(dmabuf);
	return ERR_PTR(err);
}

UROCE_IMPORT_NS_DMA_BUF;
