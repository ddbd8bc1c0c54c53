// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fast registration: what is mapped where, its limits, its life. Keys: keys.c. */
#include <linux/slab.h>
#include "kverbs.h"

struct ib_mr *kv_mr_alloc(struct kv *kv, struct ib_pd *pd, u32 pages)
{
	struct ib_mr *mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, pages);

	if (!IS_ERR(mr))
		return mr;
	kv_fail(kv, "ib_alloc_mr of %u pages: %ld", pages, PTR_ERR(mr));
	return NULL;
}

static void reg_init(struct kv_side *side, struct kv_wr *w, struct ib_mr *mr,
		     int access)
{
	kv_wr_init(side, w, KV_IDS - 1, IB_WR_REG_MR, 0, 0);
	w->reg.mr = mr;
	w->reg.key = mr->rkey;
	w->reg.access = access;
}

bool kv_reg(struct kv_side *side, struct ib_mr *mr, int access,
	    enum ib_wc_status status)
{
	struct kv_wr w;

	reg_init(side, &w, mr, access);
	return status ? kv_do_fail(side, &w, status) : kv_do(side, &w, IB_WC_REG_MR);
}

bool kv_local_inv(struct kv_side *side, u32 key, enum ib_wc_status status)
{
	struct kv_wr w;

	kv_wr_init(side, &w, KV_IDS - 2, IB_WR_LOCAL_INV, 0, 0);
	w.wr.ex.invalidate_rkey = key;
	return status ? kv_do_fail(side, &w, status) : kv_do(side, &w, IB_WC_LOCAL_INV);
}

bool kv_reg_buf(struct kv_side *side, struct ib_mr *mr, u32 offset, u32 len,
		int access)
{
	struct scatterlist sg;

	sg_init_one(&sg, side->buf + offset, len);
	return kv_eq(side->kv, ib_dma_map_sg(side->kv->dev, &sg, 1, DMA_BIDIRECTIONAL), 1) &&
	       kv_eq(side->kv, ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE), 1) &&
	       kv_eq(side->kv, mr->length, len) &&
	       kv_reg(side, mr, access, IB_WC_SUCCESS);
}

/* Bytes of A's memory into B's region, or back */
static void transfer(struct kv_side *a, enum ib_wr_opcode opcode, u32 offset,
		     u32 len, const struct ib_mr *mr, u64 remote_offset,
		     enum ib_wc_status status)
{
	struct kv_wr w;

	kv_wr_init(a, &w, 1, IB_WR_SEND, offset, len);
	w.wr.opcode = opcode;
	w.rdma.remote_addr = mr->iova + remote_offset;
	w.rdma.rkey = mr->rkey;
	if (status)
		kv_do_fail(a, &w, status);
	else
		kv_do(a, &w, opcode == IB_WR_RDMA_READ ? IB_WC_RDMA_READ : IB_WC_RDMA_WRITE);
}

static struct kv_pair *bare_pair(struct kv *kv)
{
	return kv_pair_create(kv, &(struct kv_options) { .no_mr = true });
}

