// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* CQs of the core's kinds, and plain ones that are armed by hand. */
#include <linux/delay.h>
#include <linux/kthread.h>
#include "kverbs.h"

static void messages(struct kv_pair *pair, u32 n)
{
	struct kv_side *a = &pair->side[KV_A], *b = &pair->side[KV_B];
	struct kv_wr w;
	u32 i;

	for (i = 0; i < n; i++) {
		kv_eq(pair->kv, kv_recv(b, 100 + i, i * 8, 8), 0);
		kv_wr_init(a, &w, i, IB_WR_SEND, i * 8, 8);
		kv_eq(pair->kv, kv_post(a, &w), 0);
	}
	for (i = 0; i < n; i++) {
		kv_expect(a, NULL, i, 0, IB_WC_SEND);
		kv_expect(b, NULL, 100 + i, 0, IB_WC_RECV);
	}
}

/* Completions come where they are to (scene.c looks), in order, all of them */
static void run_kinds(struct kv *kv)
{
	static const int polls[] = {
		IB_POLL_DIRECT, IB_POLL_SOFTIRQ, IB_POLL_WORKQUEUE,
		IB_POLL_UNBOUND_WORKQUEUE, KV_POLL_PLAIN,
	};
	struct kv_traffic *traffic;
	struct kv_pair *pair;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(polls); i++) {
		struct kv_options options = {
			.poll = { polls[i], polls[(i + 1) % ARRAY_SIZE(polls)] },
		};

		pair = kv_pair_create(kv, &options);
		if (!pair)
			return;
		for (j = 0; j < 4; j++)
			messages(pair, 30);
		kv_expect_none(&pair->side[KV_A]);
		kv_expect_none(&pair->side[KV_B]);
		traffic = kv_traffic_start(pair);
		if (traffic) {
			kv_traffic_wait(traffic, 200);
			kv_traffic_stop(traffic, &pair->side[KV_A]);
			kv_traffic_stop(traffic, &pair->side[KV_B]);
		}
		kv_pair_destroy(pair);
		if (traffic)
			kv_traffic_end(traffic, false);
	}
}

static bool wait_events(struct kv_side *side, int n)
{
	wait_event_timeout(side->wait, atomic_read(&side->cq_events) >= n,
			   kv_patience(side->kv));
	return atomic_read(&side->cq_events) == n;
}

static void send_flags(struct kv_pair *pair, int flags)
{
	struct kv_side *a = &pair->side[KV_A], *b = &pair->side[KV_B];
	struct kv_wr w;

	kv_eq(pair->kv, kv_recv(b, 100, 0, 8), 0);
	kv_wr_init(a, &w, 1, IB_WR_SEND, 0, 8);
	w.wr.send_flags |= flags;
	kv_do(a, &w, IB_WC_SEND);
}

static struct kv_pair *plain_pair(struct kv *kv)
{
	return kv_pair_create(kv, &(struct kv_options) {
		.poll = { KV_POLL_PLAIN, KV_POLL_PLAIN } });
}

#define ARM		(IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS)
#define ARM_SOLICITED	(IB_CQ_SOLICITED | IB_CQ_REPORT_MISSED_EVENTS)

static void run_notify(struct kv *kv)
{
	struct kv_pair *pair = plain_pair(kv);
	struct kv_side *b;

	if (!pair)
		return;
	b = &pair->side[KV_B];
	atomic_set(&b->cq_events, 0);	/* of the registration */

	/* not armed: none */
	send_flags(pair, 0);
	kv_expect(b, NULL, 100, 0, IB_WC_RECV);
	kv_eq(kv, atomic_read(&b->cq_events), 0);

	/* armed: one, and no more */
	kv_eq(kv, ib_req_notify_cq(b->cq, ARM), 0);
	send_flags(pair, 0);
	kv_ok(kv, wait_events(b, 1));
	kv_expect(b, NULL, 100, 0, IB_WC_RECV);
	send_flags(pair, 0);
	kv_expect(b, NULL, 100, 0, IB_WC_RECV);
	kv_eq(kv, atomic_read(&b->cq_events), 1);

	/* armed twice: one */
	kv_eq(kv, ib_req_notify_cq(b->cq, ARM), 0);
	kv_eq(kv, ib_req_notify_cq(b->cq, ARM), 0);
	send_flags(pair, 0);
	kv_ok(kv, wait_events(b, 2));
	/* unpolled: the arming says so; when it was not asked to, it does not */
	kv_ok(kv, ib_req_notify_cq(b->cq, ARM) > 0);
	kv_eq(kv, ib_req_notify_cq(b->cq, IB_CQ_NEXT_COMP), 0);
	kv_eq(kv, atomic_read(&b->cq_events), 2);
	kv_expect(b, NULL, 100, 0, IB_WC_RECV);
	send_flags(pair, 0);
	kv_ok(kv, wait_events(b, 3));
	kv_expect(b, NULL, 100, 0, IB_WC_RECV);
	kv_pair_destroy(pair);
}

