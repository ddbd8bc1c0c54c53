// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Requests that end because nobody, or nothing but RNR NAKs, answers; READ depths of 0.
#include "scene.hpp"

namespace verbs {
namespace {

// No receive for as long as the retries last.
TEST(ErrorRetry, RnrRetriesExceeded)
{
	for (uint8_t retries : {0, 1, 3}) {
		Path path;

		path.rnr_retry = retries;
		path.min_rnr_timer = 12; // 0.64 ms
		Scene s({}, path);
		s.pair.a.post(s.send(8));
		SendWr behind = s.write();
		behind.wr.wr_id = 2;
		s.pair.a.post(behind);
		expect_wc(s.pair.a.wait_send(), 1, IBV_WC_RNR_RETRY_EXC_ERR);
		expect_wc(s.pair.a.wait_send(), 2, IBV_WC_WR_FLUSH_ERR);
		EXPECT_EQ(s.pair.a.state(), IBV_QPS_ERR);
		EXPECT_EQ(s.pair.b.state(), IBV_QPS_RTS);
		s.pair.a.expect_quiet();
	}
}

// WRITE with immediate needs a receive as well.
TEST(ErrorRetry, RnrOfWriteImm)
{
	Path path;

	path.rnr_retry = 1;
	Scene s({}, path);
	s.pair.a.post(s.rdma(IBV_WR_RDMA_WRITE_WITH_IMM, 3000));
	expect_wc(s.pair.a.wait_send(), 1, IBV_WC_RNR_RETRY_EXC_ERR);
	EXPECT_EQ(s.pair.b.state(), IBV_QPS_RTS);
}

// The peer's QP is not there: each kind of request ends with the same status.
TEST(ErrorRetry, DeadPeer)
{
	for (ibv_wr_opcode op :
	     {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
		Path path;

		path.timeout = 8; // 1 ms
		path.retry_cnt = 2;
		Scene s({}, path);
		check(s.pair.b.to(IBV_QPS_RESET), "modify_qp RESET");
		s.pair.a.post(s.rdma(op, 8));
		SendWr behind = s.write();
		behind.wr.wr_id = 2;
		s.pair.a.post(behind);
		expect_wc(s.pair.a.wait_send(), 1, IBV_WC_RETRY_EXC_ERR);
		expect_wc(s.pair.a.wait_send(), 2, IBV_WC_WR_FLUSH_ERR);
		EXPECT_EQ(s.pair.a.state(), IBV_QPS_ERR);
		s.pair.a.expect_quiet();
	}
}

// For half a second this host takes no packet, until a line is written into a FIFO: none is lost by
// that, and it does not count as waiting for an acknowledgment, which would be over after 270 ms.
TEST(RcRefused, IsNotLost)
{
	const char *unblock = getenv("rc_test_unblock");

	if (!unblock)
		GTEST_SKIP() << "backoff.sh runs this";
	Path path;

	path.timeout = 13; // 34 ms
	Scene s({}, path);
	CounterDelta refused(s.pair.a.dev, "tx_dropped");
	auto end = std::chrono::steady_clock::now() + std::chrono::seconds(patience());

	s.pair.a.post(s.write());
	while (refused.moved() <= 45 && std::chrono::steady_clock::now() < end)
		usleep(1000);
	EXPECT_GT(refused.moved(), 45u);
	FILE *f = fopen(unblock, "w");
	ASSERT_TRUE(f);
	fputs("qdisc del dev va root\n", f);
	fclose(f);
	expect_wc(s.pair.a.wait_send(), 1);
}

// Depth 0: no READ or atomic may be sent. It must fail, not hang.
TEST(ErrorRdAtomic, NoneAtTheRequester)
{
	Path path;

	path.rd_atomic = 0;
	Scene s({}, path);
	for (auto wr : {s.read(), s.fetch_add()}) {
		s.pair.a.post(wr);
		expect_wc(s.pair.a.wait_send(), 1, IBV_WC_LOC_QP_OP_ERR);
		EXPECT_EQ(s.pair.a.state(), IBV_QPS_ERR);
		s.pair.reconnect(path);
	}
}

TEST(ErrorRdAtomic, NoneAtTheResponder)
{
	for (bool atomic : {false, true}) {
		Path path;

		path.dest_rd_atomic = 0;
		Scene s({}, path);
		s.pair.b.dev.drain_events();
		s.pair.a.post(atomic ? s.fetch_add() : s.read());
		expect_wc(s.pair.a.wait_send(), 1, IBV_WC_REM_INV_REQ_ERR);
		EXPECT_TRUE(s.pair.b.dev.wait_event(IBV_EVENT_QP_REQ_ERR));
		EXPECT_EQ(s.pair.b.state(), IBV_QPS_ERR);
	}
}

} // namespace
} // namespace verbs
