// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What the provider says beside the core's part of a command, and where the answer goes: too short,
// too long, with bits that nobody knows, to nowhere; and how a context begins (uapi/uroce-abi.h).
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>

#include "objects.hpp"

namespace raw {
namespace {

using verbs::device_a;

constexpr size_t kLonger = 64; // bytes that a newer provider may have room for

class DriverData : public testing::Test {
protected:
	// The command's answer with every length up to what there is, and more.
	void lengths(Kind kind, Command command, size_t driver_out)
	{
		SCOPED_TRACE(kind_name(kind));
		for (size_t room = 0; room < driver_out; room += 4) {
			command.driver_out = room;
			EXPECT_EQ(command.send(fd), EINVAL) << room << " bytes";
		}
		command.driver_out = driver_out + kLonger;
		ASSERT_EQ(command.send(fd), 0);
		EXPECT_EQ(command.written_from(driver_out), 0u) << "behind the answer";
		if (driver_out) {
			EXPECT_GT(command.written_from(0), 0u);
		}
		EXPECT_EQ(destroy(fd, kind, command.handle()), 0);
	}
	// The same with driver data, for commands that take none: it means nothing.
	void ignored(Kind kind, Command command)
	{
		SCOPED_TRACE(kind_name(kind));
		const std::vector<uint8_t> garbage(kLonger, 0xff);

		for (size_t length : {size_t(4), size_t(8), kLonger}) {
			command.data(garbage.data(), length);
			ASSERT_EQ(command.send(fd), 0) << length << " bytes";
			EXPECT_EQ(destroy(fd, kind, command.handle()), 0);
		}
	}
	// Nowhere, read-only memory, and memory that ends amid the answer: EFAULT, and no object.
	void to_nowhere(Kind kind, Command command)
	{
		SCOPED_TRACE(kind_name(kind));
		for (uint64_t address : {uint64_t(4096), read_only(), half(command.room() - 4),
					 half(0), uint64_t(1) << 63, ~uint64_t(7)}) {
			command.answer_to = address;
			EXPECT_EQ(command.send(fd), EFAULT) << std::hex << address;
		}
	}
	void SetUp() override
	{
		auto map = [](int prot) {
			return static_cast<uint8_t *>(
				mmap(nullptr, 8192, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		};

		read_only_ = map(PROT_READ);
		half_ = map(PROT_READ | PROT_WRITE);
		munmap(half_ + 4096, 4096);
	}
	void TearDown() override
	{
		munmap(read_only_, 8192);
		munmap(half_, 4096);
	}
	uint64_t read_only()
	{
		return reinterpret_cast<uintptr_t>(read_only_);
	}
	uint64_t half(size_t left)
	{
		return reinterpret_cast<uintptr_t>(half_ + 4096 - left);
	}
	int resize(uroce_resize_cq_req req, size_t length, uroce_resize_cq_resp *resp = nullptr,
		   uint32_t cqe = 64)
	{
		ib_uverbs_resize_cq in = {};

		in.cq_handle = own.h[kCq];
		in.cqe = cqe;
		Command command(IB_USER_VERBS_CMD_RESIZE_CQ, in, sizeof(ib_uverbs_resize_cq_resp),
				sizeof(uroce_resize_cq_resp));
		int err = command.data(&req, length).send(fd);

		if (resp)
			*resp = command.driver<uroce_resize_cq_resp>();
		return err;
	}

	const int fd = device_a().get()->cmd_fd;
	Objects own{fd};

private:
	uint8_t *read_only_, *half_;
};

TEST_F(DriverData, LengthOfTheAnswer)
{
	lengths(kCq, create_cq(), sizeof(uroce_create_cq_resp));
	lengths(kSrq, create_srq(own.h), sizeof(uroce_create_srq_resp));
	lengths(kXrcSrq, create_xrc_srq(own.h), sizeof(uroce_create_srq_resp));
	lengths(kAh, create_ah(own.h), sizeof(uroce_create_ah_resp));
	for (ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UD, IBV_QPT_XRC_SEND})
		lengths(kQp, create_qp(own.h, type), sizeof(uroce_create_qp_resp));
	// those without one
	lengths(kPd, create_pd(), 0);
	lengths(kXrcd, create_xrcd(), 0);
	lengths(kMr, create_mr(own.h), 0);
	lengths(kMw, create_mw(own.h), 0);
	lengths(kTgtQp, create_tgt_qp(own.h), 0);
}

TEST_F(DriverData, WhereNoneIsTaken)
{
	ignored(kPd, create_pd());
	ignored(kXrcd, create_xrcd());
	ignored(kSrq, create_srq(own.h));
	ignored(kXrcSrq, create_xrc_srq(own.h));
	ignored(kMr, create_mr(own.h));
	ignored(kMw, create_mw(own.h));
	ignored(kAh, create_ah(own.h));
	for (ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UD, IBV_QPT_XRC_SEND})
		ignored(kQp, create_qp(own.h, type));
	ignored(kTgtQp, create_tgt_qp(own.h));
}

TEST_F(DriverData, AnswersToNowhere)
{
	to_nowhere(kPd, create_pd());
	to_nowhere(kXrcd, create_xrcd());
	to_nowhere(kCq, create_cq());
	to_nowhere(kSrq, create_srq(own.h));
	to_nowhere(kXrcSrq, create_xrc_srq(own.h));
	to_nowhere(kMr, create_mr(own.h));
	to_nowhere(kMw, create_mw(own.h));
	to_nowhere(kAh, create_ah(own.h));
	for (ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UD, IBV_QPT_XRC_SEND})
		to_nowhere(kQp, create_qp(own.h, type));
	to_nowhere(kTgtQp, create_tgt_qp(own.h));
}

TEST_F(DriverData, FlagsOfACq)
{
	struct {
		uroce_create_cq_req known;
		uint8_t more[kLonger];
	} req = {};
	const struct {
		uint32_t flags, reserved;
		size_t length;
		uint8_t more;
		int err;
	} cases[] = {
		{0, 0, 0, 0, 0},
		{0, 0, 4, 0, 0},
		{UROCE_CQ_WALLCLOCK, 0, 4, 0, 0},
		{UROCE_CQ_WALLCLOCK, 0, 8, 0, 0},
		{UROCE_CQ_WALLCLOCK, ~0u, 8, 0, 0}, // reserved: not read
		{2, 0, 8, 0, EOPNOTSUPP},
		{2, 0, 4, 0, EOPNOTSUPP},
		{1u << 31, 0, 8, 0, EOPNOTSUPP},
		{~0u, 0, 8, 0, EOPNOTSUPP},
		// a newer provider's: good as long as it asks for nothing that is not known
		{0, 0, sizeof(req), 0, 0},
		{0, 0, sizeof(req), 1, EOPNOTSUPP},
	};

	for (const auto &c : cases) {
		Command command = create_cq();

		req.known = {c.flags, c.reserved};
		req.more[kLonger - 1] = c.more;
		ASSERT_EQ(command.data(&req, c.length).send(fd), c.err)
			<< c.flags << ", " << c.length << " bytes, " << int(c.more);
		if (!c.err) {
			EXPECT_EQ(destroy(fd, kCq, command.handle()), 0);
		}
	}
}

TEST_F(DriverData, StepsOfAResize)
{
	uroce_resize_cq_req req = {};
	uroce_resize_cq_resp resp;

	req.step = UROCE_RESIZE_CQ_COMMIT;
	EXPECT_EQ(resize(req, sizeof(req)), EBUSY) << "nothing was prepared";
	for (uint32_t step : {0u, 3u, 1u << 31, ~0u}) {
		req.step = step;
		EXPECT_EQ(resize(req, sizeof(req)), EOPNOTSUPP) << step;
	}
	req.step = UROCE_RESIZE_CQ_PREPARE;
	for (size_t length = 0; length < sizeof(req); length += 4)
		EXPECT_EQ(resize(req, length), EINVAL) << length << " bytes";
	for (uint32_t cqe : {0u, device_a().attr.max_cqe + 1u, 1u << 31, ~0u})
		EXPECT_EQ(resize(req, sizeof(req), nullptr, cqe), EINVAL) << cqe;
	ASSERT_EQ(resize(req, sizeof(req), &resp), 0);
	EXPECT_EQ(resp.cqe_entries, 64u);

	const uint64_t prepared = resp.mmap_offset;
	req.step = UROCE_RESIZE_CQ_COMMIT;
	for (uint64_t other : {uint64_t(0), prepared + 4096, prepared + 1, ~uint64_t(0)}) {
		req.mmap_offset = other;
		EXPECT_EQ(resize(req, sizeof(req)), EBUSY) << other;
	}
	req.mmap_offset = prepared;
	req.reserved = ~0u; // not read
	EXPECT_EQ(resize(req, sizeof(req)), 0);
	EXPECT_EQ(resize(req, sizeof(req)), EBUSY) << "once";
}

// Methods of our own: lengths, and attributes that this kernel does not know.
TEST_F(DriverData, Methods)
{
	struct {
		uroce_dm_query_resp known;
		uint8_t more[kLonger];
	} resp;
	auto query = [&](uint16_t length) {
		memset(&resp, kUntouched, sizeof(resp));
		return Method(UVERBS_OBJECT_DM, UROCE_METHOD_DM_QUERY)
			.handle(UROCE_ATTR_DM_QUERY_HANDLE, own.h[kDm])
			.out(UROCE_ATTR_DM_QUERY_RESP, &resp, length);
	};

	for (uint16_t length : {0, 1, 8, int(sizeof(resp.known)) - 1})
		EXPECT_PRED1([](int err) { return err == EINVAL || err == ENOSPC; },
			     query(length).send(fd))
			<< length;
	EXPECT_EQ(resp.more[0], kUntouched);
	// the structure does not grow: what is new takes reserved space
	EXPECT_EQ(query(sizeof(resp)).send(fd), EINVAL);
	ASSERT_EQ(query(sizeof(resp.known)).send(fd), 0);
	EXPECT_EQ(resp.known.length, 4096u);
	EXPECT_EQ(resp.more[0], kUntouched);
	EXPECT_EQ(query(sizeof(resp.known)).in(UROCE_ATTR_DM_QUERY_RESP + 1, uint64_t(1)).send(fd),
		  EPROTONOSUPPORT);
	EXPECT_EQ(Method(UVERBS_OBJECT_DM, UROCE_METHOD_DM_QUERY + 1).send(fd), EPROTONOSUPPORT);
	EXPECT_EQ(Method(UROCE_OBJECT_DOORBELL + 1, UROCE_METHOD_DM_QUERY).send(fd),
		  EPROTONOSUPPORT);
	EXPECT_EQ(Method(UVERBS_OBJECT_DM, UROCE_METHOD_DM_QUERY)
			  .handle(UROCE_ATTR_DM_QUERY_HANDLE, own.h[kDm])
			  .send(fd),
		  EINVAL)
		<< "a mandatory one is missing";
}

TEST_F(DriverData, StepsOfAnSrqResize)
{
	uroce_resize_srq_resp resp = {};
	const uint32_t max = device_a().attr.max_srq_wr;
	auto resize = [&](uint32_t step, uint32_t max_wr, uint32_t flags = 0, uint64_t offset = 0,
			  uint32_t limit = 0) {
		uroce_resize_srq_req req = {};

		req.mmap_offset = offset;
		req.step = step;
		req.max_wr = max_wr;
		req.srq_limit = limit;
		req.flags = flags;
		return Method(UVERBS_OBJECT_SRQ, UROCE_METHOD_SRQ_RESIZE)
			.handle(UROCE_ATTR_SRQ_RESIZE_HANDLE, own.h[kSrq])
			.in(UROCE_ATTR_SRQ_RESIZE_REQ, req)
			.out(UROCE_ATTR_SRQ_RESIZE_RESP, &resp, sizeof(resp))
			.send(fd);
	};

	EXPECT_EQ(resize(UROCE_RESIZE_SRQ_COMMIT, 0), EBUSY) << "nothing was prepared";
	for (uint32_t step : {0u, 3u, 1u << 31, ~0u})
		EXPECT_EQ(resize(step, 8), EOPNOTSUPP) << step;
	for (uint32_t wr : {0u, max + 1, 1u << 31, ~0u})
		EXPECT_EQ(resize(UROCE_RESIZE_SRQ_PREPARE, wr), EINVAL) << wr;
	for (uint32_t flags : {2u, 1u << 31, ~0u})
		EXPECT_EQ(resize(UROCE_RESIZE_SRQ_PREPARE, 8, flags), EINVAL) << flags;
	for (uint32_t wr : {1u, max})
		ASSERT_EQ(resize(UROCE_RESIZE_SRQ_PREPARE, wr), 0) << wr;
	EXPECT_EQ(resp.entries, max);
	uint64_t prepared = resp.mmap_offset;
	for (uint64_t other : {uint64_t(0), prepared + 4096, ~uint64_t(0)})
		EXPECT_EQ(resize(UROCE_RESIZE_SRQ_COMMIT, 0, 0, other), EBUSY);
	// a limit above the size: refused, and the new region is gone
	EXPECT_EQ(resize(UROCE_RESIZE_SRQ_COMMIT, 0, UROCE_RESIZE_SRQ_LIMIT, prepared, max + 1),
		  EINVAL);
	EXPECT_EQ(resize(UROCE_RESIZE_SRQ_COMMIT, 0, 0, prepared), EBUSY);
	ASSERT_EQ(resize(UROCE_RESIZE_SRQ_PREPARE, 8), 0);
	EXPECT_EQ(resize(UROCE_RESIZE_SRQ_COMMIT, 0, UROCE_RESIZE_SRQ_LIMIT, resp.mmap_offset, 8),
		  0);
}

// ---- how a context begins ----

class Handshake : public testing::Test {
protected:
	// GET_CONTEXT with @in bytes of all ones as the provider's request
	int begin(size_t in, size_t out)
	{
		const std::vector<uint8_t> ones(in, 0xff);
		Command command(IB_USER_VERBS_CMD_GET_CONTEXT, ib_uverbs_get_context(),
				sizeof(ib_uverbs_get_context_resp), out);
		int err = command.data(ones.data(), in).send(file.fd);

		if (!err) {
			file.async_fd = command.at<ib_uverbs_get_context_resp>(0).async_fd;
			resp = command.driver<uroce_alloc_ucontext_resp>();
			behind = command.written_from(sizeof(resp));
		}
		return err;
	}
	void expect_works()
	{
		Objects all(file.fd);
		Mapping doorbells(file.fd, resp.db_mmap_offset, resp.db_mmap_len);

		EXPECT_EQ(doorbells.at<uroce_db_region>(0)->dead, 0u);
		EXPECT_EQ(doorbells.at<uroce_db_region>(0)->need_wakeup, 1u);
	}

