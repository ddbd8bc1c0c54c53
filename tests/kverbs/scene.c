// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Two QPs of one device, connected with each other, and their memory. */
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/ib_cache.h>
#include "kverbs.h"

#define FIRST_PSN	0xfffffc	/* wraps soon */

static void cq_handler(struct ib_cq *cq, void *context)
{
	struct kv_side *side = context;

	atomic_inc(&side->cq_events);
	wake_up(&side->wait);
}

static void cq_event(struct ib_event *event, void *context)
{
	pr_warn("kverbs: CQ event %d\n", event->event);
}

static void qp_event(struct ib_event *event, void *context)
{
	struct kv_side *side = context;

	set_bit(event->event, &side->qp_events);
	wake_up(&side->wait);
}

static int create_cq(struct kv_side *side, u32 entries)
{
	struct ib_cq_init_attr attr = { .cqe = entries };

	if (side->poll == KV_POLL_PLAIN)
		side->cq = ib_create_cq(side->kv->dev, cq_handler, cq_event,
					side, &attr);
	else
		side->cq = ib_alloc_cq(side->kv->dev, side, entries, 0,
				       side->poll);
	return PTR_ERR_OR_ZERO(side->cq);
}

static void free_cq(struct kv_side *side)
{
	if (IS_ERR_OR_NULL(side->cq))
		return;
	if (side->poll == KV_POLL_PLAIN)
		ib_destroy_cq(side->cq);
	else
		ib_free_cq(side->cq);
	side->cq = NULL;
}

static int create_qp(struct kv_side *side, const struct kv_options *options,
		     struct ib_srq *srq)
{
	struct ib_qp_init_attr init = {
		.event_handler = qp_event,
		.qp_context = side,
		.send_cq = side->cq,
		.recv_cq = side->cq,
		.srq = srq,
		.cap = {
			.max_send_wr = options->depth,
			.max_recv_wr = options->depth,
			.max_send_sge = KV_SGES,
			.max_recv_sge = KV_SGES,
			.max_inline_data = options->inline_data,
		},
		.sq_sig_type = options->all_signalled ? IB_SIGNAL_ALL_WR :
							IB_SIGNAL_REQ_WR,
		.qp_type = options->type,
	};

	side->qp = ib_create_qp(side->pd, &init);
	side->cap = init.cap;
	return PTR_ERR_OR_ZERO(side->qp);
}

void kv_side_free_qp(struct kv_side *side)
{
	int err;

	if (IS_ERR_OR_NULL(side->qp))
		return;
	err = ib_destroy_qp(side->qp);
	if (err)
		kv_fail(side->kv, "ib_destroy_qp: %d", err);
	side->qp = NULL;
}

void kv_side_free_mr(struct kv_side *side)
{
	int err;

	if (IS_ERR_OR_NULL(side->mr))
		return;
	err = ib_dereg_mr(side->mr);
	if (err)
		kv_fail(side->kv, "ib_dereg_mr: %d", err);
	side->mr = NULL;
}

static int init_side(struct kv_side *side, const struct kv_options *options,
		     struct ib_srq *srq)
{
	int i, err;

	spin_lock_init(&side->lock);
	init_waitqueue_head(&side->wait);
	for (i = 0; i < KV_IDS; i++) {
		side->id[i].cqe.done = kv_done;
		side->id[i].side = side;
	}

	side->buf = kzalloc(KV_BUF, GFP_KERNEL);
	if (!side->buf)
		return -ENOMEM;
	side->dma = ib_dma_map_single(side->kv->dev, side->buf, KV_BUF,
				      DMA_BIDIRECTIONAL);
	err = create_cq(side, 2 * options->depth + KV_IDS);
	return err ?: create_qp(side, options, srq);
}

static void free_side(struct kv_side *side)
{
	kv_side_free_qp(side);
	kv_side_free_mr(side);
	free_cq(side);
	if (side->buf)
		ib_dma_unmap_single(side->kv->dev, side->dma, KV_BUF,
				    DMA_BIDIRECTIONAL);
	kfree(side->buf);
}

void kv_ah_attr(struct kv *kv, u32 gid_index, struct rdma_ah_attr *attr)
{
	union ib_gid gid = {};

	memset(attr, 0, sizeof(*attr));
	attr->type = rdma_ah_find_type(kv->dev, 1);
	rdma_query_gid(kv->dev, 1, gid_index, &gid);
	rdma_ah_set_port_num(attr, 1);
	rdma_ah_set_grh(attr, NULL, 0, gid_index, 64, 0);
	rdma_ah_set_dgid_raw(attr, gid.raw);
}

