// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Every posted work request completes exactly once, in order, whatever ends the traffic.
#include "stress.hpp"

namespace stress {
namespace {

using namespace verbs;

constexpr uint32_t kDepth = 64;

// What was posted to one queue and what came back
struct Account {
	uint64_t posted = 0, completed = 0, good = 0;
	bool flushing = false;

	void take(const ibv_wc &wc)
	{
		EXPECT_EQ(wc.wr_id, completed) << wc;
		completed++;
		if (wc.status == IBV_WC_SUCCESS) {
			EXPECT_FALSE(flushing) << "a success behind a failure: " << wc;
			good++;
			return;
		}
		if (flushing) {
			EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR) << wc;
		}
		flushing = true;
	}
};

struct Side {
	Side(Endpoint &e, Memory &m) : end(e), memory(m) {}

	void fill_recv()
	{
		for (; recv.posted - recv.completed < kDepth; recv.posted++)
			end.recv(recv.posted, {memory.sge(16 * (recv.posted % kDepth), 16)});
	}
	// One signalled WR of a random kind, if there is room
	void post(Rng &rng, Memory &peer)
	{
		static const ibv_wr_opcode kinds[] = {IBV_WR_SEND,
						      IBV_WR_SEND,
						      IBV_WR_SEND,
						      IBV_WR_RDMA_WRITE,
						      IBV_WR_RDMA_READ,
						      IBV_WR_ATOMIC_FETCH_AND_ADD,
						      IBV_WR_RDMA_WRITE_WITH_IMM,
						      IBV_WR_SEND_WITH_IMM};
		ibv_wr_opcode op = kinds[pick(rng, 0, std::size(kinds) - 1)];

		if (send.posted - send.completed >= kDepth)
			return;
		SendWr wr(op, send.posted, {memory.sge(4096, 8)});
		wr.remote(peer.addr(4096), peer.rkey());
		wr.atomic(1);
		if (op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_RDMA_WRITE ||
		    op == IBV_WR_RDMA_WRITE_WITH_IMM)
			wr.remote(peer.addr(4096), peer.rkey());
		end.post(wr);
		send.posted++;
	}
	void poll()
	{
		ibv_wc wc[16];
		int n;

		while ((n = ibv_poll_cq(end.send_cq.get(), 16, wc)) > 0)
			for (int i = 0; i < n; i++)
				send.take(wc[i]);
		while ((n = ibv_poll_cq(end.recv_cq.get(), 16, wc)) > 0)
			for (int i = 0; i < n; i++)
				recv.take(wc[i]);
	}
	// After the end of the QP: what is missing comes, and nothing more.
	void settle()
	{
		while (send.completed < send.posted && !testing::Test::HasFailure())
			send.take(end.wait_send());
		while (recv.completed < recv.posted && !testing::Test::HasFailure())
			recv.take(end.wait_recv());
		end.expect_quiet();
	}

	Endpoint &end;
	Memory &memory;
	Account send, recv;
};

Path quick()
{
	Path path;

	path.timeout = 10; // 4 ms
	path.retry_cnt = 2;
	path.rnr_retry = 7;
	return path;
}

QpConfig deep()
{
	QpConfig config;

	config.send_wr = config.recv_wr = kDepth;
	return config;
}

// Both sides post; after a while one of them is put into the error state by a thread.
TEST(Account, ErrorUnderTraffic)
{
	for (Rounds round("Account.ErrorUnderTraffic"); round.next();) {
		Pair pair(deep(), quick());
		Memory mem_a(pair.a.pd.get(), 8192), mem_b(pair.b.pd.get(), 8192);
		Side a(pair.a, mem_a), b(pair.b, mem_b);
		Endpoint &victim = pick(round.rng, 0, 1) ? pair.a : pair.b;

		a.fill_recv();
		b.fill_recv();
		Thread killer([&, wait = pick(round.rng, 0, 400000)] {
			spin(wait);
			EXPECT_EQ(victim.to(IBV_QPS_ERR), 0);
		});
		for (int i = 0; i < 150; i++) {
			a.post(round.rng, mem_b);
			b.post(round.rng, mem_a);
			if (i % 8 == 0) {
				a.poll();
				b.poll();
			}
		}
		killer.join();
		// the other one may never hear of it: it has nothing under way, or only receives
		EXPECT_EQ(pair.a.to(IBV_QPS_ERR), 0);
		EXPECT_EQ(pair.b.to(IBV_QPS_ERR), 0);
		a.settle();
		b.settle();
		// a message that was acknowledged was received; who had the receive is exact about it
		EXPECT_GE(a.send.posted, a.send.good);
	}
}

// RESET in the middle: what it forgets never completes, and the next life starts from nothing.
TEST(Account, ResetUnderTraffic)
{
	Pair pair(deep(), quick());
	Memory mem_a(pair.a.pd.get(), 8192), mem_b(pair.b.pd.get(), 8192);

	for (Rounds round("Account.ResetUnderTraffic"); round.next();) {
		Side a(pair.a, mem_a), b(pair.b, mem_b);
		Path path = quick();

		path.psn_a = round.rng() & 0xffffff;
		path.psn_b = round.rng() & 0xffffff;
		pair.reconnect(path);
		a.fill_recv();
		b.fill_recv();
		for (int i = 0, n = pick(round.rng, 1, 60); i < n; i++) {
			a.post(round.rng, mem_b);
			b.post(round.rng, mem_a);
			if (i % 8 == 0) {
				a.poll();
				b.poll();
			}
		}
		EXPECT_EQ((pick(round.rng, 0, 1) ? pair.a : pair.b).to(IBV_QPS_RESET), 0);
		a.poll();
		b.poll();
		EXPECT_EQ(pair.a.to(IBV_QPS_RESET), 0);
		EXPECT_EQ(pair.b.to(IBV_QPS_RESET), 0);
		pair.a.expect_quiet();
		pair.b.expect_quiet();
	}
}

// SENDs under ERR: each one that succeeded was received once, whole, and in its place (B15).
TEST(Account, ReceivedOnce)
{
	for (Rounds round("Account.ReceivedOnce"); round.next();) {
		Pair pair(deep(), quick());
		Memory local(pair.a.pd.get(), 8 * kDepth), remote(pair.b.pd.get(), 8 * kDepth);
		Account send, recv;

		for (uint64_t i = 0; i < kDepth; i++) {
			memcpy(local.data() + 8 * i, &i, 8);
			pair.b.recv(i, {remote.sge(8 * i, 8)});
		}
		memset(remote.data(), 0xff, remote.size());
		Thread killer([&, wait = pick(round.rng, 0, 100000)] {
			spin(wait);
			EXPECT_EQ(pair.b.to(IBV_QPS_ERR), 0);
		});
		for (uint64_t i = 0; i < kDepth; i++)
			pair.a.post(SendWr(IBV_WR_SEND, i, {local.sge(8 * i, 8)}));
		killer.join();
		for (uint64_t i = 0; i < kDepth && !testing::Test::HasFailure(); i++) {
			recv.take(pair.b.wait_recv());
			send.take(pair.a.wait_send());
		}
		pair.a.expect_quiet();
		pair.b.expect_quiet();
		EXPECT_LE(send.good, recv.good);
		for (uint64_t i = 0; i < kDepth; i++) {
			uint64_t got;

			memcpy(&got, remote.data() + 8 * i, 8);
			if (i < recv.good) {
				EXPECT_EQ(got, i);
			} else if (i > recv.good) {
				EXPECT_EQ(got, ~0ull) << "a flushed receive was written to";
			}
		}
	}
}

} // namespace
} // namespace stress
