// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Protocol timers; see timer.h. */
#include "timer.h"

/* IBTA table 46, in units of 10 us */
static const u32 rnr_table[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12,
	16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072,
	4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

u64 uroce_rnr_timer_ns(u8 code)
{
	return (u64)rnr_table[code & 31] * 10 * NSEC_PER_USEC;
}

void uroce_timer_ack_arm(struct uroce_qp *qp)
{
	uroce_qp_assert_owned(qp, UROCE_SEND);

	/* timeout code 0: wait for ever */
	if (!qp->attr.timeout || qp->comp.deadline)
		return;
	qp->comp.deadline = ktime_add_ns(ktime_get(),
					 uroce_ack_timeout_ns(qp->attr.timeout));
	/* later than the deadline only after a modify to a shorter timeout */
	if (!hrtimer_is_queued(&qp->ack_timer) ||
	    ktime_after(hrtimer_get_softexpires(&qp->ack_timer),
			qp->comp.deadline))
		hrtimer_start(&qp->ack_timer, qp->comp.deadline,
			      HRTIMER_MODE_ABS_SOFT);
}

void uroce_timer_ack_progress(struct uroce_qp *qp, bool outstanding)
{
	uroce_qp_assert_owned(qp, UROCE_SEND);

	qp->comp.deadline = 0;
	if (outstanding)
		uroce_timer_ack_arm(qp);
}
