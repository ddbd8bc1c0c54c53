// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Pairs of QPs whose receiving ends share a receive queue.
#ifndef VERBS_SRQ_SCENE_HPP
#define VERBS_SRQ_SCENE_HPP

#include "transfer.hpp"

namespace verbs {

constexpr size_t kRoom = 8192; // of one receive
constexpr uint8_t kFiller = 0x22;

// Several pairs; all their b ends take from one SRQ, which is the first one's.
struct SrqScene {
	SrqScene(int pairs, ibv_qp_type type = IBV_QPT_RC, const Path &path = {},
		 uint32_t srq_wr = 64)
	{
		QpConfig config_a, config_b;

		config_a.type = config_b.type = type;
		config_b.recv_wr = 0; // no RQ, and the CQs have room for the SRQ
		config_b.srq_wr = srq_wr;
		pair.push_back(std::make_unique<Pair>(config_a, config_b, path));
		srq = pair[0]->b.srq;
		config_b.srq_wr = 0;
		config_b.srq = srq;
		config_b.recv_wr = srq_wr;
		while (int(pair.size()) < pairs)
			pair.push_back(std::make_unique<Pair>(config_a, config_b, path));
		for (auto &p : pair)
			local.push_back(std::make_unique<Memory>(p->a.pd.get(), kRoom));
		remote = std::make_unique<Memory>(pair[0]->b.pd.get(), 64 * kRoom);
		memset(remote->data(), kFiller, remote->size());
	}
	~SrqScene()
	{
		remote.reset();
		local.clear();
		while (!pair.empty()) // the first one, whose SRQ it is, last
			pair.pop_back();
	}

	uint8_t *room(uint64_t id)
	{
		return remote->data() + id % 64 * kRoom;
	}
	ibv_sge sge(uint64_t id, uint32_t length = kRoom)
	{
		return remote->sge(id % 64 * kRoom, length);
	}
	void recv(uint64_t id, uint32_t length = kRoom)
	{
		check(post_srq_recv(srq, id, {sge(id, length)}), "post_srq_recv");
	}
	// A message of the @i-th pair, full of @byte
	SendWr message(int i, uint32_t length, uint8_t byte)
	{
		memset(local[i]->data(), byte, length);
		return SendWr(IBV_WR_SEND, byte, {local[i]->sge(0, length)});
	}
	void send(int i, uint32_t length, uint8_t byte)
	{
		pair[i]->a.post(message(i, length, byte));
		expect_wc(pair[i]->a.wait_send(), byte);
	}
	// It has arrived at its QP, in this receive.
	void expect_arrived(int i, uint64_t id, uint32_t length, uint8_t byte)
	{
		ibv_wc wc = pair[i]->b.wait_recv();

		expect_wc(wc, id);
		EXPECT_EQ(wc.opcode, IBV_WC_RECV);
		EXPECT_EQ(wc.byte_len, length);
		EXPECT_EQ(wc.qp_num, pair[i]->b.qp->qp_num);
		check_room(id, length, byte);
	}
	void check_room(uint64_t id, uint32_t length, uint8_t byte)
	{
		for (size_t n = 0; n < kRoom; n++)
			ASSERT_EQ(room(id)[n], n < length ? byte : kFiller) << "byte " << n;
		memset(room(id), kFiller, kRoom);
	}
	ibv_srq_attr query()
	{
		ibv_srq_attr attr = {};

		check(ibv_query_srq(srq, &attr), "query_srq");
		return attr;
	}
	int set_limit(uint32_t limit)
	{
		ibv_srq_attr attr = {};

		attr.srq_limit = limit;
		return ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
	}
	// Nothing more has arrived at any of them.
	void expect_quiet()
	{
		for (auto &p : pair)
			p->b.expect_quiet();
	}

	std::vector<std::unique_ptr<Pair>> pair;
	std::vector<std::unique_ptr<Memory>> local;
	ibv_srq *srq;
	std::unique_ptr<Memory> remote;
};

} // namespace verbs

#endif
