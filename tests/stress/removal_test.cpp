// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A process with open devices and 16 busy QPs, from which the device is taken away by somebody else
// (removal.sh). It lives on: verbs say EIO, and its mappings are harmless.
#include <cstdio>
#include <set>

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "raw.hpp"
#include "stress.hpp"

namespace stress {
namespace {

using namespace verbs;

constexpr int kPairs = 16;

bool gone(Device &dev)
{
	ibv_port_attr port;
	int err = ibv_query_port(dev.get(), 1, &port);

	EXPECT_TRUE(!err || err == EIO) << strerror(err);
	return err == EIO;
}

// Traffic of all kinds; errors end a QP's part in it.
struct Load {
	Load()
	{
		Path path;

		path.timeout = 16; // 268 ms: slow machines are not errors
		path.min_rnr_timer = 1;
		for (int i = 0; i < kPairs; i++) {
			pairs.push_back(std::make_unique<Pair>(QpConfig(), path));
			local.push_back(std::make_unique<Memory>(pairs[i]->a.pd.get(), 1 << 16));
			remote.push_back(std::make_unique<Memory>(pairs[i]->b.pd.get(), 1 << 16));
		}
	}
	void post(int i, uint64_t id)
	{
		static const ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND,
						    IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
		static const uint32_t lengths[] = {64, 1 << 16, 3000};
		ibv_wr_opcode op = ops[id % 4];
		Pair &pair = *pairs[i];
		ibv_wc wc[16];
		int n;

		// less than 0: the device has gone in this moment
		while ((n = ibv_poll_cq(pair.a.send_cq.get(), 16, wc)) > 0)
			for (int j = 0; j < n; j++)
				done += wc[j].status == IBV_WC_SUCCESS;
		while (ibv_poll_cq(pair.b.recv_cq.get(), 16, wc) > 0)
			;
		pair.b.try_recv(id, {remote[i]->sge(0, 1 << 16)});
		SendWr wr(op, id,
			  {local[i]->sge(0,
					 op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : lengths[id % 3])});

		wr.remote(remote[i]->addr(), remote[i]->rkey());
		if (op == IBV_WR_ATOMIC_FETCH_AND_ADD)
			wr.atomic(1);
		pair.a.try_post(wr);
	}

