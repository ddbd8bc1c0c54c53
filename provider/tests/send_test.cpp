// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ibv_post_send() and the ibv_wr_*() builders: bytes, limits, doorbells. */
#include "fake_kernel.hpp"

#include <cstring>

#include <rdma/rdma_user_ioctl_cmds.h>

namespace {

constexpr uint64_t REMOTE = 0x123456789abcdef0;
constexpr uint32_t RKEY = 0xabcd;
const __be32 IMM = htobe32(0x01020304);

class Send : public fake::ProviderTest {
protected:
	/* The WQE at index, copied: header and elements. */
	struct Wqe {
		uroce_send_wqe hdr;
		unsigned char rest[128];
	};

	Wqe wqe_at(uint32_t index)
	{
		Wqe wqe;

		memcpy(&wqe, kqp().send_wqe(index), sizeof(wqe));
		return wqe;
	}

	static uroce_sge sge_of(const Wqe &wqe, size_t i)
	{
		uroce_sge sge;

		memcpy(&sge, wqe.rest + i * sizeof(sge), sizeof(sge));
		return sge;
	}

	uint32_t tail()
	{
		return kqp().ctrl->sq_tail;
	}

	/* Polls one completion that retires everything up to index. */
	void complete_up_to(uint32_t index)
	{
		ibv_wc wc;

		kcq().complete(kqp().sq_cqe(index));
		ASSERT_EQ(ibv_poll_cq(cq, 1, &wc), 1);
	}

