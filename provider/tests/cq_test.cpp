// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Polling, both interfaces, and arming. */
#include "fake_kernel.hpp"

namespace {

class CqTest : public fake::ProviderTest {
protected:
	/* A CQE with a different value in each field. */
	uroce_cqe sample()
	{
		uroce_cqe cqe = {};

		cqe.wr_id = 0x1122334455667788;
		cqe.qpn = qp->qp_num;
		cqe.byte_len = 1234;
		cqe.imm_data = htobe32(0x01020304);
		cqe.src_qp = 55;
		cqe.status = IBV_WC_SUCCESS;
		cqe.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
		cqe.wc_flags = UROCE_WC_WITH_IMM | UROCE_WC_GRH;
		cqe.vendor_err = 77;
		cqe.timestamp = 0xabcdef0123456789;
		cqe.wallclock = 0x1234567890abcdef;
		cqe.pkey_index = 3;
		cqe.sl = 5;
		cqe.queue = UROCE_CQE_RQ;
		return cqe;
	}

	void complete_with_id(uint64_t id)
	{
		uroce_cqe cqe = kqp().sq_cqe(0);

		cqe.wr_id = id;
		kcq().complete(cqe);
	}

	ibv_wc wc[16];
};

TEST_F(CqTest, FieldsOfAWc)
{
	kcq().complete(sample());
	ASSERT_EQ(ibv_poll_cq(cq, 16, wc), 1);
	EXPECT_EQ(wc->wr_id, 0x1122334455667788U);
	EXPECT_EQ(wc->status, IBV_WC_SUCCESS);
	EXPECT_EQ(wc->opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	EXPECT_EQ(wc->vendor_err, 77U);
	EXPECT_EQ(wc->byte_len, 1234U);
	EXPECT_EQ(wc->imm_data, htobe32(0x01020304));
	EXPECT_EQ(wc->qp_num, qp->qp_num);
	EXPECT_EQ(wc->src_qp, 55U);
	EXPECT_EQ(wc->wc_flags, unsigned{IBV_WC_WITH_IMM | IBV_WC_GRH});
	EXPECT_EQ(wc->pkey_index, 3);
	EXPECT_EQ(wc->slid, 0);
	EXPECT_EQ(wc->sl, 5);
	EXPECT_EQ(wc->dlid_path_bits, 0);
}

TEST_F(CqTest, InvalidatedKeyAndErrors)
{
	uroce_cqe cqe = sample();

	cqe.opcode = IBV_WC_RECV;
	cqe.wc_flags = UROCE_WC_WITH_INV;
	cqe.inv_rkey = 0x99;
	kcq().complete(cqe);
	cqe = kqp().sq_cqe(0);
	cqe.status = IBV_WC_RETRY_EXC_ERR;
	cqe.opcode = IBV_WC_RDMA_READ;
	kcq().complete(cqe);
	ASSERT_EQ(ibv_poll_cq(cq, 16, wc), 2);
	EXPECT_EQ(wc[0].wc_flags, unsigned{IBV_WC_WITH_INV});
	EXPECT_EQ(wc[0].invalidated_rkey, 0x99U);
	EXPECT_EQ(wc[1].status, IBV_WC_RETRY_EXC_ERR);
	EXPECT_EQ(wc[1].opcode, IBV_WC_RDMA_READ);
	EXPECT_EQ(wc[1].wc_flags, 0U);
}

/* Several passes over the ring, batches of changing size; also past 2^32. */
TEST_F(CqTest, OwnerWordsOfManyPasses)
{
	for (uint32_t start : {0U, 0U - 2 * k.cq_entries}) {
		uint64_t id = 0, polled = 0;

		uroce::to_cq(cq)->ci = kcq().pi = kcq().ctrl->ci = start;
		for (int round = 0; round < 20; round++) {
			for (int i = 0; i <= round % 8; i++)
				complete_with_id(id++);
			for (int n; (n = ibv_poll_cq(cq, 3, wc)) > 0;) {
				for (int i = 0; i < n; i++)
					ASSERT_EQ(wc[i].wr_id, polled++);
			}
			ASSERT_EQ(polled, id);
			ASSERT_EQ(kcq().ctrl->ci, kcq().pi);
		}
	}
}

TEST_F(CqTest, EmptyPollWritesNothing)
{
	kcq().ctrl->ci = 0x1234; /* to see a store */
	uroce::to_cq(cq)->ci = 0x1234;
	kcq().pi = 0x1234;
	EXPECT_EQ(ibv_poll_cq(cq, 16, wc), 0);
	EXPECT_EQ(kcq().ctrl->ci, 0x1234U);
	complete_with_id(1);
	EXPECT_EQ(ibv_poll_cq(cq, 0, wc), 0);
	EXPECT_EQ(kcq().ctrl->ci, 0x1234U);
}

TEST_F(CqTest, UnknownQpIsReportedAndHarmless)
{
	uroce_cqe cqe = sample();

	cqe.qpn = 0xfedcba;
	kcq().complete(cqe);
	ASSERT_EQ(ibv_poll_cq(cq, 16, wc), 1);
	EXPECT_EQ(wc->qp_num, 0xfedcbaU);
}

/* ------------------------------------------------------------------ */
/* Another size                                                       */
/* ------------------------------------------------------------------ */

/* Every number of waiting CQEs, every size that holds them, also past 2^32. */
TEST_F(CqTest, ResizeTakesAlongWhatWaits)
{
	uint32_t index = 0U - 300;
	uint64_t id = 0, polled = 0;
	int mappings = k.user_mappings();

	uroce::to_cq(cq)->ci = kcq().pi = kcq().ctrl->ci = index;
	for (int waiting = 0; waiting <= 8; waiting++) {
		for (int size : {2, 4, 8, 32}) {
			for (int i = 0; i < waiting; i++)
				complete_with_id(id++);
			if (size >= waiting) {
				ASSERT_EQ(ibv_resize_cq(cq, size), 0);
				EXPECT_EQ(cq->cqe, size);
				if (size > waiting)
					complete_with_id(id++);
			}
			for (int n; (n = ibv_poll_cq(cq, 3, wc)) > 0;) {
				for (int i = 0; i < n; i++)
					ASSERT_EQ(wc[i].wr_id, polled++);
			}
			ASSERT_EQ(polled, id) << waiting << " " << size;
			ASSERT_EQ(kcq().ctrl->ci, kcq().pi);
			ASSERT_EQ(ibv_resize_cq(cq, 8), 0);
		}
	}
	EXPECT_EQ(k.user_mappings(), mappings);
}

TEST_F(CqTest, ResizeKeepsArmAndForgottenCqes)
{
	ibv_qp *other = make_qp(cq);
	uroce_cqe cqe = sample();

	cqe.qpn = other->qp_num;
	ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
	kcq().complete(cqe);
	complete_with_id(7);
	ASSERT_EQ(ibv_destroy_qp(other), 0);
	ASSERT_EQ(ibv_resize_cq(cq, 4), 0);
	EXPECT_NE(kcq().ctrl->arm, kcq().ctrl->fired);
	ASSERT_EQ(ibv_poll_cq(cq, 16, wc), 1);
	EXPECT_EQ(wc->wr_id, 7U);
}

TEST_F(CqTest, FailedResizeChangesNothing)
{
	int mappings = k.user_mappings();

	complete_with_id(1);
	k.resize_commit_err = EINVAL;
	EXPECT_EQ(ibv_resize_cq(cq, 4), EINVAL);
	k.resize_commit_err = 0;
	k.bad_map_len = true;
	EXPECT_NE(ibv_resize_cq(cq, 4), 0);
	k.bad_map_len = false;
	EXPECT_EQ(k.user_mappings(), mappings);
	EXPECT_EQ(cq->cqe, 8);
	complete_with_id(2);
	ASSERT_EQ(ibv_poll_cq(cq, 16, wc), 2);
	EXPECT_EQ(wc[1].wr_id, 2U);
}

/* ------------------------------------------------------------------ */
/* Arming                                                             */
/* ------------------------------------------------------------------ */

TEST_F(CqTest, EachArmingIsNew)
{
	uroce_cq_ctrl *ctrl = kcq().ctrl;
	uint32_t last = ctrl->arm;

	EXPECT_EQ(last, ctrl->fired);
	for (int i = 0; i < 5; i++) {
		ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
		EXPECT_EQ(ctrl->arm & UROCE_ARM_KIND_MASK, unsigned{UROCE_ARM_NEXT});
		EXPECT_EQ(ctrl->arm >> 2, (last >> 2) + 1);
		last = ctrl->arm;
	}
	ctrl->fired = last;
	ASSERT_EQ(ibv_req_notify_cq(cq, 1), 0);
	EXPECT_EQ(ctrl->arm & UROCE_ARM_KIND_MASK, unsigned{UROCE_ARM_SOLICITED});
	EXPECT_NE(ctrl->arm, ctrl->fired);
}

TEST_F(CqTest, SolicitedDoesNotWeakenAPendingArm)
{
	uroce_cq_ctrl *ctrl = kcq().ctrl;

	ASSERT_EQ(ibv_req_notify_cq(cq, 1), 0);
	EXPECT_EQ(ctrl->arm & UROCE_ARM_KIND_MASK, unsigned{UROCE_ARM_SOLICITED});
	ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0); /* strengthens */
	ASSERT_EQ(ibv_req_notify_cq(cq, 1), 0);
	EXPECT_EQ(ctrl->arm & UROCE_ARM_KIND_MASK, unsigned{UROCE_ARM_NEXT});
	ctrl->fired = ctrl->arm;
	ASSERT_EQ(ibv_req_notify_cq(cq, 1), 0);
	EXPECT_EQ(ctrl->arm & UROCE_ARM_KIND_MASK, unsigned{UROCE_ARM_SOLICITED});
	EXPECT_TRUE(k.kick_commands.empty());
}

/* ------------------------------------------------------------------ */
/* ibv_cq_ex                                                          */
/* ------------------------------------------------------------------ */

class CqEx : public CqTest {
protected:
	ibv_cq_ex *make(uint64_t wc_flags, uint32_t comp_mask = 0, uint32_t flags = 0)
	{
		ibv_cq_init_attr_ex attr = {};

		attr.cqe = 5;
		attr.wc_flags = wc_flags;
		attr.comp_mask = comp_mask;
		attr.flags = flags;
		/* The way through libibverbs exists only on contexts that it opened. */
		return uroce::create_cq_ex(context, &attr);
	}

