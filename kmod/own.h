/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Ownership of a direction of a QP: one bit of its work word (see qp.h). Never
 * waited for here; who does not get it leaves a mark for who has it.
 */
#ifndef UROCE_OWN_H
#define UROCE_OWN_H

#include "qp.h"

/* Is there work that nobody has taken up? */
static inline bool uroce_own_pending(struct uroce_qp *qp, enum uroce_dir dir)
{
	u32 word = atomic_read(&qp->work[dir]);

	return word & UROCE_WORK_MASK &&
	       !(word & (UROCE_RUN_OWNED | UROCE_RUN_FREEZE));
}

/* Acquires what the previous owner and the markers released. */
static inline bool uroce_own_try(struct uroce_qp *qp, enum uroce_dir dir)
{
	atomic_t *word = &qp->work[dir];
	int old = atomic_read(word);

	do {
		if (old & (UROCE_RUN_OWNED | UROCE_RUN_FREEZE))
			return false;
	} while (!atomic_try_cmpxchg(word, &old, old | UROCE_RUN_OWNED));
	return true;
}

/* Give the direction up, marks and all; the next owner sees what was done. */
static inline void uroce_own_drop(struct uroce_qp *qp, enum uroce_dir dir)
{
	(void)atomic_fetch_andnot_release(UROCE_RUN_OWNED, &qp->work[dir]);
}

/*
 * Give the direction up, unless work was marked meanwhile: then the caller
 * still owns it and has to look. To a freezer it is given up marks and all.
 */
static inline bool uroce_own_release(struct uroce_qp *qp, enum uroce_dir dir)
{
	atomic_t *word = &qp->work[dir];
	int old = atomic_read(word);

	do {
		if (old & UROCE_WORK_MASK && !(old & UROCE_RUN_FREEZE))
			return false;
	} while (!atomic_try_cmpxchg(word, &old, old & ~UROCE_RUN_OWNED));
	return true;
}

#endif
