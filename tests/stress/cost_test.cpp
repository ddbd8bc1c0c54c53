// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What a large region costs: its pages are pinned once, and little is kept for each.
#include <sys/mman.h>

#include <functional>

#include "kernel_stat.hpp"
#include "stress.hpp"

namespace stress {
namespace {

using namespace verbs;

constexpr size_t kGiB = 1 << 30;
constexpr long kPages = kGiB / 4096;

struct Large {
	explicit Large(int flags)
	    : data(mmap(nullptr, kGiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags,
			-1, 0))
	{
		if (data == MAP_FAILED)
			return;
		if (!flags)
			madvise(data, kGiB, MADV_NOHUGEPAGE);
		check(madvise(data, kGiB, MADV_POPULATE_WRITE), "madvise");
	}
	~Large()
	{
		if (data != MAP_FAILED)
			munmap(data, kGiB);
	}
	Large(const Large &) = delete;

	void *const data;
};

long ms_of(const std::function<void()> &work)
{
	auto start = std::chrono::steady_clock::now();

	work();
	return std::chrono::duration_cast<std::chrono::milliseconds>(
		       std::chrono::steady_clock::now() - start)
		.count();
}

// Registers all of it; returns the kB that the kernel keeps meanwhile. Times are for the reader.
long keeps(Device &dev, const Large &memory, const char *what)
{
	Pd pd(check(ibv_alloc_pd(dev.get()), "alloc_pd"));
	const long before = kernel_memory(), pinned = pinned_memory();
	const Pins pins_before = pins();
	Mr mr;
	long make = ms_of([&] {
		mr.reset(check(ibv_reg_mr(pd.get(), memory.data, kGiB, kAllAccess), "reg_mr"));
	});
	const long kept = kernel_memory() - before;
	const Pins pins_with = pins();

	EXPECT_EQ(pins_with.taken - pins_before.taken, kPages);
	EXPECT_EQ(pins_with.given - pins_before.given, 0);
	EXPECT_EQ(pinned_memory() - pinned, long(kGiB / 1024));
	long destroy = ms_of([&] { mr.reset(); });
	EXPECT_EQ(pins().given - pins_before.given, kPages);
	EXPECT_EQ(pinned_memory(), pinned);
	printf("# 1 GiB of %s, %s: registered in %ld ms, deregistered in %ld ms, %ld kB kept\n",
	       what, ibv_get_device_name(dev.get()->device), make, destroy, kept);
	return kept;
}

void compare(const char *what, int flags, long limit)
{
	Large memory(flags);

	if (memory.data == MAP_FAILED)
		GTEST_SKIP() << "no 1 GiB of " << what;
	EXPECT_LE(keeps(device_a(), memory, what), limit);
	if (&device_b() != &device_a()) // another driver's, to compare with
		keeps(device_b(), memory, what);
}

// A block's address, 8 bytes, and an entry of the core's list of pages, 32 bytes: for each page at
// most, where no two lie beside each other; and what else goes on meanwhile.
TEST(Cost, OneGiBOfSmallPages)
{
	if (stat_sum("/proc/meminfo", {"MemAvailable:"}) < long(kGiB / 1024 * 5 / 4))
		GTEST_SKIP() << "too little memory";
	compare("4 KiB pages", 0, kPages * 40 / 1024 + 512);
}

TEST(Cost, OneGiBOfHugePages)
{
	compare("2 MiB pages", MAP_HUGETLB, 512);
}

} // namespace
} // namespace stress