	ibv_sge sges[2] = {{0x1000, 100, 7}, {0x2000, 200, 8}};
};

/* ------------------------------------------------------------------ */
/* Each operation, through both interfaces                            */
/* ------------------------------------------------------------------ */

struct OpCase {
	const char *name;
	ibv_wr_opcode opcode;
	void (*fill)(ibv_send_wr *wr); /* the request... */
	void (*build)(ibv_qp_ex *qp); /* ...the same by builder... */
	void (*expect)(uroce_send_wqe *wqe); /* ...and its header */
};

void fill_rdma(ibv_send_wr *wr)
{
	wr->wr.rdma.remote_addr = REMOTE;
	wr->wr.rdma.rkey = RKEY;
}

void fill_atomic(ibv_send_wr *wr)
{
	wr->wr.atomic.remote_addr = REMOTE;
	wr->wr.atomic.rkey = RKEY;
	wr->wr.atomic.compare_add = 11;
	wr->wr.atomic.swap = 22;
}

void expect_rdma(uroce_send_wqe *wqe)
{
	wqe->remote_addr = REMOTE;
	wqe->rkey = RKEY;
}

const OpCase op_cases[] = {
	{"write", IBV_WR_RDMA_WRITE, fill_rdma,
	 [](ibv_qp_ex *q) { ibv_wr_rdma_write(q, RKEY, REMOTE); }, expect_rdma},
	{"write_imm", IBV_WR_RDMA_WRITE_WITH_IMM,
	 [](ibv_send_wr *wr) {
		 fill_rdma(wr);
		 wr->imm_data = IMM;
	 },
	 [](ibv_qp_ex *q) { ibv_wr_rdma_write_imm(q, RKEY, REMOTE, IMM); },
	 [](uroce_send_wqe *wqe) {
		 expect_rdma(wqe);
		 wqe->imm_data = IMM;
	 }},
	{"send", IBV_WR_SEND, [](ibv_send_wr *) {}, [](ibv_qp_ex *q) { ibv_wr_send(q); },
	 [](uroce_send_wqe *) {}},
	{"send_imm", IBV_WR_SEND_WITH_IMM, [](ibv_send_wr *wr) { wr->imm_data = IMM; },
	 [](ibv_qp_ex *q) { ibv_wr_send_imm(q, IMM); },
	 [](uroce_send_wqe *wqe) { wqe->imm_data = IMM; }},
	{"send_inv", IBV_WR_SEND_WITH_INV, [](ibv_send_wr *wr) { wr->invalidate_rkey = 99; },
	 [](ibv_qp_ex *q) { ibv_wr_send_inv(q, 99); },
	 [](uroce_send_wqe *wqe) { wqe->inv_rkey = 99; }},
	{"read", IBV_WR_RDMA_READ, fill_rdma,
	 [](ibv_qp_ex *q) { ibv_wr_rdma_read(q, RKEY, REMOTE); }, expect_rdma},
	{"cmp_swp", IBV_WR_ATOMIC_CMP_AND_SWP, fill_atomic,
	 [](ibv_qp_ex *q) { ibv_wr_atomic_cmp_swp(q, RKEY, REMOTE, 11, 22); },
	 [](uroce_send_wqe *wqe) {
		 expect_rdma(wqe);
		 wqe->atomic.compare_add = 11;
		 wqe->atomic.swap = 22;
	 }},
	{"fetch_add", IBV_WR_ATOMIC_FETCH_AND_ADD,
	 [](ibv_send_wr *wr) {
		 fill_atomic(wr);
		 wr->wr.atomic.swap = 0;
	 },
	 [](ibv_qp_ex *q) { ibv_wr_atomic_fetch_add(q, RKEY, REMOTE, 11); },
	 [](uroce_send_wqe *wqe) {
		 expect_rdma(wqe);
		 wqe->atomic.compare_add = 11;
	 }},
};

class SendOp : public Send, public ::testing::WithParamInterface<OpCase> {
protected:
	void expect_wqe(uint32_t index)
	{
		Wqe wqe = wqe_at(index);
		uroce_send_wqe hdr = {};

		hdr.wr_id = 0x1122334455667788;
		hdr.opcode = GetParam().opcode;
		hdr.flags = UROCE_SEND_SIGNALED | UROCE_SEND_FENCE;
		hdr.num_sge = 2;
		GetParam().expect(&hdr);
		EXPECT_EQ(memcmp(&wqe.hdr, &hdr, sizeof(hdr)), 0);
		for (size_t i = 0; i < 2; i++) {
			EXPECT_EQ(sge_of(wqe, i).addr, sges[i].addr);
			EXPECT_EQ(sge_of(wqe, i).length, sges[i].length);
			EXPECT_EQ(sge_of(wqe, i).lkey, sges[i].lkey);
		}
		EXPECT_EQ(tail(), index + 1);
		EXPECT_EQ(k.kick_commands.size(), index + 1);
	}
};

TEST_P(SendOp, BothInterfacesWriteTheSameWqe)
{
	ibv_send_wr wr = make_send(GetParam().opcode, sges, 2, IBV_SEND_SIGNALED | IBV_SEND_FENCE);

	/* Leftovers of an older WQE must not shine through. */
	memset(kqp().send_wqe(0), 0xa5, 2 * kqp().resp.sq_stride);
	GetParam().fill(&wr);
	ASSERT_EQ(post(&wr), 0);
	expect_wqe(0);

	ibv_wr_start(qpx);
	qpx->wr_id = wr.wr_id;
	qpx->wr_flags = wr.send_flags;
	GetParam().build(qpx);
	ibv_wr_set_sge_list(qpx, 2, sges);
	ASSERT_EQ(ibv_wr_complete(qpx), 0);
	expect_wqe(1);
}

INSTANTIATE_TEST_SUITE_P(All, SendOp, ::testing::ValuesIn(op_cases),
			 [](const auto &param) { return param.param.name; });

/* ------------------------------------------------------------------ */
/* Memory operations                                                  */
/* ------------------------------------------------------------------ */

class MemoryOp : public Send {
protected:
	MemoryOp()
	{
		mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
		mr->lkey = 0x77;
		one = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
		two = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
		info = {mr, 0x5000, 0x600, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED};
	}

	~MemoryOp() override
	{
		EXPECT_EQ(ibv_dealloc_mw(one), 0);
		EXPECT_EQ(ibv_dealloc_mw(two), 0);
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
	}

	ibv_send_wr bind_wr(ibv_mw *mw, uint32_t rkey)
	{
		ibv_send_wr wr = make_send(IBV_WR_BIND_MW, nullptr, 0, IBV_SEND_SIGNALED);

		wr.bind_mw.mw = mw;
		wr.bind_mw.rkey = rkey;
		wr.bind_mw.bind_info = info;
		return wr;
	}

