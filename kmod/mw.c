// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory windows; see mw.h. */
#include <linux/slab.h>
#include "device.h"
#include "mr.h"
#include "mw.h"

/* Local rights mean nothing for a window; naming them is no error */
#define BIND_ACCESS	(UROCE_ACCESS_REMOTE | IB_ACCESS_LOCAL_WRITE | \
			 IB_ZERO_BASED | IB_ACCESS_OPTIONAL)

static struct uroce_mw *to_umw(struct ib_mw *ib)
{
	return container_of(ib, struct uroce_mw, ib);
}

int uroce_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct uroce_dev *dev = to_udev(ibmw->device);
	struct uroce_mw *mw = to_umw(ibmw);
	int err;

	err = uroce_object_get(dev, UROCE_OBJ_MW, true);
	if (err)
		return err;

	err = -ENOMEM;
	mw->key = kzalloc(sizeof(*mw->key), GFP_KERNEL_ACCOUNT);
	if (!mw->key)
		goto err_count;
	uroce_key_init(mw->key, ibmw->type == IB_MW_TYPE_1 ?
		       UROCE_KEY_WINDOW_1 : UROCE_KEY_WINDOW_2, ibmw->pd);
	err = uroce_key_publish(dev, mw->key);
	if (err)
		goto err_free;
	ibmw->rkey = mw->key->value;
	return 0;

err_free:
	kfree(mw->key);
err_count:
	uroce_object_put(dev, UROCE_OBJ_MW);
	return err;
}

int uroce_dealloc_mw(struct ib_mw *ibmw)
{
	struct uroce_dev *dev = to_udev(ibmw->device);
	struct uroce_key *key = to_umw(ibmw)->key;
	struct uroce_mr *bound;

	rcu_read_lock();
	local_bh_disable();
	spin_lock(&key->lock);
	uroce_key_revoke(key, UROCE_KEY_DEAD);
	bound = key->mr;
	key->mr = NULL;
	spin_unlock(&key->lock);
	if (bound)
		uroce_mr_unbind(bound);
	local_bh_enable();
	rcu_read_unlock();

	uroce_key_unpublish(dev, key);
	kfree_rcu(key, rcu);
	uroce_object_put(dev, UROCE_OBJ_MW);
	return 0;
}

/* What the bind itself must be like, whatever it is bound to */
static bool bind_ok(const struct uroce_key *key, const struct uroce_bearer *who,
		    const struct uroce_send_wqe *w)
{
	if (key->pd != who->pd || w->bind.access & ~(u32)BIND_ACCESS)
		return false;
	switch (key->kind) {
	case UROCE_KEY_WINDOW_1:
		/* o10-36.2.2: no zero-based ones; a length of 0 unbinds */
		return key->state != UROCE_KEY_DEAD &&
		       !(w->bind.access & IB_ZERO_BASED);
	case UROCE_KEY_WINDOW_2:
		/* o10-37.2.30, 40: from the free state only, never to nothing */
		return key->state == UROCE_KEY_FREE && w->bind.length;
	default:
		return false;
	}
}

/* The region that the window is to be bound to, or NULL */
static struct uroce_mr *bind_region(const struct uroce_bearer *who,
				    const struct uroce_send_wqe *w, u64 *offset)
{
	int access = 0;

	/* who may write through it must be allowed to locally (10.6.7.2.1) */
	if (w->bind.access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC))
		access = IB_ACCESS_LOCAL_WRITE;
	return uroce_mr_bind(who, w->bind.lkey, w->remote_addr, w->bind.length,
			     access, offset);
}

/* Writer of the key: let go of what it opens now and open @mr, if any. */
static void rebind(struct uroce_key *key, const struct uroce_bearer *who,
		   const struct uroce_send_wqe *w, struct uroce_mr *mr,
		   u64 offset)
{
	uroce_key_revoke(key, UROCE_KEY_FREE);
	key->value = w->rkey;
	key->qpn = who->qpn;
	key->mr = mr;
	key->access = w->bind.access & UROCE_ACCESS_REMOTE;
	key->iova = w->bind.access & IB_ZERO_BASED ? 0 : w->remote_addr;
	key->length = w->bind.length;
	key->offset = offset;
	if (mr)
		uroce_key_validate(key);
}

int uroce_mw_bind(const struct uroce_bearer *who,
		  const struct uroce_send_wqe *w)
{
	struct uroce_mr *mr = NULL, *old = NULL;
	struct uroce_key *key;
	int err = -EINVAL;
	u64 offset = 0;

	rcu_read_lock();
	key = uroce_key_find(who->dev, w->rkey);
	if (!key)
		goto out;
	/* two locks one after the other, never one in the other */
	if (w->bind.length) {
		mr = bind_region(who, w, &offset);
		if (!mr)
			goto out;
	}

	old = mr;	/* what to let go of: the new one when refused */
	spin_lock(&key->lock);
	if (bind_ok(key, who, w)) {
		old = key->mr;
		rebind(key, who, w, mr, offset);
		err = 0;
	}
	spin_unlock(&key->lock);
	if (old)
		uroce_mr_unbind(old);
out:
	rcu_read_unlock();
	return err;
}
