// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Contexts and XRC domains as users of what is shared; see tenant.h. */
#include <linux/cred.h>
#include <linux/hashtable.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include "fault.h"
#include "tenant.h"

static DEFINE_HASHTABLE(users, 6);
static DEFINE_MUTEX(users_lock);	/* the table and the references */

static struct uroce_user *lookup_user(kuid_t uid)
{
	struct uroce_user *user;

	lockdep_assert_held(&users_lock);

	hash_for_each_possible(users, user, node, __kuid_val(uid)) {
		if (uid_eq(user->uid, uid))
			return user;
	}
	return NULL;
}

static struct uroce_user *user_get(kuid_t uid)
{
	struct uroce_user *user;

	mutex_lock(&users_lock);
	user = lookup_user(uid);
	if (!user) {
		user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
		if (user) {
			user->uid = uid;
			hash_add(users, &user->node, __kuid_val(uid));
		}
	}
	if (user)
		user->refs++;
	mutex_unlock(&users_lock);
	return user;
}

static void user_put(struct uroce_user *user)
{
	mutex_lock(&users_lock);
	if (!--user->refs) {
		hash_del(&user->node);
		kfree(user);
	}
	mutex_unlock(&users_lock);
}

int uroce_tenant_init(struct uroce_tenant *tenant)
{
	tenant->user = user_get(current_uid());
	return tenant->user ? 0 : -ENOMEM;
}

void uroce_tenant_exit(struct uroce_tenant *tenant)
{
	WARN_ON(atomic_long_read(&tenant->rx_bytes));
	uroce_fault_queue_put(tenant->user, tenant->fault_wq);
	user_put(tenant->user);
}

int uroce_tenant_allow_faults(struct uroce_tenant *tenant)
{
	struct workqueue_struct *wq;

	if (READ_ONCE(tenant->fault_wq))
		return 0;
	wq = uroce_fault_queue_get(tenant->user);
	if (!wq)
		return -ENOMEM;
	/* another thread may register at the same time */
	if (cmpxchg(&tenant->fault_wq, NULL, wq))
		uroce_fault_queue_put(tenant->user, wq);
	return 0;
}
