// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What is under way when a QP enters the error state or RESET: everything completes exactly
// once, in order, and the QP can be used anew.

#include "background.hpp"
#include "transfer.hpp"

namespace verbs {
namespace {

// Modify to ERR with both queues full.
TEST(Flush, BothQueues)
{
	QpConfig config;
	Path path;

	config.send_wr = config.recv_wr = 128;
	path.rnr_retry = 7; // for ever: no receive on the other side
	path.min_rnr_timer = 20; // 10 ms
	Pair pair(config, path);
	Memory local(pair.a.pd.get(), 4096);

	for (uint64_t id = 1; id <= 100; id++) {
		pair.a.recv(1000 + id, {local.sge(0, 64)});
		pair.a.post(SendWr(IBV_WR_SEND, id, {local.sge(0, 64)},
				   id % 3 ? IBV_SEND_SIGNALED : 0));
	}
	EXPECT_EQ(pair.a.to(IBV_QPS_ERR), 0);
	for (uint64_t id = 1; id <= 100 && !testing::Test::HasFailure(); id++) {
		expect_wc(pair.a.wait_send(), id, IBV_WC_WR_FLUSH_ERR);
		expect_wc(pair.a.wait_recv(), 1000 + id, IBV_WC_WR_FLUSH_ERR);
	}
	pair.a.expect_quiet();
}

// Posting in the error state: flushed as well.
TEST(Flush, PostedInError)
{
	Pair pair;
	Memory local(pair.a.pd.get(), 4096);

	EXPECT_EQ(pair.a.to(IBV_QPS_ERR), 0);
	for (uint64_t id = 1; id <= 300 && !testing::Test::HasFailure(); id++) {
		pair.a.post(
			SendWr(IBV_WR_SEND, id, {local.sge(0, 8)}, id % 2 ? IBV_SEND_SIGNALED : 0));
		pair.a.recv(1000 + id, {local.sge(0, 8)});
		expect_wc(pair.a.wait_send(), id, IBV_WC_WR_FLUSH_ERR);
		expect_wc(pair.a.wait_recv(), 1000 + id, IBV_WC_WR_FLUSH_ERR);
	}
	pair.a.expect_quiet();
}

// Receives of a QP that never got further than INIT.
TEST(Flush, ReceivesFromInit)
{
	Endpoint end(device_a());
	Memory local(end.pd.get(), 4096);

	end.to_init();
	for (uint64_t id = 1; id <= 10; id++)
		end.recv(id, {local.sge(0, 64)});
	EXPECT_EQ(end.to(IBV_QPS_ERR), 0);
	for (uint64_t id = 1; id <= 10; id++)
		expect_wc(end.wait_recv(), id, IBV_WC_WR_FLUSH_ERR);
	end.expect_quiet();
}

// ERR while messages arrive: what was received is received once and whole, the rest flushes.
TEST(Flush, ErrorUnderASendFlood)
{
	constexpr uint64_t kCount = 100;
	Rng rng(17);

	for (int round = 0; round < 30 && !testing::Test::HasFailure(); round++) {
		QpConfig config;
		Path path;

		config.send_wr = config.recv_wr = 128;
		path.timeout = 10; // 4 ms: the sender must not outlast the patience
		path.retry_cnt = 1;
		Pair pair(config, path);
		Memory local(pair.a.pd.get(), kCount * 16), remote(pair.b.pd.get(), kCount * 16);
		std::vector<int> seen(kCount);
		uint64_t last_good = 0;
		bool flushing = false;

		for (uint64_t i = 0; i < kCount; i++) {
			uint64_t v = i + 1;

			memcpy(local.data() + 16 * i, &v, 8);
			pair.b.recv(i, {remote.sge(16 * i, 8)});
		}
		Thread killer([&, wait = pick(rng, 0, 3000)] {
			for (uint64_t i = 0; i < wait; i++)
				asm volatile("" ::: "memory");
			EXPECT_EQ(pair.b.to(IBV_QPS_ERR), 0);
		});
		for (uint64_t i = 0; i < kCount; i++)
			pair.a.post(SendWr(IBV_WR_SEND, i, {local.sge(16 * i, 8)}));
		killer.join();
		for (uint64_t i = 0; i < kCount; i++) {
			ibv_wc wc = pair.b.wait_recv();

			EXPECT_EQ(wc.wr_id, i) << wc;
			if (flushing || wc.status != IBV_WC_SUCCESS) {
				flushing = true;
				EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR) << wc;
				continue;
			}
			uint64_t got;

			memcpy(&got, remote.data() + 16 * i, 8);
			EXPECT_EQ(got, i + 1);
			last_good = i + 1;
		}
		// The sender: at most what was received succeeded, then one error, then flushes
		uint64_t good = 0;
		int errors = 0;

		for (uint64_t i = 0; i < kCount; i++) {
			ibv_wc wc = pair.a.wait_send();

			EXPECT_EQ(wc.wr_id, i) << wc;
			if (wc.status == IBV_WC_SUCCESS)
				good++;
			else if (wc.status != IBV_WC_WR_FLUSH_ERR)
				errors++;
		}
		EXPECT_LE(good, last_good);
		EXPECT_EQ(errors, good < kCount ? 1 : 0);
		pair.a.expect_quiet();
		pair.b.expect_quiet();
	}
}

// RESET forgets everything; the QPs connect anew and work, many times over.
TEST(Reset, Reuse)
{
	Pair pair;
	Memory local(pair.a.pd.get(), 8192), remote(pair.b.pd.get(), 8192);
	Rng rng(19);

	for (int round = 0; round < 30 && !testing::Test::HasFailure(); round++) {
		Path path;

		path.psn_a = rng() & 0xffffff;
		path.psn_b = rng() & 0xffffff;
		pair.reconnect(path);
		for (int i = 0; i < 70; i++) { // more than one pass over the rings
			Shape s;

			s.op = kAllOps[pick(rng, 0, std::size(kAllOps) - 1)];
			s.length = pick(rng, 0, 3000);
			Transfer(rng, pair.a, pair.b, {local, 0, 8192}, {remote, 0, 8192}, i, s)
				.run();
		}
	}
}

// RESET with work posted: it is gone without completions, and its places are free again.
TEST(Reset, ForgetsPostedWork)
{
	Path path;

	path.min_rnr_timer = 20;
	Pair pair({}, path);
	Memory local(pair.a.pd.get(), 4096), remote(pair.b.pd.get(), 4096);

	for (int round = 0; round < 5; round++) {
		uint64_t id = 0;

		while (id < pair.a.cap.max_send_wr) // no receive on the other side
			pair.a.post(SendWr(IBV_WR_SEND, id++, {local.sge(0, 8)}));
		id = 0;
		while (id < pair.a.cap.max_recv_wr)
			pair.a.recv(id++, {local.sge(0, 8)});
		pair.reconnect(path);
		pair.a.expect_quiet();
		pair.b.recv(5, {remote.sge(0, 64)});
		pair.a.post(SendWr(IBV_WR_SEND, 6, {local.sge(0, 64)}));
		expect_wc(pair.a.wait_send(), 6);
		expect_wc(pair.b.wait_recv(), 5);
	}
}

// The same out of the error state.
TEST(Reset, AfterAnError)
{
	Pair pair;
	Memory local(pair.a.pd.get(), 4096), remote(pair.b.pd.get(), 4096);

	for (int round = 0; round < 10 && !testing::Test::HasFailure(); round++) {
		pair.a.post(SendWr(IBV_WR_RDMA_WRITE, 1, {local.sge(0, 8)})
				    .remote(remote.addr(), ~remote.rkey()));
		pair.a.post(SendWr(IBV_WR_RDMA_WRITE, 2, {local.sge(0, 8)})
				    .remote(remote.addr(), remote.rkey()));
		expect_wc(pair.a.wait_send(), 1, IBV_WC_REM_ACCESS_ERR);
		expect_wc(pair.a.wait_send(), 2, IBV_WC_WR_FLUSH_ERR);
		pair.reconnect({});
		pair.a.post(SendWr(IBV_WR_RDMA_WRITE, 3, {local.sge(0, 8)})
				    .remote(remote.addr(), remote.rkey()));
		expect_wc(pair.a.wait_send(), 3);
	}
}

// Destroying QPs with work under way neither hangs nor leaves anything behind.
TEST(Destroy, WithWorkUnderWay)
{
	for (int round = 0; round < 30; round++) {
		Path path;

		path.timeout = 8;
		Pair pair({}, path);
		Memory local(pair.a.pd.get(), 1 << 20), remote(pair.b.pd.get(), 1 << 20);

		for (uint64_t id = 0; id < 16; id++) {
			pair.a.post(SendWr(IBV_WR_RDMA_WRITE, id, {local.sge(0, 1 << 20)})
					    .remote(remote.addr(), remote.rkey()));
			pair.b.post(SendWr(IBV_WR_RDMA_READ, id, {remote.sge(0, 1 << 20)})
					    .remote(local.addr(), local.rkey()));
		}
		(round % 2 ? pair.a : pair.b).qp.reset();
	}
}

} // namespace
} // namespace verbs
