// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Another size for a shared receive queue in use: no WQE lost, none twice, in order (IBTA 11.2.3.3).
#include "background.hpp"
#include "srq_scene.hpp"

namespace verbs {
namespace {

int resize(ibv_srq *srq, uint32_t max_wr, int mask = IBV_SRQ_MAX_WR, uint32_t limit = 0)
{
	ibv_srq_attr attr = {};

	attr.max_wr = max_wr;
	attr.srq_limit = limit;
	return ibv_modify_srq(srq, &attr, mask);
}

class SrqResize : public testing::Test {
protected:
	void SetUp() override
	{
		if (!(device_b().attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE))
			GTEST_SKIP() << "no resize";
	}
};

// Room for as many as were asked for; what cannot be changes nothing.
TEST_F(SrqResize, Sizes)
{
	SrqScene s(1, IBV_QPT_RC, {}, 4);
	uint32_t max = device_b().attr.max_srq_wr;

	for (uint32_t wr : {1u, 2u, 3u, 64u, 65u, max / 2 + 1, max, 1u}) {
		ASSERT_EQ(resize(s.srq, wr), 0) << wr;
		uint32_t granted = s.query().max_wr;
		EXPECT_GE(granted, wr);
		EXPECT_LE(granted, max);
	}
	ASSERT_EQ(resize(s.srq, 64), 0);
	for (uint32_t wr : {0u, max + 1, 1u << 31, ~0u})
		EXPECT_EQ(resize(s.srq, wr), EINVAL) << wr;
	EXPECT_EQ(s.query().max_wr, 64u);
	for (uint64_t id = 0; id < 64; id++)
		s.recv(id);
	EXPECT_EQ(post_srq_recv(s.srq, 64, {s.sge(64)}), ENOMEM);
}

// Whatever waits is there afterwards, in its order; too small for it is EINVAL.
TEST_F(SrqResize, KeepsWhatWaits)
{
	SrqScene s(2, IBV_QPT_RC, {}, 16);
	uint64_t posted = 0, taken = 0;

	for (uint32_t waiting : {0u, 1u, 3u, 4u, 16u})
		for (uint32_t size : {1u, 4u, 16u, 64u}) {
			SCOPED_TRACE(testing::Message() << waiting << " in " << size);
			ASSERT_EQ(resize(s.srq, 16), 0);
			for (uint32_t i = 0; i < waiting; i++)
				s.recv(posted++);
			ASSERT_EQ(resize(s.srq, size), size < waiting ? EINVAL : 0);
			EXPECT_EQ(s.query().max_wr, size < waiting ? 16 : size);
			if (size > waiting)
				s.recv(posted++);
			for (; taken < posted; taken++) {
				s.send(taken % 2, 100, taken + 1);
				s.expect_arrived(taken % 2, taken, 100, taken + 1);
			}
		}
	s.expect_quiet();
}

// One thread changes the size all the time while messages come: each takes the next receive.
TEST_F(SrqResize, UnderTraffic)
{
	SrqScene s(2, IBV_QPT_RC, {}, 16);
	const uint32_t sizes[] = {16, 64, 8, 32};
	const uint64_t target = rounds(2000);
	std::atomic<uint64_t> resized{0};
	uint64_t posted = 0, taken = 0;
	Background resizer([&] {
		EXPECT_EQ(resize(s.srq, sizes[resized % std::size(sizes)]), 0);
		resized++;
	});

	while (taken < target || resized < 20) {
		for (; posted < taken + 6; posted++)
			s.recv(posted, 100);
		s.send(taken % 2, 100, uint8_t(taken));
		expect_wc(s.pair[taken % 2]->b.wait_recv(), taken);
		ASSERT_EQ(s.room(taken)[0], uint8_t(taken));
		ASSERT_EQ(s.room(taken)[99], uint8_t(taken));
		taken++;
	}
	resizer.stop();
}

TEST_F(SrqResize, TwoAtOnce)
{
	SrqScene s(1, IBV_QPT_RC, {}, 16);
	auto some = [&](uint32_t size) {
		for (int i = 0; i < 50; i++)
			EXPECT_EQ(resize(s.srq, size), 0);
	};

	s.recv(0);
	{
		Thread one([&] { some(32); }), two([&] { some(64); });
	}
	s.send(0, 10, 1);
	s.expect_arrived(0, 0, 10, 1);
}

// The limit stays, and no queue is smaller than it.
TEST_F(SrqResize, AndTheLimit)
{
	SrqScene s(1, IBV_QPT_RC, {}, 16);
	Device &dev = s.pair[0]->b.dev;
	const int both = IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT;

	dev.drain_events();
	for (uint64_t id = 0; id < 4; id++)
		s.recv(id);
	ASSERT_EQ(s.set_limit(4), 0);
	EXPECT_EQ(resize(s.srq, 2), EINVAL);
	ASSERT_EQ(resize(s.srq, 64), 0);
	EXPECT_EQ(s.query().srq_limit, 4u);
	EXPECT_FALSE(dev.next_event(0));
	s.send(0, 10, 1);
	s.expect_arrived(0, 0, 10, 1);
	EXPECT_TRUE(dev.wait_event(IBV_EVENT_SRQ_LIMIT_REACHED));

	ASSERT_EQ(s.set_limit(3), 0);
	EXPECT_EQ(resize(s.srq, 8, both, 9), EINVAL);
	EXPECT_EQ(s.query().max_wr, 64u);
	EXPECT_EQ(s.query().srq_limit, 3u);
	ASSERT_EQ(resize(s.srq, 2, both, 0), EINVAL); // both or neither
	EXPECT_EQ(s.query().srq_limit, 3u);
	ASSERT_EQ(resize(s.srq, 8, both, 8), 0);
	EXPECT_TRUE(dev.wait_event(IBV_EVENT_SRQ_LIMIT_REACHED)) << "3 are left";
	for (uint64_t id = 4; id < 8; id++)
		s.recv(id);
	ASSERT_EQ(s.set_limit(7), 0);
	ASSERT_EQ(resize(s.srq, 7, both, 3), 0);
	EXPECT_EQ(s.query().max_wr, 8u);
	EXPECT_EQ(s.query().srq_limit, 3u);
	EXPECT_FALSE(dev.next_event(0));
}

// One that targets of XRC find by its number
TEST_F(SrqResize, OfXrc)
{
	if (!device_b().has_xrc())
		GTEST_SKIP() << "no XRC";
	QpConfig config_a, config_b;
	config_a.type = IBV_QPT_XRC_SEND;
	config_b.type = IBV_QPT_XRC_RECV;
	Pair pair(config_a, config_b, Path());
	Memory local(pair.a.pd.get(), 64), remote(pair.b.pd.get(), 64);

	for (uint64_t id = 0; id < 3; id++)
		ASSERT_EQ(post_srq_recv(pair.b.srq, id, {remote.sge(0, 64)}), 0);
	ASSERT_EQ(resize(pair.b.srq, 1000), 0);
	for (uint64_t id = 0; id < 3; id++) {
		memset(local.data(), 0x31 + id, 64);
		pair.a.post(SendWr(IBV_WR_SEND, id, {local.sge(0, 64)}));
		expect_wc(pair.a.wait_send(), id);
		expect_wc(pair.b.wait_recv(), id);
		EXPECT_EQ(memcmp(local.data(), remote.data(), 64), 0);
	}
}

} // namespace
} // namespace verbs