	ibv_poll_cq_attr no_attr = {};
};

TEST_F(CqEx, IterateAndRead)
{
	for (uint32_t flags : {0U, unsigned{IBV_CREATE_CQ_ATTR_SINGLE_THREADED}}) {
		ibv_cq_ex *cqx = make(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
					      IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
				      IBV_CQ_INIT_ATTR_MASK_FLAGS, flags);
		ASSERT_NE(cqx, nullptr);
		fake::KernelCq &kcqx = k.cqs.at(ibv_cq_ex_to_cq(cqx));
		EXPECT_EQ(kcqx.flags, unsigned{UROCE_CQ_WALLCLOCK});

		EXPECT_EQ(ibv_start_poll(cqx, &no_attr), ENOENT);
		kcqx.complete(sample());
		kcqx.complete(kqp().sq_cqe(0));
		ASSERT_EQ(ibv_start_poll(cqx, &no_attr), 0);
		EXPECT_EQ(cqx->wr_id, 0x1122334455667788U);
		EXPECT_EQ(cqx->status, IBV_WC_SUCCESS);
		EXPECT_EQ(ibv_wc_read_opcode(cqx), IBV_WC_RECV_RDMA_WITH_IMM);
		EXPECT_EQ(ibv_wc_read_vendor_err(cqx), 77U);
		EXPECT_EQ(ibv_wc_read_byte_len(cqx), 1234U);
		EXPECT_EQ(ibv_wc_read_imm_data(cqx), htobe32(0x01020304));
		EXPECT_EQ(ibv_wc_read_qp_num(cqx), qp->qp_num);
		EXPECT_EQ(ibv_wc_read_src_qp(cqx), 55U);
		EXPECT_EQ(ibv_wc_read_wc_flags(cqx), unsigned{IBV_WC_WITH_IMM | IBV_WC_GRH});
		EXPECT_EQ(ibv_wc_read_slid(cqx), 0U);
		EXPECT_EQ(ibv_wc_read_sl(cqx), 5);
		EXPECT_EQ(ibv_wc_read_dlid_path_bits(cqx), 0);
		EXPECT_EQ(ibv_wc_read_completion_ts(cqx), 0xabcdef0123456789U);
		EXPECT_EQ(ibv_wc_read_completion_wallclock_ns(cqx), 0x1234567890abcdefU);
		EXPECT_EQ(kcqx.ctrl->ci, 1U); /* free for what is posted now */
		ASSERT_EQ(ibv_next_poll(cqx), 0);
		EXPECT_EQ(ibv_wc_read_opcode(cqx), IBV_WC_SEND);
		EXPECT_EQ(ibv_next_poll(cqx), ENOENT);
		/* armed, then looked at once more: without a gap */
		EXPECT_EQ(ibv_req_notify_cq(ibv_cq_ex_to_cq(cqx), 0), 0);
		EXPECT_EQ(ibv_next_poll(cqx), ENOENT);
		ibv_end_poll(cqx);
		EXPECT_EQ(kcqx.ctrl->ci, 2U);

		EXPECT_EQ(ibv_poll_cq(ibv_cq_ex_to_cq(cqx), 16, wc), 0); /* lock is free */
		ibv_poll_cq_attr bad_attr = {1};
		EXPECT_EQ(ibv_start_poll(cqx, &bad_attr), EINVAL);
		EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cqx)), 0);
	}
}

