// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* XRC: domains, SRQs with a number, initiators, and targets, which have no queues. */
#include "fake_kernel.hpp"

namespace {

class Xrc : public fake::ProviderTest {
protected:
	Xrc()
	{
		ibv_xrcd_init_attr attr = {};

		xrcd = ibv_open_xrcd(context, &attr);
		ini = make_qp(cq, false, IBV_QPT_XRC_SEND);
		set_state(ini, IBV_QPS_RTS);
	}

	~Xrc() override
	{
		EXPECT_EQ(ibv_destroy_qp(ini), 0);
		EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
	}

	ibv_srq_init_attr_ex srq_attr()
	{
		ibv_srq_init_attr_ex attr = {};

		attr.attr = {4, 1, 0};
		attr.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE |
				 IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
		attr.srq_type = IBV_SRQT_XRC;
		attr.pd = pd;
		attr.xrcd = xrcd;
		attr.cq = cq;
		return attr;
	}

	ibv_qp *make_target()
	{
		ibv_qp_init_attr_ex attr = {};

		attr.send_cq = attr.recv_cq = cq; /* to be ignored */
		attr.qp_type = IBV_QPT_XRC_RECV;
		attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		attr.xrcd = xrcd;
		return ibv_create_qp_ex(context, &attr);
	}

	/* All that has to be true of a target in this process */
	void check_target(ibv_qp *target)
	{
		ibv_send_wr send = make_send(IBV_WR_SEND, nullptr, 0);
		ibv_recv_wr recv = {};
		ibv_wc wc;

		ASSERT_NE(target, nullptr);
		EXPECT_EQ(target->send_cq, nullptr);
		EXPECT_EQ(target->recv_cq, nullptr);
		for (ibv_qp_state state : {IBV_QPS_RTS, IBV_QPS_ERR}) {
			set_state(target, state);
			EXPECT_EQ(ibv_post_send(target, &send, &bad_send), EINVAL);
			EXPECT_EQ(ibv_post_recv(target, &recv, &bad_recv), EINVAL);
		}
		set_state(target, IBV_QPS_RESET);

		/* its completions are an SRQ's, and outlive it */
		uroce_cqe cqe = {};

		cqe.qpn = target->qp_num;
		cqe.queue = UROCE_CQE_SRQ;
		kcq().complete(cqe);
		EXPECT_EQ(ibv_destroy_qp(target), 0);
		EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 1);
	}

	ibv_xrcd *xrcd;
	ibv_qp *ini;
};

TEST_F(Xrc, SrqNumberInEachWqe)
{
	ibv_sge sge = {0x1000, 8, 7};
	uint32_t srqn = 0x100, index = 0;

	for (ibv_wr_opcode op :
	     {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
		ibv_send_wr wr = make_send(op, &sge);

		wr.qp_type.xrc.remote_srqn = ++srqn;
		wr.wr.atomic.remote_addr = 0x5000;
		wr.wr.atomic.compare_add = 0x6000;
		ASSERT_EQ(ibv_post_send(ini, &wr, &bad_send), 0);
		EXPECT_EQ(k.qps.at(ini).send_wqe(index)->remote_srqn, srqn);
		if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			EXPECT_EQ(k.qps.at(ini).send_wqe(index)->atomic.compare_add, 0x6000U);
		}
		index++;
	}

	ibv_qp_ex *ex = ibv_qp_to_qp_ex(ini);

	ibv_wr_start(ex);
	ibv_wr_atomic_fetch_add(ex, 1, 0x5000, 0x7000);
	ibv_wr_set_xrc_srqn(ex, 0x777);
	ibv_wr_set_sge(ex, 7, 0x1000, 8);
	ASSERT_EQ(ibv_wr_complete(ex), 0);
	EXPECT_EQ(k.qps.at(ini).send_wqe(index)->remote_srqn, 0x777U);
	EXPECT_EQ(k.qps.at(ini).send_wqe(index)->atomic.compare_add, 0x7000U);

	/* a setter after an error does nothing */
	set_state(ini, IBV_QPS_RESET);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_xrc_srqn(ex, 1);
	EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
}

TEST_F(Xrc, OtherServicesHaveNone)
{
	ibv_sge sge = {0x1000, 8, 7};
	ibv_send_wr wr = make_send(IBV_WR_SEND, &sge);

	wr.qp_type.xrc.remote_srqn = 0x123;
	ASSERT_EQ(post(&wr), 0);
	EXPECT_EQ(kqp().send_wqe(0)->remote_srqn, 0U);
}

TEST_F(Xrc, InitiatorReceivesNothing)
{
	ibv_recv_wr wr = {};

	EXPECT_EQ(ini->recv_cq, nullptr);
	EXPECT_EQ(ibv_post_recv(ini, &wr, &bad_recv), EINVAL);
}

TEST_F(Xrc, Target)
{
	int mappings = fake::count_mappings();
	ibv_qp *target = make_target();

	EXPECT_EQ(fake::count_mappings(), mappings);
	check_target(target);
}

TEST_F(Xrc, OpenedTarget)
{
	ibv_qp_open_attr attr = {};

	attr.qp_num = 0x77;
	attr.qp_type = IBV_QPT_XRC_RECV;
	attr.xrcd = xrcd;
	check_target(ibv_open_qp(context, &attr));
	k.create_qp_err = EINVAL;
	EXPECT_EQ(ibv_open_qp(context, &attr), nullptr);
	EXPECT_EQ(errno, EINVAL);
}

TEST_F(Xrc, SharedReceiveQueue)
{
	ibv_srq_init_attr_ex attr = srq_attr();
	ibv_srq *srq = ibv_create_srq_ex(context, &attr);
	ibv_recv_wr wr = {5, nullptr, nullptr, 0};
	uint32_t number = 0;

	ASSERT_NE(srq, nullptr);
	EXPECT_EQ(ibv_get_srq_num(srq, &number), 0);
	EXPECT_EQ(number, 0x1234U);
	EXPECT_EQ(ibv_post_srq_recv(srq, &wr, &bad_recv), 0);
	EXPECT_EQ(k.srqs.at(srq).wqe(0)->wr_id, 5U);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);

	for (uint32_t without :
	     {IBV_SRQ_INIT_ATTR_PD, IBV_SRQ_INIT_ATTR_XRCD, IBV_SRQ_INIT_ATTR_CQ}) {
		attr = srq_attr();
		attr.comp_mask &= ~without;
		EXPECT_EQ(ibv_create_srq_ex(context, &attr), nullptr);
		EXPECT_EQ(errno, EINVAL) << without;
	}

	ibv_srq_init_attr basic = {nullptr, {4, 1, 0}};

	srq = ibv_create_srq(pd, &basic);
	EXPECT_EQ(ibv_get_srq_num(srq, &number), EOPNOTSUPP);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(Xrc, KernelRefuses)
{
	ibv_xrcd_init_attr attr = {};

	k.simple_err = EPERM;
	EXPECT_EQ(ibv_open_xrcd(context, &attr), nullptr);
	EXPECT_EQ(errno, EPERM);
	EXPECT_EQ(ibv_close_xrcd(xrcd), EPERM);
	k.simple_err = 0;
	k.create_qp_err = ENOMEM;
	EXPECT_EQ(make_target(), nullptr);
	EXPECT_EQ(errno, ENOMEM);
	k.create_qp_err = 0;
}

} /* namespace */
