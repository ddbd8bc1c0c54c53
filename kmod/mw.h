/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory windows: keys that open part of a region to the peer (IBTA 10.6.7).
 * Type 1 windows are for all QPs of their PD, type 2 windows for the one QP
 * that bound them (type 2B). A bound window keeps its region from going.
 */
#ifndef UROCE_MW_H
#define UROCE_MW_H

#include <rdma/ib_verbs.h>
#include "key.h"
#include "uapi/uroce-abi.h"

/* The core's object: freed by the core as soon as dealloc returns */
struct uroce_mw {
	struct ib_mw ib;	/* first */
	struct uroce_key *key;
};

int uroce_alloc_mw(struct ib_mw *mw, struct ib_udata *udata);
int uroce_dealloc_mw(struct ib_mw *mw);

/*
 * Carry out IB_WR_BIND_MW of the QP @who; @w is a private copy. BH disabled.
 * -EINVAL: not allowed, and the window is as before.
 */
int uroce_mw_bind(const struct uroce_bearer *who,
		  const struct uroce_send_wqe *w);

#endif
