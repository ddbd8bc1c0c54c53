// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shared receive queues of kernel consumers. */
#include "kverbs.h"

static atomic_t limit_events;

static void srq_event(struct ib_event *event, void *context)
{
	if (event->event == IB_EVENT_SRQ_LIMIT_REACHED)
		atomic_inc(&limit_events);
}

static struct ib_srq *create(struct kv *kv, struct ib_pd *pd)
{
	struct ib_srq_init_attr init = {
		.event_handler = srq_event,
		.attr = { .max_wr = 32, .max_sge = 2 },
		.srq_type = IB_SRQT_BASIC,
	};

	atomic_set(&limit_events, 0);
	return ib_create_srq(pd, &init);
}

static int post(struct kv_pair *pair, u32 id, u32 num_sge)
{
	struct kv_side *b = &pair->side[KV_B];
	struct ib_sge sge[KV_SGES];
	struct ib_recv_wr wr;
	u32 i;

	kv_recv_init(b, &wr, sge, id, id * 64, 64);
	for (i = 1; i < num_sge && i < KV_SGES; i++)
		sge[i] = sge[0];
	wr.num_sge = num_sge;
	return ib_post_srq_recv(pair->srq, &wr, NULL);
}

static void send(struct kv_pair *pair, u32 id)
{
	struct kv_side *a = &pair->side[KV_A], *b = &pair->side[KV_B];
	struct ib_wc wc;
	struct kv_wr w;

	kv_fill(a, 0, 64, id);
	kv_wr_init(a, &w, 1, IB_WR_SEND, 0, 64);
	kv_do(a, &w, IB_WC_SEND);
	if (!kv_expect(b, &wc, id, 0, IB_WC_RECV))
		return;
	kv_eq(pair->kv, wc.byte_len, 64);
	kv_same(b, id * 64, a, 0, 64);
}

static void run_posts(struct kv *kv)
{
	struct kv_options options = { .srq = create };
	struct kv_pair *pair = kv_pair_create(kv, &options);
	struct ib_srq_attr attr = { .srq_limit = 10 };
	u32 i, n;

	if (!pair)
		return;
	if (!kv_eq(kv, ib_query_srq(pair->srq, &attr), 0))
		goto out;
	n = attr.max_wr;
	kv_ok(kv, n >= 32 && n <= 128 && attr.max_sge >= 2 && !attr.srq_limit);
	/* the QP has no queue of its own */
	kv_eq(kv, kv_recv(&pair->side[KV_B], 0, 0, 64), -EINVAL);
	kv_eq(kv, post(pair, 0, attr.max_sge + 1), -EINVAL);
	for (i = 0; i < n; i++)
		kv_eq(kv, post(pair, i, 1), 0);
	kv_eq(kv, post(pair, n, 1), -ENOMEM);

	/* a limit that is crossed tells once */
	attr.srq_limit = 10;
	kv_eq(kv, ib_modify_srq(pair->srq, &attr, IB_SRQ_LIMIT), 0);
	for (i = 0; i < n; i++) {
		kv_eq(kv, atomic_read(&limit_events), i > n - 10);
		send(pair, i);
	}
	kv_eq(kv, atomic_read(&limit_events), 1);
	kv_eq(kv, ib_query_srq(pair->srq, &attr), 0);
	kv_eq(kv, attr.srq_limit, 0);
	/* room again */
	kv_eq(kv, post(pair, 3, 2), 0);
	send(pair, 3);
	kv_eq(kv, ib_modify_srq(pair->srq, &attr, IB_SRQ_MAX_WR), -EOPNOTSUPP);
out:
	kv_pair_destroy(pair);
}

/* A QP in error takes nothing more from it, and says so; the requests stay */
static void run_last(struct kv *kv)
{
	struct kv_options options = { .srq = create };
	struct kv_pair *pair = kv_pair_create(kv, &options);
	struct kv_side *a, *b;

	if (!pair)
		return;
	a = &pair->side[KV_A];
	b = &pair->side[KV_B];
	kv_eq(kv, post(pair, 1, 1), 0);
	kv_eq(kv, post(pair, 2, 1), 0);
	send(pair, 1);
	kv_eq(kv, kv_modify(b, IB_QPS_ERR), 0);
	wait_event_timeout(b->wait, test_bit(IB_EVENT_QP_LAST_WQE_REACHED, &b->qp_events),
			   kv_patience(kv));
	kv_ok(kv, test_bit(IB_EVENT_QP_LAST_WQE_REACHED, &b->qp_events));
	kv_expect_none(b);

	/* it is still there for who comes next */
	kv_eq(kv, kv_modify(a, IB_QPS_RESET), 0);
	kv_eq(kv, kv_modify(b, IB_QPS_RESET), 0);
	kv_eq(kv, kv_connect(a), 0);
	kv_eq(kv, kv_connect(b), 0);
	send(pair, 2);
	kv_pair_destroy(pair);
}

const struct kv_case kv_srq[] = {
	{ "srq.posts", run_posts },
	{ "srq.last", run_last },
	{}
};
