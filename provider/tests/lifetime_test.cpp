// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Creation, failure, reset, destruction: what is left behind, and what must not be. */
#include "fake_kernel.hpp"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace {

class Lifetime : public fake::ProviderTest {
protected:
	/* Nothing may stay of an attempt that failed. */
	template <class Create>
	void expect_failure(int err, Create create)
	{
		int objects = k.live_objects, mappings = fake::count_mappings();

		errno = 0;
		EXPECT_EQ(create(), nullptr);
		EXPECT_EQ(errno, err);
		EXPECT_EQ(k.live_objects, objects);
		/* The kernel's own new region, if it got that far. */
		EXPECT_LE(fake::count_mappings(), mappings + 1);
	}

	int poll()
	{
		return ibv_poll_cq(cq, 16, wc);
	}

	ibv_wc wc[16];
};

TEST_F(Lifetime, FailedCreationsLeaveNothing)
{
	auto new_cq = [this] { return ibv_create_cq(context, 5, nullptr, nullptr, 0); };
	auto new_qp = [this] { return make_qp(cq); };

	k.create_cq_err = EINVAL;
	expect_failure(EINVAL, new_cq);
	k.create_cq_err = 0;
	k.create_qp_err = EOPNOTSUPP;
	expect_failure(EOPNOTSUPP, new_qp);
	k.create_qp_err = 0;
	k.get_context_err = EPERM;
	expect_failure(EPERM, [this] { return open_context(); });
	k.get_context_err = 0;

	k.bad_map_len = true;
	expect_failure(EINVAL, new_cq);
	expect_failure(EINVAL, new_qp);
	expect_failure(EINVAL, [this] { return open_context(); });

	k.simple_err = ENOSPC;
	expect_failure(ENOSPC, [this] { return ibv_alloc_pd(context); });
	expect_failure(ENOSPC, [this] { return ibv_reg_mr(pd, wc, sizeof(wc), 0); });
	k.simple_err = 0;
}

TEST_F(Lifetime, DestructionUnmaps)
{
	int mappings = fake::count_mappings();
	ibv_cq *other_cq = ibv_create_cq(context, 5, nullptr, nullptr, 0);
	ibv_qp *other_qp = make_qp(other_cq);

	EXPECT_EQ(other_cq->cqe, static_cast<int>(k.cq_entries));
	EXPECT_EQ(fake::count_mappings(), mappings + 4);
	EXPECT_EQ(ibv_destroy_qp(other_qp), 0);
	EXPECT_EQ(ibv_destroy_cq(other_cq), 0);
	EXPECT_EQ(fake::count_mappings(), mappings + 2); /* the kernel's own */
}

TEST_F(Lifetime, SimpleObjects)
{
	ibv_mr *mr = ibv_reg_mr(pd, wc, sizeof(wc), 0);
	ibv_ah_attr ah_attr = {};
	ibv_ah *ah = ibv_create_ah(pd, &ah_attr);
	ibv_device_attr attr;
	ibv_device_attr_ex attr_ex;
	ibv_qp_attr qp_attr;
	ibv_qp_init_attr init_attr;

	ASSERT_NE(mr, nullptr);
	ASSERT_NE(ah, nullptr);
	k.simple_err = EBUSY;
	EXPECT_EQ(ibv_dereg_mr(mr), EBUSY);
	EXPECT_EQ(ibv_destroy_ah(ah), EBUSY);
	EXPECT_EQ(ibv_query_qp(qp, &qp_attr, 0, &init_attr), EBUSY);
	k.simple_err = 0;
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	EXPECT_EQ(ibv_query_qp(qp, &qp_attr, 0, &init_attr), 0);
	EXPECT_EQ(ibv_query_device(context, &attr), 0);
	EXPECT_STREQ(attr.fw_ver, "1.2.3");
	EXPECT_EQ(ibv_query_device_ex(context, nullptr, &attr_ex), 0);
	EXPECT_STREQ(attr_ex.orig_attr.fw_ver, "1.2.3");
}

