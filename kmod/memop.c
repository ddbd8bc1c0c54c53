// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory operations of the send queue; see memop.h. */
#include "memop.h"
#include "mr.h"
#include "mw.h"

u8 uroce_memop_check(const struct uroce_qp *qp, const struct uroce_send_wqe *w)
{
	/* a region of kernel memory is the kernel's to register */
	if (w->opcode == IB_WR_REG_MR && qp->uctx)
		return IB_WC_LOC_QP_OP_ERR;
	if (w->num_sge || w->flags & UROCE_SEND_INLINE)
		return IB_WC_LOC_QP_OP_ERR;
	return 0;
}

void uroce_memop_run(struct uroce_qp *qp, struct uroce_swqe *swqe)
{
	const struct uroce_send_wqe *w = &swqe->w;
	int err;

	uroce_qp_assert_owned(qp, UROCE_SEND);

	switch (w->opcode) {
	case IB_WR_BIND_MW:
		err = uroce_mw_bind(&qp->bearer, w);
		break;
	case IB_WR_LOCAL_INV:
		err = uroce_key_invalidate(&qp->bearer, w->inv_rkey);
		break;
	case IB_WR_REG_MR:
		err = uroce_mr_fast_reg(&qp->bearer, w->rkey, w->remote_addr,
					w->bind.access);
		break;
	default:
		err = -EINVAL;
		break;
	}

	/* IBTA 11.6.2: "memory management operation error" */
	if (err)
		swqe->error = IB_WC_MW_BIND_ERR;
	else
		swqe->memop = UROCE_MEMOP_DONE;
}
