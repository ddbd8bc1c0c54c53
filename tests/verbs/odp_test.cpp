// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// On-demand paging: memory that is not there when it is wanted, that goes while it is used, that
// becomes other memory. b owns, a uses.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "background.hpp"
#include "scene.hpp"
#include "transfer.hpp"

namespace verbs {
namespace {

const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));
constexpr int kOdpAccess = kAllAccess | IBV_ACCESS_ON_DEMAND;

bool has_odp(bool implicit)
{
	ibv_device_attr_ex attr = {};

	check(ibv_query_device_ex(device_a().get(), nullptr, &attr), "query_device_ex");
	return attr.odp_caps.general_caps & (implicit ? IBV_ODP_SUPPORT_IMPLICIT : IBV_ODP_SUPPORT);
}

// Memory of whole pages that nobody has touched, with holes on either side.
struct Pages {
	explicit Pages(size_t count) : size(count * kPage)
	{
		void *p = mmap(nullptr, size + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

		check(p == MAP_FAILED ? -1 : 0, "mmap");
		data = static_cast<uint8_t *>(p) + kPage;
		map(0, count);
	}
	~Pages()
	{
		munmap(data - kPage, size + 2 * kPage);
	}
	Pages(const Pages &) = delete;

	uint64_t addr(size_t offset = 0) const
	{
		return reinterpret_cast<uintptr_t>(data) + offset;
	}
	// New memory in place of what there was
	void map(size_t first, size_t count, int prot = PROT_READ | PROT_WRITE)
	{
		void *p = mmap(data + first * kPage, count * kPage, prot,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

		check(p == MAP_FAILED ? -1 : 0, "mmap");
	}
	void unmap(size_t first, size_t count)
	{
		check(munmap(data + first * kPage, count * kPage), "munmap");
	}

	const size_t size;
	uint8_t *data;
};

// A pair, and at each end pages behind a key: a region of theirs, or all memory there is.
struct Odp {
	explicit Odp(bool implicit, size_t pages = 64, const QpConfig &config = {})
	    : pair(config, patient()), local(pages), remote(pages),
	      mr_a(reg(pair.a.pd.get(), local, implicit)),
	      mr_b(reg(pair.b.pd.get(), remote, implicit))
	{
	}

	// Faults take their time; nothing is lost.
	static Path patient()
	{
		Path path;

		path.timeout = 18;
		return path;
	}
	static Mr reg(ibv_pd *pd, Pages &pages, bool implicit)
	{
		return Mr(check(implicit ? ibv_reg_mr(pd, nullptr, SIZE_MAX, kOdpAccess) :
					   ibv_reg_mr(pd, pages.data, pages.size, kOdpAccess),
				"reg_mr on demand"));
	}
	ibv_sge sge(size_t offset, size_t length) const
	{
		return {local.addr(offset), static_cast<uint32_t>(length), mr_a->lkey};
	}
	ibv_sge recv_sge(size_t offset, size_t length) const
	{
		return {remote.addr(offset), static_cast<uint32_t>(length), mr_b->lkey};
	}
	SendWr rdma(ibv_wr_opcode op, size_t offset, size_t length) const
	{
		return SendWr(op, 1, {sge(offset, length)}).remote(remote.addr(offset), mr_b->rkey);
	}
	void run(SendWr wr, ibv_wc_status status = IBV_WC_SUCCESS)
	{
		pair.a.post(wr);
		expect_wc(pair.a.wait_send(), 1, status);
	}

	Pair pair;
	Pages local, remote;
	Mr mr_a, mr_b;
};

int advise(ibv_pd *pd, ibv_advise_mr_advice advice, ibv_sge sge, uint32_t flags)
{
	return ibv_advise_mr(pd, advice, flags, &sge, 1);
}

class OdpKind : public testing::TestWithParam<bool> {
protected:
	void SetUp() override
	{
		if (!has_odp(GetParam()))
			GTEST_SKIP() << "no on-demand paging";
	}
	bool implicit() const
	{
		return GetParam();
	}
};

INSTANTIATE_TEST_SUITE_P(, OdpKind, testing::Bool(),
			 [](auto &info) { return info.param ? "Implicit" : "Explicit"; });

// ---- memory that was never touched ----

TEST_P(OdpKind, ReadOfNothingIsZeroes)
{
	Odp s(implicit());
	CounterDelta faults(device_b(), "page_faults");

	memset(s.local.data, 1, s.local.size);
	s.run(s.rdma(IBV_WR_RDMA_READ, 100, 20 * kPage));
	for (size_t i = 100; i < 100 + 20 * kPage; i++)
		ASSERT_EQ(s.local.data[i], 0) << i;
	EXPECT_EQ(s.local.data[99], 1);
	EXPECT_EQ(s.local.data[100 + 20 * kPage], 1);
	EXPECT_GT(faults.moved(), 0U);
}

TEST_P(OdpKind, EveryOperationOnUntouchedPages)
{
	QpConfig config;

	config.recv_sge = 2;
	Odp s(implicit(), 512, config);
	size_t at = 10; // each on pages of its own
	auto next = [&] { return at += 24 * kPage; };

	for (ibv_wr_opcode op : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
		for (size_t length : {size_t(1), kPage, 9 * kPage + 7}) {
			size_t offset = next();
			uint8_t *from = (op == IBV_WR_RDMA_READ ? s.remote : s.local).data + offset;

			memset(from, 0x5a, length);
			s.run(s.rdma(op, offset, length));
			ASSERT_EQ(memcmp(s.local.data + offset, s.remote.data + offset, length), 0);
			ASSERT_EQ(s.remote.data[offset + length - 1], 0x5a);
		}
	}
	for (size_t length : {size_t(1), kPage, 9 * kPage + 7}) {
		size_t offset = next();

		memset(s.local.data + offset, 0x5b, length);
		s.pair.b.recv(2,
			      {s.recv_sge(offset, kPage), s.recv_sge(offset + kPage, 10 * kPage)});
		s.run(SendWr(IBV_WR_SEND, 1, {s.sge(offset, length)}));
		expect_wc(s.pair.b.wait_recv(), 2);
		ASSERT_EQ(memcmp(s.local.data + offset, s.remote.data + offset, length), 0);
	}
	for (int i = 0; i < 3; i++) {
		size_t offset = next() - 10;
		uint64_t *word = reinterpret_cast<uint64_t *>(s.remote.data + offset);
		uint64_t *result = reinterpret_cast<uint64_t *>(s.local.data + offset);

		s.run(s.rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, offset, 8).atomic(5));
		EXPECT_EQ(*result, 0U);
		EXPECT_EQ(*word, 5U);
		s.run(s.rdma(IBV_WR_ATOMIC_CMP_AND_SWP, offset, 8).atomic(5, 77));
		EXPECT_EQ(*result, 5U);
		EXPECT_EQ(*word, 77U);
	}
	// source and destination of one operation, neither there
	size_t offset = next();
	s.run(s.rdma(IBV_WR_RDMA_WRITE, offset, 3 * kPage));
	EXPECT_EQ(s.remote.data[offset + kPage], 0);
}

// Atomics are carried out once, also when their result finds no memory.
TEST_P(OdpKind, AtomicsOnceWhereverTheResultGoes)
{
	Odp s(implicit(), 128);
	uint64_t *word = reinterpret_cast<uint64_t *>(s.remote.data);

	for (uint64_t i = 0; i < 100; i++) {
		size_t offset = (i + 1) * kPage;

		s.run(SendWr(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, {s.sge(offset, 8)})
			      .remote(s.remote.addr(), s.mr_b->rkey)
			      .atomic(1));
		ASSERT_EQ(*reinterpret_cast<uint64_t *>(s.local.data + offset), i);
		ASSERT_EQ(*word, i + 1);
		if (i % 3 == 0)
			s.remote.map(20, 1); // not the word's page
	}
}

TEST_P(OdpKind, UnreliableServices)
{
	for (ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_UD}) {
		QpConfig config;

		config.type = type;
		config.recv_sge = 2;
		Odp s(implicit(), 64, config);
		Ah ah = type == IBV_QPT_UD ? s.pair.a.ah_for(s.pair.b) : nullptr;

		for (size_t i = 0; i < 8; i++) {
			size_t offset = i * 4 * kPage, grh = type == IBV_QPT_UD ? 40 : 0;
			SendWr wr(IBV_WR_SEND, 1, {s.sge(offset, 700)});

			memset(s.local.data + offset, 0x60 + static_cast<int>(i), 700);
			s.pair.b.recv(2,
				      {s.recv_sge(offset, 20), s.recv_sge(offset + kPage, 1000)});
			if (type == IBV_QPT_UD)
				wr.to(ah.get(), s.pair.b.qp->qp_num);
			s.run(wr);
			expect_wc(s.pair.b.wait_recv(), 2);
			size_t skip = grh ? kPage + grh - 20 : kPage;
			size_t done = grh ? 0 : 20;
			ASSERT_EQ(memcmp(s.local.data + offset + done,
					 s.remote.data + offset + skip, 700 - done),
				  0);
		}
	}
}

