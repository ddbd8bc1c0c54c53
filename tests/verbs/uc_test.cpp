// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * UC: what is refused at the requester, and what is dropped at the responder without a word
 * (IBTA 9.8.2). That data arrives is tested with RC's in data_test.cpp, lost packets in tests/wire.
 */
#include <arpa/inet.h>

#include "scene.hpp"

namespace verbs {
namespace {

QpConfig uc_config()
{
	QpConfig config;

	config.type = IBV_QPT_UC;
	return config;
}

class Uc : public testing::Test {
protected:
	Uc() : s(uc_config(), Path()) {}

	// The responder lives and has had nothing of what was sent before: this arrives next.
	void expect_next_arrives(uint64_t recv_id)
	{
		memset(s.local.data(), 0x77, 64);
		s.pair.a.post(s.send(64));
		expect_wc(s.pair.a.wait_send(), 1);
		ibv_wc wc = s.pair.b.wait_recv();
		expect_wc(wc, recv_id);
		EXPECT_EQ(wc.byte_len, 64u);
		EXPECT_EQ(s.remote.data()[63], 0x77);
		EXPECT_EQ(s.pair.b.state(), IBV_QPS_RTS);
		s.pair.b.expect_quiet();
	}

	// The WR fails like this, the SQ is in error, the RQ works on, and the SQ does after RTS.
	void expect_send_error(const SendWr &wr, ibv_wc_status status)
	{
		s.pair.a.post(wr);
		expect_wc(s.pair.a.wait_send(), 1, status);
		EXPECT_EQ(s.pair.a.state(), IBV_QPS_SQE);
		s.pair.a.post(s.send(8));
		expect_wc(s.pair.a.wait_send(), 1, IBV_WC_WR_FLUSH_ERR);
		s.pair.b.expect_quiet();

		s.pair.a.recv(5, {s.local.sge(0, 64)});
		s.pair.b.post(SendWr(IBV_WR_SEND, 6, {s.remote.sge(0, 64)}));
		expect_wc(s.pair.b.wait_send(), 6);
		expect_wc(s.pair.a.wait_recv(), 5);

		ASSERT_EQ(s.pair.a.to(IBV_QPS_RTS), 0);
		s.pair.b.recv(7, {s.remote.sge(0, 64)});
		expect_next_arrives(7);
	}