	int build_bind(ibv_mw *mw, uint32_t rkey)
	{
		ibv_wr_start(qpx);
		qpx->wr_id = 0x1122334455667788;
		qpx->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_bind_mw(qpx, mw, rkey, &info);
		return ibv_wr_complete(qpx);
	}

	void expect_bind(uint32_t index, uint32_t rkey)
	{
		Wqe wqe = wqe_at(index);
		uroce_send_wqe hdr = {};

		hdr.wr_id = 0x1122334455667788;
		hdr.opcode = IBV_WR_BIND_MW;
		hdr.flags = UROCE_SEND_SIGNALED;
		hdr.rkey = rkey;
		hdr.remote_addr = 0x5000;
		hdr.bind.length = 0x600;
		hdr.bind.lkey = 0x77;
		hdr.bind.access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED;
		EXPECT_EQ(memcmp(&wqe.hdr, &hdr, sizeof(hdr)), 0);
		EXPECT_EQ(tail(), index + 1);
	}

	char buffer[64];
	ibv_mr *mr;
	ibv_mw *one, *two;
	ibv_mw_bind_info info;
};

TEST_F(MemoryOp, BindOfType2)
{
	const uint32_t key = (two->rkey & ~0xffU) | 5;
	ibv_send_wr wr = bind_wr(two, key);

	memset(kqp().send_wqe(0), 0xa5, 2 * kqp().resp.sq_stride);
	ASSERT_EQ(post(&wr), 0);
	expect_bind(0, key);
	ASSERT_EQ(build_bind(two, key), 0);
	expect_bind(1, key);
	EXPECT_EQ(two->rkey, 0x1234ffU) << "the user's to set";
}

TEST_F(MemoryOp, BindOfType1ChoosesTheKey)
{
	ibv_mw_bind bind = {0x1122334455667788, IBV_SEND_SIGNALED, info};

	ASSERT_EQ(ibv_bind_mw(qp, one, &bind), 0);
	expect_bind(0, 0x123400); /* the low byte wraps, nothing else moves */
	EXPECT_EQ(one->rkey, 0x123400U);

	set_state(qp, IBV_QPS_INIT);
	EXPECT_EQ(ibv_bind_mw(qp, one, &bind), EINVAL);
	EXPECT_EQ(one->rkey, 0x123400U) << "not posted, not changed";
}

TEST_F(MemoryOp, BadBinds)
{
	ibv_send_wr wrong_type = bind_wr(one, one->rkey), wrong_key = bind_wr(two, 0x123500);
	ibv_send_wr no_window = bind_wr(nullptr, two->rkey), no_region = bind_wr(two, two->rkey);
	ibv_mw_bind bind = {0, 0, info};

	no_region.bind_mw.bind_info.mr = nullptr;
	for (ibv_send_wr *wr : {&wrong_type, &wrong_key, &no_window, &no_region})
		EXPECT_EQ(post(wr), EINVAL);
	EXPECT_EQ(build_bind(one, one->rkey), EINVAL);
	EXPECT_EQ(build_bind(two, 0x123500), EINVAL);
	EXPECT_EQ(ibv_bind_mw(qp, two, &bind), EINVAL) << "of type 1 only";
	EXPECT_EQ(tail(), 0U);
}

TEST_F(MemoryOp, LocalInvalidate)
{
	ibv_send_wr wr = make_send(IBV_WR_LOCAL_INV, sges, 2, IBV_SEND_SIGNALED);
	uroce_send_wqe hdr = {};

	wr.invalidate_rkey = 0x4711;
	ASSERT_EQ(post(&wr), 0);
	ibv_wr_start(qpx);
	qpx->wr_id = wr.wr_id;
	qpx->wr_flags = wr.send_flags;
	ibv_wr_local_inv(qpx, 0x4711);
	ASSERT_EQ(ibv_wr_complete(qpx), 0);

	hdr.wr_id = wr.wr_id;
	hdr.opcode = IBV_WR_LOCAL_INV;
	hdr.flags = UROCE_SEND_SIGNALED;
	hdr.inv_rkey = 0x4711;
	for (uint32_t i = 0; i < 2; i++) {
		Wqe wqe = wqe_at(i);

		EXPECT_EQ(memcmp(&wqe.hdr, &hdr, sizeof(hdr)), 0) << "the list is not looked at";
	}
}

TEST_F(MemoryOp, Reregister)
{
	EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0), 0);
	k.simple_err = EBUSY;
	EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0),
		  IBV_REREG_MR_ERR_CMD);
	k.simple_err = 0;
}

