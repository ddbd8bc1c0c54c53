// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A thread writes nonsense over the memory shared with the kernel while QPs work on it. What may
// come of that: errors on these QPs. What may not: a byte of memory that no key allows to touch,
// anything in the kernel's log (the caller looks), anything left behind.
#include "raw.hpp"
#include "stress.hpp"

namespace raw {
namespace {

using stress::Background;
using stress::pick;
using stress::Rng;
using stress::Rounds;
using verbs::device_a;
using verbs::device_b;
using verbs::Memory;

constexpr uint8_t kUntouched = 0xc5;

// Memory that no request may change: keys without the right, of another PD, and no key at all.
class Canaries {
public:
	explicit Canaries(Rig &rig)
	    : other_pd_(verbs::check(ibv_alloc_pd(device_a().get()), "alloc_pd")),
	      read_a_(rig.pd_a.get(), kMemory, IBV_ACCESS_REMOTE_READ),
	      read_b_(rig.pd_b.get(), kMemory, IBV_ACCESS_REMOTE_READ),
	      foreign_(other_pd_.get(), kMemory), plain_(kMemory)
	{
		for (Memory *m : {&read_a_, &read_b_, &foreign_})
			memset(m->data(), kUntouched, kMemory);
		memset(plain_.data(), kUntouched, kMemory);
	}
	// Somewhere at or around one of them, or in memory that may be used
	uroce_sge element(Rng &rng, Rig &rig)
	{
		const std::pair<uint64_t, uint32_t> memory[] = {
			{rig.local.addr(), rig.local.lkey()},
			{rig.local.addr(), rig.local.lkey()},
			{rig.remote.addr(), rig.remote.lkey()},
			{read_a_.addr(), read_a_.lkey()},
			{read_b_.addr(), read_b_.lkey()},
			{foreign_.addr(), foreign_.lkey()},
			{reinterpret_cast<uint64_t>(plain_.data()), rig.local.lkey()},
			{rng(), rig.local.lkey()},
			{rig.local.addr(), static_cast<uint32_t>(rng())},
		};
		const uint32_t lengths[] = {8,		 8,	     0,
					    1,		 4096,	     kMemory,
					    kMemory + 1, 0x7fffffff, static_cast<uint32_t>(rng())};
		auto [addr, key] = memory[pick(rng, 0, std::size(memory) - 1)];

		if (pick(rng, 0, 3) == 0)
			addr += pick(rng, 0, 2 * kMemory) - kMemory / 2;
		return {addr, lengths[pick(rng, 0, std::size(lengths) - 1)], key};
	}
	void check()
	{
		for (Memory *m : {&read_a_, &read_b_, &foreign_})
			expect_untouched(m->data());
		expect_untouched(plain_.data());
	}

private:
	static void expect_untouched(const uint8_t *p)
	{
		EXPECT_EQ(std::count(p, p + kMemory, kUntouched), std::ptrdiff_t(kMemory));
	}

	verbs::Pd other_pd_;
	Memory read_a_, read_b_, foreign_;
	std::vector<uint8_t> plain_;
};

// Writes to shared memory until told to stop.
class Scribbler {
public:
	enum Where { Slots, Everything };

	Scribbler(Rig &rig, Canaries &canaries, Where where, uint64_t seed)
	    : rig_(rig), canaries_(canaries), rng_(seed), shared_(mappings()),
	      provider_(provider_pages()), thread_([this, where] {
		      if (where == Slots || pick(rng_, 0, 7) == 0)
			      slot();
		      else
			      word();
		      stress::spin(pick(rng_, 0, 300));
	      })
	{
	}
	~Scribbler()
	{
		thread_.stop();
		// The provider's doorbells as they were: later tests of this process ring them
		for (auto &[span, copy] : provider_)
			memcpy(span.first, copy.data(), span.second);
	}

private:
	using Copy = std::pair<Span, std::vector<uint8_t>>;

