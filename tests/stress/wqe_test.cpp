// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// One spoilt value at a time in the memory shared with the kernel, and the one answer it must get.
#include <fcntl.h>
#include <poll.h>

#include "raw.hpp"

namespace raw {
namespace {

using verbs::device_a;

class Spoilt : public testing::Test {
protected:
	void SetUp() override
	{
		fresh();
	}
	void fresh()
	{
		ASSERT_EQ(rig.connect(), 0);
	}
	// Posts a WQE on a; its completion, which must be the only one.
	uroce_cqe send(const uroce_send_wqe &wqe, const std::vector<uroce_sge> &sges)
	{
		rig.a.put_send(wqe, sges);
		EXPECT_EQ(rig.a.kick(), 0);
		uroce_cqe cqe = rig.send_a.wait();

		EXPECT_EQ(cqe.wr_id, wqe.wr_id);
		EXPECT_EQ(cqe.qpn, rig.a.qpn);
		EXPECT_EQ(cqe.wqe_index, rig.a.sq_tail - 1);
		EXPECT_EQ(cqe.queue, UROCE_CQE_SQ);
		rig.a.state(); // what is under way ends before
		EXPECT_FALSE(rig.send_a.poll()) << "a second completion";
		return cqe;
	}
	// The WQE fails with @status, and the QP with it.
	void expect_error(const uroce_send_wqe &wqe, const std::vector<uroce_sge> &sges,
			  ibv_wc_status status)
	{
		EXPECT_EQ(send(wqe, sges).status, status)
			<< "opcode " << int(wqe.opcode) << " flags " << int(wqe.flags)
			<< " num_sge " << wqe.num_sge << " inline_len " << wqe.inline_len;
		EXPECT_EQ(rig.a.state(), IBV_QPS_ERR);
		fresh();
	}
	std::vector<uroce_sge> element()
	{
		return {sge(rig.local, 0, 8)};
	}
	// The device still does what it should.
	void expect_works()
	{
		fresh();
		memset(rig.local.data(), 0x5a, 8);
		memset(rig.remote.data(), 0, 8);
		EXPECT_EQ(send(rig.wqe(IBV_WR_RDMA_WRITE, 77), element()).status, IBV_WC_SUCCESS);
		EXPECT_EQ(memcmp(rig.remote.data(), rig.local.data(), 8), 0);
	}

