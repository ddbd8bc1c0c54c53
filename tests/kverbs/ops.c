// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Operations of RC: data, completions, inline data, fences, signalling. */
#include "kverbs.h"

static const u32 lengths[] = { 0, 1, 1024, 1025, 40000 };

#define GUARD	64	/* bytes behind a message that must stay */

struct sample {
	enum ib_wr_opcode opcode;
	enum ib_wc_opcode wc;	/* of the sender */
	bool receives;		/* takes a receive request */
	enum ib_wc_opcode recv_wc;
};

static const struct sample samples[] = {
	{ IB_WR_SEND, IB_WC_SEND, true, IB_WC_RECV },
	{ IB_WR_SEND_WITH_IMM, IB_WC_SEND, true, IB_WC_RECV },
	{ IB_WR_RDMA_WRITE, IB_WC_RDMA_WRITE },
	{ IB_WR_RDMA_WRITE_WITH_IMM, IB_WC_RDMA_WRITE, true, IB_WC_RECV_RDMA_WITH_IMM },
	{ IB_WR_RDMA_READ, IB_WC_RDMA_READ },
};

static void check_recv(struct kv_side *b, const struct sample *s, u32 len,
		       __be32 imm)
{
	bool has_imm = s->opcode != IB_WR_SEND;
	struct ib_wc wc;

	if (!kv_expect(b, &wc, 100, IB_WC_SUCCESS, s->recv_wc))
		return;
	kv_eq(b->kv, wc.byte_len, len);
	kv_eq(b->kv, wc.src_qp, b->peer->qp->qp_num);
	kv_eq(b->kv, wc.wc_flags, has_imm ? IB_WC_WITH_IMM : 0);
	if (has_imm)
		kv_eq(b->kv, be32_to_cpu(wc.ex.imm_data), be32_to_cpu(imm));
}

static void one_sample(struct kv_pair *pair, const struct sample *s, u32 len)
{
	struct kv_side *a = &pair->side[KV_A], *b = &pair->side[KV_B];
	bool read = s->opcode == IB_WR_RDMA_READ;
	struct kv_side *from = read ? b : a, *to = read ? a : b;
	struct kv_wr w;
	u32 i;

	kv_fill(from, 0, len, len + s->opcode);
	memset(to->buf, 0xee, len + GUARD);
	if (s->receives)
		kv_eq(pair->kv, kv_recv(b, 100, 0, len + GUARD), 0);

	kv_wr_init(a, &w, 1, s->opcode, 0, len);
	w.wr.ex.imm_data = cpu_to_be32(0xdead0000 + len);
	kv_do(a, &w, s->wc);
	if (s->receives)
		check_recv(b, s, len, w.wr.ex.imm_data);
	kv_same(to, 0, from, 0, len);
	for (i = len; i < len + GUARD; i++)
		if (!kv_eq(pair->kv, to->buf[i], 0xee))
			break;
}

static void run_samples(struct kv *kv)
{
	struct kv_pair *pair = kv_pair_create(kv, &(struct kv_options) {});
	int i, j;

	if (!pair)
		return;
	for (i = 0; i < ARRAY_SIZE(samples); i++)
		for (j = 0; j < ARRAY_SIZE(lengths); j++)
			one_sample(pair, &samples[i], lengths[j]);
	kv_expect_none(&pair->side[KV_A]);
	kv_expect_none(&pair->side[KV_B]);
	kv_pair_destroy(pair);
}

