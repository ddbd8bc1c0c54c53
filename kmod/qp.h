/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue pairs: memory, states, attributes. No packets here.
 *
 * Who may touch what
 *   A QP has two directions, SEND (requester and completer) and RECV
 *   (responder). Each is run by one owner at a time: whoever sets
 *   UROCE_RUN_OWNED in its work word. Owners run with BH disabled and do not
 *   sleep, except for modify and destroy, which own both directions through
 *   uroce_engine_freeze() and may sleep meanwhile. qp->req and qp->comp are
 *   written by the SEND owner only, qp->resp by the RECV owner only, the
 *   attributes by the owner of both. qp->state may also be set to ERR by the
 *   owner of either direction, and to SQE by the SEND owner.
 *
 * Lifetime
 *   struct ib_qp belongs to the core, which frees it when destroy returns;
 *   struct uroce_qp hangs below it and is freed after a grace period, so that
 *   lookups under RCU are safe. References beside the first one:
 *    - a received packet's, from the lookup to the end of the engine's run;
 *      ends with the softirq;
 *    - a local peer's, while it runs our responder; ends with its run;
 *    - a kick's, from the slot lookup to the end of its run;
 *    - a query's;
 *   Timers, faults and the left-over work hold none: destroy cancels timers
 *   once it has frozen the QP, where nobody can start them; faults and the work
 *   once the last reference has gone. What queues the work without a reference
 *   has ended before: timers and faults, and kernel consumers' posts, which may
 *   not race with destroy.
 *   Transmitted packets know nothing of the QP.
 */
#ifndef UROCE_QP_H
#define UROCE_QP_H

#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>
#include <net/dst_cache.h>
#include <rdma/ib_verbs.h>
#include "copy.h"
#include "cq.h"
#include "device.h"
#include "fault.h"
#include "opcode.h"
#include "pd_ah.h"
#include "ring.h"
#include "srq.h"
#include "swqe.h"
#include "ucontext.h"

#define UROCE_QPN_MIN		16

/* Most packets of a QP that may be unacknowledged */
#define UROCE_WINDOW		128

enum uroce_dir {
	UROCE_SEND,
	UROCE_RECV,
	UROCE_NUM_DIR
};

/* Work words: what a direction's owner has to look at, and the owner bit */
enum {
	UROCE_RUN_OWNED = 1U << 31,
	UROCE_RUN_FREEZE = 1 << 30,	/* no new owner but who set this */
	UROCE_WORK_MASK = UROCE_RUN_FREEZE - 1,

	UROCE_WORK_RX = 1 << 0,		/* packets in the direction's rxq */
	UROCE_WORK_FLUSH = 1 << 1,	/* the QP is in error: empty the queue */
	UROCE_WORK_FAULT = 1 << 6,	/* the fault that it waited for is done */
	/* SEND */
	UROCE_WORK_TX = 1 << 2,		/* posted, or room in the window */
	UROCE_WORK_TIMEOUT = 1 << 3,	/* acknowledgment timer */
	UROCE_WORK_RESUME = 1 << 4,	/* end of an RNR wait or of a backoff */
	/* RECV */
	UROCE_WORK_REPLY = 1 << 5,	/* go on with READ responses */
};

/* Why nothing is sent for a while */
enum uroce_pause {
	UROCE_PAUSE_NONE,
	UROCE_PAUSE_LOCAL,	/* this host had no room for the packet */
	UROCE_PAUSE_PEER,	/* the peer on this host waits for its memory */
	UROCE_PAUSE_RNR,	/* the peer had no receive WQE */
};

/* Requester: WQE -> request packets */
struct uroce_req {
	u32 fetched;		/* index behind the last WQE copied from the SQ */
	u32 cur;		/* index of the WQE being sent */
	u32 psn;		/* next to send */
	u32 high_psn;		/* behind the highest ever sent */
	u32 next_psn;		/* first PSN of the next WQE to be fetched */
	u32 window;		/* packets that may be unacknowledged */
	u32 rd_inflight;	/* READ requests and atomics unanswered */
	u32 since_ack_req;	/* packets since the last AckReq */
	enum uroce_pause pause;	/* the resume timer ends it */
	u8 refused;		/* packets by this host, in a row */
	u8 peer_waits;		/* looks at a local peer in a page fault, in a row */
	bool draining;		/* SQD: finish what was fetched */
	bool ring_broken;	/* sq_tail makes no sense */
};

/* Completer: acknowledgments and responses -> CQEs */
struct uroce_comp {
	u32 head;		/* index of the oldest WQE not completed */
	u32 una;		/* oldest PSN not acknowledged */
	u32 went_back;		/* una of the last go-back on a NAK or gap */
	bool went_back_valid;
	u8 retry_left;
	u8 rnr_left;
	ktime_t deadline;	/* of the acknowledgment timer; 0: off */
};

/* What a duplicate READ or atomic may ask for again */
struct uroce_rd_res {
	u32 first_psn;
	u32 num_psn;		/* 0: empty */
	u32 rkey;
	u32 len;		/* READ */
	u64 va;
	u64 orig;		/* atomic: the value returned */
	u32 kind;		/* UROCE_F_READ, _ATOMIC or _ATOMIC_WRITE */
};

