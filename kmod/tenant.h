/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Those who share what a device has once for all: contexts, and XRC domains,
 * whose targets belong to no context. What one of them holds for long, because
 * a file system does not answer or nobody reads, the others go without; so each
 * has bounds, and so have all of one user. Kernel consumers are no tenants.
 */
#ifndef UROCE_TENANT_H
#define UROCE_TENANT_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>

/* All tenants whose processes had one uid when they came */
struct uroce_user {
	struct hlist_node node;
	unsigned int refs;		/* tenants */
	kuid_t uid;
	atomic_t fault_queues;		/* fault.h */
	atomic_long_t rx_bytes;		/* packets that wait; rxq.h */
};

struct uroce_tenant {
	struct uroce_user *user;
	struct workqueue_struct *fault_wq;	/* NULL: nothing faults yet */
	atomic_long_t rx_bytes;		/* packets that wait; rxq.h */
};

/* In zeroed memory, for the user of the calling process. May sleep. */
int uroce_tenant_init(struct uroce_tenant *tenant);
void uroce_tenant_exit(struct uroce_tenant *tenant);

/*
 * Before anything of the tenant's can fault: a queue for its page faults, once.
 * May sleep.
 */
int uroce_tenant_allow_faults(struct uroce_tenant *tenant);

#endif
