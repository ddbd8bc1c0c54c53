// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A scene with memory windows: b binds, a uses.
#ifndef TESTS_MW_SCENE_HPP
#define TESTS_MW_SCENE_HPP

#include "scene.hpp"

namespace verbs {
namespace { // ibv_dealloc_mw() is static

constexpr int kBindable = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
constexpr int kWindowAll =
	IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr uint64_t kStart = 1024, kLength = 4096; // of a window in its region

// A scene with a region that has no remote rights of its own, and windows on it.
struct MwScene : Scene {
	explicit MwScene(const QpConfig &config = {}, const Path &path = {})
	    : Scene(config, path), region(extra_b(kBindable))
	{
		for (ibv_mw_type type : {IBV_MW_TYPE_1, IBV_MW_TYPE_2})
			mws.push_back(window(type));
		memset(region.data(), kRemoteByte, kSize);
	}

	Mw window(ibv_mw_type type, ibv_pd *pd = nullptr)
	{
		return Mw(check(ibv_alloc_mw(pd ? pd : pair.b.pd.get(), type), "alloc_mw"));
	}

	// Binds by whatever way the type has; returns the status and leaves the new key in mw->rkey.
	ibv_wc_status bind(Endpoint &end, ibv_mw *mw, ibv_mr *mr, uint64_t addr, uint64_t length,
			   int access)
	{
		uint64_t id = ++next_id;

		if (mw->type == IBV_MW_TYPE_1) {
			ibv_mw_bind wr = {id,
					  IBV_SEND_SIGNALED,
					  {mr, addr, length, static_cast<unsigned int>(access)}};

			check(ibv_bind_mw(end.qp.get(), mw, &wr), "bind_mw");
		} else {
			uint32_t rkey = ibv_inc_rkey(mw->rkey);

			end.post(SendWr(IBV_WR_BIND_MW, id)
					 .bind(mw, rkey, mr, addr, length, access));
			mw->rkey = rkey;
		}
		ibv_wc wc = end.wait_send();

		EXPECT_EQ(wc.wr_id, id);
		if (wc.status == IBV_WC_SUCCESS) {
			EXPECT_EQ(wc.opcode, IBV_WC_BIND_MW);
		}
		return wc.status;
	}

	void bind_ok(ibv_mw *mw, int access = kWindowAll)
	{
		ASSERT_EQ(bind(pair.b, mw, region.mr(), region.addr(kStart), kLength, access),
			  IBV_WC_SUCCESS);
	}

	ibv_wc_status local_inv(Endpoint &end, uint32_t rkey)
	{
		end.post(SendWr(IBV_WR_LOCAL_INV, ++next_id).invalidate(rkey));
		ibv_wc wc = end.wait_send();

		EXPECT_EQ(wc.wr_id, next_id);
		if (wc.status == IBV_WC_SUCCESS) {
			EXPECT_EQ(wc.opcode, IBV_WC_LOCAL_INV);
		}
		return wc.status;
	}

	// a's operation on the window; the status.
	ibv_wc_status use(ibv_wr_opcode op, uint64_t addr, uint32_t rkey, uint32_t length = 8)
	{
		SendWr wr(op, ++next_id, {local.sge(0, length)});

		wr.remote(addr, rkey);
		if (op == IBV_WR_ATOMIC_FETCH_AND_ADD)
			wr.atomic(7);
		pair.a.post(wr);
		ibv_wc wc = pair.a.wait_send();

		EXPECT_EQ(wc.wr_id, next_id);
		return wc.status;
	}

	ibv_wc_status write(uint64_t addr, uint32_t rkey, uint32_t length = 8)
	{
		return use(IBV_WR_RDMA_WRITE, addr, rkey, length);
	}

	// The window opens nothing.
	void expect_shut(uint32_t rkey)
	{
		std::vector<uint8_t> before(region.data(), region.data() + kSize);

		EXPECT_EQ(write(region.addr(kStart), rkey), IBV_WC_REM_ACCESS_ERR);
		EXPECT_EQ(memcmp(before.data(), region.data(), kSize), 0);
	}

	ibv_mw *type(int number)
	{
		return mws[number - 1].get();
	}

	Memory &region;
	uint64_t next_id = 1000;
	std::vector<Mw> mws;
};

class MwTest : public testing::Test {
	void SetUp() override
	{
		if (!device_b().has_mw_2b())
			GTEST_SKIP() << "no memory windows of type 2B";
	}
};

} // namespace
} // namespace verbs

#endif
