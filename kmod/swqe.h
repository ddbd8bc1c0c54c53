/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The private copy of a send WQE: what was checked is what is carried out. */
#ifndef UROCE_SWQE_H
#define UROCE_SWQE_H

#include "opcode.h"
#include "uapi/uroce-abi.h"

/* A READ goes out as requests for at most so many response packets each */
#define UROCE_READ_UNIT		64

/*
 * Is the WQE a memory operation (bind, registration, invalidation)? These are
 * carried out in their turn, once, take no PSN, and complete in their turn.
 */
enum uroce_memop {
	UROCE_MEMOP_NONE,
	UROCE_MEMOP_TODO,
	UROCE_MEMOP_DONE,
};

/* A WQE of the SQ, private copy */
struct uroce_swqe {
	struct uroce_send_wqe w;
	u32 first_psn;
	u32 num_psn;		/* PSNs it takes; 0 for memory operations */
	u32 length;		/* bytes */
	u8 op;			/* enum uroce_op of an only packet */
	u8 wc_opcode;
	u8 error;		/* enum ib_wc_status to fail with, or 0 */
	u8 memop;		/* enum uroce_memop */
	/* the elements, or inline payload */
	union {
		DECLARE_FLEX_ARRAY(struct uroce_sge, sge);
		DECLARE_FLEX_ARRAY(u8, data);
	};
};

/* Does the WQE fetch data from the responder: READ, ... */
static inline bool uroce_swqe_is_read(const struct uroce_swqe *swqe)
{
	return swqe->op == UROCE_OP_READ_REQ;
}

/* ... or atomic? */
static inline bool uroce_swqe_is_atomic(const struct uroce_swqe *swqe)
{
	return swqe->op == UROCE_OP_CMP_SWAP || swqe->op == UROCE_OP_FETCH_ADD;
}

static inline bool uroce_swqe_is_atomic_write(const struct uroce_swqe *swqe)
{
	return swqe->op == UROCE_OP_ATOMIC_WRITE;
}

/*
 * Is the WQE answered by a response of its own, of which only so many may be
 * outstanding (max_rd_atomic), rather than by any acknowledgment?
 */
static inline bool uroce_swqe_has_response(const struct uroce_swqe *swqe)
{
	return uroce_swqe_is_read(swqe) || uroce_swqe_is_atomic(swqe) ||
	       uroce_swqe_is_atomic_write(swqe);
}

/* The payload, if it is in the WQE itself; NULL: it is where the elements say */
static inline const u8 *uroce_swqe_inline(const struct uroce_swqe *swqe)
{
	if (uroce_swqe_is_atomic_write(swqe))
		return swqe->w.atomic_write;
	return swqe->w.flags & UROCE_SEND_INLINE ? swqe->data : NULL;
}

/* Behind the last PSN of the READ request that covers packet @n of a READ */
static inline u32 uroce_read_unit_end(const struct uroce_swqe *swqe, u32 n)
{
	return min(swqe->num_psn, (n / UROCE_READ_UNIT + 1) * UROCE_READ_UNIT);
}

#endif
