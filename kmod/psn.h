/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packet sequence numbers: 24 bits, compared modulo 2^24 (IBTA 9.7.2).
 * Leaf: compiles in user space too.
 */
#ifndef UROCE_PSN_H
#define UROCE_PSN_H

#include <linux/types.h>

#define UROCE_PSN_MASK	0xffffffu

static inline __u32 uroce_psn_add(__u32 psn, __u32 n)
{
	return (psn + n) & UROCE_PSN_MASK;
}

/* Signed distance from @b to @a, in [-2^23, 2^23) */
static inline __s32 uroce_psn_diff(__u32 a, __u32 b)
{
	return (__s32)((a - b) << 8) >> 8;
}

/*
 * How far @a is ahead of @b, in [0, 2^24): for ranges that may be as long as
 * one message of 2 GiB in packets of 256 bytes, 2^23 numbers.
 */
static inline __u32 uroce_psn_dist(__u32 a, __u32 b)
{
	return (a - b) & UROCE_PSN_MASK;
}

/* True when @psn lies in the @n numbers from @first on; @n up to 2^24 */
static inline int uroce_psn_in(__u32 psn, __u32 first, __u32 n)
{
	return ((psn - first) & UROCE_PSN_MASK) < n;
}

#endif
