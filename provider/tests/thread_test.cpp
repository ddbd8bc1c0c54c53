// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Several threads on one QP and one CQ, the device being one more: nothing is
 * lost, nothing comes twice, and each poster's WRs complete in its order.
 */
#include "fake_kernel.hpp"

#include <thread>

namespace {

class Threads : public fake::ProviderTest {
protected:
	static constexpr uint64_t PER_POSTER = 20000;

	/* Posts by either interface until everything went in; the ring is full much of the time. */
	void poster(uint64_t id, bool builder)
	{
		for (uint64_t n = 0; n < PER_POSTER;) {
			uint64_t wr_id = id << 32 | n;
			int err;

			if (builder) {
				ibv_wr_start(qpx);
				qpx->wr_id = wr_id;
				qpx->wr_flags = 0;
				ibv_wr_send(qpx);
				err = ibv_wr_complete(qpx);
			} else {
				ibv_send_wr wr = make_send(IBV_WR_SEND, nullptr, 0), *bad;

				wr.wr_id = wr_id;
				err = ibv_post_send(qp, &wr, &bad);
			}
			if (!err)
				n++;
			else if (err == ENOMEM)
				std::this_thread::yield();
			else
				FAIL() << err;
		}
	}

	/* Completes WQEs in order while the CQ has room. */
	void device_side(uint64_t total)
	{
		fake::KernelQp &of_qp = kqp();
		fake::KernelCq &of_cq = kcq();

		for (uint32_t index = 0; index < total;) {
			uint32_t tail = uroce::load_acquire(&of_qp.ctrl->sq_tail);
			uint32_t ci = uroce::load_acquire(&of_cq.ctrl->ci);

			if (index == tail || of_cq.pi - ci == of_cq.entries) {
				std::this_thread::yield();
				continue;
			}
			of_cq.complete(of_qp.sq_cqe(index++));
		}
	}
};

TEST_F(Threads, PostersPollerAndDevice)
{
	k.db->need_wakeup = 0;
	std::thread first([this] { poster(0, false); });
	std::thread second([this] { poster(1, true); });
	std::thread device_thread([this] { device_side(2 * PER_POSTER); });
	uint64_t next[2] = {0, 0};
	ibv_wc wc[4];

	while (next[0] + next[1] < 2 * PER_POSTER) {
		int n = ibv_poll_cq(cq, 4, wc);

		if (!n)
			std::this_thread::yield();
		for (int i = 0; i < n; i++) {
			uint64_t id = wc[i].wr_id >> 32;

			ASSERT_LT(id, 2U);
			ASSERT_EQ(wc[i].wr_id & 0xffffffff, next[id]++);
		}
	}
	first.join();
	second.join();
	device_thread.join();
	EXPECT_TRUE(k.kick_commands.empty());
}

/* QPs come and go, each leaving CQEs behind, while another thread polls their CQ. */
TEST_F(Threads, DestroyAgainstPoll)
{
	std::atomic<bool> stop{false};
	std::thread poller([this, &stop] {
		ibv_wc wc[4];

		while (!stop)
			ibv_poll_cq(cq, 4, wc);
	});

	for (int i = 0; i < 300; i++) {
		ibv_qp *other = make_qp(cq);
		fake::KernelQp &kother = k.qps.at(other);

		for (uint32_t n = 0; n < 4; n++)
			kcq().complete(kother.sq_cqe(n));
		k.next_qpn = other->qp_num; /* the next one gets the same number */
		ASSERT_EQ(ibv_destroy_qp(other), 0);
		while (uroce::load_acquire(&kcq().ctrl->ci) != kcq().pi)
			std::this_thread::yield();
	}
	stop = true;
	poller.join();
}

} /* namespace */