/* Pages of B's memory, not side by side nor in order, with an offset in the first */
static void run_map(struct kv *kv)
{
	static const u8 pages[] = { 9, 2, 3, 12 };
	const u32 first = 100, skip = 50, last = 700;
	struct kv_pair *pair = bare_pair(kv);
	u32 i, len, offset = skip;
	struct scatterlist sg[4];
	struct kv_side *a, *b;
	struct ib_mr *mr;

	if (!pair)
		return;
	a = &pair->side[KV_A];
	b = &pair->side[KV_B];
	mr = kv_mr_alloc(kv, pair->pd, 4);
	if (!mr)
		goto out;
	sg_init_table(sg, 4);
	for (i = 0; i < 4; i++)
		sg_set_buf(&sg[i], b->buf + pages[i] * PAGE_SIZE + (i ? 0 : first),
			   i == 0 ? PAGE_SIZE - first : i == 3 ? last : PAGE_SIZE);
	kv_eq(kv, ib_dma_map_sg(kv->dev, sg, 4, DMA_BIDIRECTIONAL), 4);
	kv_eq(kv, ib_map_mr_sg(mr, sg, 4, &offset, PAGE_SIZE), 4);
	kv_eq(kv, offset, 0);
	len = 3 * PAGE_SIZE - first - skip + last;
	kv_eq(kv, mr->length, len);
	kv_eq(kv, mr->iova, b->dma + pages[0] * PAGE_SIZE + first + skip);
	kv_reg(b, mr, KV_ALL_ACCESS, IB_WC_SUCCESS);

	kv_fill(a, 0, len, 1);
	memset(b->buf, 0xee, KV_BUF);
	transfer(a, IB_WR_RDMA_WRITE, 0, len, mr, 0, 0);
	kv_same(b, 9 * PAGE_SIZE + 150, a, 0, PAGE_SIZE - 150);
	kv_same(b, 2 * PAGE_SIZE, a, PAGE_SIZE - 150, 2 * PAGE_SIZE);
	kv_same(b, 12 * PAGE_SIZE, a, 3 * PAGE_SIZE - 150, last);
	kv_eq(kv, b->buf[9 * PAGE_SIZE + 149], 0xee);
	kv_eq(kv, b->buf[12 * PAGE_SIZE + last], 0xee);
	kv_eq(kv, b->buf[4 * PAGE_SIZE], 0xee);

	/* and a piece across three of them back */
	transfer(a, IB_WR_RDMA_READ, 32768, 6000, mr, 3000, 0);
	kv_same(a, 32768, a, 3000, 6000);
	/* one byte too far */
	transfer(a, IB_WR_RDMA_READ, 32768, 2, mr, len - 1, IB_WC_REM_ACCESS_ERR);
	ib_dereg_mr(mr);
out:
	kv_pair_destroy(pair);
}

/* Lists that a region cannot take: it takes their beginning */
static void run_list_limits(struct kv *kv)
{
	struct kv_pair *pair = bare_pair(kv);
	struct scatterlist sg[3];
	struct ib_mr *mr;
	u8 *buf;
	u32 i;

	if (!pair)
		return;
	buf = pair->side[KV_B].buf;
	mr = kv_mr_alloc(kv, pair->pd, 2);
	if (!mr)
		goto out;
	sg_init_table(sg, 3);
	for (i = 0; i < 3; i++)
		sg_set_buf(&sg[i], buf + 2 * i * PAGE_SIZE, PAGE_SIZE);
	ib_dma_map_sg(kv->dev, sg, 3, DMA_BIDIRECTIONAL);
	kv_eq(kv, ib_map_mr_sg(mr, sg, 3, NULL, PAGE_SIZE), 2);
	kv_eq(kv, mr->length, 2 * PAGE_SIZE);

	/* a gap: what does not end with its page, or not begin with one */
	sg_set_buf(&sg[0], buf, 100);
	ib_dma_map_sg(kv->dev, sg, 3, DMA_BIDIRECTIONAL);
	kv_eq(kv, ib_map_mr_sg(mr, sg, 2, NULL, PAGE_SIZE), 1);
	kv_eq(kv, mr->length, 100);
	sg_set_buf(&sg[0], buf, PAGE_SIZE);
	sg_set_buf(&sg[1], buf + 2 * PAGE_SIZE + 8, 100);
	ib_dma_map_sg(kv->dev, sg, 3, DMA_BIDIRECTIONAL);
	kv_eq(kv, ib_map_mr_sg(mr, sg, 2, NULL, PAGE_SIZE), 1);
	kv_eq(kv, mr->length, PAGE_SIZE);

	/* an element that does not fit is none */
	sg_set_buf(&sg[0], buf + PAGE_SIZE - 8, PAGE_SIZE + 16);
	ib_dma_map_sg(kv->dev, sg, 3, DMA_BIDIRECTIONAL);
	kv_eq(kv, ib_map_mr_sg(mr, sg, 1, NULL, PAGE_SIZE), 0);
	sg_set_buf(&sg[0], buf, PAGE_SIZE);
	ib_dma_map_sg(kv->dev, sg, 3, DMA_BIDIRECTIONAL);

	/* pages of no size that a device has; an offset beyond the list */
	kv_ok(kv, ib_map_mr_sg(mr, sg, 1, NULL, 512) < 0);
	kv_ok(kv, ib_map_mr_sg(mr, sg, 1, NULL, 3 * PAGE_SIZE) < 0);
	i = PAGE_SIZE + 1;
	kv_ok(kv, ib_map_mr_sg(mr, sg, 1, &i, PAGE_SIZE) < 0);
	ib_dereg_mr(mr);
out:
	kv_pair_destroy(pair);
}

