// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * XRC (IBTA annex A14): an initiator's requests go to a target QP and name the SRQ that they are for.
 * The target has no queues and no PD: receives, CQ and the PD of the keys are the SRQ's.
 */
#include <stdlib.h>
#include <unistd.h>

#include "transfer.hpp"

namespace verbs {
namespace {

constexpr size_t kRoom = 8192;

QpConfig config_of(ibv_qp_type type, bool wr_api = false)
{
	QpConfig config;

	config.type = type;
	config.wr_api = wr_api;
	config.send_sge = 2;
	config.recv_sge = 3;
	return config;
}

class XrcTest : public testing::Test {
protected:
	void SetUp() override
	{
		if (!device_a().has_xrc() || !device_b().has_xrc())
			GTEST_SKIP() << "no XRC";
	}
};

struct XrcScene {
	explicit XrcScene(const Path &path = {}, bool events = false)
	    : pair(config_of(IBV_QPT_XRC_SEND), target_config(events), path),
	      local(pair.a.pd.get(), kRoom), remote(pair.b.pd.get(), 8 * kRoom)
	{
		memset(remote.data(), 0x22, remote.size());
	}

	static QpConfig target_config(bool events)
	{
		QpConfig config = config_of(IBV_QPT_XRC_RECV);

		config.events = events;
		return config;
	}
	SendWr message(uint32_t length, uint8_t byte)
	{
		memset(local.data(), byte, length);
		return SendWr(IBV_WR_SEND, byte, {local.sge(0, length)});
	}
	SendWr write(uint32_t length = 64)
	{
		return SendWr(IBV_WR_RDMA_WRITE, 1, {local.sge(0, length)})
			.remote(remote.addr(), remote.rkey());
	}
	// The WR fails at the other end, whose QP is in error with it.
	void expect_remote_error(const SendWr &wr, ibv_wc_status status, ibv_event_type event)
	{
		pair.b.dev.drain_events();
		pair.a.post(wr);
		expect_wc(pair.a.wait_send(), wr.wr.wr_id, status);
		EXPECT_EQ(pair.a.state(), IBV_QPS_ERR);
		EXPECT_EQ(pair.b.state(), IBV_QPS_ERR);
		EXPECT_TRUE(pair.b.dev.wait_event(event));
	}

	Pair pair;
	Memory local, remote;
};

// One more SRQ of a domain, with everything of its own, as another process would have it
struct Receiver {
	Receiver(ibv_context *context, ibv_xrcd *xrcd)
	    : pd(check(ibv_alloc_pd(context), "alloc_pd")),
	      cq(check(ibv_create_cq(context, 64, nullptr, nullptr, 0), "create_cq")),
	      srq(create_xrc_srq(pd.get(), xrcd, cq.get(), 16)), memory(pd.get(), kRoom)
	{
		memset(memory.data(), 0x22, kRoom);
	}

	uint32_t number() const
	{
		return srq_number(srq.get());
	}
	void recv(uint64_t id)
	{
		check(post_srq_recv(srq.get(), id, {memory.sge(0, kRoom)}), "post_srq_recv");
	}
	void expect_arrived(uint64_t id, uint32_t qpn, uint32_t length, uint8_t byte)
	{
		ibv_wc wc = Endpoint::wait(cq.get());

		expect_wc(wc, id);
		EXPECT_EQ(wc.qp_num, qpn);
		EXPECT_EQ(wc.byte_len, length);
		for (uint32_t i = 0; i < length; i++)
			ASSERT_EQ(memory.data()[i], byte) << i;
		EXPECT_EQ(memory.data()[length], 0x22);
		memset(memory.data(), 0x22, kRoom);
	}
	void expect_quiet()
	{
		ibv_wc wc;

		ASSERT_EQ(ibv_poll_cq(cq.get(), 1, &wc), 0) << wc;
	}