/* Scattered at both ends, into other parts */
static void run_lists(struct kv *kv)
{
	struct kv_pair *pair = kv_pair_create(kv, &(struct kv_options) {});
	static const u32 cut_a[] = { 1, 3000, 0, 999 }, cut_b[] = { 2000, 5, 1994, 1 };
	struct kv_side *a, *b;
	struct ib_sge sge[KV_SGES];
	struct ib_recv_wr recv;
	u32 i, at, at_b = 0;
	struct kv_wr w;

	if (!pair)
		return;
	a = &pair->side[KV_A];
	b = &pair->side[KV_B];
	kv_fill(a, 0, KV_BUF, 3);
	kv_wr_init(a, &w, 1, IB_WR_SEND, 0, 0);
	kv_recv_init(b, &recv, sge, 2, 0, 0);
	w.wr.num_sge = KV_SGES;
	recv.num_sge = KV_SGES;
	for (i = 0; i < KV_SGES; i++) {
		/* pieces of A lie 4096 apart, B's 8192 and the other way round */
		w.sge[i] = w.sge[0];
		w.sge[i].addr = a->dma + i * 4096;
		w.sge[i].length = cut_a[i];
		sge[i] = sge[0];
		sge[i].addr = b->dma + (KV_SGES - i) * 8192;
		sge[i].length = cut_b[i];
	}
	kv_eq(kv, ib_post_recv(b->qp, &recv, NULL), 0);
	kv_do(a, &w, IB_WC_SEND);
	kv_expect(b, NULL, 2, IB_WC_SUCCESS, IB_WC_RECV);

	/* put both together at their ends and compare */
	for (i = 0, at = 32768; i < KV_SGES; at += cut_a[i++])
		memmove(a->buf + at, a->buf + i * 4096, cut_a[i]);
	for (i = 0, at_b = 49152; i < KV_SGES; at_b += cut_b[i++])
		memmove(b->buf + at_b, b->buf + (KV_SGES - i) * 8192, cut_b[i]);
	kv_same(b, 49152, a, 32768, 4000);
	kv_pair_destroy(pair);
}

static u64 *word(struct kv_side *side, u32 offset)
{
	return (u64 *)(side->buf + offset);
}

static void run_atomics(struct kv *kv)
{
	struct kv_pair *pair = kv_pair_create(kv, &(struct kv_options) {});
	struct kv_side *a, *b;
	struct kv_wr w;

	if (!pair)
		return;
	a = &pair->side[KV_A];
	b = &pair->side[KV_B];
	*word(b, 8) = 0x1111222233334444;

	kv_wr_init(a, &w, 1, IB_WR_ATOMIC_CMP_AND_SWP, 8, 8);
	w.atomic.compare_add = 0x1111222233334444;
	w.atomic.swap = U64_MAX - 1;
	kv_do(a, &w, IB_WC_COMP_SWAP);
	kv_eq(kv, *word(a, 8), 0x1111222233334444);
	kv_eq(kv, *word(b, 8), U64_MAX - 1);

	/* another value: nothing is swapped */
	w.atomic.swap = 5;
	kv_do(a, &w, IB_WC_COMP_SWAP);
	kv_eq(kv, *word(a, 8), U64_MAX - 1);
	kv_eq(kv, *word(b, 8), U64_MAX - 1);

	kv_wr_init(a, &w, 2, IB_WR_ATOMIC_FETCH_AND_ADD, 8, 8);
	w.atomic.compare_add = 3;
	kv_do(a, &w, IB_WC_FETCH_ADD);
	kv_eq(kv, *word(a, 8), U64_MAX - 1);
	kv_eq(kv, *word(b, 8), 1);
	kv_eq(kv, *word(b, 0), 0);
	kv_eq(kv, *word(b, 16), 0);

	w.atomic.remote_addr += 4;
	kv_do_fail(a, &w, IB_WC_REM_INV_REQ_ERR);
	kv_eq(kv, *word(b, 8), 1);
	kv_pair_destroy(pair);
}

static bool post_inline(struct kv_side *a, enum ib_wr_opcode opcode, u32 len)
{
	struct kv_wr w;
	int err;

	kv_wr_init(a, &w, 1, opcode, 0, len);
	w.wr.send_flags |= IB_SEND_INLINE;
	/* an address of the kernel's, no key */
	w.sge[0].addr = (uintptr_t)a->buf;
	w.sge[0].lkey = 0xbad;
	err = kv_post(a, &w);
	/* it has been taken along by now */
	memset(a->buf, 0xdd, len);
	return kv_eq(a->kv, err, len > a->cap.max_inline_data ? -EINVAL : 0) && !err;
}

