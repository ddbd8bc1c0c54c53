// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests that must fail: the status at both ends as the IBTA has it, both queues flushed
 * behind the failure, the QPs in the state that follows, the asynchronous event, and no byte of
 * memory touched.
 */
#include <functional>

#include "scene.hpp"

namespace verbs {
namespace {

// Who notices, and what follows for the responder.
enum class Responder {
	Untouched, // no packet reached it, or it has nothing to complain of: stays in RTS
	AccessError, // QP_ACCESS_ERR event, then the error state
	RequestError, // QP_REQ_ERR event, then the error state
	RecvError, // a receive fails, then the error state
};

struct Case {
	const char *name;
	ibv_wc_status status; // at the requester
	Responder responder;
	std::function<SendWr(Scene &)> make;
	int remote_access = kQpAccess; // of the responder's QP
	uint32_t recv_length = 64; // of the responder's receives
	ibv_wc_status recv_status = IBV_WC_SUCCESS; // with RecvError
	bool executes = false; // at the responder, before the requester fails it
};

void PrintTo(const Case &c, std::ostream *out)
{
	*out << c.name;
}

constexpr uint64_t kTop = -uint64_t(kSize); // iova of a region that ends with the address space

const Case kCases[] = {
	{"WriteUnknownRkey", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) { return s.write().remote(s.remote.addr(), s.remote.rkey() ^ 0x5a5a5a00); }},
	{"WriteStaleRkeyVariant", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) { return s.write().remote(s.remote.addr(), s.remote.rkey() ^ 1); }},
	{"WriteImmUnknownRkey", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) {
		 return s.rdma(IBV_WR_RDMA_WRITE_WITH_IMM, 8).remote(s.remote.addr(), 0x5a5a5a00);
	 }},
	{"ReadUnknownRkey", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) { return s.read().remote(s.remote.addr(), s.remote.rkey() ^ 0x5a5a5a00); }},
	{"AtomicUnknownRkey", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) { return s.fetch_add().remote(s.remote.addr(), 0x5a5a5a00); }},

	{"WriteOtherPd", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) {
		 Memory &m = s.extra_b(kAllAccess, std::nullopt, s.other_pd_b.get());
		 return s.write().remote(m.addr(), m.rkey());
	 }},
	{"ReadOtherPd", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) {
		 Memory &m = s.extra_b(kAllAccess, std::nullopt, s.other_pd_b.get());
		 return s.read().remote(m.addr(), m.rkey());
	 }},
	{"AtomicOtherPd", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) {
		 Memory &m = s.extra_b(kAllAccess, std::nullopt, s.other_pd_b.get());
		 return s.cmp_swap().remote(m.addr(), m.rkey());
	 }},

	{"WriteBeforeTheRegion", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) { return s.write().remote(s.remote.addr() - 1, s.remote.rkey()); }},
	{"WriteOneByteTooFar", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) {
		 return s.write(4000).remote(s.remote.addr(kSize - 3999), s.remote.rkey());
	 }},
	{"WriteBehindTheRegion", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) { return s.write(1).remote(s.remote.addr(kSize), s.remote.rkey()); }},
	{"ReadOneByteTooFar", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) {
		 return s.read(4000).remote(s.remote.addr(kSize - 3999), s.remote.rkey());
	 }},
	{"AtomicBehindTheRegion", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) { return s.fetch_add().remote(s.remote.addr(kSize), s.remote.rkey()); }},

	{"WriteAcrossTheTopOfTheAddressSpace", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) {
		 Memory &m = s.extra_b(kAllAccess, kTop);
		 return s.write(16).remote(-8ull, m.rkey());
	 }},
	{"ReadAcrossTheTopOfTheAddressSpace", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) {
		 Memory &m = s.extra_b(kAllAccess, kTop);
		 return s.read(8000).remote(-4000ull, m.rkey());
	 }},
	{"WriteFarAboveARegionAtTheTop", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) {
		 Memory &m = s.extra_b(kAllAccess, kTop);
		 return s.write(16).remote(0,
					   m.rkey()); // where the region would go on after a wrap
	 }},

	{"WriteWithoutRemoteWrite", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) {
		 Memory &m = s.extra_b(kAllAccess & ~IBV_ACCESS_REMOTE_WRITE);
		 return s.write().remote(m.addr(), m.rkey());
	 }},
	{"ReadWithoutRemoteRead", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) {
		 Memory &m = s.extra_b(kAllAccess & ~IBV_ACCESS_REMOTE_READ);
		 return s.read().remote(m.addr(), m.rkey());
	 }},
	{"AtomicWithoutRemoteAtomic", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) {
		 Memory &m = s.extra_b(kAllAccess & ~IBV_ACCESS_REMOTE_ATOMIC);
		 return s.fetch_add().remote(m.addr(), m.rkey());
	 }},
	{"WriteToLocalOnlyRegion", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) {
		 Memory &m = s.extra_b(IBV_ACCESS_LOCAL_WRITE);
		 return s.write().remote(m.addr(), m.rkey());
	 }},
	{"WriteToDeregisteredRegion", IBV_WC_REM_ACCESS_ERR, Responder::AccessError,
	 [](Scene &s) {
		 Memory &m = s.extra_b(kAllAccess);
		 SendWr wr = s.write().remote(m.addr(), m.rkey());
		 m.deregister();
		 return wr;
	 }},

	{"WriteNotEnabledOnTheQp", IBV_WC_REM_INV_REQ_ERR, Responder::RequestError,
	 [](Scene &s) { return s.write(); }, kQpAccess & ~IBV_ACCESS_REMOTE_WRITE},
	{"ReadNotEnabledOnTheQp", IBV_WC_REM_INV_REQ_ERR, Responder::RequestError,
	 [](Scene &s) { return s.read(); }, kQpAccess & ~IBV_ACCESS_REMOTE_READ},
	{"AtomicNotEnabledOnTheQp", IBV_WC_REM_INV_REQ_ERR, Responder::RequestError,
	 [](Scene &s) { return s.fetch_add(); }, kQpAccess & ~IBV_ACCESS_REMOTE_ATOMIC},

	{"UnalignedFetchAdd", IBV_WC_REM_INV_REQ_ERR, Responder::RequestError,
	 [](Scene &s) { return s.fetch_add().remote(s.remote.addr(4), s.remote.rkey()); }},
	{"UnalignedCmpSwap", IBV_WC_REM_INV_REQ_ERR, Responder::RequestError,
	 [](Scene &s) { return s.cmp_swap().remote(s.remote.addr(1), s.remote.rkey()); }},

	{"SendLongerThanTheReceive", IBV_WC_REM_INV_REQ_ERR, Responder::RecvError,
	 [](Scene &s) { return s.send(65); }, kQpAccess, 64, IBV_WC_LOC_LEN_ERR},
	{"SendOfManyPacketsLongerThanTheReceive", IBV_WC_REM_INV_REQ_ERR, Responder::RecvError,
	 [](Scene &s) { return s.send(5000); }, kQpAccess, 3000, IBV_WC_LOC_LEN_ERR},
	{"SendToNoReceiveMemory", IBV_WC_REM_INV_REQ_ERR, Responder::RecvError,
	 [](Scene &s) { return s.send(1); }, kQpAccess, 0, IBV_WC_LOC_LEN_ERR},

	{"SendFromUnknownLkey", IBV_WC_LOC_PROT_ERR, Responder::Untouched,
	 [](Scene &s) {
		 SendWr wr = s.send(8);
		 wr.sges[0].lkey ^= 0x5a5a5a00;
		 return wr;
	 }},
	{"WriteFromUnknownLkey", IBV_WC_LOC_PROT_ERR, Responder::Untouched,
	 [](Scene &s) {
		 SendWr wr = s.write();
		 wr.sges[0].lkey ^= 1;
		 return wr;
	 }},
	{"SendFromOtherPd", IBV_WC_LOC_PROT_ERR, Responder::Untouched,
	 [](Scene &s) {
		 Memory &m = s.extra_a(kAllAccess, std::nullopt, s.other_pd_a.get());
		 return SendWr(IBV_WR_SEND, 1, {m.sge(0, 8)});
	 }},
	{"SendFromBeyondTheRegion", IBV_WC_LOC_PROT_ERR, Responder::Untouched,
	 [](Scene &s) {
		 SendWr wr = s.send(8);
		 wr.sges[0].addr = s.local.addr(kSize - 7);
		 return wr;
	 }},
	{"SendFromAcrossTheTop", IBV_WC_LOC_PROT_ERR, Responder::Untouched,
	 [](Scene &s) {
		 Memory &m = s.extra_a(kAllAccess, kTop);
		 return SendWr(IBV_WR_SEND, 1, {{-4ull, 8, m.lkey()}});
	 }},
	{"AtomicResultToUnknownLkey", IBV_WC_LOC_PROT_ERR, Responder::Untouched,
	 [](Scene &s) {
		 SendWr wr = s.fetch_add();
		 wr.sges[0].lkey ^= 0x5a5a5a00;
		 return wr;
	 },
	 // the sink's key may be checked when the answer comes (IBTA 9.9.2.3): 8 bytes may change
	 kQpAccess, 64, IBV_WC_SUCCESS, true},
	{"ReadIntoUnknownLkey", IBV_WC_LOC_PROT_ERR, Responder::Untouched,
	 [](Scene &s) {
		 SendWr wr = s.read();
		 wr.sges[0].lkey ^= 0x5a5a5a00;
		 return wr;
	 }},
	{"ReadIntoReadOnlyRegion", IBV_WC_LOC_PROT_ERR, Responder::Untouched,
	 [](Scene &s) {
		 Memory &m = s.extra_a(0);
		 return SendWr(IBV_WR_RDMA_READ, 1, {m.sge(0, 8)})
			 .remote(s.remote.addr(), s.remote.rkey());
	 }},
};

