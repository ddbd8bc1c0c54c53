// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Contexts and domains: attributes, parent domains with allocators, thread domains, what a second
// context of the same open device can import, children.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "transfer.hpp"

namespace verbs {
namespace {

using Td = std::unique_ptr<ibv_td, Destroy<ibv_dealloc_td>>;

ibv_device_attr_ex query_ex(Device &dev)
{
	ibv_device_attr_ex attr = {};

	check(ibv_query_device_ex(dev.get(), nullptr, &attr), "query_device_ex");
	return attr;
}

TEST(Context, ExtendedAttributes)
{
	ibv_device_attr_ex attr = query_ex(device_a());

	EXPECT_EQ(memcmp(&attr.orig_attr, &device_a().attr, sizeof(attr.orig_attr)), 0);
	EXPECT_EQ(attr.phys_port_cnt_ex, 1u);
	EXPECT_EQ(attr.comp_mask, 0u);
	// what there is not
	EXPECT_EQ(attr.tso_caps.max_tso, 0u);
	EXPECT_EQ(attr.rss_caps.supported_qpts, 0u);
	EXPECT_EQ(attr.max_wq_type_rq, 0u);
	EXPECT_EQ(attr.packet_pacing_caps.supported_qpts, 0u);
	EXPECT_EQ(attr.raw_packet_caps, 0u);
	EXPECT_EQ(attr.tm_caps.max_num_tags, 0u);
	EXPECT_EQ(attr.pci_atomic_caps.fetch_add, 0u);

	if (!attr.completion_timestamp_mask)
		GTEST_SKIP() << "no timestamps";
	EXPECT_EQ(attr.completion_timestamp_mask, ~uint64_t(0));
	EXPECT_EQ(attr.hca_core_clock, 1000000u); // kHz: ns
	EXPECT_GT(attr.cq_mod_caps.max_cq_count, 0);
	EXPECT_GT(attr.cq_mod_caps.max_cq_period, 0);
	EXPECT_GT(attr.max_dm_size, 0u);

	const uint32_t datagrams =
		IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
	const uint32_t reliable =
		datagrams | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
	EXPECT_EQ(attr.odp_caps.general_caps, uint64_t{IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT});
	EXPECT_EQ(attr.odp_caps.per_transport_caps.rc_odp_caps, reliable);
	EXPECT_EQ(attr.odp_caps.per_transport_caps.uc_odp_caps, datagrams | IBV_ODP_SUPPORT_WRITE);
	EXPECT_EQ(attr.odp_caps.per_transport_caps.ud_odp_caps, datagrams);
	EXPECT_EQ(attr.xrc_odp_caps, reliable);
}

// All ways to ask for GIDs give the same answers.
TEST(Context, Gids)
{
	ibv_context *context = device_a().get();
	std::vector<ibv_gid_entry> table(device_a().port.gid_tbl_len);
	ssize_t num = ibv_query_gid_table(context, table.data(), table.size(), 0);

	ASSERT_GT(num, 0);
	for (ssize_t i = 0; i < num; i++) {
		ibv_gid_entry entry = {};
		ibv_gid gid;
		uint32_t index = table[i].gid_index;

		ASSERT_EQ(ibv_query_gid_ex(context, 1, index, &entry, 0), 0) << index;
		ASSERT_EQ(ibv_query_gid(context, 1, index, &gid), 0);
		EXPECT_EQ(memcmp(&entry.gid, &table[i].gid, sizeof(gid)), 0);
		EXPECT_EQ(memcmp(&entry.gid, &gid, sizeof(gid)), 0);
		EXPECT_EQ(entry.gid_type, unsigned(IBV_GID_TYPE_ROCE_V2));
		EXPECT_EQ(entry.port_num, 1u);
		EXPECT_GT(entry.ndev_ifindex, 0u);
	}
	ibv_gid_entry entry;
	EXPECT_EQ(ibv_query_gid_ex(context, 1, device_a().port.gid_tbl_len, &entry, 0), EINVAL);
	EXPECT_EQ(ibv_query_gid_ex(context, 2, 0, &entry, 0), EINVAL);
}

// The last byte of a message may be there before the first: nobody promises anything.
TEST(Context, DataInOrder)
{
	Endpoint end(device_a());

	for (auto op : {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ})
		EXPECT_EQ(ibv_query_qp_data_in_order(end.qp.get(), op, 0), 0);
}

// -------- parent domains --------

// An allocator that keeps books. Memory is filled, since nobody promises zeroes.
struct Books {
	static void *alloc(ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type)
	{
		auto *books = static_cast<Books *>(context);
		void *ptr = nullptr;

		EXPECT_NE(pd, nullptr);
		EXPECT_GT(size, 0u);
		books->calls++;
		if (books->fail)
			return nullptr;
		if (books->use_default)
			return IBV_ALLOCATOR_USE_DEFAULT;
		check(posix_memalign(&ptr, alignment, size), "posix_memalign");
		memset(ptr, 0xa5, size);
		books->live[ptr] = type;
		return ptr;
	}

