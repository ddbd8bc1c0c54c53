// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The longest message, 2 GiB. Few pages, mapped again and again, are enough memory for that.
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "transfer.hpp"

namespace verbs {
namespace {

constexpr uint64_t kHuge = 1ull << 31;

// 2 GiB of addresses over @period bytes of memory
class Lapped {
public:
	Lapped(ibv_pd *pd, size_t period) : period(period)
	{
		int fd = memfd_create("lapped", 0);

		check(fd < 0 ? -1 : 0, "memfd_create");
		check(ftruncate(fd, period), "ftruncate");
		data = static_cast<uint8_t *>(
			map(nullptr, kHuge, MAP_ANONYMOUS | MAP_NORESERVE, -1));
		for (uint64_t at = 0; at < kHuge; at += period)
			map(data + at, std::min<uint64_t>(period, kHuge - at), MAP_FIXED, fd);
		close(fd);
		mr.reset(check(ibv_reg_mr(pd, data, kHuge, kAllAccess), "reg_mr"));
	}
	~Lapped()
	{
		mr.reset();
		munmap(data, kHuge);
	}
	Lapped(const Lapped &) = delete;

	const size_t period;
	uint8_t *data;
	Mr mr;

private:
	static void *map(void *at, size_t length, int flags, int fd)
	{
		void *p = mmap(at, length, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);

		check(p == MAP_FAILED ? -1 : 0, "mmap");
		return p;
	}
};

// What is left of a message that went over @to again and again: its last bytes. The periods
// differ, so that each lap leaves something else.
void expect_last_lap(const Lapped &from, const Lapped &to)
{
	std::vector<uint8_t> want(to.period);

	for (uint64_t at = kHuge - to.period; at < kHuge; at++)
		want[at % to.period] = from.data[at % from.period];
	EXPECT_EQ(memcmp(want.data(), to.data, to.period), 0);
}

class Huge : public testing::TestWithParam<std::tuple<ibv_wr_opcode, ibv_mtu>> {};

TEST_P(Huge, Message)
{
	auto [op, mtu] = GetParam();
	Path path;
	Rng rng(1);

	path.mtu = mtu_at_most(mtu);
	Pair pair({}, path);
	Lapped a(pair.a.pd.get(), 3 << 20), b(pair.b.pd.get(), 5 << 20);
	Lapped &from = op == IBV_WR_RDMA_READ ? b : a, &to = op == IBV_WR_RDMA_READ ? a : b;

	fill_random(rng, from.data, from.period);
	if (op == IBV_WR_SEND)
		pair.b.recv(7,
			    {{reinterpret_cast<uintptr_t>(b.data), uint32_t(kHuge), b.mr->lkey}});
	pair.a.post(
		SendWr(op, 1, {{reinterpret_cast<uintptr_t>(a.data), uint32_t(kHuge), a.mr->lkey}})
			.remote(reinterpret_cast<uintptr_t>(b.data), b.mr->rkey));
	ibv_wc wc = {};
	while (!ibv_poll_cq(pair.a.send_cq.get(), 1, &wc)) // its program's time is limited
		sched_yield();
	expect_wc(wc, 1);
	if (op == IBV_WR_SEND) {
		wc = pair.b.wait_recv();
		expect_wc(wc, 7);
		EXPECT_EQ(wc.byte_len, kHuge);
	}
	expect_last_lap(from, to);
	// the PSNs of both ends are where they have to be
	pair.a.post(
		SendWr(IBV_WR_RDMA_WRITE, 2, {{reinterpret_cast<uintptr_t>(a.data), 8, a.mr->lkey}})
			.remote(reinterpret_cast<uintptr_t>(b.data), b.mr->rkey));
	expect_wc(pair.a.wait_send(), 2);
}

std::string huge_name(const testing::TestParamInfo<Huge::ParamType> &info)
{
	ibv_wr_opcode op = std::get<0>(info.param);

	return std::string(op == IBV_WR_RDMA_READ ? "Read" :
			   op == IBV_WR_SEND	  ? "Send" :
						    "Write") +
	       std::to_string(mtu_bytes(std::get<1>(info.param)));
}

// At 256 bytes it takes 2^23 packets, half of all PSNs.
INSTANTIATE_TEST_SUITE_P(, Huge,
			 testing::Combine(testing::Values(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
							  IBV_WR_SEND),
					  testing::Values(IBV_MTU_4096, IBV_MTU_256)),
			 huge_name);

} // namespace
} // namespace verbs
