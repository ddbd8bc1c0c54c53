// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Every allocation of every verb fails once, and every copy from and to the process: the verb says
// so, nothing is left behind, and the next call works. Needs a kernel that can let them fail
// (/proc/thread-self/fail-nth); tests/debug/allocations.sh chooses which.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "scene.hpp"

namespace verbs {
namespace {

// The n-th allocation of this thread, counted from arming.
class FailNth {
public:
	FailNth() : fd_(open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC)) {}
	~FailNth()
	{
		if (fd_ >= 0)
			close(fd_);
	}
	FailNth(const FailNth &) = delete;

	bool works() const
	{
		return fd_ >= 0;
	}
	void arm(int n) const
	{
		write_number(n);
	}
	// Whether it came to the n-th
	bool disarm() const
	{
		char left[16] = {};
		// what is read is copied to the process, which counts and may fail
		ssize_t got = pread(fd_, left, sizeof(left) - 1, 0);

		write_number(0);
		return got > 0 && atoi(left) == 0;
	}

private:
	void write_number(int n) const
	{
		char text[16];
		int length = snprintf(text, sizeof(text), "%d", n);

		while (pwrite(fd_, text, length, 0) != length) // counts and may fail as well
			;
	}

	const int fd_;
};

// errno of what could not be had (a route or a socket, too), or not be copied
bool is_shortage(int err)
{
	return err == ENOMEM || err == ENOBUFS || err == EFAULT;
}

// For helpers that throw
template <typename Make>
auto or_none(Make make) -> decltype(make())
{
	try {
		return make();
	} catch (const std::system_error &error) {
		errno = error.code().value();
		return nullptr;
	}
}

class Alloc : public testing::Test {
protected:
	void SetUp() override
	{
		if (!injector_.works())
			GTEST_SKIP() << "this kernel cannot let allocations fail";
	}

	// @make gives an object, or none and errno; @undo takes it away and returns an errno. With
	// each of their allocations failing in turn.
	template <typename Make, typename Undo>
	void each_fails(const char *what, Make make, Undo undo)
	{
		SCOPED_TRACE(what);
		int made = each([&] { return make(); },
				[&](auto object, bool more, int err) {
					if (!object)
						EXPECT_TRUE(more && is_shortage(err))
							<< strerror(err);
					else
						EXPECT_EQ(undo(object), 0);
				});
		decltype(make()) object;
		int undone = each(
			[&] {
				injector_.disarm();
				object = make();
				injector_.arm(n_);
				return object ? undo(object) : EINVAL;
			},
			[&](int result, bool more, int) {
				if (!result)
					return;
				EXPECT_TRUE(more && is_shortage(result)) << strerror(result);
				// what failed may have been the answer, with the object gone
				int again = undo(object);
				EXPECT_TRUE(!again || (result == EFAULT && again == ENOENT))
					<< "again: " << strerror(again);
				lost_ |= again;
			});
		printf("# %s: %d allocations, %d to undo it\n", what, made, undone);
	}

	// The same of a verb that makes nothing: an errno
	template <typename Verb>
	void each_fails(const char *what, Verb verb)
	{
		each_fails(
			what,
			[&] {
				errno = verb();
				return !errno;
			},
			[](bool) { return 0; });
	}

	// Calls @verb with the first, second, ... allocation failing, until there are no more of
	// them; @check gets what it returned, whether one failed, and errno. How many there are.
	template <typename Verb, typename Check>
	int each(Verb verb, Check check_result)
	{
		bool more = true;

		for (n_ = 1; more && n_ < 5000 && !HasFailure(); n_++) {
			SCOPED_TRACE("allocation " + std::to_string(n_));
			injector_.arm(n_);
			auto result = verb();
			int err = errno;
			more = injector_.disarm();
			check_result(result, more, err);
		}
		EXPECT_FALSE(more);
		return n_ - 2;
	}

