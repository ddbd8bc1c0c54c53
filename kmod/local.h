/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The local path: messages between QPs of one device are carried out as
 * copies from memory region to memory region, in the requester's context, by
 * the same responder that serves packets.
 */
#ifndef UROCE_LOCAL_H
#define UROCE_LOCAL_H

#include "qp.h"

/*
 * Carry out what can be done locally, as long as *@budget lasts (counted down
 * by messages and by 4 KiB). The SEND owner, BH disabled.
 * Return: true when the budget ended it and there is more to do.
 */
bool uroce_local_run(struct uroce_qp *qp, int *budget);

#endif
