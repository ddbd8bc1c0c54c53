// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Execution of the engines; see engine.h. */
#include <linux/delay.h>
#include <linux/sched.h>
#include <linux/udp.h>
#include "comp.h"
#include "engine.h"
#include "local.h"
#include "odp.h"
#include "own.h"
#include "reply.h"
#include "req.h"
#include "resp.h"
#include "rxq.h"
#include "srq.h"
#include "timer.h"
#include "wire.h"

/* Packets (or flushed WQEs) of one run */
#define RUN_BUDGET	16
/*
 * Runs of one owner, and the time it may take, before somebody else gets a
 * chance at the CPU: a slow machine must not send for seconds while what came
 * in waits.
 */
#define RUN_ROUNDS	8
#define RUN_JIFFIES	1
/* WQEs flushed at a time by who modifies a QP */
#define FLUSH_BUDGET	256
/* Runs of one doorbell before the workqueue takes over */
#define DOORBELL_RUNS	8

/*
 * For what a run left over; see queue_left(). Runs never sleep, so processes'
 * take turns, a few at a time however many QPs they have; what the kernel posts
 * does not wait for them.
 */
static struct workqueue_struct *same_cpu_wq, *any_cpu_wq, *kernel_wq;
/* For page faults of kernel consumers' QPs; see fault_queue() */
static struct workqueue_struct *fault_wq;

/* ---- one run of a direction ---- */

static struct uroce_payload payload_of(struct sk_buff *skb)
{
	const struct uroce_pkt *pkt = (void *)skb->cb;

	return (struct uroce_payload) {
		.skb = skb,
		.skb_offset = skb_transport_offset(skb) +
			      sizeof(struct udphdr) + uroce_pkt_hdr_len(pkt),
		.len = pkt->payload_len,
	};
}

/* Done with the packet; or, !@done, it is taken first after the fault. */
static void finish_one(struct uroce_qp *qp, enum uroce_dir dir,
		       struct sk_buff *skb, bool done)
{
	if (done)
		consume_skb(skb);
	else
		uroce_rxq_put_back(qp, dir, skb);
}

static void comp_one(struct uroce_qp *qp, struct sk_buff *skb)
{
	struct uroce_payload payload = payload_of(skb);

	finish_one(qp, UROCE_SEND, skb,
		   uroce_comp_packet(qp, (void *)skb->cb, &payload));
}

static void resp_one(struct uroce_qp *qp, struct sk_buff *skb)
{
	struct uroce_payload payload = payload_of(skb);
	const struct uroce_pkt *pkt = (void *)skb->cb;
	bool done = true;

	if (!uroce_state_receives(uroce_qp_state(qp)))
		uroce_count(qp->dev, UROCE_CNT_DROP_QP_STATE);
	else if (uroce_qp_is_datagram(qp))
		done = uroce_resp_datagram(qp, pkt, skb, &payload);
	else
		done = uroce_resp_request(qp, pkt, &payload, NULL);
	finish_one(qp, UROCE_RECV, skb, done);
}

/*
 * Does a fault hold *@work up? Then it is kept for after the fault; if not,
 * what was kept is added to it. A QP that empties its queue needs no memory.
 */
static bool held_up(struct uroce_fault *fault, bool flushing, u32 *work)
{
	*work |= fault->held;
	fault->held = 0;
	if (flushing || !uroce_fault_pending(fault))
		return false;
	fault->held = *work;
	return true;
}

/* Fetched and posted WQEs alike; true when the budget ended it. */
static bool flush_send(struct uroce_qp *qp, int *budget)
{
	do {
		if (uroce_comp_flush(qp, budget))
			return true;
	} while (uroce_req_fetch(qp));
	return false;
}

/* See uroce_device_leave(). MADs may still go out: consumers take their leave. */
static void give_up_if_leaving(struct uroce_qp *qp)
{
	if (READ_ONCE(qp->dev->leaving) && qp->type != IB_QPT_GSI &&
	    uroce_state_sends(uroce_qp_state(qp)))
		uroce_qp_send_error(qp);
}

