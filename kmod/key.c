// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Keys; see key.h. */
#include <linux/random.h>
#include "device.h"
#include "fault.h"
#include "key.h"
#include "mr.h"

#define KEY_INDEX_SHIFT	8
#define KEY_TRIES	64

void uroce_key_init(struct uroce_key *key, enum uroce_key_kind kind,
		    struct ib_pd *pd)
{
	key->kind = kind;
	key->state = UROCE_KEY_FREE;
	spin_lock_init(&key->lock);
	atomic_set(&key->users, 0);
	key->pd = pd;
}

int uroce_key_publish(struct uroce_dev *dev, struct uroce_key *key)
{
	int tries, err = -EBUSY;
	u32 index;

	for (tries = 0; tries < KEY_TRIES && err == -EBUSY; tries++) {
		key->value = get_random_u32();
		/*
		 * Owners count the low bits up; some forget that they wrap
		 * before the index does.
		 */
		if (key->kind != UROCE_KEY_REGION)
			key->value &= ~BIT(KEY_INDEX_SHIFT - 1);
		index = key->value >> KEY_INDEX_SHIFT;
		if (!index)	/* no key looks like an unset one */
			continue;
		err = xa_insert(&dev->keys, index, key, GFP_KERNEL_ACCOUNT);
	}
	return err == -EBUSY ? -ENOMEM : err;
}

void uroce_key_unpublish(struct uroce_dev *dev, struct uroce_key *key)
{
	xa_erase(&dev->keys, key->value >> KEY_INDEX_SHIFT);
}

struct uroce_key *uroce_key_find(struct uroce_dev *dev, u32 value)
{
	return xa_load(&dev->keys, value >> KEY_INDEX_SHIFT);
}

bool uroce_key_allows(const struct uroce_key *key,
		      const struct uroce_bearer *who, u32 value, u64 va,
		      u64 len, int access)
{
	return key->value == value && key->pd == who->pd &&
	       (key->kind != UROCE_KEY_WINDOW_2 || key->qpn == who->qpn) &&
	       (key->access & access) == access &&
	       va >= key->iova && len <= key->length &&
	       va - key->iova <= key->length - len;
}

static void key_unuse(struct uroce_key *key)
{
	/* what was done is done before a writer sees us gone */
	(void)atomic_fetch_dec_release(&key->users);
}

/* A user of the key, if it is valid; 0, -EACCES or -EAGAIN: it is paused. */
static int key_use(struct uroce_key *key)
{
	enum uroce_key_state state = READ_ONCE(key->state);

	/* looked at twice, so that a revoked key gets no new users */
	if (state == UROCE_KEY_VALID) {
		atomic_inc(&key->users);
		/* pairs with uroce_key_revoke(): one sees the other */
		smp_mb__after_atomic();
		/* acquires what uroce_key_validate() released */
		state = smp_load_acquire(&key->state);
		if (state == UROCE_KEY_VALID)
			return 0;
		key_unuse(key);
	}
	return state == UROCE_KEY_PAUSED ? -EAGAIN : -EACCES;
}

int uroce_key_get(const struct uroce_bearer *who, u32 value, u64 va, u64 len,
		  int access, struct uroce_grant *grant)
{
	struct uroce_key *key;
	int err = -EACCES;

	lockdep_assert_in_softirq();

	rcu_read_lock();
	key = uroce_key_find(who->dev, value);
	if (key)
		err = key_use(key);
	if (!err && !uroce_key_allows(key, who, value, va, len, access)) {
		key_unuse(key);
		err = -EACCES;
	}
	if (!err)
		*grant = (struct uroce_grant) {
			.key = key,
			.mr = key->mr,
			.offset = key->offset + (va - key->iova),
			.who = who,
			.value = value,
			.va = va,
			.len = len,
			.access = access,
		};
	rcu_read_unlock();

	/* whether it would be allowed, the next attempt will tell */
	return err == -EAGAIN ? uroce_fault_note(who, value, va, len, access) : err;
}

void uroce_key_put(const struct uroce_grant *grant)
{
	key_unuse(grant->key);
}

void uroce_key_revoke(struct uroce_key *key, enum uroce_key_state state)
{
	lockdep_assert_held(&key->lock);

	WRITE_ONCE(key->state, state);
	smp_mb();	/* pairs with key_use(): one sees the other */
	while (atomic_read_acquire(&key->users))
		cpu_relax();
}

void uroce_key_validate(struct uroce_key *key)
{
	lockdep_assert_held(&key->lock);

	/* the fields are there first; pairs with key_use() */
	smp_store_release(&key->state, UROCE_KEY_VALID);
}

/* Is @key one that @who may invalidate (IBTA 10.6.5, 10.6.7.2)? */
static bool may_invalidate(const struct uroce_key *key,
			   const struct uroce_bearer *who, u32 value)
{
	if (key->value != value || key->pd != who->pd)
		return false;
	if (key->kind == UROCE_KEY_WINDOW_2)
		return key->state == UROCE_KEY_VALID && key->qpn == who->qpn;
	/* free already is as good */
	return key->kind == UROCE_KEY_FAST && key->state != UROCE_KEY_DEAD &&
	       !key->mr->windows;
}

int uroce_key_invalidate(const struct uroce_bearer *who, u32 value)
{
	struct uroce_mr *bound = NULL;
	struct uroce_key *key;
	int err = -EINVAL;

	rcu_read_lock();
	key = uroce_key_find(who->dev, value);
	if (key) {
		spin_lock(&key->lock);
		if (may_invalidate(key, who, value)) {
			uroce_key_revoke(key, UROCE_KEY_FREE);
			if (key->kind == UROCE_KEY_WINDOW_2)
				swap(bound, key->mr);
			err = 0;
		}
		spin_unlock(&key->lock);
	}
	if (bound)
		uroce_mr_unbind(bound);
	rcu_read_unlock();
	return err;
}
