/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Receive WQEs as the responder uses them: one at a time, of the QP's RQ or of
 * its SRQ. All functions are for the RECV owner, BH disabled.
 */
#ifndef UROCE_RECV_H
#define UROCE_RECV_H

#include "qp.h"

/*
 * XRC target: from here to uroce_recv_leave() the QP receives for the SRQ of
 * that number; its PD is that of the keys in the request (annex A14). False: the
 * SRQ is not one of the QP's domain. Other QPs: true, nothing to do. An SRQ is
 * not destroyed between the two.
 */
bool __must_check uroce_recv_enter(struct uroce_qp *qp, u32 srqn);
void uroce_recv_leave(struct uroce_qp *qp);

/*
 * Make the next WQE current, unless there is a current one already: copied
 * once into qp->resp. -EAGAIN: there is none. -EINVAL: it is malformed.
 */
int uroce_recv_get(struct uroce_qp *qp);

/*
 * Complete the current WQE. The caller fills in status and what came; the rest
 * of @cqe is done here.
 */
void uroce_recv_complete(struct uroce_qp *qp, struct uroce_cqe *cqe,
			 bool solicited);

/* Complete the current WQE with an error. */
void uroce_recv_fail(struct uroce_qp *qp, u8 status);

/*
 * XRC target, not between enter and leave: complete the WQE that was taken, if
 * any, with WR_FLUSH_ERR, unless its SRQ has been destroyed meanwhile.
 */
void uroce_recv_give_back(struct uroce_qp *qp);

/*
 * The QP is in error: give back all receive WQEs with WR_FLUSH_ERR, of an SRQ
 * the one that the QP has taken; at most *@budget (counted down).
 * Return: true when there is more.
 */
bool uroce_recv_flush(struct uroce_qp *qp, int *budget);

#endif
