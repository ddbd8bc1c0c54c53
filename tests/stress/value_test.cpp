// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Values that libibverbs would not let through, or that are in no field of its: each refused, and
// no object made nor changed.
#include <functional>

#include "objects.hpp"

namespace raw {
namespace {

using verbs::device_a;

constexpr uint32_t k2To31 = 1u << 31;

#define AT(core, field) offsetof(ib_uverbs_##core, field)

bool is_refusal(int err)
{
	return err == EINVAL || err == EOPNOTSUPP;
}

class Value : public testing::Test {
protected:
	// The command as it is works; with each of the values in the field it does not.
	template <typename T>
	void refused(const char *what, Kind kind, Command command, size_t offset,
		     const std::vector<T> &values)
	{
		SCOPED_TRACE(what);
		Command good = command;

		ASSERT_EQ(good.send(own.fd), 0);
		ASSERT_EQ(destroy(own.fd, kind, good.handle()), 0);
		for (T value : values) {
			Command bad = command;

			EXPECT_PRED1(is_refusal, bad.set(offset, value).send(own.fd))
				<< uint64_t(value);
		}
	}
	// Up to the limit, and what is above it
	void limited(const char *what, Kind kind, const Command &command, size_t offset,
		     uint32_t limit)
	{
		Command most = command;

		ASSERT_EQ(most.set(offset, limit).send(own.fd), 0) << what;
		ASSERT_EQ(destroy(own.fd, kind, most.handle()), 0);
		refused<uint32_t>(what, kind, command, offset,
				  {limit + 1, k2To31 - 1, k2To31, k2To31 + 1, ~0u - 63, ~0u});
	}

