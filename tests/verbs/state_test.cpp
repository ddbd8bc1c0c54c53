// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The QP state machine (IBTA 10.3.1): which transitions are legal with which attributes.
#include <algorithm>

#include "verbs.hpp"

namespace verbs {
namespace {

constexpr ibv_qp_state kStates[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
				    IBV_QPS_SQD,   IBV_QPS_SQE,	 IBV_QPS_ERR};

const char *state_name(ibv_qp_state state)
{
	static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

	return names[state];
}

struct Transition {
	ibv_qp_state from, to;
	int required, optional; // beside IBV_QP_STATE
};

constexpr int kAltAndMig = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;

// RC, without path migration. Legal are these and any state to RESET, any but RESET to ERR.
const std::vector<Transition> kRcTransitions = {
	{IBV_QPS_RESET, IBV_QPS_INIT, kInitMask & ~IBV_QP_STATE, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_RTR, kRtrMask & ~IBV_QP_STATE,
	 IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPS_RTR, IBV_QPS_RTS, kRtsMask & ~IBV_QP_STATE,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_SQD, IBV_QPS_RTS, 0,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PKEY_INDEX |
		 IBV_QP_PORT | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
};

constexpr int kUcOptional = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS;

const std::vector<Transition> kUcTransitions = {
	{IBV_QPS_RESET, IBV_QPS_INIT, kInitMask & ~IBV_QP_STATE, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	 IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, kUcOptional},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0, kUcOptional},
	{IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_SQD, IBV_QPS_RTS, 0, kUcOptional},
	// and AV, but with that uverbs sets PORT, which ib_core does not allow here
	{IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_SQE, IBV_QPS_RTS, 0, kUcOptional},
};

constexpr int kUdOptional = IBV_QP_CUR_STATE | IBV_QP_QKEY;

const std::vector<Transition> kUdTransitions = {
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
	{IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, kUdOptional},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0, kUdOptional},
	{IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_SQD, IBV_QPS_RTS, 0, kUdOptional},
	{IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	{IBV_QPS_SQE, IBV_QPS_RTS, 0, kUdOptional},
};

// XRC: each end has the half of RC's attributes that its direction uses.
constexpr int kXrcRtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int kXrcCommon = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS;

const std::vector<Transition> kXrcSendTransitions = {
	{IBV_QPS_RESET, IBV_QPS_INIT, kInitMask & ~IBV_QP_STATE, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_RTR, kXrcRtr, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPS_RTR, IBV_QPS_RTS, kRtsMask & ~IBV_QP_STATE, kXrcCommon},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0, kXrcCommon},
	{IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_SQD, IBV_QPS_RTS, 0, kXrcCommon},
	{IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
};

const std::vector<Transition> kXrcRecvTransitions = {
	{IBV_QPS_RESET, IBV_QPS_INIT, kInitMask & ~IBV_QP_STATE, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_RTR, kXrcRtr | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	 IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN,
	 kXrcCommon | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0, kXrcCommon | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_SQD, IBV_QPS_RTS, 0, kXrcCommon | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		 IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
};

const std::vector<Transition> &transitions(ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return kRcTransitions;
	case IBV_QPT_UC:
		return kUcTransitions;
	case IBV_QPT_XRC_SEND:
		return kXrcSendTransitions;
	case IBV_QPT_XRC_RECV:
		return kXrcRecvTransitions;
	default:
		return kUdTransitions;
	}
}

// What uverbs takes away before anybody looks
int ignored(ibv_qp_type type)
{
	return type == IBV_QPT_XRC_SEND ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER :
	       type == IBV_QPT_XRC_RECV ? IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT |
						  IBV_QP_RNR_RETRY :
					  0;
}

bool is_reliable(ibv_qp_type type)
{
	return type != IBV_QPT_UC && type != IBV_QPT_UD;
}

const Transition *find_transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to)
{
	for (const Transition &t : transitions(type))
		if (t.from == from && t.to == to)
			return &t;
	return nullptr;
}

bool is_legal(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to)
{
	return find_transition(type, from, to) || to == IBV_QPS_RESET ||
	       (to == IBV_QPS_ERR && from != IBV_QPS_RESET);
}

// Attributes good for every transition, connected to itself.
ibv_qp_attr good_attr(const Endpoint &end, ibv_qp_state from, ibv_qp_state to)
{
	Path path;
	ibv_qp_attr attr = rtr_attr(end.dev, end.dev, end.qp->qp_num, path, 0);
	ibv_qp_attr rts = rts_attr(end.dev, path, 0);

	attr.timeout = rts.timeout;
	attr.retry_cnt = rts.retry_cnt;
	attr.rnr_retry = rts.rnr_retry;
	attr.max_rd_atomic = rts.max_rd_atomic;
	attr.port_num = 1;
	attr.qp_access_flags = kQpAccess;
	attr.qkey = kQkey;
	attr.cur_qp_state = from;
	attr.qp_state = to;
	return attr;
}

// A QP brought to a state on the legal way.
std::unique_ptr<Endpoint> endpoint_in(ibv_qp_state state, ibv_qp_type type = IBV_QPT_RC)
{
	QpConfig config;
	Path path;

	config.type = type;
	auto end = std::make_unique<Endpoint>(device_a(), config);

	if (state == IBV_QPS_RESET)
		return end;
	end->to_init();
	if (state == IBV_QPS_ERR)
		check(end->to(IBV_QPS_ERR), "ERR");
	if (state == IBV_QPS_INIT || state == IBV_QPS_ERR)
		return end;
	end->to_rtr(*end, path, 0);
	if (state == IBV_QPS_RTR)
		return end;
	end->to_rts(path, 0);
	if (state == IBV_QPS_SQD)
		check(end->to(IBV_QPS_SQD), "SQD");
	if (state == IBV_QPS_SQE) {
		// by a WR with a key of nothing
		Ah ah = end->ah_for(*end);
		SendWr wr(IBV_WR_SEND, 1, {{0x1000, 8, 0x5a5a5a00}});

		if (type == IBV_QPT_UD)
			wr.to(ah.get(), end->qp->qp_num);
		end->post(wr);
		expect_wc(end->wait_send(), 1, IBV_WC_LOC_PROT_ERR);
	}
	return end;
}

class StateTable : public testing::TestWithParam<ibv_qp_type> {
protected:
	void SetUp() override
	{
		bool xrc = GetParam() == IBV_QPT_XRC_SEND || GetParam() == IBV_QPT_XRC_RECV;

		if (xrc && !(device_a().attr.device_cap_flags & IBV_DEVICE_XRC))
			GTEST_SKIP() << "no XRC";
	}
};

TEST_P(StateTable, EveryTransition)
{
	for (ibv_qp_state from : kStates)
		for (ibv_qp_state to : kStates) {
			if (from == IBV_QPS_SQE && is_reliable(GetParam()))
				continue; // not a state of theirs
			SCOPED_TRACE(testing::Message()
				     << state_name(from) << " to " << state_name(to));
			auto end = endpoint_in(from, GetParam());
			ibv_qp_attr attr = good_attr(*end, from, to);
			const Transition *t = find_transition(GetParam(), from, to);
			int err = ibv_modify_qp(end->qp.get(), &attr,
						IBV_QP_STATE | (t ? t->required : 0));

			EXPECT_EQ(err, is_legal(GetParam(), from, to) ? 0 : EINVAL);
			EXPECT_EQ(end->state(), err ? from : to);
		}
}

TEST_P(StateTable, MissingAttributes)
{
	for (const Transition &t : transitions(GetParam()))
		for (int bit = 1; bit <= IBV_QP_RATE_LIMIT; bit <<= 1) {
			if (!(t.required & bit))
				continue;
			SCOPED_TRACE(testing::Message() << state_name(t.from) << " to "
							<< state_name(t.to) << " without " << bit);
			auto end = endpoint_in(t.from, GetParam());
			ibv_qp_attr attr = good_attr(*end, t.from, t.to);

			EXPECT_EQ(ibv_modify_qp(end->qp.get(), &attr,
						IBV_QP_STATE | (t.required & ~bit)),
				  EINVAL);
			EXPECT_EQ(end->state(), t.from);
			EXPECT_EQ(ibv_modify_qp(end->qp.get(), &attr, IBV_QP_STATE | t.required),
				  0);
		}
}

TEST_P(StateTable, OptionalAttributes)
{
	for (const Transition &t : transitions(GetParam()))
		for (int bit = 1; bit <= IBV_QP_RATE_LIMIT; bit <<= 1) {
			if (!(t.optional & bit))
				continue;
			SCOPED_TRACE(testing::Message() << state_name(t.from) << " to "
							<< state_name(t.to) << " with " << bit);
			auto end = endpoint_in(t.from, GetParam());
			ibv_qp_attr attr = good_attr(*end, t.from, t.to);

			EXPECT_EQ(ibv_modify_qp(end->qp.get(), &attr,
						IBV_QP_STATE | t.required | bit),
				  0);
			EXPECT_EQ(end->state(), t.to);
		}
}

TEST_P(StateTable, SurplusAttributes)
{
	for (const Transition &t : transitions(GetParam()))
		for (int bit = 2; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
			if ((t.required | t.optional | kAltAndMig | ignored(GetParam())) & bit)
				continue;
			SCOPED_TRACE(testing::Message() << state_name(t.from) << " to "
							<< state_name(t.to) << " with " << bit);
			auto end = endpoint_in(t.from, GetParam());
			ibv_qp_attr attr = good_attr(*end, t.from, t.to);

			EXPECT_EQ(ibv_modify_qp(end->qp.get(), &attr,
						IBV_QP_STATE | t.required | bit),
				  EINVAL);
			EXPECT_EQ(end->state(), t.from);
		}
}

const char *type_name(const testing::TestParamInfo<ibv_qp_type> &info)
{
	return info.param == IBV_QPT_RC	      ? "RC" :
	       info.param == IBV_QPT_UC	      ? "UC" :
	       info.param == IBV_QPT_XRC_SEND ? "XrcSend" :
	       info.param == IBV_QPT_XRC_RECV ? "XrcRecv" :
						"UD";
}

INSTANTIATE_TEST_SUITE_P(Type, StateTable,
			 testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND,
					 IBV_QPT_XRC_RECV),
			 type_name);

