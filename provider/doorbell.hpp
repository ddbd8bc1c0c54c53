// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Telling the kernel that something was posted: a bit in the shared doorbell
 * region while the device side is awake, a system call when it sleeps.
 */
#ifndef UROCE_DOORBELL_HPP
#define UROCE_DOORBELL_HPP

#include "ring.hpp"

#include "uroce-abi.h"

namespace uroce {

/*
 * Runs the QP in the slot by system call. Nobody is told of an error: the device
 * is going then, and what was published may be carried out even so, so the post
 * cannot be taken back. Whoever polls hears of it.
 */
void kick(int cmd_fd, uint32_t slot);

/*
 * Rings for the QP in the slot, after its tail was published.
 * Ordering pair 2: the atomic OR is the full fence between the tail and the
 * loads behind it. `active` is always set, so that there is one; `summary`
 * mostly is set already.
 */
inline void ring_doorbell(struct uroce_db_region *db, int cmd_fd, uint32_t slot)
{
	const uint32_t word = slot / 64;
	const uint64_t summary_bit = uint64_t{1} << (word % 64);
	auto *summary = &db->summary[word / 64];

	or_seq_cst(&db->active[word], uint64_t{1} << (slot % 64));
	if (!(load_seq_cst(summary) & summary_bit))
		or_seq_cst(summary, summary_bit);

	if (load_seq_cst(&db->need_wakeup))
		kick(cmd_fd, slot);
}

} /* namespace uroce */

#endif /* UROCE_DOORBELL_HPP */