/* Responses under way: of a READ, or of an atomic */
struct uroce_reply {
	bool active;
	bool atomic;
	u64 orig;		/* atomic: the value to return */
	u32 psn;		/* of the next response */
	u32 left;		/* bytes */
	u32 rkey;
	u32 srqn;		/* XRC: whose PD the key is of */
	u64 va;
	bool first;		/* nothing sent yet */
	bool again;		/* a duplicate request's */
};

/* Responder: requests -> memory and replies */
struct uroce_resp {
	u32 epsn;		/* expected next */
	u32 msn;		/* messages completed */
	u32 rq_head;		/* index of the next receive WQE */
	bool nak_sent;		/* for this epsn; be silent until it comes */
	bool comm_est;		/* COMM_EST event raised */
	/* the message under way */
	u32 in_message;		/* UROCE_F_SEND or UROCE_F_WRITE, 0 between messages */
	u32 msg_srqn;		/* XRC: the SRQ that it is for; else 0 */
	u64 va;			/* WRITE: next address */
	u32 rkey;
	u32 left;		/* WRITE: bytes to come */
	u32 received;		/* bytes so far */
	bool have_wqe;		/* wqe below is the current one */
	u32 wqe_srqn;		/* XRC: where it comes from */
	bool last_wqe;		/* LAST_WQE_REACHED event raised */
	u8 refused;		/* replies by this host, in a row */
	/* acknowledgment owed at the end of the batch */
	bool ack_due;
	u8 ack_syndrome;
	u32 ack_psn;
	struct uroce_reply reply;
	struct uroce_rd_res *res;	/* ring of max_dest_rd_atomic */
	u32 res_num;
	u32 res_next;
	struct uroce_sgl sgl;	/* into wqe_sge */
	struct uroce_recv_wqe wqe;	/* private copies */
	struct uroce_sge wqe_sge[UROCE_MAX_SGE];
	u64 wqe_len;		/* bytes it has room for */
};

/* Attributes set by modify_qp; read-only for the engines */
struct uroce_qp_attr {
	u32 dest_qpn;
	u32 mtu;		/* payload bytes per packet */
	u32 sq_psn;
	u32 rq_psn;
	u32 qkey;
	u32 access;
	u32 max_rd_atomic;
	u32 max_dest_rd_atomic;
	u8 timeout;		/* code */
	u8 retry_cnt;
	u8 rnr_retry;
	u8 min_rnr_timer;	/* code */
	u8 path_mtu;		/* enum ib_mtu */
	bool sqd_notify;
	struct rdma_ah_attr ah;	/* for query; its sgid_attr is not ours */
	struct uroce_av av;
	u16 sport;		/* UDP source port, all packets of the QP */
};

struct uroce_qp {
	struct ib_qp *ib;
	struct uroce_dev *dev;
	struct ib_pd *pd;		/* NULL: XRC target */
	struct uroce_bearer bearer;	/* of remote keys: this QP */
	struct uroce_cq *send_cq;	/* NULL: XRC target */
	struct uroce_cq *recv_cq;	/* NULL: XRC */
	/*
	 * In place of an RQ, or NULL. XRC target: that of the request under way
	 * (uroce_recv_enter()), the RECV owner's, as is the PD of the bearer.
	 */
	struct uroce_srq *srq;
	struct ib_xrcd *xrcd;	/* XRC target, else NULL */
	enum ib_qp_type type;
	enum uroce_service service;	/* of its packets */
	u32 qpn;
	u32 slot;		/* doorbell; user QPs */
	bool sig_all;
	bool no_mcast_loop;	/* no multicasts of its own */
	struct uroce_ucontext *uctx;	/* NULL: kernel consumer */

	struct uroce_region *region;
	struct uroce_qp_ctrl *ctrl;	/* shared */
	struct uroce_ring sq;
	struct uroce_ring rq;
	u32 max_inline;
	void *swqes;		/* private copies, sq.entries of them */
	u32 swqe_size;		/* bytes */
	spinlock_t post_lock[UROCE_NUM_DIR];	/* kernel consumers' posts */

	struct mutex mutex;	/* modify, query and destroy */
	int state;		/* enum ib_qp_state */
	struct uroce_qp_attr attr;
	struct dst_cache dst;	/* route of attr.av */
	atomic_t ip_id;

	atomic_t work[UROCE_NUM_DIR];
	struct sk_buff_head rxq[UROCE_NUM_DIR];	/* rxq.h */
	/* run what a budget left over; one for each work queue */
	struct work_struct left_here, left_anywhere;
	struct hrtimer ack_timer;	/* SEND */
	struct hrtimer resume_timer;	/* SEND: RNR wait, transmit backoff */
	struct hrtimer reply_timer;	/* RECV: transmit backoff */
	struct uroce_fault fault[UROCE_NUM_DIR];

	struct uroce_req req;
	struct uroce_comp comp;
	struct uroce_resp resp;

