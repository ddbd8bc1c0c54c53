// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages that keep themselves going: each completion posts its request again,
 * from wherever the CQ is polled. A sends, writes and reads; B receives.
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include "kverbs.h"

#define WINDOW	16	/* requests of a side */
#define BYTES	3000	/* of a message: three packets */

struct half;

struct slot {
	struct ib_cqe cqe;
	struct half *half;
	u32 index;
	u32 turn;
};

/* A's sends, or B's receives */
struct half {
	struct kv_side *side;
	bool sends;
	spinlock_t lock;	/* of what follows: nothing is posted once stopped */
	bool stopped;
	u32 posted, completed, messages;
	u32 refused;		/* could not be posted */
	u32 failed;		/* neither success nor flushed */
	struct slot slot[WINDOW];
};

struct kv_traffic {
	struct kv *kv;
	struct half half[KV_SIDES];
};

static int post_send(struct half *half, struct slot *slot)
{
	static const enum ib_wr_opcode opcodes[] = {
		IB_WR_SEND, IB_WR_RDMA_WRITE, IB_WR_RDMA_READ, IB_WR_SEND_WITH_IMM,
	};
	struct kv_wr w;

	kv_wr_init(half->side, &w, 0, opcodes[slot->turn++ % ARRAY_SIZE(opcodes)],
		   slot->index * BYTES, BYTES);
	w.wr.wr_cqe = &slot->cqe;
	return kv_post(half->side, &w);
}

static int post_recv(struct half *half, struct slot *slot)
{
	struct ib_recv_wr wr;
	struct ib_sge sge;

	kv_recv_init(half->side, &wr, &sge, 0, slot->index * BYTES, BYTES);
	wr.wr_cqe = &slot->cqe;
	return ib_post_recv(half->side->qp, &wr, NULL);
}

static void post(struct half *half, struct slot *slot)
{
	lockdep_assert_held(&half->lock);

	if (half->sends ? post_send(half, slot) : post_recv(half, slot))
		half->refused++;
	else
		half->posted++;
}

static void done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct slot *slot = container_of(wc->wr_cqe, struct slot, cqe);
	struct half *half = slot->half;
	unsigned long flags;

	spin_lock_irqsave(&half->lock, flags);
	half->completed++;
	if (wc->status == IB_WC_SUCCESS)
		half->messages++;
	else if (wc->status != IB_WC_WR_FLUSH_ERR)
		half->failed++;
	if (wc->status == IB_WC_SUCCESS && !half->stopped)
		post(half, slot);
	spin_unlock_irqrestore(&half->lock, flags);
}

static struct half *half_of(struct kv_traffic *traffic, struct kv_side *side)
{
	return &traffic->half[side == traffic->half[KV_B].side];
}

struct kv_traffic *kv_traffic_start(struct kv_pair *pair)
{
	struct kv_traffic *traffic = kzalloc(sizeof(*traffic), GFP_KERNEL);
	unsigned long flags;
	int s, i;

	if (!traffic) {
		kv_fail(pair->kv, "no memory for traffic");
		return NULL;
	}
	traffic->kv = pair->kv;
	for (s = KV_A; s < KV_SIDES; s++) {
		struct half *half = &traffic->half[s];

		half->side = &pair->side[s];
		half->sends = s == KV_A;
		spin_lock_init(&half->lock);
	}
	/* B's receives first */
	for (s = KV_B; s >= KV_A; s--) {
		struct half *half = &traffic->half[s];

		for (i = 0; i < WINDOW; i++) {
			half->slot[i] = (struct slot) {
				.cqe.done = done, .half = half,
				.index = i, .turn = i,
			};
			spin_lock_irqsave(&half->lock, flags);
			post(half, &half->slot[i]);
			spin_unlock_irqrestore(&half->lock, flags);
		}
	}
	return traffic;
}

void kv_traffic_stop(struct kv_traffic *traffic, struct kv_side *side)
{
	struct half *half = half_of(traffic, side);
	unsigned long flags;

	spin_lock_irqsave(&half->lock, flags);
	half->stopped = true;
	spin_unlock_irqrestore(&half->lock, flags);
}

bool kv_traffic_wait(struct kv_traffic *traffic, u32 messages)
{
	struct half *b = &traffic->half[KV_B];
	unsigned long end = jiffies + kv_patience(traffic->kv);

	while (READ_ONCE(b->messages) < messages) {
		kv_poll(b->side);
		kv_poll(b->side->peer);
		if (time_after(jiffies, end)) {
			traffic->kv->lost = true;
			kv_fail(traffic->kv, "%u messages, not %u", b->messages,
				messages);
			return false;
		}
		usleep_range(50, 200);
	}
	return true;
}

u32 kv_traffic_missing(struct kv_traffic *traffic, struct kv_side *side)
{
	struct half *half = half_of(traffic, side);

	return READ_ONCE(half->posted) - READ_ONCE(half->completed);
}

u32 kv_traffic_messages(struct kv_traffic *traffic)
{
	return READ_ONCE(traffic->half[KV_A].messages);
}

void kv_traffic_end(struct kv_traffic *traffic, bool may_fail)
{
	int s;

	for (s = KV_A; s < KV_SIDES; s++) {
		kv_eq(traffic->kv, traffic->half[s].refused, 0);
		if (!may_fail)
			kv_eq(traffic->kv, traffic->half[s].failed, 0);
	}
	kfree(traffic);
}
