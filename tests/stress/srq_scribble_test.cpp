// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A shared receive queue whose pages are spoilt, while messages take from it and while it is resized.
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "raw.hpp"
#include "srq_scene.hpp"
#include "stress.hpp"

namespace raw {
namespace {

using stress::Background;
using stress::pick;
using stress::Rng;
using stress::Rounds;
using verbs::device_b;
using verbs::Memory;

constexpr uint8_t kUntouched = 0xc5;

// The mapping that came with @make
template <typename Make>
Span mapping_of(Make make)
{
	const std::vector<Span> before = mappings();

	make();
	for (const Span &span : mappings())
		if (std::find(before.begin(), before.end(), span) == before.end())
			return span;
	return {nullptr, 0};
}

verbs::Path impatient()
{
	verbs::Path path;

	path.timeout = 8;
	path.retry_cnt = 1;
	path.rnr_retry = 1;
	return path;
}

// WQEs and indices change at any moment. Each message ends in some way, and touches only what the
// keys of the SRQ's own domain allow.
TEST(Scribble, SharedReceiveQueue)
{
	for (Rounds round("Scribble.SharedReceiveQueue"); round.next();) {
		const verbs::Path path = impatient();
		verbs::Pd pd(verbs::check(ibv_alloc_pd(device_b().get()), "alloc_pd")),
			other(verbs::check(ibv_alloc_pd(device_b().get()), "alloc_pd"));
		ibv_srq_init_attr init = {nullptr, {16, 1, 0}};
		verbs::Srq srq;
		Span span = mapping_of([&] {
			srq.reset(verbs::check(ibv_create_srq(pd.get(), &init), "create_srq"));
		});
		verbs::QpConfig config_b;
		config_b.srq = srq.get();
		verbs::Pair pair({}, config_b, path);
		Memory local(pair.a.pd.get(), 8192), remote(pd.get(), 8192),
			foreign(other.get(), 4096), reading(pd.get(), 4096, 0);
		ibv_wc wc[32];

		ASSERT_TRUE(span.first);
		for (Memory *m : {&foreign, &reading})
			memset(m->data(), kUntouched, m->size());
		Background scribbler([&, rng = Rng(round.rng())]() mutable {
			const uroce_sge menu[] = {
				{remote.addr(), 4096, remote.lkey()},
				{foreign.addr(), 4096, foreign.lkey()},
				{reading.addr(), 4096, reading.lkey()},
				{rng(), uint32_t(rng()), remote.lkey()},
			};
			uint8_t *wqe = span.first + sizeof(uroce_srq_ctrl) + pick(rng, 0, 15) * 32;
			uint32_t word = pick(rng, 0, 1) ? uint32_t(rng()) : pick(rng, 0, 40);

			switch (pick(rng, 0, 4)) {
			case 0: // tail, head, or between
				memcpy(span.first + 4 * pick(rng, 0, 31), &word, sizeof(word));
				break;
			case 1:
				reinterpret_cast<uroce_recv_wqe *>(wqe)->num_sge = word;
				break;
			default:
				memcpy(wqe + sizeof(uroce_recv_wqe), &menu[pick(rng, 0, 3)],
				       sizeof(uroce_sge));
			}
			stress::spin(pick(rng, 0, 300));
		});
		for (int i = 0; i < 60; i++) {
			verbs::post_srq_recv(srq.get(), i, {remote.sge(0, 8192)});
			pair.a.post(verbs::SendWr(IBV_WR_SEND, i,
						  {local.sge(0, pick(round.rng, 0, 5000))}));
			pair.a.wait_send();
			while (ibv_poll_cq(pair.b.recv_cq.get(), std::size(wc), wc) > 0)
				;
			if (pair.a.state() == IBV_QPS_ERR || pair.b.state() == IBV_QPS_ERR)
				pair.reconnect(path);
		}
		scribbler.stop();
		for (Memory *m : {&foreign, &reading})
			EXPECT_EQ(std::count(m->data(), m->data() + m->size(), kUntouched),
				  std::ptrdiff_t(m->size()));
	}
}

int resize(int fd, uint32_t handle, const uroce_resize_srq_req &req,
	   uroce_resize_srq_resp *resp = nullptr)
{
	alignas(ib_uverbs_ioctl_hdr)
		uint8_t space[sizeof(ib_uverbs_ioctl_hdr) + 3 * sizeof(ib_uverbs_attr)] = {};
	auto *hdr = reinterpret_cast<ib_uverbs_ioctl_hdr *>(space);
	uroce_resize_srq_resp unused;

	hdr->length = sizeof(space);
	hdr->object_id = UVERBS_OBJECT_SRQ;
	hdr->method_id = UROCE_METHOD_SRQ_RESIZE;
	hdr->num_attrs = 3;
	hdr->driver_id = UROCE_DRIVER_ID;
	hdr->attrs[0] = {UROCE_ATTR_SRQ_RESIZE_HANDLE, 0, UVERBS_ATTR_F_MANDATORY, {}, {handle}};
	hdr->attrs[1] = {UROCE_ATTR_SRQ_RESIZE_REQ,
			 sizeof(req),
			 UVERBS_ATTR_F_MANDATORY,
			 {},
			 {reinterpret_cast<uintptr_t>(&req)}};
	hdr->attrs[2] = {UROCE_ATTR_SRQ_RESIZE_RESP,
			 sizeof(*resp),
			 UVERBS_ATTR_F_MANDATORY,
			 {},
			 {reinterpret_cast<uintptr_t>(resp ? resp : &unused)}};
	return ioctl(fd, RDMA_VERBS_IOCTL, hdr) ? errno : 0;
}

// The steps of a resize in the wrong order, with what cannot be: an errno, and the queue is as it was.
TEST(Scribble, StepsOfAResize)
{
	verbs::SrqScene scene(1);
	const int fd = device_b().get()->cmd_fd;
	const uint32_t handle = scene.srq->handle;
	uroce_resize_srq_resp first = {}, second = {};
	auto step = [&](uint32_t number, uint64_t offset = 0, uint32_t max_wr = 32,
			uint32_t flags = 0, uint32_t limit = 0) {
		return resize(fd, handle, {offset, number, max_wr, limit, flags},
			      number == UROCE_RESIZE_SRQ_PREPARE ? &second : nullptr);
	};

	EXPECT_EQ(step(UROCE_RESIZE_SRQ_COMMIT), EBUSY) << "nothing is prepared";
	for (uint32_t number : {0u, 3u, ~0u})
		EXPECT_EQ(step(number), EOPNOTSUPP) << number;
	EXPECT_EQ(step(UROCE_RESIZE_SRQ_PREPARE, 0, 32, 2), EINVAL);
	for (uint32_t max_wr : {0u, uint32_t(device_b().attr.max_srq_wr) + 1, 1u << 31, ~0u})
		EXPECT_EQ(step(UROCE_RESIZE_SRQ_PREPARE, 0, max_wr), EINVAL) << max_wr;
	EXPECT_NE(resize(fd, handle + 1000, {0, UROCE_RESIZE_SRQ_PREPARE, 32, 0, 0}), 0);

	ASSERT_EQ(resize(fd, handle, {0, UROCE_RESIZE_SRQ_PREPARE, 32, 0, 0}, &first), 0);
	for (int i = 0; i < 99; i++) // each takes the place of the one before
		ASSERT_EQ(step(UROCE_RESIZE_SRQ_PREPARE), 0);
	if (first.mmap_offset != second.mmap_offset) { // it is free since, and given out again
		EXPECT_EQ(step(UROCE_RESIZE_SRQ_COMMIT, first.mmap_offset), EBUSY);
	}
	EXPECT_EQ(step(UROCE_RESIZE_SRQ_COMMIT, ~0ull), EBUSY);
	// a limit that does not fit, then a tail that cannot be; each takes the region with it
	EXPECT_EQ(step(UROCE_RESIZE_SRQ_COMMIT, second.mmap_offset, 0, UROCE_RESIZE_SRQ_LIMIT, 33),
		  EINVAL);
	EXPECT_EQ(step(UROCE_RESIZE_SRQ_COMMIT, second.mmap_offset), EBUSY);
	for (uint32_t tail : {33u, 1u << 31, ~0u}) {
		ASSERT_EQ(step(UROCE_RESIZE_SRQ_PREPARE), 0);
		Mapping map(fd, second.mmap_offset, second.mmap_len);

		map.at<uroce_srq_ctrl>(0)->tail = tail;
		EXPECT_EQ(step(UROCE_RESIZE_SRQ_COMMIT, second.mmap_offset), EINVAL) << tail;
		// the pages are the process' own until it unmaps them
		memset(map.data(), 0xff, map.size());
	}
	EXPECT_EQ(scene.query().max_wr, 64u);
	EXPECT_EQ(scene.query().srq_limit, 0u);
	ASSERT_EQ(step(UROCE_RESIZE_SRQ_PREPARE), 0); // and left

	scene.recv(1);
	scene.send(0, 100, 7);
	scene.expect_arrived(0, 1, 100, 7);
}

} // namespace
} // namespace raw