class Error : public testing::TestWithParam<Case> {};

constexpr int kRecvs = 3;

void post_recvs(Scene &s, uint32_t length)
{
	for (int i = 0; i < kRecvs; i++)
		s.pair.b.recv(100 + i, length ? std::vector<ibv_sge>{s.remote.sge(8192, length)} :
						std::vector<ibv_sge>{});
}

void expect_requester_flushed(Endpoint &a, uint64_t from, uint64_t to)
{
	for (uint64_t id = from; id <= to; id++)
		expect_wc(a.wait_send(), id, IBV_WC_WR_FLUSH_ERR);
}

void expect_responder(Scene &s, const Case &c)
{
	Endpoint &b = s.pair.b;
	int first = 0;

	if (c.responder == Responder::Untouched) {
		EXPECT_EQ(b.state(), IBV_QPS_RTS);
		EXPECT_EQ(b.to(IBV_QPS_ERR), 0);
	} else if (c.responder == Responder::RecvError) {
		expect_wc(b.wait_recv(), 100, c.recv_status);
		first = 1;
	} else {
		auto type = c.responder == Responder::AccessError ? IBV_EVENT_QP_ACCESS_ERR :
								    IBV_EVENT_QP_REQ_ERR;

		EXPECT_TRUE(b.dev.wait_event(type)) << ibv_event_type_str(type);
	}
	for (int i = first; i < kRecvs; i++)
		expect_wc(b.wait_recv(), 100 + i, IBV_WC_WR_FLUSH_ERR);
	EXPECT_EQ(b.state(), IBV_QPS_ERR);
}