static void run_solicited(struct kv *kv)
{
	struct kv_pair *pair = plain_pair(kv);
	struct kv_side *a, *b;
	struct kv_wr w;

	if (!pair)
		return;
	a = &pair->side[KV_A];
	b = &pair->side[KV_B];
	atomic_set(&b->cq_events, 0);
	kv_eq(kv, ib_req_notify_cq(b->cq, ARM_SOLICITED), 0);
	send_flags(pair, 0);
	kv_expect(b, NULL, 100, 0, IB_WC_RECV);
	send_flags(pair, 0);
	kv_expect(b, NULL, 100, 0, IB_WC_RECV);
	kv_eq(kv, atomic_read(&b->cq_events), 0);
	send_flags(pair, IB_SEND_SOLICITED);
	kv_ok(kv, wait_events(b, 1));
	kv_expect(b, NULL, 100, 0, IB_WC_RECV);

	/* a WRITE with immediate is solicited, too, when it says so */
	kv_eq(kv, ib_req_notify_cq(b->cq, ARM_SOLICITED), 0);
	kv_eq(kv, kv_recv(b, 101, 0, 8), 0);
	kv_wr_init(a, &w, 1, IB_WR_RDMA_WRITE_WITH_IMM, 0, 8);
	w.wr.send_flags |= IB_SEND_SOLICITED;
	kv_do(a, &w, IB_WC_RDMA_WRITE);
	kv_ok(kv, wait_events(b, 2));
	kv_expect(b, NULL, 101, 0, IB_WC_RECV_RDMA_WITH_IMM);

	/* armed for all stays so when asked for less */
	kv_eq(kv, ib_req_notify_cq(b->cq, ARM), 0);
	kv_eq(kv, ib_req_notify_cq(b->cq, ARM_SOLICITED), 0);
	send_flags(pair, 0);
	kv_ok(kv, wait_events(b, 3));
	kv_expect(b, NULL, 100, 0, IB_WC_RECV);

	/* an error is solicited always */
	kv_eq(kv, ib_req_notify_cq(b->cq, ARM_SOLICITED), 0);
	kv_eq(kv, kv_recv(b, 102, 0, 8), 0);
	kv_eq(kv, kv_modify(b, IB_QPS_ERR), 0);
	kv_ok(kv, wait_events(b, 4));
	kv_expect(b, NULL, 102, IB_WC_WR_FLUSH_ERR, 0);
	kv_pair_destroy(pair);
}

/* ---- wake-ups ---- */

#define WAKEUPS	200

static int sender(void *data)
{
	struct kv_pair *pair = data;
	struct kv_side *a = &pair->side[KV_A];
	int i, err = 0;
	struct kv_wr w;

	for (i = 0; i < WAKEUPS && !err; i++) {
		kv_wr_init(a, &w, 1, IB_WR_SEND, 0, 8);
		w.wr.send_flags = i % 32 == 31 ? IB_SEND_SIGNALED : 0;
		/* a full queue empties itself; B's receives may be late */
		while ((err = kv_post(a, &w)) == -ENOMEM && !kthread_should_stop())
			usleep_range(20, 50);
		kv_poll(a);
		if (i % 7 == 0)
			usleep_range(20, 200);
	}
	while (!kthread_should_stop())
		usleep_range(100, 200);
	return err;
}

/* Polled until empty, armed, polled again if something was missed, slept: nothing is lost */
static void run_wakeups(struct kv *kv)
{
	struct kv_pair *pair = plain_pair(kv);
	struct task_struct *task;
	u32 got = 0, slept = 0;
	struct kv_side *b;
	int i, events;

	if (!pair)
		return;
	b = &pair->side[KV_B];
	for (i = 0; i < 32; i++)
		kv_eq(kv, kv_recv(b, i, 0, 8), 0);
	task = kthread_run(sender, pair, "kverbs");
	if (!kv_ok(kv, !IS_ERR(task)))
		goto out;
	while (got < WAKEUPS) {
		events = atomic_read(&b->cq_events);
		kv_poll(b);
		for (; b->seen != b->logged; got++) {
			kv_expect(b, NULL, got % 32, 0, IB_WC_RECV);
			kv_eq(kv, kv_recv(b, got % 32, 0, 8), 0);
		}
		if (got == WAKEUPS || ib_req_notify_cq(b->cq, ARM) > 0)
			continue;
		slept++;
		if (!wait_event_timeout(b->wait, atomic_read(&b->cq_events) != events,
					kv_patience(kv))) {
			kv_fail(kv, "slept after %u of %u", got, WAKEUPS);
			break;
		}
	}
	kv_ok(kv, slept);
	kv_eq(kv, kthread_stop(task), 0);
out:
	kv_pair_destroy(pair);
}

const struct kv_case kv_cqs[] = {
	{ "cqs.kinds", run_kinds },
	{ "cqs.notify", run_notify },
	{ "cqs.solicited", run_solicited },
	{ "cqs.wakeups", run_wakeups },
	{}
};
