/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Keys: what a 32 bit number opens, for whom, and for how long. Regions
 * (mr.h) and windows (mw.h) are found here and nowhere else.
 *
 * The upper 24 bits of a key are a random index into the device's table; the
 * lower 8 are random at first, and the owner's to choose for windows and
 * fast-register regions. A peer that was not told a key has to guess 32 bits.
 *
 * Who may touch what
 *   The fields under "what it opens" change only in the hands of a writer: it
 *   holds the lock, has taken the state away from VALID, and has waited until
 *   there are no users (uroce_key_revoke()). So they are stable for whoever
 *   holds the lock or is counted as a user of a VALID key, and a key that was
 *   revoked opens nothing any more once that has returned.
 *
 * Lifetime
 *   A key lies in its region, or is a window's; it is freed after a grace
 *   period, so that lookups under RCU are safe. Users are counted for the copy
 *   of one packet, or one piece of a local message, at the most, with BH
 *   disabled: a writer spins for a bounded time and never sleeps. A user must
 *   not take any key's lock.
 */
#ifndef UROCE_KEY_H
#define UROCE_KEY_H

#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

struct uroce_dev;
struct uroce_fault;
struct uroce_mr;

/* Whoever presents a key: a QP, or its scatter and gather lists */
struct uroce_bearer {
	struct uroce_dev *dev;
	struct ib_pd *pd;
	u32 qpn;		/* 0 for lists, which open no windows */
	struct uroce_fault *fault;	/* for memory that is not there yet */
};

enum uroce_key_kind {
	UROCE_KEY_REGION,
	UROCE_KEY_FAST,		/* fast-register region */
	UROCE_KEY_WINDOW_1,
	UROCE_KEY_WINDOW_2,	/* type 2B: for one QP, chosen by the bind */
};

enum uroce_key_state {
	UROCE_KEY_FREE,		/* opens nothing until it is bound or registered */
	UROCE_KEY_VALID,
	UROCE_KEY_PAUSED,	/* for a moment: pages of it are being taken away */
	UROCE_KEY_DEAD,		/* for good; the owner is taking it away */
};

/*
 * Local use, as a right beside enum ib_access_flags: regions have it, windows
 * do not, so that the key of a window is no lkey.
 */
#define UROCE_ACCESS_LOCAL	BIT(30)

/* The rights that have to do with access; others are advice */
#define UROCE_ACCESS_RIGHTS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
				 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC | \
				 IB_ACCESS_MW_BIND)
/* Those that change memory */
#define UROCE_ACCESS_WRITES	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
				 IB_ACCESS_REMOTE_ATOMIC)
#define UROCE_ACCESS_REMOTE	(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
				 IB_ACCESS_REMOTE_ATOMIC)

struct uroce_key {
	enum uroce_key_kind kind;
	enum uroce_key_state state;
	spinlock_t lock;	/* writers; taken with BH disabled */
	atomic_t users;

	/* what it opens */
	u32 value;
	u32 qpn;		/* WINDOW_2: the QP it is bound to */
	struct ib_pd *pd;
	struct uroce_mr *mr;	/* of a window: the region it is bound to */
	int access;		/* enum ib_access_flags and UROCE_ACCESS_LOCAL */
	u64 iova;		/* first address */
	u64 length;		/* bytes; iova + length - 1 does not wrap */
	u64 offset;		/* of iova in the region, bytes */

	struct rcu_head rcu;	/* windows */
};

/* A range that a key has opened, until uroce_key_put() */
struct uroce_grant {
	struct uroce_key *key;
	struct uroce_mr *mr;
	u64 offset;		/* of its start in the region, bytes */
	/* as asked for */
	const struct uroce_bearer *who;
	u32 value;
	u64 va;
	u64 len;
	int access;
};

void uroce_key_init(struct uroce_key *key, enum uroce_key_kind kind,
		    struct ib_pd *pd);

/*
 * Give @key a value and put it into the table: from here on it is found. May
 * sleep. -ENOMEM.
 */
int uroce_key_publish(struct uroce_dev *dev, struct uroce_key *key);
void uroce_key_unpublish(struct uroce_dev *dev, struct uroce_key *key);

/*
 * Key with the index of @value, whatever its lower bits; NULL: none. The
 * caller is in an RCU read section for as long as it uses it.
 */
struct uroce_key *uroce_key_find(struct uroce_dev *dev, u32 value);

/*
 * May @who do all of @access to [@va, @va + @len) by the key @value? This is
 * the one place that says so. The caller holds key->lock or is a user.
 */
bool uroce_key_allows(const struct uroce_key *key,
		      const struct uroce_bearer *who, u32 value, u64 va,
		      u64 len, int access);

/*
 * Open a range for a copy: @access of enum ib_access_flags and
 * UROCE_ACCESS_LOCAL. BH disabled until uroce_key_put(); @who stays as long.
 * Return 0; -EACCES: not allowed; -EAGAIN: not now, a fault has been noted.
 */
int __must_check uroce_key_get(const struct uroce_bearer *who, u32 value,
			       u64 va, u64 len, int access,
			       struct uroce_grant *grant);
void uroce_key_put(const struct uroce_grant *grant);

/* For writers: to @state, not VALID; all users are gone on return. Spins. */
void uroce_key_revoke(struct uroce_key *key, enum uroce_key_state state);
/* For writers: what is in the fields may be used from now on. */
void uroce_key_validate(struct uroce_key *key);

/*
 * Invalidate the key @value by order of the QP @who, the peer's or our own: a
 * type 2 window that is bound to the QP, or a fast-register region of its PD.
 * BH disabled. -EINVAL: the key is not one that may be invalidated by @who.
 */
int uroce_key_invalidate(const struct uroce_bearer *who, u32 value);

#endif