// Memory that must not change: the requester's always, the responder's outside the receives.
void expect_untouched(Scene &s, bool receives, size_t from)
{
	for (size_t i = from; i < kSize; i++) {
		ASSERT_EQ(s.local.data()[i], kLocalByte) << "local byte " << i;
		if (!receives || i < 8192) {
			ASSERT_EQ(s.remote.data()[i], kRemoteByte) << "remote byte " << i;
		}
	}
}

TEST_P(Error, StatusFlushAndState)
{
	const Case &c = GetParam();
	Path path;

	path.access = c.remote_access; // both ends; a's does not matter
	Scene s(QpConfig{}, path);
	Endpoint &a = s.pair.a;

	s.pair.b.dev.drain_events();
	post_recvs(s, c.recv_length);
	SendWr bad = c.make(s);
	a.post(bad);
	for (uint64_t id = 2; id <= 4; id++) { // good ones, one of them unsignalled
		SendWr good = s.write();

		good.wr.wr_id = id;
		good.wr.send_flags = id == 3 ? 0 : IBV_SEND_SIGNALED;
		a.post(good);
	}
	expect_wc(a.wait_send(), 1, c.status);
	expect_requester_flushed(a, 2, 4);
	EXPECT_EQ(a.state(), IBV_QPS_ERR);
	expect_responder(s, c);
	a.expect_quiet();
	s.pair.b.expect_quiet();
	expect_untouched(s, c.responder == Responder::RecvError, c.executes ? 8 : 0);
	for (auto &m : s.extra)
		for (size_t i = 1; i < kSize; i++)
			ASSERT_EQ(m->data()[i], m->data()[0]) << "extra byte " << i;
}

