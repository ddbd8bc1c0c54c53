// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// ATOMIC WRITE: eight bytes appear at once, in order with what is around them.

#include "background.hpp"
#include "transfer.hpp"

namespace verbs {
namespace {

struct AtomicWriteScene {
	explicit AtomicWriteScene(const Path &path = {})
	    : pair(config(), path), local(pair.a.pd.get(), 4096), remote(pair.b.pd.get(), 4096)
	{
		memset(remote.data(), 0x22, 4096);
	}
	static QpConfig config()
	{
		QpConfig config;

		config.wr_api = true;
		config.more_ops = IBV_QP_EX_WITH_ATOMIC_WRITE;
		return config;
	}
	SendWr wr(uint64_t id, uint64_t value, size_t offset = 64)
	{
		return SendWr(IBV_WR_ATOMIC_WRITE, id)
			.remote(remote.addr() + offset, remote.rkey())
			.atomic(0, value);
	}
	uint64_t target(size_t offset = 64)
	{
		uint64_t value;

		memcpy(&value, remote.data() + offset, 8);
		return value;
	}

	Pair pair;
	Memory local, remote;
};

TEST(AtomicWrite, StoresEightBytes)
{
	AtomicWriteScene s;

	for (uint64_t i = 0; i < 50; i++) {
		uint64_t value = 0x0123456789abcdef * (i + 1);

		s.pair.a.post(s.wr(i, value));
		ibv_wc wc = s.pair.a.wait_send();
		expect_wc(wc, i);
		EXPECT_EQ(wc.opcode, IBV_WC_ATOMIC_WRITE);
		ASSERT_EQ(s.target(), value);
		EXPECT_EQ(s.target(56), 0x2222222222222222u);
		EXPECT_EQ(s.target(72), 0x2222222222222222u);
	}
	s.pair.b.expect_quiet();
}

// More of them than may be outstanding, between WRITEs and READs of the same place.
TEST(AtomicWrite, InOrderWithOthers)
{
	constexpr uint64_t kRounds = 300, kBatch = 4;
	Path path;

	path.rd_atomic = path.dest_rd_atomic = 2;
	AtomicWriteScene s(path);
	for (uint64_t i = 0; i < kRounds && !testing::Test::HasFailure(); i++) {
		uint64_t seen;

		for (uint64_t k = 0; k < kBatch; k++)
			s.pair.a.post(s.wr(i, i * kBatch + k));
		s.pair.a.post(SendWr(IBV_WR_RDMA_READ, i, {s.local.sge(8, 8)})
				      .remote(s.remote.addr() + 64, s.remote.rkey()));
		memcpy(s.local.data(), "overturn", 8);
		s.pair.a.post(SendWr(IBV_WR_RDMA_WRITE, i, {s.local.sge(0, 8)})
				      .remote(s.remote.addr() + 64, s.remote.rkey()));
		for (uint64_t k = 0; k < kBatch + 2; k++)
			expect_wc(s.pair.a.wait_send(), i);
		memcpy(&seen, s.local.data() + 8, 8);
		EXPECT_EQ(seen, i * kBatch + kBatch - 1);
		EXPECT_EQ(memcmp(s.remote.data() + 64, "overturn", 8), 0);
	}
	s.pair.a.expect_quiet();
}

// A reader at the target never sees a half of one and a half of another.
TEST(AtomicWrite, NeverTorn)
{
	constexpr uint64_t kRounds = 1000;
	AtomicWriteScene s;
	uint64_t torn = 0;
	Background reader([&] {
		uint64_t v = *reinterpret_cast<volatile uint64_t *>(s.remote.data() + 64);

		torn += uint32_t(v) != uint32_t(v >> 32);
	});

	for (uint64_t i = 0; i < kRounds; i++) {
		s.pair.a.post(s.wr(i, i << 32 | i));
		expect_wc(s.pair.a.wait_send(), i);
	}
	reader.stop();
	EXPECT_EQ(torn, 0u);
}

struct Refusal {
	const char *name;
	size_t offset;
	uint32_t key_change;
	int access; // of the responder's QP
	ibv_wc_status status;
};

class AtomicWriteError : public testing::TestWithParam<Refusal> {};

TEST_P(AtomicWriteError, IsRefused)
{
	const Refusal &refusal = GetParam();
	Path path;

	path.access = refusal.access;
	AtomicWriteScene s(path);
	SendWr wr = s.wr(1, 5, refusal.offset);

	wr.wr.wr.atomic.rkey ^= refusal.key_change;
	s.pair.a.post(wr);
	s.pair.a.post(s.wr(2, 6));
	expect_wc(s.pair.a.wait_send(), 1, refusal.status);
	expect_wc(s.pair.a.wait_send(), 2, IBV_WC_WR_FLUSH_ERR);
	EXPECT_EQ(s.target(), 0x2222222222222222u);
	EXPECT_EQ(s.pair.b.state(), IBV_QPS_ERR);
	s.pair.a.expect_quiet();
}

const Refusal kRefusals[] = {
	{"Unaligned", 68, 0, kQpAccess, IBV_WC_REM_INV_REQ_ERR},
	{"UnknownKey", 64, 0x100, kQpAccess, IBV_WC_REM_ACCESS_ERR},
	{"Outside", 4096, 0, kQpAccess, IBV_WC_REM_ACCESS_ERR},
	{"NoRemoteWrite", 64, 0, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	 IBV_WC_REM_INV_REQ_ERR},
};
INSTANTIATE_TEST_SUITE_P(, AtomicWriteError, testing::ValuesIn(kRefusals),
			 [](auto &info) { return info.param.name; });

// Aligned is what is so both in the address space of the key and in memory.
TEST(AtomicWrite, NotInAShiftedAddressSpace)
{
	for (uint64_t address : {60, 64}) { // aligned in memory, in the address space
		AtomicWriteScene s;
		Mr shifted(check(ibv_reg_mr(s.pair.b.pd.get(), s.remote.data() + 4, 1024,
					    kAllAccess | IBV_ACCESS_ZERO_BASED),
				 "reg_mr"));

		s.pair.a.post(
			SendWr(IBV_WR_ATOMIC_WRITE, 1).remote(address, shifted->rkey).atomic(0, 5));
		expect_wc(s.pair.a.wait_send(), 1, IBV_WC_REM_INV_REQ_ERR);
		for (size_t i = 0; i < 128; i++)
			ASSERT_EQ(s.remote.data()[i], 0x22);
	}
}

// It has no elements and no ibv_send_wr.
TEST(AtomicWrite, OnlyByItsBuilder)
{
	AtomicWriteScene s;
	SendWr wr = s.wr(1, 5);
	ibv_send_wr *bad = nullptr;

	EXPECT_EQ(ibv_post_send(s.pair.a.qp.get(), &wr.wr, &bad), EINVAL);
	EXPECT_EQ(bad, &wr.wr);

	uint64_t value = 7;
	ibv_qp_ex *ex = ibv_qp_to_qp_ex(s.pair.a.qp.get());
	ibv_wr_start(ex);
	ibv_wr_atomic_write(ex, s.remote.rkey(), s.remote.addr(), &value);
	ibv_wr_set_sge(ex, s.local.lkey(), s.local.addr(), 8);
	EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
	s.pair.a.expect_quiet();
}

} // namespace
} // namespace verbs
