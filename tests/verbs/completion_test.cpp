// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Completions: how many, in which order, with which fields. Events are in event_test.cpp.
#include <arpa/inet.h>

#include <algorithm>
#include <map>

#include "transfer.hpp"

namespace verbs {
namespace {

class Completion : public testing::TestWithParam<bool> { // post with ibv_wr_*?
protected:
	QpConfig config(uint32_t depth) const
	{
		QpConfig config;

		config.send_wr = config.recv_wr = depth;
		config.wr_api = GetParam();
		return config;
	}
};

// N unsignalled WRs, then a signalled one that retires them all; many passes over the ring.
TEST_P(Completion, SelectiveSignalling)
{
	for (uint32_t every : {1u, 2u, 7u, 16u}) {
		Pair pair(config(16));
		Memory local(pair.a.pd.get(), 4096), remote(pair.b.pd.get(), 4096);

		for (uint64_t id = 1; id <= 100 * every && !HasFailure(); id++) {
			bool signaled = id % every == 0;
			size_t at = id % 512 * 8;

			memcpy(local.data() + at, &id, 8);
			pair.a.post(SendWr(IBV_WR_RDMA_WRITE, id, {local.sge(at, 8)},
					   signaled ? IBV_SEND_SIGNALED : 0)
					    .remote(remote.addr(at), remote.rkey()));
			if (signaled) {
				expect_wc(pair.a.wait_send(), id);
				EXPECT_EQ(memcmp(local.data(), remote.data(), 4096), 0);
			}
		}
		pair.a.expect_quiet();
	}
}

// The request's flag does not matter; each completes.
TEST_P(Completion, SqSigAll)
{
	QpConfig cfg = config(16);

	cfg.sig_all = true;
	Pair pair(cfg);
	Memory local(pair.a.pd.get(), 4096), remote(pair.b.pd.get(), 4096);

	for (uint64_t id = 1; id <= 100; id++) {
		pair.a.post(SendWr(IBV_WR_RDMA_WRITE, id, {local.sge(0, 8)},
				   id % 2 ? 0 : IBV_SEND_SIGNALED)
				    .remote(remote.addr(), remote.rkey()));
		if (id % 10 == 0)
			for (uint64_t done = id - 9; done <= id; done++)
				expect_wc(pair.a.wait_send(), done);
	}
	pair.a.expect_quiet();
}

// A receive completes whether or not the send was signalled.
TEST_P(Completion, ReceivesAlwaysComplete)
{
	Pair pair(config(16));
	Memory local(pair.a.pd.get(), 4096), remote(pair.b.pd.get(), 4096);

	for (uint64_t id = 1; id <= 300; id++) {
		pair.b.recv(id, {remote.sge(0, 64)});
		pair.a.post(SendWr(IBV_WR_SEND, id, {local.sge(0, 64)},
				   id % 8 ? 0 : IBV_SEND_SIGNALED));
		expect_wc(pair.b.wait_recv(), id);
		if (id % 8 == 0)
			expect_wc(pair.a.wait_send(), id);
	}
	pair.a.expect_quiet();
	pair.b.expect_quiet();
}

// A full SQ refuses, and loses nothing of what it took.
TEST_P(Completion, FullSendQueue)
{
	Pair pair(config(8));
	Memory local(pair.a.pd.get(), 4096), remote(pair.b.pd.get(), 4096);
	uint64_t posted = 0, completed = 0;

	for (int round = 0; round < 20; round++) {
		uint64_t limit = posted + 8 * pair.a.cap.max_send_wr;
		int err = 0;

		while (posted < limit && !err) {
			err = pair.a.try_post(
				SendWr(IBV_WR_RDMA_WRITE, posted + 1, {local.sge(0, 64)})
					.remote(remote.addr(), remote.rkey()));
			if (!err)
				posted++;
		}
		EXPECT_TRUE(err == ENOMEM || err == 0) << strerror(err);
		EXPECT_GE(posted - completed, pair.a.cap.max_send_wr);
		if (!err) // the device frees places before they are polled; do not overrun the CQ
			break;
		while (completed < posted)
			expect_wc(pair.a.wait_send(), ++completed);
	}
	while (completed < posted)
		expect_wc(pair.a.wait_send(), ++completed);
	pair.a.expect_quiet();
}

TEST_P(Completion, FullReceiveQueue)
{
	Pair pair(config(8));
	Memory local(pair.a.pd.get(), 4096), remote(pair.b.pd.get(), 4096);
	uint64_t posted = 0;
	int err = 0;

	while (posted < 8 * pair.b.cap.max_recv_wr &&
	       !(err = pair.b.try_recv(posted + 1, {remote.sge(0, 64)})))
		posted++;
	EXPECT_EQ(err, ENOMEM);
	EXPECT_GE(posted, pair.b.cap.max_recv_wr);
	for (uint64_t id = 1; id <= posted; id++) {
		pair.a.post(SendWr(IBV_WR_SEND, id, {local.sge(0, 64)}));
		expect_wc(pair.a.wait_send(), id);
		expect_wc(pair.b.wait_recv(), id);
	}
	pair.b.recv(77, {remote.sge(0, 64)});
}

// A list of WRs of which one cannot be posted: those before it are, those from it on are not.
TEST(CompletionList, BadWrInTheMiddle)
{
	Pair pair;
	Memory local(pair.a.pd.get(), 4096), remote(pair.b.pd.get(), 4096);
	std::vector<ibv_sge> sges(pair.a.cap.max_send_sge + 1, local.sge(0, 4));
	ibv_send_wr wr[4] = {}, *bad = nullptr;

	for (int i = 0; i < 4; i++) {
		wr[i].wr_id = i;
		wr[i].next = i < 3 ? &wr[i + 1] : nullptr;
		wr[i].opcode = IBV_WR_RDMA_WRITE;
		wr[i].send_flags = IBV_SEND_SIGNALED;
		wr[i].sg_list = sges.data();
		wr[i].num_sge = 1;
		wr[i].wr.rdma = {remote.addr(), remote.rkey()};
	}
	wr[2].num_sge = sges.size();
	EXPECT_NE(ibv_post_send(pair.a.qp.get(), wr, &bad), 0);
	EXPECT_EQ(bad, &wr[2]);
	expect_wc(pair.a.wait_send(), 0);
	expect_wc(pair.a.wait_send(), 1);
	pair.a.expect_quiet();

	ibv_recv_wr recv[3] = {}, *bad_recv = nullptr;
	std::vector<ibv_sge> recv_sges(pair.b.cap.max_recv_sge + 1, remote.sge(0, 4));

	for (int i = 0; i < 3; i++) {
		recv[i].wr_id = i;
		recv[i].next = i < 2 ? &recv[i + 1] : nullptr;
		recv[i].sg_list = recv_sges.data();
		recv[i].num_sge = i == 1 ? recv_sges.size() : 1;
	}
	EXPECT_NE(ibv_post_recv(pair.b.qp.get(), recv, &bad_recv), 0);
	EXPECT_EQ(bad_recv, &recv[1]);
}

// All operations mixed: completions come in posting order, each with its own opcode.
TEST_P(Completion, OrderOfMixedOperations)
{
	constexpr int kBatch = 32;
	Pair pair(config(64));
	size_t size = Window::need(3000, 1);
	Memory local(pair.a.pd.get(), kBatch * size), remote(pair.b.pd.get(), kBatch * size);
	Rng rng(11);

	for (int round = 0; round < 20 && !HasFailure(); round++) {
		std::vector<std::unique_ptr<Transfer>> batch;

		for (int i = 0; i < kBatch; i++) {
			Shape s;

			s.op = kAllOps[pick(rng, 0, std::size(kAllOps) - 1)];
			s.length = pick(rng, 0, 3000);
			s.flags = pick(rng, 0, 3) || i == kBatch - 1 ? IBV_SEND_SIGNALED : 0;
			batch.push_back(std::make_unique<Transfer>(
				rng, pair.a, pair.b, Window{local, i * size, size},
				Window{remote, i * size, size}, round * kBatch + i, s));
			batch.back()->post();
		}
		for (auto &t : batch)
			if (t->shape().flags & IBV_SEND_SIGNALED)
				t->check_send_wc(pair.a.wait_send());
		for (auto &t : batch) {
			if (takes_recv(t->shape().op))
				t->check_recv_wc(pair.b.wait_recv());
			t->check_memory();
		}
	}
	pair.a.expect_quiet();
	pair.b.expect_quiet();
}

INSTANTIATE_TEST_SUITE_P(Post, Completion, testing::Bool(),
			 [](auto &info) { return info.param ? "WrApi" : "PostSend"; });

TEST(CompletionField, ImmediateValues)
{
	Pair pair;
	Memory remote(pair.b.pd.get(), 4096);

	for (uint32_t imm : {0u, 1u, 0x12345678u, 0x80000000u, 0xffffffffu})
		for (auto opcode : {IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM}) {
			pair.b.recv(imm, {remote.sge(0, 64)});
			pair.a.post(
				SendWr(opcode, 1).remote(remote.addr(), remote.rkey()).imm(imm));
			expect_wc(pair.a.wait_send(), 1);
			ibv_wc wc = pair.b.wait_recv();
			expect_wc(wc, imm);
			EXPECT_TRUE(wc.wc_flags & IBV_WC_WITH_IMM);
			EXPECT_EQ(ntohl(wc.imm_data), imm);
		}
}

// 64-bit ids come back whole.
TEST(CompletionField, WrIds)
{
	Pair pair;
	Memory local(pair.a.pd.get(), 64), remote(pair.b.pd.get(), 64);

	for (uint64_t id : {0ull, 1ull, 0x80000000ull, 0x123456789abcdef0ull, ~0ull}) {
		pair.b.recv(id, {remote.sge(0, 8)});
		pair.a.post(SendWr(IBV_WR_SEND, id, {local.sge(0, 8)}));
		expect_wc(pair.a.wait_send(), id);
		expect_wc(pair.b.wait_recv(), id);
	}
}

// WRITE with immediate takes a receive but none of its memory.
TEST(CompletionField, WriteImmLeavesTheReceiveBufferAlone)
{
	Pair pair;
	Memory local(pair.a.pd.get(), 8192), remote(pair.b.pd.get(), 8192),
		unused(pair.b.pd.get(), 4096);

	memset(local.data(), 0x11, 8192);
	memset(unused.data(), 0xee, 4096);
	pair.b.recv(5, {unused.sge(0, 16)}); // shorter than what is written
	pair.a.post(SendWr(IBV_WR_RDMA_WRITE_WITH_IMM, 6, {local.sge(0, 5000)})
			    .remote(remote.addr(), remote.rkey())
			    .imm(9));
	expect_wc(pair.a.wait_send(), 6);
	ibv_wc wc = pair.b.wait_recv();
	expect_wc(wc, 5);
	EXPECT_EQ(wc.byte_len, 5000u);
	for (int i = 0; i < 4096; i++)
		ASSERT_EQ(unused.data()[i], 0xee);
}

// Several QPs on one CQ: each QP's completions in its own order, none lost.
TEST(CompletionShared, ManyQpsOneCq)
{
	constexpr int kQps = 8, kEach = 50;
	Pd pd(check(ibv_alloc_pd(device_a().get()), "alloc_pd"));
	Cq cq(check(ibv_create_cq(device_a().get(), kQps * kEach, nullptr, nullptr, 0),
		    "create_cq"));
	std::vector<std::unique_ptr<Endpoint>> peers;
	std::vector<Qp> qps;
	std::map<uint32_t, uint64_t> next;
	Memory local(pd.get(), 4096);
	Path path;

	for (int i = 0; i < kQps; i++) {
		ibv_qp_init_attr init = {};
		ibv_qp_attr attr = {};
		auto peer = std::make_unique<Endpoint>(device_b());

		init.send_cq = init.recv_cq = cq.get();
		init.cap = {kEach, 1, 1, 1, 0};
		init.qp_type = IBV_QPT_RC;
		Qp qp(check(ibv_create_qp(pd.get(), &init), "create_qp"));
		attr.qp_state = IBV_QPS_INIT;
		attr.port_num = 1;
		check(ibv_modify_qp(qp.get(), &attr, kInitMask), "INIT");
		attr = rtr_attr(device_a(), device_b(), peer->qp->qp_num, path, path.psn_b);
		check(ibv_modify_qp(qp.get(), &attr, kRtrMask), "RTR");
		attr = rts_attr(device_a(), path, path.psn_a);
		check(ibv_modify_qp(qp.get(), &attr, kRtsMask), "RTS");
		peer->to_init();
		attr = rtr_attr(device_b(), device_a(), qp->qp_num, path, path.psn_a);
		check(ibv_modify_qp(peer->qp.get(), &attr, kRtrMask), "peer RTR");
		peers.push_back(std::move(peer));
		qps.push_back(std::move(qp));
	}
	std::vector<std::unique_ptr<Memory>> remotes;
	for (auto &peer : peers)
		remotes.push_back(std::make_unique<Memory>(peer->pd.get(), 4096));
	for (int id = 0; id < kEach; id++)
		for (int i = 0; i < kQps; i++) {
			ibv_send_wr wr = {}, *bad;
			ibv_sge sge = local.sge(0, 100);

			wr.wr_id = id;
			wr.opcode = IBV_WR_RDMA_WRITE;
			wr.send_flags = IBV_SEND_SIGNALED;
			wr.sg_list = &sge;
			wr.num_sge = 1;
			wr.wr.rdma = {remotes[i]->addr(), remotes[i]->rkey()};
			check(ibv_post_send(qps[i].get(), &wr, &bad), "post_send");
		}
	for (int n = 0; n < kQps * kEach && !testing::Test::HasFailure(); n++) {
		ibv_wc wc = Endpoint::wait(cq.get());

		expect_wc(wc, next[wc.qp_num]++);
	}
	EXPECT_EQ(next.size(), size_t(kQps));
	qps.clear(); // before the CQ
}

// The extended CQ shows the same completions.
TEST(CompletionExtended, Fields)
{
	ibv_cq_init_attr_ex cq_attr = {};

	cq_attr.cqe = 64;
	cq_attr.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM;
	ibv_cq_ex *raw = ibv_create_cq_ex(device_b().get(), &cq_attr);
	if (!raw && errno == EOPNOTSUPP)
		GTEST_SKIP() << "no extended CQ";
	check(raw, "create_cq_ex");
	Cq cq(ibv_cq_ex_to_cq(raw));
	Pair pair;
	Path path;
	ibv_qp_init_attr init = {};
	ibv_qp_attr attr = {};

	init.send_cq = init.recv_cq = cq.get();
	init.cap = {4, 16, 1, 1, 0};
	init.qp_type = IBV_QPT_RC;
	Qp qp(check(ibv_create_qp(pair.b.pd.get(), &init), "create_qp"));
	check(pair.a.to(IBV_QPS_RESET), "RESET");
	pair.a.to_init();
	attr = rtr_attr(device_a(), device_b(), qp->qp_num, path, 0);
	check(ibv_modify_qp(pair.a.qp.get(), &attr, kRtrMask), "RTR");
	pair.a.to_rts(path, 0);
	attr = {};
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 1;
	check(ibv_modify_qp(qp.get(), &attr, kInitMask), "INIT");
	attr = rtr_attr(device_b(), device_a(), pair.a.qp->qp_num, path, 0);
	check(ibv_modify_qp(qp.get(), &attr, kRtrMask), "RTR");

	Memory local(pair.a.pd.get(), 4096), remote(pair.b.pd.get(), 4096);
	for (int i = 0; i < 3; i++) {
		ibv_sge sge = remote.sge(0, 1000);
		ibv_recv_wr wr = {}, *bad;

		wr.wr_id = 100 + i;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		check(ibv_post_recv(qp.get(), &wr, &bad), "post_recv");
		pair.a.post(SendWr(IBV_WR_SEND_WITH_IMM, i, {local.sge(0, 10 + i)}).imm(50 + i));
		expect_wc(pair.a.wait_send(), i);
	}
	ibv_poll_cq_attr poll_attr = {};
	for (int i = 0; i < 3; i++) {
		int err = i ? ibv_next_poll(raw) : ibv_start_poll(raw, &poll_attr);

		ASSERT_EQ(err, 0) << i;
		EXPECT_EQ(raw->wr_id, 100u + i);
		EXPECT_EQ(raw->status, IBV_WC_SUCCESS);
		EXPECT_EQ(ibv_wc_read_opcode(raw), IBV_WC_RECV);
		EXPECT_EQ(ibv_wc_read_byte_len(raw), 10u + i);
		EXPECT_EQ(ibv_wc_read_qp_num(raw), qp->qp_num);
		EXPECT_EQ(ntohl(ibv_wc_read_imm_data(raw)), 50u + i);
		EXPECT_EQ(ibv_wc_read_wc_flags(raw) & IBV_WC_WITH_IMM, unsigned(IBV_WC_WITH_IMM));
	}
	EXPECT_EQ(ibv_next_poll(raw), ENOENT);
	ibv_end_poll(raw);
	EXPECT_EQ(ibv_start_poll(raw, &poll_attr), ENOENT);
	qp.reset();
}

// A fenced WR starts after the READs before it have ended.
TEST(CompletionFence, WriteOfWhatWasRead)
{
	constexpr uint32_t kLen = 20000;
	Pair pair;
	Memory local(pair.a.pd.get(), kLen), remote(pair.b.pd.get(), 2 * kLen);
	Rng rng(13);

	for (int i = 0; i < 200 && !testing::Test::HasFailure(); i++) {
		fill_random(rng, remote.data(), kLen);
		pair.a.post(SendWr(IBV_WR_RDMA_READ, 1, {local.sge(0, kLen)}, 0)
				    .remote(remote.addr(), remote.rkey()));
		pair.a.post(SendWr(IBV_WR_RDMA_WRITE, 2, {local.sge(0, kLen)},
				   IBV_SEND_SIGNALED | IBV_SEND_FENCE)
				    .remote(remote.addr(kLen), remote.rkey()));
		expect_wc(pair.a.wait_send(), 2);
		EXPECT_EQ(memcmp(remote.data(), remote.data() + kLen, kLen), 0) << i;
	}
}

// Atomics count, too.
TEST(CompletionFence, SendOfAnAtomicsResult)
{
	Pair pair;
	Memory local(pair.a.pd.get(), 64), remote(pair.b.pd.get(), 64);

	for (uint64_t i = 0; i < 300 && !testing::Test::HasFailure(); i++) {
		uint64_t got;

		pair.b.recv(i, {remote.sge(8, 8)});
		pair.a.post(SendWr(IBV_WR_ATOMIC_FETCH_AND_ADD, i, {local.sge(0, 8)}, 0)
				    .remote(remote.addr(), remote.rkey())
				    .atomic(1));
		pair.a.post(SendWr(IBV_WR_SEND, i, {local.sge(0, 8)},
				   IBV_SEND_SIGNALED | IBV_SEND_FENCE));
		expect_wc(pair.a.wait_send(), i);
		expect_wc(pair.b.wait_recv(), i);
		memcpy(&got, remote.data() + 8, 8);
		EXPECT_EQ(got, i);
	}
}

} // namespace
} // namespace verbs
