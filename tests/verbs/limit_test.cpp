// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Sizes from 0 to far too much, unsupported kinds, destroying in the wrong order.
#include <sys/mman.h>

#include <algorithm>
#include <functional>

#include "verbs.hpp"

namespace verbs {
namespace {

constexpr uint32_t k2To31 = 1u << 31;

ibv_qp *create_qp(const Endpoint &end, ibv_qp_cap cap, ibv_qp_type type,
		  ibv_qp_cap *granted = nullptr)
{
	ibv_qp_init_attr init = {};

	init.send_cq = end.send_cq.get();
	init.recv_cq = end.recv_cq.get();
	init.cap = cap;
	init.qp_type = type;
	errno = 0;
	ibv_qp *qp = ibv_create_qp(end.pd.get(), &init);
	if (qp && granted)
		*granted = init.cap;
	return qp;
}

TEST(LimitCq, Sizes)
{
	int max = device_a().attr.max_cqe;

	for (int cqe : {1, 2, 3, 1000, max / 2, max}) {
		Cq cq(ibv_create_cq(device_a().get(), cqe, nullptr, nullptr, 0));

		ASSERT_TRUE(cq) << cqe << ": " << strerror(errno);
		EXPECT_GE(cq->cqe, cqe);
	}
	for (int cqe : {0, -1, max + 1, int(k2To31 - 1), int(k2To31)}) {
		errno = 0;
		Cq cq(ibv_create_cq(device_a().get(), cqe, nullptr, nullptr, 0));

		EXPECT_FALSE(cq) << cqe;
		if (!cq) {
			EXPECT_EQ(errno, EINVAL) << cqe;
		}
	}
}

TEST(LimitCq, CompVector)
{
	int vectors = device_a().get()->num_comp_vectors;

	for (int vector = 0; vector < vectors; vector++)
		EXPECT_TRUE(Cq(ibv_create_cq(device_a().get(), 16, nullptr, nullptr, vector)))
			<< vector;
	for (int vector : {vectors, -1, 1 << 20}) {
		errno = 0;
		EXPECT_FALSE(Cq(ibv_create_cq(device_a().get(), 16, nullptr, nullptr, vector)))
			<< vector;
		EXPECT_EQ(errno, EINVAL);
	}
}

struct Cap {
	const char *name;
	uint32_t ibv_qp_cap::*field;
	std::function<uint32_t()> max;
};

const Cap kCaps[] = {
	{"max_send_wr", &ibv_qp_cap::max_send_wr,
	 [] { return uint32_t(device_a().attr.max_qp_wr); }},
	{"max_recv_wr", &ibv_qp_cap::max_recv_wr,
	 [] { return uint32_t(device_a().attr.max_qp_wr); }},
	{"max_send_sge", &ibv_qp_cap::max_send_sge,
	 [] { return uint32_t(device_a().attr.max_sge); }},
	{"max_recv_sge", &ibv_qp_cap::max_recv_sge,
	 [] { return uint32_t(device_a().attr.max_sge); }},
};

class LimitQpOf : public testing::TestWithParam<ibv_qp_type> {};

TEST_P(LimitQpOf, EachCap)
{
	Endpoint end(device_a());

	for (const Cap &c : kCaps) {
		SCOPED_TRACE(c.name);
		for (uint32_t value : {0u, 1u, c.max()}) {
			ibv_qp_cap cap = {4, 4, 1, 1, 0}, granted = {};

			cap.*c.field = value;
			Qp qp(create_qp(end, cap, GetParam(), &granted));
			ASSERT_TRUE(qp) << value << ": " << strerror(errno);
			EXPECT_GE(granted.*c.field, value);
		}
		for (uint32_t value : {c.max() + 1, k2To31 - 1, k2To31, k2To31 + 1, ~0u}) {
			ibv_qp_cap cap = {4, 4, 1, 1, 0};

			cap.*c.field = value;
			Qp qp(create_qp(end, cap, GetParam()));
			EXPECT_FALSE(qp) << value;
			if (!qp) {
				EXPECT_EQ(errno, EINVAL) << value;
			}
		}
	}
}

INSTANTIATE_TEST_SUITE_P(, LimitQpOf, testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD),
			 [](auto &info) {
				 return info.param == IBV_QPT_RC ? "Rc" :
					info.param == IBV_QPT_UC ? "Uc" :
								   "Ud";
			 });

TEST(LimitQp, Inline)
{
	Endpoint end(device_a());
	bool refused = false;

	for (uint32_t value : {0u, 1u, 64u, 200u}) {
		ibv_qp_cap granted = {};
		Qp qp(create_qp(end, {4, 4, 1, 1, value}, IBV_QPT_RC, &granted));

		ASSERT_TRUE(qp) << value;
		EXPECT_GE(granted.max_inline_data, value);
	}
	for (uint32_t value : {1u << 20, k2To31, ~0u, ~0u - 15}) {
		Qp qp(create_qp(end, {4, 4, 1, 1, value}, IBV_QPT_RC));

		refused = !qp;
		EXPECT_TRUE(refused) << value;
		if (refused) {
			EXPECT_EQ(errno, EINVAL) << value;
		}
	}
}

// Everything at its maximum at once either works or is refused with a reason.
TEST(LimitQp, AllAtOnce)
{
	Endpoint end(device_a());
	uint32_t wr = device_a().attr.max_qp_wr, sge = device_a().attr.max_sge;
	Qp qp(create_qp(end, {wr, wr, sge, sge, 64}, IBV_QPT_RC));

	if (!qp) {
		EXPECT_TRUE(errno == EINVAL || errno == ENOMEM) << strerror(errno);
	}
}

// What the device does not have is EOPNOTSUPP, nothing else.
TEST(LimitQp, Types)
{
	Endpoint end(device_a());

	for (ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD})
		EXPECT_TRUE(Qp(create_qp(end, {4, 4, 1, 1, 0}, type))) << type;
	for (int type : {int(IBV_QPT_RAW_PACKET), int(IBV_QPT_DRIVER), 77}) {
		EXPECT_FALSE(Qp(create_qp(end, {4, 4, 1, 1, 0}, ibv_qp_type(type)))) << type;
		EXPECT_TRUE(errno == EOPNOTSUPP || (type == 77 && errno == EINVAL))
			<< type << ": " << strerror(errno);
	}
}