/* The largest region of the device, all of it written and read */
static void transfer_all(struct kv_pair *pair, struct ib_mr *mr,
			 struct page **pages, u32 n)
{
	struct kv_side *a = &pair->side[KV_A];
	u32 i, j;

	for (i = 0; i < n; i += 16) {
		kv_fill(a, 0, 16 * PAGE_SIZE, i);
		transfer(a, IB_WR_RDMA_WRITE, 0, min(16U, n - i) * PAGE_SIZE, mr,
			 (u64)i * PAGE_SIZE, 0);
		for (j = 0; j < 16 && i + j < n; j++)
			if (!kv_ok(pair->kv, !memcmp(page_address(pages[i + j]),
						     a->buf + j * PAGE_SIZE, PAGE_SIZE)))
				return;
	}
}

static void free_pages_of(struct page **pages, u32 n)
{
	u32 i;

	for (i = 0; pages && i < n; i++)
		if (pages[i])
			__free_page(pages[i]);
	kfree(pages);
}

static struct page **alloc_pages_of(u32 n)
{
	struct page **pages = kcalloc(n, sizeof(*pages), GFP_KERNEL);
	u32 i;

	for (i = 0; pages && i < n; i++) {
		pages[i] = alloc_page(GFP_KERNEL);
		if (!pages[i]) {
			free_pages_of(pages, n);
			return NULL;
		}
	}
	return pages;
}

static void register_all(struct kv_pair *pair, struct page **pages, u32 n)
{
	struct kv *kv = pair->kv;
	struct sg_table table;
	struct scatterlist *sg;
	struct ib_mr *mr;
	int i;

	if (!kv_eq(kv, sg_alloc_table(&table, n + 1, GFP_KERNEL), 0))
		return;
	for_each_sg(table.sgl, sg, n + 1, i)
		sg_set_page(sg, pages[i], PAGE_SIZE, 0);
	ib_dma_map_sg(kv->dev, table.sgl, n + 1, DMA_BIDIRECTIONAL);
	mr = kv_mr_alloc(kv, pair->pd, n);
	if (mr) {
		/* one page too many */
		kv_eq(kv, ib_map_mr_sg(mr, table.sgl, n + 1, NULL, PAGE_SIZE), n);
		kv_eq(kv, mr->length, (u64)n * PAGE_SIZE);
		if (kv_reg(&pair->side[KV_B], mr, KV_ALL_ACCESS, 0))
			transfer_all(pair, mr, pages, n);
		ib_dereg_mr(mr);
	}
	sg_free_table(&table);
}

static void run_largest(struct kv *kv)
{
	u32 n = kv->dev->attrs.max_fast_reg_page_list_len;
	struct kv_pair *pair = bare_pair(kv);
	struct page **pages;
	struct ib_mr *mr;

	if (!pair)
		return;
	pages = alloc_pages_of(n + 1);
	if (kv_ok(kv, pages))
		register_all(pair, pages, n);
	free_pages_of(pages, n + 1);

	mr = ib_alloc_mr(pair->pd, IB_MR_TYPE_MEM_REG, n + 1);
	if (!kv_eq(kv, PTR_ERR_OR_ZERO(mr), -EINVAL) && !IS_ERR(mr))
		ib_dereg_mr(mr);
	kv_pair_destroy(pair);
}