	Rig rig;
};

TEST_F(Spoilt, Opcodes)
{
	for (unsigned int opcode = 0; opcode < 256 && !HasFailure(); opcode++) {
		bool known =
			opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_SEND_WITH_INV;
		bool sends = opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
			     opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV;

		if (!known)
			expect_error(rig.wqe(opcode, opcode), element(), IBV_WC_LOC_QP_OP_ERR);
		else if (sends) // nobody receives
			expect_error(rig.wqe(opcode, opcode), element(), IBV_WC_RNR_RETRY_EXC_ERR);
		else
			EXPECT_EQ(send(rig.wqe(opcode, opcode), element()).status, IBV_WC_SUCCESS);
	}
	expect_works();
}

TEST_F(Spoilt, Flags)
{
	for (unsigned int bit = 4; bit < 8; bit++) {
		uroce_send_wqe wqe = rig.wqe(IBV_WR_RDMA_WRITE, bit);

		wqe.flags |= 1 << bit;
		expect_error(wqe, element(), IBV_WC_LOC_QP_OP_ERR);
	}
	expect_works();
}

TEST_F(Spoilt, ElementCount)
{
	for (uint32_t n : {rig.a.resp.max_send_sge + 1, 33u, 255u, 256u, 0x7fffu, 0x8000u, 0xffffu})
		expect_error(rig.wqe(IBV_WR_RDMA_WRITE, n, n), element(), IBV_WC_LOC_QP_OP_ERR);
	expect_works();
}

TEST_F(Spoilt, InlineLength)
{
	for (uint32_t n : {rig.a.resp.max_inline + 1, 513u, 4096u, 0x7fffffffu, 0xffffffffu}) {
		uroce_send_wqe wqe = rig.wqe(IBV_WR_RDMA_WRITE, n, 0);

		wqe.flags |= UROCE_SEND_INLINE;
		wqe.inline_len = n;
		expect_error(wqe, {}, IBV_WC_LOC_LEN_ERR);
	}
	// elements and inline data at once; inline data of what brings data back
	for (unsigned int opcode :
	     {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP}) {
		uroce_send_wqe wqe = rig.wqe(opcode, opcode);

		wqe.flags |= UROCE_SEND_INLINE;
		wqe.inline_len = 8;
		expect_error(wqe, element(),
			     opcode == IBV_WR_RDMA_WRITE ? IBV_WC_LOC_LEN_ERR :
							   IBV_WC_LOC_QP_OP_ERR);
	}
	expect_works();
}

TEST_F(Spoilt, Lengths)
{
	for (auto [first, second] : {std::pair{0x80000001u, 0u},
				     {0xffffffffu, 0u},
				     {0x80000000u, 0x80000000u},
				     {0xffffffffu, 0xffffffffu},
				     {1u, 0xffffffffu}})
		for (unsigned int opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ})
			expect_error(rig.wqe(opcode, opcode, 2),
				     {sge(rig.local, 0, first), sge(rig.local, 0, second)},
				     IBV_WC_LOC_LEN_ERR);
	// elements that reach beyond their region by one byte, and what is remote is fine
	for (unsigned int opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
		expect_error(rig.wqe(opcode, 1), {sge(rig.local, kMemory - 7, 8)},
			     IBV_WC_LOC_PROT_ERR);
		expect_error(rig.wqe(opcode, 1), {sge(rig.local, -1, 8)}, IBV_WC_LOC_PROT_ERR);
	}
	expect_works();
}

TEST_F(Spoilt, SendTail)
{
	const uint32_t entries = rig.a.resp.sq_entries;

	for (uint32_t tail : {entries + 1, 2 * entries, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
		drain_events(device_a());
		rig.a.ctrl()->sq_tail = tail;
		EXPECT_EQ(rig.a.kick(), 0);
		EXPECT_EQ(rig.a.state(), IBV_QPS_ERR) << "tail " << tail;
		EXPECT_TRUE(wait_event(device_a(), IBV_EVENT_QP_FATAL)) << "tail " << tail;
		EXPECT_FALSE(rig.send_a.poll()) << "tail " << tail;
		fresh();
	}
	// backwards, onto WQEs that are done
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(send(rig.wqe(IBV_WR_RDMA_WRITE, i), element()).status, IBV_WC_SUCCESS);
	rig.a.ctrl()->sq_tail = 1;
	EXPECT_EQ(rig.a.kick(), 0);
	EXPECT_EQ(rig.a.state(), IBV_QPS_ERR);
	expect_works();
}

TEST_F(Spoilt, RecvTail)
{
	for (uint32_t tail : {rig.b.resp.rq_entries + 1, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
		rig.b.ctrl()->rq_tail = tail;
		expect_error(rig.wqe(IBV_WR_SEND, 1), element(), IBV_WC_RNR_RETRY_EXC_ERR);
		EXPECT_FALSE(rig.recv_b.poll());
	}
	expect_works();
}

TEST_F(Spoilt, RecvElementCount)
{
	for (uint32_t n :
	     {rig.b.resp.max_recv_sge + 1, 33u, 0xffffu, 0x10000u, 0x80000000u, 0xffffffffu}) {
		rig.b.put_recv(n, {sge(rig.remote, 0, 8)});
		rig.b.recv_slot(0)->num_sge = n;
		rig.a.put_send(rig.wqe(IBV_WR_SEND, 1), element());
		EXPECT_EQ(rig.a.kick(), 0);
		EXPECT_EQ(rig.send_a.wait().status, IBV_WC_REM_OP_ERR);
		uroce_cqe cqe = rig.recv_b.wait();

		EXPECT_EQ(cqe.status, IBV_WC_LOC_QP_OP_ERR) << "num_sge " << n;
		EXPECT_EQ(cqe.wr_id, n);
		EXPECT_EQ(rig.b.state(), IBV_QPS_ERR);
		fresh();
	}
	expect_works();
}

// A consumer index that cannot be makes the ring full, for good: event, and the QP in error.
TEST_F(Spoilt, ConsumerIndex)
{
	for (uint32_t ci : {0x7fffffffu, 0x80000000u, 0xffffffffu, 1000u}) {
		Cq cq(device_a().get(), 4);
		Qp qp(rig.pd_a.get(), cq, cq);

		drain_events(device_a());
		ASSERT_EQ(qp.connect(device_a(), verbs::device_b(), rig.b.qpn, rig.path, 1, 1), 0);
		ASSERT_EQ(rig.b.connect(verbs::device_b(), device_a(), qp.qpn, rig.path, 1, 1), 0);
		for (uint32_t i = 0; i < 6; i++) {
			cq.ctrl()->ci = ci;
			qp.put_send(rig.wqe(IBV_WR_RDMA_WRITE, i), element());
			EXPECT_EQ(qp.kick(), 0);
		}
		EXPECT_TRUE(wait_event(device_a(), IBV_EVENT_CQ_ERR)) << "ci " << ci;
		EXPECT_TRUE(wait_event(device_a(), IBV_EVENT_QP_FATAL)) << "ci " << ci;
		EXPECT_EQ(qp.state(), IBV_QPS_ERR);
	}
	expect_works();
}

// The kernel's own words and CQEs may say anything: it does not read them.
TEST_F(Spoilt, KernelWords)
{
	for (int round = 0; round < 100 && !HasFailure(); round++) {
		auto *cqes = rig.send_a.map.at<uint8_t>(rig.send_a.resp.cqe_offset);

		rig.send_a.ctrl()->fired = round * 0x01010101u;
		memset(rig.b.ctrl()->reserved0, round, sizeof(rig.b.ctrl()->reserved0));
		rig.b.ctrl()->rq_need_kick = round;
		memset(cqes, ~round | 1, rig.send_a.resp.cqe_entries * sizeof(uroce_cqe));
		EXPECT_EQ(send(rig.wqe(IBV_WR_RDMA_WRITE, round), element()).status,
			  IBV_WC_SUCCESS);
	}
	expect_works();
}

// Values of arm: one event for each new one that asks for one.
TEST_F(Spoilt, Arm)
{
	verbs::Channel channel(verbs::check(ibv_create_comp_channel(device_a().get()), "channel"));
	Cq cq(device_a().get(), 64, channel->fd);
	Qp qp(rig.pd_a.get(), cq, cq);

	ASSERT_EQ(qp.connect(device_a(), verbs::device_b(), rig.b.qpn, rig.path, 1, 1), 0);
	ASSERT_EQ(rig.b.connect(verbs::device_b(), device_a(), qp.qpn, rig.path, 1, 1), 0);
	verbs::check(fcntl(channel->fd, F_SETFL, O_NONBLOCK), "fcntl");
	for (uint32_t arm :
	     {0u, 1u, 1u, 2u, 3u, 0xfffffffdu, 0xfffffffcu, 0xffffffffu, 0xfffffffeu, 5u}) {
		bool fires = (arm & UROCE_ARM_KIND_MASK) &&
			     (arm & UROCE_ARM_KIND_MASK) != UROCE_ARM_SOLICITED &&
			     arm != cq.ctrl()->fired;
		ib_uverbs_comp_event_desc event;

		cq.ctrl()->arm = arm;
		qp.put_send(rig.wqe(IBV_WR_RDMA_WRITE, arm), element());
		EXPECT_EQ(qp.kick(), 0);
		EXPECT_EQ(cq.wait().status, IBV_WC_SUCCESS);
		qp.state();
		if (fires) {
			pollfd fd = {channel->fd, POLLIN, 0};

			EXPECT_EQ(poll(&fd, 1, verbs::patience() * 1000), 1) << "arm " << arm;
			EXPECT_EQ(cq.ctrl()->fired, arm);
		}
		EXPECT_EQ(read(channel->fd, &event, sizeof(event)),
			  fires ? ssize_t(sizeof(event)) : -1)
			<< "arm " << arm;
		EXPECT_EQ(read(channel->fd, &event, sizeof(event)), -1) << "arm " << arm;
	}
}

} // namespace
} // namespace raw
