// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Completion events: one for each arming, none lost, solicited ones only for solicited messages.
#include <atomic>
#include <cstdlib>
#include <thread>

#include "background.hpp"
#include "event.hpp"

namespace verbs {
namespace {

struct EventPair : Pair {
	EventPair() : Pair(with_events()), local(a.pd.get(), 4096), remote(b.pd.get(), 4096) {}

	void send(uint64_t id, int flags = IBV_SEND_SIGNALED)
	{
		b.recv(id, {remote.sge(0, 64)});
		a.post(SendWr(IBV_WR_SEND, id, {local.sge(0, 64)}, flags));
	}

	Memory local, remote;
};

TEST(Event, NoneWithoutArming)
{
	EventPair pair;

	pair.send(1);
	expect_wc(pair.a.wait_send(), 1);
	expect_wc(pair.b.wait_recv(), 1);
	EXPECT_EQ(next_event(pair.a, 0), nullptr);
	EXPECT_EQ(next_event(pair.b, 0), nullptr);
}

TEST(Event, OneForEachArming)
{
	EventPair pair;

	for (uint64_t id = 1; id <= 200 && !testing::Test::HasFailure(); id += 2) {
		arm(pair.b.recv_cq.get(), false);
		arm(pair.a.send_cq.get(), false);
		pair.send(id);
		pair.send(id + 1);
		EXPECT_EQ(next_event(pair.b, patience() * 1000), pair.b.recv_cq.get());
		EXPECT_EQ(next_event(pair.a, patience() * 1000), pair.a.send_cq.get());
		for (uint64_t i = id; i <= id + 1; i++) {
			expect_wc(pair.a.wait_send(), i);
			expect_wc(pair.b.wait_recv(), i);
		}
		// both completions are there: the second one raised nothing
		EXPECT_EQ(next_event(pair.a, 0), nullptr);
		EXPECT_EQ(next_event(pair.b, 0), nullptr);
	}
}

// Arming twice is arming once.
TEST(Event, ArmingTwice)
{
	EventPair pair;

	arm(pair.b.recv_cq.get(), false);
	arm(pair.b.recv_cq.get(), false);
	for (uint64_t id = 1; id <= 3; id++) {
		pair.send(id);
		expect_wc(pair.a.wait_send(), id);
		expect_wc(pair.b.wait_recv(), id);
	}
	EXPECT_NE(next_event(pair.b, patience() * 1000), nullptr);
	EXPECT_EQ(next_event(pair.b, 0), nullptr);
}

// The classic loop (arm, poll until empty, sleep) never sleeps over a completion.
TEST(Event, ArmPollSleepLosesNothing)
{
	EventPair pair;
	uint64_t received = 0, sent = 0;
	constexpr uint64_t kCount = 2000;

	while (received < kCount && !testing::Test::HasFailure()) {
		ibv_wc wc;
		bool any = false;

		arm(pair.b.recv_cq.get(), false);
		while (sent < kCount && sent < received + 8)
			pair.send(++sent);
		for (;;) {
			int n = ibv_poll_cq(pair.b.recv_cq.get(), 1, &wc);

			ASSERT_GE(n, 0);
			if (!n)
				break;
			expect_wc(wc, ++received);
			any = true;
		}
		while (ibv_poll_cq(pair.a.send_cq.get(), 1, &wc) > 0)
			EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
		if (!any && received < kCount) {
			ASSERT_NE(next_event(pair.b, patience() * 1000), nullptr)
				<< received << " of " << sent;
		} else {
			next_event(pair.b, 0);
		}
	}
}

// Against a sender of its own, whose completions come at any point of the loop; every message is
// solicited, so that any arming has to wake.
class WakeUps {
public:
	explicit WakeUps(uint64_t count) : sender_([this] { step(); })
	{
		while (waited_ < count && !testing::Test::HasFailure())
			arm_poll_wait();
		over_ = true;
		sender_.stop();
		// what was still on its way
		while (received_ < sent_ && !testing::Test::HasFailure())
			receive(pair_.b.wait_recv());
		printf("# %lu wake-ups, %lu messages\n", waited_, received_.load());
	}

private:
	void step()
	{
		// one at a time now and then, so that the receiver waits
		uint64_t window = sent_ % 64 < 48 ? 1 : 8;
		ibv_wc wc;

		while (!over_ && sent_ < received_ + window && sent_ < completed_ + window)
			pair_.send(++sent_, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
		if (ibv_poll_cq(pair_.a.send_cq.get(), 1, &wc) > 0) {
			EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
			completed_++;
		}
	}
	void receive(const ibv_wc &wc)
	{
		expect_wc(wc, received_ + 1);
		received_++;
	}
	void arm_poll_wait()
	{
		bool any = false;
		ibv_wc wc;
		int n;

		arm(pair_.b.recv_cq.get(), waited_ % 2);
		while ((n = ibv_poll_cq(pair_.b.recv_cq.get(), 1, &wc)) > 0) {
			receive(wc);
			any = true;
		}
		EXPECT_EQ(n, 0);
		if (any)
			return;
		// To fall asleep takes longer than all the rest: it is done now and then. Whether
		// the event comes does not depend on it.
		for (int i = 0; waited_ % 8 && i < 2000; i++) {
			if (next_event(pair_.b, 0)) {
				waited_++;
				return;
			}
		}
		EXPECT_NE(next_event(pair_.b, patience() * 1000), nullptr)
			<< "a lost wake-up, after " << received_;
		waited_++;
	}

	EventPair pair_;
	std::atomic<uint64_t> received_{0};
	std::atomic<bool> over_{false};
	uint64_t waited_ = 0, sent_ = 0, completed_ = 0;
	Background sender_; // last: uses the rest
};

TEST(Event, NoLostWakeUp)
{
	const char *rounds = getenv("rc_test_rounds");

	WakeUps(rounds ? strtoull(rounds, nullptr, 0) : 1000);
}

// Whichever vector a CQ is on, it completes and says so.
TEST(Event, EveryCompletionVector)
{
	int vectors =
		std::min(device_a().get()->num_comp_vectors, device_b().get()->num_comp_vectors);

	ASSERT_GT(vectors, 0);
	for (int vector = 0; vector < vectors; vector++) {
		SCOPED_TRACE(vector);
		QpConfig config = with_events();

		config.make_cq = [vector](ibv_context *context, uint32_t cqe,
					  ibv_comp_channel *channel) {
			return ibv_create_cq(context, cqe, nullptr, channel, vector);
		};
		Pair pair(config);
		arm(pair.a.send_cq.get(), false);
		arm(pair.b.recv_cq.get(), false);
		pair.b.recv(1);
		pair.a.post(SendWr(IBV_WR_SEND, 1));
		EXPECT_EQ(next_event(pair.a, patience() * 1000), pair.a.send_cq.get());
		EXPECT_EQ(next_event(pair.b, patience() * 1000), pair.b.recv_cq.get());
		expect_wc(pair.a.wait_send(), 1);
		expect_wc(pair.b.wait_recv(), 1);
	}
}

TEST(Event, SolicitedOnly)
{
	EventPair pair;
	const struct {
		ibv_wr_opcode opcode;
		int flags;
		bool event;
	} cases[] = {
		{IBV_WR_SEND, 0, false},
		{IBV_WR_SEND, IBV_SEND_SOLICITED, true},
		{IBV_WR_SEND_WITH_IMM, 0, false},
		{IBV_WR_SEND_WITH_IMM, IBV_SEND_SOLICITED, true},
		{IBV_WR_RDMA_WRITE_WITH_IMM, 0, false},
		{IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SOLICITED, true},
	};

	for (auto &c : cases)
		for (uint32_t length : {0u, 10u, 3000u}) {
			SCOPED_TRACE(testing::Message()
				     << c.opcode << " " << c.flags << " " << length);
			pair.b.recv(1, {pair.remote.sge(0, 4096)});
			arm(pair.b.recv_cq.get(), true);
			pair.a.post(SendWr(c.opcode, 2, {pair.local.sge(0, length)},
					   IBV_SEND_SIGNALED | c.flags)
					    .remote(pair.remote.addr(), pair.remote.rkey()));
			expect_wc(pair.a.wait_send(), 2);
			expect_wc(pair.b.wait_recv(), 1);
			EXPECT_EQ(next_event(pair.b, c.event ? patience() * 1000 : 0) != nullptr,
				  c.event);
		}
}

// A completion in error counts as solicited (IBTA 11.4.2.2).
TEST(Event, ErrorsAreSolicited)
{
	EventPair pair;

	pair.b.recv(1, {pair.remote.sge(0, 64)});
	arm(pair.b.recv_cq.get(), true);
	check(pair.b.to(IBV_QPS_ERR), "modify_qp ERR");
	expect_wc(pair.b.wait_recv(), 1, IBV_WC_WR_FLUSH_ERR);
	EXPECT_NE(next_event(pair.b, patience() * 1000), nullptr);
}

// Armed for solicited ones, then for all: the wider one holds.
TEST(Event, WiderArmingWins)
{
	EventPair pair;

	arm(pair.b.recv_cq.get(), true);
	arm(pair.b.recv_cq.get(), false);
	pair.send(1);
	expect_wc(pair.a.wait_send(), 1);
	expect_wc(pair.b.wait_recv(), 1);
	EXPECT_NE(next_event(pair.b, patience() * 1000), nullptr);

	arm(pair.b.recv_cq.get(), false);
	arm(pair.b.recv_cq.get(), true);
	pair.send(2);
	expect_wc(pair.a.wait_send(), 2);
	expect_wc(pair.b.wait_recv(), 2);
	EXPECT_NE(next_event(pair.b, patience() * 1000), nullptr);
}

} // namespace
} // namespace verbs