	FailNth injector_;
	int n_ = 0; // the allocation that fails
	// The library believes that objects are there which are not.
	bool lost_ = false;
};

TEST_F(Alloc, Contexts)
{
	// the library looks for another device file when it cannot open one: any errno
	each_fails(
		"open_device",
		[] {
			ibv_context *context = ibv_open_device(device_a().get()->device);

			if (!context)
				errno = ENOMEM;
			return context;
		},
		ibv_close_device);
	each_fails(
		"import_device",
		[] {
			int fd = dup(device_a().get()->cmd_fd);
			ibv_context *context = fd < 0 ? nullptr : ibv_import_device(fd);

			if (!context && fd >= 0)
				close(fd);
			if (!context)
				errno = ENOMEM;
			return context;
		},
		ibv_close_device);
}

TEST_F(Alloc, DomainsAndQueues)
{
	ibv_context *context = device_a().get();
	Pd pd(check(ibv_alloc_pd(context), "alloc_pd"));
	Channel channel(check(ibv_create_comp_channel(context), "create_comp_channel"));
	Cq cq(check(ibv_create_cq(context, 16, nullptr, nullptr, 0), "create_cq"));

	each_fails(
		"alloc_pd", [=] { return ibv_alloc_pd(context); }, ibv_dealloc_pd);
	each_fails(
		"create_comp_channel", [=] { return ibv_create_comp_channel(context); },
		ibv_destroy_comp_channel);
	each_fails(
		"create_cq", [&] { return ibv_create_cq(context, 100, nullptr, channel.get(), 0); },
		ibv_destroy_cq);
	each_fails(
		"create_cq_ex",
		[=] {
			ibv_cq_init_attr_ex attr = {};

			attr.cqe = 100;
			attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
			return ibv_create_cq_ex(context, &attr);
		},
		[](ibv_cq_ex *ex) { return ibv_destroy_cq(ibv_cq_ex_to_cq(ex)); });
	if (lost_) // its CQs
		channel.release();
	int size = 16;
	each_fails("resize_cq", [&] { return ibv_resize_cq(cq.get(), size ^= 16 ^ 4000); });
	each_fails(
		"create_srq",
		[&] {
			ibv_srq_init_attr attr = {nullptr, {100, 4, 0}};

			return ibv_create_srq(pd.get(), &attr);
		},
		ibv_destroy_srq);
	ibv_srq_init_attr srq_init = {nullptr, {100, 4, 0}};
	Srq srq(check(ibv_create_srq(pd.get(), &srq_init), "create_srq"));
	ibv_srq_attr srq_attr = {100, 0, 0};
	each_fails("resize_srq", [&] {
		srq_attr.max_wr ^= 100 ^ 3000;
		return ibv_modify_srq(srq.get(), &srq_attr, IBV_SRQ_MAX_WR);
	});
	if (device_a().has_xrc()) {
		Xrcd xrcd(open_xrcd(context));

		each_fails(
			"create_srq_ex",
			[&] {
				return or_none([&] {
					return create_xrc_srq(pd.get(), xrcd.get(), cq.get(), 100);
				});
			},
			ibv_destroy_srq);
	}
}

TEST_F(Alloc, Xrcds)
{
	if (!device_a().has_xrc())
		GTEST_SKIP() << "no XRC";
	FILE *file = tmpfile();

	each_fails(
		"open_xrcd",
		[file] {
			return or_none([=] { return open_xrcd(device_a().get(), fileno(file)); });
		},
		ibv_close_xrcd);
	fclose(file);
}

TEST_F(Alloc, Memory)
{
	ibv_context *context = device_a().get();
	Pd pd(check(ibv_alloc_pd(context), "alloc_pd"));
	Memory memory(pd.get(), 1 << 20);
	ibv_sge sge = memory.sge(0, 1 << 20);
	auto reg = [&](int access) {
		return ibv_reg_mr(pd.get(), memory.data(), memory.size(), access);
	};

	each_fails(
		"reg_mr", [&] { return reg(kAllAccess); }, ibv_dereg_mr);
	each_fails(
		"alloc_mw", [&] { return ibv_alloc_mw(pd.get(), IBV_MW_TYPE_1); }, ibv_dealloc_mw);

	Mr mr(check(reg(kAllAccess), "reg_mr"));
	size_t length = memory.size();
	each_fails("rereg_mr", [&] {
		length = memory.size() + 4096 - length;
		return ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_TRANSLATION, pd.get(),
				    memory.data(), length, 0) ?
			       errno :
			       0;
	});