int kv_modify(struct kv_side *side, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	return ib_modify_qp(side->qp, &attr, IB_QP_STATE);
}

static int to_init(struct kv_side *side)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qkey = 0x1234567,
		.qp_access_flags = KV_ALL_ACCESS,
	};
	bool ud = side->qp->qp_type == IB_QPT_UD;

	return ib_modify_qp(side->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
			    IB_QP_PORT | (ud ? IB_QP_QKEY : IB_QP_ACCESS_FLAGS));
}

static int to_rtr(struct kv_side *side)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = side->peer->qp->qp_num,
		.rq_psn = FIRST_PSN,
		.max_dest_rd_atomic = 8,
		.min_rnr_timer = 1,
	};

	if (side->qp->qp_type == IB_QPT_UD)
		return kv_modify(side, IB_QPS_RTR);
	kv_ah_attr(side->kv, side->kv->gid_index, &attr.ah_attr);
	return ib_modify_qp(side->qp, &attr, IB_QP_STATE | IB_QP_AV |
			    IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			    IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
}

static int to_rts(struct kv_side *side)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.sq_psn = FIRST_PSN,
		.timeout = 18,	/* a second: slow machines take long */
		.retry_cnt = 7,
		.rnr_retry = 7,	/* for ever */
		.max_rd_atomic = 8,
	};
	int mask = IB_QP_STATE | IB_QP_SQ_PSN;

	if (side->qp->qp_type != IB_QPT_UD)
		mask |= IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			IB_QP_MAX_QP_RD_ATOMIC;
	return ib_modify_qp(side->qp, &attr, mask);
}

int kv_connect(struct kv_side *side)
{
	return to_init(side) ?: to_rtr(side) ?: to_rts(side);
}

/* Each registers its own memory, for the peer */
static int register_buf(struct kv_side *side)
{
	side->mr = kv_mr_alloc(side->kv, side->pd, KV_BUF / PAGE_SIZE);
	if (!side->mr)
		return -ENOMEM;
	return kv_reg_buf(side, side->mr, 0, KV_BUF, KV_ALL_ACCESS) ? 0 : -EIO;
}

static int connect_pair(struct kv_pair *pair, const struct kv_options *options)
{
	int i, err;

	if (options->in_reset)
		return 0;
	for (i = 0; i < KV_SIDES; i++) {
		err = kv_connect(&pair->side[i]);
		if (err)
			return err;
	}
	for (i = 0; i < KV_SIDES; i++) {
		if (options->no_mr || options->type == IB_QPT_UD)
			continue;
		err = register_buf(&pair->side[i]);
		if (err)
			return err;
	}
	return 0;
}

static int init_pair(struct kv_pair *pair, const struct kv_options *options)
{
	int i, err;

	pair->pd = ib_alloc_pd(pair->kv->dev, 0);
	if (IS_ERR(pair->pd))
		return PTR_ERR(pair->pd);
	if (options->srq) {
		pair->srq = options->srq(pair->kv, pair->pd);
		if (IS_ERR(pair->srq))
			return PTR_ERR(pair->srq);
	}
	for (i = 0; i < KV_SIDES; i++) {
		struct kv_side *side = &pair->side[i];

		side->kv = pair->kv;
		side->peer = &pair->side[!i];
		side->pd = i == KV_A && options->pd ? options->pd : pair->pd;
		side->poll = options->poll[i];
		err = init_side(side, options, i == KV_B ? pair->srq : NULL);
		if (err)
			return err;
	}
	return connect_pair(pair, options);
}

void kv_pair_destroy(struct kv_pair *pair)
{
	int i;

	if (!pair)
		return;
	for (i = 0; i < KV_SIDES; i++) {
		if (!pair->side[i].kv)
			continue;
		kv_eq(pair->kv, pair->side[i].wrong_context, 0);
		free_side(&pair->side[i]);
	}
	if (!IS_ERR_OR_NULL(pair->srq))
		ib_destroy_srq(pair->srq);
	if (!IS_ERR_OR_NULL(pair->pd))
		ib_dealloc_pd(pair->pd);
	vfree(pair);
}

struct kv_pair *kv_pair_create(struct kv *kv, const struct kv_options *options)
{
	struct kv_options o = *options;
	struct kv_pair *pair;
	int err;

	o.type = o.type ?: IB_QPT_RC;
	o.depth = o.depth ?: 64;
	pair = vzalloc(sizeof(*pair));
	if (!pair) {
		kv_fail(kv, "no memory for a pair");
		return NULL;
	}
	pair->kv = kv;
	err = init_pair(pair, &o);
	if (!err)
		return pair;
	kv_fail(kv, "no pair: %d", err);
	kv_pair_destroy(pair);
	return NULL;
}
