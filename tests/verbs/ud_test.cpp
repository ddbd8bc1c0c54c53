// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * UD: what a datagram carries, what is refused at the sender, what is dropped at the receiver and
 * never is an error of its QP (IBTA 9.8.3).
 */
#include <arpa/inet.h>
#include <malloc.h>

#include "verbs.hpp"

namespace verbs {
namespace {

constexpr size_t kGrh = 40, kRoom = 8192;

QpConfig ud_config(bool wr_api = false)
{
	QpConfig config;

	config.type = IBV_QPT_UD;
	config.wr_api = wr_api;
	return config;
}

struct UdScene {
	explicit UdScene(const QpConfig &config = ud_config())
	    : pair(config), local(pair.a.pd.get(), kRoom), remote(pair.b.pd.get(), kRoom),
	      ah(pair.a.ah_for(pair.b))
	{
		for (size_t i = 0; i < kRoom; i++)
			local.data()[i] = i * 7 + i / 256;
		memset(remote.data(), 0x22, kRoom);
	}

	SendWr datagram(uint32_t length, ibv_wr_opcode op = IBV_WR_SEND)
	{
		return SendWr(op, 1, {local.sge(0, length)}).to(ah.get(), pair.b.qp->qp_num);
	}
	void recv(uint64_t id, uint32_t length = kRoom)
	{
		pair.b.recv(id, {remote.sge(0, length)});
	}
	void send(const SendWr &wr)
	{
		pair.a.post(wr);
		expect_wc(pair.a.wait_send(), 1);
	}
	// The next datagram arrives whole, in this receive: nothing before it did.
	void expect_next_arrives(uint64_t recv_id, uint32_t length = 100)
	{
		memset(remote.data(), 0x22, kRoom);
		send(datagram(length));
		ibv_wc wc = pair.b.wait_recv();
		expect_wc(wc, recv_id);
		EXPECT_EQ(wc.byte_len, kGrh + length);
		EXPECT_EQ(memcmp(remote.data() + kGrh, local.data(), length), 0);
		EXPECT_EQ(remote.data()[kGrh + length], 0x22);
		EXPECT_EQ(pair.b.state(), IBV_QPS_RTS);
		pair.b.expect_quiet();
	}