	Objects own{device_a().get()->cmd_fd};
	const Handles &h = own.h;
	const ibv_device_attr &attr = device_a().attr;
};

TEST_F(Value, OfACompletionQueue)
{
	const uint32_t vectors = device_a().get()->num_comp_vectors;

	limited("cqe", kCq, create_cq(), AT(create_cq, cqe), attr.max_cqe);
	refused<uint32_t>("cqe", kCq, create_cq(), AT(create_cq, cqe), {0});
	limited("comp_vector", kCq, create_cq(), AT(create_cq, comp_vector), vectors - 1);
	// a descriptor of no channel, and none at all
	EXPECT_EQ(create_cq().set(AT(create_cq, comp_channel), own.fd).send(own.fd), EBADF);
	EXPECT_EQ(create_cq().set(AT(create_cq, comp_channel), 987654).send(own.fd), EBADF);
}

TEST_F(Value, OfASharedReceiveQueue)
{
	limited("max_wr", kSrq, create_srq(h), AT(create_srq, max_wr), attr.max_srq_wr);
	limited("max_sge", kSrq, create_srq(h), AT(create_srq, max_sge), attr.max_srq_sge);
	refused<uint32_t>("max_wr", kSrq, create_srq(h), AT(create_srq, max_wr), {0});
	limited("XRC max_wr", kXrcSrq, create_xrc_srq(h), AT(create_xsrq, max_wr), attr.max_srq_wr);
	limited("XRC max_sge", kXrcSrq, create_xrc_srq(h), AT(create_xsrq, max_sge),
		attr.max_srq_sge);
	refused<uint32_t>("srq_type", kXrcSrq, create_xrc_srq(h), AT(create_xsrq, srq_type),
			  {2, 3, k2To31, ~0u});

	ib_uverbs_modify_srq in = {};
	in.srq_handle = h[kSrq];
	in.srq_limit = 1;
	for (uint32_t mask : {uint32_t(IBV_SRQ_MAX_WR), 3u, 4u, k2To31, ~0u}) {
		in.attr_mask = mask;
		EXPECT_PRED1(is_refusal, Command(IB_USER_VERBS_CMD_MODIFY_SRQ, in).send(own.fd))
			<< mask;
	}
	in.attr_mask = IBV_SRQ_LIMIT;
	for (uint32_t limit : {5u, uint32_t(attr.max_srq_wr), k2To31, ~0u}) {
		in.srq_limit = limit;
		EXPECT_EQ(Command(IB_USER_VERBS_CMD_MODIFY_SRQ, in).send(own.fd), EINVAL) << limit;
	}
	ib_uverbs_query_srq query = {};
	query.srq_handle = h[kSrq];
	Command command(IB_USER_VERBS_CMD_QUERY_SRQ, query, sizeof(ib_uverbs_query_srq_resp));
	ASSERT_EQ(command.send(own.fd), 0);
	EXPECT_EQ(command.at<ib_uverbs_query_srq_resp>(0).srq_limit, 0u);
}

TEST_F(Value, OfAQueuePair)
{
	for (ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND}) {
		SCOPED_TRACE(type);
		const Command command =
			type == IBV_QPT_UC ? create_qp(h, IBV_QPT_UD)
						     .set(AT(create_qp, qp_type), uint8_t(type)) :
					     create_qp(h, type);

		limited("max_send_wr", kQp, command, AT(create_qp, max_send_wr), attr.max_qp_wr);
		limited("max_send_sge", kQp, command, AT(create_qp, max_send_sge), attr.max_sge);
		limited("max_inline_data", kQp, command, AT(create_qp, max_inline_data), 512);
		if (type == IBV_QPT_UC || type == IBV_QPT_UD) {
			limited("max_recv_wr", kQp, command, AT(create_qp, max_recv_wr),
				attr.max_qp_wr);
			limited("max_recv_sge", kQp, command, AT(create_qp, max_recv_sge),
				attr.max_sge);
		}
	}
	refused<uint8_t>("qp_type", kQp, create_qp(h, IBV_QPT_UD), AT(create_qp, qp_type),
			 {0, 1, 5, 6, 7, 8, 11, 12, 127, 128, 255});
}

TEST_F(Value, OfAStep)
{
	ib_uverbs_modify_qp good = {};
	auto send = [&](const ib_uverbs_modify_qp &in) {
		return Command(IB_USER_VERBS_CMD_MODIFY_QP, in).send(own.fd);
	};

	good.qp_handle = h[kQp];
	good.attr_mask = verbs::kInitMask;
	good.qp_state = IBV_QPS_INIT;
	good.port_num = 1;
	for (uint8_t state : {7, 8, 127, 128, 255}) {
		ib_uverbs_modify_qp bad = good;

		bad.qp_state = state;
		EXPECT_EQ(send(bad), EINVAL) << int(state);
		bad = good;
		bad.attr_mask |= IBV_QP_CUR_STATE;
		bad.cur_qp_state = state;
		EXPECT_EQ(send(bad), EINVAL) << int(state);
	}
	for (int bit = 16; bit < 32; bit++) {
		ib_uverbs_modify_qp bad = good;

		bad.attr_mask |= 1u << bit;
		EXPECT_PRED1(is_refusal, send(bad)) << "bit " << bit;
	}
	EXPECT_EQ(send(good), 0);

	good.attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	good.qp_state = IBV_QPS_RTR;
	good.path_mtu = IBV_MTU_256;
	good.dest.is_global = 1;
	good.dest.port_num = 1;
	good.dest.sgid_index = device_a().gid_index;
	memcpy(good.dest.dgid, device_a().gid.raw, 16);
	auto refuse = [&](const char *what, const std::function<void(ib_uverbs_modify_qp &)> &f) {
		ib_uverbs_modify_qp bad = good;

		f(bad);
		EXPECT_NE(send(bad), 0) << what;
	};
	for (uint8_t mtu : {0, 6, 7, 127, 128, 255})
		refuse("path MTU", [=](auto &in) { in.path_mtu = mtu; });
	for (uint8_t timer : {32, 33, 127, 128, 255})
		refuse("RNR timer", [=](auto &in) { in.min_rnr_timer = timer; });
	for (uint8_t depth : {129, 255})
		refuse("depth", [=](auto &in) { in.max_dest_rd_atomic = depth; });
	for (uint32_t qpn : {1u << 24, k2To31, ~0u})
		refuse("QP number", [=](auto &in) { in.dest_qp_num = qpn; });
	for (uint8_t port : {0, 2, 255})
		refuse("port", [=](auto &in) { in.dest.port_num = port; });
	refuse("GID index", [](auto &in) { in.dest.sgid_index = 255; });
	refuse("no GRH", [](auto &in) { in.dest.is_global = 0; });
	refuse("to nobody", [](auto &in) { memset(in.dest.dgid, 0, 16); });
	EXPECT_EQ(send(good), 0) << "after all that was refused";
}

TEST_F(Value, OfMemory)
{
	refused<uint8_t>("mw_type", kMw, create_mw(h), AT(alloc_mw, mw_type),
			 {0, 3, 127, 128, 255});
	refused<uint64_t>("length", kMr, create_mr(h), AT(reg_mr, length), {0, ~uint64_t(0)});
	refused<uint64_t>("address elsewhere in its page", kMr, create_mr(h), AT(reg_mr, hca_va),
			  {1, ~uint64_t(0)});
	refused<uint32_t>(
		"access", kMr, create_mr(h), AT(reg_mr, access_flags),
		{IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC, 1u << 19, k2To31, ~0u});

	ib_uverbs_rereg_mr in = {};
	in.mr_handle = h[kMr];
	in.pd_handle = h[kPd];
	in.access_flags = IBV_ACCESS_LOCAL_WRITE;
	for (uint32_t flags : {0u, 8u, k2To31, ~0u}) {
		in.flags = flags;
		EXPECT_PRED1(is_refusal, Command(IB_USER_VERBS_CMD_REREG_MR, in,
						 sizeof(ib_uverbs_rereg_mr_resp))
						 .send(own.fd))
			<< flags;
	}
	EXPECT_EQ(create_xrcd().set(AT(open_xrcd, fd), 987654).send(own.fd), EBADF);
}

TEST_F(Value, OfAnAddressHandle)
{
	constexpr size_t kAttr = AT(create_ah, attr);

	refused<uint8_t>("port", kAh, create_ah(h), kAttr + AT(ah_attr, port_num), {0, 2, 255});
	refused<uint8_t>("no GRH", kAh, create_ah(h), kAttr + AT(ah_attr, is_global), {0});
	EXPECT_EQ(create_ah(h).set(kAttr + AT(ah_attr, grh.sgid_index), uint8_t(255)).send(own.fd),
		  ENODATA);
}

} // namespace
} // namespace raw