TEST_F(Send, SetSge)
{
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, 7, 0x1000, 100);
	ASSERT_EQ(ibv_wr_complete(qpx), 0);
	EXPECT_EQ(wqe_at(0).hdr.num_sge, 1);
	EXPECT_EQ(sge_of(wqe_at(0), 0).addr, 0x1000U);
	EXPECT_EQ(sge_of(wqe_at(0), 0).length, 100U);
	EXPECT_EQ(sge_of(wqe_at(0), 0).lkey, 7U);
}

TEST_F(Send, SigAllSignalsEveryWqe)
{
	ibv_qp *loud = make_qp(cq, true);
	ibv_qp_ex *loudx = ibv_qp_to_qp_ex(loud);
	ibv_send_wr wr = make_send(IBV_WR_SEND, sges);

	set_state(loud, IBV_QPS_RTS);
	ASSERT_EQ(ibv_post_send(loud, &wr, &bad_send), 0);
	ibv_wr_start(loudx);
	loudx->wr_flags = 0;
	ibv_wr_send(loudx);
	ASSERT_EQ(ibv_wr_complete(loudx), 0);
	EXPECT_EQ(k.qps.at(loud).send_wqe(0)->flags, UROCE_SEND_SIGNALED);
	EXPECT_EQ(k.qps.at(loud).send_wqe(1)->flags, UROCE_SEND_SIGNALED);
	EXPECT_EQ(ibv_destroy_qp(loud), 0);
}

/* ------------------------------------------------------------------ */
/* Datagrams                                                          */
/* ------------------------------------------------------------------ */

TEST_F(Send, DatagramsNameTheirDestination)
{
	ibv_qp *ud = make_qp(cq, false, IBV_QPT_UD);
	ASSERT_NE(ud, nullptr);
	ibv_qp_ex *udx = ibv_qp_to_qp_ex(ud);
	ibv_ah_attr ah_attr = {};
	ibv_ah *ah = ibv_create_ah(pd, &ah_attr);
	ASSERT_NE(ah, nullptr);
	ibv_send_wr wr = make_send(IBV_WR_SEND_WITH_IMM, sges);

	set_state(ud, IBV_QPS_RTS);
	wr.imm_data = IMM;
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 0xabcdef;
	wr.wr.ud.remote_qkey = 0x80123456;
	ASSERT_EQ(ibv_post_send(ud, &wr, &bad_send), 0);

	ibv_wr_start(udx);
	udx->wr_id = wr.wr_id;
	udx->wr_flags = 0;
	ibv_wr_send_imm(udx, IMM);
	ibv_wr_set_ud_addr(udx, ah, 0xabcdef, 0x80123456);
	ibv_wr_set_sge_list(udx, 1, sges);
	ASSERT_EQ(ibv_wr_complete(udx), 0);

	uroce_send_wqe want = {};
	want.wr_id = wr.wr_id;
	want.opcode = IBV_WR_SEND_WITH_IMM;
	want.num_sge = 1;
	want.imm_data = IMM;
	want.ud.ah = k.ah_handle;
	want.ud.remote_qpn = 0xabcdef;
	want.ud.remote_qkey = 0x80123456;
	for (uint32_t i = 0; i < 2; i++)
		EXPECT_EQ(memcmp(k.qps.at(ud).send_wqe(i), &want, sizeof(want)), 0) << i;

	/* no address */
	wr.wr.ud.ah = nullptr;
	EXPECT_EQ(ibv_post_send(ud, &wr, &bad_send), EINVAL);
	EXPECT_EQ(bad_send, &wr);
	ibv_wr_start(udx);
	ibv_wr_send(udx);
	ibv_wr_set_ud_addr(udx, nullptr, 1, 2);
	EXPECT_EQ(ibv_wr_complete(udx), EINVAL);
	EXPECT_EQ(k.qps.at(ud).ctrl->sq_tail, 2U);

	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	EXPECT_EQ(ibv_destroy_qp(ud), 0);
}

