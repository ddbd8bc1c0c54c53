// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What posting refuses, and from where it can be done. */
#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/smp.h>
#include "kverbs.h"

static int post_send_8(struct kv_side *side, u32 id)
{
	struct kv_wr w;

	kv_wr_init(side, &w, id, IB_WR_SEND, 0, 8);
	return kv_post(side, &w);
}

static void run_states(struct kv *kv)
{
	struct kv_pair *pair = kv_pair_create(kv, &(struct kv_options) { .in_reset = true });
	struct kv_side *a, *b;

	if (!pair)
		return;
	a = &pair->side[KV_A];
	b = &pair->side[KV_B];
	kv_eq(kv, post_send_8(a, 1), -EINVAL);
	kv_eq(kv, kv_recv(a, 2, 0, 8), -EINVAL);
	kv_eq(kv, kv_connect(a), 0);
	kv_eq(kv, kv_connect(b), 0);
	kv_eq(kv, kv_recv(b, 3, 0, 8), 0);
	kv_eq(kv, post_send_8(a, 4), 0);
	kv_expect(a, NULL, 4, 0, IB_WC_SEND);
	kv_expect(b, NULL, 3, 0, IB_WC_RECV);

	/* ERR: what is there is flushed, and so is what comes */
	kv_eq(kv, kv_recv(b, 5, 0, 8), 0);
	kv_eq(kv, kv_modify(b, IB_QPS_ERR), 0);
	kv_expect(b, NULL, 5, IB_WC_WR_FLUSH_ERR, 0);
	kv_eq(kv, kv_recv(b, 6, 0, 8), 0);
	kv_expect(b, NULL, 6, IB_WC_WR_FLUSH_ERR, 0);
	kv_eq(kv, post_send_8(b, 7), 0);
	kv_expect(b, NULL, 7, IB_WC_WR_FLUSH_ERR, 0);

	/* RESET: nothing again, and nothing is left */
	kv_eq(kv, kv_recv(a, 8, 0, 8), 0);
	kv_eq(kv, kv_modify(a, IB_QPS_RESET), 0);
	kv_eq(kv, post_send_8(a, 9), -EINVAL);
	kv_eq(kv, kv_recv(a, 10, 0, 8), -EINVAL);
	kv_expect_none(a);
	kv_expect_none(b);
	kv_pair_destroy(pair);
}

/* Nobody receives: the queue fills up; then somebody does */
static void run_full(struct kv *kv)
{
	struct kv_pair *pair = kv_pair_create(kv, &(struct kv_options) { .depth = 20 });
	struct kv_side *a, *b;
	u32 i, n;

	if (!pair)
		return;
	a = &pair->side[KV_A];
	b = &pair->side[KV_B];
	n = a->cap.max_send_wr;
	if (!kv_ok(kv, n >= 20 && n <= 64))
		goto out;
	for (i = 0; i < n; i++)
		kv_eq(kv, post_send_8(a, i), 0);
	kv_eq(kv, post_send_8(a, n), -ENOMEM);
	kv_expect_none(a);

	for (i = 0; i < n; i++) {
		kv_eq(kv, kv_recv(b, i, 0, 8), 0);
		kv_expect(a, NULL, i, 0, IB_WC_SEND);
		kv_expect(b, NULL, i, 0, IB_WC_RECV);
	}
	/* room again */
	n = b->cap.max_recv_wr;
	for (i = 0; i < n; i++)
		kv_eq(kv, kv_recv(b, i, 0, 8), 0);
	kv_eq(kv, kv_recv(b, n, 0, 8), -ENOMEM);
	for (i = 0; i < n; i++) {
		kv_eq(kv, post_send_8(a, i), 0);
		kv_expect(a, NULL, i, 0, IB_WC_SEND);
		kv_expect(b, NULL, i, 0, IB_WC_RECV);
	}
out:
	kv_pair_destroy(pair);
}