// ---- memory that is not there, or not for that ----

TEST_P(OdpKind, RemoteHole)
{
	for (ibv_wr_opcode op : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
		Odp s(implicit());

		s.remote.unmap(8, 1);
		s.run(s.rdma(op, 0, 8 * kPage));
		CounterDelta faults(device_b(), "page_faults");
		s.run(s.rdma(op, 7 * kPage, 2 * kPage), IBV_WC_REM_ACCESS_ERR);
		EXPECT_LE(faults.moved(), 6U); // of both ends; told once, not tried for ever
		EXPECT_EQ(s.pair.a.state(), IBV_QPS_ERR);
		EXPECT_EQ(s.pair.b.state(), IBV_QPS_ERR);
		s.pair.reconnect(Odp::patient());
		// and when there is memory again, it is used
		s.remote.map(8, 1);
		s.run(s.rdma(op, 7 * kPage, 2 * kPage));
		s.pair.a.expect_quiet();
	}
}

TEST_P(OdpKind, RemoteHoleUnderAnAtomic)
{
	Odp s(implicit());

	s.remote.unmap(8, 1);
	s.run(s.rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, 8 * kPage, 8).atomic(1), IBV_WC_REM_ACCESS_ERR);
}

TEST_P(OdpKind, LocalHole)
{
	for (ibv_wr_opcode op : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
		Odp s(implicit());

		s.local.unmap(8, 1);
		s.run(s.rdma(op, 7 * kPage, 2 * kPage), IBV_WC_LOC_PROT_ERR);
		EXPECT_EQ(s.pair.a.state(), IBV_QPS_ERR);
	}
}