/* ------------------------------------------------------------------ */
/* Inline data                                                        */
/* ------------------------------------------------------------------ */

TEST_F(Send, InlineDataIsGatheredInPlace)
{
	char one[] = "inline ", two[] = "data";
	ibv_sge pieces[] = {{reinterpret_cast<uintptr_t>(one), 7, 0},
			    {0, 0, 0},
			    {reinterpret_cast<uintptr_t>(two), 4, 0}};
	ibv_send_wr wr = make_send(IBV_WR_SEND, pieces, 3, IBV_SEND_INLINE);
	const ibv_data_buf bufs[] = {{one, 7}, {nullptr, 0}, {two, 4}};

	ASSERT_EQ(post(&wr), 0);
	ibv_wr_start(qpx);
	qpx->wr_id = wr.wr_id;
	qpx->wr_flags = 0;
	ibv_wr_send(qpx);
	ibv_wr_set_inline_data_list(qpx, 3, bufs);
	ASSERT_EQ(ibv_wr_complete(qpx), 0);

	for (uint32_t i = 0; i < 2; i++) {
		Wqe wqe = wqe_at(i);

		EXPECT_EQ(wqe.hdr.flags, UROCE_SEND_INLINE);
		EXPECT_EQ(wqe.hdr.inline_len, 11U);
		EXPECT_EQ(wqe.hdr.num_sge, 0);
		EXPECT_EQ(memcmp(wqe.rest, "inline data", 11), 0);
	}
}

TEST_F(Send, FlagsThatAreNone)
{
	for (unsigned int flags : {unsigned{IBV_SEND_IP_CSUM}, 1U << 20}) {
		ibv_wr_start(qpx);
		qpx->wr_id = 1;
		qpx->wr_flags = flags;
		ibv_wr_send(qpx);
		EXPECT_EQ(ibv_wr_complete(qpx), EINVAL);
	}
	EXPECT_EQ(kqp().ctrl->sq_tail, 0U);
}

/* Pieces of inline data whose sum is just right, too much, or wraps 32 or 64 bits. */
class Inline : public Send {
protected:
	/* What both interfaces say to the pieces; nothing may lie behind the slot. */
	void try_pieces(const std::vector<size_t> &lengths, int expected)
	{
		std::vector<ibv_sge> wr_sges;
		std::vector<ibv_data_buf> bufs;
		bool fits_wr = true;

		for (size_t length : lengths) {
			wr_sges.push_back({reinterpret_cast<uintptr_t>(data),
					   static_cast<uint32_t>(length), 0});
			bufs.push_back({data, length});
			fits_wr = fits_wr && length <= UINT32_MAX;
		}

		uint32_t before = tail();

		if (fits_wr) {
			ibv_send_wr wr =
				make_send(IBV_WR_RDMA_WRITE, wr_sges.data(),
					  static_cast<int>(lengths.size()), IBV_SEND_INLINE);

			guard_next_slots();
			EXPECT_EQ(post(&wr), expected);
			EXPECT_EQ(bad_send, expected ? &wr : nullptr);
			expect_guard();
		}

		guard_next_slots();
		ibv_wr_start(qpx);
		ibv_wr_rdma_write(qpx, RKEY, REMOTE);
		ibv_wr_set_inline_data_list(qpx, bufs.size(), bufs.data());
		EXPECT_EQ(ibv_wr_complete(qpx), expected);
		expect_guard();

		EXPECT_EQ(tail() - before, expected ? 0U : 1U + fits_wr);
		EXPECT_EQ(k.kick_commands.size(), tail());
	}

	void guard_next_slots()
	{
		memset(kqp().send_wqe(tail() + 1), 0xa5, kqp().resp.sq_stride);
	}