	Pd pd;
	Cq cq;
	Srq srq;
	Memory memory;
};

// ---- data ----

struct XrcParam {
	Op op;
	bool wr_api;
};

class XrcData : public testing::TestWithParam<XrcParam> {
	void SetUp() override
	{
		if (!device_a().has_xrc() || !device_b().has_xrc())
			GTEST_SKIP() << "no XRC";
	}
};

TEST_P(XrcData, EveryLength)
{
	Pair pair(config_of(IBV_QPT_XRC_SEND, GetParam().wr_api), config_of(IBV_QPT_XRC_RECV),
		  Path());
	Bench bench(pair, 150000, 3);
	Shape shape;

	shape.op = GetParam().op;
	shape.local_pieces = 2;
	shape.recv_pieces = 3;
	for (size_t length : {0, 1, 3, 8, 1023, 1024, 1025, 2049, 5000, 150000}) {
		if (is_atomic(shape.op)) {
			shape.local_pieces = 1;
			length = 8;
		}
		shape.length = length;
		bench.run(shape);
	}
	pair.b.expect_quiet();
}

INSTANTIATE_TEST_SUITE_P(Op, XrcData,
			 testing::Values(XrcParam{Op::Send, false}, XrcParam{Op::Send, true},
					 XrcParam{Op::SendImm, true}, XrcParam{Op::Write, false},
					 XrcParam{Op::WriteImm, false},
					 XrcParam{Op::WriteImm, true}, XrcParam{Op::Read, false},
					 XrcParam{Op::Read, true}, XrcParam{Op::CmpSwap, false},
					 XrcParam{Op::FetchAdd, false},
					 XrcParam{Op::FetchAdd, true}),
			 [](const auto &info) {
				 return std::string(op_name(info.param.op)) +
					(info.param.wr_api ? "WrApi" : "");
			 });

using Xrc = XrcTest;

// One initiator and one target serve SRQs of several PDs and CQs, message by message.
TEST_F(Xrc, SeveralSrqs)
{
	XrcScene s;
	uint32_t qpn = s.pair.b.qp->qp_num;
	Receiver one(s.pair.b.dev.get(), s.pair.b.xrcd), two(s.pair.b.dev.get(), s.pair.b.xrcd);
	Receiver *const order[] = {&one, &two, &two, &one, &one, &two};
	uint64_t id = 10;

	EXPECT_NE(one.number(), two.number());
	for (Receiver *r : order) {
		r->recv(id);
		s.pair.a.post(s.message(3000 + id, id).srqn(r->number()));
		expect_wc(s.pair.a.wait_send(), id);
		r->expect_arrived(id, qpn, 3000 + id, id);
		one.expect_quiet();
		two.expect_quiet();
		id++;
	}
	s.pair.b.expect_quiet();
}

// Initiators of several QPs share an SRQ.
TEST_F(Xrc, SeveralInitiators)
{
	XrcScene s;
	QpConfig target = config_of(IBV_QPT_XRC_RECV);

	target.xrcd = s.pair.b.xrcd;
	Pair other(config_of(IBV_QPT_XRC_SEND), target, Path());
	Memory local(other.a.pd.get(), 64);
	Receiver r(s.pair.b.dev.get(), s.pair.b.xrcd);

	for (uint64_t id = 1; id <= 6; id++) {
		Pair &pair = id % 2 ? s.pair : other;
		Memory &from = id % 2 ? s.local : local;

		r.recv(id);
		memset(from.data(), id, 64);
		pair.a.post(SendWr(IBV_WR_SEND, id, {from.sge(0, 64)}).srqn(r.number()));
		expect_wc(pair.a.wait_send(), id);
		r.expect_arrived(id, pair.b.qp->qp_num, 64, id);
	}
}

// The domain of a file: another context finds it, opens the target and has an SRQ for it.
TEST_F(Xrc, SharedByAFile)
{
	char name[] = "/tmp/xrcd-XXXXXX";
	int fd = mkstemp(name);
	ASSERT_GE(fd, 0);
	unlink(name);
	Context context(check(ibv_open_device(device_b().get()->device), "open_device"));
	Xrcd mine(open_xrcd(device_b().get(), fd)), theirs(open_xrcd(context.get(), fd));
	QpConfig target = config_of(IBV_QPT_XRC_RECV);
	ibv_qp_open_attr attr = {};

	target.xrcd = mine.get();
	auto pair = std::make_unique<Pair>(config_of(IBV_QPT_XRC_SEND), target, Path());
	Memory local(pair->a.pd.get(), 64);
	Receiver r(context.get(), theirs.get());
	uint32_t qpn = pair->b.qp->qp_num;

	attr.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	attr.qp_num = qpn;
	attr.xrcd = theirs.get();
	attr.qp_type = IBV_QPT_XRC_RECV;
	Qp opened(ibv_open_qp(context.get(), &attr));
	ASSERT_TRUE(opened) << strerror(errno);
	EXPECT_EQ(opened->qp_num, qpn);

	for (uint64_t id = 1; id <= 4; id++) {
		if (id == 3) // whoever made it may go
			pair->b.qp.reset();
		r.recv(id);
		memset(local.data(), id, 64);
		pair->a.post(SendWr(IBV_WR_SEND, id, {local.sge(0, 64)}).srqn(r.number()));
		expect_wc(pair->a.wait_send(), id);
		r.expect_arrived(id, qpn, 64, id);
	}
	EXPECT_EQ(ibv_close_xrcd(theirs.get()), EBUSY);

	ibv_qp_attr qp_attr = {};
	ibv_qp_init_attr init = {};

	ASSERT_EQ(ibv_query_qp(opened.get(), &qp_attr, IBV_QP_STATE, &init), 0);
	EXPECT_EQ(qp_attr.qp_state, IBV_QPS_RTS);
	attr.qp_num ^= 0x800000;
	errno = 0;
	EXPECT_FALSE(Qp(ibv_open_qp(context.get(), &attr)));
	EXPECT_EQ(errno, EINVAL);
	close(fd);
}

// The SRQ's CQ raises completion events, and the SRQ its own.
TEST_F(Xrc, Events)
{
	XrcScene s({}, true);
	Device &dev = s.pair.b.dev;
	ibv_srq_attr attr = {0, 0, 1};
	ibv_cq *cq;
	void *context;

	dev.drain_events();
	s.pair.b.recv(1, {s.remote.sge(0, kRoom)});
	ASSERT_EQ(ibv_modify_srq(s.pair.b.srq, &attr, IBV_SRQ_LIMIT), 0);
	ASSERT_EQ(ibv_req_notify_cq(s.pair.b.recv_cq.get(), 0), 0);
	EXPECT_NE(ibv_get_cq_event(s.pair.b.channel.get(), &cq, &context), 0);
	s.pair.a.post(s.message(100, 2));
	expect_wc(s.pair.a.wait_send(), 2);
	expect_wc(s.pair.b.wait_recv(), 1);
	EXPECT_TRUE(dev.wait_event(IBV_EVENT_SRQ_LIMIT_REACHED));
	while (ibv_get_cq_event(s.pair.b.channel.get(), &cq, &context))
		ASSERT_EQ(errno, EAGAIN);
	EXPECT_EQ(cq, s.pair.b.recv_cq.get());
	ibv_ack_cq_events(cq, 1);
}

// Solicited is the sender's word, as for RC.
TEST_F(Xrc, SolicitedOnly)
{
	XrcScene s({}, true);
	ibv_cq *cq;
	void *context;

	for (int flags : {0, int{IBV_SEND_SOLICITED}, 0}) {
		s.pair.b.recv(1, {s.remote.sge(0, kRoom)});
		ASSERT_EQ(ibv_req_notify_cq(s.pair.b.recv_cq.get(), 1), 0);
		SendWr wr = s.message(3000, 2);
		wr.wr.send_flags |= flags;
		s.pair.a.post(wr);
		expect_wc(s.pair.a.wait_send(), 2);
		expect_wc(s.pair.b.wait_recv(), 1);
		if (!flags) {
			EXPECT_NE(ibv_get_cq_event(s.pair.b.channel.get(), &cq, &context), 0);
			continue;
		}
		while (ibv_get_cq_event(s.pair.b.channel.get(), &cq, &context))
			ASSERT_EQ(errno, EAGAIN);
		ibv_ack_cq_events(cq, 1);
	}
}

TEST_F(Xrc, Inline)
{
	for (bool wr_api : {false, true}) {
		SCOPED_TRACE(wr_api);
		QpConfig config = config_of(IBV_QPT_XRC_SEND, wr_api);
		config.inline_data = 200;
		Pair pair(config, config_of(IBV_QPT_XRC_RECV), Path{});
		Memory remote(pair.b.pd.get(), 4096);
		uint8_t data[200];

		for (uint32_t length : {0u, 1u, 63u, 64u, 200u}) {
			const ibv_sge sge = {reinterpret_cast<uintptr_t>(data), length, 0};

			memset(remote.data(), 0x22, 4096);
			memset(data, length, sizeof(data));
			pair.b.recv(length, {remote.sge(0, 1000)});
			pair.a.post(
				SendWr(IBV_WR_SEND, 1, {sge}, IBV_SEND_SIGNALED | IBV_SEND_INLINE));
			pair.a.post(SendWr(IBV_WR_RDMA_WRITE, 2, {sge},
					   IBV_SEND_SIGNALED | IBV_SEND_INLINE)
					    .remote(remote.addr(2000), remote.rkey()));
			memset(data, 0x77, sizeof(data)); // it was taken
			expect_wc(pair.a.wait_send(), 1);
			expect_wc(pair.a.wait_send(), 2);
			expect_wc(pair.b.wait_recv(), length);
			for (uint32_t i = 0; i < 1000; i++) {
				const uint8_t want = i < length ? length : 0x22;

				ASSERT_EQ(remote.data()[i], want) << i;
				ASSERT_EQ(remote.data()[2000 + i], want) << i;
			}
		}
	}
}

// A fenced WR starts after the READs before it have ended.
TEST_F(Xrc, Fence)
{
	constexpr uint32_t kLen = 20000;
	Pair pair(config_of(IBV_QPT_XRC_SEND), config_of(IBV_QPT_XRC_RECV), Path{});
	Memory local(pair.a.pd.get(), kLen), remote(pair.b.pd.get(), 2 * kLen);
	Rng rng(14);

	for (int i = 0; i < 100 && !testing::Test::HasFailure(); i++) {
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

// An initiator binds windows of type 1 to its own memory, for whoever has the PD.
TEST_F(Xrc, Binds)
{
	Pair pair(config_of(IBV_QPT_XRC_SEND), config_of(IBV_QPT_XRC_RECV), Path{});
	Memory memory(pair.a.pd.get(), 4096, kAllAccess | IBV_ACCESS_MW_BIND);
	Mw mw(check(ibv_alloc_mw(pair.a.pd.get(), IBV_MW_TYPE_1), "alloc_mw"));
	const uint32_t before = mw->rkey;
	ibv_mw_bind bind = {};

	bind.wr_id = 7;
	bind.send_flags = IBV_SEND_SIGNALED;
	bind.bind_info = {memory.mr(), memory.addr(), 64, IBV_ACCESS_REMOTE_READ};
	ASSERT_EQ(ibv_bind_mw(pair.a.qp.get(), mw.get(), &bind), 0);
	expect_wc(pair.a.wait_send(), 7);
	EXPECT_NE(mw->rkey, before);

	// and a key of its own that is invalidated is none any more
	pair.a.post(SendWr(IBV_WR_LOCAL_INV, 8).invalidate(0x12345678));
	expect_wc(pair.a.wait_send(), 8, IBV_WC_MW_BIND_ERR);
	EXPECT_EQ(pair.a.state(), IBV_QPS_ERR);
}

// ---- errors ----

using XrcError = XrcTest;

TEST_F(XrcError, EmptySrq)
{
	XrcScene s;

	s.pair.a.post(s.message(3000, 5));
	s.pair.b.expect_quiet();
	s.pair.b.recv(8, {s.remote.sge(0, kRoom)});
	expect_wc(s.pair.a.wait_send(), 5);
	expect_wc(s.pair.b.wait_recv(), 8);
	EXPECT_EQ(s.remote.data()[2999], 5);
}

TEST_F(XrcError, NoSuchSrq)
{
	XrcScene s;

	s.pair.b.recv(1, {s.remote.sge(0, kRoom)});
	s.expect_remote_error(s.message(100, 5).srqn(srq_number(s.pair.b.srq) ^ 0x800000),
			      IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	s.pair.b.expect_quiet(); // the receive is still the SRQ's
	s.pair.reconnect({});
	s.pair.a.post(s.message(100, 6));
	expect_wc(s.pair.a.wait_send(), 6);
	expect_wc(s.pair.b.wait_recv(), 1);
}

TEST_F(XrcError, SrqOfAnotherDomain)
{
	for (ibv_wr_opcode op :
	     {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
		SCOPED_TRACE(op);
		XrcScene s;
		Xrcd xrcd(open_xrcd(s.pair.b.dev.get()));
		Receiver r(s.pair.b.dev.get(), xrcd.get());

		r.recv(1);
		SendWr wr(op, 1, {s.local.sge(0, 8)});
		if (op != IBV_WR_SEND)
			wr.remote(r.memory.addr(), r.memory.rkey());
		s.expect_remote_error(wr.srqn(r.number()), IBV_WC_REM_INV_REQ_ERR,
				      IBV_EVENT_QP_REQ_ERR);
		r.expect_quiet();
		EXPECT_EQ(r.memory.data()[0], 0x22);
	}
}

// Keys are of the PD of the SRQ that the request names.
TEST_F(XrcError, KeyOfAnotherSrqsPd)
{
	for (ibv_wr_opcode op :
	     {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
		SCOPED_TRACE(op);
		XrcScene s;
		Receiver r(s.pair.b.dev.get(), s.pair.b.xrcd);
		SendWr wr(op, 1, {s.local.sge(0, 8)});

		wr.remote(r.memory.addr(), r.memory.rkey());
		s.pair.a.post(wr.srqn(r.number())); // with its own it is good
		expect_wc(s.pair.a.wait_send(), 1);
		s.expect_remote_error(wr.srqn(srq_number(s.pair.b.srq)), IBV_WC_REM_ACCESS_ERR,
				      IBV_EVENT_QP_ACCESS_ERR);
	}
}

TEST_F(XrcError, ReceiveTooShort)
{
	XrcScene s;

	s.pair.b.recv(3, {s.remote.sge(0, 99)});
	s.pair.a.post(s.message(100, 5));
	expect_wc(s.pair.a.wait_send(), 5, IBV_WC_REM_INV_REQ_ERR);
	ibv_wc wc = s.pair.b.wait_recv();
	expect_wc(wc, 3, IBV_WC_LOC_LEN_ERR);
	EXPECT_EQ(wc.qp_num, s.pair.b.qp->qp_num);
	EXPECT_EQ(s.pair.b.state(), IBV_QPS_ERR);
}

// A message that begins, takes a receive, and never ends
void begin_message(XrcScene &s)
{
	SendWr wr = s.message(kRoom, 9);
	ibv_srq_attr attr = {0, 0, 1};

	s.pair.b.dev.drain_events();
	s.pair.b.recv(7, {s.remote.sge(0, kRoom)});
	ASSERT_EQ(ibv_modify_srq(s.pair.b.srq, &attr, IBV_SRQ_LIMIT), 0);
	wr.sges[0].addr += 4096; // its end is beyond the region
	s.pair.a.post(wr);
	expect_wc(s.pair.a.wait_send(), 9, IBV_WC_LOC_PROT_ERR);
	ASSERT_TRUE(s.pair.b.dev.wait_event(IBV_EVENT_SRQ_LIMIT_REACHED));
}

TEST_F(XrcError, TakenIsFlushed)
{
	XrcScene s;

	begin_message(s);
	s.pair.b.expect_quiet();
	ASSERT_EQ(s.pair.b.to(IBV_QPS_ERR), 0);
	ibv_wc wc = s.pair.b.wait_recv();
	expect_wc(wc, 7, IBV_WC_WR_FLUSH_ERR);
	EXPECT_EQ(wc.qp_num, s.pair.b.qp->qp_num);
	s.pair.b.expect_quiet();
}

// The SRQ goes with a message under way: what the target took goes with it.
TEST_F(XrcError, SrqDestroyedUnderAMessage)
{
	XrcScene s;

	begin_message(s);
	s.pair.b.own_srq.reset();
	s.pair.b.srq = nullptr;
	ASSERT_EQ(s.pair.b.to(IBV_QPS_ERR), 0);
	s.pair.b.expect_quiet();
}

TEST_F(XrcError, SrqDestroyedUnderTraffic)
{
	XrcScene s;
	uint64_t id = 0;

	for (int round = 0; round < 20; round++) {
		auto r = std::make_unique<Receiver>(s.pair.b.dev.get(), s.pair.b.xrcd);

		for (int i = 0; i < 8; i++)
			r->recv(id + i);
		for (int i = 0; i < 8; i++)
			s.pair.a.post(s.message(5000, 1).srqn(r->number()));
		r->srq.reset(); // its number means nothing from here on
		for (int i = 0; i < 8; i++) {
			ibv_wc wc = s.pair.a.wait_send();

			EXPECT_TRUE(wc.status == IBV_WC_SUCCESS ||
				    wc.status == IBV_WC_REM_INV_REQ_ERR ||
				    wc.status == IBV_WC_WR_FLUSH_ERR)
				<< wc;
		}
		s.pair.reconnect({});
	}
}

// ---- objects ----

using XrcObject = XrcTest;

TEST_F(XrcObject, NothingIsPostedToATarget)
{
	XrcScene s;
	ibv_send_wr send = {}, *bad_send;
	ibv_recv_wr recv = {}, *bad_recv;

	EXPECT_EQ(ibv_post_send(s.pair.b.qp.get(), &send, &bad_send), EINVAL);
	EXPECT_EQ(ibv_post_recv(s.pair.b.qp.get(), &recv, &bad_recv), EINVAL);
	EXPECT_EQ(ibv_post_recv(s.pair.a.qp.get(), &recv, &bad_recv), EINVAL);
}

TEST_F(XrcObject, DestroyedInTheWrongOrder)
{
	XrcScene s;

	EXPECT_EQ(ibv_close_xrcd(s.pair.b.xrcd), EBUSY);
	EXPECT_EQ(ibv_destroy_cq(s.pair.b.recv_cq.get()), EBUSY);
	EXPECT_EQ(ibv_dealloc_pd(s.pair.b.pd.get()), EBUSY);
	s.pair.b.recv(1, {s.remote.sge(0, 64)}); // all still there
	s.pair.a.post(s.message(64, 2));
	expect_wc(s.pair.a.wait_send(), 2);
	expect_wc(s.pair.b.wait_recv(), 1);
	s.pair.b.qp.reset();
	EXPECT_EQ(ibv_close_xrcd(s.pair.b.xrcd), EBUSY); // the SRQ
	s.pair.b.own_srq.reset();
	EXPECT_EQ(ibv_close_xrcd(s.pair.b.own_xrcd.release()), 0);
}

TEST_F(XrcObject, QueryOfATarget)
{
	XrcScene s;
	ibv_qp_init_attr init = {};
	ibv_qp_attr attr = s.pair.b.query(IBV_QP_CAP | IBV_QP_STATE, &init);

	EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
	EXPECT_EQ(attr.cap.max_send_wr, 0u);
	EXPECT_EQ(attr.cap.max_recv_wr, 0u);
	EXPECT_EQ(init.qp_type, IBV_QPT_XRC_RECV);
	attr = s.pair.a.query(IBV_QP_CAP, &init);
	EXPECT_GE(attr.cap.max_send_wr, 64u);
	EXPECT_EQ(attr.cap.max_recv_wr, 0u);
}

// An XRC SRQ is no ordinary one.
TEST_F(XrcObject, WrongCombinations)
{
	XrcScene s;
	ibv_qp_init_attr init = {};

	init.send_cq = init.recv_cq = s.pair.b.recv_cq.get();
	init.cap = {4, 4, 1, 1, 0};
	init.qp_type = IBV_QPT_RC;
	init.srq = s.pair.b.srq;
	errno = 0;
	EXPECT_FALSE(Qp(ibv_create_qp(s.pair.b.pd.get(), &init)));
	EXPECT_EQ(errno, EINVAL);
}

// Not one of XRC's operations, and not made one by a program that does not ask.
TEST_F(Xrc, NoAtomicWrite)
{
	QpConfig config = config_of(IBV_QPT_XRC_SEND, true);

	config.more_ops = IBV_QP_EX_WITH_ATOMIC_WRITE;
	EXPECT_THROW(Endpoint(device_a(), config), std::system_error);
	EXPECT_EQ(errno, EOPNOTSUPP);

	for (bool local_peer : {true, false}) {
		Pair pair(config_of(IBV_QPT_XRC_SEND, true), config_of(IBV_QPT_XRC_RECV), Path{});
		Memory remote(pair.b.pd.get(), 64);

		memset(remote.data(), 0x22, 64);
		if (!local_peer)
			pair.b.to(IBV_QPS_ERR);
		pair.a.post(SendWr(IBV_WR_ATOMIC_WRITE, 1)
				    .remote(remote.addr(), remote.rkey())
				    .atomic(0, 5));
		expect_wc(pair.a.wait_send(), 1, IBV_WC_LOC_QP_OP_ERR);
		EXPECT_EQ(pair.a.state(), IBV_QPS_ERR);
		for (size_t i = 0; i < 64; i++)
			ASSERT_EQ(remote.data()[i], 0x22);
	}
}

} // namespace
} // namespace verbs