TEST_F(Lifetime, UnsupportedQpsNeedNoCommand)
{
	ibv_qp_init_attr_ex attr = {};
	int before = k.commands;

	attr.send_cq = attr.recv_cq = cq;
	attr.pd = pd;
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	for (auto [type, op] : {std::pair{IBV_QPT_RC, IBV_QP_EX_WITH_TSO},
				{IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_ATOMIC_WRITE},
				{IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ}}) {
		attr.qp_type = type;
		attr.send_ops_flags = op | IBV_QP_EX_WITH_SEND;
		errno = 0;
		EXPECT_EQ(ibv_create_qp_ex(context, &attr), nullptr);
		EXPECT_EQ(errno, EOPNOTSUPP);
	}
	attr.qp_type = IBV_QPT_RC;
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	errno = 0;
	EXPECT_EQ(ibv_create_qp_ex(context, &attr), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_EQ(k.commands, before);

	/* No flags, said explicitly. Without builders there is no ibv_qp_ex. */
	attr.create_flags = 0;
	ibv_qp *plain = ibv_create_qp_ex(context, &attr);
	ASSERT_NE(plain, nullptr);
	EXPECT_EQ(ibv_qp_to_qp_ex(plain), nullptr);
	EXPECT_EQ(attr.cap.max_send_wr, k.sq_entries);
	EXPECT_EQ(ibv_destroy_qp(plain), 0);

	/* Datagrams have one flag. */
	attr.qp_type = IBV_QPT_UD;
	attr.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	ibv_qp *quiet = ibv_create_qp_ex(context, &attr);
	ASSERT_NE(quiet, nullptr);
	EXPECT_EQ(k.create_flags, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
	EXPECT_EQ(ibv_destroy_qp(quiet), 0);
}

/* ------------------------------------------------------------------ */
/* CQEs of a QP that is gone                                          */
/* ------------------------------------------------------------------ */

/*
 * Every mix of its CQEs and another QP's, from every place in the ring: what is left comes in
 * order, and the slots of what is gone go back without a poll.
 */
TEST_F(Lifetime, DestroyTakesItsCqesAndNoOthers)
{
	for (uint32_t start = 0; start < k.cq_entries; start++) {
		for (uint32_t mix = 0; mix < 1U << k.cq_entries; mix++) {
			ibv_qp *other = make_qp(cq);
			fake::KernelQp kother = k.qps.at(other);
			std::vector<uint64_t> kept;

			uroce::to_cq(cq)->ci = kcq().pi = kcq().ctrl->ci = start;
			for (uint32_t i = 0; i < k.cq_entries; i++) {
				uroce_cqe cqe = mix & 1U << i ? kother.rq_cqe(0) : kqp().sq_cqe(0);

				cqe.wr_id = i;
				if (cqe.qpn == qp->qp_num)
					kept.push_back(i);
				kcq().complete(cqe);
			}
			ASSERT_EQ(ibv_destroy_qp(other), 0);
			ASSERT_EQ(kcq().pi - kcq().ctrl->ci, kept.size());
			for (uint64_t id : kept) {
				ASSERT_EQ(ibv_poll_cq(cq, 1, wc), 1);
				ASSERT_EQ(wc[0].wr_id, id);
				ASSERT_EQ(wc[0].qp_num, qp->qp_num);
			}
			ASSERT_EQ(poll(), 0);
			ASSERT_EQ(kcq().ctrl->ci, kcq().pi);
		}
	}
}

TEST_F(Lifetime, FailedDestroyChangesNothing)
{
	kcq().complete(kqp().sq_cqe(0));
	k.destroy_qp_err = EBUSY;
	EXPECT_EQ(ibv_destroy_qp(qp), EBUSY);
	k.destroy_qp_err = 0;
	EXPECT_EQ(poll(), 1);
}

TEST_F(Lifetime, ResetStartsOver)
{
	ibv_sge sge = {0x1000, 1, 1};
	ibv_send_wr wr = make_send(IBV_WR_SEND, &sge);
	ibv_recv_wr recv = {1, nullptr, &sge, 1};
	ibv_qp_attr attr = {};

	for (uint32_t i = 0; i < 5; i++)
		ASSERT_EQ(post(&wr), 0);
	ASSERT_EQ(post(&recv), 0);
	kcq().complete(kqp().sq_cqe(2));

	attr.qp_state = IBV_QPS_RESET;
	k.modify_qp_err = EIO;
	EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EIO);
	k.modify_qp_err = 0;
	EXPECT_EQ(uroce::to_qp(qp)->sq.tail, 5U);

	k.late_tail = 4;
	set_state(qp, IBV_QPS_RESET);
	EXPECT_EQ(poll(), 0);
	EXPECT_EQ(kqp().ctrl->sq_tail, 0U);
	EXPECT_EQ(kqp().ctrl->rq_tail, 0U);
	EXPECT_EQ(post(&wr), EINVAL);
	EXPECT_EQ(post(&recv), EINVAL);
	set_state(qp, IBV_QPS_RTS);
	for (uint32_t i = 0; i < k.sq_entries; i++)
		ASSERT_EQ(post(&wr), 0);
	EXPECT_EQ(post(&wr), ENOMEM);
	EXPECT_EQ(kqp().ctrl->sq_tail, k.sq_entries);
	ASSERT_EQ(post(&recv), 0);
	EXPECT_EQ(kqp().ctrl->rq_tail, 1U);
}

/* A number that comes back belongs to the new QP alone. */
TEST_F(Lifetime, QpNumberUsedAgain)
{
	ibv_qp *other = make_qp(cq);
	uint32_t qpn = other->qp_num;

	kcq().complete(k.qps.at(other).sq_cqe(0));
	ASSERT_EQ(ibv_destroy_qp(other), 0);
	k.next_qpn = qpn;
	other = make_qp(cq);
	ASSERT_EQ(other->qp_num, qpn);
	EXPECT_EQ(poll(), 0);
	kcq().complete(k.qps.at(other).sq_cqe(1));
	EXPECT_EQ(poll(), 1);
	EXPECT_EQ(uroce::to_qp(other)->sq.head, 2U);
	EXPECT_EQ(ibv_destroy_qp(other), 0);
}

/* ------------------------------------------------------------------ */
/* QP table                                                           */
/* ------------------------------------------------------------------ */

class Table : public ::testing::Test {
protected:
	Table() : memory(static_cast<uroce::QpTable *>(calloc(1, sizeof(uroce::QpTable))), free)
	{
		table().init();
	}

	~Table() override
	{
		table().destroy();
	}

	uroce::QpTable &table()
	{
		return *memory;
	}

	static uroce::Qp *fake_qp(uintptr_t n)
	{
		return reinterpret_cast<uroce::Qp *>(n * 64);
	}

	std::unique_ptr<uroce::QpTable, void (*)(void *)> memory;
};

TEST_F(Table, FindsWhatIsInIt)
{
	const uint32_t qpns[] = {0, 1, 4095, 4096, 0x123456, 0xffffff};

	for (uint32_t qpn : qpns) {
		EXPECT_EQ(table().find(qpn), nullptr);
		ASSERT_EQ(table().insert(qpn, fake_qp(qpn + 1)), 0);
	}
	for (uint32_t qpn : qpns)
		EXPECT_EQ(table().find(qpn), fake_qp(qpn + 1));
	EXPECT_EQ(table().find(2), nullptr);
	EXPECT_EQ(table().find(0x200000), nullptr);
	for (uint32_t qpn : {0U, 1U, 4096U}) {
		table().erase(qpn);
		EXPECT_EQ(table().find(qpn), nullptr);
	}
	EXPECT_EQ(table().find(4095), fake_qp(4096));
	/* The others stay: destroy() frees what holds them. */
}

/* insert() of a number whose old QP is still there waits for its erase(). */
TEST_F(Table, NumberChangesHands)
{
	std::atomic<bool> erased{false};

	ASSERT_EQ(table().insert(7, fake_qp(1)), 0);
	std::thread creator([this, &erased] {
		EXPECT_EQ(table().insert(7, fake_qp(2)), 0);
		EXPECT_TRUE(erased);
	});
	for (int i = 0; i < 1000; i++) {
		EXPECT_EQ(table().find(7), fake_qp(1));
		std::this_thread::yield();
	}
	erased = true;
	table().erase(7);
	creator.join();
	EXPECT_EQ(table().find(7), fake_qp(2));
	table().erase(7);
}

} /* namespace */
