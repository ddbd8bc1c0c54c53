// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * provider/pabi-NN.hpp against the installed libibverbs: a context made by the
 * real library gets a table whose every operation is a probe; each public verb
 * must end in the probe of its name.
 */
#include <cstring>
#include <string>

#include <fcntl.h>

#include <gtest/gtest.h>

#include "pabi.hpp"

namespace {

std::string called;

/* An operation that writes down its name. */
#define PROBE(name)                                 \
	template <class Ret, class... Args>         \
	Ret probe_##name(Args...)                   \
	{                                           \
		called = #name;                     \
		return Ret();                       \
	}                                           \
	template <class Ret, class... Args>         \
	void set_##name(Ret (**slot)(Args...))      \
	{                                           \
		*slot = probe_##name<Ret, Args...>; \
	}

PROBE(alloc_pd)
PROBE(alloc_parent_domain)
PROBE(alloc_td)
PROBE(dealloc_td)
PROBE(import_dm)
PROBE(import_mr)
PROBE(import_pd)
PROBE(query_rt_values)
PROBE(unimport_dm)
PROBE(unimport_mr)
PROBE(unimport_pd)
PROBE(close_xrcd)
PROBE(create_ah)
PROBE(create_cq)
PROBE(create_qp)
PROBE(create_qp_ex)
PROBE(create_srq)
PROBE(create_srq_ex)
PROBE(dealloc_pd)
PROBE(dereg_mr)
PROBE(destroy_ah)
PROBE(destroy_cq)
PROBE(destroy_qp)
PROBE(destroy_srq)
PROBE(free_context)
PROBE(modify_cq)
PROBE(get_srq_num)
PROBE(modify_qp)
PROBE(modify_srq)
PROBE(open_xrcd)
PROBE(open_qp)
PROBE(poll_cq)
PROBE(post_recv)
PROBE(post_send)
PROBE(post_srq_recv)
PROBE(query_device_ex)
PROBE(query_port)
PROBE(query_qp)
PROBE(query_srq)
PROBE(reg_mr)
PROBE(req_notify_cq)
PROBE(resize_cq)

struct TestContext {
	int before;
	verbs_context vctx; /* not first, to see that its offset is honoured */
};

class Pabi : public ::testing::Test {
protected:
	Pabi()
	{
		verbs_context_ops ops = {};

#define SET(name) set_##name(&ops.name)
		SET(alloc_pd);
		SET(alloc_parent_domain);
		SET(alloc_td);
		SET(dealloc_td);
		SET(import_dm);
		SET(import_mr);
		SET(import_pd);
		SET(query_rt_values);
		SET(unimport_dm);
		SET(unimport_mr);
		SET(unimport_pd);
		SET(close_xrcd);
		SET(create_ah);
		SET(create_cq);
		SET(create_qp);
		SET(create_qp_ex);
		SET(create_srq);
		SET(create_srq_ex);
		SET(dealloc_pd);
		SET(dereg_mr);
		SET(destroy_ah);
		SET(destroy_cq);
		SET(destroy_qp);
		SET(destroy_srq);
		SET(free_context);
		SET(modify_cq);
		SET(get_srq_num);
		SET(modify_qp);
		SET(modify_srq);
		SET(open_xrcd);
		SET(open_qp);
		SET(poll_cq);
		SET(post_recv);
		SET(post_send);
		SET(post_srq_recv);
		SET(query_device_ex);
		SET(query_port);
		SET(query_qp);
		SET(query_srq);
		SET(reg_mr);
		SET(req_notify_cq);
		SET(resize_cq);
#undef SET
		device.ops = &device_ops;
		device.refcount = 1;
		test_context = static_cast<TestContext *>(_verbs_init_and_alloc_context(
			&device.device, open("/dev/null", O_RDWR), sizeof(TestContext),
			reinterpret_cast<verbs_context *>(offsetof(TestContext, vctx)), 1));
		context = &test_context->vctx.context;
		verbs_set_ops(&test_context->vctx, &ops);
		pd.context = ah.context = cq.context = qp.qp.context = srq.srq.context =
			xrcd.xrcd.context = context;
		mr.ibv_mr.context = context;
		mr.ibv_mr.pd = &pd;
		called = "nothing";
	}

