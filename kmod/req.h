/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Requester: takes WQEs from the SQ and turns them into request packets.
 * All functions are for the SEND owner, BH disabled.
 */
#ifndef UROCE_REQ_H
#define UROCE_REQ_H

#include "qp.h"

/*
 * Copy the next WQE of the SQ, check the copy and give it its PSNs. A WQE
 * that cannot be carried out is kept with its error.
 * Return: false when there is none.
 */
bool uroce_req_fetch(struct uroce_qp *qp);

/*
 * The WQE to send from, fetched when need be; memory operations before it are
 * carried out. NULL: none, or a memory operation that has to wait.
 */
struct uroce_swqe *uroce_req_current(struct uroce_qp *qp);

/*
 * Send what may be sent, at most *@budget packets (counted down).
 * Return: true when the budget ended it and there is more to do.
 */
bool uroce_req_run(struct uroce_qp *qp, int *budget);

#endif
