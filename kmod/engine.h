/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who runs a QP, and when. Each direction has one owner at a time, whoever
 * sets UROCE_RUN_OWNED in its work word first; the others leave a mark, which
 * the owner sees before it lets go. Nobody waits, and no wake-up is lost.
 *
 * Runs happen in the context of the caller (a process that kicks, the softirq
 * that received a packet, a timer), BH disabled, up to a budget; what is left
 * goes to a workqueue.
 */
#ifndef UROCE_ENGINE_H
#define UROCE_ENGINE_H

#include "qp.h"

/* The work queues; module load and unload */
int uroce_engine_init(void);
void uroce_engine_exit(void);

/* Work items and timers of a new QP */
void uroce_engine_qp_init(struct uroce_qp *qp);

/*
 * Mark @work and run the direction unless somebody does already. The caller
 * holds a reference. Softirq, or process context with BH disabled.
 */
void uroce_engine_kick(struct uroce_qp *qp, enum uroce_dir dir, u32 work);

/*
 * Let go of a direction owned by uroce_own_try(): run what was marked
 * meanwhile, raise completion events. BH disabled; does not run the other
 * direction, the workqueue does that if it must.
 */
void uroce_engine_release(struct uroce_qp *qp, enum uroce_dir dir);

/* Mark @work and let the workqueue run it. Any context. */
void uroce_engine_defer(struct uroce_qp *qp, enum uroce_dir dir, u32 work);

/*
 * A process rang its doorbell. Runs several budgets, softirqs in between.
 * Process context; the caller holds a reference.
 */
void uroce_engine_doorbell(struct uroce_qp *qp);

/*
 * Own both directions, to change states and attributes. Waits for the present
 * owners, who never sleep. Process context, may sleep while frozen.
 */
void uroce_engine_freeze(struct uroce_qp *qp);
/*
 * Frozen: in SQE, flush what is still in the SQ, so that nothing of it is
 * carried out when the state is left. Nothing to do in other states.
 */
void uroce_engine_flush_sq(struct uroce_qp *qp);
/* Run what was marked meanwhile and let go. */
void uroce_engine_thaw(struct uroce_qp *qp);

/*
 * The QP goes: no engine and no timer runs for it after this, and both
 * directions stay owned for ever. Left-over work may still be queued, and a page
 * fault under way, until the last reference has gone, and those who post; then
 * uroce_engine_qp_gone(), which waits for both.
 */
void uroce_engine_qp_stop(struct uroce_qp *qp);
void uroce_engine_qp_gone(struct uroce_qp *qp);

#endif