TEST_P(OdpKind, ReceiveHole)
{
	Odp s(implicit());

	s.remote.unmap(8, 1);
	s.pair.b.recv(2, {s.recv_sge(7 * kPage, 2 * kPage)});
	s.run(SendWr(IBV_WR_SEND, 1, {s.sge(0, 2 * kPage)}), IBV_WC_REM_OP_ERR);
	expect_wc(s.pair.b.wait_recv(), 2, IBV_WC_LOC_PROT_ERR);
}

// memfd_secret(2): out of the kernel's reach
TEST_P(OdpKind, SecretMemory)
{
	Odp s(implicit());
	int fd = static_cast<int>(syscall(SYS_memfd_secret, 0));

	if (fd < 0)
		GTEST_SKIP() << "no memfd_secret(2), needs secretmem.enable=1";
	check(ftruncate(fd, 4 * kPage), "ftruncate");
	for (uint8_t *data : {s.local.data, s.remote.data})
		check(mmap(data, 2 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			   data == s.local.data ? 0 : 2 * kPage) == MAP_FAILED ?
			      -1 :
			      0,
		      "mmap");
	close(fd);
	memset(s.local.data, 5, 2 * kPage);

	for (ibv_wr_opcode op : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
		s.run(SendWr(op, 1, {s.sge(8 * kPage, 8)}).remote(s.remote.addr(), s.mr_b->rkey),
		      IBV_WC_REM_ACCESS_ERR);
		s.pair.reconnect(Odp::patient());
		s.run(SendWr(op, 1, {s.sge(0, 8)}).remote(s.remote.addr(8 * kPage), s.mr_b->rkey),
		      IBV_WC_LOC_PROT_ERR);
		s.pair.reconnect(Odp::patient());
	}
	EXPECT_EQ(advise(s.pair.b.pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			 s.recv_sge(0, kPage), 0),
		  EFAULT);
	EXPECT_EQ(std::count(s.local.data, s.local.data + 2 * kPage, 5), 2 * kPage);
}

