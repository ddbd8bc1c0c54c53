/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The responder's memory of its last READs and atomics (IBTA 9.7.5.1.1, 9.4.5):
 * a ring of as many as the peer may have outstanding. For the RECV owner.
 */
#ifndef UROCE_RD_RES_H
#define UROCE_RD_RES_H

#include "parse.h"
#include "qp.h"

/* Room to remember the request @pkt; the oldest goes. */
struct uroce_rd_res *uroce_rd_res_new(struct uroce_qp *qp,
				      const struct uroce_pkt *pkt);

/* The newest one that @psn belongs to, or NULL */
const struct uroce_rd_res *uroce_rd_res_find(const struct uroce_qp *qp,
					     u32 psn);

/*
 * The PSN to acknowledge with: of the newest request done, but none that READ
 * responses or an atomic's still have to answer, as far as a duplicate of PSN
 * @dup tells.
 */
u32 uroce_rd_res_done(const struct uroce_qp *qp, u32 dup);

#endif