// Verbs for what needs hardware
TEST(LimitUnsupported, SaysSo)
{
	Endpoint end(device_a());
	ibv_context *context = device_a().get();
	struct {
		ibv_flow_attr attr;
		ibv_flow_spec_eth spec;
	} flow = {};
	ibv_wq_init_attr wq = {};
	ibv_rwq_ind_table_init_attr table = {};
	ibv_counters_init_attr counters = {};
	ibv_qp_rate_limit_attr rate = {};
	ibv_ece ece = {};

	flow.attr.size = sizeof(flow);
	flow.attr.num_of_specs = 1;
	flow.attr.port = 1;
	flow.spec.type = IBV_FLOW_SPEC_ETH;
	flow.spec.size = sizeof(flow.spec);
	wq.wq_type = IBV_WQT_RQ;
	wq.max_wr = wq.max_sge = 1;
	wq.pd = end.pd.get();
	wq.cq = end.recv_cq.get();
	rate.rate_limit = 1000;

	auto none = [](const char *what, void *object) {
		EXPECT_EQ(object, nullptr) << what;
		EXPECT_EQ(errno, EOPNOTSUPP) << what << ": " << strerror(errno);
		errno = 0;
	};
	none("create_flow", ibv_create_flow(end.qp.get(), &flow.attr));
	none("create_wq", ibv_create_wq(context, &wq));
	none("create_rwq_ind_table", ibv_create_rwq_ind_table(context, &table));
	none("alloc_null_mr", ibv_alloc_null_mr(end.pd.get()));
	none("create_counters", ibv_create_counters(context, &counters));
	EXPECT_EQ(ibv_modify_qp_rate_limit(end.qp.get(), &rate), EOPNOTSUPP);
	EXPECT_EQ(ibv_set_ece(end.qp.get(), &ece), EOPNOTSUPP);
}

TEST(LimitQp, ManyQpsAndTheirNumbers)
{
	Endpoint end(device_a());
	std::vector<Qp> qps;
	std::vector<uint32_t> numbers;

	for (int i = 0; i < 500; i++) {
		qps.emplace_back(create_qp(end, {1, 1, 1, 1, 0}, IBV_QPT_RC));
		ASSERT_TRUE(qps.back()) << i << ": " << strerror(errno);
		numbers.push_back(qps.back()->qp_num);
	}
	std::sort(numbers.begin(), numbers.end());
	EXPECT_EQ(std::adjacent_find(numbers.begin(), numbers.end()), numbers.end());
	EXPECT_GT(numbers.front(), 1u);
	EXPECT_LT(numbers.back(), 0xffffffu);
}

TEST(LimitDestroy, BusyObjects)
{
	auto end = std::make_unique<Endpoint>(device_a());

	EXPECT_EQ(ibv_dealloc_pd(end->pd.get()), EBUSY);
	EXPECT_EQ(ibv_destroy_cq(end->send_cq.get()), EBUSY);
	EXPECT_EQ(ibv_destroy_cq(end->recv_cq.get()), EBUSY);
	end->to_init(); // all still there
	end->recv(1);
	Memory memory(end->pd.get(), 4096);
	end->qp.reset();
	EXPECT_EQ(ibv_dealloc_pd(end->pd.get()), EBUSY); // the region
}

TEST(LimitDestroy, ChannelOfACq)
{
	Channel channel(check(ibv_create_comp_channel(device_a().get()), "create_comp_channel"));
	Cq one(check(ibv_create_cq(device_a().get(), 4, nullptr, channel.get(), 0), "create_cq"));
	Cq two(check(ibv_create_cq(device_a().get(), 4, nullptr, channel.get(), 0), "create_cq"));

	EXPECT_EQ(ibv_destroy_comp_channel(channel.get()), EBUSY);
	one.reset();
	EXPECT_EQ(ibv_destroy_comp_channel(channel.get()), EBUSY);
	two.reset();
	EXPECT_EQ(ibv_destroy_comp_channel(channel.release()), 0);
}

