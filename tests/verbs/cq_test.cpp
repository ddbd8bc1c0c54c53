// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Completion queues as objects: other sizes, moderated events, overflow, what extended ones show.
#include <arpa/inet.h>
#include <time.h>

#include <atomic>
#include <optional>

#include "background.hpp"
#include "event.hpp"

namespace verbs {
namespace {

constexpr uint64_t kMs = 1000000;

uint64_t now(clockid_t clock = CLOCK_MONOTONIC)
{
	timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * uint64_t(1000000000) + t.tv_nsec;
}

uint64_t deadline()
{
	return now() + patience() * 1000 * kMs;
}

// a writes into and sends to memory of b.
struct CqPair : Pair {
	explicit CqPair(const QpConfig &config = {})
	    : Pair(config), local(a.pd.get(), 4096), remote(b.pd.get(), 4096)
	{
	}

	SendWr write(uint64_t id)
	{
		return SendWr(IBV_WR_RDMA_WRITE, id, {local.sge(0, 8)})
			.remote(remote.addr(), remote.rkey());
	}
	void send(uint64_t id, int flags = IBV_SEND_SIGNALED)
	{
		b.recv(id, {remote.sge(0, 64)});
		a.post(SendWr(IBV_WR_SEND, id, {local.sge(0, 64)}, flags));
	}

