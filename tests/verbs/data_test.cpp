// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Every operation moves exactly the bytes it names, whatever their number and layout.
#include "transfer.hpp"

namespace verbs {
namespace {

// What a test runs with: the operation, and which way WRs are posted.
struct DataParam {
	Op op;
	bool wr_api;
	ibv_qp_type type = IBV_QPT_RC;
};

class Data : public testing::TestWithParam<DataParam> {
protected:
	void SetUp() override
	{
		if (GetParam().op == Op::SendInv && !device_b().has_mw_2b())
			GTEST_SKIP() << "no memory windows of type 2B";
	}
	QpConfig config() const
	{
		QpConfig config;

		config.type = GetParam().type;
		config.wr_api = GetParam().wr_api;
		return config;
	}

	Shape shape(size_t length) const
	{
		Shape shape;

		shape.op = GetParam().op;
		shape.length = length;
		return shape;
	}
};

std::string data_name(const testing::TestParamInfo<DataParam> &info)
{
	return std::string(info.param.type == IBV_QPT_UC ? "Uc" : "") + op_name(info.param.op) +
	       (info.param.wr_api ? "WrApi" : "");
}

std::vector<DataParam> data_params(bool atomics)
{
	std::vector<DataParam> params;

	for (bool wr_api : {false, true}) {
		for (Op op : kAllOps)
			if (atomics || !is_atomic(op))
				params.push_back({op, wr_api});
		params.push_back({Op::SendInv, wr_api});
	}
	for (Op op : {Op::Send, Op::SendImm, Op::Write, Op::WriteImm})
		params.push_back({op, op == Op::SendImm || op == Op::Write, IBV_QPT_UC});
	return params;
}

using DataLength = Data;

TEST_P(DataLength, EveryLengthUpToTwoPackets)
{
	Path path;

	path.mtu = IBV_MTU_256;
	Pair pair(config(), path);
	Bench bench(pair, 1024, 1);
	// in steps of 7 all lengths modulo 4 and 64 come, too
	for (size_t length = 0; length <= 2 * 256 + 3 && !HasFailure(); length += slow() ? 7 : 1)
		bench.run(shape(length));
}

TEST_P(DataLength, LengthsAroundPacketBoundaries)
{
	for (ibv_mtu mtu : {IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096}) {
		size_t bytes = mtu_bytes(mtu);
		Path path;

		if (mtu_at_most(mtu) != mtu)
			break;
		path.mtu = mtu;
		Pair pair(config(), path);
		Bench bench(pair, 5 * bytes, 1, mtu);
		for (size_t packets = 1; packets <= 4; packets++)
			for (int d = -5; d <= 5 && !HasFailure(); d++)
				bench.run(shape(packets * bytes + d));
		for (int i = 0; i < rounds(50) && !HasFailure(); i++)
			bench.run(shape(pick(bench.rng, 0, 4 * bytes)));
	}
}

TEST_P(DataLength, LargeMessages)
{
	Path path;

	path.mtu = IBV_MTU_4096;
	Pair pair(config(), path);
	Bench bench(pair, 8 << 20, 1);
	for (size_t length : {(64u << 10) + 1, 1u << 20, 8u << 20})
		bench.run(shape(length));
}

TEST_P(DataLength, RandomScatterLists)
{
	for (ibv_mtu mtu : {IBV_MTU_256, IBV_MTU_1024, IBV_MTU_4096}) {
		QpConfig cfg = config();
		Path path;

		cfg.send_sge = cfg.recv_sge =
			std::min({32, device_a().attr.max_sge, device_b().attr.max_sge});
		path.mtu = mtu;
		Pair pair(cfg, path);
		Bench bench(pair, 4 * mtu_bytes(mtu), 32, mtu);
		for (int i = 0; i < rounds(150) && !HasFailure(); i++) {
			Shape s = shape(pick(bench.rng, 0, 3 * mtu_bytes(mtu_at_most(mtu))));

			s.local_pieces = pick(bench.rng, 1, cfg.send_sge);
			s.recv_pieces = pick(bench.rng, 1, cfg.recv_sge);
			s.recv_spare = pick(bench.rng, 0, 1) * pick(bench.rng, 1, 200);
			if (GetParam().op == Op::Read)
				s.local_pieces = std::min(s.local_pieces,
							  device_a().attr.max_sge_rd ?
								  device_a().attr.max_sge_rd :
								  s.local_pieces);
			bench.run(s);
		}
	}
}

INSTANTIATE_TEST_SUITE_P(Op, DataLength, testing::ValuesIn(data_params(false)), data_name);

using DataAtomic = Data;

TEST_P(DataAtomic, RandomOperands)
{
	Pair pair(config());
	Bench bench(pair, 64, 1);

	for (int i = 0; i < rounds(200) && !HasFailure(); i++)
		bench.run(shape(8));
}

INSTANTIATE_TEST_SUITE_P(Op, DataAtomic,
			 testing::Values(DataParam{Op::CmpSwap, false},
					 DataParam{Op::CmpSwap, true},
					 DataParam{Op::FetchAdd, false},
					 DataParam{Op::FetchAdd, true}),
			 data_name);

class DataInline : public Data {};

TEST_P(DataInline, EveryLength)
{
	QpConfig cfg = config();

	cfg.inline_data = 128;
	cfg.send_sge = 4;
	Pair pair(cfg);
	ASSERT_GE(pair.a.cap.max_inline_data, 128u);
	Bench bench(pair, 1024, 8);
	for (size_t length = 0; length <= pair.a.cap.max_inline_data && !HasFailure(); length++) {
		Shape s = shape(length);

		s.flags |= IBV_SEND_INLINE;
		s.local_pieces = 1 + length % 4;
		bench.run(s);
	}
}

TEST_P(DataInline, TooLongIsRefused)
{
	QpConfig cfg = config();

	cfg.inline_data = 16;
	Pair pair(cfg);
	Memory local(pair.a.pd.get(), 8192), remote(pair.b.pd.get(), 8192);
	SendWr wr(IBV_WR_RDMA_WRITE, 1, {local.sge(0, pair.a.cap.max_inline_data + 1)},
		  IBV_SEND_SIGNALED | IBV_SEND_INLINE);

	wr.remote(remote.addr(), remote.rkey());
	EXPECT_NE(pair.a.try_post(wr), 0);
	wr.sges[0].length = pair.a.cap.max_inline_data; // and the QP is as good as before
	pair.a.post(wr);
	expect_wc(pair.a.wait_send(), 1);
}

INSTANTIATE_TEST_SUITE_P(Op, DataInline,
			 testing::Values(DataParam{Op::Send, false}, DataParam{Op::SendImm, false},
					 DataParam{Op::Write, false},
					 DataParam{Op::WriteImm, false},
					 DataParam{Op::SendInv, false}, DataParam{Op::Send, true},
					 DataParam{Op::Write, true},
					 DataParam{Op::Send, false, IBV_QPT_UC},
					 DataParam{Op::Write, true, IBV_QPT_UC}),
			 data_name);

// No SGE at all is a message of no bytes.
TEST(DataEmpty, NoScatterElements)
{
	Pair pair;
	Bench bench(pair, 64, 1);

	for (Op op : kPlainOps) {
		Shape s;

		s.op = op;
		s.local_pieces = s.recv_pieces = 0;
		bench.run(s);
	}
}

// An operation of no bytes touches no memory, so its address and key do not matter (IBTA 9.4.3, 9.7.4).
TEST(DataEmpty, KeyIsNotChecked)
{
	Pair pair;

	for (ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
		pair.a.post(SendWr(opcode, 7).remote(0x1234567, 0xdeadbeef));
		expect_wc(pair.a.wait_send(), 7);
	}
	EXPECT_EQ(pair.b.state(), IBV_QPS_RTS);
}

// Addresses of a region need not be those of the process.
class DataIova : public testing::TestWithParam<uint64_t> {};

TEST_P(DataIova, EveryOperation)
{
	constexpr size_t kSize = 64 << 10;
	Pair pair;
	Memory local(pair.a.pd.get(), kSize, kAllAccess, GetParam());
	Memory remote(pair.b.pd.get(), kSize, kAllAccess, GetParam());
	Rng rng(3);

	for (Op op : kAllOps)
		for (size_t length : {0u, 1u, 63u, 1024u, 5000u, 60000u}) {
			Shape s;

			s.op = op;
			s.length = length;
			// against the end of the region, and its last address
			size_t size = is_atomic(op) ? Window::need(8, 1) : Window::need(length, 1);
			SCOPED_TRACE(std::string(op_name(op)) + " " + std::to_string(length));
			Transfer(rng, pair.a, pair.b, {local, kSize - size, size},
				 {remote, kSize - size, size}, length, s)
				.run();
		}
}

TEST_P(DataIova, LastByteOfTheRegion)
{
	constexpr size_t kSize = 8 << 10;
	Pair pair;
	Memory local(pair.a.pd.get(), kSize, kAllAccess, GetParam());
	Memory remote(pair.b.pd.get(), kSize, kAllAccess, GetParam());

	local.data()[kSize - 1] = 0x77;
	pair.a.post(SendWr(IBV_WR_RDMA_WRITE, 1, {local.sge(kSize - 1, 1)})
			    .remote(remote.addr(kSize - 1), remote.rkey()));
	expect_wc(pair.a.wait_send(), 1);
	EXPECT_EQ(remote.data()[kSize - 1], 0x77);
	pair.a.post(SendWr(IBV_WR_RDMA_READ, 2, {local.sge(0, kSize)})
			    .remote(remote.addr(), remote.rkey()));
	expect_wc(pair.a.wait_send(), 2);
	EXPECT_EQ(memcmp(local.data(), remote.data(), kSize), 0);
}

INSTANTIATE_TEST_SUITE_P(Iova, DataIova,
			 testing::Values(0ull, 0x1000ull, 1ull << 40, 1ull << 63,
					 -(64ull << 10) - 4096, -(1ull << 32)));

// Many operations under way in both directions at once.
TEST(DataPipeline, MixedBothWays)
{
	constexpr int kDepth = 24;
	constexpr size_t kMax = 5000;
	QpConfig config;
	Path path;

	config.send_sge = config.recv_sge = 4;
	Pair pair(config, path);
	size_t size = Window::need(kMax, 4);
	Memory mem_a(pair.a.pd.get(), 2 * kDepth * size), mem_b(pair.b.pd.get(), 2 * kDepth * size);
	Rng rng(5);

	for (int round = 0; round < rounds(40) && !testing::Test::HasFailure(); round++) {
		std::vector<std::unique_ptr<Transfer>> of_a, of_b;
		auto make = [&](Endpoint &from, Endpoint &to, Memory &local, Memory &remote,
				size_t slot) {
			Shape s;

			s.op = kAllOps[pick(rng, 0, std::size(kAllOps) - 1)];
			s.length = pick(rng, 0, kMax);
			s.local_pieces = pick(rng, 1, 4);
			s.recv_pieces = pick(rng, 1, 4);
			return std::make_unique<Transfer>(
				rng, from, to, Window{local, slot * size, size},
				Window{remote, slot * size, size}, slot, s);
		};
		for (int i = 0; i < kDepth; i++) {
			of_a.push_back(make(pair.a, pair.b, mem_a, mem_b, i));
			of_b.push_back(make(pair.b, pair.a, mem_b, mem_a, kDepth + i));
		}
		for (int i = 0; i < kDepth; i++) {
			of_a[i]->post();
			of_b[i]->post();
		}
		for (auto *side : {&of_a, &of_b}) {
			Endpoint &from = side == &of_a ? pair.a : pair.b,
				 &to = side == &of_a ? pair.b : pair.a;

			for (auto &t : *side) {
				t->check_send_wc(from.wait_send());
				if (takes_recv(t->shape().op))
					t->check_recv_wc(to.wait_recv());
			}
		}
		for (auto *side : {&of_a, &of_b})
			for (auto &t : *side)
				t->check_memory();
	}
}

// SEND with invalidate ends the life of a memory window's key.
TEST(DataInvalidate, WindowIsGone)
{
	if (!device_b().has_mw_2b())
		GTEST_SKIP() << "no memory windows of type 2B";
	Pair pair;
	Memory local(pair.a.pd.get(), 4096),
		remote(pair.b.pd.get(), 4096, kAllAccess | IBV_ACCESS_MW_BIND);
	Mw mw(check(ibv_alloc_mw(pair.b.pd.get(), IBV_MW_TYPE_2), "alloc_mw"));
	SendWr bind(IBV_WR_BIND_MW, 1);

	bind.wr.bind_mw.mw = mw.get();
	bind.wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	bind.wr.bind_mw.bind_info = {nullptr, remote.addr(), 4096, IBV_ACCESS_REMOTE_WRITE};
	// the owner of the region is not reachable through Memory; a key is enough here
	std::unique_ptr<ibv_mr, Destroy<ibv_dereg_mr>> mr(check(
		ibv_reg_mr(pair.b.pd.get(), remote.data(), 4096, kAllAccess | IBV_ACCESS_MW_BIND),
		"reg_mr"));
	bind.wr.bind_mw.bind_info.mr = mr.get();
	pair.b.post(bind);
	expect_wc(pair.b.wait_send(), 1);
	uint32_t rkey = bind.wr.bind_mw.rkey;

	pair.a.post(SendWr(IBV_WR_RDMA_WRITE, 2, {local.sge(0, 100)}).remote(remote.addr(), rkey));
	expect_wc(pair.a.wait_send(), 2);

	Memory big_a(pair.a.pd.get(), 8192), big_b(pair.b.pd.get(), 8192);
	Rng rng(9);
	Shape s;

	s.op = Op::SendInv;
	s.length = 3000;
	s.inv_rkey = rkey;
	Transfer(rng, pair.a, pair.b, {big_a, 0, 8192}, {big_b, 0, 8192}, 3, s).run();

	pair.a.post(SendWr(IBV_WR_RDMA_WRITE, 4, {local.sge(0, 100)}).remote(remote.addr(), rkey));
	expect_wc(pair.a.wait_send(), 4, IBV_WC_REM_ACCESS_ERR);
}

} // namespace
} // namespace verbs
