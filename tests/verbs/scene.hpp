// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A connected pair with memory, and work requests on it to be spoilt.
#ifndef TESTS_SCENE_HPP
#define TESTS_SCENE_HPP

#include "verbs.hpp"

namespace verbs {

constexpr size_t kSize = 16 << 10;
constexpr uint8_t kLocalByte = 0x11, kRemoteByte = 0x22;

struct Scene {
	Scene(const QpConfig &config, const Path &path)
	    : pair(config, path), local(pair.a.pd.get(), kSize), remote(pair.b.pd.get(), kSize),
	      other_pd_a(check(ibv_alloc_pd(device_a().get()), "alloc_pd")),
	      other_pd_b(check(ibv_alloc_pd(device_b().get()), "alloc_pd"))
	{
		memset(local.data(), kLocalByte, kSize);
		memset(remote.data(), kRemoteByte, kSize);
	}

	SendWr write(uint32_t length = 8)
	{
		return rdma(IBV_WR_RDMA_WRITE, length);
	}
	SendWr read(uint32_t length = 8)
	{
		return rdma(IBV_WR_RDMA_READ, length);
	}
	SendWr rdma(ibv_wr_opcode op, uint32_t length)
	{
		return SendWr(op, 1, {local.sge(0, length)}).remote(remote.addr(), remote.rkey());
	}
	SendWr send(uint32_t length)
	{
		return SendWr(IBV_WR_SEND, 1, {local.sge(0, length)});
	}
	SendWr fetch_add()
	{
		return rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, 8).atomic(1);
	}
	SendWr cmp_swap()
	{
		return rdma(IBV_WR_ATOMIC_CMP_AND_SWP, 8).atomic(0x2222222222222222, 1);
	}

	Memory &extra_b(int access, std::optional<uint64_t> iova = std::nullopt,
			ibv_pd *pd = nullptr)
	{
		extra.push_back(
			std::make_unique<Memory>(pd ? pd : pair.b.pd.get(), kSize, access, iova));
		memset(extra.back()->data(), kRemoteByte, kSize);
		return *extra.back();
	}
	Memory &extra_a(int access, std::optional<uint64_t> iova = std::nullopt,
			ibv_pd *pd = nullptr)
	{
		extra.push_back(
			std::make_unique<Memory>(pd ? pd : pair.a.pd.get(), kSize, access, iova));
		memset(extra.back()->data(), kLocalByte, kSize);
		return *extra.back();
	}

	Pair pair;
	Memory local, remote;
	Pd other_pd_a, other_pd_b;
	std::deque<std::unique_ptr<Memory>> extra;
};

} // namespace verbs

#endif