/* Good, bad, good: the first is carried out, the second is named, the third is not */
static void list_of(struct kv_side *a, void (*spoil)(struct kv_side *, struct kv_wr *))
{
	const struct ib_send_wr *bad = NULL;
	struct kv_wr w[3];
	int i;

	for (i = 0; i < 3; i++) {
		kv_wr_init(a, &w[i], i, IB_WR_RDMA_WRITE, 0, 8);
		w[i].wr.next = i < 2 ? &w[i + 1].wr : NULL;
	}
	spoil(a, &w[1]);
	kv_eq(a->kv, ib_post_send(a->qp, &w[0].wr, &bad), -EINVAL);
	kv_ok(a->kv, bad == &w[1].wr);
	kv_expect(a, NULL, 0, 0, IB_WC_RDMA_WRITE);
	/* the QP is as good as before */
	w[2].wr.wr_cqe = &a->id[9].cqe;
	kv_do(a, &w[2], IB_WC_RDMA_WRITE);
	kv_expect_none(a);
}

static void spoil_num_sge(struct kv_side *a, struct kv_wr *w)
{
	static struct ib_sge many[64];

	w->wr.sg_list = many;
	w->wr.num_sge = a->cap.max_send_sge + 1;
}

static void spoil_negative(struct kv_side *a, struct kv_wr *w)
{
	w->wr.num_sge = -1;
}

static void spoil_opcode(struct kv_side *a, struct kv_wr *w)
{
	w->wr.opcode = 0x7f;
}

static void spoil_reserved(struct kv_side *a, struct kv_wr *w)
{
	w->wr.opcode = IB_WR_RESERVED1;
}

static void spoil_integrity(struct kv_side *a, struct kv_wr *w)
{
	w->wr.opcode = IB_WR_REG_MR_INTEGRITY;
}

static void spoil_read_inv(struct kv_side *a, struct kv_wr *w)
{
	w->wr.opcode = IB_WR_RDMA_READ_WITH_INV;
}

static void spoil_lso(struct kv_side *a, struct kv_wr *w)
{
	w->wr.opcode = IB_WR_LSO;
}

static void bad_recv(struct kv_side *b, int num_sge)
{
	static struct ib_sge many[64];
	const struct ib_recv_wr *bad = NULL;
	struct ib_recv_wr good, wrong;
	struct ib_sge sge;

	kv_recv_init(b, &good, &sge, 1, 0, 8);
	good.next = &wrong;
	wrong = (struct ib_recv_wr) {
		.wr_cqe = &b->id[2].cqe, .sg_list = many, .num_sge = num_sge,
	};
	kv_eq(b->kv, ib_post_recv(b->qp, &good, &bad), -EINVAL);
	kv_ok(b->kv, bad == &wrong);
	kv_eq(b->kv, post_send_8(b->peer, 3), 0);
	kv_expect(b->peer, NULL, 3, 0, IB_WC_SEND);
	kv_expect(b, NULL, 1, 0, IB_WC_RECV);
	kv_expect_none(b);
}

static void run_bad(struct kv *kv)
{
	void (*const spoils[])(struct kv_side *, struct kv_wr *) = {
		spoil_num_sge, spoil_negative, spoil_opcode, spoil_reserved,
		spoil_integrity, spoil_read_inv, spoil_lso,
	};
	struct kv_pair *pair = kv_pair_create(kv, &(struct kv_options) {});
	int i;

	if (!pair)
		return;
	for (i = 0; i < ARRAY_SIZE(spoils); i++)
		list_of(&pair->side[KV_A], spoils[i]);
	bad_recv(&pair->side[KV_B], pair->side[KV_B].cap.max_recv_sge + 1);
	bad_recv(&pair->side[KV_B], -1);
	kv_pair_destroy(pair);
}

/* Queues that no device has; kinds of QPs that are not for the kernel */
static void expect_no_qp(struct kv_pair *pair, const struct ib_qp_cap *cap,
			 enum ib_qp_type type, int err)
{
	struct ib_qp_init_attr init = {
		.send_cq = pair->side[KV_A].cq, .recv_cq = pair->side[KV_A].cq,
		.cap = *cap, .qp_type = type,
	};
	struct ib_qp *qp = ib_create_qp(pair->pd, &init);

	if (!kv_eq(pair->kv, PTR_ERR_OR_ZERO(qp), err) && !IS_ERR(qp))
		ib_destroy_qp(qp);
}