TEST_P(OdpKind, MemoryForReadingOnly)
{
	Odp s(implicit());

	memset(s.remote.data, 0x77, s.remote.size);
	check(mprotect(s.remote.data + 4 * kPage, 4 * kPage, PROT_READ), "mprotect");
	s.run(s.rdma(IBV_WR_RDMA_READ, 0, 16 * kPage));
	EXPECT_EQ(memcmp(s.local.data, s.remote.data, 16 * kPage), 0);
	s.run(s.rdma(IBV_WR_RDMA_WRITE, 0, 4 * kPage));
	s.run(s.rdma(IBV_WR_RDMA_WRITE, 4 * kPage, 8), IBV_WC_REM_ACCESS_ERR);
	EXPECT_EQ(s.remote.data[4 * kPage], 0x77);
	s.pair.reconnect(Odp::patient());
	check(mprotect(s.remote.data + 4 * kPage, 4 * kPage, PROT_READ | PROT_WRITE), "mprotect");
	memset(s.local.data, 0x78, s.local.size);
	s.run(s.rdma(IBV_WR_RDMA_WRITE, 4 * kPage, 8));
	EXPECT_EQ(s.remote.data[4 * kPage], 0x78);
}

// ---- memory that changes ----

TEST_P(OdpKind, NewMemoryInTheSamePlace)
{
	Odp s(implicit());
	CounterDelta gone(device_b(), "page_invalidations");

	for (uint8_t round = 1; round < 40; round++) {
		memset(s.local.data, round, 4 * kPage);
		s.remote.map(0, 3);
		s.run(s.rdma(IBV_WR_RDMA_WRITE, 10, 2 * kPage));
		for (size_t i = 0; i < 3 * kPage; i++)
			ASSERT_EQ(s.remote.data[i], i >= 10 && i < 10 + 2 * kPage ? round : 0) << i;
	}
	EXPECT_GT(gone.moved(), 30U);
}

// After a fork the device has the parent's pages, whoever of the two writes first.
TEST_P(OdpKind, Fork)
{
	Odp s(implicit());

	memset(s.local.data, 1, s.local.size);
	s.run(s.rdma(IBV_WR_RDMA_WRITE, 0, 16 * kPage));
	for (uint8_t round = 2; round < 12; round++) {
		int go[2], result[2];
		char byte = 0;

		check(pipe(go), "pipe");
		check(pipe(result), "pipe");
		pid_t child = fork();
		if (!child) {
			close(go[1]);
			if (read(go[0], &byte, 1) == 1)
				byte = s.remote.data[5 * kPage] == round - 1;
			_exit(write(result[1], &byte, 1) != 1);
		}
		memset(s.local.data, round, s.local.size);
		s.run(s.rdma(IBV_WR_RDMA_WRITE, 0, 16 * kPage));
		for (size_t i = 0; i < 16 * kPage; i++)
			ASSERT_EQ(s.remote.data[i], round) << i;
		EXPECT_EQ(write(go[1], "x", 1), 1);
		EXPECT_EQ(read(result[0], &byte, 1), 1);
		EXPECT_EQ(byte, 1) << "the child has seen what came for its parent";
		waitpid(child, nullptr, 0);
		for (int fd : {go[0], go[1], result[0], result[1]})
			close(fd);
	}
}

// Data stays whole while pages are taken away at random: forks protect all, swapping takes.
TEST_P(OdpKind, UnderChurn)
{
	Odp s(implicit(), 256);
	Rng rng(3);

	Background churn([&] {
		pid_t child = fork();

		if (!child)
			_exit(0);
		waitpid(child, nullptr, 0);
		for (Pages *pages : {&s.local, &s.remote})
			madvise(pages->data, pages->size, MADV_PAGEOUT);
	});
	for (int i = 0; i < rounds(60); i++) {
		size_t length = pick(rng, 1, 200 * kPage), offset = pick(rng, 0, 50 * kPage);
		bool read = i % 2;
		uint8_t *from = (read ? s.remote : s.local).data + offset;
		uint8_t *to = (read ? s.local : s.remote).data + offset;

		fill_random(rng, from, length);
		s.pair.a.post(s.rdma(read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, offset, length));
		ibv_wc wc = s.pair.a.wait_send();
		expect_wc(wc, 1);
		if (wc.status || memcmp(from, to, length)) {
			ADD_FAILURE() << "round " << i << " length " << length;
			break;
		}
	}
}

