// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Local and remote invalidation of memory windows; memory operations among others; races.
#include <atomic>
#include <functional>
#include <thread>

#include "background.hpp"
#include "mw_scene.hpp"
#include "transfer.hpp"

namespace verbs {
namespace {

class MwOrder : public MwTest {};

struct InvCase {
	const char *name;
	std::function<uint32_t(MwScene &)> key;
};

const InvCase kInvCases[] = {
	{"Unknown", [](MwScene &s) { return s.remote.rkey() ^ 0x5a5a5a00; }},
	{"Zero", [](MwScene &) { return 0u; }},
	{"Region", [](MwScene &s) { return s.remote.rkey(); }},
	{"Type1",
	 [](MwScene &s) {
		 s.bind_ok(s.type(1));
		 return s.type(1)->rkey;
	 }},
	{"NotBound", [](MwScene &s) { return s.type(2)->rkey; }},
	{"OtherLowBits",
	 [](MwScene &s) {
		 s.bind_ok(s.type(2));
		 return s.type(2)->rkey ^ 1;
	 }},
	{"InvalidatedBefore",
	 [](MwScene &s) {
		 s.bind_ok(s.type(2));
		 EXPECT_EQ(s.local_inv(s.pair.b, s.type(2)->rkey), IBV_WC_SUCCESS);
		 return s.type(2)->rkey;
	 }},
	{"OtherQp",
	 [](MwScene &s) {
		 ibv_qp_init_attr init = {};
		 static Path path;
		 Endpoint &b = s.pair.b;

		 // bound by one QP of the PD, invalidated by another: b goes on with a new one
		 s.bind_ok(s.type(2));
		 init.send_cq = b.send_cq.get();
		 init.recv_cq = b.recv_cq.get();
		 init.cap = {64, 64, 1, 1, 0};
		 init.qp_type = IBV_QPT_RC;
		 b.qp.reset(check(ibv_create_qp(b.pd.get(), &init), "create_qp"));
		 s.pair.reconnect(path);
		 return s.type(2)->rkey;
	 }},
};

class MwInvalidate : public testing::TestWithParam<InvCase> {
	void SetUp() override
	{
		if (!device_b().has_mw_2b())
			GTEST_SKIP() << "no memory windows of type 2B";
	}
};

TEST_P(MwInvalidate, LocalFails)
{
	MwScene s;
	uint32_t key = GetParam().key(s);

	EXPECT_EQ(s.local_inv(s.pair.b, key), IBV_WC_MW_BIND_ERR);
	EXPECT_EQ(s.pair.b.state(), IBV_QPS_ERR);
}

// The message has arrived, the receive fails, and both ends know.
TEST_P(MwInvalidate, RemoteFails)
{
	MwScene s;
	uint32_t key = GetParam().key(s);

	s.pair.b.recv(100, {s.remote.sge(0, 64)});
	s.pair.b.recv(101, {s.remote.sge(0, 64)});
	s.pair.a.post(SendWr(IBV_WR_SEND_WITH_INV, 1, {s.local.sge(0, 64)}).invalidate(key));
	expect_wc(s.pair.a.wait_send(), 1, IBV_WC_REM_OP_ERR);
	expect_wc(s.pair.b.wait_recv(), 100, IBV_WC_MW_BIND_ERR);
	expect_wc(s.pair.b.wait_recv(), 101, IBV_WC_WR_FLUSH_ERR);
	EXPECT_EQ(s.pair.a.state(), IBV_QPS_ERR);
	EXPECT_EQ(s.pair.b.state(), IBV_QPS_ERR);
}
INSTANTIATE_TEST_SUITE_P(Case, MwInvalidate, testing::ValuesIn(kInvCases),
			 [](auto &info) { return std::string(info.param.name); });

// A message of several packets through the key that it invalidates last.
TEST_F(MwOrder, SendWithInvalidate)
{
	MwScene s;
	ibv_mw *mw = s.type(2);

	for (uint32_t length : {0u, 8u, 5000u}) {
		s.bind_ok(mw);
		s.pair.b.recv(7, {s.remote.sge(0, 8192)});
		s.pair.a.post(SendWr(IBV_WR_RDMA_WRITE, 1, {s.local.sge(0, 64)})
				      .remote(s.region.addr(kStart), mw->rkey));
		s.pair.a.post(SendWr(IBV_WR_SEND_WITH_INV, 2, {s.local.sge(0, length)})
				      .invalidate(mw->rkey));
		expect_wc(s.pair.a.wait_send(), 1);
		expect_wc(s.pair.a.wait_send(), 2);
		ibv_wc wc = s.pair.b.wait_recv();

		expect_wc(wc, 7);
		EXPECT_EQ(wc.byte_len, length);
		EXPECT_EQ(wc.wc_flags & IBV_WC_WITH_INV, IBV_WC_WITH_INV);
		EXPECT_EQ(wc.invalidated_rkey, mw->rkey);
	}
	s.region.deregister();
	s.expect_shut(mw->rkey);
}

// ---- order ----

// Memory operations among others: done in their turn, once whatever is lost, completed in order.
// A window that is bound while it is bound, or used while it is not, would break the QP.
TEST_F(MwOrder, OrderAmongOthers)
{
	QpConfig config;
	Rng rng(5);

	config.send_wr = 256;
	MwScene s(config);
	Endpoint &b = s.pair.b;
	ibv_mw *mw = s.type(2);

	for (int round = 0; round < 40 && !testing::Test::HasFailure(); round++) {
		std::vector<uint64_t> signalled;
		uint64_t id = 0;
		auto flags = [&](int more = 0) {
			bool signal = pick(rng, 0, 1);

			id++;
			if (signal)
				signalled.push_back(id);
			return more | (signal ? IBV_SEND_SIGNALED : 0);
		};
		auto traffic = [&] {
			for (uint64_t n = pick(rng, 0, 3); n; n--) {
				bool read = pick(rng, 0, 1);
				int f = flags(pick(rng, 0, 1) ? IBV_SEND_FENCE : 0);

				b.post(SendWr(read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, id,
					      {s.remote.sge(0, pick(rng, 0, 8000))}, f)
					       .remote(s.local.addr(), s.local.rkey()));
			}
		};

		for (int i = 0; i < 16; i++) {
			int f = flags(pick(rng, 0, 1) ? IBV_SEND_FENCE : 0);
			uint32_t rkey = ibv_inc_rkey(mw->rkey);

			b.post(SendWr(IBV_WR_BIND_MW, id, {}, f)
				       .bind(mw, rkey, s.region.mr(), s.region.addr(kStart),
					     kLength, kWindowAll));
			mw->rkey = rkey;
			traffic();
			f = flags(pick(rng, 0, 1) ? IBV_SEND_FENCE : 0);
			b.post(SendWr(IBV_WR_LOCAL_INV, id, {}, f).invalidate(mw->rkey));
			traffic();
		}
		b.post(SendWr(IBV_WR_RDMA_WRITE, ++id).remote(0, 0));
		signalled.push_back(id);
		for (uint64_t want : signalled) {
			ibv_wc wc = b.wait_send();

			ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << wc << " round " << round;
			ASSERT_EQ(wc.wr_id, want);
		}
		b.expect_quiet();
	}
}

// More unsignalled memory operations in a row than the device does at once.
TEST_F(MwOrder, ManyInARow)
{
	QpConfig config;

	config.send_wr = 512;
	MwScene s(config);
	ibv_mw *mw = s.type(2);

	for (int i = 0; i < 250; i++) {
		uint32_t rkey = ibv_inc_rkey(mw->rkey);

		s.pair.b.post(SendWr(IBV_WR_BIND_MW, i, {}, 0)
				      .bind(mw, rkey, s.region.mr(), s.region.addr(kStart), kLength,
					    kWindowAll));
		mw->rkey = rkey;
		s.pair.b.post(SendWr(IBV_WR_LOCAL_INV, i, {}, 0).invalidate(rkey));
	}
	s.bind_ok(mw);
	EXPECT_EQ(s.write(s.region.addr(kStart), mw->rkey), IBV_WC_SUCCESS);
}

// A bind behind a failing WR is flushed and opens nothing; one before it stands.
TEST_F(MwOrder, Flushed)
{
	MwScene s;
	ibv_mw *mw = s.type(2);
	uint32_t rkey = ibv_inc_rkey(mw->rkey);

	s.pair.b.post(SendWr(IBV_WR_RDMA_WRITE, 1, {{s.remote.addr(), 8, 0}})
			      .remote(s.local.addr(), s.local.rkey()));
	s.pair.b.post(SendWr(IBV_WR_BIND_MW, 2)
			      .bind(mw, rkey, s.region.mr(), s.region.addr(), 64, kWindowAll));
	expect_wc(s.pair.b.wait_send(), 1, IBV_WC_LOC_PROT_ERR);
	expect_wc(s.pair.b.wait_send(), 2, IBV_WC_WR_FLUSH_ERR);
	s.pair.reconnect(Path());
	EXPECT_EQ(s.write(s.region.addr(), rkey), IBV_WC_REM_ACCESS_ERR);
}

// ---- races ----

// However a window goes while a peer writes through it: each WRITE succeeds or is refused, and once
// the window is gone nothing changes the memory any more.
void race(const char *name, const std::function<void(MwScene &, ibv_mw *)> &shut)
{
	uint64_t good = 0, refused = 0;

	for (int round = 0; round < 30; round++) {
		MwScene s;
		ibv_mw *mw = s.type(2);
		std::atomic<bool> failed{false}, begun{false};

		s.bind_ok(mw);
		Thread writer([&, rkey = mw->rkey, addr = s.region.addr(kStart)] {
			for (uint64_t id = 0; !failed; id++) {
				s.pair.a.post(
					SendWr(IBV_WR_RDMA_WRITE, id, {s.local.sge(0, kLength)})
						.remote(addr, rkey));
				ibv_wc wc = s.pair.a.wait_send();

				if (wc.status == IBV_WC_SUCCESS) {
					good++;
				} else {
					EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR) << wc;
					refused++;
					failed = true;
				}
				begun = true;
			}
		});
		while (!begun)
			std::this_thread::yield();
		shut(s, mw);
		memset(s.region.data(), 0x77, kSize);
		writer.join();
		for (size_t i = 0; i < kSize; i++)
			ASSERT_EQ(s.region.data()[i], 0x77) << name << " byte " << i;
	}
	printf("# %s: %lu writes, %lu refused\n", name, good, refused);
	EXPECT_EQ(refused, 30u);
}

TEST_F(MwOrder, RaceLocalInvalidate)
{
	race("local invalidate", [](MwScene &s, ibv_mw *mw) {
		s.pair.b.post(SendWr(IBV_WR_LOCAL_INV, 1).invalidate(mw->rkey));
		ibv_wc wc = s.pair.b.wait_send();

		// flushed when a WRITE was refused before this completed: then it was done
		EXPECT_TRUE(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR) << wc;
	});
}

TEST_F(MwOrder, RaceDealloc)
{
	race("dealloc", [](MwScene &s, ibv_mw *) { s.mws.clear(); });
}

} // namespace
} // namespace verbs
