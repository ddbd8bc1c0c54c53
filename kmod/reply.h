/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reply packets of the responder: acknowledgments, READ responses, atomic
 * acknowledgments. All functions are for the RECV owner, BH disabled.
 */
#ifndef UROCE_REPLY_H
#define UROCE_REPLY_H

#include "parse.h"
#include "qp.h"

/*
 * An acknowledgment with @syndrome for @psn, to be sent by uroce_reply_ack_due()
 * at the end of the batch; it replaces one that is owed already.
 */
void uroce_reply_owe(struct uroce_qp *qp, u8 syndrome, u32 psn);
/* Send what is owed. When this host is out of room the reply timer does. */
void uroce_reply_ack_due(struct uroce_qp *qp);
/* Both at once */
void uroce_reply_ack(struct uroce_qp *qp, u8 syndrome, u32 psn);
/* The response to an atomic; uroce_reply_run() sends it. */
void uroce_reply_atomic(struct uroce_qp *qp, u32 psn, u64 orig);

/* The response to an ATOMIC WRITE: that of a READ of nothing; the same way. */
void uroce_reply_atomic_write(struct uroce_qp *qp, u32 psn);

/*
 * Start sending the responses to a READ request; uroce_reply_run() does the
 * work. @again: the request is a duplicate.
 */
void uroce_reply_read(struct uroce_qp *qp, const struct uroce_pkt *pkt,
		      bool again);

/*
 * Send responses, at most *@budget packets (counted down).
 * Return: true when the budget ended it. When this host is out of room the
 * reply timer goes on later.
 */
bool uroce_reply_run(struct uroce_qp *qp, int *budget);

#endif