	std::vector<Copy> provider_pages() const
	{
		const std::vector<Span> own = rig_.shared();
		std::vector<Copy> pages;

		for (const Span &span : shared_)
			if (std::find(own.begin(), own.end(), span) == own.end())
				pages.push_back({span, {span.first, span.first + span.second}});
		return pages;
	}
	uint64_t value()
	{
		const uint64_t menu[] = {
			0,	1,	~0ull,	0x8000000080000000, 0x7fffffff7fffffff,
			rng_(), rng_(), rng_(), pick(rng_, 0, 40)};

		return menu[pick(rng_, 0, std::size(menu) - 1)];
	}
	// A field of a WQE gets what it could have, or nearly
	void slot()
	{
		Qp &qp = pick(rng_, 0, 1) ? rig_.a : rig_.b;
		uroce_send_wqe *send = qp.send_slot(rng_());
		uroce_recv_wqe *recv = qp.recv_slot(rng_());

		switch (pick(rng_, 0, 11)) {
		case 0:
			send->opcode = pick(rng_, 0, 15);
			break;
		case 1:
			send->flags = pick(rng_, 0, 15);
			break;
		case 2:
			send->flags = value();
			break;
		case 3:
			send->num_sge = pick(rng_, 0, qp.resp.max_send_sge + 1);
			break;
		case 4:
			send->num_sge = value();
			break;
		case 5:
			send->inline_len = pick(rng_, 0, qp.resp.max_inline + 1);
			break;
		case 6:
			send->inline_len = value();
			break;
		case 7:
			send->rkey = pick(rng_, 0, 1) ? rig_.remote.rkey() : value();
			break;
		case 8:
			send->remote_addr = canaries_.element(rng_, rig_).addr;
			break;
		case 9:
			element(send + 1, qp.resp.max_send_sge);
			break;
		case 10:
			recv->num_sge = pick(rng_, 0, 3) ? pick(rng_, 0, qp.resp.max_recv_sge + 1) :
							   value();
			break;
		case 11:
			element(recv + 1, qp.resp.max_recv_sge);
			break;
		}
	}
	void element(void *list, uint32_t entries)
	{
		static_cast<uroce_sge *>(list)[pick(rng_, 0, entries - 1)] =
			canaries_.element(rng_, rig_);
	}
	// Any aligned word of any mapping: rings, control words, doorbells
	void word()
	{
		auto [base, size] = shared_[pick(rng_, 0, shared_.size() - 1)];
		size_t bytes = 1 << pick(rng_, 0, 3);
		// every other one near the start, where the control words are
		size_t end = pick(rng_, 0, 1) ? size : std::min<size_t>(size, 256);
		uint64_t v = value();

		memcpy(base + pick(rng_, 0, end / bytes - 1) * bytes, &v, bytes);
	}