	std::vector<std::unique_ptr<Pair>> pairs;
	std::vector<std::unique_ptr<Memory>> local, remote;
	uint64_t done = 0;
};

void expect_eio(Device &dev, Load &load)
{
	Endpoint &end = &dev == &device_a() ? load.pairs[0]->a : load.pairs[0]->b;
	Memory &memory = &dev == &device_a() ? *load.local[0] : *load.remote[0];
	ibv_device_attr attr;
	ibv_qp_attr qp_attr;
	ibv_qp_init_attr init;

	EXPECT_EQ(ibv_query_device(dev.get(), &attr), EIO);
	EXPECT_EQ(ibv_alloc_pd(dev.get()), nullptr);
	EXPECT_EQ(errno, EIO);
	EXPECT_EQ(ibv_create_cq(dev.get(), 4, nullptr, nullptr, 0), nullptr);
	EXPECT_EQ(errno, EIO);
	EXPECT_EQ(ibv_reg_mr(end.pd.get(), memory.data(), 4096, 0), nullptr);
	EXPECT_EQ(errno, EIO);
	EXPECT_EQ(ibv_query_qp(end.qp.get(), &qp_attr, IBV_QP_STATE, &init), EIO);
	EXPECT_EQ(end.to(IBV_QPS_ERR), EIO);
	EXPECT_EQ(end.try_post(SendWr(IBV_WR_RDMA_WRITE, 1, {memory.sge(0, 8)}).remote(1, 1)), EIO);
	for (uint32_t slot : {0u, 1u, 70000u})
		EXPECT_EQ(raw::kick(dev.get()->cmd_fd, slot), EIO);
	EXPECT_TRUE(dev.wait_event(IBV_EVENT_DEVICE_FATAL));
}

size_t dead_doorbells()
{
	size_t dead = 0;

	for (auto [base, size] : raw::mappings())
		dead += size == sizeof(uroce_db_region) &&
			reinterpret_cast<uroce_db_region *>(base)->dead;
	return dead;
}

TEST(Removal, Survives)
{
	const char *ready = getenv("stress_ready");
	auto end = std::chrono::steady_clock::now() + std::chrono::seconds(6 * patience());
	bool started = false;
	uint64_t id = 0;

	if (!ready)
		GTEST_SKIP() << "removal.sh runs this";
	// destroying what went with the device succeeds
	setenv("RDMAV_ALLOW_DISASSOC_DESTROY", "1", 1);
	Load load;

	for (; !gone(device_a()) && !gone(device_b()); id++) {
		for (int i = 0; i < kPairs; i++)
			load.post(i, id);
		if (!started && load.done > 300) {
			started = true;
			FILE *f = fopen(ready, "w");

			ASSERT_TRUE(f);
			fclose(f);
		}
		ASSERT_LT(std::chrono::steady_clock::now(), end) << "nobody took the device away";
	}
	printf("# %lu rounds of %d QPs, %lu completions\n", id, kPairs, load.done);
	EXPECT_TRUE(started) << "it was taken away too early";

	// The doorbell region of its context says so, too, as the last thing that the kernel does.
	std::set<Device *> devices{&device_a(), &device_b()}, lost;

	for (Device *dev : devices)
		if (gone(*dev))
			lost.insert(dev);
	while (dead_doorbells() < lost.size()) {
		usleep(1000);
		ASSERT_LT(std::chrono::steady_clock::now(), end) << "no doorbell region is dead";
	}

	// Whichever is gone is gone; the other one, if it is another one, works, or goes in this moment.
	for (Device *dev : devices) {
		if (lost.count(dev)) {
			expect_eio(*dev, load);
		} else {
			Pd pd(ibv_alloc_pd(dev->get()));

			if (pd)
				Memory(pd.get(), 4096);
			else
				EXPECT_TRUE(gone(*dev));
		}
	}
	// nobody else's memory, and nobody's input any more
	if (gone(device_a()) && gone(device_b()))
		for (auto [base, size] : raw::mappings())
			for (int value : {0xff, 0x55, 0})
				memset(base, value, size);
	// its verbs objects go now, the mappings with them
}

// Contexts with so much in them that taking them down takes a while: a process that is ready, and
// waits until it is killed or the device is taken away.
class Hoard : public testing::Test {
protected:
	void SetUp() override
	{
		if (!ready_)
			GTEST_SKIP() << "removal.sh and links.sh run this";
		setenv("RDMAV_ALLOW_DISASSOC_DESTROY", "1", 1);
	}
	void wait()
	{
		FILE *f = fopen(ready_, "w");

		ASSERT_TRUE(f);
		fclose(f);
		while (!gone(device_a())) {
			usleep(10000);
			ASSERT_LT(std::chrono::steady_clock::now(), end_)
				<< "nobody took the device away";
		}
	}

private:
	const char *ready_ = getenv("stress_ready");
	const std::chrono::steady_clock::time_point end_ =
		std::chrono::steady_clock::now() + std::chrono::seconds(6 * patience());
};

TEST_F(Hoard, QueuePairs)
{
	std::vector<std::unique_ptr<Endpoint>> ends;

	for (int i = 0; i < 1500; i++)
		ends.push_back(std::make_unique<Endpoint>(device_a()));
	wait();
}

TEST_F(Hoard, XrcSrqs)
{
	Pd pd(check(ibv_alloc_pd(device_a().get()), "alloc_pd"));
	Cq cq(check(ibv_create_cq(device_a().get(), 16, nullptr, nullptr, 0), "create_cq"));
	Xrcd xrcd(open_xrcd(device_a().get()));
	std::vector<Srq> srqs;

	for (int i = 0; i < 5000; i++)
		srqs.emplace_back(create_xrc_srq(pd.get(), xrcd.get(), cq.get(), 1));
	wait();
}

TEST_F(Hoard, Regions)
{
	Pd pd(check(ibv_alloc_pd(device_a().get()), "alloc_pd"));
	std::vector<uint8_t> page(4096);
	std::vector<Mr> regions;

	for (int i = 0; i < 5000; i++)
		regions.emplace_back(
			check(ibv_reg_mr(pd.get(), page.data(), page.size(),
					 i % 2 ? kAllAccess : kAllAccess | IBV_ACCESS_ON_DEMAND),
			      "reg_mr"));
	wait();
}

TEST_F(Hoard, Handles)
{
	Endpoint end(device_a());
	std::vector<Ah> handles;

	for (int i = 0; i < 5000; i++)
		handles.push_back(end.ah_for(end));
	wait();
}

} // namespace
} // namespace stress
