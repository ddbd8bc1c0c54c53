// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ibv_post_recv(). */
#include "fake_kernel.hpp"

#include <cstring>

namespace {

class Recv : public fake::ProviderTest {
protected:
	ibv_sge sges[2] = {{0x1000, 100, 7}, {0x2000, 200, 8}};
	ibv_recv_wr wr = {42, nullptr, sges, 2};

	uint32_t tail()
	{
		return kqp().ctrl->rq_tail;
	}
};

TEST_F(Recv, Bytes)
{
	memset(kqp().recv_wqe(0), 0xa5, kqp().resp.rq_stride);
	ASSERT_EQ(post(&wr), 0);
	EXPECT_EQ(tail(), 1U);

	const uroce_recv_wqe *wqe = kqp().recv_wqe(0);
	const auto *sge = reinterpret_cast<const uroce_sge *>(wqe + 1);

	EXPECT_EQ(wqe->wr_id, 42U);
	EXPECT_EQ(wqe->num_sge, 2U);
	EXPECT_EQ(wqe->reserved, 0U);
	for (size_t i = 0; i < 2; i++) {
		EXPECT_EQ(sge[i].addr, sges[i].addr);
		EXPECT_EQ(sge[i].length, sges[i].length);
		EXPECT_EQ(sge[i].lkey, sges[i].lkey);
	}
}

TEST_F(Recv, NoSystemCallButInTheErrorState)
{
	ibv_recv_wr second = wr;

	wr.next = &second;
	ASSERT_EQ(post(&wr), 0);
	EXPECT_TRUE(k.kick_commands.empty());
	EXPECT_EQ(k.db->active[kqp().resp.db_slot / 64], 0U);

	kqp().ctrl->rq_need_kick = 1;
	ASSERT_EQ(post(&wr), 0);
	EXPECT_EQ(k.kick_commands.size(), 1U);
}

TEST_F(Recv, FullUntilRetired)
{
	ibv_wc wc;

	for (uint32_t i = 0; i < k.rq_entries; i++)
		ASSERT_EQ(post(&wr), 0);
	EXPECT_EQ(post(&wr), ENOMEM);
	EXPECT_EQ(bad_recv, &wr);
	kcq().complete(kqp().rq_cqe(0));
	ASSERT_EQ(ibv_poll_cq(cq, 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 42U);
	EXPECT_EQ(post(&wr), 0);
	EXPECT_EQ(post(&wr), ENOMEM);
	EXPECT_EQ(kqp().ctrl->sq_tail, 0U);
}

TEST_F(Recv, Refusals)
{
	ibv_sge many[5] = {};
	ibv_recv_wr bad = {1, nullptr, many, 5};

	wr.next = &bad;
	EXPECT_EQ(post(&wr), EINVAL);
	EXPECT_EQ(bad_recv, &bad);
	EXPECT_EQ(tail(), 1U);
	bad.num_sge = -1;
	EXPECT_EQ(post(&bad), EINVAL);

	set_state(qp, IBV_QPS_RESET);
	EXPECT_EQ(post(&wr), EINVAL);
	EXPECT_EQ(bad_recv, &wr);
	set_state(qp, IBV_QPS_INIT);
	wr.next = nullptr;
	EXPECT_EQ(post(&wr), 0);
}

TEST_F(Recv, DeviceGone)
{
	kqp().ctrl->rq_need_kick = 1;
	k.kick_err = EIO;
	EXPECT_EQ(post(&wr), 0); /* it lies where the kernel may find it */
	EXPECT_EQ(bad_recv, nullptr);
	k.db->dead = 1;
	EXPECT_EQ(post(&wr), EIO);
	EXPECT_EQ(bad_recv, &wr);
	EXPECT_EQ(tail(), 1U);
}

} /* namespace */