/* Return: work left over when the budget ended the run */
static u32 run_send(struct uroce_qp *qp, u32 work)
{
	struct uroce_fault *fault = &qp->fault[UROCE_SEND];
	int rx_budget = RUN_BUDGET, budget = RUN_BUDGET;
	struct sk_buff *skb;
	u32 left = 0;

	if (held_up(fault, uroce_state_flushes_sq(uroce_qp_state(qp)), &work))
		return 0;
	/* the peer could not answer what was cut short by our own fault */
	if (work & UROCE_WORK_FAULT && qp->comp.deadline)
		uroce_timer_ack_progress(qp, true);
	/* an old wait ends before a packet can begin a new one */
	if (work & UROCE_WORK_RESUME)
		uroce_comp_resume(qp);
	while (!left && (skb = uroce_rxq_take(qp, UROCE_SEND))) {
		comp_one(qp, skb);
		if (uroce_fault_pending(fault))
			return UROCE_WORK_RX | (work & UROCE_WORK_TIMEOUT);
		if (--rx_budget <= 0)
			left = UROCE_WORK_RX;
	}
	if (work & UROCE_WORK_TIMEOUT)
		uroce_comp_timeout(qp);

	give_up_if_leaving(qp);
	if (uroce_state_flushes_sq(uroce_qp_state(qp)))
		return left | (flush_send(qp, &budget) ? UROCE_WORK_FLUSH : 0);

	/* what cannot be done as a local message goes out as packets */
	if (uroce_local_run(qp, &budget) || uroce_req_run(qp, &budget))
		left |= UROCE_WORK_TX;
	uroce_comp_settle(qp);
	return left;
}

/* Requests and answers, in the order of the requests */
static u32 serve_requests(struct uroce_qp *qp, int *budget)
{
	struct sk_buff *skb;

	for (;;) {
		if (uroce_reply_run(qp, budget))
			return UROCE_WORK_REPLY;
		/* its timer goes on, or the fault's end */
		if (qp->resp.reply.active ||
		    uroce_fault_pending(&qp->fault[UROCE_RECV]))
			return 0;
		skb = uroce_rxq_take(qp, UROCE_RECV);
		if (!skb)
			return 0;
		resp_one(qp, skb);
		if (--*budget <= 0)
			return UROCE_WORK_RX;
	}
}

/* Return: work left over when the budget ended the run */
static u32 run_recv(struct uroce_qp *qp, u32 work)
{
	bool flushing = uroce_qp_state(qp) == IB_QPS_ERR;
	int budget = RUN_BUDGET;
	u32 left;

	if (held_up(&qp->fault[UROCE_RECV], flushing, &work))
		return 0;
	if (flushing)
		left = uroce_resp_flush(qp, &budget) ? UROCE_WORK_FLUSH : 0;
	else
		left = serve_requests(qp, &budget);
	/* also the NAK of what brought the QP into error, if it could not go */
	uroce_reply_ack_due(qp);
	return left;
}

/* ---- work queues ---- */

static void queue_here(struct uroce_qp *qp, int cpu)
{
	queue_work_on(cpu, uroce_qp_tenant(qp) ? same_cpu_wq : kernel_wq,
		      &qp->left_here);
}

/* ---- faults ---- */

static void fault_done(struct uroce_qp *qp, enum uroce_dir dir)
{
	struct uroce_fault *fault = &qp->fault[dir];
	int cpu = fault->cpu;

	uroce_fault_done(fault, uroce_odp_fault(fault));
	uroce_qp_mark(qp, dir, UROCE_WORK_FAULT);
	/* where the packets are that it sent before; see queue_left() */
	queue_here(qp, cpu);
}

static void send_fault_fn(struct work_struct *work)
{
	fault_done(container_of(work, struct uroce_qp, fault[UROCE_SEND].work),
		   UROCE_SEND);
}

static void recv_fault_fn(struct work_struct *work)
{
	fault_done(container_of(work, struct uroce_qp, fault[UROCE_RECV].work),
		   UROCE_RECV);
}

/* A tenant's is there since before anything of it could fault. */
static struct workqueue_struct *fault_queue(const struct uroce_qp *qp)
{
	struct uroce_tenant *tenant = uroce_qp_tenant(qp);

	return tenant ? READ_ONCE(tenant->fault_wq) : fault_wq;
}