	void expect_guard()
	{
		const auto *p = reinterpret_cast<unsigned char *>(kqp().send_wqe(guarded()));

		for (uint32_t i = 0; i < kqp().resp.sq_stride; i++)
			ASSERT_EQ(p[i], 0xa5) << "byte " << i;
	}

	/* The slot behind the one just written or refused. */
	uint32_t guarded()
	{
		return reinterpret_cast<unsigned char *>(kqp().send_wqe(tail()))[0] == 0xa5 ?
			       tail() :
			       tail() + 1;
	}

	unsigned char data[128] = {};
};

TEST_F(Inline, ExactlyFull)
{
	try_pieces({100}, 0);
	try_pieces({60, 40}, 0);
	try_pieces({}, 0);
}

TEST_F(Inline, OneByteTooMuch)
{
	try_pieces({101}, EINVAL);
	try_pieces({60, 41}, EINVAL);
	try_pieces({100, 100, 100, 100}, EINVAL);
}

TEST_F(Inline, SumsThatWrap)
{
	try_pieces({0x80000000, 0x80000000}, EINVAL);
	try_pieces({0x80000000, 0x80000010}, EINVAL);
	try_pieces({16, 0xffffffff}, EINVAL);
	try_pieces({16, SIZE_MAX}, EINVAL);
	try_pieces({size_t{1} << 32}, EINVAL);
}

TEST_F(Send, ReadAndAtomicsTakeNoInlineData)
{
	char byte = 0;

	sges[0] = {reinterpret_cast<uintptr_t>(&byte), 1, 0};
	for (auto opcode :
	     {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
		ibv_send_wr wr = make_send(opcode, sges, 1, IBV_SEND_INLINE);

		EXPECT_EQ(post(&wr), EINVAL);
	}
	ibv_wr_start(qpx);
	ibv_wr_rdma_read(qpx, RKEY, REMOTE);
	ibv_wr_set_inline_data(qpx, &byte, 1);
	EXPECT_EQ(ibv_wr_complete(qpx), EINVAL);
	EXPECT_EQ(tail(), 0U);
}

/* ------------------------------------------------------------------ */
/* Refusals                                                           */
/* ------------------------------------------------------------------ */

TEST_F(Send, UnknownOpcodesAndFlags)
{
	for (auto opcode : {IBV_WR_TSO, IBV_WR_DRIVER1, IBV_WR_ATOMIC_WRITE}) {
		ibv_send_wr wr = make_send(opcode, sges);

		EXPECT_EQ(post(&wr), EINVAL) << opcode;
		EXPECT_EQ(bad_send, &wr);
	}
	ibv_send_wr wr = make_send(IBV_WR_SEND, sges, 1, IBV_SEND_IP_CSUM);
	EXPECT_EQ(post(&wr), EINVAL);
	EXPECT_EQ(tail(), 0U);
	EXPECT_TRUE(k.kick_commands.empty());
}

TEST_F(Send, TooManyElements)
{
	ibv_sge many[5] = {};
	ibv_send_wr wr = make_send(IBV_WR_SEND, many, 5);

	EXPECT_EQ(post(&wr), EINVAL);
	wr.num_sge = -1;
	EXPECT_EQ(post(&wr), EINVAL);
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_sge_list(qpx, 5, many);
	EXPECT_EQ(ibv_wr_complete(qpx), EINVAL);
	EXPECT_EQ(tail(), 0U);
}

TEST_F(Send, OnlyInStatesThatSend)
{
	ibv_send_wr wr = make_send(IBV_WR_SEND, sges);

	for (auto state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR}) {
		set_state(qp, state);
		EXPECT_EQ(post(&wr), EINVAL);
		EXPECT_EQ(bad_send, &wr);
		ibv_wr_start(qpx);
		ibv_wr_send(qpx);
		EXPECT_EQ(ibv_wr_complete(qpx), EINVAL);
	}
	EXPECT_EQ(tail(), 0U);
	for (auto state : {IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE, IBV_QPS_ERR}) {
		set_state(qp, state);
		EXPECT_EQ(post(&wr), 0);
	}
	EXPECT_EQ(tail(), 4U);
}

