// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Values at the edge of what a field can say: the last good one works, the next one is refused and
// changes nothing; and what the device advertises can be used up.
#include <sys/mman.h>

#include <algorithm>

#include "scene.hpp"

namespace verbs {
namespace {

constexpr uint64_t k2To31 = uint64_t(1) << 31;

// ---- attributes of a QP ----

struct Attribute {
	const char *name;
	ibv_qp_type type;
	void (*set)(ibv_qp_attr *attr);
	uint32_t (*get)(const ibv_qp_attr &attr);
	uint32_t (*want)(); // when there is a device
};

#define FIELD(type, field, value)                                                    \
	{                                                                            \
#field " " #value, IBV_QPT_##type,                                                 \
			[](ibv_qp_attr *a) { a->field = decltype(a->field)(value); },              \
			[](const ibv_qp_attr &a) { return uint32_t(a.field); },                    \
			[] { return uint32_t(value); } \
	}

const Attribute kAttributes[] = {
	FIELD(RC, path_mtu, IBV_MTU_256),
	FIELD(RC, path_mtu, device_a().port.active_mtu),
	FIELD(RC, dest_qp_num, 0),
	FIELD(RC, dest_qp_num, 1),
	FIELD(RC, dest_qp_num, 0xffffff),
	FIELD(RC, rq_psn, 0),
	FIELD(RC, rq_psn, 0xffffff),
	FIELD(RC, sq_psn, 0),
	FIELD(RC, sq_psn, 0xffffff),
	FIELD(RC, max_dest_rd_atomic, 0),
	FIELD(RC, max_dest_rd_atomic, device_a().attr.max_qp_rd_atom),
	FIELD(RC, max_rd_atomic, 0),
	FIELD(RC, max_rd_atomic, device_a().attr.max_qp_init_rd_atom),
	FIELD(RC, min_rnr_timer, 0),
	FIELD(RC, min_rnr_timer, 31),
	FIELD(RC, timeout, 0),
	FIELD(RC, timeout, 31),
	FIELD(RC, retry_cnt, 0),
	FIELD(RC, retry_cnt, 7),
	FIELD(RC, rnr_retry, 0),
	FIELD(RC, rnr_retry, 7),
	FIELD(RC, qp_access_flags, 0),
	FIELD(RC, ah_attr.grh.traffic_class, 255),
	FIELD(RC, ah_attr.grh.flow_label, 0),
	FIELD(RC, ah_attr.grh.flow_label, 0xfffff),
	FIELD(RC, ah_attr.sl, 7),
	FIELD(UC, dest_qp_num, 0xffffff),
	FIELD(UC, rq_psn, 0xffffff),
	FIELD(UC, sq_psn, 0xffffff),
	FIELD(UC, path_mtu, device_a().port.active_mtu),
	FIELD(UD, qkey, 0),
	FIELD(UD, qkey, 1),
	FIELD(UD, qkey, 0x7fffffff),
	FIELD(UD, qkey, 0x80000000),
	FIELD(UD, qkey, 0xffffffff),
	FIELD(UD, sq_psn, 0xffffff),
};

TEST(LimitValue, OfAnAttribute)
{
	for (const Attribute &a : kAttributes) {
		SCOPED_TRACE(a.name);
		QpConfig config;
		Path path;

		config.type = a.type;
		Endpoint end(device_a(), config);
		ibv_qp_attr attr = rtr_attr(end.dev, end.dev, end.qp->qp_num, path, 0);
		ibv_qp_attr rts = rts_attr(end.dev, path, 0);

		attr.timeout = rts.timeout;
		attr.retry_cnt = rts.retry_cnt;
		attr.rnr_retry = rts.rnr_retry;
		attr.max_rd_atomic = rts.max_rd_atomic;
		attr.port_num = 1;
		attr.qp_access_flags = kQpAccess;
		attr.qkey = kQkey;
		a.set(&attr);
		attr.qp_state = IBV_QPS_INIT;
		ASSERT_EQ(ibv_modify_qp(end.qp.get(), &attr, init_mask(a.type)), 0);
		attr.qp_state = IBV_QPS_RTR;
		ASSERT_EQ(ibv_modify_qp(end.qp.get(), &attr, rtr_mask(a.type)), 0);
		attr.qp_state = IBV_QPS_RTS;
		ASSERT_EQ(ibv_modify_qp(end.qp.get(), &attr, rts_mask(a.type)), 0);
		EXPECT_EQ(a.get(end.query(0x1fffff)), a.want());
	}
}

// Each right that a QP may not be given, alone and with good ones.
TEST(LimitValue, OfTheAccessOfAQp)
{
	constexpr int kGood =
		kAllAccess | IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_OPTIONAL_RANGE;
	Endpoint end(device_a());
	ibv_qp_attr attr = {};

	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 1;
	for (int bit = 0; bit < 32; bit++)
		for (unsigned int more : {0, kQpAccess}) {
			attr.qp_access_flags = 1u << bit | more;
			bool good = !(attr.qp_access_flags & ~kGood);
			EXPECT_EQ(ibv_modify_qp(end.qp.get(), &attr, kInitMask), good ? 0 : EINVAL)
				<< "bit " << bit;
			EXPECT_EQ(end.state(), good ? IBV_QPS_INIT : IBV_QPS_RESET);
			EXPECT_EQ(end.to(IBV_QPS_RESET), 0);
		}
}

// ---- ports, GIDs, addresses ----

TEST(LimitValue, OfAPort)
{
	ibv_context *context = device_a().get();
	ibv_port_attr attr;
	ibv_gid gid;
	__be16 pkey;

	for (int port : {0, 2, 255})
		EXPECT_EQ(ibv_query_port(context, port, &attr), EINVAL) << port;
	for (int port : {0, 2, 255}) {
		EXPECT_NE(ibv_query_gid(context, port, 0, &gid), 0) << port;
		EXPECT_NE(ibv_query_pkey(context, port, 0, &pkey), 0) << port;
	}
	EXPECT_EQ(ibv_query_gid(context, 1, 0, &gid), 0);
	EXPECT_EQ(ibv_query_gid(context, 1, device_a().port.gid_tbl_len - 1, &gid), 0);
	for (int index : {device_a().port.gid_tbl_len, 65535, 65536, INT32_MAX, -1})
		EXPECT_NE(ibv_query_gid(context, 1, index, &gid), 0) << index;
	EXPECT_EQ(ibv_query_pkey(context, 1, 0, &pkey), 0);
	for (int index : {int(device_a().port.pkey_tbl_len), 65535, 65536, INT32_MAX, -1})
		EXPECT_NE(ibv_query_pkey(context, 1, index, &pkey), 0) << index;
}

const char *const kToNobody = "to ::";

struct AhCase {
	const char *name;
	void (*change)(ibv_ah_attr *attr);
	int err = 0;
};

const AhCase kAhs[] = {
	{"good", [](ibv_ah_attr *) {}},
	{"hop limit 0", [](auto *a) { a->grh.hop_limit = 0; }},
	{"hop limit 1", [](auto *a) { a->grh.hop_limit = 1; }},
	{"hop limit 255", [](auto *a) { a->grh.hop_limit = 255; }},
	{"traffic class 255", [](auto *a) { a->grh.traffic_class = 255; }},
	{"flow label 2^20-1", [](auto *a) { a->grh.flow_label = 0xfffff; }},
	{"flow label 2^32-1", [](auto *a) { a->grh.flow_label = ~0u; }},
	{"sl 7", [](auto *a) { a->sl = 7; }},
	{"dlid 65535", [](auto *a) { a->dlid = 65535; }},
	{"no GRH", [](auto *a) { a->is_global = 0; }, EINVAL},
	{"port 0", [](auto *a) { a->port_num = 0; }, EINVAL},
	{"port 2", [](auto *a) { a->port_num = 2; }, EINVAL},
	{"port 255", [](auto *a) { a->port_num = 255; }, EINVAL},
	{"GID index 255", [](auto *a) { a->grh.sgid_index = 255; }, ENODATA},
	{kToNobody, [](auto *a) { memset(&a->grh.dgid, 0, 16); }, EINVAL},
};

TEST(LimitValue, OfAnAddressHandle)
{
	Pd pd(check(ibv_alloc_pd(device_a().get()), "alloc_pd"));

	for (const AhCase &c : kAhs) {
		ibv_ah_attr attr = {};

		attr.is_global = 1;
		attr.port_num = 1;
		attr.grh.dgid = device_b().gid;
		attr.grh.sgid_index = device_a().gid_index;
		attr.grh.hop_limit = 64;
		c.change(&attr);
		errno = 0;
		Ah ah(ibv_create_ah(pd.get(), &attr));

		// the core looks for a route first, and a namespace may have none
		if (c.name == kToNobody && !ah && errno == ENETUNREACH)
			continue;
		EXPECT_EQ(ah ? 0 : errno, c.err) << c.name;
	}
}

// ---- regions ----

TEST(LimitRegion, LengthsAndAddresses)
{
	constexpr uint64_t kLast = ~uint64_t(0), kTop = kLast - 4095;
	Pd pd(check(ibv_alloc_pd(device_a().get()), "alloc_pd"));
	Memory memory(pd.get(), 8192);
	const uint64_t at = reinterpret_cast<uintptr_t>(memory.data());
	const struct {
		const char *name;
		uint64_t start, length, iova;
		int err;
	} cases[] = {
		{"a byte", at, 1, at, 0},
		{"the last byte", at + 8191, 1, at + 8191, 0},
		{"all", at, 8192, at, 0},
		{"at 0", at, 8192, 0, 0},
		{"up to 2^32", at, 8192, (uint64_t(1) << 32) - 8192, 0},
		{"across 2^32", at, 8192, (uint64_t(1) << 32) - 4096, 0},
		{"up to 2^63", at, 8192, (uint64_t(1) << 63) - 8192, 0},
		{"across 2^63", at, 8192, (uint64_t(1) << 63) - 4096, 0},
		{"up to 2^64", at, 4096, kTop, 0},
		{"its last byte", at + 4095, 1, kLast, 0},
		{"across 2^64", at, 4097, kTop, EINVAL},
		{"a byte across it", at + 4095, 2, kLast, EINVAL},
		{"other places in their pages", at, 4096, 1, EINVAL},
		{"nothing", at, 0, at, EINVAL},
		{"2^31 - 1", at, k2To31 - 1, at, EFAULT},
		{"2^31", at, k2To31, at, EFAULT},
		{"2^32 - 1", at, 2 * k2To31 - 1, at, EFAULT},
		{"2^32", at, 2 * k2To31, at, EFAULT},
		{"2^44, 2^32 pages", at, uint64_t(1) << 44, at, EINVAL},
		{"2^63", at, uint64_t(1) << 63, at, EINVAL},
		{"2^64 - 1", at, kLast, at, EINVAL},
		{"2^64 - 4096", at, kTop, 0, EINVAL},
		{"where nothing can be", kTop, 4096, 0, EINVAL},
		{"in the kernel", 0xffff888000000000, 4096, 0, EFAULT},
		{"at NULL", 0, 4096, 0, EFAULT},
	};

	for (const auto &c : cases) {
		errno = 0;
		Mr mr(ibv_reg_mr_iova(pd.get(), reinterpret_cast<void *>(c.start), c.length, c.iova,
				      kAllAccess));

		EXPECT_EQ(mr ? 0 : errno, c.err) << c.name;
	}
}

// The last page that there can be is as good as any other: sums of addresses may be 2^64, but not 0.
TEST(LimitRegion, AtTheEndOfTheAddresses)
{
	constexpr uint64_t kTop = ~uint64_t(0) - 4095;
	Scene s({}, {});
	Memory local(s.pair.a.pd.get(), 4096, kAllAccess, kTop);
	Memory remote(s.pair.b.pd.get(), 4096, kAllAccess, kTop);

	for (uint32_t length : {1u, 8u, 4095u, 4096u}) {
		const size_t offset = 4096 - length;
		auto done = [&](ibv_wr_opcode op) {
			SendWr wr(op, length, {local.sge(offset, length)});

			s.pair.a.post(wr.remote(remote.addr(offset), remote.rkey()));
			expect_wc(s.pair.a.wait_send(), length);
			EXPECT_EQ(memcmp(local.data() + offset, remote.data() + offset, length), 0);
		};

		SCOPED_TRACE(length);
		memset(local.data(), length, 4096);
		memset(remote.data(), ~length, 4096);
		done(IBV_WR_RDMA_WRITE);
		memset(local.data(), 0x77, 4096);
		done(IBV_WR_RDMA_READ);
		memset(local.data(), 0x42, 4096);
		s.pair.b.recv(1, {remote.sge(offset, length)});
		done(IBV_WR_SEND);
		expect_wc(s.pair.b.wait_recv(), 1);
	}
	s.pair.a.post(SendWr(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, {local.sge(4088, 8)})
			      .remote(remote.addr(4088), remote.rkey())
			      .atomic(1));
	expect_wc(s.pair.a.wait_send(), 1);
	// and no further: there is nothing behind it, and it does not begin again at 0
	s.pair.a.post(SendWr(IBV_WR_RDMA_WRITE, 2, {s.local.sge(0, 4097)})
			      .remote(remote.addr(), remote.rkey()));
	expect_wc(s.pair.a.wait_send(), 2, IBV_WC_REM_ACCESS_ERR);
	s.pair.reconnect(Path());
	s.pair.a.post(SendWr(IBV_WR_RDMA_WRITE, 3, {local.sge(0, 4097)})
			      .remote(s.remote.addr(), s.remote.rkey()));
	expect_wc(s.pair.a.wait_send(), 3, IBV_WC_LOC_PROT_ERR);
}

TEST(LimitRegion, EveryBitOfTheAccess)
{
	Pd pd(check(ibv_alloc_pd(device_a().get()), "alloc_pd"));
	Memory memory(pd.get(), 4096);

	// 8 to 19 are nobody's yet; 20 to 29 may be ignored, and are
	for (int bit = 0; bit < 32; bit++) {
		const unsigned int access = 1u << bit | IBV_ACCESS_LOCAL_WRITE;

		if (access & (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB))
			continue; // have tests of their own
		errno = 0;
		Mr mr(ibv_reg_mr(pd.get(), memory.data(), 4096, int(access)));
		EXPECT_EQ(mr ? 0 : errno, (bit > 7 && bit < 20) || bit > 29 ? EINVAL : 0)
			<< "bit " << bit;
	}
}

TEST(LimitRegion, OfDeviceMemory)
{
	ibv_alloc_dm_attr dm_attr = {};
	Pd pd(check(ibv_alloc_pd(device_a().get()), "alloc_pd"));
	uint8_t byte[16] = {};
	constexpr uint64_t kLast = ~uint64_t(0);

	dm_attr.length = 8192;
	ibv_dm *dm = ibv_alloc_dm(device_a().get(), &dm_attr);
	if (!dm)
		GTEST_SKIP() << "no device memory";
	const struct {
		uint64_t offset, length;
		bool good;
	} cases[] = {
		{0, 4, true},		{0, 8192, true},       {8188, 4, true},
		{4096, 4096, true},	{8188, 8, false},      {8192, 4, false},
		{4, 8192, false},	{0, 8196, false},      {k2To31, 4, false},
		{2 * k2To31, 4, false}, {kLast - 3, 8, false}, {kLast - 3, 4, false},
		{4, kLast - 3, false},	{0, kLast - 3, false},
	};
	for (const auto &c : cases) {
		const int access = kAllAccess | IBV_ACCESS_ZERO_BASED;

		errno = 0;
		Mr mr(ibv_reg_dm_mr(pd.get(), dm, c.offset, c.length, access));
		EXPECT_EQ(mr ? 0 : errno, c.good ? 0 : EINVAL) << c.offset << ", " << c.length;
		if (c.length > sizeof(byte) && c.good)
			continue;
		EXPECT_EQ(ibv_memcpy_to_dm(dm, c.offset, byte, c.length), c.good ? 0 : EFAULT);
		EXPECT_EQ(ibv_memcpy_from_dm(byte, dm, c.offset, c.length), c.good ? 0 : EFAULT);
	}
	EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST(LimitAdvice, LengthsAndAddresses)
{
	constexpr uint64_t kLast = ~uint64_t(0);
	Pd pd(check(ibv_alloc_pd(device_a().get()), "alloc_pd"));
	Memory memory(pd.get(), 8192);
	const int access = kAllAccess | IBV_ACCESS_ON_DEMAND;
	ibv_mr *probe = ibv_reg_mr(pd.get(), memory.data(), 8192, access);

	if (!probe)
		GTEST_SKIP() << "no on-demand paging";
	Mr part(probe);
	Mr all(check(ibv_reg_mr(pd.get(), nullptr, SIZE_MAX, access), "reg_mr, implicit"));
	const uint64_t at = reinterpret_cast<uintptr_t>(memory.data());
	auto advise = [&](const Mr &mr, uint64_t addr, uint32_t length, uint32_t num = 1,
			  uint32_t flags = IBV_ADVISE_MR_FLAG_FLUSH,
			  int advice = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE) {
		ibv_sge sge = {addr, length, mr->lkey};

		return ibv_advise_mr(pd.get(), static_cast<ibv_advise_mr_advice>(advice), flags,
				     &sge, num);
	};

	for (const Mr *mr : {&part, &all}) {
		EXPECT_EQ(advise(*mr, at, 0), 0);
		EXPECT_EQ(advise(*mr, at, 1), 0);
		EXPECT_EQ(advise(*mr, at + 8191, 1), 0);
		EXPECT_EQ(advise(*mr, at, 8192), 0);
		EXPECT_EQ(advise(*mr, at, 0, 0), EINVAL) << "no elements";
		// all memory there is: what comes first behind this, a hole or what may not be written
		for (uint32_t length : {uint32_t(k2To31), ~0u}) {
			int err = advise(*mr, at, length);

			EXPECT_TRUE(err == EFAULT || (mr == &all && err == EPERM)) << err;
		}
		EXPECT_EQ(advise(*mr, 0, 4096), EFAULT);
		EXPECT_EQ(advise(*mr, kLast, 1), EFAULT);
		EXPECT_EQ(advise(*mr, kLast, 2), EFAULT);
		EXPECT_EQ(advise(*mr, kLast - 4095, 8192), EFAULT);
		EXPECT_EQ(advise(*mr, 0xffff888000000000, 4096), EFAULT);
		for (uint32_t flags : {2u, 1u << 31, ~0u})
			EXPECT_EQ(advise(*mr, at, 1, 1, flags), EINVAL) << flags;
		for (int advice : {3, INT32_MAX, -1})
			EXPECT_EQ(advise(*mr, at, 1, 1, 1, advice), EOPNOTSUPP) << advice;
	}
	EXPECT_EQ(advise(part, at + 8192, 0), 0) << "nothing, at its end";
	EXPECT_EQ(advise(part, at + 8193, 0), EFAULT);
	EXPECT_EQ(advise(part, at - 1, 1), EFAULT);
}

// ---- queues ----

TEST(LimitValue, OfModeration)
{
	Cq cq(check(ibv_create_cq(device_a().get(), 16, nullptr, nullptr, 0), "create_cq"));
	ibv_device_attr_ex caps = {};
	ibv_modify_cq_attr attr = {};

	check(ibv_query_device_ex(device_a().get(), nullptr, &caps), "query_device_ex");
	if (!caps.cq_mod_caps.max_cq_count)
		GTEST_SKIP() << "no moderation";
	EXPECT_EQ(caps.cq_mod_caps.max_cq_count, UINT16_MAX) << "the field has no more";
	EXPECT_EQ(caps.cq_mod_caps.max_cq_period, UINT16_MAX);
	attr.attr_mask = IBV_CQ_ATTR_MODERATE;
	for (uint16_t count : {0, 1, UINT16_MAX})
		for (uint16_t period : {0, 1, UINT16_MAX}) {
			attr.moderate = {count, period};
			EXPECT_EQ(ibv_modify_cq(cq.get(), &attr), 0) << count << ", " << period;
		}
}

// Queues of the largest size take so many requests at once, and not one more.
TEST(LimitQueue, HoldsWhatIsAdvertised)
{
	const uint32_t max = device_a().attr.max_qp_wr;
	QpConfig config;

	config.send_wr = config.recv_wr = max;
	Pair pair(config);
	std::vector<ibv_recv_wr> recvs(max + 1);
	std::vector<ibv_send_wr> sends(max + 1);
	ibv_recv_wr *bad_recv = nullptr;
	ibv_send_wr *bad_send = nullptr;

	ASSERT_EQ(pair.a.cap.max_send_wr, max);
	ASSERT_EQ(pair.b.cap.max_recv_wr, max);
	for (uint32_t i = 0; i <= max; i++) {
		recvs[i].wr_id = sends[i].wr_id = i;
		recvs[i].next = i < max ? &recvs[i + 1] : nullptr;
		sends[i].next = i < max ? &sends[i + 1] : nullptr;
		sends[i].opcode = IBV_WR_SEND;
		sends[i].send_flags = i == max - 1 ? IBV_SEND_SIGNALED : 0;
	}
	EXPECT_EQ(ibv_post_recv(pair.b.qp.get(), &recvs[0], &bad_recv), ENOMEM);
	EXPECT_EQ(bad_recv, &recvs[max]);
	EXPECT_EQ(ibv_post_send(pair.a.qp.get(), &sends[0], &bad_send), ENOMEM);
	EXPECT_EQ(bad_send, &sends[max]);
	for (uint32_t i = 0; i < max; i++)
		ASSERT_NO_FATAL_FAILURE(expect_wc(pair.b.wait_recv(), i));
	expect_wc(pair.a.wait_send(), max - 1);
	pair.b.expect_quiet();
	// all of it is free again
	pair.b.recv(1);
	pair.a.post(SendWr(IBV_WR_SEND, 2));
	expect_wc(pair.a.wait_send(), 2);
	expect_wc(pair.b.wait_recv(), 1);
}

TEST(LimitQueue, ElementsOfARequest)
{
	const uint32_t max = std::min(device_a().attr.max_sge, device_b().attr.max_sge);
	QpConfig config;

	config.send_sge = config.recv_sge = max;
	Scene s(config, {});
	std::vector<ibv_sge> from, to;
	uint32_t granted = s.pair.a.cap.max_send_sge;

	for (uint32_t i = 0; i < max; i++) {
		memset(s.local.data() + 64 * i, i, 64);
		from.push_back(s.local.sge(64 * i, 64));
		to.push_back(s.remote.sge(64 * (max - 1 - i), 64));
	}
	s.pair.b.recv(1, to);
	s.pair.a.post(SendWr(IBV_WR_SEND, 2, from));
	expect_wc(s.pair.a.wait_send(), 2);
	expect_wc(s.pair.b.wait_recv(), 1);
	for (uint32_t i = 0; i < max; i++)
		EXPECT_EQ(memcmp(s.remote.data() + 64 * (max - 1 - i), s.local.data() + 64 * i, 64),
			  0);
	if (device_a().attr.max_sge_rd >= int(max)) {
		memset(s.local.data(), 0, 64 * max);
		s.pair.a.post(
			SendWr(IBV_WR_RDMA_READ, 3, from).remote(s.remote.addr(), s.remote.rkey()));
		expect_wc(s.pair.a.wait_send(), 3);
		EXPECT_EQ(memcmp(s.remote.data(), s.local.data(), 64 * max), 0);
	}
	from.resize(granted + 1, from[0]);
	to.resize(s.pair.b.cap.max_recv_sge + 1, to[0]);
	EXPECT_EQ(s.pair.a.try_post(SendWr(IBV_WR_SEND, 4, from)), EINVAL);
	EXPECT_EQ(s.pair.b.try_recv(4, to), EINVAL);
}

// As many READs and atomics under way as are advertised, with more of them waiting.
TEST(LimitQueue, DepthOfReads)
{
	const int depth = device_b().attr.max_qp_rd_atom;
	QpConfig config;
	Path path;

	config.send_wr = 3 * depth;
	path.rd_atomic = path.dest_rd_atomic = std::min(255, depth);
	Scene s(config, path);

	EXPECT_EQ(s.pair.a.query(IBV_QP_MAX_QP_RD_ATOMIC).max_rd_atomic, depth);
	memset(s.remote.data(), 0, kSize);
	for (uint32_t i = 0; i < kSize / 4; i++)
		memcpy(s.remote.data() + 4 * i, &i, 4);
	for (int i = 0; i < 3 * depth; i++)
		s.pair.a.post(
			i % 3 == 2 ? SendWr(IBV_WR_ATOMIC_FETCH_AND_ADD, i, {s.local.sge(8 * i, 8)})
					     .remote(s.remote.addr(kSize - 8), s.remote.rkey())
					     .atomic(1) :
				     SendWr(IBV_WR_RDMA_READ, i, {s.local.sge(8 * i, 8)})
					     .remote(s.remote.addr(8 * i), s.remote.rkey()));
	for (int i = 0; i < 3 * depth; i++)
		expect_wc(s.pair.a.wait_send(), i);
	for (int i = 0; i < 3 * depth; i++)
		if (i % 3 != 2) {
			EXPECT_EQ(memcmp(s.local.data() + 8 * i, s.remote.data() + 8 * i, 8), 0)
				<< i;
		}
	uint64_t before = (kSize / 4 - 1ull) << 32 | (kSize / 4 - 2), after;

	memcpy(&after, s.remote.data() + kSize - 8, 8);
	EXPECT_EQ(after, before + depth);
}

// ---- the largest message: 2 GiB, from and to the same memory several times ----

TEST(LargestMessage, AndOneByteMore)
{
	const uint64_t max = device_a().port.max_msg_sz;
	const uint32_t pieces = std::min(device_a().attr.max_sge, device_b().attr.max_sge);
	const uint32_t piece = max / pieces;
	QpConfig config;
	Path path;

	ASSERT_EQ(uint64_t(piece) * pieces, max);
	path.mtu = mtu_at_most(IBV_MTU_4096);
	path.timeout = 20; // 4 s: it takes its time
	config.send_sge = config.recv_sge = pieces;
	Pair pair(config, path);
	Memory local(pair.a.pd.get(), 2 * size_t(piece)),
		remote(pair.b.pd.get(), 2 * size_t(piece));
	auto sge = [=](const Memory &memory, uint32_t length) {
		return std::vector<ibv_sge>(pieces, memory.sge(0, length));
	};
	auto same = [&] { return !memcmp(local.data(), remote.data(), piece); };

	for (size_t i = 0; i < piece; i += 4096)
		memset(local.data() + i, i >> 12 ^ i >> 20, 4096);
	pair.b.recv(1, sge(remote, piece));
	pair.a.post(SendWr(IBV_WR_SEND, 2, sge(local, piece)));
	ibv_wc wc = pair.b.wait_recv();
	expect_wc(wc, 1);
	EXPECT_EQ(wc.byte_len, max);
	expect_wc(pair.a.wait_send(), 2);
	EXPECT_TRUE(same());

	// a byte more, and twice as many, which are 0 in 32 bits
	memset(remote.data(), 0xee, piece);
	auto more = sge(local, piece);
	more[0].length++;
	for (const auto &list : {more, sge(local, 2 * piece)}) {
		pair.b.recv(3, sge(remote, piece));
		pair.a.post(SendWr(IBV_WR_SEND, 4, list));
		expect_wc(pair.a.wait_send(), 4, IBV_WC_LOC_LEN_ERR);
		EXPECT_EQ(std::count(remote.data(), remote.data() + piece, 0xee),
			  std::ptrdiff_t(piece));
		pair.reconnect(path);
	}
	// a receive may well be longer
	pair.b.recv(5, sge(remote, 2 * piece));
	pair.a.post(SendWr(IBV_WR_SEND, 6, {local.sge(0, 4096)}));
	expect_wc(pair.a.wait_send(), 6);
	wc = pair.b.wait_recv();
	expect_wc(wc, 5);
	EXPECT_EQ(wc.byte_len, 4096u);
	EXPECT_EQ(memcmp(local.data(), remote.data(), 4096), 0);
}

} // namespace
} // namespace verbs