	File file{ibv_get_device_name(device_a().get()->device)};
	uroce_alloc_ucontext_resp resp = {};
	size_t behind = 0;
};

// The version is a matter of libibverbs and the provider, which read it here before they open.
TEST_F(Handshake, VersionInSysfs)
{
	std::ifstream version(std::string(device_a().get()->device->ibdev_path) +
			      "/../../infiniband_verbs/" + device_a().get()->device->dev_name +
			      "/abi_version");
	int number = -1;

	version >> number;
	EXPECT_EQ(number, UROCE_ABI_VERSION);
}

TEST_F(Handshake, NothingBeforeIt)
{
	EXPECT_EQ(create_pd().send(file.fd), EINVAL);
	EXPECT_EQ(create_cq().send(file.fd), EINVAL);
	EXPECT_EQ(kick(file.fd, 0), EINVAL);
	EXPECT_EQ(begin(sizeof(uroce_alloc_ucontext_req), sizeof(resp)), 0);
	expect_works();
}

TEST_F(Handshake, TooShort)
{
	const size_t in = sizeof(uroce_alloc_ucontext_req);

	for (size_t length = 0; length < in; length += 4)
		EXPECT_EQ(begin(length, sizeof(resp)), EINVAL) << length << " bytes";
	for (size_t room = 0; room < sizeof(resp); room += 4)
		EXPECT_EQ(begin(in, room), EINVAL) << "room for " << room;
	// none of them has begun one
	ASSERT_EQ(begin(in, sizeof(resp)), 0);
	EXPECT_EQ(resp.comp_mask, 0u) << "granted: what both know";
	EXPECT_EQ(resp.db_slots, unsigned(UROCE_DB_SLOTS));
	expect_works();
}

// A newer provider knows more, and says more: the kernel grants what it has itself.
TEST_F(Handshake, NewerProvider)
{
	ASSERT_EQ(begin(sizeof(uroce_alloc_ucontext_req) + kLonger, sizeof(resp) + kLonger), 0);
	EXPECT_EQ(resp.comp_mask, 0u);
	EXPECT_EQ(behind, 0u) << "an older kernel's answer is shorter";
	expect_works();
}

TEST_F(Handshake, Once)
{
	const size_t in = sizeof(uroce_alloc_ucontext_req);

	ASSERT_EQ(begin(in, sizeof(resp)), 0);
	int async_fd = file.async_fd;
	EXPECT_EQ(begin(in, sizeof(resp)), EINVAL);
	EXPECT_EQ(file.async_fd, async_fd);
	expect_works();
}

TEST_F(Handshake, AnswerToNowhere)
{
	uroce_alloc_ucontext_req req = {};
	Command command(IB_USER_VERBS_CMD_GET_CONTEXT, ib_uverbs_get_context(),
			sizeof(ib_uverbs_get_context_resp), sizeof(resp));

	command.answer_to = 4096;
	EXPECT_EQ(command.data(&req, sizeof(req)).send(file.fd), EFAULT);
	ASSERT_EQ(begin(sizeof(req), sizeof(resp)), 0);
	expect_works();
}

} // namespace
} // namespace raw
