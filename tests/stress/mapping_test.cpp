// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The mappings themselves: what may be mapped, for how long, and who else has it.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "raw.hpp"
#include "stress.hpp"

namespace raw {
namespace {

using stress::Background;
using stress::pick;
using stress::Rounds;
using verbs::device_a;

class MapTest : public testing::Test {
protected:
	// 0 or errno
	int try_map(uint64_t offset, size_t len, int flags = MAP_SHARED,
		    int prot = PROT_READ | PROT_WRITE)
	{
		void *p = mmap(nullptr, len, prot, flags, fd, static_cast<off_t>(offset));

		if (p == MAP_FAILED)
			return errno;
		munmap(p, len);
		return 0;
	}

	const int fd = device_a().get()->cmd_fd;
	const size_t page = sysconf(_SC_PAGESIZE);
};

TEST_F(MapTest, SizesAndOffsets)
{
	Rig rig({256, 256, 4, 4, 0}, 1024);
	const std::pair<uint64_t, size_t> regions[] = {
		{rig.a.resp.mmap_offset, rig.a.resp.mmap_len},
		{rig.send_a.resp.mmap_offset, rig.send_a.resp.mmap_len},
	};

	for (auto [offset, len] : regions) {
		ASSERT_EQ(len % page, 0u);
		ASSERT_GT(len, 2 * page);
		EXPECT_EQ(try_map(offset, len), 0);
		EXPECT_EQ(try_map(offset, len, MAP_SHARED, PROT_READ), 0);
		for (size_t wrong : {page, len - page, len + page, 2 * len, size_t(1) << 40})
			EXPECT_EQ(try_map(offset, wrong), EINVAL)
				<< "length " << wrong << " of " << len;
		EXPECT_EQ(try_map(offset + page, len), EINVAL) << "not from its start";
		EXPECT_EQ(try_map(offset + page, len - page), EINVAL);
		EXPECT_EQ(try_map(offset, len, MAP_PRIVATE), EINVAL);
		EXPECT_EQ(try_map(offset, 0), EINVAL);
		EXPECT_EQ(try_map(offset + 1, len), EINVAL) << "not page aligned";
	}
	for (uint64_t nowhere :
	     {uint64_t(1) << 30, uint64_t(1) << 43, uint64_t(0xffffffff) << 12, uint64_t(1) << 62})
		EXPECT_NE(try_map(nowhere, page), 0) << "offset " << nowhere;

	// two mappings, one memory
	Mapping twice(fd, rig.a.resp.mmap_offset, rig.a.resp.mmap_len);

	rig.a.send_slot(5)->wr_id = 0x1234567890;
	EXPECT_EQ(memcmp(twice.data(), rig.a.map.data(), twice.size()), 0);
	EXPECT_EQ(mremap(twice.data(), twice.size(), twice.size() + page, MREMAP_MAYMOVE),
		  MAP_FAILED);
	EXPECT_EQ(errno, EFAULT) << "it cannot grow";
}

// A context's offsets are its own.
TEST_F(MapTest, OtherContext)
{
	verbs::Device other(ibv_get_device_name(device_a().get()->device), device_a().gid_index);
	Rig rig({256, 256, 4, 4, 0});
	void *p = mmap(nullptr, rig.a.resp.mmap_len, PROT_READ, MAP_SHARED, other.get()->cmd_fd,
		       static_cast<off_t>(rig.a.resp.mmap_offset));

	EXPECT_EQ(p, MAP_FAILED);
}

// Mapped pages outlive their queue: memory of this process and nobody else's.
TEST_F(MapTest, AfterDestroy)
{
	for (Rounds round("MapTest.AfterDestroy"); round.next();) {
		verbs::Pd pd(verbs::check(ibv_alloc_pd(device_a().get()), "alloc_pd"));
		auto cq = std::make_unique<Cq>(device_a().get(), 64);
		auto qp = std::make_unique<Qp>(pd.get(), *cq, *cq);
		Mapping old_qp = std::move(qp->map), old_cq = std::move(cq->map);
		const uint64_t qp_offset = qp->resp.mmap_offset, cq_offset = cq->resp.mmap_offset;

		EXPECT_EQ(qp->destroy(), 0);
		EXPECT_EQ(cq->destroy(), 0);
		EXPECT_EQ(try_map(qp_offset, old_qp.size()), EINVAL);
		EXPECT_EQ(try_map(cq_offset, old_cq.size()), EINVAL);
		memset(old_qp.data(), 0xab, old_qp.size());
		memset(old_cq.data(), 0xcd, old_cq.size());

		// new ones of the same size get memory of their own, and zeroed
		Cq new_cq(device_a().get(), 64);
		Qp new_qp(pd.get(), new_cq, new_cq);

		for (const Mapping *map : {&new_qp.map, &new_cq.map})
			EXPECT_EQ(std::count(map->data(), map->data() + map->size(), 0),
				  std::ptrdiff_t(map->size()));
		memset(old_qp.data(), 0x11, old_qp.size());
		EXPECT_EQ(new_qp.ctrl()->sq_tail, 0u);
		EXPECT_EQ(std::count(old_cq.data(), old_cq.data() + old_cq.size(), 0xcd),
			  std::ptrdiff_t(old_cq.size()));
	}
}

// mmap() of an offset while its queue is destroyed: it is mapped or it is not.
TEST_F(MapTest, RacingDestroy)
{
	std::atomic<uint64_t> offset{0}, mapped{0}, refused{0};
	std::atomic<size_t> len{0};
	verbs::Pd pd(verbs::check(ibv_alloc_pd(device_a().get()), "alloc_pd"));
	auto map_it = [&] {
		size_t n = len;
		void *p = n ? mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				   static_cast<off_t>(offset.load())) :
			      MAP_FAILED;

		if (n && p == MAP_FAILED) {
			EXPECT_EQ(errno, EINVAL);
			refused++;
		} else if (n) {
			memset(p, 0x77, n);
			munmap(p, n);
			mapped++;
		}
	};
	Background one(map_it), two(map_it);