#define WRITABLE	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE)

/* Rights are those of the registration */
static void run_access(struct kv *kv)
{
	static const struct {
		int access;
		enum ib_wr_opcode opcode;
		enum ib_wc_status status;
	} rows[] = {
		{ IB_ACCESS_REMOTE_READ, IB_WR_RDMA_READ, IB_WC_SUCCESS },
		{ IB_ACCESS_REMOTE_READ, IB_WR_RDMA_WRITE, IB_WC_REM_ACCESS_ERR },
		{ WRITABLE, IB_WR_RDMA_WRITE, IB_WC_SUCCESS },
		{ WRITABLE, IB_WR_RDMA_READ, IB_WC_REM_ACCESS_ERR },
		{ IB_ACCESS_LOCAL_WRITE, IB_WR_RDMA_READ, IB_WC_REM_ACCESS_ERR },
	};
	struct kv_pair *pair;
	struct ib_mr *mr;
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		pair = bare_pair(kv);
		if (!pair)
			return;
		mr = kv_mr_alloc(kv, pair->pd, 1);
		if (mr && kv_reg_buf(&pair->side[KV_B], mr, 0, 4096, rows[i].access))
			transfer(&pair->side[KV_A], rows[i].opcode, 0, 100, mr, 0,
				 rows[i].status);
		if (mr)
			ib_dereg_mr(mr);
		kv_pair_destroy(pair);
	}
}

/* Registered, used by its local key, invalidated, in one list of requests */
static void run_chain(struct kv *kv)
{
	struct kv_pair *pair = bare_pair(kv);
	struct kv_wr reg, send, inv;
	struct kv_side *a, *b;
	struct scatterlist sg;
	struct ib_mr *mr;
	u32 i;

	if (!pair)
		return;
	a = &pair->side[KV_A];
	b = &pair->side[KV_B];
	mr = kv_mr_alloc(kv, pair->pd, 3);
	for (i = 0; mr && i < 20; i++) {
		/* mapped anew while nothing of the last round is under way */
		sg_init_one(&sg, a->buf + i * 1000, 5000);
		ib_dma_map_sg(kv->dev, &sg, 1, DMA_BIDIRECTIONAL);
		if (!kv_eq(kv, ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE), 1))
			break;
		kv_fill(a, i * 1000, 5000, i);
		kv_eq(kv, kv_recv(b, 100, 0, 8192), 0);

		reg_init(a, &reg, mr, IB_ACCESS_LOCAL_WRITE);
		reg.wr.send_flags = 0;
		reg.wr.next = &send.wr;
		kv_wr_init(a, &send, 2, IB_WR_SEND, 0, 0);
		send.sge[0] = (struct ib_sge) { mr->iova, mr->length, mr->lkey };
		send.wr.send_flags = 0;
		send.wr.next = &inv.wr;
		kv_wr_init(a, &inv, 3, IB_WR_LOCAL_INV, 0, 0);
		inv.wr.ex.invalidate_rkey = mr->rkey;
		/* or it would overtake the SEND */
		inv.wr.send_flags |= IB_SEND_FENCE;
		kv_eq(kv, kv_post(a, &reg), 0);
		kv_expect(a, NULL, 3, IB_WC_SUCCESS, IB_WC_LOCAL_INV);
		kv_expect(b, NULL, 100, IB_WC_SUCCESS, IB_WC_RECV);
		kv_same(b, 0, a, i * 1000, 5000);
	}
	kv_expect_none(a);
	if (mr)
		ib_dereg_mr(mr);
	kv_pair_destroy(pair);
}

const struct kv_case kv_frwr[] = {
	{ "frwr.map", run_map },
	{ "frwr.list_limits", run_list_limits },
	{ "frwr.largest", run_largest },
	{ "frwr.access", run_access },
	{ "frwr.chain", run_chain },
	{}
};