// RTS to RTS without IBV_QP_STATE: only attributes change.
TEST(State, AttributesAlone)
{
	auto end = endpoint_in(IBV_QPS_RTS);
	ibv_qp_attr attr = {};

	attr.min_rnr_timer = 17;
	EXPECT_EQ(ibv_modify_qp(end->qp.get(), &attr, IBV_QP_MIN_RNR_TIMER), 0);
	EXPECT_EQ(end->query(IBV_QP_MIN_RNR_TIMER).min_rnr_timer, 17);
	attr.max_dest_rd_atomic = 1;
	EXPECT_EQ(ibv_modify_qp(end->qp.get(), &attr, IBV_QP_MAX_DEST_RD_ATOMIC), EINVAL);
	EXPECT_EQ(end->state(), IBV_QPS_RTS);
}

// Alternate paths are not advertised, so there is none to load, arm or change over to.
TEST(State, NoAlternatePath)
{
	auto end = endpoint_in(IBV_QPS_RTS);
	ibv_qp_attr attr = good_attr(*end, IBV_QPS_INIT, IBV_QPS_RTR);

	EXPECT_FALSE(device_a().attr.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG);
	attr.alt_ah_attr = attr.ah_attr;
	attr.alt_port_num = 1;
	attr.alt_timeout = 14;
	EXPECT_EQ(ibv_modify_qp(end->qp.get(), &attr, IBV_QP_ALT_PATH), EINVAL);
	for (ibv_mig_state state : {IBV_MIG_REARM, IBV_MIG_ARMED}) {
		attr.path_mig_state = state;
		EXPECT_EQ(ibv_modify_qp(end->qp.get(), &attr, IBV_QP_PATH_MIG_STATE), EINVAL);
	}
	EXPECT_EQ(end->query(IBV_QP_PATH_MIG_STATE).path_mig_state, IBV_MIG_MIGRATED);
	EXPECT_EQ(end->state(), IBV_QPS_RTS);
}

