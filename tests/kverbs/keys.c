// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The life of a key: invalidated here and from afar, counted up, refused. */
#include "kverbs.h"

/* A pair with a one-page region of B's memory, registered */
struct scene {
	struct kv_pair *pair;
	struct kv_side *a, *b;
	struct ib_mr *mr;
};

static bool scene_begin(struct kv *kv, struct scene *s)
{
	s->pair = kv_pair_create(kv, &(struct kv_options) { .no_mr = true });
	s->mr = NULL;
	if (!s->pair)
		return false;
	s->a = &s->pair->side[KV_A];
	s->b = &s->pair->side[KV_B];
	s->mr = kv_mr_alloc(kv, s->pair->pd, 1);
	return s->mr && kv_reg_buf(s->b, s->mr, 0, 4096, KV_ALL_ACCESS);
}

static void scene_end(struct scene *s)
{
	if (s->mr)
		ib_dereg_mr(s->mr);
	kv_pair_destroy(s->pair);
}

/* A WRITE of A's to B's region by that key */
static void write_by(struct scene *s, u32 key, enum ib_wc_status status)
{
	struct kv_wr w;

	kv_wr_init(s->a, &w, 1, IB_WR_SEND, 0, 64);
	w.wr.opcode = IB_WR_RDMA_WRITE;
	w.rdma.remote_addr = s->mr->iova;
	w.rdma.rkey = key;
	if (status)
		kv_do_fail(s->a, &w, status);
	else
		kv_do(s->a, &w, IB_WC_RDMA_WRITE);
}

static void run_invalidate(struct kv *kv)
{
	struct scene s;

	/* no longer of use for the peer, ... */
	if (scene_begin(kv, &s)) {
		write_by(&s, s.mr->rkey, 0);
		kv_local_inv(s.b, s.mr->rkey, 0);
		write_by(&s, s.mr->rkey, IB_WC_REM_ACCESS_ERR);
	}
	scene_end(&s);
	/* ... nor for itself, to send from ... */
	if (scene_begin(kv, &s)) {
		struct kv_wr w;

		kv_recv(s.a, 100, 0, 64);
		kv_recv(s.a, 101, 0, 64);
		kv_wr_init(s.b, &w, 3, IB_WR_SEND, 0, 64);
		w.sge[0].lkey = s.mr->lkey;
		kv_do(s.b, &w, IB_WC_SEND);
		kv_expect(s.a, NULL, 100, 0, IB_WC_RECV);
		kv_local_inv(s.b, s.mr->rkey, 0);
		kv_do_fail(s.b, &w, IB_WC_LOC_PROT_ERR);
		kv_expect_none(s.a);
	}
	scene_end(&s);
	/* ... and to receive into */
	if (scene_begin(kv, &s)) {
		struct ib_recv_wr recv;
		struct ib_sge sge;
		struct kv_wr w;

		kv_local_inv(s.b, s.mr->rkey, 0);
		kv_recv_init(s.b, &recv, &sge, 100, 0, 64);
		sge.lkey = s.mr->lkey;
		kv_eq(kv, ib_post_recv(s.b->qp, &recv, NULL), 0);
		kv_wr_init(s.a, &w, 1, IB_WR_SEND, 0, 64);
		kv_do_fail(s.a, &w, IB_WC_REM_OP_ERR);
		kv_expect(s.b, NULL, 100, IB_WC_LOC_PROT_ERR, 0);
	}
	scene_end(&s);
}

/* Memory operations that must fail */
static void run_refused(struct kv *kv)
{
	struct ib_mr *other;
	struct ib_pd *pd;
	struct scene s;

	/* registered already; mapped, so that it is not for that */
	if (scene_begin(kv, &s)) {
		struct scatterlist sg;

		sg_init_one(&sg, s.b->buf, 4096);
		ib_dma_map_sg(kv->dev, &sg, 1, DMA_BIDIRECTIONAL);
		kv_eq(kv, ib_map_mr_sg(s.mr, &sg, 1, NULL, PAGE_SIZE), 1);
		kv_reg(s.b, s.mr, KV_ALL_ACCESS, IB_WC_MW_BIND_ERR);
	}
	scene_end(&s);
	/* nothing mapped since the last time */
	if (scene_begin(kv, &s)) {
		kv_local_inv(s.b, s.mr->rkey, 0);
		kv_reg(s.b, s.mr, KV_ALL_ACCESS, IB_WC_MW_BIND_ERR);
	}
	scene_end(&s);
	/* a key that is not the region's by now; one that is nobody's */
	if (scene_begin(kv, &s))
		kv_local_inv(s.b, s.mr->rkey ^ 1, IB_WC_MW_BIND_ERR);
	scene_end(&s);
	if (scene_begin(kv, &s))
		kv_local_inv(s.b, s.mr->rkey ^ 0x100, IB_WC_MW_BIND_ERR);
	scene_end(&s);
	/* the key of all memory is no region to invalidate */
	if (scene_begin(kv, &s))
		kv_local_inv(s.b, s.pair->pd->local_dma_lkey, IB_WC_MW_BIND_ERR);
	scene_end(&s);
	/* another domain's region */
	pd = ib_alloc_pd(kv->dev, 0);
	if (!kv_ok(kv, !IS_ERR(pd)))
		return;
	other = kv_mr_alloc(kv, pd, 1);
	if (scene_begin(kv, &s) && other) {
		struct scatterlist sg;

		sg_init_one(&sg, s.b->buf, 4096);
		ib_dma_map_sg(kv->dev, &sg, 1, DMA_BIDIRECTIONAL);
		kv_eq(kv, ib_map_mr_sg(other, &sg, 1, NULL, PAGE_SIZE), 1);
		kv_reg(s.b, other, KV_ALL_ACCESS, IB_WC_MW_BIND_ERR);
	}
	scene_end(&s);
	if (other)
		ib_dereg_mr(other);
	ib_dealloc_pd(pd);
}