/* libibverbs believes the state of whichever query or modify returned last. */
TEST_F(Send, AQueryThatIsLateChangesNothing)
{
	ibv_send_wr wr = make_send(IBV_WR_SEND, sges);
	ibv_qp_init_attr init_attr;
	ibv_qp_attr attr = {};

	attr.qp_state = IBV_QPS_RTR; /* the answer: it was, a moment ago */
	ASSERT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init_attr), 0);
	EXPECT_EQ(qp->state, IBV_QPS_RTR);
	EXPECT_EQ(post(&wr), 0);
	set_state(qp, IBV_QPS_RESET);
	attr.qp_state = IBV_QPS_ERR;
	ASSERT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init_attr), 0);
	EXPECT_EQ(post(&wr), EINVAL);
}

TEST_F(Send, ErrorInTheMiddleOfAList)
{
	ibv_send_wr list[3] = {make_send(IBV_WR_SEND, sges), make_send(IBV_WR_TSO, sges),
			       make_send(IBV_WR_SEND, sges)};

	list[0].next = &list[1];
	list[1].next = &list[2];
	EXPECT_EQ(post(list), EINVAL);
	EXPECT_EQ(bad_send, &list[1]);
	EXPECT_EQ(tail(), 1U);
	EXPECT_EQ(k.kick_commands.size(), 1U);
}

TEST_F(Send, BuilderBatchIsAllOrNothing)
{
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, 7, 0x1000, 100);
	ibv_wr_send(qpx);
	ibv_wr_set_inline_data(qpx, sges, 101);
	ibv_wr_send(qpx); /* ignored, as is its setter */
	ibv_wr_set_sge(qpx, 7, 0x1000, 100);
	EXPECT_EQ(ibv_wr_complete(qpx), EINVAL);
	EXPECT_EQ(tail(), 0U);

	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_abort(qpx);
	EXPECT_EQ(tail(), 0U);

	ibv_wr_start(qpx);
	EXPECT_EQ(ibv_wr_complete(qpx), 0);
	EXPECT_EQ(tail(), 0U);
	EXPECT_TRUE(k.kick_commands.empty());

	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_send(qpx);
	EXPECT_EQ(ibv_wr_complete(qpx), 0);
	EXPECT_EQ(tail(), 2U);
	EXPECT_EQ(k.kick_commands.size(), 1U);
}

/* What was posted is the kernel's: a stray setter must not reach it. */
TEST_F(Send, SetterWithoutAnOperation)
{
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, 7, 0x1000, 100);
	ASSERT_EQ(ibv_wr_complete(qpx), 0);

	ibv_wr_start(qpx);
	ibv_wr_set_sge(qpx, 8, 0x9000, 900);
	ibv_wr_set_inline_data(qpx, sges, 1);
	ASSERT_EQ(ibv_wr_complete(qpx), 0);
	EXPECT_EQ(tail(), 1U);
	EXPECT_EQ(wqe_at(0).hdr.flags, 0);
	EXPECT_EQ(sge_of(wqe_at(0), 0).addr, 0x1000U);
}

/* ------------------------------------------------------------------ */
/* Space                                                              */
/* ------------------------------------------------------------------ */

TEST_F(Send, FullUntilOneCompletionRetiresAll)
{
	ibv_send_wr wr = make_send(IBV_WR_SEND, sges);

	for (uint32_t i = 0; i < k.sq_entries; i++)
		ASSERT_EQ(post(&wr), 0);
	EXPECT_EQ(post(&wr), ENOMEM);
	EXPECT_EQ(bad_send, &wr);
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	EXPECT_EQ(ibv_wr_complete(qpx), ENOMEM);
	EXPECT_EQ(tail(), k.sq_entries);

	complete_up_to(2); /* the first three */
	for (uint32_t i = 0; i < 3; i++)
		ASSERT_EQ(post(&wr), 0);
	EXPECT_EQ(post(&wr), ENOMEM);
}

