// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Traffic that is under way when its device goes: the client's remove callback has
 * to end it, as those of other consumers do, with a drain or without, and frees
 * its objects in this order or that.
 */
#include <linux/list.h>
#include <linux/slab.h>
#include "kverbs.h"

struct removal {
	struct list_head node;
	int number;
	struct kv_pair *pair;
	struct kv_traffic *traffic;
};

#define PAIRS	6	/* each way of polling, ended in two ways */

int kv_removal_start(struct kv *kv, struct list_head *list)
{
	int i;

	for (i = 0; i < PAIRS; i++) {
		int poll = IB_POLL_SOFTIRQ + i % 3;
		struct kv_options options = { .poll = { poll, poll } };
		struct removal *r = kzalloc(sizeof(*r), GFP_KERNEL);

		if (!r)
			return -ENOMEM;
		r->number = i;
		r->pair = kv_pair_create(kv, &options);
		r->traffic = r->pair ? kv_traffic_start(r->pair) : NULL;
		if (!r->traffic) {
			kv_pair_destroy(r->pair);
			kfree(r);
			return -EIO;
		}
		list_add_tail(&r->node, list);
		kv_traffic_wait(r->traffic, 20);
		kv_verdict(kv, "removal: traffic");
	}
	return 0;
}

static void end_drained(struct removal *r)
{
	int i, s;

	for (i = 0; i < KV_SIDES; i++) {
		struct kv_side *side;

		s = r->number & 1 ? !i : i;
		side = &r->pair->side[s];
		kv_traffic_stop(r->traffic, side);
		ib_drain_qp(side->qp);
		kv_eq(side->kv, kv_traffic_missing(r->traffic, side), 0);
	}
}

static void end_abruptly(struct removal *r)
{
	struct kv_side *first = &r->pair->side[r->number & 1];

	kv_traffic_stop(r->traffic, first);
	kv_side_free_qp(first);
	kv_traffic_stop(r->traffic, first->peer);
	kv_side_free_mr(first->peer);
	kv_side_free_qp(first->peer);
}

void kv_removal_end(struct list_head *list)
{
	struct removal *r, *next;
	struct kv *kv;

	list_for_each_entry_safe(r, next, list, node) {
		bool drained = r->number < PAIRS / 2;

		kv = r->pair->kv;
		if (drained)
			end_drained(r);
		else
			end_abruptly(r);
		kv_note("pair %d: %u messages", r->number,
			kv_traffic_messages(r->traffic));
		kv_pair_destroy(r->pair);
		/* the other end may have gone first, or the way to it */
		kv_traffic_end(r->traffic, true);
		kv_verdict(kv, drained ? "removal: drained" : "removal: destroyed");
		list_del(&r->node);
		kfree(r);
	}
}