static void run_inline(struct kv *kv)
{
	struct kv_pair *pair;
	struct kv_side *a, *b;
	struct ib_wc wc;
	struct kv_wr w;
	u32 max, i;

	pair = kv_pair_create(kv, &(struct kv_options) { .inline_data = 200 });
	if (!pair)
		return;
	a = &pair->side[KV_A];
	b = &pair->side[KV_B];
	max = a->cap.max_inline_data;
	if (!kv_ok(kv, max >= 200 && max < 4096))
		goto out;

	for (i = 0; i < 4; i++) {
		u32 len = ((u32[]) { 0, 1, max, max + 1 })[i];

		kv_fill(a, 0, len, i);
		kv_fill(a, 8192, len, i);
		kv_eq(kv, kv_recv(b, 100, 0, 4096), 0);
		if (post_inline(a, IB_WR_SEND, len)) {
			kv_expect(a, NULL, 1, IB_WC_SUCCESS, IB_WC_SEND);
			kv_expect(b, &wc, 100, IB_WC_SUCCESS, IB_WC_RECV);
			kv_eq(kv, wc.byte_len, len);
			kv_same(b, 0, a, 8192, len);
		}
		kv_fill(a, 0, len, i + 50);
		kv_fill(a, 8192, len, i + 50);
		if (post_inline(a, IB_WR_RDMA_WRITE, len)) {
			kv_expect(a, NULL, 1, IB_WC_SUCCESS, IB_WC_RDMA_WRITE);
			kv_same(b, 0, a, 8192, len);
		}
	}

	/* one too long leaves its predecessors of the list posted, and nothing of itself */
	kv_expect_none(a);
	kv_wr_init(a, &w, 2, IB_WR_RDMA_READ, 0, 8);
	w.wr.send_flags |= IB_SEND_INLINE;
	w.sge[0].addr = (uintptr_t)a->buf;
	kv_do_fail(a, &w, IB_WC_LOC_QP_OP_ERR);
out:
	kv_pair_destroy(pair);
}

/*
 * What a READ brings is sent on: only a fence makes the SEND wait for it. Many at
 * once, so that without it one of them sends what was there before.
 */
static void run_fence(struct kv *kv)
{
	struct kv_pair *pair = kv_pair_create(kv, &(struct kv_options) {});
	const u32 len = 4096, n = 7;
	struct kv_side *a, *b;
	struct kv_wr w;
	u32 i;

	if (!pair)
		return;
	a = &pair->side[KV_A];
	b = &pair->side[KV_B];
	kv_fill(b, 0, n * len, 9);
	for (i = 0; i < n; i++)
		kv_eq(kv, kv_recv(b, 100 + i, 32768 + i * len, len), 0);
	for (i = 0; i < n; i++) {
		kv_wr_init(a, &w, 10 + i, IB_WR_RDMA_READ, i * len, len);
		w.wr.send_flags = 0;
		kv_eq(kv, kv_post(a, &w), 0);
		kv_wr_init(a, &w, 20 + i, IB_WR_SEND, i * len, len);
		w.wr.send_flags |= IB_SEND_FENCE;
		kv_eq(kv, kv_post(a, &w), 0);
	}
	for (i = 0; i < n; i++) {
		kv_expect(a, NULL, 20 + i, IB_WC_SUCCESS, IB_WC_SEND);
		kv_expect(b, NULL, 100 + i, IB_WC_SUCCESS, IB_WC_RECV);
	}
	kv_same(b, 32768, b, 0, n * len);
	kv_pair_destroy(pair);
}

static void post_writes(struct kv_side *a, u32 n, u32 signal_each)
{
	struct kv_wr w;
	u32 i;

	for (i = 0; i < n; i++) {
		kv_wr_init(a, &w, i, IB_WR_RDMA_WRITE, i * 64, 64);
		if ((i + 1) % signal_each)
			w.wr.send_flags = 0;
		kv_eq(a->kv, kv_post(a, &w), 0);
	}
}