// What one message wants of a region comes at once, whichever way the bytes go. Page by page, a
// process whose memory is taken away as quickly would never see the end.
TEST_P(OdpKind, FaultsAreForAllThatIsWanted)
{
	const ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND};

	for (ibv_wr_opcode op : ops) {
		SCOPED_TRACE(op);
		Odp s(implicit(), 256);

		if (op == IBV_WR_SEND)
			s.pair.b.recv(2, {s.recv_sge(0, s.remote.size)});
		CounterDelta faults(device_b(), "page_faults"), local(device_b(), "local_msgs");
		s.run(s.rdma(op, 0, s.remote.size));
		if (!local.moved()) // packets: each for itself
			continue;
		EXPECT_LE(faults.moved(), 8U); // of both ends; an implicit region has parts
	}
}

// Deregistered with faults under way: the operation is done or refused, nothing hangs.
TEST_P(OdpKind, DeregisterUnderFaults)
{
	for (int i = 0; i < rounds(30); i++) {
		Odp s(implicit(), 64);

		s.pair.a.post(s.rdma(IBV_WR_RDMA_WRITE, 0, 64 * kPage));
		if (i % 2)
			s.mr_b.reset();
		else
			s.mr_a.reset();
		ibv_wc wc = s.pair.a.wait_send();
		if (wc.status != IBV_WC_SUCCESS) {
			EXPECT_EQ(wc.status, i % 2 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_LOC_PROT_ERR);
		}
	}
}

// ---- prefetch ----

TEST_P(OdpKind, PrefetchedPagesDoNotFault)
{
	Odp s(implicit(), 1200); // more than a part of an implicit region
	ibv_pd *pd = s.pair.b.pd.get();

	memset(s.local.data, 9, s.local.size);
	check(advise(s.pair.a.pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH, s.sge(0, s.local.size),
		     IBV_ADVISE_MR_FLAG_FLUSH),
	      "advise_mr");
	check(advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, s.recv_sge(0, s.remote.size),
		     IBV_ADVISE_MR_FLAG_FLUSH),
	      "advise_mr");
	CounterDelta faults(device_b(), "page_faults");
	s.run(s.rdma(IBV_WR_RDMA_WRITE, 0, s.remote.size));
	EXPECT_EQ(faults.moved(), 0U);
	EXPECT_EQ(memcmp(s.local.data, s.remote.data, s.remote.size), 0);
}

// One table of pages, many that fill it: what is there, what is wanted, and faults.
TEST_P(OdpKind, PrefetchesAtOnce)
{
	Odp s(implicit(), 256);
	ibv_sge all = s.recv_sge(0, s.remote.size);
	std::deque<Background> threads;

	for (auto advice :
	     {IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
	      IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE})
		threads.emplace_back([&s, all, advice] {
			EXPECT_EQ(advise(s.pair.b.pd.get(), advice, all, 0), 0);
		});
	for (int i = 0; i < rounds(60) && !HasFailure(); i++) {
		memset(s.local.data, i, s.local.size);
		check(madvise(s.remote.data, s.remote.size, MADV_DONTNEED), "madvise");
		s.run(s.rdma(IBV_WR_RDMA_WRITE, 0, s.remote.size));
		EXPECT_EQ(memcmp(s.local.data, s.remote.data, s.remote.size), 0) << i;
	}
}

TEST_P(OdpKind, PrefetchErrors)
{
	Odp s(implicit());
	ibv_pd *pd = s.pair.b.pd.get();
	ibv_sge sge = s.recv_sge(0, s.remote.size);
	Mr for_reading(check(ibv_reg_mr(pd, s.remote.data, s.remote.size,
					IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND),
			     "reg_mr"));

	for (uint32_t flags : {0, int(IBV_ADVISE_MR_FLAG_FLUSH)}) {
		for (auto advice :
		     {IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
		      IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT})
			EXPECT_EQ(advise(pd, advice, sge, flags), 0);
		sge.lkey ^= 1;
		EXPECT_EQ(advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, sge, flags), EFAULT);
		sge.lkey = for_reading->lkey;
		EXPECT_EQ(advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, sge, flags), 0);
		EXPECT_EQ(advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, sge, flags), EFAULT);
		sge.lkey = s.mr_b->lkey;
		EXPECT_EQ(advise(pd, static_cast<ibv_advise_mr_advice>(9), sge, flags), EOPNOTSUPP);
	}
	sge.length++; // the page behind
	EXPECT_EQ(advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, sge, IBV_ADVISE_MR_FLAG_FLUSH), EFAULT);
}

