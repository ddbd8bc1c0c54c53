/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tests of the verbs as kernel consumers call them; see README.md. Knows the
 * RDMA core's interface only, nothing of a device.
 */
#ifndef KVERBS_H
#define KVERBS_H

#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>

/* ---- a run and what it says (main.c) ---- */

struct kv {
	struct ib_device *dev;
	u32 gid_index;
	u32 gid6_index;		/* 0: none */
	unsigned int failed;	/* checks of the case that runs */
	bool lost;		/* one of them was a completion that did not come */
};

struct kv_case {
	const char *name;
	void (*run)(struct kv *kv);
};

/* A check of the case that runs has failed. Process context. */
__printf(2, 3) void kv_fail(struct kv *kv, const char *format, ...);
/* A line beside the results */
__printf(1, 2) void kv_note(const char *format, ...);
/* The verdict of a case that is over */
void kv_verdict(struct kv *kv, const char *name);

bool kv_is_true(struct kv *kv, bool cond, const char *where, int line,
		const char *what);
bool kv_is_equal(struct kv *kv, s64 got, s64 want, const char *where, int line,
		 const char *what);

/* Checks: true when it holds, else a failure that says what and where */
#define kv_ok(kv, cond) kv_is_true(kv, cond, __func__, __LINE__, #cond)
#define kv_eq(kv, got, want) \
	kv_is_equal(kv, got, want, __func__, __LINE__, #got)

/*
 * Jiffies after which a completion is given up: ends what hangs only, and after
 * one that was lost in vain the case is not waited for much longer.
 */
unsigned long kv_patience(const struct kv *kv);

extern const struct kv_case kv_ops[], kv_cqs[], kv_frwr[], kv_keys[], kv_queues[],
	kv_drain[], kv_ud[], kv_srq[];

/* ---- two QPs and their memory (scene.c) ---- */

#define KV_BUF		(64 * 1024)	/* bytes of a side's memory */
#define KV_IDS		512		/* work requests that can be told apart */
#define KV_LOG		1024		/* completions not looked at */
#define KV_SGES		4
#define KV_ALL_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)

enum { KV_A, KV_B, KV_SIDES };

/* Beside enum ib_poll_context: a CQ of ib_create_cq(), polled by the test */
#define KV_POLL_PLAIN	100

struct kv_side;

/* A work request's number is the place of its ib_cqe in an array */
struct kv_cqe {
	struct ib_cqe cqe;
	struct kv_side *side;
};

struct kv_side {
	struct kv *kv;
	struct kv_side *peer;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	int poll;		/* how the CQ is polled */
	struct ib_qp_cap cap;	/* what the QP has got */
	u8 *buf;
	u64 dma;
	struct ib_mr *mr;	/* all of buf, for the peer */
	struct kv_cqe id[KV_IDS];

	spinlock_t lock;	/* of the log */
	wait_queue_head_t wait;
	struct ib_wc log[KV_LOG];
	u32 logged, seen;
	u32 wrong_context;	/* completions that came where they should not */

	atomic_t cq_events;	/* KV_POLL_PLAIN: calls of the handler */
	unsigned long qp_events;	/* bits: enum ib_event_type */
};

struct kv_options {
	enum ib_qp_type type;	/* 0 is IB_QPT_SMI: taken for RC */
	int poll[KV_SIDES];	/* 0 is IB_POLL_SOFTIRQ */
	u32 depth;		/* of all queues; 0: 64 */
	u32 inline_data;
	bool all_signalled;
	bool no_mr;		/* the test registers itself */
	bool in_reset;		/* the test connects itself */
	struct ib_srq *(*srq)(struct kv *kv, struct ib_pd *pd);	/* of side B */
	struct ib_pd *pd;	/* of side A; NULL: B's */
};

struct kv_pair {
	struct kv *kv;
	struct ib_pd *pd;
	struct ib_srq *srq;
	struct kv_side side[KV_SIDES];
};

/* NULL: it has failed, and that is noted */
struct kv_pair *kv_pair_create(struct kv *kv, const struct kv_options *options);
void kv_pair_destroy(struct kv_pair *pair);
/* Its parts, for tests of the order in which they go; each may be gone already */
void kv_side_free_mr(struct kv_side *side);
void kv_side_free_qp(struct kv_side *side);

/* RESET to RTS. 0 or an error */
int kv_connect(struct kv_side *side);
int kv_modify(struct kv_side *side, enum ib_qp_state state);
/* The attributes of the way to this device itself, as that of a GID index */
void kv_ah_attr(struct kv *kv, u32 gid_index, struct rdma_ah_attr *attr);

/* ---- posting and completions (wait.c) ---- */

struct kv_wr {
	union {
		struct ib_send_wr wr;	/* first in all of them */
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
		struct ib_reg_wr reg;
		struct ib_ud_wr ud;
	};
	struct ib_sge sge[KV_SGES];
};

/*
 * A signalled work request @id: @len bytes at @offset of the own memory, the
 * same of the peer's if the operation has an address there.
 */
void kv_wr_init(struct kv_side *side, struct kv_wr *w, u32 id,
		enum ib_wr_opcode opcode, u32 offset, u32 len);
int kv_post(struct kv_side *side, const struct kv_wr *w);
int kv_recv(struct kv_side *side, u32 id, u32 offset, u32 len);
struct ib_recv_wr *kv_recv_init(struct kv_side *side, struct ib_recv_wr *wr,
				struct ib_sge *sge, u32 id, u32 offset, u32 len);

/* What drives the log: for all CQs; ib_cqe.done and who polls KV_POLL_PLAIN */
void kv_done(struct ib_cq *cq, struct ib_wc *wc);
int kv_poll(struct kv_side *side);

/* The next completion; false: none came, and that is noted */
bool kv_wc(struct kv_side *side, struct ib_wc *wc);
u32 kv_wc_id(const struct kv_side *side, const struct ib_wc *wc);
/* The next completion is of @id, with that status, and that opcode if it is success */
bool kv_expect(struct kv_side *side, struct ib_wc *wc, u32 id,
	       enum ib_wc_status status, enum ib_wc_opcode opcode);
/* There is no other completion by now */
void kv_expect_none(struct kv_side *side);

/* Post and expect success; or an error after which the QP is lost */
bool kv_do(struct kv_side *side, struct kv_wr *w, enum ib_wc_opcode opcode);
bool kv_do_fail(struct kv_side *side, struct kv_wr *w, enum ib_wc_status status);

/* Bytes that tell where they are from; are those two ranges alike? */
void kv_fill(struct kv_side *side, u32 offset, u32 len, u8 seed);
bool kv_same(struct kv_side *to, u32 to_offset, struct kv_side *from,
	     u32 from_offset, u32 len);

/* ---- fast registration (frwr.c) ---- */

/* Post IB_WR_REG_MR with the region's own key, expect @status */
bool kv_reg(struct kv_side *side, struct ib_mr *mr, int access,
	    enum ib_wc_status status);
bool kv_local_inv(struct kv_side *side, u32 key, enum ib_wc_status status);
/* Map @len bytes at @offset of the side's memory, register them */
bool kv_reg_buf(struct kv_side *side, struct ib_mr *mr, u32 offset, u32 len,
		int access);
/* A region for @pages pages; NULL is noted */
struct ib_mr *kv_mr_alloc(struct kv *kv, struct ib_pd *pd, u32 pages);

/* ---- traffic that goes on by itself (traffic.c) ---- */

struct kv_traffic;

struct kv_traffic *kv_traffic_start(struct kv_pair *pair);
/* No more posts; what has been posted goes on */
void kv_traffic_stop(struct kv_traffic *traffic, struct kv_side *side);
/* Until so many messages have arrived at B */
bool kv_traffic_wait(struct kv_traffic *traffic, u32 messages);
/* Requests of a side that have no completion, send and receive */
u32 kv_traffic_missing(struct kv_traffic *traffic, struct kv_side *side);
u32 kv_traffic_messages(struct kv_traffic *traffic);	/* of A's that are done */
/*
 * When the CQs are gone: one that is polled elsewhere may have a completion in
 * hand still. @may_fail: requests might have done so.
 */
void kv_traffic_end(struct kv_traffic *traffic, bool may_fail);

/* ---- devices that go (removal.c) ---- */

/* A device's traffic; @list is main.c's, under its mutex */
int kv_removal_start(struct kv *kv, struct list_head *list);
void kv_removal_end(struct list_head *list);

#endif
