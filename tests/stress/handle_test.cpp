// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Handles that are not the caller's: of another context, of another process, of nothing, of an object
// of another kind. Each command refuses them, and nothing happens to whose they are. And in which
// order things can be destroyed.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include "objects.hpp"

namespace raw {
namespace {

using verbs::device_a;

struct Row {
	const char *name;
	std::vector<Kind> uses;
	std::function<int(int, const Handles &)> run; // 0 or errno; leaves nothing behind
	bool destroys = false;
};

Row making(Kind kind, std::vector<Kind> uses)
{
	return {kind_name(kind), uses, [=](int fd, const Handles &h) {
			Handles made = h;
			int err = create(fd, kind, made);

			if (!err) {
				EXPECT_EQ(destroy(fd, kind, made[kind]), 0);
			}
			return err;
		}};
}

Row destroying(Kind kind)
{
	return {kind_name(kind),
		{kind},
		[=](int fd, const Handles &h) { return destroy(fd, kind, h[kind]); },
		true};
}

int rereg_mr(int fd, const Handles &h)
{
	ib_uverbs_rereg_mr in = {};

	in.mr_handle = h[kMr];
	in.pd_handle = h[kPd];
	in.flags = IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
	in.access_flags = IBV_ACCESS_LOCAL_WRITE;
	return Command(IB_USER_VERBS_CMD_REREG_MR, in, sizeof(ib_uverbs_rereg_mr_resp)).send(fd);
}

int resize_cq(int fd, const Handles &h)
{
	ib_uverbs_resize_cq in = {};
	uroce_resize_cq_req req = {};

	in.cq_handle = h[kCq];
	in.cqe = 64;
	req.step = UROCE_RESIZE_CQ_PREPARE;
	return Command(IB_USER_VERBS_CMD_RESIZE_CQ, in, sizeof(ib_uverbs_resize_cq_resp),
		       sizeof(uroce_resize_cq_resp))
		.data(&req, sizeof(req))
		.send(fd);
}

int step_qp(int fd, const Handles &h, ibv_qp_state state, int mask)
{
	ib_uverbs_modify_qp in = {};

	in.qp_handle = h[kQp];
	in.attr_mask = mask;
	in.qp_state = state;
	in.port_num = 1;
	return Command(IB_USER_VERBS_CMD_MODIFY_QP, in).send(fd);
}

int modify_qp(int fd, const Handles &h)
{
	int err = step_qp(fd, h, IBV_QPS_INIT, verbs::kInitMask);

	return err ? err : step_qp(fd, h, IBV_QPS_RESET, IBV_QP_STATE);
}

int query_qp(int fd, const Handles &h, ib_uverbs_query_qp_resp *resp = nullptr)
{
	ib_uverbs_query_qp in = {};

	in.qp_handle = h[kQp];
	Command command(IB_USER_VERBS_CMD_QUERY_QP, in, sizeof(ib_uverbs_query_qp_resp));
	int err = command.send(fd);

	if (resp)
		*resp = command.at<ib_uverbs_query_qp_resp>(0);
	return err;
}

int mcast(int fd, const Handles &h)
{
	const ibv_gid group = verbs::gid_of("ff1e::4711");
	ib_uverbs_attach_mcast in = {};

	memcpy(in.gid, group.raw, sizeof(in.gid));
	in.qp_handle = h[kUdQp];
	int err = Command(IB_USER_VERBS_CMD_ATTACH_MCAST, in).send(fd);
	int detached = Command(IB_USER_VERBS_CMD_DETACH_MCAST, in).send(fd);

	EXPECT_EQ(!err, !detached);
	return err;
}

int modify_srq(int fd, const Handles &h)
{
	ib_uverbs_modify_srq in = {};

	in.srq_handle = h[kSrq];
	in.attr_mask = IBV_SRQ_LIMIT;
	return Command(IB_USER_VERBS_CMD_MODIFY_SRQ, in).send(fd);
}

int query_srq(int fd, const Handles &h, ib_uverbs_query_srq_resp *resp = nullptr)
{
	ib_uverbs_query_srq in = {};

	in.srq_handle = h[kSrq];
	Command command(IB_USER_VERBS_CMD_QUERY_SRQ, in, sizeof(ib_uverbs_query_srq_resp));
	int err = command.send(fd);

	if (resp)
		*resp = command.at<ib_uverbs_query_srq_resp>(0);
	return err;
}

int resize_srq(int fd, const Handles &h)
{
	uroce_resize_srq_resp resp;
	uroce_resize_srq_req req = {};

	req.step = UROCE_RESIZE_SRQ_PREPARE;
	req.max_wr = 64;
	return Method(UVERBS_OBJECT_SRQ, UROCE_METHOD_SRQ_RESIZE)
		.handle(UROCE_ATTR_SRQ_RESIZE_HANDLE, h[kSrq])
		.in(UROCE_ATTR_SRQ_RESIZE_REQ, req)
		.out(UROCE_ATTR_SRQ_RESIZE_RESP, &resp, sizeof(resp))
		.send(fd);
}

int query_dm(int fd, const Handles &h)
{
	uroce_dm_query_resp resp;

	return Method(UVERBS_OBJECT_DM, UROCE_METHOD_DM_QUERY)
		.handle(UROCE_ATTR_DM_QUERY_HANDLE, h[kDm])
		.out(UROCE_ATTR_DM_QUERY_RESP, &resp, sizeof(resp))
		.send(fd);
}

int query_mr(int fd, const Handles &h)
{
	uint32_t lkey, rkey;
	uint64_t length, iova;

	return Method(UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR)
		.handle(UVERBS_ATTR_QUERY_MR_HANDLE, h[kMr])
		.out(UVERBS_ATTR_QUERY_MR_RESP_LKEY, &lkey, sizeof(lkey))
		.out(UVERBS_ATTR_QUERY_MR_RESP_RKEY, &rkey, sizeof(rkey))
		.out(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &length, sizeof(length))
		.out(UVERBS_ATTR_QUERY_MR_RESP_IOVA, &iova, sizeof(iova))
		.send(fd);
}

const std::vector<Row> &rows()
{
	static const std::vector<Row> rows = {
		making(kSrq, {kPd}),
		making(kXrcSrq, {kPd, kXrcd, kRecvCq}),
		making(kMr, {kPd}),
		making(kDmMr, {kPd, kDm}),
		making(kMw, {kPd}),
		making(kAh, {kPd}),
		making(kQp, {kPd, kCq, kRecvCq, kSrq}),
		making(kUdQp, {kPd, kCq, kRecvCq}),
		making(kIniQp, {kPd, kCq}),
		making(kTgtQp, {kXrcd}),
		{"rereg_mr", {kMr, kPd}, rereg_mr},
		{"resize_cq", {kCq}, resize_cq},
		{"modify_qp", {kQp}, modify_qp},
		{"query_qp", {kQp}, [](int fd, const Handles &h) { return query_qp(fd, h); }},
		{"mcast", {kUdQp}, mcast},
		{"modify_srq", {kSrq}, modify_srq},
		{"query_srq", {kSrq}, [](int fd, const Handles &h) { return query_srq(fd, h); }},
		{"resize_srq", {kSrq}, resize_srq},
		{"query_dm", {kDm}, query_dm},
		{"query_mr", {kMr}, query_mr},
		destroying(kPd),
		destroying(kCq),
		destroying(kXrcd),
		destroying(kSrq),
		destroying(kXrcSrq),
		destroying(kDm),
		destroying(kMr),
		destroying(kMw),
		destroying(kAh),
		destroying(kQp),
		destroying(kTgtQp),
	};

	return rows;
}

// Kinds that are the same to uverbs have the same number here.
int type_of(Kind kind)
{
	switch (kind) {
	case kRecvCq:
		return kCq;
	case kXrcSrq:
		return kSrq;
	case kDmMr:
		return kMr;
	case kUdQp:
	case kIniQp:
	case kTgtQp:
		return kQp;
	default:
		return kind;
	}
}

bool is_unknown(int err)
{
	return err == ENOENT || err == EINVAL;
}

class HandleTest : public testing::Test {
protected:
	// All works, and nothing has been changed by others.
	void expect_untouched()
	{
		ib_uverbs_query_qp_resp qp;
		ib_uverbs_query_srq_resp srq;

		ASSERT_EQ(query_qp(own.fd, own.h, &qp), 0);
		EXPECT_EQ(qp.qp_state, IBV_QPS_RESET);
		ASSERT_EQ(query_srq(own.fd, own.h, &srq), 0);
		EXPECT_EQ(srq.max_wr, 4u);
		for (const Row &row : rows())
			if (!row.destroys) {
				EXPECT_EQ(row.run(own.fd, own.h), 0) << row.name;
			}
	}
	void SetUp() override
	{
		expect_untouched(); // the rows are right
	}