// ---- what does not go together ----

TEST(Odp, NoWindowsAndNoReregistration)
{
	if (!has_odp(false))
		GTEST_SKIP() << "no on-demand paging";
	Odp s(false);
	Mr mr(check(ibv_reg_mr(s.pair.a.pd.get(), s.local.data, s.local.size,
			       kOdpAccess | IBV_ACCESS_MW_BIND),
		    "reg_mr"));
	Mw mw(check(ibv_alloc_mw(s.pair.a.pd.get(), IBV_MW_TYPE_2), "alloc_mw"));

	EXPECT_NE(
		ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kAllAccess),
		0);
	EXPECT_EQ(errno, EOPNOTSUPP);
	s.run(SendWr(IBV_WR_BIND_MW, 1)
		      .bind(mw.get(), ibv_inc_rkey(mw->rkey), mr.get(), s.local.addr(), kPage,
			    IBV_ACCESS_REMOTE_READ),
	      IBV_WC_MW_BIND_ERR);
}

// More contexts than may have a queue of their own for page faults: the last ones share.
TEST(Odp, ManyContexts)
{
	if (!has_odp(false))
		GTEST_SKIP() << "no on-demand paging";
	struct User {
		std::unique_ptr<ibv_context, decltype(&ibv_close_device)> context;
		Pd pd;
		Mr mr;
	};
	std::vector<User> users;
	char data;

	for (int i = 0; i < 300; i++) {
		User user{{check(ibv_open_device(device_a().get()->device), "open_device"),
			   ibv_close_device},
			  {},
			  {}};

		user.pd.reset(check(ibv_alloc_pd(user.context.get()), "alloc_pd"));
		user.mr.reset(check(ibv_reg_mr(user.pd.get(), &data, 1, kOdpAccess), "reg_mr"));
		users.push_back(std::move(user));
	}
	Device late(ibv_get_device_name(device_a().get()->device), device_a().gid_index);
	Endpoint from(late), to(device_b());
	Path path;
	const size_t size = 16 * kPage;
	auto *memory = static_cast<uint8_t *>(
		mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	Mr mr(check(ibv_reg_mr(from.pd.get(), memory, size, kOdpAccess), "reg_mr"));
	Memory target(to.pd.get(), size);

	from.to_init();
	to.to_init();
	from.to_rtr(to, path, path.psn_b);
	to.to_rtr(from, path, path.psn_a);
	from.to_rts(path, path.psn_a);
	from.post(SendWr(IBV_WR_RDMA_WRITE, 1,
			 {{reinterpret_cast<uintptr_t>(memory), uint32_t(size), mr->lkey}})
			  .remote(target.addr(), target.rkey()));
	expect_wc(from.wait_send(), 1);
	mr.reset();
	munmap(memory, size);
}

TEST(Odp, LengthsThatCannotBe)
{
	if (!has_odp(false))
		GTEST_SKIP() << "no on-demand paging";
	Pd pd(check(ibv_alloc_pd(device_a().get()), "alloc_pd"));
	void *high = reinterpret_cast<void *>(~uintptr_t(kPage) + 1);

	for (size_t length : {size_t(0), 2 * kPage, SIZE_MAX, SIZE_MAX - 100}) {
		EXPECT_EQ(ibv_reg_mr(pd.get(), high, length, kOdpAccess), nullptr) << length;
		EXPECT_NE(errno, 0);
	}
	// an address space's worth of tables
	EXPECT_EQ(
		ibv_reg_mr(pd.get(), reinterpret_cast<void *>(kPage), size_t(1) << 60, kOdpAccess),
		nullptr);
}

} // namespace
} // namespace verbs
