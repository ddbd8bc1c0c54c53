// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What a region can be made of and changed into: re-registration, zero-based addresses, huge pages,
// device memory, dma-bufs. b owns, a uses.
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "background.hpp"
#include "scene.hpp"
#include "transfer.hpp"

namespace verbs {
namespace {

// WRITE, READ back and compare, at several places of a region of b; the bytes that b sees.
void expect_usable(Scene &s, uint64_t addr, uint32_t rkey, const uint8_t *bytes, size_t size)
{
	const size_t chunk = std::min<size_t>(size, 6000);
	Rng rng(11);

	for (size_t offset : {size_t(0), (size - chunk) / 2, size - chunk}) {
		fill_random(rng, s.local.data(), chunk);
		s.pair.a.post(SendWr(IBV_WR_RDMA_WRITE, 1, {s.local.sge(0, chunk)})
				      .remote(addr + offset, rkey));
		expect_wc(s.pair.a.wait_send(), 1);
		if (bytes) {
			ASSERT_EQ(memcmp(s.local.data(), bytes + offset, chunk), 0) << offset;
		}
		s.pair.a.post(SendWr(IBV_WR_RDMA_READ, 2, {s.local.sge(8192, chunk)})
				      .remote(addr + offset, rkey));
		expect_wc(s.pair.a.wait_send(), 2);
		ASSERT_EQ(memcmp(s.local.data(), s.local.data() + 8192, chunk), 0) << offset;
	}
}

void expect_status(Scene &s, SendWr wr, ibv_wc_status status)
{
	s.pair.a.post(wr);
	expect_wc(s.pair.a.wait_send(), wr.wr.wr_id, status);
	if (status != IBV_WC_SUCCESS)
		s.pair.reconnect(Path());
}

struct Mapped {
	explicit Mapped(size_t size, int flags = MAP_PRIVATE | MAP_ANONYMOUS,
			int prot = PROT_READ | PROT_WRITE, int fd = -1)
	    : size(size), data(static_cast<uint8_t *>(mmap(nullptr, size, prot, flags, fd, 0)))
	{
	}
	~Mapped()
	{
		if (data != MAP_FAILED)
			munmap(data, size);
	}
	Mapped(const Mapped &) = delete;

