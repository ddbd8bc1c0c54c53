// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// As many objects as the device says that it has, and one more.
#include <chrono>
#include <string>

#include "objects.hpp"

namespace raw {
namespace {

using verbs::device_a;

// In the kernel's own use, of each device: what the MAD layer has
constexpr uint32_t kOfTheKernel = 1; // PD, CQ, QP, region

class Count : public testing::Test {
protected:
	void SetUp() override
	{
		for (File *file : {&own, &other})
			ASSERT_EQ(file->get_context(), 0);
	}
	// How many more of the kind there are, up to @most; errno of the one that was refused, or 0
	uint32_t take(Kind kind, uint32_t most, int *err)
	{
		Handles h = needs;
		uint32_t n = 0;

		for (*err = 0; n < most; n++) {
			*err = create(own.fd, kind, h);
			if (*err)
				break;
			last = h[kind];
		}
		return n;
	}
	void until_there_are_no_more(Kind kind, uint32_t max)
	{
		auto start = std::chrono::steady_clock::now();
		auto seconds = [&start] {
			auto now = std::chrono::steady_clock::now();
			double passed = std::chrono::duration<double>(now - start).count();

			start = now;
			return passed;
		};
		int err;

		for (Kind kind : {kPd, kCq, kRecvCq, kXrcd})
			ASSERT_EQ(create(own.fd, kind, needs), 0);
		// those needed are among them
		const uint32_t taken = kind == kCq ? 2 : kind == kPd || kind == kXrcd;
		const uint32_t want = max - taken;
		const uint32_t n = take(kind, want + 1, &err);
		const double took = seconds();

		EXPECT_EQ(n, want);
		EXPECT_EQ(err, ENOMEM) << strerror(err);
		if (!n || HasFailure())
			return;
		// others have none either, and one that goes is one that may come
		Handles theirs = {};
		for (Kind needed : {kPd, kCq, kRecvCq, kXrcd, kind}) {
			err = create(other.fd, needed, theirs);
			EXPECT_EQ(err, needed == kind ? ENOMEM : 0) << kind_name(needed);
			if (err)
				break;
		}
		EXPECT_EQ(destroy(own.fd, kind, last), 0);
		EXPECT_EQ(take(kind, 2, &err), 1u);
		EXPECT_EQ(err, ENOMEM);
		printf("# %u of %s, %.1f s\n", n + taken, kind_name(kind), took);
	}

	File own{ibv_get_device_name(device_a().get()->device)};
	File other{ibv_get_device_name(device_a().get()->device)};
	Handles needs = {};
	uint32_t last = 0;
};

TEST_F(Count, ProtectionDomains)
{
	until_there_are_no_more(kPd, device_a().attr.max_pd - kOfTheKernel);
}

TEST_F(Count, CompletionQueues)
{
	until_there_are_no_more(kCq, device_a().attr.max_cq - kOfTheKernel);
}

TEST_F(Count, SharedReceiveQueues)
{
	until_there_are_no_more(kSrq, device_a().attr.max_srq);
}

TEST_F(Count, XrcSharedReceiveQueues)
{
	until_there_are_no_more(kXrcSrq, device_a().attr.max_srq);
}

TEST_F(Count, QueuePairs)
{
	until_there_are_no_more(kUdQp, device_a().attr.max_qp - kOfTheKernel);
}

TEST_F(Count, XrcTargets)
{
	until_there_are_no_more(kTgtQp, device_a().attr.max_qp - kOfTheKernel);
}

TEST_F(Count, XrcDomains)
{
	until_there_are_no_more(kXrcd, 65535); // no verb says how many
}

TEST_F(Count, AddressHandles)
{
	until_there_are_no_more(kAh, device_a().attr.max_ah);
}

TEST_F(Count, Windows)
{
	until_there_are_no_more(kMw, device_a().attr.max_mw);
}

TEST_F(Count, Regions)
{
	until_there_are_no_more(kMr, device_a().attr.max_mr - kOfTheKernel);
}

} // namespace
} // namespace raw