static void send_inv(struct scene *s, u32 key, u32 len)
{
	struct ib_wc wc;
	struct kv_wr w;

	kv_eq(s->pair->kv, kv_recv(s->b, 100, 8192, len), 0);
	kv_fill(s->a, 0, len, len);
	kv_wr_init(s->a, &w, 2, IB_WR_SEND_WITH_INV, 0, len);
	w.wr.ex.invalidate_rkey = key;
	kv_do(s->a, &w, IB_WC_SEND);
	if (!kv_expect(s->b, &wc, 100, 0, IB_WC_RECV))
		return;
	kv_eq(s->pair->kv, wc.wc_flags, IB_WC_WITH_INVALIDATE);
	kv_eq(s->pair->kv, wc.ex.invalidate_rkey, key);
	kv_eq(s->pair->kv, wc.byte_len, len);
	kv_same(s->b, 8192, s->a, 0, len);
}

static void run_remote_invalidate(struct kv *kv)
{
	static const u32 lengths[] = { 0, 10, 5000 };
	struct scene s;
	struct kv_wr w;
	int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		if (scene_begin(kv, &s)) {
			write_by(&s, s.mr->rkey, 0);
			send_inv(&s, s.mr->rkey, lengths[i]);
			/* free: it can be registered again, and is then used and given back */
			kv_reg_buf(s.b, s.mr, 0, 4096, KV_ALL_ACCESS);
			write_by(&s, s.mr->rkey, 0);
			send_inv(&s, s.mr->rkey, lengths[i]);
			write_by(&s, s.mr->rkey, IB_WC_REM_ACCESS_ERR);
		}
		scene_end(&s);
	}

	/* a key that is not there fails at both ends */
	if (scene_begin(kv, &s)) {
		kv_eq(kv, kv_recv(s.b, 100, 8192, 64), 0);
		kv_wr_init(s.a, &w, 2, IB_WR_SEND_WITH_INV, 0, 64);
		w.wr.ex.invalidate_rkey = s.mr->rkey ^ 1;
		kv_do_fail(s.a, &w, IB_WC_REM_OP_ERR);
		kv_expect(s.b, NULL, 100, IB_WC_MW_BIND_ERR, 0);
	}
	scene_end(&s);
}

/* The low byte is the owner's: counted up, all the way round */
static void run_next_key(struct kv *kv)
{
	struct scene s;
	u32 old, i;
	u8 low;

	if (!scene_begin(kv, &s))
		goto out;
	for (i = 0; i < 260; i++) {
		old = s.mr->rkey;
		kv_local_inv(s.b, old, 0);
		low = old + 1;
		ib_update_fast_reg_key(s.mr, low);
		kv_eq(kv, s.mr->rkey, (old & ~0xff) | low);
		kv_eq(kv, s.mr->lkey, s.mr->rkey);
		if (!kv_reg_buf(s.b, s.mr, i % 15 * 4096, 4096, KV_ALL_ACCESS))
			goto out;
		if (i % 16)
			continue;
		kv_fill(s.a, 0, 64, i);
		write_by(&s, s.mr->rkey, 0);
		kv_same(s.b, i % 15 * 4096, s.a, 0, 64);
	}
	/* the last one is of no use any more */
	write_by(&s, old, IB_WC_REM_ACCESS_ERR);
out:
	scene_end(&s);
}

/* The memory of an invalidated key stays as it is, though WRITEs are under way */
static void run_race(struct kv *kv)
{
	struct scene s;
	struct kv_wr w;
	u32 i, n = 40;
	u64 seen;

	if (!scene_begin(kv, &s))
		goto out;
	for (i = 0; i < n; i++) {
		kv_wr_init(s.a, &w, i, IB_WR_SEND, i * 8, 8);
		w.wr.opcode = IB_WR_RDMA_WRITE;
		w.rdma.remote_addr = s.mr->iova;
		w.rdma.rkey = s.mr->rkey;
		*(u64 *)(s.a->buf + i * 8) = i + 1;
		kv_eq(kv, kv_post(s.a, &w), 0);
	}
	kv_local_inv(s.b, s.mr->rkey, 0);
	seen = READ_ONCE(*(u64 *)s.b->buf);
	for (i = 0; i < n; i++) {
		struct ib_wc wc;

		if (!kv_wc(s.a, &wc))
			break;
		kv_eq(kv, kv_wc_id(s.a, &wc), i);
		/* a WRITE is done, or found the key gone, or came behind that one */
		if (wc.status)
			kv_eq(kv, wc.status, i == seen ? IB_WC_REM_ACCESS_ERR :
							 IB_WC_WR_FLUSH_ERR);
		kv_eq(kv, !wc.status, i < seen);
	}
	kv_eq(kv, *(u64 *)s.b->buf, seen);
out:
	scene_end(&s);
}

const struct kv_case kv_keys[] = {
	{ "keys.invalidate", run_invalidate },
	{ "keys.refused", run_refused },
	{ "keys.remote_invalidate", run_remote_invalidate },
	{ "keys.next", run_next_key },
	{ "keys.race", run_race },
	{}
};