static void run_signalling(struct kv *kv)
{
	struct kv_pair *pair = kv_pair_create(kv, &(struct kv_options) {});
	struct kv_side *a;
	struct kv_wr w;
	u32 i;

	if (!pair)
		return;
	a = &pair->side[KV_A];
	post_writes(a, 48, 8);
	for (i = 0; i < 6; i++)
		kv_expect(a, NULL, i * 8 + 7, IB_WC_SUCCESS, IB_WC_RDMA_WRITE);
	kv_expect_none(a);

	/* one that fails is said, whatever was asked for, and so are those behind it */
	post_writes(a, 3, 100);
	kv_wr_init(a, &w, 3, IB_WR_RDMA_WRITE, 0, 64);
	w.rdma.rkey ^= 0x5a00;
	w.wr.send_flags = 0;
	kv_eq(kv, kv_post(a, &w), 0);
	kv_wr_init(a, &w, 4, IB_WR_RDMA_WRITE, 0, 64);
	w.wr.send_flags = 0;
	kv_eq(kv, kv_post(a, &w), 0);
	kv_expect(a, NULL, 3, IB_WC_REM_ACCESS_ERR, 0);
	kv_expect(a, NULL, 4, IB_WC_WR_FLUSH_ERR, 0);
	kv_expect_none(a);
	kv_pair_destroy(pair);

	pair = kv_pair_create(kv, &(struct kv_options) { .all_signalled = true });
	if (!pair)
		return;
	a = &pair->side[KV_A];
	post_writes(a, 10, 100);
	for (i = 0; i < 10; i++)
		kv_expect(a, NULL, i, IB_WC_SUCCESS, IB_WC_RDMA_WRITE);
	kv_expect_none(a);
	kv_pair_destroy(pair);
}

/* A key of another PD's, at either end */
static void run_domains(struct kv *kv)
{
	struct kv_pair *pair;
	struct ib_pd *pd;
	struct kv_wr w;

	pd = ib_alloc_pd(kv->dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	if (!kv_ok(kv, !IS_ERR(pd)))
		return;
	pair = kv_pair_create(kv, &(struct kv_options) { .pd = pd });
	if (pair) {
		struct kv_side *a = &pair->side[KV_A], *b = &pair->side[KV_B];

		/* all memory of the kernel, for whoever knows the key: from B to A */
		kv_fill(b, 0, 5000, 1);
		kv_wr_init(b, &w, 1, IB_WR_RDMA_WRITE, 0, 5000);
		w.rdma.remote_addr = a->dma;
		w.rdma.rkey = pd->unsafe_global_rkey;
		kv_do(b, &w, IB_WC_RDMA_WRITE);
		kv_same(a, 0, b, 0, 5000);

		kv_wr_init(a, &w, 2, IB_WR_RDMA_WRITE, 0, 64);
		w.sge[0].lkey = b->pd->local_dma_lkey;
		kv_do_fail(a, &w, IB_WC_LOC_PROT_ERR);
		kv_wr_init(b, &w, 3, IB_WR_RDMA_WRITE, 0, 64);
		kv_eq(kv, kv_modify(b, IB_QPS_ERR), 0);
		kv_do_fail(b, &w, IB_WC_WR_FLUSH_ERR);
		kv_pair_destroy(pair);
	}
	/* the global key is not one of the other domain */
	pair = kv_pair_create(kv, &(struct kv_options) {});
	if (pair) {
		struct kv_side *a = &pair->side[KV_A];

		kv_wr_init(a, &w, 1, IB_WR_RDMA_WRITE, 0, 64);
		w.rdma.remote_addr = pair->side[KV_B].dma;
		w.rdma.rkey = pd->unsafe_global_rkey;
		kv_do_fail(a, &w, IB_WC_REM_ACCESS_ERR);
		kv_pair_destroy(pair);
	}
	ib_dealloc_pd(pd);
}

const struct kv_case kv_ops[] = {
	{ "ops.samples", run_samples },
	{ "ops.lists", run_lists },
	{ "ops.atomics", run_atomics },
	{ "ops.inline", run_inline },
	{ "ops.fence", run_fence },
	{ "ops.signalling", run_signalling },
	{ "ops.domains", run_domains },
	{}
};
