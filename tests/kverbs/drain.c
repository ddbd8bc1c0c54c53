// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ib_drain_qp() and its parts under traffic; objects that go in any order. */
#include "kverbs.h"

static const int polls[] = {
	IB_POLL_SOFTIRQ, IB_POLL_WORKQUEUE, IB_POLL_UNBOUND_WORKQUEUE, IB_POLL_DIRECT,
};

/* When a drain is over, all that was posted has completed, and not later. */
static void drain(struct kv_traffic *traffic, struct kv_side *side, bool parts)
{
	kv_traffic_stop(traffic, side);
	if (parts) {
		ib_drain_rq(side->qp);
		ib_drain_sq(side->qp);
	} else {
		ib_drain_qp(side->qp);
	}
	kv_eq(side->kv, kv_traffic_missing(traffic, side), 0);
	/* again, when there is nothing to wait for */
	ib_drain_qp(side->qp);
}

static void drain_one(struct kv *kv, int poll, bool b_first, bool parts)
{
	struct kv_options options = { .poll = { poll, poll } };
	struct kv_pair *pair = kv_pair_create(kv, &options);
	struct kv_traffic *traffic;

	if (!pair)
		return;
	traffic = kv_traffic_start(pair);
	if (traffic) {
		kv_traffic_wait(traffic, 50);
		drain(traffic, &pair->side[b_first ? KV_B : KV_A], parts);
		drain(traffic, &pair->side[b_first ? KV_A : KV_B], parts);
	}
	kv_pair_destroy(pair);
	if (traffic)
		kv_traffic_end(traffic, false);
}

static void run_drain(struct kv *kv)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(polls); i++) {
		drain_one(kv, polls[i], false, false);
		drain_one(kv, polls[i], true, true);
	}
}

/*
 * Destroyed in the midst of it, without a drain; with @keys_first the memory goes
 * away under the requests.
 */
static void destroy_one(struct kv *kv, int poll, bool b_first, bool keys_first)
{
	struct kv_options options = { .poll = { poll, poll } };
	struct kv_pair *pair = kv_pair_create(kv, &options);
	struct kv_side *first, *second;
	struct kv_traffic *traffic;

	if (!pair)
		return;
	traffic = kv_traffic_start(pair);
	if (traffic) {
		kv_traffic_wait(traffic, 20);
		first = &pair->side[b_first ? KV_B : KV_A];
		second = first->peer;
		kv_traffic_stop(traffic, first);
		if (keys_first) {
			kv_traffic_stop(traffic, second);
			kv_side_free_mr(&pair->side[KV_B]);
		}
		kv_side_free_qp(first);
		kv_traffic_stop(traffic, second);
		kv_side_free_qp(second);
	}
	kv_pair_destroy(pair);
	if (traffic)
		kv_traffic_end(traffic, keys_first);
}

static void run_destroy(struct kv *kv)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(polls); i++) {
		destroy_one(kv, polls[i], false, i % 2);
		destroy_one(kv, polls[i], true, !(i % 2));
	}
}

/* RESET forgets what is under way, and the QP can be used again */
static void run_reset(struct kv *kv)
{
	struct kv_options options = { .poll = { IB_POLL_WORKQUEUE } };
	struct kv_pair *pair = kv_pair_create(kv, &options);
	struct kv_traffic *traffic;
	struct kv_side *a, *b;
	struct kv_wr w;

	if (!pair)
		return;
	a = &pair->side[KV_A];
	b = &pair->side[KV_B];
	traffic = kv_traffic_start(pair);
	if (!traffic)
		goto out;
	kv_traffic_wait(traffic, 50);
	kv_traffic_stop(traffic, a);
	kv_traffic_stop(traffic, b);
	kv_eq(kv, kv_modify(a, IB_QPS_RESET), 0);
	kv_eq(kv, kv_modify(b, IB_QPS_RESET), 0);
	kv_eq(kv, kv_connect(a), 0);
	kv_eq(kv, kv_connect(b), 0);
	kv_fill(a, 0, 10000, 77);
	kv_wr_init(a, &w, 1, IB_WR_RDMA_WRITE, 0, 10000);
	kv_do(a, &w, IB_WC_RDMA_WRITE);
	kv_same(b, 0, a, 0, 10000);
out:
	kv_pair_destroy(pair);
	if (traffic)
		kv_traffic_end(traffic, false);
}

const struct kv_case kv_drain[] = {
	{ "drain.qp", run_drain },
	{ "drain.destroy", run_destroy },
	{ "drain.reset", run_reset },
	{}
};
