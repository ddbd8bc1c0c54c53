// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Parent domains, thread domains, and what a context imports. */
#include "fake_kernel.hpp"

#include <cstdlib>

namespace {

struct Allocator {
	static void *alloc(ibv_pd *, void *context, size_t size, size_t alignment, uint64_t type)
	{
		auto *self = static_cast<Allocator *>(context);

		EXPECT_EQ(type >> 32, uint64_t{UROCE_DRIVER_ID});
		self->allocs++;
		if (!self->works)
			return nullptr;
		void *ptr =
			aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
		memset(ptr, 0xa5, size);
		return ptr;
	}

	static void free(ibv_pd *, void *context, void *ptr, uint64_t)
	{
		static_cast<Allocator *>(context)->frees++;
		::free(ptr);
	}

	bool works = true;
	int allocs = 0, frees = 0;
};

class Domain : public fake::ProviderTest {
protected:
	Domain()
	{
		attr.pd = pd;
		attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
				 IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
		attr.alloc = Allocator::alloc;
		attr.free = Allocator::free;
		attr.pd_context = &allocator;
	}

	ibv_qp *qp_in(ibv_pd *domain)
	{
		ibv_qp_init_attr init = {};

		init.send_cq = init.recv_cq = cq;
		init.qp_type = IBV_QPT_RC;
		return uroce::create_qp(domain, &init);
	}

	Allocator allocator;
	ibv_parent_domain_init_attr attr = {};
	ibv_td_init_attr td_attr = {};
};

TEST_F(Domain, EverythingIsHeldAndGivenBack)
{
	ibv_td *td = uroce::alloc_td(context, &td_attr);

	attr.td = td;
	ibv_pd *domain = uroce::alloc_parent_domain(context, &attr);
	ASSERT_NE(domain, nullptr);
	EXPECT_EQ(domain->handle, pd->handle);
	EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
	EXPECT_EQ(uroce::dealloc_td(td), EBUSY);

	ibv_qp *in_domain = qp_in(domain);
	ASSERT_NE(in_domain, nullptr);
	EXPECT_EQ(allocator.allocs, 1);
	EXPECT_EQ(ibv_dealloc_pd(domain), EBUSY);
	EXPECT_EQ(ibv_destroy_qp(in_domain), 0);
	EXPECT_EQ(allocator.frees, 1);

	ibv_cq_init_attr_ex cq_attr = {};
	cq_attr.cqe = 5;
	cq_attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
	cq_attr.parent_domain = domain;
	ibv_cq_ex *cqx = uroce::create_cq_ex(context, &cq_attr);
	ASSERT_NE(cqx, nullptr);
	EXPECT_EQ(allocator.allocs, 2);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cqx)), 0);
	EXPECT_EQ(allocator.frees, 2);

	EXPECT_EQ(ibv_dealloc_pd(domain), 0);
	EXPECT_EQ(uroce::dealloc_td(td), 0);
}

TEST_F(Domain, FailuresGiveBack)
{
	ibv_pd *domain = uroce::alloc_parent_domain(context, &attr);

	k.create_qp_err = EINVAL;
	EXPECT_EQ(qp_in(domain), nullptr);
	EXPECT_EQ(errno, EINVAL);
	k.create_qp_err = 0;
	EXPECT_EQ(allocator.allocs, allocator.frees);
	allocator.works = false;
	EXPECT_EQ(qp_in(domain), nullptr);
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_EQ(ibv_dealloc_pd(domain), 0);
}

TEST_F(Domain, BadAttributes)
{
	auto refused = [this](auto spoil) {
		ibv_parent_domain_init_attr bad = attr;

		spoil(bad);
		errno = 0;
		EXPECT_EQ(uroce::alloc_parent_domain(context, &bad), nullptr);
		EXPECT_EQ(errno, EINVAL);
	};
	ibv_pd *domain = uroce::alloc_parent_domain(context, &attr);

	refused([](auto &bad) { bad.pd = nullptr; });
	refused([=](auto &bad) { bad.pd = domain; });
	refused([](auto &bad) { bad.alloc = nullptr; });
	refused([](auto &bad) { bad.free = nullptr; });
	refused([](auto &bad) { bad.comp_mask |= 4; });
	td_attr.comp_mask = 1;
	EXPECT_EQ(uroce::alloc_td(context, &td_attr), nullptr);
	EXPECT_EQ(ibv_dealloc_pd(domain), 0);
}

/* The imported context rings the doorbells of the first one. */
TEST_F(Domain, ImportedContext)
{
	ibv_context *second = import_context();

	ASSERT_NE(second, nullptr);
	uroce::to_context(second)->db->reserved0[0] = 77;
	EXPECT_EQ(k.db->reserved0[0], 77U);

	ibv_pd *imported = uroce::import_pd(second, 5);
	EXPECT_EQ(imported->handle, 5U);
	EXPECT_EQ(imported->context, second);
	ibv_mr *mr = uroce::import_mr(imported, 6);
	EXPECT_EQ(mr->handle, 6U);
	int before = k.commands;
	uroce::unimport_mr(mr);
	uroce::unimport_pd(imported);
	EXPECT_EQ(k.commands, before);
	EXPECT_EQ(ibv_close_device(second), 0);
}

TEST_F(Domain, ImportFails)
{
	int mappings = k.user_mappings();

	k.get_context_err = EIO;
	errno = 0;
	EXPECT_EQ(import_context(), nullptr);
	EXPECT_EQ(errno, EIO);
	k.get_context_err = 0;
	k.simple_err = EINVAL;
	errno = 0;
	EXPECT_EQ(uroce::import_mr(pd, 6), nullptr);
	EXPECT_EQ(errno, EINVAL);
	k.simple_err = 0;
	EXPECT_EQ(k.user_mappings(), mappings);
}

} /* namespace */
