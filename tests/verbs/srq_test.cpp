// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive queues: messages of several QPs take WQEs in posting order, the limit event, what
 * becomes of WQEs when a QP breaks, sizes (IBTA 10.2.9, 10.9.6).
 */
#include <set>

#include "srq_scene.hpp"

namespace verbs {
namespace {

// ---- data ----

struct SrqParam {
	Op op;
	ibv_qp_type type;
};

class SrqData : public testing::TestWithParam<SrqParam> {};

TEST_P(SrqData, EveryKindOfReceive)
{
	QpConfig config;
	Shape shape;

	config.type = GetParam().type;
	config.srq_wr = 4;
	config.recv_sge = 3;
	config.send_sge = 2;
	Pair pair(config);
	Bench bench(pair, 9000, 3);
	shape.op = GetParam().op;
	shape.local_pieces = 2;
	shape.recv_pieces = 3;
	for (size_t length : {0, 1, 3, 1023, 1024, 1025, 2048, 5000, 9000})
		for (int i = 0; i < 3; i++) {
			shape.length = length;
			bench.run(shape);
		}
	pair.b.expect_quiet();
}

INSTANTIATE_TEST_SUITE_P(Op, SrqData,
			 testing::Values(SrqParam{Op::Send, IBV_QPT_RC},
					 SrqParam{Op::SendImm, IBV_QPT_RC},
					 SrqParam{Op::WriteImm, IBV_QPT_RC},
					 SrqParam{Op::Send, IBV_QPT_UC},
					 SrqParam{Op::WriteImm, IBV_QPT_UC}),
			 [](const auto &info) {
				 return std::string(info.param.type == IBV_QPT_RC ? "Rc" : "Uc") +
					op_name(info.param.op);
			 });

// What needs no receive takes none.
TEST(Srq, WritesAndReadsTakeNothing)
{
	QpConfig config;
	Shape shape;

	config.srq_wr = 4;
	Pair pair(config);
	Bench bench(pair, 4000, 1);
	Memory memory(pair.b.pd.get(), 64);

	pair.b.recv(77, {memory.sge(0, 64)});
	for (Op op : {Op::Write, Op::Read, Op::CmpSwap, Op::FetchAdd}) {
		shape.op = op;
		shape.length = 4000;
		bench.run(shape);
	}
	pair.b.expect_quiet();
	pair.a.post(SendWr(IBV_WR_SEND, 1));
	expect_wc(pair.a.wait_send(), 1);
	expect_wc(pair.b.wait_recv(), 77);
}

TEST(Srq, InPostingOrderWhoeverComes)
{
	SrqScene s(3);
	const int order[] = {0, 2, 1, 1, 0, 0, 2, 2, 1};
	uint64_t id = 0;

	for (; id < 9; id++)
		s.recv(id);
	id = 0;
	for (int i : order) {
		s.send(i, 3000 + id, id + 1);
		s.expect_arrived(i, id, 3000 + id, id + 1);
		id++;
	}
	s.expect_quiet();
}

// Many at once: each message has a receive of its own, each receive one message.
TEST(Srq, ManyQpsAtOnce)
{
	constexpr int kPairs = 4, kEach = 12;
	SrqScene s(kPairs);
	std::set<uint64_t> used;

	for (int n = 0; n < kPairs * kEach; n++)
		s.recv(n);
	for (int i = 0; i < kPairs; i++)
		memset(s.local[i]->data(), 0x40 + i, kRoom);
	for (int n = 0; n < kEach; n++)
		for (int i = 0; i < kPairs; i++)
			s.pair[i]->a.post(SendWr(IBV_WR_SEND, n, {s.local[i]->sge(0, 5000 + i)}));
	for (int i = 0; i < kPairs; i++)
		for (int n = 0; n < kEach; n++) {
			expect_wc(s.pair[i]->a.wait_send(), n);
			ibv_wc wc = s.pair[i]->b.wait_recv();
			EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
			EXPECT_EQ(wc.byte_len, 5000u + i);
			EXPECT_EQ(wc.qp_num, s.pair[i]->b.qp->qp_num);
			EXPECT_TRUE(used.insert(wc.wr_id).second) << wc.wr_id << " twice";
			s.check_room(wc.wr_id, 5000 + i, 0x40 + i);
		}
	EXPECT_EQ(used.size(), size_t(kPairs * kEach));
	s.expect_quiet();
}

// The ring comes round often; slots are free as soon as a message has begun.
TEST(Srq, RingComesRound)
{
	SrqScene s(2, IBV_QPT_RC, {}, 4);
	ASSERT_EQ(s.query().max_wr, 4u);

	for (uint64_t id = 0; id < 4; id++)
		s.recv(id);
	EXPECT_EQ(post_srq_recv(s.srq, 9, {s.sge(9)}), ENOMEM);
	for (uint64_t id = 0; id < 60; id++) {
		s.send(id % 2, 100, id + 1);
		s.recv(id + 4); // before the completion of the first is polled
		EXPECT_EQ(post_srq_recv(s.srq, 9, {s.sge(9)}), ENOMEM);
		s.expect_arrived(id % 2, id, 100, id + 1);
	}
	s.expect_quiet();
}

TEST(Srq, Datagrams)
{
	constexpr uint32_t kGrh = 40;
	SrqScene s(2, IBV_QPT_UD);
	Ah ah(s.pair[0]->a.ah_for(s.pair[0]->b)), ah1(s.pair[1]->a.ah_for(s.pair[1]->b));

	for (uint64_t id = 0; id < 6; id++)
		s.recv(id);
	for (uint64_t id = 0; id < 6; id++) {
		int i = id % 2;
		Endpoint &b = s.pair[i]->b;
		SendWr wr = s.message(i, 500, id + 1);

		s.pair[i]->a.post(wr.to((i ? ah1 : ah).get(), b.qp->qp_num));
		expect_wc(s.pair[i]->a.wait_send(), id + 1);
		ibv_wc wc = b.wait_recv();
		expect_wc(wc, id);
		EXPECT_EQ(wc.qp_num, b.qp->qp_num);
		EXPECT_EQ(wc.byte_len, kGrh + 500);
		EXPECT_EQ(s.room(id)[kGrh], id + 1);
		EXPECT_EQ(s.room(id)[kGrh + 499], id + 1);
		EXPECT_EQ(s.room(id)[kGrh + 500], kFiller);
	}
	s.expect_quiet();
}

// ---- empty ----

TEST(SrqEmpty, RcWaitsForAReceive)
{
	SrqScene s(2);
	CounterDelta counter(s.pair[0]->b.dev, "out_of_buffer");

	s.pair[1]->a.post(s.message(1, 3000, 5));
	s.pair[1]->b.expect_quiet();
	s.recv(8);
	expect_wc(s.pair[1]->a.wait_send(), 5);
	s.expect_arrived(1, 8, 3000, 5);
	EXPECT_GE(counter.moved(), 1u);
}

TEST(SrqEmpty, RcGivesUp)
{
	Path path;

	path.rnr_retry = 1;
	SrqScene s(2, IBV_QPT_RC, path);
	s.pair[1]->a.post(s.message(1, 3000, 5));
	expect_wc(s.pair[1]->a.wait_send(), 5, IBV_WC_RNR_RETRY_EXC_ERR);
	EXPECT_EQ(s.pair[1]->a.state(), IBV_QPS_ERR);
	EXPECT_EQ(s.pair[1]->b.state(), IBV_QPS_RTS);
	s.recv(1);
	s.send(0, 100, 7);
	s.expect_arrived(0, 1, 100, 7);
}

TEST(SrqEmpty, UcDrops)
{
	SrqScene s(1, IBV_QPT_UC);
	CounterDelta counter(s.pair[0]->b.dev, "drop_no_recv");

	s.send(0, 100, 1);
	s.expect_quiet();
	s.recv(2);
	s.send(0, 3000, 3);
	s.expect_arrived(0, 2, 3000, 3);
	counter.expect(1);
}

TEST(SrqEmpty, UdDrops)
{
	SrqScene s(1, IBV_QPT_UD);
	CounterDelta counter(s.pair[0]->b.dev, "drop_no_recv");
	Ah ah(s.pair[0]->a.ah_for(s.pair[0]->b));
	SendWr wr = s.message(0, 100, 1);

	s.pair[0]->a.post(wr.to(ah.get(), s.pair[0]->b.qp->qp_num));
	expect_wc(s.pair[0]->a.wait_send(), 1);
	counter.expect(1);
	s.expect_quiet();
	s.recv(2);
	s.pair[0]->a.post(wr);
	expect_wc(s.pair[0]->a.wait_send(), 1);
	expect_wc(s.pair[0]->b.wait_recv(), 2);
}

// ---- the limit ----

class SrqLimit : public testing::Test {
protected:
	SrqLimit() : s(1), dev(s.pair[0]->b.dev)
	{
		dev.drain_events();
		for (; posted < 8; posted++)
			s.recv(posted);
	}