	for (Rounds round("MapTest.RacingDestroy", 200); round.next();) {
		Cq cq(device_a().get(), 64);

		if (round.count() % 2) {
			len = cq.resp.mmap_len;
			offset = cq.resp.mmap_offset;
			stress::spin(pick(round.rng, 0, 20000));
			continue;
		}
		Qp qp(pd.get(), cq, cq);

		len = qp.resp.mmap_len;
		offset = qp.resp.mmap_offset;
		stress::spin(pick(round.rng, 0, 20000));
	}
	one.stop();
	two.stop();
	printf("# %lu mapped, %lu refused\n", mapped.load(), refused.load());
	EXPECT_GT(mapped, 0u);
	EXPECT_GT(refused, 0u);
}

// Children come and go, with everything mapped and registered, while messages are under way.
TEST_F(MapTest, ForkDuringTraffic)
{
	verbs::Pair pair;
	verbs::Bench bench(pair, 1 << 16, 2, 7);

	for (Rounds round("MapTest.ForkDuringTraffic"); round.next();) {
		Background forks([] {
			pid_t child = fork();
			int status;

			if (!child) {
				volatile uint8_t seen;

				for (auto [base, size] : mappings())
					seen = base[size / 2];
				(void)seen;
				_exit(0);
			}
			EXPECT_EQ(waitpid(child, &status, 0), child);
			EXPECT_EQ(status, 0);
		});

		for (int i = 0; i < 20 && !HasFailure(); i++) {
			verbs::Shape shape;

			shape.op =
				verbs::kAllOps[pick(round.rng, 0, std::size(verbs::kAllOps) - 1)];
			shape.length = pick(round.rng, 0, 1 << 14);
			bench.run(shape);
		}
	}
}

} // namespace
} // namespace raw
