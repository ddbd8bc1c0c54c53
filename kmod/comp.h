/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completer: acknowledgments and responses retire WQEs, in posting order;
 * losses and timeouts send the requester back.
 * All functions are for the SEND owner, BH disabled.
 */
#ifndef UROCE_COMP_H
#define UROCE_COMP_H

#include "parse.h"
#include "qp.h"

/*
 * One acknowledgment or response packet; the ICRC and the QP are checked.
 * False: memory for what it brings is not there; a fault was noted, and the
 * packet is to be repeated.
 */
bool __must_check uroce_comp_packet(struct uroce_qp *qp,
				    const struct uroce_pkt *pkt,
				    struct uroce_payload *payload);

struct uroce_local;

/*
 * The peer's responder has dealt with a piece of the current WQE on the local
 * path. @last: it was the last one.
 */
void uroce_comp_local(struct uroce_qp *qp, struct uroce_swqe *swqe,
		      const struct uroce_local *local, bool last);

/* The acknowledgment timer looked at the clock. */
void uroce_comp_timeout(struct uroce_qp *qp);

/* The RNR wait or the transmit backoff is over. */
void uroce_comp_resume(struct uroce_qp *qp);

/*
 * After the requester ran: complete what needs no acknowledgment, fail the
 * oldest WQE if it has an error, notice that an SQ has drained.
 */
void uroce_comp_settle(struct uroce_qp *qp);

/*
 * The QP is in error: complete everything fetched with WR_FLUSH_ERR, at most
 * *@budget WQEs (counted down). Return: true when there is more.
 */
bool uroce_comp_flush(struct uroce_qp *qp, int *budget);

#endif