/* At the end of each run */
static void start_fault(struct uroce_qp *qp, enum uroce_dir dir)
{
	struct uroce_fault *fault = &qp->fault[dir];

	uroce_qp_assert_owned(qp, dir);

	if (READ_ONCE(fault->state) != UROCE_FAULT_NOTED)
		return;
	fault->cpu = smp_processor_id();
	/* for the run that finds it over, whoever starts that */
	fault->held |= UROCE_WORK_FAULT;
	WRITE_ONCE(fault->state, UROCE_FAULT_WAITING);
	/* hands over what was noted: queueing is a release */
	queue_work(fault_queue(qp), &fault->work);
}

/* ---- ownership ---- */

/*
 * The caller owns the direction. Run until nothing is marked, somebody wants
 * to freeze the QP, or this has been enough; then let go, marks and all.
 */
static void run_owned(struct uroce_qp *qp, enum uroce_dir dir)
{
	atomic_t *word = &qp->work[dir];
	unsigned long end = jiffies + RUN_JIFFIES;
	int rounds = RUN_ROUNDS;
	u32 work, left;

	do {
		/* acquires what the markers released */
		work = atomic_fetch_andnot(UROCE_WORK_MASK, word) & UROCE_WORK_MASK;
		left = dir == UROCE_SEND ? run_send(qp, work) :
					   run_recv(qp, work);
		start_fault(qp, dir);
		if (left)
			atomic_or(left, word);
		if (!--rounds || time_after(jiffies, end)) {
			uroce_own_drop(qp, dir);
			return;
		}
	} while (!uroce_own_release(qp, dir));
}

static void notify(struct uroce_qp *qp, enum uroce_dir dir)
{
	struct uroce_cq *cq = dir == UROCE_SEND ? qp->send_cq : qp->recv_cq;

	/* XRC QPs have none in one or both directions */
	if (cq && READ_ONCE(cq->news))
		uroce_cq_notify(cq);
}

static bool work_left(struct uroce_qp *qp)
{
	return uroce_own_pending(qp, UROCE_SEND) ||
	       uroce_own_pending(qp, UROCE_RECV);
}

/*
 * Can packets of the QP wait in this CPU's backlog? A guess, without being its
 * owner; wrong, it costs a retransmission. Of what is not acknowledged nobody
 * can tell, and there a packet that overtakes another costs the message.
 */
static bool packets_around(const struct uroce_qp *qp)
{
	return !uroce_qp_is_reliable(qp) ||
	       READ_ONCE(qp->req.psn) != READ_ONCE(qp->comp.una) ||
	       READ_ONCE(qp->resp.reply.active) ||
	       !uroce_rxq_empty(qp, UROCE_SEND) ||
	       !uroce_rxq_empty(qp, UROCE_RECV);
}

/*
 * What a run on @cpu left over goes on in a work queue. With packets around, on
 * that CPU: another one's would overtake those that wait in its backlog, and the
 * peer would see a loss. Else where there is time: the poster of a large local
 * message may be polling on this CPU.
 */
static void queue_left(struct uroce_qp *qp, int cpu)
{
	if (!work_left(qp))
		return;
	/*
	 * One work item in two queues could run twice at a time, and whoever
	 * cancels it would wait for one of the two only.
	 */
	if (packets_around(qp))
		queue_here(qp, cpu);
	else
		queue_work(uroce_qp_tenant(qp) ? any_cpu_wq : kernel_wq,
			   &qp->left_anywhere);
}

void uroce_engine_release(struct uroce_qp *qp, enum uroce_dir dir)
{
	start_fault(qp, dir);
	if (!uroce_own_release(qp, dir))
		run_owned(qp, dir);
	notify(qp, dir);
	queue_left(qp, smp_processor_id());
}

/* Run @dir, and the other one if that was marked. */
static void run_marked(struct uroce_qp *qp, enum uroce_dir dir)
{
	int i;

	for (i = 0; i < UROCE_NUM_DIR; i++, dir = !dir) {
		if (!uroce_own_pending(qp, dir) || !uroce_own_try(qp, dir))
			continue;
		run_owned(qp, dir);
		notify(qp, dir);
	}
}