TEST(LimitMr, Lengths)
{
	Pd pd(check(ibv_alloc_pd(device_a().get()), "alloc_pd"));
	std::vector<uint8_t> memory(1 << 20);

	for (size_t length : {size_t(1), size_t(4095), size_t(4097), memory.size()})
		for (size_t offset : {0, 1, 4095}) {
			if (offset + length > memory.size())
				continue;
			EXPECT_TRUE(Mr(
				ibv_reg_mr(pd.get(), memory.data() + offset, length, kAllAccess)))
				<< offset << " " << length << strerror(errno);
		}
	for (size_t length : {size_t(1) << 47, size_t(1) << 63, ~size_t(0), ~size_t(0) - 4095}) {
		errno = 0;
		Mr mr(ibv_reg_mr(pd.get(), memory.data(), length, kAllAccess));

		EXPECT_FALSE(mr) << length;
		if (!mr) {
			EXPECT_TRUE(errno == EINVAL || errno == EFAULT || errno == ENOMEM)
				<< strerror(errno);
		}
	}
}

TEST(LimitMr, BadMemory)
{
	Pd pd(check(ibv_alloc_pd(device_a().get()), "alloc_pd"));
	auto map = [](int prot) {
		return mmap(nullptr, 8192, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	};
	void *none = map(PROT_NONE), *read_only = map(PROT_READ),
	     *hole = map(PROT_READ | PROT_WRITE);

	munmap(static_cast<char *>(hole) + 4096, 4096);
	for (void *p : {none, read_only, hole}) {
		errno = 0;
		EXPECT_FALSE(Mr(ibv_reg_mr(pd.get(), p, 8192, kAllAccess)));
		EXPECT_EQ(errno, EFAULT);
	}
	EXPECT_TRUE(Mr(ibv_reg_mr(pd.get(), read_only, 8192, IBV_ACCESS_REMOTE_READ)))
		<< strerror(errno);
	munmap(none, 8192);
	munmap(read_only, 8192);
	munmap(hole, 4096);
}

// IBTA 10.6.3.1: remote write and atomics need local write. Optional flags are never refused.
TEST(LimitMr, AccessFlags)
{
	Pd pd(check(ibv_alloc_pd(device_a().get()), "alloc_pd"));
	std::vector<uint8_t> memory(8192);

	for (int access : {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC}) {
		errno = 0;
		EXPECT_FALSE(Mr(ibv_reg_mr(pd.get(), memory.data(), 8192, access)));
		EXPECT_EQ(errno, EINVAL);
	}
	EXPECT_TRUE(Mr(ibv_reg_mr(pd.get(), memory.data(), 8192,
				  kAllAccess | IBV_ACCESS_RELAXED_ORDERING)));
	EXPECT_TRUE(Mr(ibv_reg_mr(pd.get(), memory.data(), 8192, 0)));
}

// Keys are not handed out again at once: a stale one must not open the next region.
TEST(LimitMr, StaleKeys)
{
	Pd pd(check(ibv_alloc_pd(device_a().get()), "alloc_pd"));
	std::vector<uint8_t> memory(4096);
	uint32_t last = 0;

	for (int i = 0; i < 100; i++) {
		Mr mr(check(ibv_reg_mr(pd.get(), memory.data(), 4096, kAllAccess), "reg_mr"));

		EXPECT_NE(mr->rkey, last);
		last = mr->rkey;
	}
}

// All the address handles there are; rdmacm.sh looks what the kernel can do meanwhile.
TEST(Limit, HoardOfAhs)
{
	const char *ready = getenv("rc_test_hoard");

	if (!ready)
		GTEST_SKIP() << "rdmacm.sh runs this";
	const std::string told = std::string(ready) + ".end";
	Endpoint end(device_a());
	std::vector<Ah> hoard;
	ibv_ah_attr attr = {};
	ibv_device_attr caps;

	ASSERT_EQ(ibv_query_device(device_a().get(), &caps), 0);
	attr.port_num = 1;
	attr.is_global = 1;
	attr.grh.dgid = device_a().gid;
	attr.grh.sgid_index = device_a().gid_index;
	attr.grh.hop_limit = 64;
	for (;;) {
		ibv_ah *ah = ibv_create_ah(end.pd.get(), &attr);

		if (!ah)
			break;
		hoard.emplace_back(ah);
	}
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_LE(hoard.size(), size_t(caps.max_ah));
	EXPECT_GE(hoard.size(), size_t(caps.max_ah) - 100);
	FILE *f = fopen(ready, "w");
	ASSERT_TRUE(f);
	fclose(f);
	while (access(told.c_str(), F_OK))
		usleep(10000);
}

} // namespace
} // namespace verbs
