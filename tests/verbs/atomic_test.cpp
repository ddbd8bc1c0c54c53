// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Atomics execute exactly once and one at a time, whatever is lost, duplicated or concurrent.
#include <algorithm>

#include "background.hpp"
#include "transfer.hpp"

namespace verbs {
namespace {

constexpr int kQps = 4, kDepth = 16;

// Several pairs whose targets are the same memory at b.
struct Crowd {
	Crowd()
	{
		for (int i = 0; i < kQps; i++) {
			pairs.push_back(std::make_unique<Pair>());
			results.push_back(
				std::make_unique<Memory>(pairs[i]->a.pd.get(), 8 * kDepth));
		}
		// one piece of memory, registered for each PD
		for (auto &pair : pairs)
			keys.emplace_back(check(
				ibv_reg_mr(pair->b.pd.get(), counter, sizeof(counter), kAllAccess),
				"reg_mr"));
	}
	~Crowd()
	{
		keys.clear();
	}

	uint64_t result(int qp, int slot)
	{
		uint64_t v;

		memcpy(&v, results[qp]->data() + 8 * slot, 8);
		return v;
	}

	SendWr wr(ibv_wr_opcode opcode, int qp, uint64_t id)
	{
		return SendWr(opcode, id, {results[qp]->sge(8 * (id % kDepth), 8)})
			.remote(reinterpret_cast<uint64_t>(&counter[0]), keys[qp]->rkey);
	}

	alignas(64) uint64_t counter[8] = {};
	std::vector<std::unique_ptr<Pair>> pairs;
	std::vector<std::unique_ptr<Memory>> results;
	std::vector<Mr> keys;
};

// Each FETCH_ADD(1) returns another number; together they are 0..n-1.
TEST(Atomic, FetchAddCountsEachOnce)
{
	const uint64_t kEach = rounds(400);
	Crowd crowd;
	std::vector<std::vector<uint64_t>> got(kQps);
	std::deque<Thread> threads;

	for (int qp = 0; qp < kQps; qp++)
		threads.emplace_back([&, qp] {
			Endpoint &a = crowd.pairs[qp]->a;
			uint64_t posted = 0;

			for (uint64_t done = 0; done < kEach; done++) {
				while (posted < kEach && posted < done + kDepth) {
					SendWr wr =
						crowd.wr(IBV_WR_ATOMIC_FETCH_AND_ADD, qp, posted++);
					a.post(wr.atomic(1));
				}
				ibv_wc wc = a.wait_send();
				expect_wc(wc, done);
				got[qp].push_back(crowd.result(qp, done % kDepth));
			}
		});
	for (Thread &thread : threads)
		thread.join();

	std::vector<uint64_t> all;
	for (auto &list : got) {
		EXPECT_TRUE(std::is_sorted(list.begin(), list.end()))
			<< "a QP's own atomics are in order";
		all.insert(all.end(), list.begin(), list.end());
	}
	std::sort(all.begin(), all.end());
	ASSERT_EQ(all.size(), kQps * kEach);
	for (uint64_t i = 0; i < all.size(); i++)
		ASSERT_EQ(all[i], i) << "lost or executed twice";
	EXPECT_EQ(crowd.counter[0], kQps * kEach);
}

// CMP_SWAP as a lock-free increment: as many successes as the counter says.
TEST(Atomic, CmpSwapSucceedsOnceForEachValue)
{
	const uint64_t kEach = rounds(300);
	Crowd crowd;
	std::vector<uint64_t> wins(kQps);
	std::deque<Thread> threads;

	for (int qp = 0; qp < kQps; qp++)
		threads.emplace_back([&, qp] {
			uint64_t expected = 0;

			for (uint64_t id = 0; id < kEach; id++) {
				SendWr wr = crowd.wr(IBV_WR_ATOMIC_CMP_AND_SWP, qp, id);
				crowd.pairs[qp]->a.post(wr.atomic(expected, expected + 1));
				expect_wc(crowd.pairs[qp]->a.wait_send(), id);
				uint64_t before = crowd.result(qp, id % kDepth);

				EXPECT_GE(before, expected) << "the counter never goes back";
				wins[qp] += before == expected;
				expected = before == expected ? expected + 1 : before;
			}
		});
	for (Thread &thread : threads)
		thread.join();
	uint64_t total = 0;
	for (uint64_t w : wins)
		total += w;
	EXPECT_EQ(crowd.counter[0], total);
	EXPECT_GT(total, 0u);
}

// SENDs, WRITEs and READs between atomics of one QP: each executes once, in order.
TEST(Atomic, MixedWithSequenceNumberedSends)
{
	constexpr uint64_t kCount = 600, kReceives = 32;
	Pair pair;
	Memory local(pair.a.pd.get(), 4096), remote(pair.b.pd.get(), 4096);
	uint64_t received = 0;
	auto post_recv = [&](uint64_t id) {
		pair.b.recv(id, {remote.sge(64 + id % kReceives * 16, 16)});
	};
	auto take_recv = [&](ibv_wc wc) {
		uint64_t number;

		expect_wc(wc, received);
		memcpy(&number, remote.data() + 64 + received % kReceives * 16, 8);
		EXPECT_EQ(number, received);
		post_recv(received++ + kReceives);
	};

	for (uint64_t i = 0; i < kReceives; i++)
		post_recv(i);
	for (uint64_t i = 0; i < kCount && !testing::Test::HasFailure(); i++) {
		uint64_t before;

		memcpy(local.data() + 64 + i % 8 * 16, &i, 8);
		pair.a.post(SendWr(IBV_WR_ATOMIC_FETCH_AND_ADD, i, {local.sge(0, 8)}, 0)
				    .remote(remote.addr(), remote.rkey())
				    .atomic(3));
		pair.a.post(SendWr(IBV_WR_SEND, i, {local.sge(64 + i % 8 * 16, 16)}));
		expect_wc(pair.a.wait_send(), i);
		memcpy(&before, local.data(), 8);
		EXPECT_EQ(before, 3 * i);
		take_recv(pair.b.wait_recv());
	}
	pair.a.expect_quiet();
	pair.b.expect_quiet();
}

} // namespace
} // namespace verbs