	// One message is received.
	void take()
	{
		s.send(0, 10, taken + 1);
		s.expect_arrived(0, taken, 10, taken + 1);
		taken++;
	}
	// The limit event and no other, so far
	void expect_event()
	{
		EXPECT_TRUE(dev.wait_event(IBV_EVENT_SRQ_LIMIT_REACHED));
		EXPECT_EQ(s.query().srq_limit, 0u);
		expect_none();
	}
	void expect_none()
	{
		EXPECT_FALSE(dev.next_event(0));
	}

	SrqScene s;
	Device &dev;
	uint64_t posted = 0, taken = 0;
};

TEST_F(SrqLimit, OnceWhenFewerAreLeft)
{
	ASSERT_EQ(s.set_limit(6), 0);
	EXPECT_EQ(s.query().srq_limit, 6u);
	take();
	take(); // 6 are left: not fewer
	expect_none();
	EXPECT_EQ(s.query().srq_limit, 6u);
	take();
	expect_event();
	for (int i = 0; i < 5; i++)
		take();
	expect_none();
}

TEST_F(SrqLimit, ArmedAgain)
{
	ASSERT_EQ(s.set_limit(8), 0);
	take();
	expect_event();
	s.recv(8);
	ASSERT_EQ(s.set_limit(8), 0);
	expect_none();
	take();
	expect_event();
}

TEST_F(SrqLimit, AtOnceWhenFewerAreThere)
{
	ASSERT_EQ(s.set_limit(9), 0);
	expect_event();
}

TEST_F(SrqLimit, Disarmed)
{
	ASSERT_EQ(s.set_limit(8), 0);
	ASSERT_EQ(s.set_limit(0), 0);
	take();
	expect_none();
}

TEST_F(SrqLimit, Refusals)
{
	ibv_srq_attr attr = {};

	EXPECT_EQ(ibv_modify_srq(s.srq, &attr, 4), EINVAL);
	for (uint32_t limit : {65u, 1u << 31, ~0u})
		EXPECT_EQ(s.set_limit(limit), EINVAL) << limit;
	EXPECT_EQ(s.query().srq_limit, 0u);
	EXPECT_EQ(s.query().max_wr, 64u);
	EXPECT_EQ(s.set_limit(64), 0);
	expect_event();
}

// ---- errors ----

/*
 * A QP in error gives back what it took and says that it takes no more; what it did not take is the
 * other QP's.
 */
TEST(SrqError, TakenIsFlushedTheRestIsNot)
{
	SrqScene s(2);
	Device &dev = s.pair[0]->b.dev;
	SendWr wr = s.message(0, kRoom, 9);

	for (uint64_t id = 1; id <= 3; id++)
		s.recv(id);
	dev.drain_events();
	ASSERT_EQ(s.set_limit(3), 0);
	// the message begins and never ends: its last bytes are beyond the region
	wr.sges[0].addr += 4096;
	s.pair[0]->a.post(wr);
	expect_wc(s.pair[0]->a.wait_send(), 9, IBV_WC_LOC_PROT_ERR);
	ASSERT_TRUE(dev.wait_event(IBV_EVENT_SRQ_LIMIT_REACHED)); // it has taken a receive
	s.expect_quiet();

	ASSERT_EQ(s.pair[0]->b.to(IBV_QPS_ERR), 0);
	ibv_wc wc = s.pair[0]->b.wait_recv();
	expect_wc(wc, 1, IBV_WC_WR_FLUSH_ERR);
	EXPECT_EQ(wc.qp_num, s.pair[0]->b.qp->qp_num);
	EXPECT_TRUE(dev.wait_event(IBV_EVENT_QP_LAST_WQE_REACHED));
	s.expect_quiet();

	s.send(1, 3000, 4);
	s.expect_arrived(1, 2, 3000, 4);
	s.send(1, 3000, 5);
	s.expect_arrived(1, 3, 3000, 5);
	EXPECT_FALSE(dev.next_event(0));
}

TEST(SrqError, LastWqeEventComesOnce)
{
	SrqScene s(2);
	Device &dev = s.pair[0]->b.dev;

	s.recv(1);
	dev.drain_events();
	ASSERT_EQ(s.pair[0]->b.to(IBV_QPS_ERR), 0);
	EXPECT_TRUE(dev.wait_event(IBV_EVENT_QP_LAST_WQE_REACHED));
	ASSERT_EQ(s.pair[0]->b.to(IBV_QPS_ERR), 0);
	s.expect_quiet();
	EXPECT_FALSE(dev.next_event(0));

	// anew after RESET
	s.pair[0]->reconnect({});
	s.send(0, 100, 3);
	s.expect_arrived(0, 1, 100, 3);
	ASSERT_EQ(s.pair[0]->b.to(IBV_QPS_ERR), 0);
	EXPECT_TRUE(dev.wait_event(IBV_EVENT_QP_LAST_WQE_REACHED));
}

// Without an SRQ there is no such event.
TEST(SrqError, NoEventOfOtherQps)
{
	Pair pair;

	pair.b.dev.drain_events();
	ASSERT_EQ(pair.b.to(IBV_QPS_ERR), 0);
	pair.b.expect_quiet();
	EXPECT_FALSE(pair.b.dev.next_event(0));
}

// The WQE is at fault: its completion, in the CQ of the QP that took it, which is in error.
TEST(SrqError, BadWqes)
{
	SrqScene s(4);
	Memory other(s.pair[1]->b.pd.get(), kRoom); // of the QP's PD, not of the SRQ's
	struct {
		ibv_sge sge;
		ibv_wc_status local, remote;
	} bad[] = {
		{s.sge(0, 99), IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR},
		{other.sge(0, kRoom), IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR},
		{s.remote->sge(63 * kRoom + 1, kRoom), IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR},
	};

	for (int i = 0; i < 3; i++) {
		SCOPED_TRACE(i);
		int pair = i + 1;
		Device &dev = s.pair[pair]->b.dev;

		dev.drain_events();
		ASSERT_EQ(post_srq_recv(s.srq, 100 + i, {bad[i].sge}), 0);
		s.recv(7);
		s.pair[pair]->a.post(s.message(pair, kRoom, 1));
		expect_wc(s.pair[pair]->a.wait_send(), 1, bad[i].remote);
		expect_wc(s.pair[pair]->b.wait_recv(), 100 + i, bad[i].local);
		EXPECT_EQ(s.pair[pair]->b.state(), IBV_QPS_ERR);
		EXPECT_TRUE(dev.wait_event(IBV_EVENT_QP_LAST_WQE_REACHED));
		memset(s.room(0), kFiller, kRoom);
		memset(s.remote->data() + 63 * kRoom, kFiller, kRoom);

		s.send(0, 100, 2);
		s.expect_arrived(0, 7, 100, 2);
	}
}

// UC: the receive of a broken message is the QP's, and the next message of that QP has it.
TEST(SrqError, UcKeepsWhatItTook)
{
	SrqScene s(2, IBV_QPT_UC);

	s.recv(1, 64);
	s.send(0, 65, 1); // too long, dropped
	s.recv(2);
	s.send(1, 500, 2);
	s.expect_arrived(1, 2, 500, 2);
	s.send(0, 64, 3);
	s.expect_arrived(0, 1, 64, 3);
	s.expect_quiet();
}

// ---- objects ----

TEST(SrqObject, PostRecvIsRefused)
{
	SrqScene s(1);
	ibv_recv_wr wr = {}, *bad = nullptr;

	EXPECT_EQ(ibv_post_recv(s.pair[0]->b.qp.get(), &wr, &bad), EINVAL);
	EXPECT_EQ(bad, &wr);
}

TEST(SrqObject, QueryOfAQp)
{
	SrqScene s(2);

	for (auto &p : s.pair) {
		ibv_qp_init_attr init = {};
		ibv_qp_attr attr = p->b.query(IBV_QP_CAP, &init);

		EXPECT_EQ(init.srq, s.srq);
		EXPECT_EQ(attr.cap.max_recv_wr, 0u);
		EXPECT_EQ(attr.cap.max_recv_sge, 0u);
		EXPECT_EQ(p->b.cap.max_recv_wr, 0u);
	}
}

TEST(SrqObject, DestroyedInTheWrongOrder)
{
	SrqScene s(2);

	s.recv(1);
	EXPECT_EQ(ibv_destroy_srq(s.srq), EBUSY);
	s.local[1].reset();
	s.pair[1].reset();
	EXPECT_EQ(ibv_destroy_srq(s.srq), EBUSY);
	s.send(0, 10, 2); // all still there
	s.expect_arrived(0, 1, 10, 2);
	s.pair[0]->b.qp.reset();
	EXPECT_EQ(ibv_dealloc_pd(s.pair[0]->b.pd.get()), EBUSY);
	s.recv(3); // destroyed with what is in it
}

ibv_srq *create_srq(const Pd &pd, uint32_t wr, uint32_t sge, ibv_srq_attr *granted = nullptr)
{
	ibv_srq_init_attr init = {nullptr, {wr, sge, 0}};

	errno = 0;
	ibv_srq *srq = ibv_create_srq(pd.get(), &init);
	if (srq && granted)
		*granted = init.attr;
	return srq;
}

TEST(SrqObject, Sizes)
{
	Pd pd(check(ibv_alloc_pd(device_a().get()), "alloc_pd"));
	uint32_t max_wr = device_a().attr.max_srq_wr, max_sge = device_a().attr.max_srq_sge;
	ibv_srq_attr granted, query;

	ASSERT_GT(device_a().attr.max_srq, 0);
	for (uint32_t wr : {1u, 2u, 3u, 1000u, max_wr / 2 + 1, max_wr})
		for (uint32_t sge : {0u, 1u, 3u, max_sge}) {
			Srq srq(create_srq(pd, wr, sge, &granted));

			ASSERT_TRUE(srq) << wr << ", " << sge << ": " << strerror(errno);
			EXPECT_GE(granted.max_wr, wr);
			EXPECT_GE(granted.max_sge, sge);
			EXPECT_LE(granted.max_wr, max_wr);
			EXPECT_LE(granted.max_sge, max_sge);
			ASSERT_EQ(ibv_query_srq(srq.get(), &query), 0);
			EXPECT_EQ(query.max_wr, granted.max_wr);
			EXPECT_EQ(query.max_sge, granted.max_sge);
			EXPECT_EQ(query.srq_limit, 0u);
		}
	for (uint32_t wr : {0u, max_wr + 1, 1u << 31, ~0u}) {
		EXPECT_FALSE(Srq(create_srq(pd, wr, 1))) << wr;
		EXPECT_EQ(errno, EINVAL) << wr;
	}
	for (uint32_t sge : {max_sge + 1, 1u << 31, ~0u}) {
		EXPECT_FALSE(Srq(create_srq(pd, 16, sge))) << sge;
		EXPECT_EQ(errno, EINVAL) << sge;
	}
}

// As many WRs and elements as were granted, and not one more
TEST(SrqObject, HoldsWhatWasGranted)
{
	Pd pd(check(ibv_alloc_pd(device_a().get()), "alloc_pd"));

	for (uint32_t wr : {1u, 5u, uint32_t(device_a().attr.max_srq_wr)}) {
		ibv_srq_attr granted = {};
		Srq srq(check(create_srq(pd, wr, device_a().attr.max_srq_sge, &granted),
			      "create_srq"));
		std::vector<ibv_sge> sges(granted.max_sge);

		for (uint32_t i = 0; i < granted.max_wr; i++)
			ASSERT_EQ(post_srq_recv(srq.get(), i, sges), 0) << i;
		EXPECT_EQ(post_srq_recv(srq.get(), 0, sges), ENOMEM);
		sges.resize(granted.max_sge + 1);
		EXPECT_EQ(post_srq_recv(srq.get(), 0, sges), EINVAL);
	}
}

TEST(SrqObject, Extended)
{
	Pd pd(check(ibv_alloc_pd(device_a().get()), "alloc_pd"));
	ibv_srq_init_attr_ex attr = {};

	attr.attr = {5, 2, 0};
	attr.pd = pd.get();
	attr.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
	attr.srq_type = IBV_SRQT_BASIC;
	Srq srq(ibv_create_srq_ex(device_a().get(), &attr));
	ASSERT_TRUE(srq) << strerror(errno);
	EXPECT_EQ(post_srq_recv(srq.get(), 1), 0);
	attr.srq_type = IBV_SRQT_TM;
	errno = 0;
	EXPECT_FALSE(Srq(ibv_create_srq_ex(device_a().get(), &attr)));
	EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST(SrqObject, Many)
{
	Pd pd(check(ibv_alloc_pd(device_a().get()), "alloc_pd"));
	std::vector<Srq> srqs;

	for (int i = 0; i < 300; i++) {
		srqs.emplace_back(create_srq(pd, 16, 1));
		ASSERT_TRUE(srqs.back()) << i << ": " << strerror(errno);
	}
	for (auto &srq : srqs)
		EXPECT_EQ(post_srq_recv(srq.get(), 1), 0);
}

} // namespace
} // namespace verbs
