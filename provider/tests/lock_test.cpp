// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which locks the data path takes: none where the application promised one thread, by a thread
 * domain or IBV_CREATE_CQ_ATTR_SINGLE_THREADED. The linker hands the provider the functions below
 * in place of libc's (--wrap, CMakeLists.txt).
 */
#include "fake_kernel.hpp"

#include <functional>

namespace {

thread_local unsigned int locks;

} /* namespace */

/* Whatever the provider could lock with; objects.hpp names what it does. */
#define COUNTED(function, type)                       \
	extern "C" int __real_##function(type *lock); \
	extern "C" int __wrap_##function(type *lock)  \
	{                                             \
		locks++;                              \
		return __real_##function(lock);       \
	}

COUNTED(pthread_spin_lock, pthread_spinlock_t)
COUNTED(pthread_spin_trylock, pthread_spinlock_t)
COUNTED(pthread_mutex_lock, pthread_mutex_t)
COUNTED(pthread_mutex_trylock, pthread_mutex_t)
COUNTED(pthread_rwlock_rdlock, pthread_rwlock_t)
COUNTED(pthread_rwlock_wrlock, pthread_rwlock_t)

namespace {

enum class Promise { None, ThreadDomain, SingleThreadedCq };

class Locks : public fake::ProviderTest {
protected:
	/* What a program has: a parent domain, with or without a promise, and objects in it. */
	void make(Promise promise)
	{
		ibv_td_init_attr td_attr = {};
		ibv_parent_domain_init_attr domain_attr = {};
		ibv_cq_init_attr_ex cq_attr = {};

		if (promise == Promise::ThreadDomain)
			td = uroce::alloc_td(context, &td_attr);
		domain_attr.pd = pd;
		domain_attr.td = td;
		domain = uroce::alloc_parent_domain(context, &domain_attr);
		cq_attr.cqe = 5;
		cq_attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
		cq_attr.parent_domain = domain;
		if (promise == Promise::SingleThreadedCq) {
			cq_attr.comp_mask |= IBV_CQ_INIT_ATTR_MASK_FLAGS;
			cq_attr.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
		}
		cqx = uroce::create_cq_ex(context, &cq_attr);
		own_cq = ibv_cq_ex_to_cq(cqx);
		make_queues();
	}

	void make_queues()
	{
		ibv_srq_init_attr srq_attr = {nullptr, {3, 1, 0}};
		ibv_pd *plain = std::exchange(pd, domain); /* make_qp's */

		own_qp = make_qp(own_cq);
		own_qpx = ibv_qp_to_qp_ex(own_qp);
		set_state(own_qp, IBV_QPS_RTS);
		pd = plain;
		srq = ibv_create_srq(domain, &srq_attr);
	}

	~Locks() override
	{
		EXPECT_EQ(ibv_destroy_qp(own_qp), 0);
		EXPECT_EQ(ibv_destroy_srq(srq), 0);
		EXPECT_EQ(ibv_destroy_cq(own_cq), 0);
		EXPECT_EQ(ibv_dealloc_pd(domain), 0);
		if (td) {
			EXPECT_EQ(uroce::dealloc_td(td), 0);
		}
	}

	static unsigned int taken_by(const std::function<void()> &work)
	{
		unsigned int before = locks;

		work();
		return locks - before;
	}

	void complete()
	{
		k.cqs.at(own_cq).complete(k.qps.at(own_qp).sq_cqe(next++));
	}

	/* Locks taken by posting to the queues, in every way there is, and by using the CQ. */
	unsigned int posting()
	{
		ibv_sge sge = {0x1000, 100, 7};
		ibv_send_wr send = make_send(IBV_WR_SEND, &sge);
		ibv_recv_wr recv = {1, nullptr, &sge, 1};

		return taken_by([&] {
			EXPECT_EQ(ibv_post_send(own_qp, &send, &bad_send), 0);
			EXPECT_EQ(ibv_post_recv(own_qp, &recv, &bad_recv), 0);
			EXPECT_EQ(ibv_post_srq_recv(srq, &recv, &bad_recv), 0);
			for (bool abort : {false, true}) {
				ibv_wr_start(own_qpx);
				ibv_wr_send(own_qpx);
				ibv_wr_set_sge(own_qpx, sge.lkey, sge.addr, sge.length);
				if (abort)
					ibv_wr_abort(own_qpx);
				else
					EXPECT_EQ(ibv_wr_complete(own_qpx), 0);
			}
			EXPECT_FALSE(k.kick_commands.empty());
		});
	}

	unsigned int completing()
	{
		ibv_poll_cq_attr poll = {};
		ibv_wc wc;

		complete();
		complete();
		return taken_by([&] {
			EXPECT_EQ(ibv_req_notify_cq(own_cq, 0), 0);
			EXPECT_EQ(ibv_poll_cq(own_cq, 1, &wc), 1);
			EXPECT_EQ(ibv_start_poll(cqx, &poll), 0);
			EXPECT_EQ(ibv_next_poll(cqx), ENOENT);
			ibv_end_poll(cqx);
			EXPECT_EQ(ibv_poll_cq(own_cq, 1, &wc), 0);
			EXPECT_EQ(ibv_start_poll(cqx, &poll), ENOENT);
		});
	}

	ibv_td *td = nullptr;
	ibv_pd *domain = nullptr;
	ibv_cq_ex *cqx = nullptr;
	ibv_cq *own_cq = nullptr;
	ibv_qp *own_qp = nullptr;
	ibv_qp_ex *own_qpx = nullptr;
	ibv_srq *srq = nullptr;
	uint32_t next = 0;
};

/* One for each call; two builders, and four polls with arming one more */
TEST_F(Locks, OneForEachCallWithoutAPromise)
{
	make(Promise::None);
	EXPECT_EQ(posting(), 5U);
	EXPECT_EQ(completing(), 5U);
}

TEST_F(Locks, NoneInAThreadDomain)
{
	make(Promise::ThreadDomain);
	EXPECT_EQ(posting(), 0U);
	EXPECT_EQ(completing(), 0U);
}

TEST_F(Locks, NoneOfASingleThreadedCq)
{
	make(Promise::SingleThreadedCq);
	EXPECT_EQ(posting(), 5U); /* said of the CQ only */
	EXPECT_EQ(completing(), 0U);
}

} /* namespace */
