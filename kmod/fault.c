// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Page faults of the device; see fault.h. */
#include "fault.h"
#include "tenant.h"

/*
 * The step is done again at once, or when a local peer has backed off. Later than
 * this it is another step that wants the same.
 */
#define FAILED_FOR	(5 * HZ)

/*
 * Faults under way for one tenant: more would not be faster, and each that does
 * not end keeps a kernel thread. So the queues are counted as well, and nobody
 * can have them all.
 */
#define FAULTS		4
#define QUEUES		512
#define QUEUES_OF_USER	64
/* The same for all tenants that have none of their own */
#define SHARED_FAULTS	64

static atomic_t queues;
static struct workqueue_struct *shared;

/* Reclaim never waits for a fault, so no queue needs to work without memory. */
int uroce_fault_init(void)
{
	shared = alloc_workqueue("uroce_fault", WQ_UNBOUND, SHARED_FAULTS);
	return shared ? 0 : -ENOMEM;
}

void uroce_fault_exit(void)
{
	WARN_ON(atomic_read(&queues));
	destroy_workqueue(shared);
}

static bool count_queue(struct uroce_user *user)
{
	if (atomic_inc_return(&queues) > QUEUES)
		goto err_queues;
	if (user && atomic_inc_return(&user->fault_queues) > QUEUES_OF_USER)
		goto err_user;
	return true;

err_user:
	atomic_dec(&user->fault_queues);
err_queues:
	atomic_dec(&queues);
	return false;
}

static void uncount_queue(struct uroce_user *user)
{
	if (user)
		atomic_dec(&user->fault_queues);
	atomic_dec(&queues);
}

struct workqueue_struct *uroce_fault_queue_get(struct uroce_user *user)
{
	struct workqueue_struct *wq;

	if (!count_queue(user))
		return shared;
	wq = alloc_workqueue("uroce_fault", WQ_UNBOUND, FAULTS);
	if (!wq)
		uncount_queue(user);
	return wq;
}

void uroce_fault_queue_put(struct uroce_user *user, struct workqueue_struct *wq)
{
	if (!wq || wq == shared)
		return;
	destroy_workqueue(wq);
	uncount_queue(user);
}

static bool has_just_failed(const struct uroce_fault *fault)
{
	return fault->state == UROCE_FAULT_FAILED && !fault->stale &&
	       time_before(jiffies, fault->done + FAILED_FOR);
}

int uroce_fault_note(const struct uroce_bearer *who, u32 key, u64 va, u64 len,
		     int access)
{
	struct uroce_fault *fault = who->fault;
	enum uroce_fault_state state;

	if (WARN_ON_ONCE(!fault))
		return -EACCES;
	/* a run begins only when none is under way: see uroce_fault_pending() */
	state = READ_ONCE(fault->state);
	if (WARN_ON_ONCE(state == UROCE_FAULT_WAITING))
		return -EACCES;
	if (has_just_failed(fault) && fault->key == key &&
	    fault->va == va && fault->len == len && fault->access == access) {
		WRITE_ONCE(fault->state, UROCE_FAULT_NONE);
		return -EACCES;
	}

	fault->who = *who;
	fault->key = key;
	fault->va = va;
	fault->len = len;
	fault->access = access;
	fault->stale = false;
	WRITE_ONCE(fault->state, UROCE_FAULT_NOTED);
	return -EAGAIN;
}