	~Pabi() override
	{
		if (!test_context)
			return;
		verbs_uninit_context(&test_context->vctx);
		free(test_context);
	}

	verbs_device device = {};
	verbs_device_ops device_ops = {};
	TestContext *test_context;
	ibv_context *context;
	ibv_pd pd = {};
	ibv_ah ah = {};
	ibv_cq cq = {};
	verbs_qp qp = {};
	verbs_srq srq = {};
	verbs_xrcd xrcd = {};
	verbs_mr mr = {};
};

TEST_F(Pabi, ContextKnowsItsDevice)
{
	EXPECT_EQ(context->device, &device.device);
	EXPECT_EQ(test_context->before, 0);
	EXPECT_EQ(verbs_get_ctx(context), &test_context->vctx);
	EXPECT_EQ(test_context->vctx.sz, sizeof(verbs_context));
}

#define EXPECT_OP(name, call)             \
	do {                              \
		called = "nothing";       \
		(void)(call);             \
		EXPECT_EQ(called, #name); \
	} while (0)

TEST_F(Pabi, DeviceAndMemory)
{
	ibv_device_attr device_attr;
	ibv_device_attr_ex device_attr_ex;
	ibv_port_attr port_attr;
	ibv_ah_attr ah_attr = {};
	char byte;

	EXPECT_OP(query_device_ex, ibv_query_device(context, &device_attr));
	EXPECT_OP(query_device_ex, ibv_query_device_ex(context, nullptr, &device_attr_ex));
	EXPECT_OP(query_port, ibv_query_port(context, 1, &port_attr));
	EXPECT_OP(alloc_pd, ibv_alloc_pd(context));
	EXPECT_OP(dealloc_pd, ibv_dealloc_pd(&pd));
	EXPECT_OP(reg_mr, ibv_reg_mr(&pd, &byte, 1, 0));
	EXPECT_OP(reg_mr, ibv_reg_mr_iova(&pd, &byte, 1, 4096, 0));
	EXPECT_OP(dereg_mr, ibv_dereg_mr(&mr.ibv_mr));
	EXPECT_OP(create_ah, ibv_create_ah(&pd, &ah_attr));
	EXPECT_OP(destroy_ah, ibv_destroy_ah(&ah));
}

TEST_F(Pabi, Queues)
{
	ibv_wc wc;
	ibv_qp_init_attr init_attr = {};
	ibv_qp_init_attr_ex init_attr_ex = {};
	ibv_qp_attr qp_attr = {};
	ibv_modify_cq_attr cq_attr = {};
	ibv_send_wr *bad_send, send = {};
	ibv_recv_wr *bad_recv, recv = {};

	EXPECT_OP(create_cq, ibv_create_cq(context, 1, nullptr, nullptr, 0));
	EXPECT_OP(poll_cq, ibv_poll_cq(&cq, 1, &wc));
	EXPECT_OP(req_notify_cq, ibv_req_notify_cq(&cq, 0));
	EXPECT_OP(modify_cq, ibv_modify_cq(&cq, &cq_attr));
	EXPECT_OP(resize_cq, ibv_resize_cq(&cq, 2));
	EXPECT_OP(destroy_cq, ibv_destroy_cq(&cq));
	EXPECT_OP(create_qp, ibv_create_qp(&pd, &init_attr));
	init_attr_ex.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	EXPECT_OP(create_qp_ex, ibv_create_qp_ex(context, &init_attr_ex));
	EXPECT_OP(modify_qp, ibv_modify_qp(&qp.qp, &qp_attr, 0));
	EXPECT_OP(query_qp, ibv_query_qp(&qp.qp, &qp_attr, 0, &init_attr));
	EXPECT_OP(post_send, ibv_post_send(&qp.qp, &send, &bad_send));
	EXPECT_OP(post_recv, ibv_post_recv(&qp.qp, &recv, &bad_recv));
	EXPECT_OP(destroy_qp, ibv_destroy_qp(&qp.qp));
}

TEST_F(Pabi, Domains)
{
	ibv_parent_domain_init_attr attr = {};
	ibv_td_init_attr td_attr = {};
	ibv_td td = {context};
	ibv_dm dm = {};
	ibv_values_ex values = {};

	dm.context = context;
	EXPECT_OP(alloc_parent_domain, ibv_alloc_parent_domain(context, &attr));
	EXPECT_OP(alloc_td, ibv_alloc_td(context, &td_attr));
	EXPECT_OP(dealloc_td, ibv_dealloc_td(&td));
	EXPECT_OP(import_pd, ibv_import_pd(context, 1));
	EXPECT_OP(unimport_pd, ibv_unimport_pd(&pd));
	EXPECT_OP(import_mr, ibv_import_mr(&pd, 1));
	EXPECT_OP(unimport_mr, ibv_unimport_mr(&mr.ibv_mr));
	EXPECT_OP(import_dm, ibv_import_dm(context, 1));
	EXPECT_OP(unimport_dm, ibv_unimport_dm(&dm));
	EXPECT_OP(query_rt_values, ibv_query_rt_values_ex(context, &values));
}

TEST_F(Pabi, SharedReceiveQueues)
{
	ibv_srq_init_attr init_attr = {};
	ibv_srq_init_attr_ex init_attr_ex = {};
	ibv_srq_attr srq_attr = {};
	ibv_recv_wr *bad_recv, recv = {};

	EXPECT_OP(create_srq, ibv_create_srq(&pd, &init_attr));
	init_attr_ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
	EXPECT_OP(create_srq_ex, ibv_create_srq_ex(context, &init_attr_ex));
	EXPECT_OP(modify_srq, ibv_modify_srq(&srq.srq, &srq_attr, IBV_SRQ_LIMIT));
	EXPECT_OP(query_srq, ibv_query_srq(&srq.srq, &srq_attr));
	EXPECT_OP(post_srq_recv, ibv_post_srq_recv(&srq.srq, &recv, &bad_recv));
	EXPECT_OP(destroy_srq, ibv_destroy_srq(&srq.srq));
}

TEST_F(Pabi, Xrc)
{
	ibv_xrcd_init_attr init_attr = {};
	ibv_qp_open_attr open_attr = {};
	uint32_t number;

	EXPECT_OP(open_xrcd, ibv_open_xrcd(context, &init_attr));
	EXPECT_OP(close_xrcd, ibv_close_xrcd(&xrcd.xrcd));
	EXPECT_OP(get_srq_num, ibv_get_srq_num(&srq.srq, &number));
	EXPECT_OP(open_qp, ibv_open_qp(context, &open_attr));
}

TEST_F(Pabi, FreeContext)
{
	EXPECT_OP(free_context, ibv_close_device(context));
}

/* What is not in the table must be answered by libibverbs. */
TEST_F(Pabi, UnsetOperationsAreUnsupported)
{
	ibv_counters_init_attr counters_attr = {};

	EXPECT_EQ(ibv_create_counters(context, &counters_attr), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	errno = 0;
	EXPECT_EQ(ibv_alloc_mw(&pd, IBV_MW_TYPE_1), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_EQ(called, "nothing");
}

/* ibv_qp_to_qp_ex() looks at comp_mask, which moved between releases. */
TEST_F(Pabi, CompMaskOfAQp)
{
	EXPECT_EQ(ibv_qp_to_qp_ex(&qp.qp), nullptr);
	qp.comp_mask = VERBS_QP_EX;
	EXPECT_EQ(ibv_qp_to_qp_ex(&qp.qp), &qp.qp_ex);

	/* Any other 32 bit word of the struct would not do. */
	for (size_t offset = sizeof(ibv_qp_ex); offset < sizeof(qp); offset += 4) {
		uint32_t all = ~0U;

		memset(static_cast<void *>(&qp), 0, sizeof(qp));
		memcpy(reinterpret_cast<char *>(&qp) + offset, &all, 4);
		EXPECT_EQ(ibv_qp_to_qp_ex(&qp.qp) != nullptr,
			  offset == offsetof(verbs_qp, comp_mask));
	}
}

} /* namespace */
