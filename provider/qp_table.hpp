// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * From QP numbers to the QPs of one context, for polling: a CQE carries a
 * number and retires WQEs of that QP.
 *
 * find() takes no lock. It may be called for a QP that is in the table and
 * stays there during the call. Polling keeps this rule: a CQE is looked up
 * under the lock of its CQ, and a QP leaves the table only after its CQEs were
 * taken out under that lock (Qp destruction, qp.cpp).
 */
#ifndef UROCE_QP_TABLE_HPP
#define UROCE_QP_TABLE_HPP

#include <cstdint>

#include <pthread.h>

namespace uroce {

struct Qp;

class QpTable {
public:
	/* The table must be zeroed memory. */
	void init();
	/* QPs may be left in it, if destroying them failed (device gone). */
	void destroy();

	Qp *find(uint32_t qpn) const;

	/*
	 * 0 or ENOMEM. The kernel may give a number to a new QP as soon as it
	 * destroyed the old one, before the provider is through with that:
	 * waits until the old one has left.
	 */
	int insert(uint32_t qpn, Qp *qp);
	void erase(uint32_t qpn);

private:
	static constexpr uint32_t QPN_BITS = 24;
	static constexpr uint32_t LEAF_BITS = 12;
	static constexpr uint32_t LEAF_SIZE = 1U << LEAF_BITS;
	static constexpr uint32_t NUM_LEAVES = 1U << (QPN_BITS - LEAF_BITS);

	struct Leaf {
		uint32_t used; /* QPs in it; under lock */
		Qp *qps[LEAF_SIZE];
	};

	static uint32_t leaf_of(uint32_t qpn)
	{
		return (qpn >> LEAF_BITS) % NUM_LEAVES;
	}

	Leaf *leaves[NUM_LEAVES]; /* allocated with the first QP in it, freed with the last */
	pthread_mutex_t lock;
	pthread_cond_t erased;
};

} /* namespace uroce */

#endif /* UROCE_QP_TABLE_HPP */
