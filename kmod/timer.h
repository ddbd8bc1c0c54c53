/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Times of the protocol (IBTA 9.7.6.1.3, 9.7.5.2.8) and starting of the QP's
 * timers. What happens when they fire is the engine's business.
 */
#ifndef UROCE_TIMER_H
#define UROCE_TIMER_H

#include <linux/hrtimer.h>
#include "qp.h"

/* Shortest pause after this host refused a packet of ours, ns */
#define UROCE_BACKOFF_NS	(100 * NSEC_PER_USEC)
/* It doubles so many times */
#define UROCE_BACKOFF_DOUBLE	7
/* Refusals in a row, about a second, after which a packet counts as sent */
#define UROCE_BACKOFF_TIMES	85

/*
 * What became of a packet: @err of uroce_net_xmit(). True: it is to be tried
 * again after uroce_backoff_ns(). What is refused for ever, as a filter on the
 * way out does, is lost like on any other hop, and so is what follows it, at
 * once, until a packet gets out. @refused: in a row so far. The local path counts
 * its looks at a peer that waits for memory in the same way, as -EAGAIN.
 */
static inline bool uroce_backoff(u8 *refused, int err)
{
	if (err != -EAGAIN) {
		*refused = 0;
		return false;
	}
	if (*refused == UROCE_BACKOFF_TIMES)
		return false;
	++*refused;
	return true;
}

static inline u64 uroce_backoff_ns(u8 refused)
{
	return UROCE_BACKOFF_NS << min_t(u8, refused, UROCE_BACKOFF_DOUBLE);
}

/* Local ACK timeout of @code (1..31), ns: 4.096 us * 2^code */
static inline u64 uroce_ack_timeout_ns(u8 code)
{
	return 4096ULL << code;
}

/* RNR NAK timer of @code (0..31), ns */
u64 uroce_rnr_timer_ns(u8 code);

/* (Re)start for @ns from now. By the direction's owner. */
static inline void uroce_timer_start(struct hrtimer *timer, u64 ns)
{
	/* on this CPU, in whose backlog what was sent before may wait */
	hrtimer_start(timer, ns_to_ktime(ns), HRTIMER_MODE_REL_PINNED_SOFT);
}

/*
 * Something is unacknowledged: make sure that a deadline is set and that the
 * timer will look at it. The timer is not moved at each acknowledgment, only
 * the deadline is; fired too early, it goes on to the deadline.
 */
void uroce_timer_ack_arm(struct uroce_qp *qp);

/* Progress: a new deadline, or none when @outstanding is false */
void uroce_timer_ack_progress(struct uroce_qp *qp, bool outstanding);

#endif
