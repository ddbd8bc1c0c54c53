/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Page faults of the device: what a direction of a QP does when it wants to
 * touch memory that is not there, of an on-demand region (odp.h).
 *
 * Copies do not sleep, page faults do. So the owner of the direction notes
 * what it wants, gives up the step that it was at (a packet, a piece of a local
 * message) as if it had not begun, and ends its run. The engine has a work item
 * bring the memory in, and the direction waits for that; then the step is done
 * again from its start, and finds the memory, or asks again, or is told that it
 * cannot be had.
 *
 * Who may touch what
 *   Everything is the direction's owner's, but in WAITING the work's, which
 *   leaves it with the store of the next state. @held and @stale are always
 *   the owner's.
 */
#ifndef UROCE_FAULT_H
#define UROCE_FAULT_H

#include <linux/jiffies.h>
#include <linux/workqueue.h>
#include "key.h"

struct uroce_user;

enum uroce_fault_state {
	UROCE_FAULT_NONE,
	UROCE_FAULT_NOTED,	/* the run ends; the engine starts the work */
	UROCE_FAULT_WAITING,	/* for the work */
	UROCE_FAULT_FAILED,	/* what is noted below cannot be had */
};

struct uroce_fault {
	enum uroce_fault_state state;
	int cpu;		/* of the run that waits; it goes on there */
	bool stale;		/* noted before a RESET: how it ends does not matter */
	u32 held;		/* marks of the work word that came meanwhile */
	unsigned long done;	/* jiffies; when the last one was */

	/* as for uroce_key_get() */
	struct uroce_bearer who;
	u32 key;
	u64 va;
	u64 len;		/* bytes */
	int access;

	struct work_struct work;
};

/* Module load and unload */
int uroce_fault_init(void);
void uroce_fault_exit(void);

/*
 * A work queue for the page faults of one tenant of @user, or of the kernel
 * (NULL); NULL without memory. A fault takes as long as the file system behind
 * it pleases, so tenants do not share one, but those that come when there are
 * very many, or very many of their user. May sleep.
 */
struct workqueue_struct *uroce_fault_queue_get(struct uroce_user *user);
void uroce_fault_queue_put(struct uroce_user *user, struct workqueue_struct *wq);

/*
 * The owner cannot have [va, va + len) of @key now. Return -EAGAIN, noted in
 * who->fault; -EACCES when that very fault has failed just now.
 */
int uroce_fault_note(const struct uroce_bearer *who, u32 key, u64 va, u64 len,
		     int access);

/* The same for what has been granted and is not there */
static inline int uroce_fault_note_grant(const struct uroce_grant *grant)
{
	return uroce_fault_note(grant->who, grant->value, grant->va, grant->len,
				grant->access);
}

/* Has the run to end? For the owner. */
static inline bool uroce_fault_pending(const struct uroce_fault *fault)
{
	/* acquires what the work released in uroce_fault_done() */
	enum uroce_fault_state state = smp_load_acquire(&fault->state);

	return state == UROCE_FAULT_NOTED || state == UROCE_FAULT_WAITING;
}

/* By the work: @err is what became of it. The owner may go on. */
static inline void uroce_fault_done(struct uroce_fault *fault, int err)
{
	fault->done = jiffies;
	/* pairs with uroce_fault_pending() */
	smp_store_release(&fault->state,
			  err ? UROCE_FAULT_FAILED : UROCE_FAULT_NONE);
}

#endif