static void run_create(struct kv *kv)
{
	struct kv_pair *pair = kv_pair_create(kv, &(struct kv_options) {});
	const struct ib_device_attr *limits = &kv->dev->attrs;
	const struct ib_qp_cap good = { 1, 1, 1, 1, 0 };
	const struct ib_qp_cap bad[] = {
		{ limits->max_qp_wr + 1, 1, 1, 1, 0 },
		{ 1, limits->max_qp_wr + 1, 1, 1, 0 },
		{ 1, 1, limits->max_send_sge + 1, 1, 0 },
		{ 1, 1, 1, limits->max_recv_sge + 1, 0 },
		{ 1, 1, 1, 1, 1 << 20 },
	};
	int i;

	if (!pair)
		return;
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		expect_no_qp(pair, &bad[i], IB_QPT_RC, -EINVAL);
	expect_no_qp(pair, &good, IB_QPT_XRC_INI, -EOPNOTSUPP);
	expect_no_qp(pair, &good, IB_QPT_RAW_PACKET, -EOPNOTSUPP);
	expect_no_qp(pair, &good, IB_QPT_DRIVER, -EOPNOTSUPP);
	kv_pair_destroy(pair);
}

/* ---- contexts ---- */

struct context {
	struct kv_side *a, *b;
	struct tasklet_struct tasklet;
	struct completion done;
	int err;
};

/* Posts at both ends and arms the CQ */
static void post_here(struct context *c)
{
	struct kv_wr w;

	c->err = kv_recv(c->b, 100, 0, 3000);
	kv_wr_init(c->a, &w, 1, IB_WR_SEND, 0, 3000);
	c->err = c->err ?: kv_post(c->a, &w);
	ib_req_notify_cq(c->a->cq, IB_CQ_NEXT_COMP);
}

static void in_tasklet(struct tasklet_struct *tasklet)
{
	struct context *c = from_tasklet(c, tasklet, tasklet);

	post_here(c);
	complete(&c->done);
}

static void in_interrupt_of(void *data)
{
	struct context *c = data;

	post_here(c);
	c->err = c->err ?: irqs_disabled() ? 0 : -EDOM;
}

static void in_lock(struct context *c)
{
	static DEFINE_SPINLOCK(lock);
	unsigned long flags;

	spin_lock_irqsave(&lock, flags);
	post_here(c);
	spin_unlock_irqrestore(&lock, flags);
}

static void check_context(struct context *c, u8 seed)
{
	kv_eq(c->a->kv, c->err, 0);
	kv_expect(c->a, NULL, 1, 0, IB_WC_SEND);
	kv_expect(c->b, NULL, 100, 0, IB_WC_RECV);
	kv_same(c->b, 0, c->a, 0, 3000);
	kv_fill(c->a, 0, 3000, seed);
}

static void run_contexts(struct kv *kv)
{
	struct kv_options options = { .poll = { KV_POLL_PLAIN, KV_POLL_PLAIN } };
	struct kv_pair *pair = kv_pair_create(kv, &options);
	struct context c;
	unsigned int cpu;
	int i;

	if (!pair)
		return;
	c.a = &pair->side[KV_A];
	c.b = &pair->side[KV_B];
	kv_fill(c.a, 0, 3000, 1);
	for (i = 0; i < 20; i++) {
		init_completion(&c.done);
		tasklet_setup(&c.tasklet, in_tasklet);
		tasklet_schedule(&c.tasklet);
		wait_for_completion(&c.done);
		tasklet_kill(&c.tasklet);
		check_context(&c, i);

		in_lock(&c);
		check_context(&c, i + 50);

		/* another CPU's interrupt; where there is none, this one's are off */
		cpu = cpumask_any_but(cpu_online_mask, get_cpu());
		if (cpu >= nr_cpu_ids)
			cpu = smp_processor_id();
		smp_call_function_single(cpu, in_interrupt_of, &c, true);
		put_cpu();
		check_context(&c, i + 100);
	}
	kv_pair_destroy(pair);
}

const struct kv_case kv_queues[] = {
	{ "queues.states", run_states },
	{ "queues.full", run_full },
	{ "queues.bad", run_bad },
	{ "queues.create", run_create },
	{ "queues.contexts", run_contexts },
	{}
};