	Scene s;
};

using UcError = Uc;

TEST_F(UcError, Read)
{
	expect_send_error(s.read(), IBV_WC_LOC_QP_OP_ERR);
}

TEST_F(UcError, FetchAdd)
{
	expect_send_error(s.fetch_add(), IBV_WC_LOC_QP_OP_ERR);
}

TEST_F(UcError, CompareAndSwap)
{
	expect_send_error(s.cmp_swap(), IBV_WC_LOC_QP_OP_ERR);
}

TEST_F(UcError, LocalKey)
{
	SendWr wr = s.write();

	wr.sges[0].lkey ^= 0x5a5a5a00;
	expect_send_error(wr, IBV_WC_LOC_PROT_ERR);
}

TEST_F(UcError, LocalKeyInTheMiddleOfAMessage)
{
	SendWr wr(IBV_WR_SEND, 1, {s.local.sge(0, kSize)});

	s.pair.b.recv(9, {s.remote.sge(0, kSize)});
	wr.sges[0].addr += 4096; // the end is beyond the region
	s.pair.a.post(wr);
	expect_wc(s.pair.a.wait_send(), 1, IBV_WC_LOC_PROT_ERR);
	EXPECT_EQ(s.pair.a.state(), IBV_QPS_SQE);
	s.pair.b.expect_quiet();
	ASSERT_EQ(s.pair.a.to(IBV_QPS_RTS), 0);
	expect_next_arrives(9); // in the receive of the broken message
}

// What was posted behind the failing WR is flushed, what is posted after RTS is carried out.
TEST_F(UcError, FlushesWhatIsBehind)
{
	SendWr bad = s.write();

	bad.sges[0].lkey ^= 0x5a5a5a00;
	for (int i = 0; i < 10; i++)
		s.pair.a.post(i == 3 ? bad : s.write());
	for (int i = 0; i < 10; i++)
		expect_wc(s.pair.a.wait_send(), 1,
			  i < 3	 ? IBV_WC_SUCCESS :
			  i == 3 ? IBV_WC_LOC_PROT_ERR :
				   IBV_WC_WR_FLUSH_ERR);
	ASSERT_EQ(s.pair.a.to(IBV_QPS_RTS), 0);
	s.pair.b.recv(7, {s.remote.sge(0, 64)});
	expect_next_arrives(7);
}

using UcDropped = Uc;

TEST_F(UcDropped, NoReceive)
{
	for (uint32_t length : {8u, uint32_t(kSize)}) {
		s.pair.a.post(s.send(length));
		expect_wc(s.pair.a.wait_send(), 1);
	}
	s.pair.b.expect_quiet();
	s.pair.b.recv(2, {s.remote.sge(0, 64)});
	expect_next_arrives(2);
}

TEST_F(UcDropped, ReceiveTooShort)
{
	CounterDelta counter(s.pair.b.dev, "resp_local_length_error");

	s.pair.b.recv(2, {s.remote.sge(0, 64)});
	for (uint32_t length : {65u, uint32_t(kSize)}) {
		s.pair.a.post(s.send(length));
		expect_wc(s.pair.a.wait_send(), 1);
	}
	expect_next_arrives(2);
	counter.expect(2);
}

TEST_F(UcDropped, RemoteKey)
{
	CounterDelta counter(s.pair.b.dev, "resp_remote_access_errors");

	s.pair.a.post(s.write(4096).remote(s.remote.addr(), s.remote.rkey() ^ 0x5a5a5a00));
	expect_wc(s.pair.a.wait_send(), 1);
	s.pair.a.post(s.write(4096).remote(s.remote.addr(kSize - 4095), s.remote.rkey()));
	expect_wc(s.pair.a.wait_send(), 1);
	s.pair.b.recv(2, {s.remote.sge(0, 64)});
	expect_next_arrives(2);
	for (size_t i = 64; i < kSize; i++)
		ASSERT_EQ(s.remote.data()[i], kRemoteByte) << i;
	counter.expect(2);
}

TEST_F(UcDropped, WriteNotAllowedByTheQp)
{
	ibv_qp_attr attr = {};

	attr.qp_access_flags = 0;
	ASSERT_EQ(ibv_modify_qp(s.pair.b.qp.get(), &attr, IBV_QP_ACCESS_FLAGS), 0);
	s.pair.a.post(s.write(8));
	expect_wc(s.pair.a.wait_send(), 1);
	s.pair.b.recv(2, {s.remote.sge(0, 64)});
	expect_next_arrives(2);
}

// A fault of the responder's own ends its QP; the requester does not notice.
TEST_F(UcDropped, ReceiveKey)
{
	ibv_sge sge = s.remote.sge(0, 64);

	sge.lkey ^= 0x5a5a5a00;
	s.pair.b.recv(2, {sge});
	s.pair.a.post(s.send(8));
	expect_wc(s.pair.a.wait_send(), 1);
	expect_wc(s.pair.b.wait_recv(), 2, IBV_WC_LOC_PROT_ERR);
	EXPECT_EQ(s.pair.b.state(), IBV_QPS_ERR);
	EXPECT_EQ(s.pair.a.state(), IBV_QPS_RTS);
}

/*
 * On a bad network: some messages come, some do not, each of those that come is whole, and both QPs
 * are well. ktest/loss.sh makes the network bad.
 */
TEST(UcLossy, WhatArrivesIsWhole)
{
	constexpr int kMessages = 400, kWindow = 32;
	constexpr uint32_t kLength = 3000;
	QpConfig config = uc_config();
	Pair pair(config);
	Memory from(pair.a.pd.get(), kLength), to(pair.b.pd.get(), kWindow * kLength);
	int arrived = 0, other = 0;
	auto take = [&](const ibv_wc &wc) {
		const uint8_t *data = to.data() + wc.wr_id * kLength;

		ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
		ASSERT_EQ(wc.byte_len, kLength);
		for (uint32_t i = 0; i < kLength; i++)
			other += data[i] != uint8_t(ntohl(wc.imm_data));
		arrived++;
		pair.b.recv(wc.wr_id, {to.sge(wc.wr_id * kLength, kLength)});
	};
	ibv_wc wc;

	for (int i = 0; i < kWindow; i++)
		pair.b.recv(i, {to.sge(i * kLength, kLength)});
	// more than asked for if need be, until enough have come
	for (int i = 0; i < kMessages || arrived < kMessages / 4; i++) {
		ASSERT_LT(i, 20 * kMessages) << "hardly anything arrives";
		memset(from.data(), i, kLength);
		SendWr wr(IBV_WR_SEND_WITH_IMM, i, {from.sge(0, kLength)});
		pair.a.post(wr.imm(i));
		expect_wc(pair.a.wait_send(), i);
		while (ibv_poll_cq(pair.b.recv_cq.get(), 1, &wc) == 1)
			take(wc);
	}
	EXPECT_EQ(other, 0) << "bytes of other messages";
	EXPECT_EQ(pair.a.state(), IBV_QPS_RTS);
	EXPECT_EQ(pair.b.state(), IBV_QPS_RTS);
}

} // namespace
} // namespace verbs