TEST_F(Send, RingWrapsAndIndicesWrap)
{
	uroce::to_qp(qp)->sq.tail = 0xfffffffa;
	uroce::to_qp(qp)->sq.head = 0xfffffffa;
	for (uint32_t n = 0, index = 0xfffffffa; n < 3 * k.sq_entries; n++, index++) {
		ibv_send_wr wr = make_send(IBV_WR_SEND, sges);

		wr.wr_id = n;
		ASSERT_EQ(post(&wr), 0) << n;
		ASSERT_EQ(kqp().send_wqe(index)->wr_id, n);
		ASSERT_EQ(tail(), index + 1);
		if (n % 5 == 4)
			complete_up_to(index);
	}
}

/* ------------------------------------------------------------------ */
/* Doorbell and kick                                                  */
/* ------------------------------------------------------------------ */

TEST_F(Send, AwakeDeviceNeedsNoKick)
{
	ibv_send_wr wr = make_send(IBV_WR_SEND, sges);
	const uint32_t slot = kqp().resp.db_slot;

	k.db->need_wakeup = 0;
	ASSERT_EQ(post(&wr), 0);
	EXPECT_TRUE(k.kick_commands.empty());
	ASSERT_EQ(slot, 2 * 4096 + 37 * 64 + 40U);
	EXPECT_EQ(k.db->active[2 * 64 + 37], uint64_t{1} << 40);
	EXPECT_EQ(k.db->summary[2], uint64_t{1} << 37);
}

TEST_F(Send, OneKickForAListAndItsBytes)
{
	ibv_send_wr list[3] = {make_send(IBV_WR_SEND, sges), make_send(IBV_WR_SEND, sges),
			       make_send(IBV_WR_SEND, sges)};
	ib_uverbs_ioctl_hdr hdr;
	ib_uverbs_attr attr;

	list[0].next = &list[1];
	list[1].next = &list[2];
	k.eintr_before_kick = 2;
	ASSERT_EQ(post(list), 0);
	EXPECT_EQ(bad_send, nullptr);
	EXPECT_EQ(tail(), 3U);
	ASSERT_EQ(k.kick_commands.size(), 1U);

	const auto &bytes = k.kick_commands[0];
	ASSERT_EQ(bytes.size(), sizeof(hdr) + sizeof(attr));
	memcpy(&hdr, bytes.data(), sizeof(hdr));
	memcpy(&attr, bytes.data() + sizeof(hdr), sizeof(attr));
	EXPECT_EQ(hdr.length, bytes.size());
	EXPECT_EQ(hdr.object_id, UROCE_OBJECT_DOORBELL);
	EXPECT_EQ(hdr.method_id, UROCE_METHOD_KICK);
	EXPECT_EQ(hdr.num_attrs, 1);
	EXPECT_EQ(hdr.driver_id, uint32_t{UROCE_DRIVER_ID});
	EXPECT_EQ(hdr.reserved1, 0U);
	EXPECT_EQ(hdr.reserved2, 0U);
	EXPECT_EQ(attr.attr_id, UROCE_ATTR_KICK_SLOT);
	EXPECT_EQ(attr.len, 4);
	EXPECT_EQ(attr.flags, UVERBS_ATTR_F_MANDATORY);
	EXPECT_EQ(attr.attr_data.reserved, 0);
	EXPECT_EQ(attr.data, kqp().resp.db_slot);
}

TEST_F(Send, DeviceGone)
{
	ibv_send_wr wr = make_send(IBV_WR_SEND, sges);

	/* It goes, and nobody knows whether what was published is carried out: it is posted. */
	for (int err : {EIO, EINVAL}) {
		k.kick_err = err;
		EXPECT_EQ(post(&wr), 0);
		EXPECT_EQ(bad_send, nullptr);
	}
	EXPECT_EQ(tail(), 2U);
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	EXPECT_EQ(ibv_wr_complete(qpx), 0);
	EXPECT_EQ(tail(), 3U);
	EXPECT_EQ(k.kick_commands.size(), 3U);

	k.kick_err = 0;
	k.db->dead = 1;
	EXPECT_EQ(post(&wr), EIO);
	EXPECT_EQ(bad_send, &wr);
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	EXPECT_EQ(ibv_wr_complete(qpx), EIO);
	EXPECT_EQ(tail(), 3U);

	complete_up_to(2); /* what lies in memory can still be polled */

	ibv_wc wc;
	EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), -EIO); /* and then there is no more */
}

} /* namespace */
