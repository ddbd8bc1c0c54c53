/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Differences between kernels, included in front of every file of the module.
 * The rest of the code is written for the newest kernel supported and never
 * looks at a version.
 */
#ifndef UROCE_COMPAT_H
#define UROCE_COMPAT_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "uroce needs Linux 6.1 or newer"
#endif
#ifndef CONFIG_64BIT
#error "uroce needs a 64 bit kernel: it addresses pinned pages in the direct map"
#endif
#ifndef CONFIG_INFINIBAND_ON_DEMAND_PAGING
#error "uroce needs a kernel with CONFIG_INFINIBAND_ON_DEMAND_PAGING, the default"
#endif

#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

/* asm/unaligned.h moved in 6.12 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

/* create_cq: the last argument became the attribute bundle in 6.11 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
typedef struct uverbs_attr_bundle uroce_create_cq_arg;

static inline struct ib_udata *uroce_create_cq_udata(uroce_create_cq_arg *arg)
{
	return arg ? &arg->driver_udata : NULL;
}
#else
typedef struct ib_udata uroce_create_cq_arg;

static inline struct ib_udata *uroce_create_cq_udata(uroce_create_cq_arg *arg)
{
	return arg;
}
#endif

/* reg_user_mr_dmabuf: the same change in 6.12 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
typedef struct uverbs_attr_bundle uroce_reg_dmabuf_arg;
#else
typedef struct ib_udata uroce_reg_dmabuf_arg;
#endif

/* MODULE_IMPORT_NS() takes a string since 6.13 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define UROCE_IMPORT_NS_DMA_BUF MODULE_IMPORT_NS("DMA_BUF")
#else
#define UROCE_IMPORT_NS_DMA_BUF MODULE_IMPORT_NS(DMA_BUF)
#endif

/* vma->vm_flags is written by vm_flags_set() alone since 6.3 */
#include <linux/mm.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
#define uroce_vma_set_flags vm_flags_set
#else
static inline void uroce_vma_set_flags(struct vm_area_struct *vma,
				       vm_flags_t flags)
{
	vma->vm_flags |= flags;
}
#endif

/* mc_loop of an inet socket became a flag bit in 6.6 */
#include <net/inet_sock.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
static inline void uroce_sock_set_mc_loop(struct sock *sk)
{
	inet_set_bit(MC_LOOP, sk);
}
#else
static inline void uroce_sock_set_mc_loop(struct sock *sk)
{
	inet_sk(sk)->mc_loop = 1;
}
#endif

/* hrtimer_setup() replaced hrtimer_init() and the assignment in 6.13 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#include <linux/hrtimer.h>

static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*fn)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = fn;
}
#endif

#endif
