/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Regions of dma-buf memory. The exporter is asked for addresses on behalf of
 * the RDMA device itself, which reaches all memory, coherently and without an
 * IOMMU or bounce buffers, as the CPU does: such addresses are physical ones,
 * and where they could be others, dma-bufs are refused. The attachment is a
 * static one, so that the exporter pins the buffer in system memory until the
 * region goes.
 */
#ifndef UROCE_DMABUF_H
#define UROCE_DMABUF_H

#include <rdma/ib_verbs.h>

struct device;
struct uroce_backing;

/* Before the first attachment: what @dma needs to be given physical addresses */
void uroce_dmabuf_init_device(struct device *dma);

struct ib_mr *uroce_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length,
				       u64 iova, int fd, int access,
				       uroce_reg_dmabuf_arg *arg);
void uroce_dmabuf_release(struct uroce_backing *mem);

#endif