	static void free(ibv_pd *pd, void *context, void *ptr, uint64_t type)
	{
		auto *books = static_cast<Books *>(context);

		EXPECT_NE(pd, nullptr);
		ASSERT_EQ(books->live.count(ptr), 1u);
		EXPECT_EQ(books->live[ptr], type);
		books->live.erase(ptr);
		::free(ptr);
	}

	bool fail = false, use_default = false;
	int calls = 0;
	std::map<void *, uint64_t> live; // and their types
};

class ParentDomain : public testing::Test {
protected:
	void SetUp() override
	{
		attr.pd = pd.get();
		ibv_pd *probe = ibv_alloc_parent_domain(device_a().get(), &attr);

		if (!probe && errno == EOPNOTSUPP)
			GTEST_SKIP() << "no parent domains";
		check(ibv_dealloc_pd(check(probe, "alloc_parent_domain")), "dealloc_pd");
	}

	void with_books()
	{
		attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
				 IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
		attr.alloc = Books::alloc;
		attr.free = Books::free;
		attr.pd_context = &books;
	}

	// NULL with errno
	ibv_pd *make()
	{
		return ibv_alloc_parent_domain(device_a().get(), &attr);
	}

	void refused(int err)
	{
		errno = 0;
		Pd domain(make());

		EXPECT_EQ(domain, nullptr);
		EXPECT_EQ(errno, err);
	}

	// Everything of both ends, and its extended CQs, in parent domains: data arrives.
	void traffic()
	{
		QpConfig config;

		config.make_pd = [this](ibv_context *context) {
			auto &owner = context == device_a().get() ? pd : peer_pd;
			ibv_parent_domain_init_attr own = attr;

			own.pd = owner.get();
			if (context != device_a().get())
				own.td = nullptr;
			return ibv_alloc_parent_domain(context, &own);
		};
		Pair pair(config);
		Bench bench(pair, 3000, 1, 5);

		for (Op op : kAllOps) {
			Shape s;

			s.op = op;
			s.length = 3000;
			for (int i = 0; i < 20; i++)
				bench.run(s);
		}
	}

