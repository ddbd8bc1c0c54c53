// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "qp_table.hpp"

#include <cerrno>
#include <cstdlib>

#include "ring.hpp"

namespace uroce {

void QpTable::init()
{
	pthread_mutex_init(&lock, nullptr);
	pthread_cond_init(&erased, nullptr);
}

void QpTable::destroy()
{
	pthread_cond_destroy(&erased);
	pthread_mutex_destroy(&lock);
	for (Leaf *leaf : leaves)
		free(leaf);
}

Qp *QpTable::find(uint32_t qpn) const
{
	/* Pairs with the releases in insert(). */
	const Leaf *leaf = load_acquire(&leaves[leaf_of(qpn)]);

	return leaf ? load_acquire(&leaf->qps[qpn % LEAF_SIZE]) : nullptr;
}

int QpTable::insert(uint32_t qpn, Qp *qp)
{
	Leaf **leaf = &leaves[leaf_of(qpn)];
	int err = 0;

	pthread_mutex_lock(&lock);
	while (*leaf && (*leaf)->qps[qpn % LEAF_SIZE])
		pthread_cond_wait(&erased, &lock);

	if (!*leaf)
		store_release(leaf, static_cast<Leaf *>(calloc(1, sizeof(Leaf))));
	if (*leaf) {
		(*leaf)->used++;
		store_release(&(*leaf)->qps[qpn % LEAF_SIZE], qp);
	} else {
		err = ENOMEM;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

void QpTable::erase(uint32_t qpn)
{
	Leaf **slot = &leaves[leaf_of(qpn)];
	Leaf *leaf;

	pthread_mutex_lock(&lock);
	leaf = *slot;
	store_release(&leaf->qps[qpn % LEAF_SIZE], static_cast<Qp *>(nullptr));
	if (!--leaf->used) {
		store_release(slot, static_cast<Leaf *>(nullptr));
		free(leaf);
	}
	pthread_cond_broadcast(&erased);
	pthread_mutex_unlock(&lock);
}

} /* namespace uroce */
