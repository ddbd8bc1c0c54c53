// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shared receive queues: posting, and whose WQEs a completion retires. */
#include "fake_kernel.hpp"

#include <cstring>

namespace {

class Srq : public fake::ProviderTest {
protected:
	Srq()
	{
		ibv_srq_init_attr attr = {this, {3, 1, 0}};

		srq = ibv_create_srq(pd, &attr);
		EXPECT_EQ(attr.attr.max_wr, k.srq_entries);
		EXPECT_EQ(attr.attr.max_sge, k.max_sge);
		EXPECT_EQ(srq->srq_context, this);
	}

	~Srq() override
	{
		if (srq) {
			EXPECT_EQ(ibv_destroy_srq(srq), 0);
		}
	}

	fake::KernelSrq &ksrq()
	{
		return k.srqs.at(srq);
	}

	int post_srq(ibv_recv_wr *first)
	{
		return ibv_post_srq_recv(srq, first, &bad_recv);
	}

	ibv_srq *srq;
	ibv_sge sges[2] = {{0x1000, 100, 7}, {0x2000, 200, 8}};
	ibv_recv_wr wr = {42, nullptr, sges, 2};
};

TEST_F(Srq, Bytes)
{
	memset(ksrq().wqe(0), 0xa5, ksrq().resp.stride);
	ASSERT_EQ(post_srq(&wr), 0);
	EXPECT_EQ(ksrq().ctrl->tail, 1U);

	const uroce_recv_wqe *wqe = ksrq().wqe(0);
	const auto *sge = reinterpret_cast<const uroce_sge *>(wqe + 1);

	EXPECT_EQ(wqe->wr_id, 42U);
	EXPECT_EQ(wqe->num_sge, 2U);
	EXPECT_EQ(wqe->reserved, 0U);
	for (size_t i = 0; i < 2; i++) {
		EXPECT_EQ(sge[i].addr, sges[i].addr);
		EXPECT_EQ(sge[i].length, sges[i].length);
		EXPECT_EQ(sge[i].lkey, sges[i].lkey);
	}
	EXPECT_TRUE(k.kick_commands.empty());
}

/* A slot comes free when the WQE is taken, be the completion polled or not. */
TEST_F(Srq, FullUntilTaken)
{
	for (uint32_t i = 0; i < k.srq_entries; i++)
		ASSERT_EQ(post_srq(&wr), 0);
	EXPECT_EQ(post_srq(&wr), ENOMEM);
	EXPECT_EQ(bad_recv, &wr);
	EXPECT_EQ(ksrq().ctrl->tail, k.srq_entries);

	ksrq().take(1);
	wr.wr_id = 43;
	EXPECT_EQ(post_srq(&wr), 0);
	EXPECT_EQ(ksrq().wqe(0)->wr_id, 43U);
	EXPECT_EQ(post_srq(&wr), ENOMEM);
}

TEST_F(Srq, IndicesWrap)
{
	ibv_recv_wr second = wr;

	wr.next = &second;
	ksrq().ctrl->head = ksrq().ctrl->tail = 0;
	for (uint32_t i = 0; i < 5 * k.srq_entries; i++) {
		ASSERT_EQ(post_srq(&wr), 0) << i;
		ksrq().take(1);
		ksrq().take(1);
	}
	EXPECT_EQ(ksrq().ctrl->tail, 10 * k.srq_entries);
}

/* The WRs before the bad one are posted. */
TEST_F(Srq, Refusals)
{
	ibv_sge many[5] = {};
	ibv_recv_wr bad = {1, nullptr, many, 5};

	wr.next = &bad;
	EXPECT_EQ(post_srq(&wr), EINVAL);
	EXPECT_EQ(bad_recv, &bad);
	EXPECT_EQ(ksrq().ctrl->tail, 1U);
	bad.num_sge = -1;
	EXPECT_EQ(post_srq(&bad), EINVAL);
	k.db->dead = 1;
	wr.next = nullptr;
	EXPECT_EQ(post_srq(&wr), EIO);
	EXPECT_EQ(ksrq().ctrl->tail, 1U);
}

/* The QP of a completion may be unknown here; no RQ of any QP moves. */
TEST_F(Srq, CompletionsRetireNothing)
{
	ibv_wc wc = {};

	for (uint32_t i = 0; i < k.rq_entries; i++)
		ASSERT_EQ(post(&wr), 0);
	wr.wr_id = 7;
	ASSERT_EQ(post_srq(&wr), 0);
	ASSERT_EQ(post_srq(&wr), 0);
	kcq().complete(ksrq().take(qp->qp_num));
	kcq().complete(ksrq().take(0xabcdef));
	ASSERT_EQ(ibv_poll_cq(cq, 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 7U);
	EXPECT_EQ(wc.qp_num, qp->qp_num);
	ASSERT_EQ(ibv_poll_cq(cq, 1, &wc), 1);
	EXPECT_EQ(wc.qp_num, 0xabcdefU);
	EXPECT_EQ(post(&wr), ENOMEM);
}

TEST_F(Srq, QpHasNoReceiveQueue)
{
	ibv_qp *with = make_qp(cq, false, IBV_QPT_RC, srq);

	ASSERT_NE(with, nullptr);
	set_state(with, IBV_QPS_RTS);
	EXPECT_EQ(ibv_post_recv(with, &wr, &bad_recv), EINVAL);
	EXPECT_EQ(bad_recv, &wr);
	EXPECT_EQ(ibv_destroy_qp(with), 0);
}

TEST_F(Srq, Extended)
{
	ibv_srq_init_attr_ex attr = {};

	attr.pd = pd;
	attr.attr = {3, 1, 0};
	for (uint32_t mask : {0U, 1U * IBV_SRQ_INIT_ATTR_TYPE}) {
		attr.comp_mask = mask;
		EXPECT_EQ(ibv_create_srq_ex(context, &attr), nullptr);
		EXPECT_EQ(errno, EINVAL) << mask;
	}
	attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	for (int type : {int{IBV_SRQT_TM}, 3}) {
		attr.srq_type = static_cast<ibv_srq_type>(type);
		EXPECT_EQ(ibv_create_srq_ex(context, &attr), nullptr);
		EXPECT_EQ(errno, EOPNOTSUPP) << type;
	}
	attr.srq_type = IBV_SRQT_BASIC;
	ibv_srq *other = ibv_create_srq_ex(context, &attr);
	ASSERT_NE(other, nullptr);
	EXPECT_EQ(ibv_destroy_srq(other), 0);
}

/* ---- another size ---- */

static int resize(ibv_srq *srq, uint32_t max_wr)
{
	ibv_srq_attr attr = {max_wr, 0, 0};

	return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

/* Every number of waiting WQEs, every size that holds them, also past 2^32. */
TEST_F(Srq, ResizeTakesAlongWhatWaits)
{
	const uint32_t start = 0U - 100;
	uint64_t posted = 0, taken = 0;
	int mappings = k.user_mappings();

	uroce::to_srq(srq)->ring.tail = ksrq().ctrl->tail = ksrq().ctrl->head = start;
	for (uint32_t waiting = 0; waiting <= 4; waiting++) {
		for (uint32_t size : {1U, 2U, 4U, 32U}) {
			ASSERT_EQ(resize(srq, 4), 0);
			for (uint32_t i = 0; i < waiting; i++) {
				wr.wr_id = posted++;
				ASSERT_EQ(post_srq(&wr), 0);
			}
			ASSERT_EQ(resize(srq, size), size < waiting ? EINVAL : 0);
			for (uint32_t i = waiting; i < size; i++) {
				wr.wr_id = posted++;
				ASSERT_EQ(post_srq(&wr), 0);
			}
			if (size >= waiting) {
				ASSERT_EQ(post_srq(&wr), ENOMEM) << waiting << " " << size;
			}
			while (taken != posted)
				ASSERT_EQ(ksrq().take(0).wr_id, taken++);
			ASSERT_EQ(ksrq().ctrl->head, ksrq().ctrl->tail);
			ASSERT_EQ(ksrq().ctrl->tail, static_cast<uint32_t>(start + posted));
		}
	}
	EXPECT_EQ(k.user_mappings(), mappings);
}

/* What is taken while the provider copies makes room in the new ring. */
TEST_F(Srq, ResizeUnderWay)
{
	for (wr.wr_id = 0; wr.wr_id < 4; wr.wr_id++)
		ASSERT_EQ(post_srq(&wr), 0);
	k.resize_takes = true;
	EXPECT_EQ(resize(srq, 2), EINVAL);
	EXPECT_EQ(resize(srq, 2), 0);
	EXPECT_EQ(post_srq(&wr), ENOMEM);
	EXPECT_EQ(ksrq().take(0).wr_id, 2U);
	EXPECT_EQ(post_srq(&wr), 0);
	EXPECT_EQ(ksrq().take(0).wr_id, 3U);
	EXPECT_EQ(ksrq().take(0).wr_id, 4U);
}

TEST_F(Srq, ResizeWithLimit)
{
	ibv_srq_attr attr = {8, 0, 3};

	ASSERT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	EXPECT_EQ(ksrq().limit, 0U);
	ASSERT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	EXPECT_EQ(ksrq().limit, 3U);
}

TEST_F(Srq, FailedResizeChangesNothing)
{
	ibv_srq_attr attr = {8, 0, 0};
	int mappings = k.user_mappings();

	ASSERT_EQ(post_srq(&wr), 0);
	k.resize_commit_err = EINVAL;
	EXPECT_EQ(resize(srq, 8), EINVAL);
	k.resize_commit_err = 0;
	k.bad_map_len = true;
	EXPECT_NE(resize(srq, 8), 0);
	k.bad_map_len = false;
	EXPECT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | 4), EINVAL);
	k.resize_prepare_err = EPROTONOSUPPORT; /* an older kernel */
	EXPECT_EQ(resize(srq, 8), EOPNOTSUPP);
	EXPECT_EQ(k.user_mappings(), mappings);
	for (uint32_t i = 1; i < 4; i++)
		ASSERT_EQ(post_srq(&wr), 0);
	EXPECT_EQ(post_srq(&wr), ENOMEM);
	EXPECT_EQ(ksrq().take(0).wr_id, 42U);
}

TEST_F(Srq, KernelRefuses)
{
	ibv_srq_init_attr attr = {nullptr, {3, 1, 0}};
	ibv_srq_attr srq_attr;
	int objects = k.live_objects;

	k.create_srq_err = ENOMEM;
	EXPECT_EQ(ibv_create_srq(pd, &attr), nullptr);
	EXPECT_EQ(errno, ENOMEM);
	k.create_srq_err = 0;
	k.bad_map_len = true;
	EXPECT_EQ(ibv_create_srq(pd, &attr), nullptr);
	EXPECT_EQ(errno, EINVAL);
	k.bad_map_len = false;
	EXPECT_EQ(k.live_objects, objects);

	k.simple_err = EPERM;
	EXPECT_EQ(ibv_modify_srq(srq, &srq_attr, IBV_SRQ_LIMIT), EPERM);
	EXPECT_EQ(ibv_query_srq(srq, &srq_attr), EPERM);
	k.simple_err = 0;
	EXPECT_EQ(ibv_query_srq(srq, &srq_attr), 0);

	k.destroy_srq_err = EBUSY;
	EXPECT_EQ(ibv_destroy_srq(srq), EBUSY);
	EXPECT_EQ(post_srq(&wr), 0);
	k.destroy_srq_err = 0;
	int mappings = fake::count_mappings();
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
	srq = nullptr;
	EXPECT_EQ(fake::count_mappings(), mappings - 1);
}

} /* namespace */
