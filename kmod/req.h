/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Requester: takes WQEs from the SQ and turns them into request packets.
 * All functions are for the SEND owner, BH disabled.
 */
#ifndef UROCE_REQ_H
#define UROCE_REQ_H

#include "opcode.h"
#include "qp.h"

/* Packets of a QP that may be unacknowledged */
#define UROCE_WINDOW		128
/* A READ goes out as requests for at most so many response packets each */
#define UROCE_READ_UNIT		64

/*
 * Copy the next WQE of the SQ, check the copy and give it its PSNs. A WQE
 * that cannot be carried out is kept with its error.
 * Return: false when there is none.
 */
bool uroce_req_fetch(struct uroce_qp *qp);

/* The WQE to send from, fetched when need be; NULL: none. */
struct uroce_swqe *uroce_req_current(struct uroce_qp *qp);

/*
 * Send what may be sent, at most *@budget packets (counted down).
 * Return: true when the budget ended it and there is more to do.
 */
bool uroce_req_run(struct uroce_qp *qp, int *budget);

/* Does the WQE wait for data from the responder (READ, atomic)? */
static inline bool uroce_swqe_is_read(const struct uroce_swqe *swqe)
{
	return swqe->op == UROCE_OP_READ_REQ;
}

static inline bool uroce_swqe_is_atomic(const struct uroce_swqe *swqe)
{
	return swqe->op == UROCE_OP_CMP_SWAP || swqe->op == UROCE_OP_FETCH_ADD;
}

/* Behind the last PSN of the READ request that covers packet @n of a READ */
static inline u32 uroce_read_unit_end(const struct uroce_swqe *swqe, u32 n)
{
	return min(swqe->num_psn, (n / UROCE_READ_UNIT + 1) * UROCE_READ_UNIT);
}

#endif