	Pair pair;
	Memory local, remote;
	Ah ah;
};

// ---- what arrives ----

class UdData : public testing::TestWithParam<bool> {};

TEST_P(UdData, EveryLengthAndField)
{
	UdScene s(ud_config(GetParam()));
	const uint32_t mtu = mtu_bytes(s.pair.b.dev.port.active_mtu);

	for (uint32_t length :
	     {0u, 1u, 2u, 3u, 4u, 5u, 255u, 256u, 257u, 1023u, 1024u, mtu - 3, mtu})
		for (bool imm : {false, true}) {
			SCOPED_TRACE(testing::Message() << length << " bytes, imm " << imm);
			SendWr wr = s.datagram(length, imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND);

			wr.imm(0x01020304);
			memset(s.remote.data(), 0x22, kRoom);
			s.recv(length);
			s.send(wr);
			ibv_wc wc = s.pair.b.wait_recv();
			expect_wc(wc, length);
			EXPECT_EQ(wc.opcode, IBV_WC_RECV);
			EXPECT_EQ(wc.byte_len, kGrh + length);
			EXPECT_EQ(wc.qp_num, s.pair.b.qp->qp_num);
			EXPECT_EQ(wc.src_qp, s.pair.a.qp->qp_num);
			EXPECT_EQ(wc.pkey_index, 0);
			EXPECT_EQ(wc.wc_flags,
				  unsigned(imm ? IBV_WC_GRH | IBV_WC_WITH_IMM : IBV_WC_GRH));
			if (imm) {
				EXPECT_EQ(ntohl(wc.imm_data), 0x01020304u);
			}
			EXPECT_EQ(memcmp(s.remote.data() + kGrh, s.local.data(), length), 0);
			for (size_t i = kGrh + length; i < kRoom; i++)
				ASSERT_EQ(s.remote.data()[i], 0x22)
					<< "behind the data, byte " << i;
		}
	s.pair.b.expect_quiet();
}

TEST_P(UdData, Inline)
{
	QpConfig config = ud_config(GetParam());

	config.inline_data = 100;
	UdScene s(config);
	SendWr wr = s.datagram(100);

	wr.wr.send_flags |= IBV_SEND_INLINE;
	wr.sges[0] = {reinterpret_cast<uintptr_t>(s.local.data()), 100, 0};
	s.recv(2);
	s.send(wr);
	expect_wc(s.pair.b.wait_recv(), 2);
	EXPECT_EQ(memcmp(s.remote.data() + kGrh, s.local.data(), 100), 0);
}

INSTANTIATE_TEST_SUITE_P(Api, UdData, testing::Bool(),
			 [](auto &info) { return info.param ? "WrApi" : "PostSend"; });

// The first 40 bytes are the IP header, good enough to answer by (annex 17.4.5).
TEST(UdGrh, LeadsBack)
{
	UdScene s;
	const uint8_t *grh = s.remote.data();
	ibv_ah_attr attr = {};

	s.recv(2);
	s.send(s.datagram(8));
	ibv_wc wc = s.pair.b.wait_recv();
	if (grh[0] >> 4 == 6) {
		EXPECT_EQ(memcmp(grh + 8, &s.pair.a.dev.gid, 16), 0);
		EXPECT_EQ(memcmp(grh + 24, &s.pair.b.dev.gid, 16), 0);
	} else {
		EXPECT_EQ(grh[20], 0x45);
		EXPECT_EQ(memcmp(grh + 32, s.pair.a.dev.gid.raw + 12, 4), 0);
		EXPECT_EQ(memcmp(grh + 36, s.pair.b.dev.gid.raw + 12, 4), 0);
	}

	ASSERT_EQ(ibv_init_ah_from_wc(s.pair.b.dev.get(), 1, &wc,
				      reinterpret_cast<ibv_grh *>(s.remote.data()), &attr),
		  0);
	EXPECT_EQ(memcmp(&attr.grh.dgid, &s.pair.a.dev.gid, 16), 0);
	EXPECT_EQ(attr.grh.sgid_index, s.pair.b.dev.gid_index);
	Ah back(check(ibv_create_ah(s.pair.b.pd.get(), &attr), "create_ah"));
	s.pair.a.recv(3, {s.local.sge(0, 1024)});
	s.pair.b.post(SendWr(IBV_WR_SEND, 4, {s.remote.sge(kGrh, 8)}).to(back.get(), wc.src_qp));
	expect_wc(s.pair.b.wait_send(), 4);
	wc = s.pair.a.wait_recv();
	expect_wc(wc, 3);
	EXPECT_EQ(wc.src_qp, s.pair.b.qp->qp_num);
}

// Both pieces of the receive list, the GRH across their border.
TEST(UdGrh, AcrossElements)
{
	QpConfig config = ud_config();

	config.recv_sge = 3;
	UdScene s(config);

	s.pair.b.recv(2, {s.remote.sge(0, 13), s.remote.sge(100, 30), s.remote.sge(200, 500)});
	s.send(s.datagram(10));
	expect_wc(s.pair.b.wait_recv(), 2);
	EXPECT_EQ(memcmp(s.remote.data() + 127, s.local.data(), 3), 0);
	EXPECT_EQ(memcmp(s.remote.data() + 200, s.local.data() + 3, 7), 0);
	EXPECT_EQ(s.remote.data()[13], 0x22);
	EXPECT_EQ(s.remote.data()[207], 0x22);
}

TEST(UdDatagram, Solicited)
{
	QpConfig config = ud_config();

	config.events = true;
	UdScene s(config);
	ibv_cq *cq;
	void *context;

	ASSERT_EQ(ibv_req_notify_cq(s.pair.b.recv_cq.get(), 1), 0);
	s.recv(2);
	s.recv(3);
	s.send(s.datagram(8));
	expect_wc(s.pair.b.wait_recv(), 2);
	EXPECT_NE(ibv_get_cq_event(s.pair.b.channel.get(), &cq, &context), 0);
	SendWr wr = s.datagram(8);
	wr.wr.send_flags |= IBV_SEND_SOLICITED;
	s.send(wr);
	expect_wc(s.pair.b.wait_recv(), 3);
	s.pair.b.state(); // behind the event
	ASSERT_EQ(ibv_get_cq_event(s.pair.b.channel.get(), &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
}

// Many under way, to a receive queue that is large enough: all arrive, in order.
TEST(UdDatagram, Stream)
{
	UdScene s;
	int posted = 0;

	for (int i = 0; i < 64; i++)
		s.recv(i);
	for (; posted < 64; posted++)
		s.pair.a.post(s.datagram(posted));
	for (int i = 0; i < 64; i++) {
		ibv_wc wc = s.pair.b.wait_recv();

		expect_wc(s.pair.a.wait_send(), 1);
		expect_wc(wc, i);
		ASSERT_EQ(wc.byte_len, kGrh + i);
	}
}

// ---- what is dropped ----

TEST(UdDropped, WrongQkey)
{
	UdScene s;
	CounterDelta counter(s.pair.b.dev, "drop_qkey");

	s.recv(2);
	for (uint32_t qkey : {0u, kQkey ^ 1, kQkey ^ 0x40000000})
		s.send(s.datagram(8).to(s.ah.get(), s.pair.b.qp->qp_num, qkey));
	s.expect_next_arrives(2);
	counter.expect(3);
}

// With the top bit set, the QP's own Q_Key is sent (IBTA 10.2.5).
TEST(UdDatagram, PrivilegedQkeyOfAWrIsNotUsed)
{
	UdScene s;

	s.recv(2);
	s.send(s.datagram(8).to(s.ah.get(), s.pair.b.qp->qp_num, 0x80000000));
	expect_wc(s.pair.b.wait_recv(), 2);
}

TEST(UdDropped, UnknownQp)
{
	UdScene s;

	s.recv(2);
	for (uint32_t qpn : {0u, 0xffffffu, s.pair.b.qp->qp_num ^ 0x800000})
		s.send(s.datagram(8).to(s.ah.get(), qpn));
	s.expect_next_arrives(2);
}

// ktest/backoff.sh has this host drop all that the device sends, in a way that looks like a full queue.
TEST(UdRefused, LostInTheEnd)
{
	if (!getenv("rc_test_refused"))
		GTEST_SKIP() << "nothing refuses packets";
	UdScene s;

	for (int i = 0; i < 40; i++)
		s.pair.a.post(s.datagram(100));
	for (int i = 0; i < 40; i++)
		expect_wc(s.pair.a.wait_send(), 1);
	EXPECT_EQ(s.pair.a.state(), IBV_QPS_RTS);
}

TEST(UdDropped, NoReceive)
{
	UdScene s;
	CounterDelta counter(s.pair.b.dev, "drop_no_recv");

	for (int i = 0; i < 5; i++)
		s.send(s.datagram(8));
	s.pair.b.expect_quiet();
	s.recv(2);
	s.expect_next_arrives(2);
	counter.expect(5);
}

// A receive that is too short waits for a datagram that fits.
TEST(UdDropped, ReceiveTooShort)
{
	for (uint32_t room : {0u, 1u, 39u, 40u, 139u}) {
		SCOPED_TRACE(room);
		UdScene s;
		CounterDelta counter(s.pair.b.dev, "resp_local_length_error");

		s.recv(2, room);
		s.send(s.datagram(100));
		s.send(s.datagram(mtu_bytes(s.pair.b.dev.port.active_mtu)));
		s.pair.b.expect_quiet();
		EXPECT_EQ(s.pair.b.state(), IBV_QPS_RTS);
		counter.expect(2);
		for (size_t i = 0; i < kRoom; i++)
			ASSERT_EQ(s.remote.data()[i], 0x22) << i;
		if (room >= kGrh)
			s.expect_next_arrives(2, room - kGrh);
	}
}

TEST(UdDropped, ServiceOfAnotherQp)
{
	UdScene s;
	Endpoint rc(device_b());
	Path path;

	rc.to_init();
	rc.to_rtr(rc, path, 0);
	rc.recv(9, {});
	s.recv(2);
	s.send(s.datagram(0).to(s.ah.get(), rc.qp->qp_num));
	s.expect_next_arrives(2);
	rc.expect_quiet();
	EXPECT_EQ(rc.state(), IBV_QPS_RTR);
}

TEST(UdDropped, ReceiverNotReady)
{
	UdScene s;

	ASSERT_EQ(s.pair.b.to(IBV_QPS_RESET), 0);
	s.pair.b.to_init();
	s.recv(2);
	s.send(s.datagram(8));
	s.pair.b.expect_quiet();
	ibv_qp_attr attr = {};
	attr.qp_state = IBV_QPS_RTR;
	ASSERT_EQ(ibv_modify_qp(s.pair.b.qp.get(), &attr, IBV_QP_STATE), 0);
	s.send(s.datagram(8)); // RTR is enough
	expect_wc(s.pair.b.wait_recv(), 2);
	s.pair.b.expect_quiet();
}

// ---- errors ----

class UdError : public testing::Test {
protected:
	// The WR fails like this, what follows is flushed, the RQ works on, the SQ does after RTS.
	void expect_send_error(const SendWr &wr, ibv_wc_status status)
	{
		s.recv(2);
		s.pair.a.post(wr);
		s.pair.a.post(s.datagram(8));
		expect_wc(s.pair.a.wait_send(), 1, status);
		expect_wc(s.pair.a.wait_send(), 1, IBV_WC_WR_FLUSH_ERR);
		EXPECT_EQ(s.pair.a.state(), IBV_QPS_SQE);
		s.pair.b.expect_quiet();

		Ah back = s.pair.b.ah_for(s.pair.a);
		s.pair.a.recv(3, {s.local.sge(4096, 1024)});
		s.pair.b.post(SendWr(IBV_WR_SEND, 4, {s.remote.sge(0, 8)})
				      .to(back.get(), s.pair.a.qp->qp_num));
		expect_wc(s.pair.b.wait_send(), 4);
		expect_wc(s.pair.a.wait_recv(), 3);

		ASSERT_EQ(s.pair.a.to(IBV_QPS_RTS), 0);
		s.expect_next_arrives(2);
	}

	UdScene s;
};

TEST_F(UdError, LongerThanTheMtu)
{
	expect_send_error(s.datagram(mtu_bytes(s.pair.a.dev.port.active_mtu) + 1),
			  IBV_WC_LOC_LEN_ERR);
}

TEST_F(UdError, LocalKey)
{
	SendWr wr = s.datagram(8);

	wr.sges[0].lkey ^= 0x5a5a5a00;
	expect_send_error(wr, IBV_WC_LOC_PROT_ERR);
}

TEST_F(UdError, OperationsOfOtherServices)
{
	for (ibv_wr_opcode op : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
				 IBV_WR_SEND_WITH_INV}) {
		s.pair.a.post(s.datagram(8, op));
		expect_wc(s.pair.a.wait_send(), 1, IBV_WC_LOC_QP_OP_ERR);
		ASSERT_EQ(s.pair.a.to(IBV_QPS_RTS), 0);
	}
	expect_send_error(s.datagram(8, IBV_WR_RDMA_WRITE_WITH_IMM), IBV_WC_LOC_QP_OP_ERR);
}

TEST_F(UdError, AhOfAnotherPd)
{
	Endpoint other(device_a(), ud_config());
	Ah ah = other.ah_for(s.pair.b);

	expect_send_error(s.datagram(8).to(ah.get(), s.pair.b.qp->qp_num), IBV_WC_LOC_QP_OP_ERR);
}

// The library's object lives on here as a copy, the kernel's does not.
TEST_F(UdError, DestroyedAh)
{
	Ah ah = s.pair.a.ah_for(s.pair.b);
	std::vector<uint8_t> copy(malloc_usable_size(ah.get()));

	memcpy(copy.data(), ah.get(), copy.size());
	ah.reset();
	Ah later = s.pair.a.ah_for(s.pair.b); // must not take its place
	expect_send_error(
		s.datagram(8).to(reinterpret_cast<ibv_ah *>(copy.data()), s.pair.b.qp->qp_num),
		IBV_WC_LOC_QP_OP_ERR);
}

// WRs that use an AH are carried out or fail when it goes under them; nothing else happens.
TEST(UdAh, DestroyedUnderTraffic)
{
	UdScene s;

	for (int round = 0; round < 50; round++) {
		Ah ah = s.pair.a.ah_for(s.pair.b);
		bool failed = false;

		for (int i = 0; i < 8; i++)
			s.pair.a.post(s.datagram(8).to(ah.get(), s.pair.b.qp->qp_num));
		ah.reset();
		for (int i = 0; i < 8; i++) {
			ibv_wc wc = s.pair.a.wait_send();

			if (wc.status) {
				EXPECT_EQ(wc.status,
					  failed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_LOC_QP_OP_ERR);
			} else {
				EXPECT_FALSE(failed) << "carried out behind a failure";
			}
			failed |= wc.status;
		}
		if (failed) {
			ASSERT_EQ(s.pair.a.to(IBV_QPS_RTS), 0);
		}
	}
}

TEST(UdAh, BadAddressesAreRefused)
{
	Endpoint end(device_a(), ud_config());
	ibv_ah_attr attr = {};

	attr.port_num = 1;
	attr.grh.dgid = device_b().gid;
	attr.grh.sgid_index = device_a().gid_index;
	EXPECT_EQ(ibv_create_ah(end.pd.get(), &attr), nullptr) << "no GRH";
	attr.is_global = 1;
	attr.port_num = 2;
	EXPECT_EQ(ibv_create_ah(end.pd.get(), &attr), nullptr) << "port 2";
	attr.port_num = 1;
	attr.grh.sgid_index = 200;
	EXPECT_EQ(ibv_create_ah(end.pd.get(), &attr), nullptr) << "no such GID";
	attr.grh.sgid_index = device_a().gid_index;
	memset(&attr.grh.dgid, 0, 16);
	EXPECT_EQ(ibv_create_ah(end.pd.get(), &attr), nullptr) << "GID 0";
}

// A receive of the process's own that cannot be written ends the QP.
TEST(UdReceive, Key)
{
	UdScene s;
	ibv_sge sge = s.remote.sge(0, 200);

	sge.lkey ^= 0x5a5a5a00;
	s.pair.b.recv(2, {sge});
	s.recv(3);
	s.send(s.datagram(8));
	expect_wc(s.pair.b.wait_recv(), 2, IBV_WC_LOC_PROT_ERR);
	expect_wc(s.pair.b.wait_recv(), 3, IBV_WC_WR_FLUSH_ERR);
	EXPECT_EQ(s.pair.b.state(), IBV_QPS_ERR);
}

TEST(UdQuery, ReturnsWhatWasSet)
{
	UdScene s;
	ibv_qp_init_attr init = {};
	ibv_qp_attr attr = s.pair.a.query(0x1fffff, &init);

	EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
	EXPECT_EQ(attr.qkey, kQkey);
	EXPECT_EQ(attr.port_num, 1);
	EXPECT_EQ(attr.sq_psn, Path().psn_a);
	EXPECT_EQ(init.qp_type, IBV_QPT_UD);
}

} // namespace
} // namespace verbs