	const size_t size;
	uint8_t *const data;
};

// ---- re-registration ----

bool can_rereg(Scene &s)
{
	return ibv_rereg_mr(s.remote.mr(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
			    kAllAccess) == 0;
}

TEST(MemoryRereg, EveryCombination)
{
	for (int flags = 1; flags <= 7; flags++) {
		SCOPED_TRACE(flags);
		Scene s({}, {});
		Mapped other(40000);
		ibv_mr *mr = s.remote.mr();
		bool trans = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
		bool pd = flags & IBV_REREG_MR_CHANGE_PD;
		bool access = flags & IBV_REREG_MR_CHANGE_ACCESS;
		uint64_t addr =
			trans ? reinterpret_cast<uintptr_t>(other.data) + 100 : s.remote.addr();
		size_t length = trans ? 39000 : kSize;

		if (!can_rereg(s))
			GTEST_SKIP() << "no re-registration";
		memset(other.data, kRemoteByte, other.size);
		ASSERT_EQ(ibv_rereg_mr(mr, flags, pd ? s.other_pd_b.get() : nullptr,
				       trans ? other.data + 100 : nullptr, trans ? 39000 : 0,
				       access ? IBV_ACCESS_REMOTE_READ : 0),
			  0)
			<< strerror(errno);

		auto status = [&](bool good) {
			return good && !pd ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
		};
		expect_status(s, s.read(100).remote(addr, mr->rkey), status(true));
		expect_status(s, s.read(1).remote(addr + length - 1, mr->rkey), status(true));
		expect_status(s, s.read(2).remote(addr + length - 1, mr->rkey), status(false));
		expect_status(s, s.read(1).remote(addr - 1, mr->rkey), status(false));
		expect_status(s, s.write(100).remote(addr, mr->rkey), status(!access));
		if (trans)
			expect_status(s, s.read(1).remote(s.remote.addr(), mr->rkey),
				      status(false));

		// and all the way back
		ASSERT_EQ(
			ibv_rereg_mr(mr, 7, s.pair.b.pd.get(), s.remote.data(), kSize, kAllAccess),
			0)
			<< strerror(errno);
		expect_usable(s, s.remote.addr(), mr->rkey, s.remote.data(), kSize);
	}
}

// A re-registration that fails leaves the region as it was.
TEST(MemoryRereg, FailureChangesNothing)
{
	Scene s({}, {});
	Mapped hole(8192), read_only(8192, MAP_PRIVATE | MAP_ANONYMOUS, PROT_READ);
	ibv_mr *mr = s.remote.mr();

	if (!can_rereg(s))
		GTEST_SKIP() << "no re-registration";
	munmap(hole.data + 4096, 4096);
	const struct {
		int flags;
		void *addr;
		size_t length;
		int access, err;
	} cases[] = {
		{IBV_REREG_MR_CHANGE_TRANSLATION, hole.data, 8192, 0, EFAULT},
		{IBV_REREG_MR_CHANGE_TRANSLATION, read_only.data, 8192, 0, EFAULT},
		{IBV_REREG_MR_CHANGE_TRANSLATION, s.remote.data(), size_t(1) << 60, 0, 0},
		{IBV_REREG_MR_CHANGE_ACCESS, nullptr, 0, IBV_ACCESS_REMOTE_WRITE, EINVAL},
	};
	for (const auto &c : cases) {
		errno = 0;
		EXPECT_EQ(ibv_rereg_mr(mr, c.flags, nullptr, c.addr, c.length, c.access),
			  IBV_REREG_MR_ERR_CMD);
		if (c.err) {
			EXPECT_EQ(errno, c.err);
		}
		expect_usable(s, s.remote.addr(), mr->rkey, s.remote.data(), kSize);
	}
	EXPECT_EQ(ibv_rereg_mr(mr, 0, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_CMD);
	EXPECT_EQ(ibv_rereg_mr(mr, 8, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_INPUT);
}

// Memory registered for reading only, then for writing: the process must see what is written.
TEST(MemoryRereg, ReadOnlyBecomesWritable)
{
	Scene s({}, {});
	Mapped memory(kSize);
	Mr mr(check(ibv_reg_mr(s.pair.b.pd.get(), memory.data, kSize, IBV_ACCESS_REMOTE_READ),
		    "reg_mr"));
	uint64_t addr = reinterpret_cast<uintptr_t>(memory.data);

	if (!can_rereg(s))
		GTEST_SKIP() << "no re-registration";
	expect_status(s, s.write().remote(addr, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	ASSERT_EQ(
		ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kAllAccess),
		0);
	expect_usable(s, addr, mr->rkey, memory.data, kSize);
}

// Re-registered while a peer writes: what the region had before is its owner's again.
TEST(MemoryRereg, UnderWrites)
{
	for (int round = 0; round < 20; round++) {
		Scene s({}, {});
		Mapped other(kSize);
		std::atomic<bool> failed{false}, begun{false};

		if (!can_rereg(s))
			GTEST_SKIP() << "no re-registration";
		Thread writer([&] {
			for (uint64_t id = 0; !failed; id++) {
				s.pair.a.post(s.write(8192));
				ibv_wc wc = s.pair.a.wait_send();

				failed = wc.status != IBV_WC_SUCCESS;
				if (failed) {
					EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR) << wc;
				}
				begun = true;
			}
		});
		while (!begun)
			std::this_thread::yield();
		ASSERT_EQ(ibv_rereg_mr(s.remote.mr(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr,
				       other.data, kSize, 0),
			  0);
		memset(s.remote.data(), 0x77, kSize);
		writer.join();
		for (size_t i = 0; i < kSize; i++)
			ASSERT_EQ(s.remote.data()[i], 0x77) << i;
	}
}

// ---- addresses ----

TEST(MemoryAddress, ZeroBased)
{
	Scene s({}, {});
	Mapped memory(kSize);
	Mr mr(ibv_reg_mr(s.pair.b.pd.get(), memory.data + 50, 8000,
			 kAllAccess | IBV_ACCESS_ZERO_BASED));

	if (!mr && errno == EOPNOTSUPP)
		GTEST_SKIP() << "no zero-based regions";
	ASSERT_TRUE(mr) << strerror(errno);
	expect_usable(s, 0, mr->rkey, memory.data + 50, 8000);
	expect_status(s, s.read(1).remote(8000, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	expect_status(s, s.read(1).remote(-1ull, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	expect_status(s, s.read(1).remote(reinterpret_cast<uintptr_t>(memory.data), mr->rkey),
		      IBV_WC_REM_ACCESS_ERR);

	// as a source and a sink of b's own
	s.pair.b.post(SendWr(IBV_WR_RDMA_WRITE, 1, {{10, 100, mr->lkey}})
			      .remote(s.local.addr(), s.local.rkey()));
	expect_wc(s.pair.b.wait_send(), 1);
	EXPECT_EQ(memcmp(s.local.data(), memory.data + 60, 100), 0);
}

TEST(MemoryAddress, HugePages)
{
	constexpr size_t kHuge = 2 << 20;
	Mapped memory(4 * kHuge, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB);

	if (memory.data == MAP_FAILED)
		GTEST_SKIP() << "no huge pages: sysctl vm.nr_hugepages=8";
	for (size_t offset : {size_t(0), size_t(4096), kHuge - 100, size_t(12345)}) {
		Scene s({}, {});
		size_t size = 2 * kHuge + 5000;
		Mr mr(check(ibv_reg_mr(s.pair.b.pd.get(), memory.data + offset, size,
				       kAllAccess | IBV_ACCESS_HUGETLB),
			    "reg_mr"));

		expect_usable(s, reinterpret_cast<uintptr_t>(memory.data) + offset, mr->rkey,
			      memory.data + offset, size);
		// across the border of two huge pages
		expect_usable(s, reinterpret_cast<uintptr_t>(memory.data) + 2 * kHuge - 3000,
			      mr->rkey, memory.data + 2 * kHuge - 3000, 6000);
	}
}

// ---- device memory ----

using Dm = std::unique_ptr<ibv_dm, Destroy<ibv_free_dm>>;

uint64_t max_dm()
{
	ibv_device_attr_ex attr = {};

	check(ibv_query_device_ex(device_b().get(), nullptr, &attr), "query_device_ex");
	return attr.max_dm_size;
}

Dm alloc_dm(size_t length, uint32_t align = 0)
{
	ibv_alloc_dm_attr attr = {length, align, 0};

	return Dm(ibv_alloc_dm(device_b().get(), &attr));
}

TEST(MemoryDm, DataBothWays)
{
	if (!max_dm())
		GTEST_SKIP() << "no device memory";
	for (size_t offset : {0, 4, 4092, 5000}) {
		Scene s({}, {});
		constexpr size_t kDm = 20000;
		Dm dm = alloc_dm(kDm);
		std::vector<uint8_t> want(kDm), got(kDm);
		Rng rng(offset);

		ASSERT_TRUE(dm) << strerror(errno);
		// it is zeroed
		check(ibv_memcpy_from_dm(got.data(), dm.get(), 0, kDm), "memcpy_from_dm");
		EXPECT_EQ(got, want);

		fill_random(rng, want.data(), kDm);
		check(ibv_memcpy_to_dm(dm.get(), 0, want.data(), kDm), "memcpy_to_dm");
		Mr mr(check(ibv_reg_dm_mr(s.pair.b.pd.get(), dm.get(), offset, kDm - offset,
					  kAllAccess | IBV_ACCESS_ZERO_BASED),
			    "reg_dm_mr"));
		EXPECT_EQ(ibv_free_dm(dm.get()), EBUSY);

		// from there by READ, into there by WRITE
		s.pair.a.post(
			SendWr(IBV_WR_RDMA_READ, 1, {s.local.sge(0, 10000)}).remote(8, mr->rkey));
		expect_wc(s.pair.a.wait_send(), 1);
		EXPECT_EQ(memcmp(s.local.data(), &want[offset + 8], 10000), 0);
		fill_random(rng, s.local.data(), 10000);
		memcpy(&want[offset + 96], s.local.data(), 10000);
		s.pair.a.post(
			SendWr(IBV_WR_RDMA_WRITE, 2, {s.local.sge(0, 10000)}).remote(96, mr->rkey));
		expect_wc(s.pair.a.wait_send(), 2);
		check(ibv_memcpy_from_dm(got.data(), dm.get(), 0, kDm), "memcpy_from_dm");
		EXPECT_EQ(got, want);
		expect_status(s, s.read(1).remote(kDm - offset - 1, mr->rkey), IBV_WC_SUCCESS);
		expect_status(s, s.read(1).remote(kDm - offset, mr->rkey), IBV_WC_REM_ACCESS_ERR);
		expect_status(s, s.read(1).remote(-1ull, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	}
}

TEST(MemoryDm, Bounds)
{
	uint64_t max = max_dm();
	uint8_t word[8] = {};

	if (!max)
		GTEST_SKIP() << "no device memory";
	for (uint64_t length : {max + 1, uint64_t(1) << 32, ~uint64_t(0)}) {
		errno = 0;
		EXPECT_FALSE(alloc_dm(length));
		EXPECT_EQ(errno, ENOMEM) << length;
	}
	errno = 0;
	EXPECT_FALSE(alloc_dm(0));
	EXPECT_EQ(errno, EINVAL);
	errno = 0;
	EXPECT_FALSE(alloc_dm(4096, 40));
	EXPECT_EQ(errno, EINVAL);

	for (int i = 0; i < 3; i++) {
		Dm all = alloc_dm(max, 12);

		ASSERT_TRUE(all) << strerror(errno);
		errno = 0;
		EXPECT_FALSE(alloc_dm(1));
		EXPECT_EQ(errno, ENOMEM);
	}

	Dm dm = alloc_dm(100);
	Pd pd(check(ibv_alloc_pd(device_b().get()), "alloc_pd"));

	ASSERT_TRUE(dm);
	EXPECT_EQ(ibv_memcpy_to_dm(dm.get(), 92, word, 8), 0);
	for (uint64_t offset : {uint64_t(96), uint64_t(2), uint64_t(4096), ~uint64_t(3)}) {
		EXPECT_NE(ibv_memcpy_to_dm(dm.get(), offset, word, 8), 0) << offset;
		EXPECT_NE(ibv_memcpy_from_dm(word, dm.get(), offset, 8), 0) << offset;
	}
	EXPECT_FALSE(Mr(ibv_reg_dm_mr(pd.get(), dm.get(), 0, 101, IBV_ACCESS_ZERO_BASED)));
	EXPECT_FALSE(Mr(ibv_reg_dm_mr(pd.get(), dm.get(), 100, 1, IBV_ACCESS_ZERO_BASED)));
	EXPECT_FALSE(Mr(ibv_reg_dm_mr(pd.get(), dm.get(), 0, 100, 0))) << "not zero-based";
}

// ---- dma-bufs ----

// Of drm.h, which no package needs to be installed for
struct DumbBuffer {
	uint32_t height, width, bpp, flags;
	uint32_t handle, pitch; // out
	uint64_t size; // out
};
struct PrimeHandle {
	uint32_t handle, flags;
	int32_t fd; // out
};
constexpr unsigned long kCreateDumb = _IOWR('d', 0xb2, DumbBuffer);
constexpr unsigned long kPrimeToFd = _IOWR('d', 0x2d, PrimeHandle);

struct DmaBuf {
	explicit DmaBuf(size_t size) : size(size)
	{
		fd = from_udmabuf();
		if (fd < 0)
			fd = from_heap();
		if (fd < 0)
			fd = from_vgem();
	}
	~DmaBuf()
	{
		for (int f : {fd, memfd, card})
			if (f >= 0)
				close(f);
	}

	int from_udmabuf()
	{
		int dev = open("/dev/udmabuf", O_RDWR), buf;

		if (dev < 0)
			return -1;
		memfd = memfd_create("rc-test", MFD_ALLOW_SEALING);
		check(ftruncate(memfd, size), "ftruncate");
		check(fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK), "seal");
		udmabuf_create create = {uint32_t(memfd), UDMABUF_FLAGS_CLOEXEC, 0, size};
		buf = ioctl(dev, UDMABUF_CREATE, &create);
		close(dev);
		exporter = "udmabuf";
		return buf;
	}
	int from_heap()
	{
		int dev = open("/dev/dma_heap/system", O_RDWR);
		dma_heap_allocation_data data = {size, 0, O_RDWR | O_CLOEXEC, 0};

		if (dev < 0)
			return -1;
		exporter = "dma-heap";
		int err = ioctl(dev, DMA_HEAP_IOCTL_ALLOC, &data);

		close(dev);
		return err ? -1 : int(data.fd);
	}
	int from_vgem()
	{
		DumbBuffer dumb = {};
		PrimeHandle prime = {};

		card = open("/dev/dri/card0", O_RDWR);
		if (card < 0)
			return -1;
		dumb.width = 1024;
		dumb.height = size / 4096;
		dumb.bpp = 32;
		if (ioctl(card, kCreateDumb, &dumb))
			return -1;
		prime.handle = dumb.handle;
		prime.flags = O_RDWR | O_CLOEXEC;
		if (ioctl(card, kPrimeToFd, &prime))
			return -1;
		exporter = "vgem";
		return prime.fd;
	}

	const size_t size;
	const char *exporter = nullptr;
	int fd = -1, memfd = -1, card = -1;
};

TEST(MemoryDmaBuf, DataBothWays)
{
	constexpr size_t kBuf = 1 << 20;
	DmaBuf buf(kBuf);

	if (buf.fd < 0)
		GTEST_SKIP() << "no exporter of dma-bufs: udmabuf, dma-heap or vgem";
	printf("# dma-buf from %s\n", buf.exporter);
	for (uint64_t offset : {0, 100, 4096, 70000}) {
		Scene s({}, {});
		size_t length = kBuf - offset - 5;
		uint64_t iova = 0x7000000 + offset % 4096;
		ibv_mr *raw = ibv_reg_dmabuf_mr(s.pair.b.pd.get(), offset, length, iova, buf.fd,
						kAllAccess);

		if (!raw && errno == EOPNOTSUPP)
			GTEST_SKIP() << "no dma-buf regions";
		Mr mr(check(raw, "reg_dmabuf_mr"));
		Mapped view(kBuf, MAP_SHARED, PROT_READ | PROT_WRITE, buf.fd);
		const uint8_t *bytes = view.data == MAP_FAILED ? nullptr : view.data + offset;

		expect_usable(s, iova, mr->rkey, bytes, length);
		expect_status(s, s.read(1).remote(iova + length, mr->rkey), IBV_WC_REM_ACCESS_ERR);
		expect_status(s, s.read(1).remote(iova - 1, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	}
}

// The region holds the buffer, whoever closes it.
TEST(MemoryDmaBuf, OutlivesItsDescriptor)
{
	auto buf = std::make_unique<DmaBuf>(1 << 16);
	Scene s({}, {});

	if (buf->fd < 0)
		GTEST_SKIP() << "no exporter of dma-bufs: udmabuf, dma-heap or vgem";
	ibv_mr *raw = ibv_reg_dmabuf_mr(s.pair.b.pd.get(), 0, 1 << 16, 0, buf->fd, kAllAccess);
	if (!raw && errno == EOPNOTSUPP)
		GTEST_SKIP() << "no dma-buf regions";
	Mr mr(check(raw, "reg_dmabuf_mr"));

	buf.reset();
	expect_usable(s, 0, mr->rkey, nullptr, 1 << 16);
}

TEST(MemoryDmaBuf, BadArguments)
{
	DmaBuf buf(1 << 16);
	Pd pd(check(ibv_alloc_pd(device_b().get()), "alloc_pd"));

	if (buf.fd < 0)
		GTEST_SKIP() << "no exporter of dma-bufs: udmabuf, dma-heap or vgem";
	ibv_mr *probe = ibv_reg_dmabuf_mr(pd.get(), 0, 1 << 16, 0, buf.fd, kAllAccess);
	if (!probe && errno == EOPNOTSUPP)
		GTEST_SKIP() << "no dma-buf regions";
	Mr good(check(probe, "reg_dmabuf_mr"));

	const struct {
		uint64_t offset;
		size_t length;
		uint64_t iova;
		int fd, access, err;
	} cases[] = {
		{0, 0, 0, buf.fd, kAllAccess, EINVAL},
		{0, (1 << 16) + 1, 0, buf.fd, kAllAccess, EINVAL},
		{1 << 16, 1, 0, buf.fd, kAllAccess, EINVAL},
		{~uint64_t(0), 2, 4095, buf.fd, kAllAccess, EINVAL},
		{0, ~size_t(0), 0, buf.fd, kAllAccess, EINVAL},
		{0, 4096, 5, buf.fd, kAllAccess, EINVAL}, // not the same offset in a page
		{0, 4096, 0, buf.fd, IBV_ACCESS_REMOTE_WRITE, EINVAL},
		{0, 4096, 0, 0, kAllAccess, EINVAL}, // no dma-buf
		{0, 4096, 0, -1, kAllAccess, EBADF},
	};
	for (const auto &c : cases) {
		errno = 0;
		EXPECT_FALSE(Mr(
			ibv_reg_dmabuf_mr(pd.get(), c.offset, c.length, c.iova, c.fd, c.access)));
		EXPECT_EQ(errno, c.err) << c.offset << " " << c.length << " fd " << c.fd;
	}
}

} // namespace
} // namespace verbs
