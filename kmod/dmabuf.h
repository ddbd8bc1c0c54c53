/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Regions of dma-buf memory. The exporter is asked for addresses on behalf of
 * the RDMA device itself, which has a DMA mask and no IOMMU: such addresses
 * are physical ones. The attachment is a static one, so that the exporter pins
 * the buffer in system memory until the region goes.
 */
#ifndef UROCE_DMABUF_H
#define UROCE_DMABUF_H

#include <rdma/ib_verbs.h>

struct uroce_backing;

struct ib_mr *uroce_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length,
				       u64 iova, int fd, int access,
				       uroce_reg_dmabuf_arg *arg);
void uroce_dmabuf_release(struct uroce_backing *mem);

#endif
