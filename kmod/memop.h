/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory operations of the send queue: windows, fast registration, keys. */
#ifndef UROCE_MEMOP_H
#define UROCE_MEMOP_H

#include "qp.h"

/* 0 or the status to fail with, before anything is done; as in a fetch. */
u8 uroce_memop_check(const struct uroce_qp *qp, const struct uroce_send_wqe *w);

/*
 * Carry out a WQE whose memop is TODO. SEND owner, BH disabled. Sets it to
 * DONE, or swqe->error.
 */
void uroce_memop_run(struct uroce_qp *qp, struct uroce_swqe *swqe);

#endif
