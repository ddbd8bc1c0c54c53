// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "objects.hpp"

#include <fcntl.h>

namespace raw {

using verbs::device_a;

static uint8_t memory[4096] __attribute__((aligned(4096)));

const char *kind_name(Kind kind)
{
	static const char *const names[] = {
		"PD",	 "CQ", "receive CQ", "XRCD", "SRQ",   "XSRQ",	       "DM",	    "MR",
		"DM MR", "MW", "AH",	     "QP",   "UD QP", "XRC initiator", "XRC target"};

	return names[kind];
}

Command create_pd()
{
	return Command(IB_USER_VERBS_CMD_ALLOC_PD, ib_uverbs_alloc_pd(),
		       sizeof(ib_uverbs_alloc_pd_resp));
}

Command create_cq(uint32_t cqe)
{
	ib_uverbs_create_cq in = {};

	in.cqe = cqe;
	in.comp_channel = -1;
	return Command(IB_USER_VERBS_CMD_CREATE_CQ, in, sizeof(ib_uverbs_create_cq_resp),
		       sizeof(uroce_create_cq_resp));
}

Command create_xrcd()
{
	ib_uverbs_open_xrcd in = {};

	in.fd = -1;
	in.oflags = O_CREAT;
	return Command(IB_USER_VERBS_CMD_OPEN_XRCD, in, sizeof(ib_uverbs_open_xrcd_resp));
}

Command create_srq(const Handles &h, uint32_t wr)
{
	ib_uverbs_create_srq in = {};

	in.pd_handle = h[kPd];
	in.max_wr = wr;
	in.max_sge = 1;
	return Command(IB_USER_VERBS_CMD_CREATE_SRQ, in, sizeof(ib_uverbs_create_srq_resp),
		       sizeof(uroce_create_srq_resp));
}

Command create_xrc_srq(const Handles &h)
{
	ib_uverbs_create_xsrq in = {};

	in.srq_type = IBV_SRQT_XRC;
	in.pd_handle = h[kPd];
	in.max_wr = 4;
	in.max_sge = 1;
	in.xrcd_handle = h[kXrcd];
	in.cq_handle = h[kRecvCq];
	return Command(IB_USER_VERBS_CMD_CREATE_XSRQ, in, sizeof(ib_uverbs_create_srq_resp),
		       sizeof(uroce_create_srq_resp));
}

Command create_mr(const Handles &h)
{
	ib_uverbs_reg_mr in = {};

	in.start = in.hca_va = reinterpret_cast<uintptr_t>(memory);
	in.length = sizeof(memory);
	in.pd_handle = h[kPd];
	in.access_flags = IBV_ACCESS_LOCAL_WRITE;
	return Command(IB_USER_VERBS_CMD_REG_MR, in, sizeof(ib_uverbs_reg_mr_resp));
}

Command create_mw(const Handles &h)
{
	ib_uverbs_alloc_mw in = {};

	in.pd_handle = h[kPd];
	in.mw_type = IBV_MW_TYPE_2;
	return Command(IB_USER_VERBS_CMD_ALLOC_MW, in, sizeof(ib_uverbs_alloc_mw_resp));
}

Command create_ah(const Handles &h)
{
	ib_uverbs_create_ah in = {};

	in.pd_handle = h[kPd];
	in.attr.is_global = 1;
	in.attr.port_num = 1;
	memcpy(in.attr.grh.dgid, device_a().gid.raw, sizeof(in.attr.grh.dgid));
	in.attr.grh.sgid_index = device_a().gid_index;
	return Command(IB_USER_VERBS_CMD_CREATE_AH, in, sizeof(ib_uverbs_create_ah_resp),
		       sizeof(uroce_create_ah_resp));
}

static Command create_qp(const ib_uverbs_create_qp &in, size_t driver_out)
{
	return Command(IB_USER_VERBS_CMD_CREATE_QP, in, sizeof(ib_uverbs_create_qp_resp),
		       driver_out);
}

Command create_qp(const Handles &h, ibv_qp_type type)
{
	ib_uverbs_create_qp in = {};

	in.pd_handle = h[kPd];
	in.send_cq_handle = h[kCq];
	in.max_send_wr = in.max_send_sge = 1;
	in.qp_type = type;
	if (type == IBV_QPT_RC) {
		in.recv_cq_handle = h[kRecvCq];
		in.srq_handle = h[kSrq];
		in.is_srq = 1;
	} else if (type == IBV_QPT_UD) {
		in.recv_cq_handle = h[kRecvCq];
		in.max_recv_wr = in.max_recv_sge = 1;
	}
	return create_qp(in, sizeof(uroce_create_qp_resp));
}

Command create_tgt_qp(const Handles &h)
{
	ib_uverbs_create_qp in = {};

	in.pd_handle = h[kXrcd];
	in.qp_type = IBV_QPT_XRC_RECV;
	return create_qp(in, 0);
}

static int create_dm(int fd, uint32_t &handle)
{
	uint64_t length = 4096;
	uint32_t alignment = 0;
	Method method(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC);

	method.handle(UVERBS_ATTR_ALLOC_DM_HANDLE, 0)
		.in(UVERBS_ATTR_ALLOC_DM_LENGTH, length)
		.in(UVERBS_ATTR_ALLOC_DM_ALIGNMENT, alignment);
	return method.send(fd, &handle);
}

static int create_dm_mr(int fd, const Handles &h, uint32_t &handle)
{
	uint64_t offset = 0, length = 4096;
	uint32_t access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED, lkey, rkey;
	Method method(UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG);

	method.handle(UVERBS_ATTR_REG_DM_MR_HANDLE, 0)
		.in(UVERBS_ATTR_REG_DM_MR_OFFSET, offset)
		.in(UVERBS_ATTR_REG_DM_MR_LENGTH, length)
		.handle(UVERBS_ATTR_REG_DM_MR_PD_HANDLE, h[kPd])
		.in(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, access)
		.handle(UVERBS_ATTR_REG_DM_MR_DM_HANDLE, h[kDm])
		.out(UVERBS_ATTR_REG_DM_MR_RESP_LKEY, &lkey, sizeof(lkey))
		.out(UVERBS_ATTR_REG_DM_MR_RESP_RKEY, &rkey, sizeof(rkey));
	return method.send(fd, &handle);
}

static Command create_command(Kind kind, const Handles &h)
{
	switch (kind) {
	case kPd:
		return create_pd();
	case kCq:
	case kRecvCq:
		return create_cq();
	case kXrcd:
		return create_xrcd();
	case kSrq:
		return create_srq(h);
	case kXrcSrq:
		return create_xrc_srq(h);
	case kMr:
		return create_mr(h);
	case kMw:
		return create_mw(h);
	case kAh:
		return create_ah(h);
	case kUdQp:
		return create_qp(h, IBV_QPT_UD);
	case kIniQp:
		return create_qp(h, IBV_QPT_XRC_SEND);
	case kTgtQp:
		return create_tgt_qp(h);
	default:
		return create_qp(h, IBV_QPT_RC);
	}
}

int create(int fd, Kind kind, Handles &h)
{
	if (kind == kDm)
		return create_dm(fd, h[kDm]);
	if (kind == kDmMr)
		return create_dm_mr(fd, h, h[kDmMr]);
	Command command = create_command(kind, h);
	int err = command.send(fd);

	if (!err)
		h[kind] = command.handle();
	return err;
}

// Those whose command has an answer
template <typename Core>
static int destroy_with_answer(int fd, uint32_t number, Core core)
{
	return Command(number, core, 8).send(fd);
}

int destroy(int fd, Kind kind, uint32_t handle)
{
	uint32_t number;

	switch (kind) {
	case kCq:
	case kRecvCq:
		return destroy_with_answer(fd, IB_USER_VERBS_CMD_DESTROY_CQ,
					   ib_uverbs_destroy_cq{0, handle, 0});
	case kSrq:
	case kXrcSrq:
		return destroy_with_answer(fd, IB_USER_VERBS_CMD_DESTROY_SRQ,
					   ib_uverbs_destroy_srq{0, handle, 0});
	case kQp:
	case kUdQp:
	case kIniQp:
	case kTgtQp:
		return destroy_with_answer(fd, IB_USER_VERBS_CMD_DESTROY_QP,
					   ib_uverbs_destroy_qp{0, handle, 0});
	case kDm:
		return Method(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE)
			.handle(UVERBS_ATTR_FREE_DM_HANDLE, handle)
			.send(fd);
	case kPd:
		number = IB_USER_VERBS_CMD_DEALLOC_PD;
		break;
	case kXrcd:
		number = IB_USER_VERBS_CMD_CLOSE_XRCD;
		break;
	case kMw:
		number = IB_USER_VERBS_CMD_DEALLOC_MW;
		break;
	case kAh:
		number = IB_USER_VERBS_CMD_DESTROY_AH;
		break;
	default:
		number = IB_USER_VERBS_CMD_DEREG_MR;
		break;
	}
	return Command(number, handle).send(fd);
}

std::vector<Kind> users_of(Kind kind)
{
	switch (kind) {
	case kPd:
		return {kSrq, kXrcSrq, kMr, kDmMr, kMw, kAh, kQp, kUdQp, kIniQp};
	case kCq:
		return {kQp, kUdQp, kIniQp};
	case kRecvCq:
		return {kQp, kUdQp, kXrcSrq};
	case kXrcd:
		return {kXrcSrq, kTgtQp};
	case kSrq:
		return {kQp};
	case kDm:
		return {kDmMr};
	default:
		return {};
	}
}

Objects::Objects(int fd) : fd(fd)
{
	for (int k = 0; k < kKinds; k++) {
		verbs::check(create(fd, Kind(k), h), kind_name(Kind(k)));
		alive[k] = true;
	}
}

Objects::~Objects()
{
	for (int k = kKinds - 1; k >= 0; k--)
		if (alive[k]) {
			EXPECT_EQ(destroy(fd, Kind(k), h[k]), 0) << kind_name(Kind(k));
		}
}

} // namespace raw