	Pd pd{check(ibv_alloc_pd(device_a().get()), "alloc_pd")};
	Pd peer_pd{check(ibv_alloc_pd(device_b().get()), "alloc_pd")};
	Books books;
	ibv_parent_domain_init_attr attr = {};
};

TEST_F(ParentDomain, TrafficWithoutAllocator)
{
	traffic();
}

TEST_F(ParentDomain, TrafficWithAllocator)
{
	with_books();
	traffic();
	EXPECT_GT(books.calls, 0);
	EXPECT_TRUE(books.live.empty());
}

TEST_F(ParentDomain, TrafficWithDefaultAllocator)
{
	with_books();
	books.use_default = true;
	traffic();
	EXPECT_GT(books.calls, 0);
}

TEST_F(ParentDomain, TrafficInAThreadDomain)
{
	ibv_td_init_attr td_attr = {};
	Td td(check(ibv_alloc_td(device_a().get(), &td_attr), "alloc_td"));

	attr.td = td.get();
	traffic();
	{
		Pd domain(check(make(), "alloc_parent_domain"));

		EXPECT_EQ(ibv_dealloc_td(td.get()), EBUSY);
		EXPECT_EQ(ibv_dealloc_pd(pd.get()), EBUSY);
	}
	td_attr.comp_mask = 1;
	errno = 0;
	EXPECT_EQ(ibv_alloc_td(device_a().get(), &td_attr), nullptr);
	EXPECT_EQ(errno, EINVAL);
}

TEST_F(ParentDomain, ObjectsHoldIt)
{
	with_books();
	Pd domain(check(make(), "alloc_parent_domain"));
	ibv_cq_init_attr_ex cq_attr = {};
	ibv_qp_init_attr qp_attr = {};

	cq_attr.cqe = 16;
	cq_attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
	cq_attr.parent_domain = domain.get();
	Cq cq(ibv_cq_ex_to_cq(check(ibv_create_cq_ex(device_a().get(), &cq_attr), "create_cq_ex")));
	EXPECT_EQ(books.live.size(), 1u);
	EXPECT_EQ(ibv_dealloc_pd(domain.get()), EBUSY);
	EXPECT_EQ(ibv_resize_cq(cq.get(), 64), 0);

	qp_attr.send_cq = qp_attr.recv_cq = cq.get();
	qp_attr.cap = {4, 4, 1, 1, 0};
	qp_attr.qp_type = IBV_QPT_RC;
	Qp qp(check(ibv_create_qp(domain.get(), &qp_attr), "create_qp"));
	EXPECT_EQ(books.live.size(), 2u);
	std::map<uint64_t, int> types;
	for (auto [ptr, type] : books.live)
		types[type]++;
	EXPECT_EQ(types.size(), 2u);
	EXPECT_EQ(ibv_dealloc_pd(domain.get()), EBUSY);
	qp.reset();
	cq.reset();
	EXPECT_TRUE(books.live.empty());
}

// Memory of the parent domain belongs to its PD.
TEST_F(ParentDomain, RegionsOfBoth)
{
	Pair pair;
	attr.pd = pair.a.pd.get();
	Pd domain(check(make(), "alloc_parent_domain"));
	Memory local(domain.get(), 4096), remote(pair.b.pd.get(), 4096);

	memset(local.data(), 0x42, 4096);
	pair.a.post(SendWr(IBV_WR_RDMA_WRITE, 1, {local.sge(0, 4096)})
			    .remote(remote.addr(), remote.rkey()));
	expect_wc(pair.a.wait_send(), 1);
	EXPECT_EQ(memcmp(local.data(), remote.data(), 4096), 0);
}

TEST_F(ParentDomain, FailingAllocator)
{
	with_books();
	Pd domain(check(make(), "alloc_parent_domain"));
	Endpoint end(device_a());
	ibv_qp_init_attr init = {};

	init.send_cq = end.send_cq.get();
	init.recv_cq = end.recv_cq.get();
	init.cap = {4, 4, 1, 1, 0};
	init.qp_type = IBV_QPT_RC;
	books.fail = true;
	errno = 0;
	EXPECT_EQ(ibv_create_qp(domain.get(), &init), nullptr);
	EXPECT_EQ(errno, ENOMEM);
	books.fail = false;
	// a create that fails later gives the memory back
	init.qp_type = IBV_QPT_RAW_PACKET;
	EXPECT_EQ(ibv_create_qp(domain.get(), &init), nullptr);
	EXPECT_TRUE(books.live.empty());
}

TEST_F(ParentDomain, BadAttributes)
{
	Pd domain(check(make(), "alloc_parent_domain"));
	ibv_parent_domain_init_attr good = attr;

	attr.pd = nullptr;
	refused(EINVAL);
	attr.pd = domain.get(); // no nesting
	refused(EINVAL);
	attr = good;
	attr.comp_mask = 1 << 20;
	refused(EINVAL);
	with_books();
	attr.free = nullptr;
	refused(EINVAL);

	ibv_cq_init_attr_ex cq_attr = {};
	cq_attr.cqe = 16;
	cq_attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
	cq_attr.parent_domain = pd.get(); // is none
	errno = 0;
	EXPECT_EQ(ibv_create_cq_ex(device_a().get(), &cq_attr), nullptr);
	EXPECT_EQ(errno, EINVAL);
}

// -------- import --------

class Import : public testing::Test {
protected:
	void SetUp() override
	{
		errno = 0;
		context.reset(ibv_import_device(dup(device_b().get()->cmd_fd)));
		if (!context && errno == EOPNOTSUPP)
			GTEST_SKIP() << "no import";
		ASSERT_TRUE(context) << strerror(errno);
	}