TEST(State, WrongCurrentState)
{
	auto end = endpoint_in(IBV_QPS_RTS);
	ibv_qp_attr attr = {};

	attr.qp_state = IBV_QPS_RTS;
	attr.cur_qp_state = IBV_QPS_RTR;
	EXPECT_EQ(ibv_modify_qp(end->qp.get(), &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL);
	EXPECT_EQ(end->state(), IBV_QPS_RTS);
}

struct Bound {
	const char *name;
	ibv_qp_state from, to;
	void (*spoil)(const Device &dev, ibv_qp_attr *attr);
	int err = EINVAL;
};

const Bound kBounds[] = {
	{"PortZero", IBV_QPS_RESET, IBV_QPS_INIT, [](auto &, auto *a) { a->port_num = 0; }},
	{"PortTwo", IBV_QPS_RESET, IBV_QPS_INIT, [](auto &, auto *a) { a->port_num = 2; }},
	{"Port255", IBV_QPS_RESET, IBV_QPS_INIT, [](auto &, auto *a) { a->port_num = 255; }},
	{"PkeyIndex", IBV_QPS_RESET, IBV_QPS_INIT,
	 [](auto &d, auto *a) { a->pkey_index = d.port.pkey_tbl_len; }},
	{"PkeyIndex65535", IBV_QPS_RESET, IBV_QPS_INIT,
	 [](auto &, auto *a) { a->pkey_index = 65535; }},
	{"MtuZero", IBV_QPS_INIT, IBV_QPS_RTR, [](auto &, auto *a) { a->path_mtu = ibv_mtu(0); }},
	{"MtuSix", IBV_QPS_INIT, IBV_QPS_RTR, [](auto &, auto *a) { a->path_mtu = ibv_mtu(6); }},
	{"MtuAbovePort", IBV_QPS_INIT, IBV_QPS_RTR,
	 [](auto &d, auto *a) { a->path_mtu = ibv_mtu(d.port.active_mtu + 1); }},
	{"DestRdAtomicAboveLimit", IBV_QPS_INIT, IBV_QPS_RTR,
	 [](auto &d, auto *a) {
		 a->max_dest_rd_atomic = std::min(255, d.attr.max_qp_rd_atom + 1);
	 }},
	{"DestQpn25Bits", IBV_QPS_INIT, IBV_QPS_RTR,
	 [](auto &, auto *a) { a->dest_qp_num = 1 << 24; }},
	{"RnrTimer32", IBV_QPS_INIT, IBV_QPS_RTR, [](auto &, auto *a) { a->min_rnr_timer = 32; }},
	// the index has eight bits, the table may have more entries; ib_core's errno for an empty one
	{"GidIndexEmpty", IBV_QPS_INIT, IBV_QPS_RTR,
	 [](auto &d, auto *a) {
		 a->ah_attr.grh.sgid_index = std::min(255, d.port.gid_tbl_len - 1);
	 },
	 ENODATA},
	{"NoGrh", IBV_QPS_INIT, IBV_QPS_RTR, [](auto &, auto *a) { a->ah_attr.is_global = 0; }},
	{"AvPortTwo", IBV_QPS_INIT, IBV_QPS_RTR, [](auto &, auto *a) { a->ah_attr.port_num = 2; }},
	{"Timeout32", IBV_QPS_RTR, IBV_QPS_RTS, [](auto &, auto *a) { a->timeout = 32; }},
	{"RetryCount8", IBV_QPS_RTR, IBV_QPS_RTS, [](auto &, auto *a) { a->retry_cnt = 8; }},
	{"RnrRetry8", IBV_QPS_RTR, IBV_QPS_RTS, [](auto &, auto *a) { a->rnr_retry = 8; }},
	{"RdAtomicAboveLimit", IBV_QPS_RTR, IBV_QPS_RTS,
	 [](auto &d, auto *a) {
		 a->max_rd_atomic = std::min(255, d.attr.max_qp_init_rd_atom + 1);
	 }},
};

void PrintTo(const Bound &b, std::ostream *out)
{
	*out << b.name;
}

class StateBound : public testing::TestWithParam<Bound> {};

TEST_P(StateBound, IsRefusedAndChangesNothing)
{
	const Bound &b = GetParam();
	int mask = IBV_QP_STATE | find_transition(IBV_QPT_RC, b.from, b.to)->required;
	auto end = endpoint_in(b.from);
	ibv_qp_attr attr = good_attr(*end, b.from, b.to);

	b.spoil(end->dev, &attr);
	EXPECT_EQ(ibv_modify_qp(end->qp.get(), &attr, mask), b.err);
	EXPECT_EQ(end->state(), b.from);
	attr = good_attr(*end, b.from, b.to);
	EXPECT_EQ(ibv_modify_qp(end->qp.get(), &attr, mask), 0);
}

INSTANTIATE_TEST_SUITE_P(Bound, StateBound, testing::ValuesIn(kBounds),
			 [](auto &info) { return std::string(info.param.name); });

// 24-bit numbers: refused or cut down, never kept wide.
TEST(State, WideNumbers)
{
	auto end = endpoint_in(IBV_QPS_INIT);
	ibv_qp_attr attr = good_attr(*end, IBV_QPS_INIT, IBV_QPS_RTR);

	attr.rq_psn = 0x1000005;
	if (!ibv_modify_qp(end->qp.get(), &attr, kRtrMask)) {
		EXPECT_EQ(end->query(IBV_QP_RQ_PSN).rq_psn, 5u);
	} else {
		attr.rq_psn = 5;
		ASSERT_EQ(ibv_modify_qp(end->qp.get(), &attr, kRtrMask), 0);
	}
	attr = good_attr(*end, IBV_QPS_RTR, IBV_QPS_RTS);
	attr.sq_psn = 0xff000007;
	if (!ibv_modify_qp(end->qp.get(), &attr, kRtsMask)) {
		EXPECT_EQ(end->query(IBV_QP_SQ_PSN).sq_psn, 7u);
	}
}

TEST(State, QueryReturnsWhatWasSet)
{
	QpConfig config;
	Path path;

	config.send_wr = 33;
	config.recv_wr = 17;
	config.send_sge = 3;
	config.recv_sge = 2;
	config.inline_data = 40;
	config.sig_all = true;
	path.mtu = IBV_MTU_512;
	path.psn_a = 0xabcdef;
	path.psn_b = 0x123456;
	path.timeout = 13;
	path.retry_cnt = 5;
	path.rnr_retry = 3;
	path.min_rnr_timer = 19;
	path.rd_atomic = 2;
	path.dest_rd_atomic = 3;
	path.access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	Pair pair(config, path);
	ibv_qp_init_attr init = {};
	ibv_qp_attr attr = pair.a.query(0x1fffff, &init);

	EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
	EXPECT_EQ(attr.cur_qp_state, IBV_QPS_RTS);
	EXPECT_EQ(attr.path_mtu, IBV_MTU_512);
	EXPECT_EQ(attr.rq_psn, path.psn_b);
	EXPECT_EQ(attr.sq_psn, path.psn_a);
	EXPECT_EQ(attr.dest_qp_num, pair.b.qp->qp_num);
	EXPECT_EQ(attr.qp_access_flags, unsigned(path.access));
	EXPECT_EQ(attr.timeout, 13);
	EXPECT_EQ(attr.retry_cnt, 5);
	EXPECT_EQ(attr.rnr_retry, 3);
	EXPECT_EQ(attr.min_rnr_timer, 19);
	EXPECT_EQ(attr.max_rd_atomic, 2);
	EXPECT_EQ(attr.max_dest_rd_atomic, 3);
	EXPECT_EQ(attr.port_num, 1);
	EXPECT_EQ(attr.pkey_index, 0);
	EXPECT_EQ(attr.ah_attr.is_global, 1);
	EXPECT_EQ(attr.ah_attr.grh.sgid_index, device_a().gid_index);
	EXPECT_EQ(attr.ah_attr.grh.hop_limit, 64);
	EXPECT_EQ(memcmp(&attr.ah_attr.grh.dgid, &device_b().gid, 16), 0);
	for (const ibv_qp_cap &cap : {attr.cap, init.cap}) {
		EXPECT_GE(cap.max_send_wr, 33u);
		EXPECT_GE(cap.max_recv_wr, 17u);
		EXPECT_GE(cap.max_send_sge, 3u);
		EXPECT_GE(cap.max_recv_sge, 2u);
		EXPECT_GE(cap.max_inline_data, 40u);
	}
	EXPECT_EQ(init.qp_type, IBV_QPT_RC);
	EXPECT_EQ(init.sq_sig_all, 1);
	EXPECT_EQ(init.send_cq, pair.a.send_cq.get());
	EXPECT_EQ(init.recv_cq, pair.a.recv_cq.get());
}

// The send queue before RTS, the receive queue before INIT (IBTA 10.3.1, 11.4.1).
TEST(StatePost, InWrongStates)
{
	for (ibv_qp_state state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR}) {
		auto end = endpoint_in(state);
		Memory local(end->pd.get(), 4096);
		SCOPED_TRACE(state_name(state));

		EXPECT_EQ(end->try_post(SendWr(IBV_WR_SEND, 1, {local.sge(0, 8)})), EINVAL);
		EXPECT_EQ(end->try_recv(2, {local.sge(0, 8)}), state == IBV_QPS_RESET ? EINVAL : 0);
		end->expect_quiet();
	}
}

