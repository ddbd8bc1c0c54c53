/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Posting by kernel consumers: the same rings, written by us. */
#ifndef UROCE_KPOST_H
#define UROCE_KPOST_H

#include <rdma/ib_verbs.h>

/* Any context, interrupts may be off. */
int uroce_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad);
int uroce_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad);
int uroce_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad);

#endif