	Context context;
};

TEST_F(Import, SameDevice)
{
	ibv_device_attr attr = {};

	ASSERT_EQ(ibv_query_device(context.get(), &attr), 0);
	EXPECT_EQ(memcmp(&attr, &device_b().attr, sizeof(attr)), 0);
	EXPECT_EQ(context->num_comp_vectors, device_b().get()->num_comp_vectors);
}

// A QP of the imported context, in the imported PD, serves the region of the first context.
TEST_F(Import, PdAndRegion)
{
	Endpoint a(device_a()), owner(device_b());
	Memory local(a.pd.get(), 4096), remote(owner.pd.get(), 4096);
	ibv_pd *pd = check(ibv_import_pd(context.get(), owner.pd->handle), "import_pd");
	ibv_mr *mr = check(ibv_import_mr(pd, remote.mr()->handle), "import_mr");
	Path path;

	EXPECT_EQ(mr->rkey, remote.rkey());
	EXPECT_EQ(mr->lkey, remote.lkey());
	EXPECT_EQ(mr->length, remote.size());
	{
		Cq cq(check(ibv_create_cq(context.get(), 16, nullptr, nullptr, 0), "create_cq"));
		ibv_qp_init_attr init = {};

		init.send_cq = init.recv_cq = cq.get();
		init.cap = {4, 4, 1, 1, 0};
		init.qp_type = IBV_QPT_RC;
		Qp qp(check(ibv_create_qp(pd, &init), "create_qp"));
		ibv_qp_attr attr = {};
		attr.qp_state = IBV_QPS_INIT;
		attr.port_num = 1;
		attr.qp_access_flags = kQpAccess;
		check(ibv_modify_qp(qp.get(), &attr, kInitMask), "INIT");
		attr = rtr_attr(device_b(), device_a(), a.qp->qp_num, path, path.psn_a);
		check(ibv_modify_qp(qp.get(), &attr, kRtrMask), "RTR");
		attr = rts_attr(device_b(), path, path.psn_b);
		check(ibv_modify_qp(qp.get(), &attr, kRtsMask), "RTS");
		a.to_init();
		attr = rtr_attr(device_a(), device_b(), qp->qp_num, path, path.psn_b);
		check(ibv_modify_qp(a.qp.get(), &attr, kRtrMask), "RTR");
		a.to_rts(path, path.psn_a);

		memset(local.data(), 0x42, 4096);
		a.post(SendWr(IBV_WR_RDMA_WRITE, 1, {local.sge(0, 4096)})
			       .remote(remote.addr(), mr->rkey));
		expect_wc(a.wait_send(), 1);
		EXPECT_EQ(memcmp(local.data(), remote.data(), 4096), 0);

		// it can post, too: its doorbells were found again
		ibv_sge sge = {remote.addr(), 64, mr->lkey};
		ibv_send_wr wr = {}, *bad;
		wr.wr_id = 9;
		wr.opcode = IBV_WR_SEND;
		wr.send_flags = IBV_SEND_SIGNALED;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		a.recv(8, {local.sge(0, 64)});
		check(ibv_post_send(qp.get(), &wr, &bad), "post_send");
		expect_wc(Endpoint::wait(cq.get()), 9);
		expect_wc(a.wait_recv(), 8);
	}
	ibv_unimport_mr(mr);
	ibv_unimport_pd(pd);
	// what was imported is still there
	owner.query(IBV_QP_STATE);
	remote.deregister();
}

TEST_F(Import, DeviceMemory)
{
	ibv_alloc_dm_attr attr = {};
	uint32_t word = 0x12345678, seen = 0;

	attr.length = 4096;
	ibv_dm *dm = ibv_alloc_dm(device_b().get(), &attr);
	if (!dm)
		GTEST_SKIP() << "no device memory";
	// struct verbs_dm of rdma-core: the handle is behind it
	uint32_t handle;
	memcpy(&handle, reinterpret_cast<char *>(dm) + sizeof(*dm), sizeof(handle));
	ibv_dm *imported = check(ibv_import_dm(context.get(), handle), "import_dm");
	EXPECT_EQ(imported->handle, dm->handle);
	EXPECT_EQ(imported->comp_mask, dm->comp_mask);
	EXPECT_EQ(ibv_memcpy_to_dm(imported, 64, &word, sizeof(word)), 0);
	EXPECT_EQ(ibv_memcpy_from_dm(&seen, dm, 64, sizeof(seen)), 0);
	EXPECT_EQ(seen, word);
	EXPECT_NE(ibv_memcpy_to_dm(imported, 4096, &word, sizeof(word)), 0);
	ibv_unimport_dm(imported);
	seen = 0;
	EXPECT_EQ(ibv_memcpy_from_dm(&seen, dm, 64, sizeof(seen)), 0);
	EXPECT_EQ(seen, word);

	// its region
	Pd pd(check(ibv_alloc_pd(device_b().get()), "alloc_pd"));
	Mr mr(check(ibv_reg_dm_mr(pd.get(), dm, 0, 4096, kAllAccess | IBV_ACCESS_ZERO_BASED),
		    "reg_dm_mr"));
	ibv_pd *imported_pd = check(ibv_import_pd(context.get(), pd->handle), "import_pd");
	ibv_mr *imported_mr = check(ibv_import_mr(imported_pd, mr->handle), "import_mr");
	EXPECT_EQ(imported_mr->length, 4096U);
	EXPECT_EQ(imported_mr->rkey, mr->rkey);
	ibv_unimport_mr(imported_mr);
	ibv_unimport_pd(imported_pd);
	mr.reset();
	EXPECT_EQ(ibv_free_dm(dm), 0);
	EXPECT_EQ(ibv_import_dm(context.get(), handle), nullptr);
}

TEST_F(Import, BadHandles)
{
	Endpoint owner(device_b());
	ibv_pd *pd = check(ibv_import_pd(context.get(), 0x7fffffff), "import_pd");

	EXPECT_EQ(ibv_import_mr(pd, 0x7fffffff), nullptr);
	EXPECT_EQ(ibv_import_dm(context.get(), 0x7fffffff), nullptr);
	char byte;
	EXPECT_EQ(ibv_reg_mr(pd, &byte, 1, 0), nullptr);
	ibv_unimport_pd(pd);
}

// Either context may be closed first.
TEST_F(Import, OutlivesTheFirst)
{
	Context first(check(ibv_open_device(device_b().get()->device), "open_device"));
	Context second(check(ibv_import_device(dup(first->cmd_fd)), "import_device"));

	first.reset();
	Pd pd(check(ibv_alloc_pd(second.get()), "alloc_pd"));
	Cq cq(check(ibv_create_cq(second.get(), 16, nullptr, nullptr, 0), "create_cq"));
}

// -------- fork --------

int uverbs_mappings()
{
	std::ifstream maps("/proc/self/maps");
	std::string line;
	int n = 0;

	while (std::getline(maps, line))
		n += line.find("/infiniband/uverbs") != std::string::npos;
	return n;
}

// A child has none of the queues, and so can spoil none.
TEST(Fork, ChildrenHaveNoQueues)
{
	Pair pair;
	Memory local(pair.a.pd.get(), 4096), remote(pair.b.pd.get(), 4096);
	int status = -1;

	if (!uverbs_mappings())
		GTEST_SKIP() << "no mappings";
	pid_t child = fork();
	if (!child)
		_exit(uverbs_mappings() ? 1 : 0);
	ASSERT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	EXPECT_GT(uverbs_mappings(), 0);
	memset(local.data(), 0x42, 4096);
	pair.a.post(SendWr(IBV_WR_RDMA_WRITE, 1, {local.sge(0, 4096)})
			    .remote(remote.addr(), remote.rkey()));
	expect_wc(pair.a.wait_send(), 1);
	EXPECT_EQ(memcmp(local.data(), remote.data(), 4096), 0);
}

// One that lives on, and writes into what it inherited: the device keeps to the parent's pages.
TEST(Fork, AChildThatLives)
{
	constexpr size_t kSize = 64 << 10;
	Pair pair;
	Memory local(pair.a.pd.get(), kSize), remote(pair.b.pd.get(), kSize);
	int to_child[2], from_child[2], status = -1;
	char byte = 0;

	check(pipe(to_child), "pipe");
	check(pipe(from_child), "pipe");
	memset(local.data(), 0x11, kSize);
	memset(remote.data(), 0x22, kSize);
	pid_t child = fork();
	if (!child) {
		close(to_child[1]);
		memset(local.data(), 0x33, kSize / 2);
		memset(remote.data(), 0x44, kSize / 2);
		check(write(from_child[1], "x", 1) == 1 ? 0 : -1, "write");
		check(read(to_child[0], &byte, 1) < 0 ? -1 : 0, "read"); // the parent is done
		bool same = true;
		for (size_t i = 0; i < kSize; i++)
			same &= local.data()[i] == (i < kSize / 2 ? 0x33 : 0x11) &&
				remote.data()[i] == (i < kSize / 2 ? 0x44 : 0x22);
		_exit(same ? 0 : 1);
	}
	ASSERT_EQ(read(from_child[0], &byte, 1), 1);
	for (int round = 1; round <= 3; round++) {
		memset(local.data(), round, kSize);
		pair.a.post(SendWr(IBV_WR_RDMA_WRITE, round, {local.sge(0, kSize)})
				    .remote(remote.addr(), remote.rkey()));
		expect_wc(pair.a.wait_send(), round);
		EXPECT_EQ(memcmp(local.data(), remote.data(), kSize), 0);
		memset(remote.data(), 0x50 + round, kSize);
		pair.a.post(SendWr(IBV_WR_RDMA_READ, round, {local.sge(0, kSize)})
				    .remote(remote.addr(), remote.rkey()));
		expect_wc(pair.a.wait_send(), round);
		EXPECT_EQ(memcmp(local.data(), remote.data(), kSize), 0);
	}
	for (int fd : {to_child[0], to_child[1], from_child[0], from_child[1]})
		close(fd);
	ASSERT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0) << "the child's memory";
}

} // namespace
} // namespace verbs
