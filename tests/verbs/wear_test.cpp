// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Regions made and destroyed again and again wear nothing out: keys, memory, pins.
#include <sys/mman.h>

#include <algorithm>
#include <deque>
#include <unordered_set>

#include "kernel_stat.hpp"
#include "scene.hpp"

namespace verbs {
namespace {

// Every size and access that makes a difference, one after the other; long ones now and then.
class Kinds {
public:
	struct Kind {
		size_t length;
		int access;
	};

	Kinds()
	{
		ibv_device_attr_ex attr = {};

		check(ibv_query_device_ex(device_b().get(), nullptr, &attr), "query_device_ex");
		for (int access :
		     {0, int(IBV_ACCESS_LOCAL_WRITE), int(IBV_ACCESS_REMOTE_READ), kAllAccess,
		      kAllAccess | IBV_ACCESS_RELAXED_ORDERING, kAllAccess | IBV_ACCESS_MW_BIND})
			access_.push_back(access);
		if (attr.odp_caps.general_caps & IBV_ODP_SUPPORT)
			access_.push_back(kAllAccess | IBV_ACCESS_ON_DEMAND);
	}
	Kind operator[](size_t i) const
	{
		constexpr size_t kLengths[] = {1, 100, 4096, 4097, 12000};

		return {i % 64 == 63 ? kLongest : kLengths[i % std::size(kLengths)],
			access_[i % access_.size()]};
	}

	static constexpr size_t kLongest = 500000;

private:
	std::vector<int> access_;
};

// Keys that were given, and how often one came back
class Keys {
public:
	void add(uint32_t key)
	{
		again_ += !seen_.insert(key).second;
	}
	// At random, of 2^32: as many again as that makes likely, and far from more
	void expect_fresh() const
	{
		const double n = seen_.size(), likely = n * n / 2 / 4294967296.0;

		printf("# %zu keys, %d came again\n", seen_.size(), again_);
		EXPECT_LE(again_, 20 + 4 * likely);
	}

private:
	std::unordered_set<uint32_t> seen_;
	int again_ = 0;
};

class Wear {
public:
	Wear() : scene_({}, {})
	{
		data_ = static_cast<uint8_t *>(mmap(nullptr, kRoom, PROT_READ | PROT_WRITE,
						    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		check(data_ == MAP_FAILED ? -1 : 0, "mmap");
	}
	~Wear()
	{
		for (ibv_mr *mr : live_)
			ibv_dereg_mr(mr);
		munmap(data_, kRoom);
	}
	Wear(const Wear &) = delete;

	// One region more; of many that live at once, the oldest one less
	void round(int i)
	{
		auto [length, access] = kinds_[i];
		ibv_mr *mr = ibv_reg_mr(scene_.pair.b.pd.get(), data_ + 100, length, access);

		ASSERT_NE(mr, nullptr) << strerror(errno) << ", " << length << " bytes";
		for (ibv_mr *other : live_)
			ASSERT_NE(mr->rkey >> 8, other->rkey >> 8);
		ASSERT_NE(mr->rkey, gone_);
		keys_.add(mr->rkey);
		live_.push_back(mr);
		if (live_.size() > kLive) {
			gone_ = live_.front()->rkey;
			ASSERT_EQ(ibv_dereg_mr(live_.front()), 0);
			live_.pop_front();
		}
	}
	// The key of the youngest works for what it is for, the one that went last does not.
	void expect_rights(int i)
	{
		const auto [length, access] = kinds_[i];
		const bool good = access & IBV_ACCESS_REMOTE_WRITE;
		const uint64_t addr = reinterpret_cast<uintptr_t>(data_) + 100 + length - 1;

		data_[100 + length - 1] = 0;
		scene_.local.data()[0] = 0x5a;
		write(addr, live_.back()->rkey, good);
		EXPECT_EQ(data_[100 + length - 1], good ? 0x5a : 0);
		if (gone_)
			write(addr, gone_, false);
	}
	void clear()
	{
		for (; !live_.empty(); live_.pop_front())
			ASSERT_EQ(ibv_dereg_mr(live_.front()), 0);
	}
	const Keys &keys() const
	{
		return keys_;
	}

private:
	static constexpr size_t kRoom = 1 << 20, kLive = 20;

	void write(uint64_t addr, uint32_t rkey, bool good)
	{
		scene_.pair.a.post(
			SendWr(IBV_WR_RDMA_WRITE, 1, {scene_.local.sge(0, 1)}).remote(addr, rkey));
		expect_wc(scene_.pair.a.wait_send(), 1,
			  good ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
		if (!good)
			scene_.pair.reconnect({});
	}

	Scene scene_;
	Kinds kinds_;
	Keys keys_;
	uint8_t *data_;
	std::deque<ibv_mr *> live_;
	uint32_t gone_ = 0;
};

// $rc_test_registrations regions: each one works, keys come back no sooner than chance has it, and
// the kernel keeps nothing.
TEST(MemoryWear, Registrations)
{
	const char *env = getenv("rc_test_registrations");
	const int rounds = env ? atoi(env) : 2000;
	const long pinned = pinned_memory();
	const Pins before = pins();
	long kept = 0;

	{
		Wear wear;

		for (int i = 0; i < rounds && !testing::Test::HasFailure(); i++) {
			SCOPED_TRACE(i);
			wear.round(i);
			if (i % 501 == 0)
				wear.expect_rights(i);
			if (i == rounds / 10)
				kept = kernel_memory();
		}
		wear.clear();
		// in the noise of the rest of the system; one lost allocation a round is far more
		EXPECT_LT(kernel_memory() - kept, 2048 + rounds / 100) << "kB";
		wear.keys().expect_fresh();
	}
	const Pins after = pins();
	EXPECT_GE(after.taken - before.taken, rounds / 2);
	EXPECT_EQ(after.taken - before.taken, after.given - before.given);
	EXPECT_EQ(pinned_memory(), pinned);
}

} // namespace
} // namespace verbs