// What went before the failing WR is not affected.
TEST_P(Error, WorkBeforeItSucceeds)
{
	const Case &c = GetParam();
	Path path;

	path.access = c.remote_access;
	Scene s(QpConfig{}, path);
	Endpoint &a = s.pair.a;

	s.pair.b.recv(99);
	post_recvs(s, c.recv_length);
	for (uint64_t id = 10; id < 14; id++)
		a.post(SendWr(IBV_WR_RDMA_WRITE, id).remote(0, 0));
	a.post(SendWr(IBV_WR_SEND, 14));
	SendWr bad = c.make(s);
	a.post(bad);
	bool write_disabled = !(c.remote_access & IBV_ACCESS_REMOTE_WRITE);
	if (write_disabled)
		GTEST_SKIP() << "WRITEs are what fails here";
	for (uint64_t id = 10; id <= 14; id++)
		expect_wc(a.wait_send(), id);
	expect_wc(a.wait_send(), 1, c.status);
	expect_wc(s.pair.b.wait_recv(), 99);
}

INSTANTIATE_TEST_SUITE_P(Case, Error, testing::ValuesIn(kCases),
			 [](auto &info) { return std::string(info.param.name); });

// The receive's memory is wrong: its owner sees a local error, the sender a remote one.
TEST(ErrorRecv, BadReceiveMemory)
{
	enum { Unknown, OtherPd, ReadOnly, TooFar };

	for (int kind : {Unknown, OtherPd, ReadOnly, TooFar}) {
		SCOPED_TRACE(kind);
		Scene s({}, {});
		ibv_sge sge = s.remote.sge(0, 64);

		if (kind == Unknown)
			sge.lkey ^= 0x5a5a5a00;
		else if (kind == OtherPd)
			sge = s.extra_b(kAllAccess, std::nullopt, s.other_pd_b.get()).sge(0, 64);
		else if (kind == ReadOnly)
			sge = s.extra_b(0).sge(0, 64);
		else
			sge.addr = s.remote.addr(kSize - 63);
		s.pair.b.recv(100, {sge});
		s.pair.b.recv(101, {s.remote.sge(0, 64)});
		s.pair.a.post(s.send(64));
		expect_wc(s.pair.a.wait_send(), 1, IBV_WC_REM_OP_ERR);
		expect_wc(s.pair.b.wait_recv(), 100, IBV_WC_LOC_PROT_ERR);
		expect_wc(s.pair.b.wait_recv(), 101, IBV_WC_WR_FLUSH_ERR);
		EXPECT_EQ(s.pair.a.state(), IBV_QPS_ERR);
		EXPECT_EQ(s.pair.b.state(), IBV_QPS_ERR);
	}
}

// More SGEs than the QP has is refused at once; the QP stays usable.
TEST(ErrorPost, TooManySges)
{
	Scene s({}, {});
	std::vector<ibv_sge> many(s.pair.a.cap.max_send_sge + 1, s.local.sge(0, 1));
	SendWr wr(IBV_WR_RDMA_WRITE, 1, many);

	EXPECT_NE(s.pair.a.try_post(wr.remote(s.remote.addr(), s.remote.rkey())), 0);
	many.assign(s.pair.b.cap.max_recv_sge + 1, s.remote.sge(0, 1));
	EXPECT_NE(s.pair.b.try_recv(1, many), 0);
	s.pair.a.post(s.write());
	expect_wc(s.pair.a.wait_send(), 1);
}

TEST(ErrorPost, UnknownOpcode)
{
	Scene s({}, {});

	for (int op : {12, 13, 14, 77})
		EXPECT_NE(s.pair.a.try_post(SendWr(ibv_wr_opcode(op), 1, {s.local.sge(0, 8)})), 0)
			<< op;
	EXPECT_NE(s.pair.a.try_post(SendWr(IBV_WR_TSO, 1, {s.local.sge(0, 8)})), 0);
	s.pair.a.post(s.write());
	expect_wc(s.pair.a.wait_send(), 1);
}

// Deregistration while READs of the region are under way: success or a remote access error each.
TEST(ErrorRace, DeregisterUnderReads)
{
	constexpr size_t kBig = 1 << 20;

	for (int round = 0; round < 20; round++) {
		Scene s({}, {});
		Memory sink(s.pair.a.pd.get(), kBig);
		Memory source(s.pair.b.pd.get(), kBig);
		bool failed = false;

		for (uint64_t id = 1; id <= 4; id++)
			s.pair.a.post(SendWr(IBV_WR_RDMA_READ, id, {sink.sge(0, kBig)})
					      .remote(source.addr(), source.rkey()));
		source.deregister();
		for (uint64_t id = 1; id <= 4; id++) {
			ibv_wc wc = s.pair.a.wait_send();

			EXPECT_EQ(wc.wr_id, id);
			if (failed) {
				EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR) << wc;
			} else if (wc.status != IBV_WC_SUCCESS) {
				EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR) << wc;
				failed = true;
			}
		}
	}
}

} // namespace
} // namespace verbs