TEST_F(CqEx, OnlyTheReadersAskedFor)
{
	ibv_cq_ex *cqx = make(IBV_WC_EX_WITH_BYTE_LEN);

	ASSERT_NE(cqx, nullptr);
	EXPECT_NE(cqx->read_opcode, nullptr);
	EXPECT_NE(cqx->read_byte_len, nullptr);
	EXPECT_EQ(cqx->read_imm_data, nullptr);
	EXPECT_EQ(cqx->read_completion_ts, nullptr);
	EXPECT_EQ(cqx->read_completion_wallclock_ns, nullptr);
	EXPECT_EQ(k.cqs.at(ibv_cq_ex_to_cq(cqx)).flags, 0U);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cqx)), 0);
}

TEST_F(CqEx, UnsupportedIsSaidWithoutACommand)
{
	int before = k.commands;
	const uint64_t flags[] = {IBV_WC_EX_WITH_CVLAN, IBV_WC_EX_WITH_FLOW_TAG,
				  IBV_WC_EX_WITH_TM_INFO};

	for (uint64_t flag : flags) {
		errno = 0;
		EXPECT_EQ(make(flag), nullptr);
		EXPECT_EQ(errno, EOPNOTSUPP);
	}
	EXPECT_EQ(make(0, IBV_CQ_INIT_ATTR_MASK_FLAGS, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	errno = 0;
	EXPECT_EQ(make(0, 4), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_EQ(make(0, IBV_CQ_INIT_ATTR_MASK_PD), nullptr);
	EXPECT_EQ(errno, EINVAL); /* names none */
	EXPECT_EQ(k.commands, before);
}

} /* namespace */