void uroce_engine_kick(struct uroce_qp *qp, enum uroce_dir dir, u32 work)
{
	lockdep_assert_in_softirq();

	uroce_qp_mark(qp, dir, work);
	run_marked(qp, dir);
	queue_left(qp, smp_processor_id());
}

void uroce_engine_defer(struct uroce_qp *qp, enum uroce_dir dir, u32 work)
{
	uroce_qp_mark(qp, dir, work);
	queue_left(qp, raw_smp_processor_id());
}

/* From where one sleeps; return: the CPU it was on */
static int run_once(struct uroce_qp *qp)
{
	int cpu;

	local_bh_disable();
	cpu = smp_processor_id();
	run_marked(qp, UROCE_SEND);
	local_bh_enable();
	return cpu;
}

static void run_left(struct uroce_qp *qp)
{
	queue_left(qp, run_once(qp));
}

static void left_here_fn(struct work_struct *work)
{
	run_left(container_of(work, struct uroce_qp, left_here));
}

static void left_anywhere_fn(struct work_struct *work)
{
	run_left(container_of(work, struct uroce_qp, left_anywhere));
}

void uroce_engine_doorbell(struct uroce_qp *qp)
{
	int runs = DOORBELL_RUNS, cpu;

	uroce_count(qp->dev, UROCE_CNT_KICKS);
	uroce_qp_mark(qp, UROCE_SEND, UROCE_WORK_TX);
	/* a receive posted to a QP in error is flushed */
	if (uroce_qp_state(qp) == IB_QPS_ERR)
		uroce_qp_mark(qp, UROCE_RECV, UROCE_WORK_FLUSH);

	do {
		cpu = run_once(qp);
	} while (work_left(qp) && --runs && !need_resched() &&
		 cpu == raw_smp_processor_id());
	queue_left(qp, cpu);
}

/* ---- timers: destroy cancels them before it lets go of the QP ---- */

/*
 * All timers of a CPU that are due are called in one go, with nothing else in
 * between, and a process can have as many due at a time as it has QPs. So their
 * runs get a share of the CPU's time; beyond that the work queue does it.
 */
#define TIMER_PERIOD	msecs_to_jiffies(40)
#define TIMER_SHARE_NS	(10 * NSEC_PER_MSEC)

struct timer_time {
	unsigned long start;	/* of the period, jiffies */
	u64 ns;			/* used in it */
};

static DEFINE_PER_CPU(struct timer_time, timer_time);

static void timer_fired(struct uroce_qp *qp, enum uroce_dir dir, u32 work)
{
	struct timer_time *used = this_cpu_ptr(&timer_time);
	u64 begin;

	if (time_after(jiffies, used->start + TIMER_PERIOD) ||
	    time_before(jiffies, used->start)) {
		used->start = jiffies;
		used->ns = 0;
	}
	if (used->ns > TIMER_SHARE_NS) {
		uroce_engine_defer(qp, dir, work);
		return;
	}
	begin = ktime_get_mono_fast_ns();
	uroce_engine_kick(qp, dir, work);
	used->ns += ktime_get_mono_fast_ns() - begin;
}

static enum hrtimer_restart ack_timer_fn(struct hrtimer *timer)
{
	timer_fired(container_of(timer, struct uroce_qp, ack_timer),
		    UROCE_SEND, UROCE_WORK_TIMEOUT);
	return HRTIMER_NORESTART;
}

static enum hrtimer_restart resume_timer_fn(struct hrtimer *timer)
{
	timer_fired(container_of(timer, struct uroce_qp, resume_timer),
		    UROCE_SEND, UROCE_WORK_RESUME);
	return HRTIMER_NORESTART;
}

static enum hrtimer_restart reply_timer_fn(struct hrtimer *timer)
{
	timer_fired(container_of(timer, struct uroce_qp, reply_timer),
		    UROCE_RECV, UROCE_WORK_REPLY);
	return HRTIMER_NORESTART;
}

/* ---- lifetime ---- */