	refcount_t ref;
	struct completion freed;
	struct rcu_head rcu;
};

/* The core's object: freed by the core as soon as destroy returns */
struct uroce_ibqp {
	struct ib_qp ib;	/* first */
	struct uroce_qp *qp;	/* NULL when it has been destroyed; RCU */
};

static inline struct uroce_qp *to_uqp(struct ib_qp *ib)
{
	return READ_ONCE(container_of(ib, struct uroce_ibqp, ib)->qp);
}

static inline int uroce_qp_state(const struct uroce_qp *qp)
{
	return READ_ONCE(qp->state);
}

/* States in which packets are received and in which WRs are carried out */
static inline bool uroce_state_receives(int state)
{
	return state >= IB_QPS_RTR && state != IB_QPS_ERR;
}

static inline bool uroce_state_sends(int state)
{
	return state == IB_QPS_RTS || state == IB_QPS_SQD;
}

/* States in which what is posted to the SQ is flushed */
static inline bool uroce_state_flushes_sq(int state)
{
	return state == IB_QPS_SQE || state == IB_QPS_ERR;
}

/* NULL: a kernel consumer's. An XRC target has no context, but a domain. */
static inline struct uroce_tenant *uroce_qp_tenant(const struct uroce_qp *qp)
{
	if (qp->uctx)
		return &qp->uctx->tenant;
	return qp->xrcd ? &to_uxrcd(qp->xrcd)->tenant : NULL;
}

/* UD and GSI: a QP without a peer, each WR has its own */
static inline bool uroce_qp_is_datagram(const struct uroce_qp *qp)
{
	return qp->service == UROCE_SVC_UD;
}

/* Acknowledged and repeated until it has arrived, or sent once? */
static inline bool uroce_qp_is_reliable(const struct uroce_qp *qp)
{
	return qp->service == UROCE_SVC_RC || qp->service == UROCE_SVC_XRC;
}

/* XRC QPs have one direction each: an initiator receives no requests, ... */
static inline bool uroce_qp_responds(const struct uroce_qp *qp)
{
	return qp->type != IB_QPT_XRC_INI;
}

/* ... a target sends none. */
static inline bool uroce_qp_requests(const struct uroce_qp *qp)
{
	return qp->type != IB_QPT_XRC_TGT;
}

static inline void uroce_qp_assert_owned(struct uroce_qp *qp,
					 enum uroce_dir dir)
{
	WARN_ON_ONCE(!(atomic_read(&qp->work[dir]) & UROCE_RUN_OWNED));
}

/* Note work for a direction; the engine looks after every run. Any context. */
static inline void uroce_qp_mark(struct uroce_qp *qp, enum uroce_dir dir,
				 u32 work)
{
	/* what the work is about is there first; pairs with run_owned() */
	(void)atomic_fetch_or_release(work, &qp->work[dir]);
}

static inline struct uroce_swqe *uroce_qp_swqe(struct uroce_qp *qp, u32 index)
{
	return qp->swqes + (size_t)(index & (qp->sq.entries - 1)) * qp->swqe_size;
}

/* Module load */
void uroce_qpn_init(void);

/*
 * QP of @qpn in any device, with a reference; NULL if there is none.
 * Any context; takes the RCU read lock.
 */
struct uroce_qp *uroce_qp_get(u32 qpn);
/* For a pointer found under RCU: false if the QP is on its way out. */
bool __must_check uroce_qp_try_get(struct uroce_qp *qp);
void uroce_qp_put(struct uroce_qp *qp);

/*
 * Fatal for the QP: to ERR, both directions marked for flushing. By the owner
 * of one direction. @event: enum ib_event_type to raise, or -1.
 */
void uroce_qp_error(struct uroce_qp *qp, int event);
/*
 * A WR of the SQ failed: to ERR, or for unreliable QPs to SQE, where the RQ goes
 * on (IBTA 10.3.1.6). By the SEND owner.
 */
void uroce_qp_send_error(struct uroce_qp *qp);
void uroce_qp_event(struct uroce_qp *qp, enum ib_event_type type);

/*
 * Rings, private memory and number; not yet visible to packets. May sleep.
 * @resp: filled in for user QPs.
 */
int uroce_qp_init(struct uroce_qp *qp, struct uroce_dev *dev,
		  struct ib_qp_init_attr *init, struct uroce_ucontext *uctx,
		  struct uroce_create_qp_resp *resp);
int uroce_qp_publish(struct uroce_qp *qp);
void uroce_qp_unpublish(struct uroce_qp *qp);
/* Memory of a QP that nobody can reach any more. */
void uroce_qp_free(struct uroce_qp *qp);

/* Forget everything posted and under way; owner of both directions. */
void uroce_qp_reset(struct uroce_qp *qp);

/* qp_attr.c: owner of both directions; may sleep */
int uroce_qp_modify(struct uroce_qp *qp, const struct ib_qp_attr *attr,
		    int mask);
void uroce_qp_query(struct uroce_qp *qp, struct ib_qp_attr *attr,
		    struct ib_qp_init_attr *init);

#endif