	Memory local, remote;
};

// Waits until all WRs of the SQ have completed, without polling.
void drain(Endpoint &end)
{
	uint64_t limit = deadline();

	check(end.to(IBV_QPS_SQD), "modify_qp SQD");
	while (end.query(IBV_QP_STATE).sq_draining && now() < limit)
		;
	EXPECT_FALSE(end.query(IBV_QP_STATE).sq_draining);
	check(end.to(IBV_QPS_RTS), "modify_qp RTS");
}

bool can_resize(ibv_cq *cq)
{
	return ibv_resize_cq(cq, cq->cqe) != EOPNOTSUPP;
}

TEST(CqResize, Sizes)
{
	int max = device_a().attr.max_cqe;
	Cq cq(check(ibv_create_cq(device_a().get(), 16, nullptr, nullptr, 0), "create_cq"));

	if (!can_resize(cq.get()))
		GTEST_SKIP() << "no resize_cq";
	for (int cqe : {1, 2, 3, 1000, max, 5}) {
		EXPECT_EQ(ibv_resize_cq(cq.get(), cqe), 0) << cqe;
		EXPECT_GE(cq->cqe, cqe);
	}
	int before = cq->cqe;
	for (int cqe : {0, -1, max + 1, INT32_MAX, INT32_MIN}) {
		EXPECT_EQ(ibv_resize_cq(cq.get(), cqe), EINVAL) << cqe;
		EXPECT_EQ(cq->cqe, before);
	}
}

// Each number of waiting completions, to each size: all there, in order; or refused and all there.
TEST(CqResize, KeepsWhatWaits)
{
	CqPair pair;
	ibv_cq *cq = pair.a.send_cq.get();
	uint64_t id = 0, polled = 0;

	if (!can_resize(cq))
		GTEST_SKIP() << "no resize_cq";
	for (int waiting : {0, 1, 2, 3, 4, 5, 15, 16})
		for (int size : {2, 4, 16, 128}) {
			SCOPED_TRACE(testing::Message() << waiting << " to " << size);
			ASSERT_EQ(ibv_resize_cq(cq, 32), 0);
			for (int i = 0; i < waiting; i++)
				pair.a.post(pair.write(++id));
			drain(pair.a);
			int err = ibv_resize_cq(cq, size);
			EXPECT_EQ(err, size < waiting ? EINVAL : 0);
			EXPECT_EQ(cq->cqe, err ? 32 : size);
			if (waiting < size)
				pair.a.post(pair.write(++id));
			while (polled < id && !testing::Test::HasFailure())
				expect_wc(Endpoint::wait(cq), ++polled);
			pair.a.expect_quiet();
			ASSERT_FALSE(testing::Test::HasFailure());
		}
}

// One thread resizes both CQs, one posts and polls: every completion once, in order.
TEST(CqResize, UnderTraffic)
{
	constexpr uint64_t kWindow = 4; // fits the smallest size
	constexpr int kResizes = 50; // of each CQ, at least
	CqPair pair;
	ibv_cq *cqs[] = {pair.a.send_cq.get(), pair.b.recv_cq.get()};
	std::atomic<int> resized{0};
	uint64_t target = 4000, posted = 0, sent = 0, counts[2] = {};
	uint64_t last_progress = now();

	if (!can_resize(cqs[0]))
		GTEST_SKIP() << "no resize_cq";
	Background resizer([&] {
		const int sizes[] = {4, 64, 8, 1000, 16, 4, 128};

		EXPECT_EQ(ibv_resize_cq(cqs[resized % 2], sizes[resized / 2 % std::size(sizes)]),
			  0);
		resized++;
	});
	while ((counts[0] < target || counts[1] < target) && !testing::Test::HasFailure()) {
		if (resized < 2 * kResizes && counts[1] + 100 > target)
			target += 100;
		while (posted < target && posted < counts[1] + kWindow)
			pair.b.recv(++posted, {pair.remote.sge(0, 64)});
		while (sent < posted && sent < counts[0] + kWindow)
			pair.a.post(SendWr(IBV_WR_SEND, ++sent, {pair.local.sge(0, 64)}));
		for (int i = 0; i < 2; i++) {
			ibv_wc wc[2];
			int n = ibv_poll_cq(cqs[i], 2, wc);

			for (int j = 0; j < n; j++)
				expect_wc(wc[j], ++counts[i]);
			if (n)
				last_progress = now();
		}
		if (now() > last_progress + patience() * 1000 * kMs)
			ADD_FAILURE() << counts[0] << " sent, " << counts[1] << " received";
	}
	resizer.stop();
	pair.a.expect_quiet();
	pair.b.expect_quiet();
}

// Two threads resize one CQ under a third one's traffic.
TEST(CqResize, TwoAtOnce)
{
	CqPair pair;
	ibv_cq *cq = pair.a.send_cq.get();

	if (!can_resize(cq))
		GTEST_SKIP() << "no resize_cq";
	auto resize = [&](int size) {
		for (int i = 0; i < 100 && !testing::Test::HasFailure(); i++)
			EXPECT_EQ(ibv_resize_cq(cq, size), 0);
	};
	Thread one([&] { resize(32); }), two([&] { resize(64); });
	for (uint64_t id = 1; id <= 300 && !testing::Test::HasFailure(); id++) {
		pair.a.post(pair.write(id));
		expect_wc(pair.a.wait_send(), id);
	}
	one.join();
	two.join();
	pair.a.expect_quiet();
}

TEST(CqResize, KeepsArming)
{
	CqPair pair(with_events());
	ibv_cq *cq = pair.b.recv_cq.get();

	if (!can_resize(cq))
		GTEST_SKIP() << "no resize_cq";
	for (bool solicited : {false, true}) {
		arm(cq, solicited);
		ASSERT_EQ(ibv_resize_cq(cq, 16), 0);
		pair.send(1, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
		EXPECT_EQ(next_event(pair.b, patience() * 1000), cq);
		expect_wc(pair.a.wait_send(), 1);
		expect_wc(pair.b.wait_recv(), 1);
		// fired before, and not armed again
		ASSERT_EQ(ibv_resize_cq(cq, 32), 0);
		pair.send(2, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
		expect_wc(pair.a.wait_send(), 2);
		expect_wc(pair.b.wait_recv(), 2);
		EXPECT_EQ(next_event(pair.b, 0), nullptr);
	}
}

// What a QP left in the CQ and is forgotten stays so.
TEST(CqResize, ForgottenCompletions)
{
	CqPair pair;
	ibv_cq *cq = pair.a.send_cq.get();

	if (!can_resize(cq))
		GTEST_SKIP() << "no resize_cq";
	for (uint64_t id = 1; id <= 4; id++)
		pair.a.post(pair.write(id));
	drain(pair.a);
	check(pair.a.to(IBV_QPS_RESET), "RESET");
	ASSERT_EQ(ibv_resize_cq(cq, 64), 0);
	pair.a.expect_quiet();
}

// -------- moderation --------

int moderate(ibv_cq *cq, uint16_t count, uint16_t period)
{
	ibv_modify_cq_attr attr = {};

	attr.attr_mask = IBV_CQ_ATTR_MODERATE;
	attr.moderate = {count, period};
	return ibv_modify_cq(cq, &attr);
}

struct ModeratedPair : CqPair {
	ModeratedPair(uint16_t count, uint16_t period) : CqPair(with_events())
	{
		supported = moderate(b.recv_cq.get(), count, period) != EOPNOTSUPP;
	}

	// One message, completed at both ends
	void message(uint64_t id, int flags = IBV_SEND_SIGNALED)
	{
		send(id, flags);
		expect_wc(a.wait_send(), id);
		expect_wc(b.wait_recv(), id);
	}

	bool supported;
};

TEST(CqModeration, Count)
{
	ModeratedPair pair(4, 0);

	if (!pair.supported)
		GTEST_SKIP() << "no modify_cq";
	for (int round = 0; round < 5; round++) {
		arm(pair.b.recv_cq.get(), false);
		for (uint64_t id = 1; id <= 3; id++) {
			pair.message(id);
			EXPECT_EQ(next_event(pair.b, 0), nullptr) << id;
		}
		pair.message(4);
		EXPECT_NE(next_event(pair.b, patience() * 1000), nullptr);
		// nobody waits: these do not count
		pair.message(5);
		pair.message(6);
		EXPECT_EQ(next_event(pair.b, 0), nullptr);
	}
}

TEST(CqModeration, Period)
{
	constexpr uint16_t kPeriod = 60000; // us
	ModeratedPair pair(0, kPeriod);

	if (!pair.supported)
		GTEST_SKIP() << "no modify_cq";
	for (uint16_t count : {0, 1000})
		for (int round = 0; round < 3; round++) {
			ASSERT_EQ(moderate(pair.b.recv_cq.get(), count, kPeriod), 0);
			arm(pair.b.recv_cq.get(), false);
			uint64_t before = now();
			pair.message(1);
			pair.message(2);
			EXPECT_NE(next_event(pair.b, patience() * 1000), nullptr);
			EXPECT_GE(now() - before, kPeriod * uint64_t(1000));
			pair.message(3);
			EXPECT_EQ(next_event(pair.b, 0), nullptr);
		}
}

// The count ends the wait; the rest of that period means nothing for the next event.
TEST(CqModeration, CountBeforePeriod)
{
	constexpr uint16_t kPeriod = 60000;
	ModeratedPair pair(2, kPeriod);

	if (!pair.supported)
		GTEST_SKIP() << "no modify_cq";
	for (int round = 0; round < 3; round++) {
		arm(pair.b.recv_cq.get(), false);
		pair.message(1);
		pair.message(2);
		EXPECT_NE(next_event(pair.b, patience() * 1000), nullptr);
		arm(pair.b.recv_cq.get(), false);
		uint64_t before = now();
		pair.message(3);
		EXPECT_NE(next_event(pair.b, patience() * 1000), nullptr);
		EXPECT_GE(now() - before, kPeriod * uint64_t(1000));
	}
}

TEST(CqModeration, SolicitedIsNotHeld)
{
	ModeratedPair pair(1000, 0);

	if (!pair.supported)
		GTEST_SKIP() << "no modify_cq";
	arm(pair.b.recv_cq.get(), true);
	pair.message(1);
	EXPECT_EQ(next_event(pair.b, 0), nullptr);
	pair.message(2, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
	EXPECT_NE(next_event(pair.b, patience() * 1000), nullptr);
}

TEST(CqModeration, TurningItOffReleases)
{
	ModeratedPair pair(1000, 0);

	if (!pair.supported)
		GTEST_SKIP() << "no modify_cq";
	arm(pair.b.recv_cq.get(), false);
	pair.message(1);
	EXPECT_EQ(next_event(pair.b, 0), nullptr);
	ASSERT_EQ(moderate(pair.b.recv_cq.get(), 0, 0), 0);
	EXPECT_NE(next_event(pair.b, patience() * 1000), nullptr);
	arm(pair.b.recv_cq.get(), false);
	pair.message(2);
	EXPECT_NE(next_event(pair.b, patience() * 1000), nullptr);
}

// A count beyond the ring must not let it overflow unseen.
TEST(CqModeration, FullRing)
{
	QpConfig config = with_events();

	config.send_wr = config.recv_wr = 16;
	config.make_cq = [](ibv_context *context, uint32_t, ibv_comp_channel *channel) {
		return ibv_create_cq(context, 8, nullptr, channel, 0);
	};
	CqPair pair(config);
	ibv_cq *cq = pair.b.recv_cq.get();

	if (moderate(cq, 1000, 0) == EOPNOTSUPP)
		GTEST_SKIP() << "no modify_cq";
	arm(cq, false);
	for (int id = 1; id <= cq->cqe; id++) {
		EXPECT_EQ(next_event(pair.b, 0), nullptr) << id;
		pair.send(id);
		expect_wc(pair.a.wait_send(), id);
	}
	EXPECT_NE(next_event(pair.b, patience() * 1000), nullptr);
}

TEST(CqModeration, BadAttributes)
{
	ModeratedPair pair(0, 0);
	ibv_modify_cq_attr attr = {};

	if (!pair.supported)
		GTEST_SKIP() << "no modify_cq";
	EXPECT_EQ(ibv_modify_cq(pair.a.send_cq.get(), &attr), EINVAL);
	attr.attr_mask = IBV_CQ_ATTR_RESERVED;
	EXPECT_EQ(ibv_modify_cq(pair.a.send_cq.get(), &attr), EINVAL);
}

// -------- overflow --------

QpConfig small_cq()
{
	QpConfig config;

	config.make_cq = [](ibv_context *context, uint32_t, ibv_comp_channel *) {
		return ibv_create_cq(context, 4, nullptr, nullptr, 0);
	};
	return config;
}

// What fitted is there; the CQ is in error, and so is each QP that wants to complete into it.
TEST(CqOverflow, SendQueues)
{
	CqPair pair(small_cq());
	ibv_cq *cq = pair.a.send_cq.get();
	QpConfig shared;
	shared.shared_cq = cq;
	Endpoint second(device_a(), shared), peer(device_b());
	Path path;

	second.to_init();
	peer.to_init();
	second.to_rtr(peer, path, path.psn_b);
	peer.to_rtr(second, path, path.psn_a);
	second.to_rts(path, path.psn_a);
	peer.to_rts(path, path.psn_b);

	device_a().drain_events();
	for (int id = 1; id <= cq->cqe + 2; id++)
		pair.a.post(pair.write(id));
	EXPECT_TRUE(device_a().wait_event(IBV_EVENT_CQ_ERR));
	EXPECT_TRUE(device_a().wait_event(IBV_EVENT_QP_FATAL));
	EXPECT_EQ(pair.a.state(), IBV_QPS_ERR);
	EXPECT_EQ(second.state(), IBV_QPS_RTS);

	// room again, but it is too late
	for (int id = 1; id <= cq->cqe; id++)
		expect_wc(Endpoint::wait(cq), id);
	Memory to(peer.pd.get(), 64), from(second.pd.get(), 64);
	second.post(SendWr(IBV_WR_RDMA_WRITE, 1, {from.sge(0, 8)}).remote(to.addr(), to.rkey()));
	EXPECT_TRUE(device_a().wait_event(IBV_EVENT_QP_FATAL));
	EXPECT_EQ(second.state(), IBV_QPS_ERR);
	ibv_wc wc;
	EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 0);
	if (can_resize(cq)) {
		EXPECT_EQ(ibv_resize_cq(cq, 64), EINVAL);
	}
}

TEST(CqOverflow, ReceiveQueue)
{
	CqPair pair(small_cq());
	ibv_cq *cq = pair.b.recv_cq.get();

	device_b().drain_events();
	for (int id = 1; id <= cq->cqe; id++) {
		pair.send(id);
		expect_wc(pair.a.wait_send(), id);
	}
	pair.send(100);
	EXPECT_TRUE(device_b().wait_event(IBV_EVENT_CQ_ERR));
	EXPECT_TRUE(device_b().wait_event(IBV_EVENT_QP_FATAL));
	EXPECT_EQ(pair.b.state(), IBV_QPS_ERR);
	for (int id = 1; id <= cq->cqe; id++)
		expect_wc(pair.b.wait_recv(), id);
	pair.b.expect_quiet();
}

// CQEs that a QP leaves behind when it goes, or starts over, take no room.
TEST(CqOverflow, NotByTheCqesOfGoneQps)
{
	QpConfig config = with_events();
	config.make_cq = [](ibv_context *context, uint32_t, ibv_comp_channel *channel) {
		return ibv_create_cq(context, 4, nullptr, channel, 0);
	};
	CqPair pair(config);
	ibv_cq *cq = pair.b.recv_cq.get();
	QpConfig sharing;
	sharing.shared_cq = cq;

	device_b().drain_events();
	for (int round = 0; round < 5; round++) {
		for (bool resets : {true, false}) {
			std::optional<Pair> other;
			Endpoint *end = &pair.b;

			if (!resets)
				end = &other.emplace(QpConfig(), sharing, Path()).b;
			for (int id = 1; id <= cq->cqe; id++)
				end->recv(id, {});
			arm(cq, false);
			check(end->to(IBV_QPS_ERR), "modify_qp ERR");
			EXPECT_EQ(next_event(pair.b, patience() * 1000), cq);
			if (resets)
				pair.reconnect(Path());
			else
				other.reset();
			for (int id = 1; id <= cq->cqe; id++) {
				pair.send(id);
				expect_wc(pair.a.wait_send(), id);
			}
			for (int id = 1; id <= cq->cqe; id++)
				expect_wc(pair.b.wait_recv(), id);
			pair.b.expect_quiet();
		}
	}
}

// -------- extended CQs --------

ibv_cq_ex *create_ex(ibv_context *context, uint64_t wc_flags, uint32_t flags = 0,
		     uint32_t comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS)
{
	ibv_cq_init_attr_ex attr = {};

	attr.cqe = 64;
	attr.wc_flags = wc_flags;
	attr.comp_mask = comp_mask;
	attr.flags = flags;
	return ibv_create_cq_ex(context, &attr);
}

constexpr uint64_t kTimestamps =
	IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

QpConfig extended(uint64_t wc_flags, uint32_t flags = 0)
{
	QpConfig config;

	config.make_cq = [=](ibv_context *context, uint32_t, ibv_comp_channel *) {
		ibv_cq_ex *cq = create_ex(context, wc_flags, flags);

		return cq ? ibv_cq_ex_to_cq(cq) : nullptr;
	};
	return config;
}

ibv_cq_ex *to_ex(const Cq &cq)
{
	return reinterpret_cast<ibv_cq_ex *>(cq.get());
}

// Waits for a completion and makes it the current one.
void start(ibv_cq_ex *cq)
{
	ibv_poll_cq_attr attr = {};
	uint64_t limit = deadline();
	int err;

	do
		err = ibv_start_poll(cq, &attr);
	while (err == ENOENT && now() < limit);
	check(err, "start_poll");
}

uint64_t raw_clock(ibv_context *context)
{
	ibv_values_ex values = {};

	values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	check(ibv_query_rt_values_ex(context, &values), "query_rt_values_ex");
	EXPECT_EQ(values.comp_mask, unsigned(IBV_VALUES_MASK_RAW_CLOCK));
	return values.raw_clock.tv_sec * uint64_t(1000000000) + values.raw_clock.tv_nsec;
}

bool has_timestamps()
{
	ibv_cq_ex *cq = create_ex(device_b().get(), kTimestamps);

	if (cq)
		check(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), "destroy_cq");
	return cq;
}

// All that a datagram's completion can tell.
TEST(CqExtended, FieldsOfADatagram)
{
	if (!has_timestamps())
		GTEST_SKIP() << "no timestamps";
	QpConfig config = extended(IBV_WC_STANDARD_FLAGS | kTimestamps);
	config.type = IBV_QPT_UD;
	CqPair pair(config);
	ibv_cq_ex *cq = to_ex(pair.b.recv_cq);
	Ah ah = pair.a.ah_for(pair.b);

	for (uint32_t length : {1u, 24u}) {
		pair.b.recv(77, {pair.remote.sge(0, 64)});
		uint64_t raw = raw_clock(device_b().get()), wall = now(CLOCK_REALTIME);
		pair.a.post(SendWr(IBV_WR_SEND_WITH_IMM, 5, {pair.local.sge(0, length)})
				    .imm(length)
				    .to(ah.get(), pair.b.qp->qp_num));
		start(cq);
		EXPECT_EQ(cq->wr_id, 77u);
		EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
		EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV);
		EXPECT_EQ(ibv_wc_read_vendor_err(cq), 0u);
		EXPECT_EQ(ibv_wc_read_byte_len(cq), 40 + length);
		EXPECT_EQ(ntohl(ibv_wc_read_imm_data(cq)), length);
		EXPECT_EQ(ibv_wc_read_qp_num(cq), pair.b.qp->qp_num);
		EXPECT_EQ(ibv_wc_read_src_qp(cq), pair.a.qp->qp_num);
		EXPECT_EQ(ibv_wc_read_wc_flags(cq), unsigned(IBV_WC_GRH | IBV_WC_WITH_IMM));
		EXPECT_EQ(ibv_wc_read_slid(cq), 0u);
		// what the first 40 bytes are: UDP, and IPv6 or IPv4
		EXPECT_EQ(ibv_wc_read_sl(cq), pair.remote.data()[0] >> 4 == 6 ? 8 + 1 : 8 + 2);
		EXPECT_EQ(ibv_wc_read_dlid_path_bits(cq), 0);
		EXPECT_GE(ibv_wc_read_completion_ts(cq), raw);
		EXPECT_LE(ibv_wc_read_completion_ts(cq), raw_clock(device_b().get()));
		EXPECT_GE(ibv_wc_read_completion_wallclock_ns(cq), wall);
		EXPECT_LE(ibv_wc_read_completion_wallclock_ns(cq), now(CLOCK_REALTIME));
		EXPECT_EQ(ibv_next_poll(cq), ENOENT);
		ibv_end_poll(cq);
		start(to_ex(pair.a.send_cq));
		EXPECT_EQ(to_ex(pair.a.send_cq)->wr_id, 5u);
		ibv_end_poll(to_ex(pair.a.send_cq));
	}
}

// Times never go back within a CQ, and both clocks tell the same distance, more or less.
TEST(CqExtended, TimestampsAscend)
{
	if (!has_timestamps())
		GTEST_SKIP() << "no timestamps";
	CqPair pair(extended(kTimestamps, IBV_CREATE_CQ_ATTR_SINGLE_THREADED));
	ibv_cq_ex *cq = to_ex(pair.a.send_cq);
	uint64_t last = 0, first_raw = 0, first_wall = 0, raw = 0, wall = 0;

	for (uint64_t id = 1; id <= 500 && !testing::Test::HasFailure(); id++) {
		pair.a.post(pair.write(id));
		start(cq);
		EXPECT_EQ(cq->wr_id, id);
		EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
		raw = ibv_wc_read_completion_ts(cq);
		wall = ibv_wc_read_completion_wallclock_ns(cq);
		EXPECT_GE(raw, last);
		last = raw;
		if (id == 1) {
			first_raw = raw;
			first_wall = wall;
		}
		ibv_end_poll(cq);
	}
	EXPECT_NEAR(double(raw - first_raw), double(wall - first_wall),
		    0.2 * double(raw - first_raw));
}

struct EndPoll {
	void operator()(ibv_cq_ex *cq) const
	{
		ibv_end_poll(cq);
	}
};

// A CQ full of completions, of a QP that can have as many WRs: what is posted while they are polled
// completes, too.
TEST(CqExtended, PostingWhilePolling)
{
	if (!has_timestamps())
		GTEST_SKIP() << "no timestamps";
	CqPair pair(extended(kTimestamps));
	ibv_cq_ex *cq = to_ex(pair.a.send_cq);
	uint64_t count = pair.a.cap.max_send_wr;

	ASSERT_EQ(count, uint64_t(pair.a.send_cq->cqe));
	for (uint64_t id = 1; id <= count; id++)
		pair.a.post(pair.write(id));
	drain(pair.a);
	start(cq);
	// whatever happens: destroying the QP needs the CQ's lock
	std::unique_ptr<ibv_cq_ex, EndPoll> polling(cq);
	for (uint64_t id = 1; id <= 2 * count; id++) {
		ASSERT_EQ(cq->wr_id, id);
		ASSERT_EQ(cq->status, IBV_WC_SUCCESS);
		if (id <= count) {
			pair.a.post(pair.write(count + id));
			drain(pair.a);
		}
		EXPECT_EQ(ibv_next_poll(cq), id < 2 * count ? 0 : ENOENT);
	}
	polling.reset();
	EXPECT_EQ(pair.a.state(), IBV_QPS_RTS);
}

// Resizing does not lose what only extended CQs show.
TEST(CqExtended, ResizeKeepsTimestamps)
{
	if (!has_timestamps())
		GTEST_SKIP() << "no timestamps";
	CqPair pair(extended(kTimestamps | IBV_WC_EX_WITH_BYTE_LEN));
	ibv_cq_ex *cq = to_ex(pair.b.recv_cq);
	uint64_t before = raw_clock(device_b().get());

	pair.send(1);
	pair.send(2);
	drain(pair.a);
	uint64_t after = raw_clock(device_b().get());
	ASSERT_EQ(ibv_resize_cq(pair.b.recv_cq.get(), 256), 0);
	start(cq);
	EXPECT_EQ(cq->wr_id, 1u);
	EXPECT_EQ(ibv_wc_read_byte_len(cq), 64u);
	EXPECT_GE(ibv_wc_read_completion_ts(cq), before);
	EXPECT_LE(ibv_wc_read_completion_ts(cq), after);
	ASSERT_EQ(ibv_next_poll(cq), 0);
	EXPECT_EQ(cq->wr_id, 2u);
	ibv_end_poll(cq);
}

TEST(CqExtended, Unsupported)
{
	if (!has_timestamps())
		GTEST_SKIP() << "no timestamps";
	for (uint64_t flag :
	     {IBV_WC_EX_WITH_CVLAN, IBV_WC_EX_WITH_FLOW_TAG, IBV_WC_EX_WITH_TM_INFO}) {
		errno = 0;
		EXPECT_EQ(create_ex(device_a().get(), flag), nullptr);
		EXPECT_EQ(errno, EOPNOTSUPP);
	}
	// what is overwritten before it was polled would be found by nobody
	errno = 0;
	EXPECT_EQ(create_ex(device_a().get(), 0, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	errno = 0;
	EXPECT_EQ(create_ex(device_a().get(), 0, 0, 1 << 30), nullptr);
	EXPECT_TRUE(errno == EOPNOTSUPP || errno == EINVAL) << errno;
}

TEST(CqExtended, RealTimeValues)
{
	ibv_values_ex values = {};

	values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	if (ibv_query_rt_values_ex(device_a().get(), &values) == EOPNOTSUPP)
		GTEST_SKIP() << "no query_rt_values";
	uint64_t before = raw_clock(device_a().get());
	EXPECT_LE(before, raw_clock(device_a().get()));
	values.comp_mask = 1 << 20;
	EXPECT_NE(ibv_query_rt_values_ex(device_a().get(), &values), 0);
}

} // namespace
} // namespace verbs
