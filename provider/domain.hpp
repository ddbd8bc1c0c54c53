// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Protection domains, thread domains, and parent domains: a PD together with a
 * thread domain and an allocator of the application's.
 *
 * The rings are memory of the kernel; what the provider itself allocates for an
 * object of a parent domain, and the data path works on, comes from the
 * allocator: Qp, Srq, and Cq where the CQ names a parent domain. These hold their
 * domain, which answers EBUSY to its deallocation until the object has gone.
 */
#ifndef UROCE_DOMAIN_HPP
#define UROCE_DOMAIN_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <infiniband/verbs.h>

#include "uroce-abi.h"

namespace uroce {

/* Promise of the application: one thread at a time uses what belongs to it. */
struct Td {
	struct ibv_td td; /* must be first */
	uint32_t refs; /* parent domains with it; atomic */
};
static_assert(offsetof(Td, td) == 0, "to_td");

struct Pd {
	struct ibv_pd pd; /* must be first */
	uint32_t refs; /* parent domains of it, or objects in it; atomic */

	/* Of a parent domain, constant: */
	Pd *protection; /* NULL: it is a plain PD */
	Td *td; /* or NULL */
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t resource_type); /* NULL: none was given */
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
};
static_assert(offsetof(Pd, pd) == 0, "to_pd");

inline Td *to_td(struct ibv_td *td)
{
	return reinterpret_cast<Td *>(td);
}

inline Pd *to_pd(struct ibv_pd *pd)
{
	return reinterpret_cast<Pd *>(pd);
}

struct ibv_pd *alloc_pd(struct ibv_context *context);
int dealloc_pd(struct ibv_pd *pd);
struct ibv_td *alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int dealloc_td(struct ibv_td *td);
struct ibv_pd *alloc_parent_domain(struct ibv_context *context,
				   struct ibv_parent_domain_init_attr *attr);
struct ibv_pd *import_pd(struct ibv_context *context, uint32_t handle);
void unimport_pd(struct ibv_pd *pd);

/* pd may be NULL. */
inline bool is_parent_domain(struct ibv_pd *pd)
{
	return pd && to_pd(pd)->protection;
}

/* Must objects of the domain be locked? pd may be NULL. */
inline bool needs_lock(struct ibv_pd *pd)
{
	return !pd || !to_pd(pd)->td;
}

/* resource_type of the application's allocator: driver id and, below, what it is for */
enum ResourceType : uint64_t {
	RESOURCE_QP = uint64_t{UROCE_DRIVER_ID} << 32 | 1,
	RESOURCE_CQ = uint64_t{UROCE_DRIVER_ID} << 32 | 2,
	RESOURCE_SRQ = uint64_t{UROCE_DRIVER_ID} << 32 | 3,
};

/* Where an object's memory came from. */
struct Origin {
	Pd *domain; /* held by the object; NULL: no parent domain */
	ResourceType type;
	bool is_custom; /* the application's free takes it back */
};

/* Zeroed memory for an object of a domain; pd may be NULL. NULL with errno. */
void *origin_alloc(Origin *origin, struct ibv_pd *pd, size_t size, ResourceType type);
void origin_free(const Origin &origin, void *ptr);

/* The same for a T, which has a field `origin`. */
template <class T>
T *alloc_in(struct ibv_pd *pd, ResourceType type)
{
	Origin origin;
	auto *object = static_cast<T *>(origin_alloc(&origin, pd, sizeof(T), type));

	if (object)
		object->origin = origin;
	return object;
}

template <class T>
void free_in(T *object)
{
	Origin origin = object->origin;

	origin_free(origin, object);
}

} /* namespace uroce */

#endif /* UROCE_DOMAIN_HPP */
