// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Objects that go while something still works on them.
#include "stress.hpp"

namespace stress {
namespace {

using namespace verbs;

// Work unacknowledged for ever, timers of microseconds, and then the QP goes (D5, D6).
TEST(Lifetime, UnackedWork)
{
	for (Rounds round("Lifetime.UnackedWork"); round.next();) {
		Path path;
		Endpoint a(device_a()), b(device_b());
		Memory local(a.pd.get(), 1 << 16), remote(b.pd.get(), 1 << 16);

		// b never leaves RESET: nobody answers
		path.timeout = pick(round.rng, 1, 8);
		path.retry_cnt = pick(round.rng, 0, 7);
		a.to_init();
		a.to_rtr(b, path, 1);
		a.to_rts(path, round.rng() & 0xffffff);
		for (uint64_t id = 0; id < 16; id++)
			a.post(SendWr(id % 2 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, id,
				      {local.sge(0, pick(round.rng, 0, 1 << 16))})
				       .remote(remote.addr(), remote.rkey()));
		spin(pick(round.rng, 0, 200000));
	}
}

// A receiver that is destroyed and made anew under fire, with the packets still arriving.
TEST(Lifetime, DestroyUnderFire)
{
	std::atomic<uint32_t> target{0};
	uint64_t received = 0;
	QpConfig config;
	Path path;

	config.send_wr = config.recv_wr = 64;
	path.timeout = 8; // 1 ms
	path.retry_cnt = 1;

	Endpoint a(device_a(), config), owner(device_b());
	Memory local(a.pd.get(), 1 << 16), remote(owner.pd.get(), 1 << 16);
	Background fire([&, qpn = 0u, id = uint64_t(0), broken = true]() mutable {
		ibv_wc wc[16];

		if (qpn != target || broken) {
			ibv_qp_attr rtr;

			qpn = target;
			broken = false;
			check(a.to(IBV_QPS_RESET), "RESET");
			a.to_init();
			rtr = rtr_attr(device_a(), device_b(), qpn, path, path.psn_b);
			check(ibv_modify_qp(a.qp.get(), &rtr, kRtrMask), "RTR");
			a.to_rts(path, path.psn_a);
		}
		a.try_post(SendWr(id % 4 ? IBV_WR_SEND : IBV_WR_RDMA_READ, id, {local.sge(0, 3000)})
				   .remote(remote.addr(), remote.rkey()));
		id++;
		for (int i = 0, n = ibv_poll_cq(a.send_cq.get(), 16, wc); i < n; i++)
			broken |= wc[i].status != IBV_WC_SUCCESS;
	});

	for (Rounds round("Lifetime.DestroyUnderFire", 20); round.next();) {
		Endpoint b(device_b(), config);
		Memory sink(b.pd.get(), 4096);
		ibv_wc wc[16];

		b.to_init();
		for (uint64_t id = 0; id < 64; id++)
			b.recv(id, {sink.sge(0, 4096)});
		b.to_rtr(a, path, path.psn_a);
		target = b.qp->qp_num;
		// every other one is hit for certain, however slow the machine is
		if (round.count() % 2) {
			b.wait_recv();
			received++;
		}
		spin(pick(round.rng, 0, 3000000));
		for (int n; (n = ibv_poll_cq(b.recv_cq.get(), 16, wc)) > 0;)
			received += n;
	}
	fire.stop();
	printf("# %lu completions at the receivers\n", received);
	EXPECT_GT(received, 0u);
}

// A region that goes while a peer reads, writes and adds to it: each request succeeds or is refused,
// and after deregistration has returned nothing changes the memory any more (B21).
TEST(Lifetime, RegionRacingRequests)
{
	constexpr size_t kSize = 256 << 10;
	std::unique_ptr<uint8_t[]> memory(new uint8_t[kSize]);
	std::atomic<uint32_t> rkey{0};
	std::atomic<uint64_t> good{0}, refused{0};
	Path path;

	path.timeout = 16; // 268 ms: a slow machine is no dead peer
	Pair pair({}, path);
	Memory local(pair.a.pd.get(), kSize);
	Background peer([&, id = uint64_t(0)]() mutable {
		const ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
					     IBV_WR_ATOMIC_FETCH_AND_ADD};
		ibv_wr_opcode op = ops[id % 3];
		uint32_t length = op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : id % 2 ? 64 : kSize;
		SendWr wr(op, id++, {local.sge(0, length)});

		memset(local.data(), 0xee, 64);
		wr.remote(reinterpret_cast<uint64_t>(memory.get()), rkey);
		if (op == IBV_WR_ATOMIC_FETCH_AND_ADD)
			wr.atomic(3);
		pair.a.post(wr);
		ibv_wc wc = pair.a.wait_send();

		if (wc.status == IBV_WC_SUCCESS) {
			good++;
			return;
		}
		EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR) << wc;
		refused++;
		pair.reconnect(path);
	});