	Rig &rig_;
	Canaries &canaries_;
	Rng rng_;
	std::vector<Span> shared_;
	std::vector<Copy> provider_; // the mappings that are not the rig's
	stress::Background thread_; // last: uses the rest
};

uroce_send_wqe some_wqe(Rng &rng, Rig &rig, Canaries &canaries)
{
	static const unsigned int known[] = {IBV_WR_RDMA_WRITE,
					     IBV_WR_RDMA_WRITE_WITH_IMM,
					     IBV_WR_SEND,
					     IBV_WR_SEND_WITH_IMM,
					     IBV_WR_RDMA_READ,
					     IBV_WR_ATOMIC_CMP_AND_SWP,
					     IBV_WR_ATOMIC_FETCH_AND_ADD,
					     IBV_WR_SEND};
	uroce_send_wqe wqe = rig.wqe(known[pick(rng, 0, 7)], rng(), pick(rng, 0, 2));

	wqe.flags |= pick(rng, 0, 7);
	if (pick(rng, 0, 5) == 0)
		wqe.remote_addr = canaries.element(rng, rig).addr;
	if (pick(rng, 0, 9) == 0) {
		wqe.flags |= UROCE_SEND_INLINE;
		wqe.num_sge = 0;
		wqe.inline_len = pick(rng, 0, rig.a.resp.max_inline);
	}
	return wqe;
}

// Posts on both QPs, sound WQEs mostly; connects them anew when one is in error.
void work(Rng &rng, Rig &rig, Canaries &canaries, int posts)
{
	for (int i = 0; i < posts; i++) {
		Qp &qp = pick(rng, 0, 1) ? rig.a : rig.b;

		if (pick(rng, 0, 2) == 0)
			qp.put_recv(i, {canaries.element(rng, rig)});
		qp.put_send(some_wqe(rng, rig, canaries),
			    {canaries.element(rng, rig), canaries.element(rng, rig)});
		EXPECT_EQ(qp.kick(), 0);
		rig.poll();
		if (rig.a.state() == IBV_QPS_ERR || rig.b.state() == IBV_QPS_ERR) {
			EXPECT_EQ(rig.connect_anew(), 0);
		}
	}
}

void scribble(const char *what, Scribbler::Where where)
{
	for (Rounds round(what); round.next();) {
		Rig rig;
		Canaries canaries(rig);

		rig.path.timeout = pick(round.rng, 4, 9);
		rig.path.retry_cnt = pick(round.rng, 0, 3);
		ASSERT_EQ(rig.connect(), 0);
		{
			Scribbler scribbler(rig, canaries, where, round.rng());

			work(round.rng, rig, canaries, 60);
			// the end: error, reset, or destroyed as they are
			if (pick(round.rng, 0, 2) == 0) {
				EXPECT_EQ(rig.a.to(pick(round.rng, 0, 1) ? IBV_QPS_ERR :
									   IBV_QPS_RESET),
					  0);
			}
			EXPECT_EQ(rig.a.destroy(), 0);
			EXPECT_EQ(rig.b.destroy(), 0);
		}
		canaries.check();
	}
}

TEST(Scribble, Slots)
{
	scribble("Scribble.Slots", Scribbler::Slots);
}

TEST(Scribble, Everything)
{
	scribble("Scribble.Everything", Scribbler::Everything);
}

// One word that is sound now and not in the next moment, under a WQE that is fetched all the time:
// what was checked must be what is used.
TEST(Scribble, FlippedCounts)
{
	for (Rounds round("Scribble.FlippedCounts"); round.next();) {
		Rig rig;

		for (uint32_t i = 0; i < rig.a.resp.sq_entries; i++) {
			*rig.a.send_slot(i) =
				rig.wqe(i % 2 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, i, 1);
			*reinterpret_cast<uroce_sge *>(rig.a.send_slot(i) + 1) =
				sge(rig.local, 0, 64);
			*reinterpret_cast<uroce_sge *>(rig.b.recv_slot(i) + 1) =
				sge(rig.remote, 0, 64);
		}
		Background flipper([&rig, i = 0u]() mutable {
			uroce_send_wqe *send = rig.a.send_slot(i / 2);

			send->num_sge = i % 2 ? 0xffff : 1;
			send->flags = i % 8 < 4 ? UROCE_SEND_SIGNALED :
						  UROCE_SEND_SIGNALED | UROCE_SEND_INLINE;
			send->inline_len = i % 2 ? 0xffffffff : 16;
			rig.b.recv_slot(i / 2)->num_sge = i % 2 ? 0xffffffff : 1;
			i++;
		});
		for (int i = 0; i < 200; i++) {
			EXPECT_EQ(rig.connect(), 0);
			rig.b.ctrl()->rq_tail = rig.b.resp.rq_entries;
			rig.a.ctrl()->sq_tail = rig.a.resp.sq_entries;
			EXPECT_EQ(rig.a.kick(), 0);
			rig.poll();
		}
	}
}

// Tails that run away while the kernel follows them, in the error state, too.
TEST(Scribble, RunawayTails)
{
	for (Rounds round("Scribble.RunawayTails"); round.next();) {
		Rig rig;

		ASSERT_EQ(rig.connect(), 0);
		Background runner([&rig, rng = Rng(round.rng())]() mutable {
			rig.a.ctrl()->sq_tail += pick(rng, 0, 2);
			rig.a.ctrl()->rq_tail += pick(rng, 0, 20);
			rig.a.kick();
		});
		stress::spin(2000000);
		EXPECT_EQ(rig.a.to(IBV_QPS_ERR), 0);
		stress::spin(2000000);
		EXPECT_EQ(rig.connect(), 0);
		EXPECT_EQ(rig.a.destroy(), 0);
	}
}

// The shared pages are memory like any other: registered, read, written and added to by remote
// requests on the very queues that lie in them.
TEST(Scribble, RingsAsRegions)
{
	for (Rounds round("Scribble.RingsAsRegions"); round.next();) {
		Rig rig;
		std::vector<verbs::Mr> regions;

		for (auto [base, size] : rig.shared()) {
			ibv_mr *mr = ibv_reg_mr(rig.pd_b.get(), base, size, verbs::kAllAccess);

			ASSERT_TRUE(mr) << strerror(errno);
			regions.emplace_back(mr);
		}
		for (int i = 0; i < 100; i++) {
			ibv_mr *mr = regions[pick(round.rng, 0, regions.size() - 1)].get();
			size_t offset = pick(round.rng, 0, mr->length / 8 - 64) * 8;

			if (i % 8 == 0) {
				EXPECT_EQ(rig.connect(), 0);
			}
			for (unsigned int opcode :
			     {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
				uroce_send_wqe wqe = rig.wqe(opcode, i);

				wqe.remote_addr = reinterpret_cast<uint64_t>(mr->addr) + offset;
				wqe.rkey = mr->rkey;
				wqe.atomic.compare_add = round.rng();
				rig.a.put_send(
					wqe,
					{sge(rig.local, 0,
					     opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 256)});
			}
			EXPECT_EQ(rig.a.kick(), 0);
			rig.poll();
		}
		EXPECT_EQ(rig.a.destroy(), 0);
		EXPECT_EQ(rig.b.destroy(), 0);
	}
}

// QPs that say they are connected to somebody else's, whose work must not care.
TEST(Scribble, OthersQps)
{
	for (Rounds round("Scribble.OthersQps"); round.next();) {
		verbs::Pair pair;
		verbs::Bench bench(pair, 1 << 16, 1, round.rng());
		Rig rig;
		Background attacker([&, rng = Rng(1), i = 0u]() mutable {
			// far from the PSNs in use: a guess, as anybody can make it
			if (i % 16 == 0) {
				bool first = i / 16 % 2;

				EXPECT_EQ(rig.a.connect(device_a(), first ? device_a() : device_b(),
							(first ? pair.a : pair.b).qp->qp_num,
							rig.path, 0x400000, 0x400000),
					  0);
			}
			rig.a.put_send(rig.wqe(pick(rng, 0, 6), i++), {sge(rig.local, 0, 8)});
			EXPECT_EQ(rig.a.kick(), 0);
		});

		for (int i = 0; i < 40 && !testing::Test::HasFailure(); i++) {
			verbs::Shape shape;

			shape.op =
				verbs::kAllOps[pick(round.rng, 0, std::size(verbs::kAllOps) - 1)];
			shape.length = pick(round.rng, 0, 5000);
			bench.run(shape);
		}
	}
}

} // namespace
} // namespace raw