void uroce_engine_qp_init(struct uroce_qp *qp)
{
	INIT_WORK(&qp->left_here, left_here_fn);
	INIT_WORK(&qp->left_anywhere, left_anywhere_fn);
	INIT_WORK(&qp->fault[UROCE_SEND].work, send_fault_fn);
	INIT_WORK(&qp->fault[UROCE_RECV].work, recv_fault_fn);
	hrtimer_setup(&qp->ack_timer, ack_timer_fn, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_SOFT);
	hrtimer_setup(&qp->resume_timer, resume_timer_fn, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_PINNED_SOFT);
	hrtimer_setup(&qp->reply_timer, reply_timer_fn, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_PINNED_SOFT);
}

void uroce_engine_freeze(struct uroce_qp *qp)
{
	int dir;

	might_sleep();
	lockdep_assert_held(&qp->mutex);

	for (dir = 0; dir < UROCE_NUM_DIR; dir++) {
		/* no new owner gets in; the present one is soon done */
		atomic_or(UROCE_RUN_FREEZE, &qp->work[dir]);
		while (atomic_fetch_or(UROCE_RUN_OWNED, &qp->work[dir]) &
		       UROCE_RUN_OWNED)
			usleep_range(10, 50);
	}
}

void uroce_engine_flush_sq(struct uroce_qp *qp)
{
	/* a process that goes on posting does not keep us here */
	int runs = 2 * qp->sq.entries / FLUSH_BUDGET + 1, budget;
	bool more;

	lockdep_assert_held(&qp->mutex);

	if (uroce_qp_state(qp) != IB_QPS_SQE)
		return;
	do {
		budget = FLUSH_BUDGET;
		local_bh_disable();
		more = flush_send(qp, &budget);
		notify(qp, UROCE_SEND);
		local_bh_enable();
	} while (more && --runs);
}

void uroce_engine_thaw(struct uroce_qp *qp)
{
	int dir;

	lockdep_assert_held(&qp->mutex);

	for (dir = 0; dir < UROCE_NUM_DIR; dir++) {
		atomic_andnot(UROCE_RUN_FREEZE, &qp->work[dir]);
		uroce_own_drop(qp, dir);
	}
	run_left(qp);
}

void uroce_engine_qp_stop(struct uroce_qp *qp)
{
	uroce_engine_freeze(qp);
	/*
	 * Nobody can become an owner now, so nobody starts a timer; callbacks
	 * on their way leave a mark and go.
	 */
	hrtimer_cancel(&qp->ack_timer);
	hrtimer_cancel(&qp->resume_timer);
	hrtimer_cancel(&qp->reply_timer);
}

void uroce_engine_qp_gone(struct uroce_qp *qp)
{
	/*
	 * No run starts a fault any more; one that is under way may take as
	 * long as the process' own would, and queues left_here at its end.
	 */
	cancel_work_sync(&qp->fault[UROCE_SEND].work);
	cancel_work_sync(&qp->fault[UROCE_RECV].work);
	/*
	 * Frozen, they do not queue each other any more, unless they saw before
	 * that work was left: left_anywhere may be about to queue left_here.
	 */
	cancel_work_sync(&qp->left_here);
	cancel_work_sync(&qp->left_anywhere);
	cancel_work_sync(&qp->left_here);
}

static void wq_destroy(struct workqueue_struct *wq)
{
	if (wq)
		destroy_workqueue(wq);
}

void uroce_engine_exit(void)
{
	uroce_fault_queue_put(NULL, fault_wq);
	wq_destroy(kernel_wq);
	wq_destroy(any_cpu_wq);
	wq_destroy(same_cpu_wq);
}

int uroce_engine_init(void)
{
	/* other drivers' work on this CPU must not wait for runs, hence intensive */
	same_cpu_wq = alloc_workqueue("uroce", WQ_MEM_RECLAIM | WQ_CPU_INTENSIVE, 1);
	any_cpu_wq = alloc_workqueue("uroce_any", WQ_MEM_RECLAIM | WQ_UNBOUND,
				     num_possible_cpus());
	/* not of high priority: consumers that post from completions never stop */
	kernel_wq = alloc_workqueue("uroce_kernel", WQ_MEM_RECLAIM | WQ_CPU_INTENSIVE, 0);
	fault_wq = uroce_fault_queue_get(NULL);
	if (same_cpu_wq && any_cpu_wq && kernel_wq && fault_wq)
		return 0;
	uroce_engine_exit();
	return -ENOMEM;
}