// Receives posted in INIT are used once the QP gets messages.
TEST(StatePost, ReceiveInInit)
{
	Endpoint a(device_a()), b(device_b());
	Memory local(a.pd.get(), 4096), remote(b.pd.get(), 4096);
	Path path;

	a.to_init();
	b.to_init();
	b.recv(1, {remote.sge(0, 64)});
	b.to_rtr(a, path, path.psn_a); // and no further: RTR is enough to receive
	a.to_rtr(b, path, path.psn_b);
	a.to_rts(path, path.psn_a);
	a.post(SendWr(IBV_WR_SEND, 2, {local.sge(0, 64)}));
	expect_wc(a.wait_send(), 2);
	expect_wc(b.wait_recv(), 1);
}

// SQD: what was posted before is carried out, what comes later waits for RTS.
TEST(StateSqd, DrainsAndResumes)
{
	Pair pair;
	Memory local(pair.a.pd.get(), 1 << 20), remote(pair.b.pd.get(), 1 << 20);
	auto write = [&](uint64_t id, uint32_t length) {
		return SendWr(IBV_WR_RDMA_WRITE, id, {local.sge(0, length)})
			.remote(remote.addr(), remote.rkey());
	};
	ibv_qp_attr attr = {};

	pair.a.dev.drain_events();
	pair.a.post(write(1, 1 << 20));
	attr.qp_state = IBV_QPS_SQD;
	attr.en_sqd_async_notify = 1;
	ASSERT_EQ(ibv_modify_qp(pair.a.qp.get(), &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
		  0);
	expect_wc(pair.a.wait_send(), 1);
	EXPECT_TRUE(pair.a.dev.wait_event(IBV_EVENT_SQ_DRAINED));
	pair.a.post(write(2, 8));
	pair.a.expect_quiet();
	EXPECT_EQ(pair.a.to(IBV_QPS_RTS), 0);
	expect_wc(pair.a.wait_send(), 2);

	// each drain is asked for anew
	EXPECT_EQ(pair.a.to(IBV_QPS_SQD), 0);
	pair.a.post(write(3, 8));
	pair.a.expect_quiet();
	EXPECT_FALSE(pair.a.dev.next_event(0)) << "an event nobody asked for";
	EXPECT_EQ(pair.a.to(IBV_QPS_RTS), 0);
	expect_wc(pair.a.wait_send(), 3);
}

// A packet that comes before the QP can send says that the connection is there; once.
TEST(StateEvent, CommunicationEstablished)
{
	QpConfig config;
	Path path;
	Endpoint a(device_a(), config), b(device_b(), config);
	int events = 0;

	for (Endpoint *end : {&a, &b})
		end->to_init();
	a.to_rtr(b, path, path.psn_b);
	a.to_rts(path, path.psn_a);
	b.to_rtr(a, path, path.psn_a);
	b.dev.drain_events();
	for (uint64_t id = 1; id <= 2; id++) {
		b.recv(id);
		a.post(SendWr(IBV_WR_SEND, id));
		expect_wc(a.wait_send(), id);
		expect_wc(b.wait_recv(), id);
	}
	EXPECT_TRUE(b.dev.wait_event(IBV_EVENT_COMM_EST));
	while (auto event = b.dev.next_event(0))
		events += *event == IBV_EVENT_COMM_EST;
	EXPECT_EQ(events, 0) << "more than once";
	b.to_rts(path, path.psn_b);
	EXPECT_EQ(b.state(), IBV_QPS_RTS);
}

} // namespace
} // namespace verbs
