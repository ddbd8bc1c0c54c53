// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What send and receive WQEs have in common. */
#ifndef UROCE_WQE_HPP
#define UROCE_WQE_HPP

#include <cstddef>

#include <infiniband/verbs.h>

#include "uroce-abi.h"

namespace uroce {

/* The elements of a WQE lie behind its header: sizeof(Wqe) bytes. */
template <class Wqe>
void put_sges(Wqe *wqe, const struct ibv_sge *list, size_t num)
{
	auto *sge = reinterpret_cast<struct uroce_sge *>(wqe + 1);

	for (size_t i = 0; i < num; i++, sge++) {
		sge->addr = list[i].addr;
		sge->length = list[i].length;
		sge->lkey = list[i].lkey;
	}
	wqe->num_sge = static_cast<decltype(wqe->num_sge)>(num);
}

} /* namespace uroce */

#endif /* UROCE_WQE_HPP */