	Objects own{device_a().get()->cmd_fd};
};

TEST_F(HandleTest, OfAnotherContext)
{
	File other(ibv_get_device_name(device_a().get()->device));

	for (const Row &row : rows())
		EXPECT_PRED1(is_unknown, row.run(other.fd, own.h))
			<< row.name << " before a context";
	ASSERT_EQ(other.get_context(), 0);
	for (const Row &row : rows())
		EXPECT_PRED1(is_unknown, row.run(other.fd, own.h)) << row.name;
	expect_untouched();

	// one's own PD and another's CQ, or the other way round
	Handles mixed = own.h;
	ASSERT_EQ(create(other.fd, kPd, mixed), 0);
	EXPECT_PRED1(is_unknown, create(other.fd, kQp, mixed));
	ASSERT_EQ(destroy(other.fd, kPd, mixed[kPd]), 0) << "it is used by what was refused";
}

TEST_F(HandleTest, OfAnotherProcess)
{
	fflush(stdout);
	pid_t child = fork();
	int status = -1;

	if (!child) {
		File other(ibv_get_device_name(device_a().get()->device));
		int wrong = other.get_context() != 0;

		for (const Row &row : rows())
			wrong += !is_unknown(row.run(other.fd, own.h));
		_exit(wrong);
	}
	ASSERT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0) << "as many answers were wrong";
	expect_untouched();
}

TEST_F(HandleTest, OfNothing)
{
	for (const Row &row : rows())
		for (Kind kind : row.uses)
			for (uint32_t number : {0x7fffffffu, 0xffffffffu, 0x10000u}) {
				Handles h = own.h;

				h[kind] = number;
				EXPECT_PRED1(is_unknown, row.run(own.fd, h))
					<< row.name << " with " << kind_name(kind) << " " << number;
			}
	expect_untouched();
}

TEST_F(HandleTest, OfAnotherKind)
{
	int tried = 0;

	for (const Row &row : rows())
		for (Kind kind : row.uses)
			for (int k = 0; k < kKinds; k++) {
				Kind other = static_cast<Kind>(k);
				Handles h = own.h;

				if (type_of(other) == type_of(kind))
					continue;
				h[kind] = own.h[other];
				EXPECT_PRED1(is_unknown, row.run(own.fd, h))
					<< row.name << " with a " << kind_name(other)
					<< " in place of its " << kind_name(kind);
				tried++;
			}
	printf("# %d handles\n", tried);
	expect_untouched();
}

// A handle is dead with its object, at once.
TEST_F(HandleTest, OfTheDestroyed)
{
	for (Kind kind : {kMr, kMw, kAh, kQp, kUdQp, kTgtQp, kXrcSrq}) {
		Handles h = own.h;

		ASSERT_EQ(create(own.fd, kind, h), 0) << kind_name(kind);
		ASSERT_EQ(destroy(own.fd, kind, h[kind]), 0);
		EXPECT_EQ(destroy(own.fd, kind, h[kind]), ENOENT) << kind_name(kind);
	}
	expect_untouched();
}

// The queues are the process' own: the kernel does not fill or empty them by commands.
TEST_F(HandleTest, QueuesOfProcesses)
{
	ib_uverbs_post_recv recv = {};
	ib_uverbs_post_send send = {};
	ib_uverbs_post_srq_recv srq = {};
	ib_uverbs_recv_wr recv_wr = {};
	ib_uverbs_send_wr send_wr = {};
	ib_uverbs_poll_cq poll = {};
	ib_uverbs_req_notify_cq notify = {};
	const int fd = own.fd;
	auto post = [=](uint32_t number, const auto &core, const auto &wr) {
		return Command(number, core, sizeof(uint32_t)).data(&wr, sizeof(wr)).send(fd);
	};

	recv.wr_count = send.wr_count = srq.wr_count = 1;
	recv.wqe_size = srq.wqe_size = sizeof(recv_wr);
	send.wqe_size = sizeof(send_wr);
	for (Kind kind : {kQp, kUdQp, kIniQp, kTgtQp}) {
		recv.qp_handle = send.qp_handle = own.h[kind];
		send_wr.wr.ud.ah = own.h[kAh];
		EXPECT_EQ(post(IB_USER_VERBS_CMD_POST_RECV, recv, recv_wr), EOPNOTSUPP);
		EXPECT_EQ(post(IB_USER_VERBS_CMD_POST_SEND, send, send_wr), EOPNOTSUPP);
	}
	srq.srq_handle = own.h[kSrq];
	EXPECT_EQ(post(IB_USER_VERBS_CMD_POST_SRQ_RECV, srq, recv_wr), EOPNOTSUPP);
	poll.cq_handle = notify.cq_handle = own.h[kCq];
	poll.ne = 1;
	EXPECT_EQ(Command(IB_USER_VERBS_CMD_POLL_CQ, poll, 8 + sizeof(ib_uverbs_wc)).send(fd),
		  EOPNOTSUPP);
	EXPECT_EQ(Command(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, notify).send(fd), EOPNOTSUPP);
	expect_untouched();
}

// Each object goes when nothing uses it, and not before, in whichever order it is tried.
TEST(Busy, EveryPairInAnyOrder)
{
	std::set<std::pair<Kind, Kind>> refused;
	std::mt19937 random(7);

	for (int round = 0; round < 12 && !HasFailure(); round++) {
		Objects all(device_a().get()->cmd_fd);
		int left = kKinds;

		while (left && !HasFailure()) {
			std::vector<Kind> users;
			Kind kind = static_cast<Kind>(random() % kKinds);

			if (!all.alive[kind])
				continue;
			for (Kind user : users_of(kind))
				if (all.alive[user])
					users.push_back(user);
			EXPECT_EQ(destroy(all.fd, kind, all.h[kind]), users.empty() ? 0 : EBUSY)
				<< kind_name(kind) << ", used by " << users.size();
			if (users.empty()) {
				all.alive[kind] = false;
				left--;
			} else if (users.size() == 1) {
				refused.insert({kind, users[0]}); // for that one's sake alone
			}
		}
	}
	// those that the dice have not left alone
	for (int k = 0; k < kKinds; k++)
		for (Kind user : users_of(Kind(k))) {
			if (refused.count({Kind(k), user}))
				continue;
			Objects all(device_a().get()->cmd_fd);
			for (int other = kKinds - 1; other >= 0; other--) {
				auto needs = users_of(Kind(other));
				bool needed = other == k || other == user ||
					      std::count(needs.begin(), needs.end(), user);

				if (needed)
					continue;
				if (!destroy(all.fd, Kind(other), all.h[other]))
					all.alive[other] = false;
			}
			EXPECT_EQ(destroy(all.fd, Kind(k), all.h[k]), EBUSY)
				<< kind_name(Kind(k)) << ", used by a " << kind_name(user);
		}
	printf("# %zu pairs by chance\n", refused.size());
}

// The link goes; who has the file open gets EIO from then on. The script brings it back.
TEST(Gone, EveryCommand)
{
	const char *dev = ibv_get_device_name(device_a().get()->device);
	const int fd = device_a().get()->cmd_fd;
	File idle(dev);
	auto own = std::make_unique<Objects>(fd);

	setenv("RDMAV_ALLOW_DISASSOC_DESTROY", "1", 1);
	ASSERT_EQ(system((std::string("rdma link del ") + dev).c_str()), 0);
	for (const Row &row : rows())
		if (!row.destroys) {
			EXPECT_EQ(row.run(fd, own->h), EIO) << row.name;
		}
	EXPECT_EQ(create_pd().send(fd), EIO);
	EXPECT_EQ(create_cq().send(fd), EIO);
	EXPECT_EQ(create_xrcd().send(fd), EIO);
	EXPECT_EQ(idle.get_context(), EIO);
	for (const Row &row : rows())
		EXPECT_PRED1([](int err) { return err == EIO || err == ENOENT; },
			     row.run(idle.fd, own->h))
			<< row.name << " without a context";
	own->alive = {}; // gone with it
}

} // namespace
} // namespace raw
