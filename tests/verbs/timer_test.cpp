// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// RNR and acknowledgement timers: never earlier than the IBTA's value. How much later is only
// printed; a busy machine may be late.
#include <sched.h>

#include <chrono>
#include <cstdio>

#include "transfer.hpp"

namespace verbs {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start)
{
	return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// IBTA table 45: RNR NAK timer codes, in milliseconds.
const double kRnrMs[32] = {
	655.36, 0.01,  0.02,  0.03,  0.04,  0.06,   0.08,   0.12,   0.16,   0.24,   0.32,
	0.48,	0.64,  0.96,  1.28,  1.92,  2.56,   3.84,   5.12,   7.68,   10.24,  15.36,
	20.48,	30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
};

// With n retries the failure comes after n waits.
TEST(Timer, RnrNakTimerCodes)
{
	for (int code = 0; code < 32; code++) {
		Path path;

		path.min_rnr_timer = code;
		path.rnr_retry = 2;
		path.timeout = 20; // 4.3 s: not this one
		Pair pair({}, path);
		CounterDelta naks(device_a(), "rnr_nak_retry_err");
		auto start = Clock::now();

		pair.a.post(SendWr(IBV_WR_SEND, 1));
		expect_wc(pair.a.wait_send(), 1, IBV_WC_RNR_RETRY_EXC_ERR);
		naks.expect(3); // as many tries as that and no more
		double took = ms_since(start);
		printf("# RNR timer code %2d: 2 waits of %.2f ms took %.2f ms\n", code,
		       kRnrMs[code], took);
		EXPECT_GE(took, 2 * kRnrMs[code]) << "code " << code;
	}
}

// The retry count is not used up before the wait is over (A2): the only retry finds the receive,
// which is there long before the 0.66 s end.
TEST(Timer, RnrWaitEndsWithSuccess)
{
	for (int round = 0; round < 3; round++) {
		Path path;

		path.min_rnr_timer = 0;
		path.rnr_retry = 1;
		Pair pair({}, path);
		auto start = Clock::now();

		pair.a.post(SendWr(IBV_WR_SEND, 1));
		while (ms_since(start) < 20) // meanwhile the RNR NAK arrives
			sched_yield();
		pair.b.recv(2);
		expect_wc(pair.a.wait_send(), 1);
		expect_wc(pair.b.wait_recv(), 2);
	}
}

// rnr_retry 7 is for ever (A3): many times more waits than any finite count.
TEST(Timer, RnrRetrySevenIsForEver)
{
	Path path;

	path.min_rnr_timer = 12; // 0.64 ms
	path.rnr_retry = 7;
	Pair pair({}, path);
	auto start = Clock::now();

	pair.a.post(SendWr(IBV_WR_SEND, 1));
	while (ms_since(start) < 500)
		pair.a.state();
	EXPECT_EQ(pair.a.state(), IBV_QPS_RTS);
	pair.b.recv(2);
	expect_wc(pair.a.wait_send(), 1);
	expect_wc(pair.b.wait_recv(), 2);
}

// RETRY_EXC_ERR not before retry_cnt + 1 timeouts of 4.096 us * 2^timeout.
TEST(Timer, AckTimeout)
{
	for (int timeout : {1, 8, 10, 12, 14})
		for (int retries : {0, 1, 3}) {
			double one = 4.096e-3 * (1 << timeout);
			Path path;

			path.timeout = timeout;
			path.retry_cnt = retries;
			Pair pair({}, path);
			check(pair.b.to(IBV_QPS_RESET), "modify_qp RESET");
			CounterDelta expiries(device_a(), "local_ack_timeout_err");
			CounterDelta again(device_a(), "retransmits");
			auto start = Clock::now();

			pair.a.post(SendWr(IBV_WR_SEND, 1));
			expect_wc(pair.a.wait_send(), 1, IBV_WC_RETRY_EXC_ERR);
			double took = ms_since(start);
			printf("# timeout %2d, %d retries: %.2f ms each, took %.2f ms\n", timeout,
			       retries, one, took);
			EXPECT_GE(took, (retries + 1) * one) << timeout << " " << retries;
			expiries.expect(retries + 1);
			again.expect(retries);
		}
}

} // namespace
} // namespace verbs
