/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The shared rings of WQEs as the kernel sees them: copy once, trust nothing. */
#ifndef UROCE_RING_H
#define UROCE_RING_H

#include <linux/compiler.h>
#include <linux/string.h>
#include <linux/types.h>
#include "uapi/uroce-abi.h"

struct uroce_ring {
	void *mem;
	u32 entries;		/* power of two, 0: none */
	u32 stride;		/* bytes */
	u32 max_sge;
};

static inline void *uroce_ring_slot(const struct uroce_ring *ring, u32 index)
{
	return ring->mem + (size_t)(index & (ring->entries - 1)) * ring->stride;
}

/* Bytes of a slot for a receive WQE of @max_sge elements */
static inline u32 uroce_recv_stride(u32 max_sge)
{
	return sizeof(struct uroce_recv_wqe) + max_sge * sizeof(struct uroce_sge);
}

/*
 * WQEs in a receive ring between @head and the shared @tail; 0 for a tail that
 * cannot be. Ordering pair 1 of the ABI: what was posted may be read now.
 */
static inline u32 uroce_ring_pending(const struct uroce_ring *ring,
				     const u32 *tail, u32 head)
{
	u32 n = smp_load_acquire(tail) - head;	/* pairs with the poster's release */

	return n > ring->entries ? 0 : n;
}

/*
 * Copy a receive WQE; @sge has room for UROCE_MAX_SGE elements. -EINVAL: it has
 * more elements than it may; the copy has none then.
 */
static inline int uroce_ring_copy_recv(const struct uroce_ring *ring, u32 index,
				       struct uroce_recv_wqe *wqe,
				       struct uroce_sge *sge)
{
	const void *slot = uroce_ring_slot(ring, index);

	memcpy(wqe, slot, sizeof(*wqe));
	/* what was copied is what is checked: no second look at the ring */
	barrier();
	if (wqe->num_sge > ring->max_sge) {
		wqe->num_sge = 0;
		return -EINVAL;
	}
	memcpy(sge, slot + sizeof(*wqe), wqe->num_sge * sizeof(*sge));
	barrier();
	return 0;
}

#endif