	for (Rounds round("Lifetime.RegionRacingRequests", 20); round.next();) {
		Mr mr(check(ibv_reg_mr(pair.b.pd.get(), memory.get(), kSize, kAllAccess),
			    "reg_mr"));

		rkey = mr->rkey;
		if (round.count() % 2) {
			uint64_t before = good;

			EXPECT_TRUE(wait_until([&] { return good != before; }))
				<< "no request succeeds";
		}
		spin(pick(round.rng, 0, 1500000));
		mr.reset();
		memset(memory.get(), round.count(), kSize);
		spin(pick(round.rng, 0, 200000));
		EXPECT_EQ(std::count(memory.get(), memory.get() + kSize, uint8_t(round.count())),
			  std::ptrdiff_t(kSize));
	}
	peer.stop();
	printf("# %lu requests done, %lu refused\n", good.load(), refused.load());
	EXPECT_GT(good, 0u);
	EXPECT_GT(refused, 0u);
}

// More completions than a CQ has room for: an event, the QP in error, what fitted is there (D11).
class Overflow : public testing::TestWithParam<bool> {};

TEST_P(Overflow, OfASmallCq)
{
	const bool receives = GetParam();

	for (int depth : {1, 2, 4}) {
		Device &dev = receives ? device_b() : device_a();
		Pair pair; // for its PDs and a peer
		Memory local(pair.a.pd.get(), 4096), remote(pair.b.pd.get(), 4096);
		Endpoint &end = receives ? pair.b : pair.a, &other = receives ? pair.a : pair.b;
		Cq small(check(ibv_create_cq(dev.get(), depth, nullptr, nullptr, 0), "create_cq"));
		Cq roomy(check(ibv_create_cq(dev.get(), 256, nullptr, nullptr, 0), "create_cq"));
		ibv_qp_init_attr init = {};
		Path path;
		ibv_wc wc;
		int n = 0;

		path.timeout = 10;
		path.retry_cnt = 1;
		init.send_cq = receives ? roomy.get() : small.get();
		init.recv_cq = receives ? small.get() : roomy.get();
		init.cap = {16, 16, 1, 1, 0};
		init.qp_type = IBV_QPT_RC;
		end.qp.reset(check(ibv_create_qp(end.pd.get(), &init), "create_qp"));
		check(other.to(IBV_QPS_RESET), "RESET");
		pair.a.to_init();
		pair.b.to_init();
		pair.a.to_rtr(pair.b, path, path.psn_b);
		pair.b.to_rtr(pair.a, path, path.psn_a);
		pair.a.to_rts(path, path.psn_a);
		pair.b.to_rts(path, path.psn_b);
		dev.drain_events();
		for (uint64_t id = 0; id < 8; id++) {
			if (receives)
				pair.b.recv(id, {remote.sge(0, 8)});
			pair.a.post(SendWr(receives ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, id,
					   {local.sge(0, 8)})
					    .remote(remote.addr(), remote.rkey()));
		}
		EXPECT_TRUE(dev.wait_event(IBV_EVENT_CQ_ERR)) << "depth " << depth;
		EXPECT_TRUE(dev.wait_event(IBV_EVENT_QP_FATAL)) << "depth " << depth;
		EXPECT_EQ(end.state(), IBV_QPS_ERR);
		for (; ibv_poll_cq(small.get(), 1, &wc) == 1; n++) {
			EXPECT_EQ(wc.wr_id, uint64_t(n));
			EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
		}
		EXPECT_EQ(n, small->cqe) << "what fitted";
		end.qp.reset();
	}
}

INSTANTIATE_TEST_SUITE_P(Queue, Overflow, testing::Bool(),
			 [](const testing::TestParamInfo<bool> &info) {
				 return info.param ? "Receive" : "Send";
			 });

} // namespace
} // namespace stress
