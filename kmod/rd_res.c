// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* READs and atomics that duplicates may ask for again; see rd_res.h. */
#include "opcode.h"
#include "psn.h"
#include "rd_res.h"

struct uroce_rd_res *uroce_rd_res_new(struct uroce_qp *qp,
				      const struct uroce_pkt *pkt)
{
	struct uroce_resp *resp = &qp->resp;
	struct uroce_rd_res *res = &resp->res[resp->res_next];

	resp->res_next = (resp->res_next + 1) % resp->res_num;
	memset(res, 0, sizeof(*res));
	res->kind = uroce_pkt_flags(pkt) &
		    (UROCE_F_READ | UROCE_F_ATOMIC | UROCE_F_ATOMIC_WRITE);
	res->first_psn = pkt->psn;
	res->num_psn = 1;
	res->rkey = pkt->rkey;
	res->va = pkt->va;
	return res;
}

/* The @i-th newest, counting from 1 */
static const struct uroce_rd_res *newest(const struct uroce_resp *resp, u32 i)
{
	return &resp->res[(resp->res_next + resp->res_num - i) % resp->res_num];
}

u32 uroce_rd_res_done(const struct uroce_qp *qp, u32 dup)
{
	u32 psn = uroce_psn_add(qp->resp.epsn, -1), i;

	/* each one goes on where the one before it ends, or something else does */
	for (i = 1; i <= qp->resp.res_num; i++) {
		const struct uroce_rd_res *res = newest(&qp->resp, i);

		if (!uroce_psn_in(psn, res->first_psn, res->num_psn) ||
		    uroce_psn_diff(res->first_psn, dup) <= 0)
			break;
		psn = uroce_psn_add(res->first_psn, -1);
	}
	return psn;
}

const struct uroce_rd_res *uroce_rd_res_find(const struct uroce_qp *qp,
					     u32 psn)
{
	u32 i;

	/* the newest first: PSNs come round */
	for (i = 1; i <= qp->resp.res_num; i++) {
		const struct uroce_rd_res *res = newest(&qp->resp, i);

		if (uroce_psn_in(psn, res->first_psn, res->num_psn))
			return res;
	}
	return NULL;
}
