// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Memory windows of both types: what they open, for whom, and what cannot be bound.
#include <functional>

#include "mw_scene.hpp"
#include "transfer.hpp"

namespace verbs {
namespace {

class MwType : public testing::TestWithParam<int> {
	void SetUp() override
	{
		if (!device_b().has_mw_2b())
			GTEST_SKIP() << "no memory windows of type 2B";
	}
};
INSTANTIATE_TEST_SUITE_P(Type, MwType, testing::Values(1, 2));

// Every right opens its operation and no other; the region's own remote rights do not matter.
TEST_P(MwType, Rights)
{
	const struct {
		ibv_wr_opcode op;
		int right;
	} ops[] = {{IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE},
		   {IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ},
		   {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC}};

	for (int right : {0, IBV_ACCESS_REMOTE_WRITE + 0, IBV_ACCESS_REMOTE_READ + 0,
			  IBV_ACCESS_REMOTE_ATOMIC + 0, kWindowAll})
		for (const auto &op : ops) {
			MwScene s;
			ibv_mw *mw = s.type(GetParam());

			s.bind_ok(mw, right);
			EXPECT_EQ(s.use(op.op, s.region.addr(kStart), mw->rkey),
				  right & op.right ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR)
				<< "right " << right << " opcode " << op.op;
		}
}

// Exactly the window's bytes, to the byte.
TEST_P(MwType, Range)
{
	const struct {
		int64_t offset; // from the start of the window
		uint32_t length;
		bool good;
	} cases[] = {{0, kLength, true},	  {0, 1, true},
		     {kLength - 1, 1, true},	  {-1, 1, false},
		     {-1, kLength, false},	  {0, kLength + 1, false},
		     {kLength, 1, false},	  {kLength - 1, 2, false},
		     {-int64_t(kStart), 8, false}};

	for (const auto &c : cases)
		for (ibv_wr_opcode op : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
			MwScene s;
			ibv_mw *mw = s.type(GetParam());

			s.bind_ok(mw);
			EXPECT_EQ(s.use(op, s.region.addr(kStart) + c.offset, mw->rkey, c.length),
				  c.good ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR)
				<< c.offset << " " << c.length;
			for (size_t i = 0; i < kSize; i++) {
				bool written = c.good && op == IBV_WR_RDMA_WRITE &&
					       i >= kStart + c.offset &&
					       i < kStart + c.offset + c.length;

				ASSERT_EQ(s.region.data()[i], written ? kLocalByte : kRemoteByte)
					<< i;
			}
		}
}

// Data through windows of every alignment, by many packets.
TEST_P(MwType, Data)
{
	MwScene s;
	ibv_mw *mw = s.type(GetParam());
	Rng rng(3);

	for (int i = 0; i < 30; i++) {
		uint64_t start = pick(rng, 0, 8000), length = pick(rng, 1, 8000);
		std::vector<uint8_t> want(s.region.data(), s.region.data() + kSize);

		ASSERT_EQ(s.bind(s.pair.b, mw, s.region.mr(), s.region.addr(start), length,
				 kWindowAll),
			  IBV_WC_SUCCESS);
		fill_random(rng, s.local.data(), length);
		memcpy(&want[start], s.local.data(), length);
		ASSERT_EQ(s.write(s.region.addr(start), mw->rkey, length), IBV_WC_SUCCESS);
		ASSERT_EQ(memcmp(want.data(), s.region.data(), kSize), 0);

		memset(s.local.data(), 0, length);
		ASSERT_EQ(s.use(IBV_WR_RDMA_READ, s.region.addr(start), mw->rkey, length),
			  IBV_WC_SUCCESS);
		ASSERT_EQ(memcmp(s.local.data(), &want[start], length), 0);
		if (mw->type == IBV_MW_TYPE_2) {
			ASSERT_EQ(s.local_inv(s.pair.b, mw->rkey), IBV_WC_SUCCESS);
		}
	}
}

// A window that was never bound, and one whose key is not the bound one.
TEST_P(MwType, OtherKeys)
{
	for (uint32_t flip : {0x00000001u, 0x00000080u, 0x00000100u, 0x80000000u}) {
		MwScene s;
		ibv_mw *mw = s.type(GetParam());

		s.bind_ok(mw);
		EXPECT_EQ(s.write(s.region.addr(kStart), mw->rkey), IBV_WC_SUCCESS);
		s.expect_shut(mw->rkey ^ flip);
	}
	MwScene s;

	s.expect_shut(s.type(GetParam())->rkey);
}

TEST_P(MwType, NotForLocalUse)
{
	MwScene s;
	ibv_mw *mw = s.type(GetParam());

	s.bind_ok(mw);
	s.pair.b.post(SendWr(IBV_WR_RDMA_WRITE, 1, {{s.region.addr(kStart), 8, mw->rkey}})
			      .remote(s.local.addr(), s.local.rkey()));
	expect_wc(s.pair.b.wait_send(), 1, IBV_WC_LOC_PROT_ERR);
}

TEST_P(MwType, DeallocatedWhileBound)
{
	MwScene s;
	ibv_mw *mw = s.type(GetParam());
	uint32_t rkey;

	s.bind_ok(mw);
	rkey = mw->rkey;
	EXPECT_EQ(s.write(s.region.addr(kStart), rkey), IBV_WC_SUCCESS);
	s.mws.clear();
	s.region.deregister(); // no longer busy
	s.expect_shut(rkey);
}

// A region with windows is busy, for deregistration and re-registration, and works on.
TEST_P(MwType, BusyRegion)
{
	MwScene s;
	ibv_mw *mw = s.type(GetParam());

	s.bind_ok(mw);
	EXPECT_EQ(ibv_dereg_mr(s.region.mr()), EBUSY);
	errno = 0;
	EXPECT_EQ(ibv_rereg_mr(s.region.mr(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
			       IBV_ACCESS_LOCAL_WRITE),
		  IBV_REREG_MR_ERR_CMD);
	EXPECT_EQ(errno, EBUSY);
	EXPECT_EQ(s.write(s.region.addr(kStart), mw->rkey), IBV_WC_SUCCESS);
	if (mw->type == IBV_MW_TYPE_1)
		EXPECT_EQ(s.bind(s.pair.b, mw, nullptr, 0, 0, 0), IBV_WC_SUCCESS);
	else
		EXPECT_EQ(s.local_inv(s.pair.b, mw->rkey), IBV_WC_SUCCESS);
	s.region.deregister();
	s.expect_shut(mw->rkey);
}

// Type 1 windows are for all QPs of the PD, type 2 windows for the QP that bound them.
TEST_P(MwType, OtherQp)
{
	MwScene s;
	ibv_mw *mw = s.type(GetParam());
	QpConfig config;
	Pair other(config, Path());
	ibv_qp_init_attr init = {};
	Endpoint &b = s.pair.b;

	// a second QP of b's PD, connected to other.a
	init.send_cq = b.send_cq.get();
	init.recv_cq = b.recv_cq.get();
	init.cap = {8, 8, 1, 1, 0};
	init.qp_type = IBV_QPT_RC;
	Qp second(check(ibv_create_qp(b.pd.get(), &init), "create_qp"));
	Path path;

	other.b.qp.swap(second);
	other.reconnect(path);
	Memory source(other.a.pd.get(), 4096);

	s.bind_ok(mw);
	other.a.post(SendWr(IBV_WR_RDMA_WRITE, 1, {source.sge(0, 8)})
			     .remote(s.region.addr(kStart), mw->rkey));
	expect_wc(other.a.wait_send(), 1, GetParam() == 1 ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);

	// back to its own PD: nobody's window
	other.b.qp.swap(second);
	other.reconnect(path);
	other.a.post(SendWr(IBV_WR_RDMA_WRITE, 2, {source.sge(0, 8)})
			     .remote(s.region.addr(kStart), mw->rkey));
	expect_wc(other.a.wait_send(), 2, IBV_WC_REM_ACCESS_ERR);
}

// ---- what only one type does ----

TEST_F(MwTest, Type1Rebinds)
{
	MwScene s;
	ibv_mw *mw = s.type(1);
	uint32_t old;

	s.bind_ok(mw);
	old = mw->rkey;
	ASSERT_EQ(s.bind(s.pair.b, mw, s.region.mr(), s.region.addr(8192), 64, kWindowAll),
		  IBV_WC_SUCCESS);
	EXPECT_NE(mw->rkey, old);
	EXPECT_EQ(mw->rkey >> 8, old >> 8);
	EXPECT_EQ(s.write(s.region.addr(8192), mw->rkey, 64), IBV_WC_SUCCESS);
	EXPECT_EQ(s.write(s.region.addr(8192), old, 64), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MwTest, Type1UnbindsByLengthZero)
{
	MwScene s;
	ibv_mw *mw = s.type(1);
	uint32_t old;

	s.bind_ok(mw);
	old = mw->rkey;
	ASSERT_EQ(s.bind(s.pair.b, mw, s.region.mr(), s.region.addr(), 0, 0), IBV_WC_SUCCESS);
	s.region.deregister();
	EXPECT_EQ(s.write(s.region.addr(kStart), old), IBV_WC_REM_ACCESS_ERR);
	s.pair.reconnect(Path());
	EXPECT_EQ(s.write(s.region.addr(kStart), mw->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MwTest, ZeroBased)
{
	MwScene s;
	ibv_mw *mw = s.type(2);

	s.bind_ok(mw, kWindowAll | IBV_ACCESS_ZERO_BASED);
	EXPECT_EQ(s.write(16, mw->rkey, 100), IBV_WC_SUCCESS);
	for (size_t i = 0; i < kSize; i++) {
		bool written = i >= kStart + 16 && i < kStart + 116;

		ASSERT_EQ(s.region.data()[i], written ? kLocalByte : kRemoteByte) << i;
	}
	EXPECT_EQ(s.write(kLength - 8, mw->rkey), IBV_WC_SUCCESS);
	EXPECT_EQ(s.write(kLength - 7, mw->rkey), IBV_WC_REM_ACCESS_ERR);
	s.pair.reconnect(Path());
	EXPECT_EQ(s.write(s.region.addr(kStart), mw->rkey), IBV_WC_REM_ACCESS_ERR);
}

// The lower eight bits are the user's to choose, the same ones again included.
TEST_F(MwTest, Type2KeysAreChosen)
{
	MwScene s;
	ibv_mw *mw = s.type(2);

	for (uint32_t low : {0u, 255u, 1u, 1u}) {
		uint32_t rkey = (mw->rkey & ~0xffu) | low;

		s.pair.b.post(SendWr(IBV_WR_BIND_MW, 1)
				      .bind(mw, rkey, s.region.mr(), s.region.addr(kStart), kLength,
					    kWindowAll));
		expect_wc(s.pair.b.wait_send(), 1);
		EXPECT_EQ(s.write(s.region.addr(kStart), rkey), IBV_WC_SUCCESS) << low;
		EXPECT_EQ(s.local_inv(s.pair.b, rkey), IBV_WC_SUCCESS);
	}
}

TEST_F(MwTest, RefusedAtOnce)
{
	MwScene s;
	ibv_mw_bind bind = {1, 0, {s.region.mr(), s.region.addr(), 64, kWindowAll}};
	SendWr wr(IBV_WR_BIND_MW, 1);

	EXPECT_EQ(ibv_bind_mw(s.pair.b.qp.get(), s.type(2), &bind), EINVAL);
	wr.bind(s.type(1), s.type(1)->rkey, s.region.mr(), s.region.addr(), 64, kWindowAll);
	EXPECT_EQ(s.pair.b.try_post(wr), EINVAL) << "type 1 has a verb of its own";
	wr.bind(s.type(2), s.type(1)->rkey, s.region.mr(), s.region.addr(), 64, kWindowAll);
	EXPECT_EQ(s.pair.b.try_post(wr), EINVAL) << "a key of another window";
	for (int type : {0, 3, 255}) {
		errno = 0;
		EXPECT_EQ(ibv_alloc_mw(s.pair.b.pd.get(), ibv_mw_type(type)), nullptr) << type;
		EXPECT_EQ(errno, EINVAL);
	}
	s.bind_ok(s.type(2)); // and nothing has happened
}

// The same by the ibv_wr_*() builders.
TEST_F(MwTest, Builders)
{
	QpConfig config;

	config.wr_api = true;
	MwScene s(config);
	ibv_mw *mw = s.type(2);

	s.bind_ok(mw);
	EXPECT_EQ(s.write(s.region.addr(kStart), mw->rkey), IBV_WC_SUCCESS);
	EXPECT_EQ(s.local_inv(s.pair.b, mw->rkey), IBV_WC_SUCCESS);
	s.bind_ok(mw);
	s.pair.b.recv(1);
	s.pair.a.post(SendWr(IBV_WR_SEND_WITH_INV, 2, {s.local.sge(0, 0)}).invalidate(mw->rkey));
	expect_wc(s.pair.a.wait_send(), 2);
	expect_wc(s.pair.b.wait_recv(), 1);
	s.expect_shut(mw->rkey);
}

// ---- binds that must fail ----

struct BindCase {
	const char *name;
	int type;
	std::function<ibv_wc_status(MwScene &, ibv_mw *)> bind;
};

ibv_wc_status bind_to(MwScene &s, ibv_mw *mw, Memory &m, uint64_t addr, uint64_t length,
		      int access = kWindowAll)
{
	return s.bind(s.pair.b, mw, m.mr(), addr, length, access);
}

const BindCase kBindCases[] = {
	{"NoBindRight", 0,
	 [](MwScene &s, ibv_mw *mw) { return bind_to(s, mw, s.remote, s.remote.addr(), 64); }},
	{"WriteWithoutLocalWrite", 0,
	 [](MwScene &s, ibv_mw *mw) {
		 Memory &m = s.extra_b(IBV_ACCESS_MW_BIND | IBV_ACCESS_REMOTE_READ);
		 return bind_to(s, mw, m, m.addr(), 64, IBV_ACCESS_REMOTE_WRITE);
	 }},
	{"AtomicWithoutLocalWrite", 0,
	 [](MwScene &s, ibv_mw *mw) {
		 Memory &m = s.extra_b(IBV_ACCESS_MW_BIND | IBV_ACCESS_REMOTE_READ);
		 return bind_to(s, mw, m, m.addr(), 64, IBV_ACCESS_REMOTE_ATOMIC);
	 }},
	{"BeforeTheRegion", 0,
	 [](MwScene &s, ibv_mw *mw) { return bind_to(s, mw, s.region, s.region.addr() - 1, 64); }},
	{"OneByteTooFar", 0,
	 [](MwScene &s, ibv_mw *mw) { return bind_to(s, mw, s.region, s.region.addr(1), kSize); }},
	{"BehindTheRegion", 0,
	 [](MwScene &s, ibv_mw *mw) { return bind_to(s, mw, s.region, s.region.addr(kSize), 1); }},
	{"LengthThatWraps", 0,
	 [](MwScene &s, ibv_mw *mw) {
		 return bind_to(s, mw, s.region, s.region.addr(16), uint64_t(-8));
	 }},
	{"RegionOfOtherPd", 2, // libibverbs itself refuses a bind of type 1
	 [](MwScene &s, ibv_mw *mw) {
		 Memory &m = s.extra_b(kBindable, std::nullopt, s.other_pd_b.get());
		 return bind_to(s, mw, m, m.addr(), 64);
	 }},
	{"WindowOfOtherPd", 2, // the same
	 [](MwScene &s, ibv_mw *mw) {
		 s.mws.push_back(s.window(mw->type, s.other_pd_b.get()));
		 return bind_to(s, s.mws.back().get(), s.region, s.region.addr(), 64);
	 }},
	{"DeregisteredRegion", 0,
	 [](MwScene &s, ibv_mw *mw) {
		 ibv_mr stale = *s.region.mr();

		 s.region.deregister();
		 return s.bind(s.pair.b, mw, &stale, s.region.addr(), 64, kWindowAll);
	 }},
	{"KeyOfAWindow", 0,
	 [](MwScene &s, ibv_mw *mw) {
		 s.mws.push_back(s.window(IBV_MW_TYPE_1));
		 s.bind_ok(s.mws.back().get());
		 ibv_mr fake = *s.region.mr();

		 fake.lkey = s.mws.back()->rkey;
		 return s.bind(s.pair.b, mw, &fake, s.region.addr(kStart), 64, kWindowAll);
	 }},
	{"UnknownAccess", 0,
	 [](MwScene &s, ibv_mw *mw) {
		 return bind_to(s, mw, s.region, s.region.addr(), 64, IBV_ACCESS_ON_DEMAND);
	 }},
	{"ZeroBased", 1,
	 [](MwScene &s, ibv_mw *mw) {
		 return bind_to(s, mw, s.region, s.region.addr(), 64,
				kWindowAll | IBV_ACCESS_ZERO_BASED);
	 }},
	{"LengthZero", 2,
	 [](MwScene &s, ibv_mw *mw) { return bind_to(s, mw, s.region, s.region.addr(), 0); }},
	{"BoundAlready", 2,
	 [](MwScene &s, ibv_mw *mw) {
		 s.bind_ok(mw);
		 return bind_to(s, mw, s.region, s.region.addr(), 64);
	 }},
};

class MwError : public testing::TestWithParam<BindCase> {};

TEST_P(MwError, BindFails)
{
	if (!device_b().has_mw_2b())
		GTEST_SKIP() << "no memory windows of type 2B";
	for (int type : {1, 2}) {
		if (GetParam().type && GetParam().type != type)
			continue;
		MwScene s;
		ibv_mw *mw = s.type(type);

		EXPECT_EQ(GetParam().bind(s, mw), IBV_WC_MW_BIND_ERR) << "type " << type;
		EXPECT_EQ(s.pair.b.state(), IBV_QPS_ERR);
		// and what it was to open is shut
		s.pair.reconnect(Path());
		EXPECT_EQ(s.write(s.region.addr(8), mw->rkey), IBV_WC_REM_ACCESS_ERR);
	}
}
INSTANTIATE_TEST_SUITE_P(Case, MwError, testing::ValuesIn(kBindCases),
			 [](auto &info) { return std::string(info.param.name); });

// A refused bind leaves a window as it was.
TEST_F(MwTest, RefusedBindChangesNothing)
{
	MwScene s;
	ibv_mw *mw = s.type(1);
	uint32_t good;

	s.bind_ok(mw);
	good = mw->rkey;
	EXPECT_EQ(bind_to(s, mw, s.region, s.region.addr(kSize), 8), IBV_WC_MW_BIND_ERR);
	s.pair.reconnect(Path());
	EXPECT_EQ(s.write(s.region.addr(kStart), good), IBV_WC_SUCCESS);
}

} // namespace
} // namespace verbs