	each_fails(
		"reg_mr, on demand", [&] { return reg(kAllAccess | IBV_ACCESS_ON_DEMAND); },
		ibv_dereg_mr);
	each_fails(
		"reg_mr, implicit, with a prefetch",
		[&] {
			ibv_mr *all = ibv_reg_mr(pd.get(), nullptr, SIZE_MAX,
						 kAllAccess | IBV_ACCESS_ON_DEMAND);
			if (all) {
				// advice: it may do nothing
				sge.lkey = all->lkey;
				ibv_advise_mr(pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
					      IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
			}
			return all;
		},
		ibv_dereg_mr);
}

TEST_F(Alloc, DeviceMemory)
{
	ibv_context *context = device_a().get();
	Pd pd(check(ibv_alloc_pd(context), "alloc_pd"));
	ibv_alloc_dm_attr attr = {};

	attr.length = 1 << 16;
	each_fails(
		"alloc_dm", [&] { return ibv_alloc_dm(context, &attr); }, ibv_free_dm);
	ibv_dm *dm = check(ibv_alloc_dm(context, &attr), "alloc_dm");
	each_fails(
		"reg_dm_mr",
		[&] {
			return ibv_reg_dm_mr(pd.get(), dm, 0, attr.length,
					     kAllAccess | IBV_ACCESS_ZERO_BASED);
		},
		ibv_dereg_mr);
	check(ibv_free_dm(dm), "free_dm");
}

TEST_F(Alloc, QueuePairs)
{
	Endpoint end(device_a());
	std::vector<ibv_qp_type> types = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

	if (device_a().has_xrc())
		types.push_back(IBV_QPT_XRC_SEND);
	for (ibv_qp_type type : types)
		each_fails(
			"create_qp",
			[&] {
				ibv_qp_init_attr_ex init = {};

				init.qp_type = type;
				init.send_cq = init.recv_cq = end.send_cq.get();
				init.cap = {100, 100, 4, 4, 64};
				init.comp_mask = IBV_QP_INIT_ATTR_PD;
				init.pd = end.pd.get();
				if (type == IBV_QPT_XRC_SEND) {
					init.recv_cq = nullptr;
					init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
				}
				return ibv_create_qp_ex(device_a().get(), &init);
			},
			ibv_destroy_qp);
}

TEST_F(Alloc, States)
{
	Endpoint end(device_a()), peer(device_b());
	Path path;

	path.mtu = mtu_at_most(path.mtu);
	each_fails("modify_qp", [&] {
		ibv_qp_attr init = {};
		ibv_qp_attr rtr = rtr_attr(end.dev, peer.dev, peer.qp->qp_num, path, 5);
		ibv_qp_attr rts = rts_attr(end.dev, path, 5);
		int err = end.to(IBV_QPS_RESET);

		init.qp_state = IBV_QPS_INIT;
		init.port_num = 1;
		if (!err)
			err = ibv_modify_qp(end.qp.get(), &init, kInitMask);
		if (!err)
			err = ibv_modify_qp(end.qp.get(), &rtr, kRtrMask);
		if (!err)
			err = ibv_modify_qp(end.qp.get(), &rts, kRtsMask);
		return err;
	});
	each_fails("query_qp", [&] {
		ibv_qp_attr attr;
		ibv_qp_init_attr init;

		return ibv_query_qp(end.qp.get(), &attr, IBV_QP_STATE | IBV_QP_AV, &init);
	});
}

TEST_F(Alloc, Addresses)
{
	QpConfig datagrams;

	datagrams.type = IBV_QPT_UD;
	Endpoint end(device_a(), datagrams);
	ibv_gid group = gid_of("ff1e::77");

	end.to_init();
	each_fails(
		"create_ah",
		[&] {
			ibv_ah_attr attr = {};

			attr.is_global = 1;
			attr.port_num = 1;
			attr.grh.dgid = device_b().gid;
			attr.grh.sgid_index = device_a().gid_index;
			return ibv_create_ah(end.pd.get(), &attr);
		},
		ibv_destroy_ah);
	each_fails(
		"attach_mcast",
		[&] {
			errno = ibv_attach_mcast(end.qp.get(), &group, 0);
			return !errno;
		},
		[&](bool) { return ibv_detach_mcast(end.qp.get(), &group, 0); });
}

// The data path allocates too, in packets' way: whatever fails there is lost and sent again.
TEST_F(Alloc, Operations)
{
	Path path;

	path.timeout = 12; // 17 ms
	for (ibv_wr_opcode op :
	     {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
		Scene s({}, path);
		bool atomic = op == IBV_WR_ATOMIC_FETCH_AND_ADD, reads = op == IBV_WR_RDMA_READ;
		uint32_t length = atomic ? 8 : 5000;
		int n = 1;

		SCOPED_TRACE(op);
		for (bool more = true; more && n < 500 && !HasFailure(); n++) {
			memset(s.local.data(), n, length);
			if (!atomic)
				memset(s.remote.data(), ~n, length);
			SendWr wr(op, n, {s.local.sge(0, length)});
			wr.remote(s.remote.addr(), s.remote.rkey());
			if (op == IBV_WR_SEND)
				s.pair.b.recv(n, {s.remote.sge(0, length)});
			if (atomic)
				wr.atomic(1);

			injector_.arm(n);
			int err = s.pair.a.try_post(wr);
			more = injector_.disarm();
			if (err) {
				ADD_FAILURE() << "post_send: " << strerror(err);
				break;
			}
			expect_wc(s.pair.a.wait_send(), n);
			if (op == IBV_WR_SEND)
				expect_wc(s.pair.b.wait_recv(), n);
			if (atomic)
				continue;
			uint8_t want = reads ? ~n : n;
			for (Memory *memory : {&s.local, &s.remote})
				EXPECT_EQ(std::count(memory->data(), memory->data() + length, want),
					  length)
					<< "allocation " << n;
		}
		if (atomic) {
			uint64_t sum;

			memcpy(&sum, s.remote.data(), 8);
			EXPECT_EQ(sum, 0x2222222222222222U + n - 1);
		}
		printf("# %d allocations\n", n - 2);
	}
}

} // namespace
} // namespace verbs
