// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* See domain.hpp. Thread and parent domains are unknown to the kernel. */
#include "objects.hpp"

namespace uroce {

namespace {

/* Of memory from a custom allocator: no two objects on a cache line */
constexpr size_t ALIGNMENT = 64;

template <class T>
void hold(T *domain)
{
	__atomic_fetch_add(&domain->refs, 1, __ATOMIC_RELAXED);
}

template <class T>
void let_go(T *domain)
{
	__atomic_fetch_sub(&domain->refs, 1, __ATOMIC_RELEASE);
}

template <class T>
bool is_held(const T *domain)
{
	return load_acquire(&domain->refs);
}

bool parent_domain_ok(const struct ibv_context *context,
		      const struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known =
		IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;

	if ((attr->comp_mask & ~known) || !attr->pd || attr->pd->context != context)
		return false;
	if (to_pd(attr->pd)->protection || (attr->td && attr->td->context != context))
		return false;
	return !(attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) ||
	       (attr->alloc && attr->free);
}

} /* namespace */

struct ibv_pd *alloc_pd(struct ibv_context *context)
{
	Cmd<struct ib_uverbs_alloc_pd> cmd = {};
	struct ib_uverbs_alloc_pd_resp resp = {};
	Pd *pd = alloc_zeroed<Pd>();
	int err;

	if (!pd)
		return nullptr;

	err = ibv_cmd_alloc_pd(context, &pd->pd, cmd_core<struct ibv_alloc_pd>(cmd), sizeof(cmd),
			       &resp, sizeof(resp));
	if (err) {
		free(pd);
		errno = err;
		return nullptr;
	}
	return &pd->pd;
}

int dealloc_pd(struct ibv_pd *ibpd)
{
	Pd *pd = to_pd(ibpd);
	int err;

	if (is_held(pd))
		return EBUSY;
	if (pd->protection) {
		if (pd->td)
			let_go(pd->td);
		let_go(pd->protection);
	} else {
		err = ibv_cmd_dealloc_pd(ibpd);
		if (err)
			return err;
	}
	free(pd);
	return 0;
}

struct ibv_td *alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	Td *td;

	if (attr->comp_mask) {
		errno = EINVAL;
		return nullptr;
	}
	td = alloc_zeroed<Td>();
	if (!td)
		return nullptr;
	td->td.context = context;
	return &td->td;
}

int dealloc_td(struct ibv_td *ibtd)
{
	Td *td = to_td(ibtd);

	if (is_held(td))
		return EBUSY;
	free(td);
	return 0;
}

/* To the kernel it is its PD: commands name that by the handle. */
struct ibv_pd *alloc_parent_domain(struct ibv_context *context,
				   struct ibv_parent_domain_init_attr *attr)
{
	Pd *pd;

	if (!parent_domain_ok(context, attr)) {
		errno = EINVAL;
		return nullptr;
	}
	pd = alloc_zeroed<Pd>();
	if (!pd)
		return nullptr;

	pd->pd = *attr->pd;
	pd->protection = to_pd(attr->pd);
	hold(pd->protection);
	if (attr->td) {
		pd->td = to_td(attr->td);
		hold(pd->td);
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		pd->alloc = attr->alloc;
		pd->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		pd->pd_context = attr->pd_context;
	return &pd->pd;
}

/* The handle is believed: a wrong one makes commands with the PD fail. */
struct ibv_pd *import_pd(struct ibv_context *context, uint32_t handle)
{
	Pd *pd = alloc_zeroed<Pd>();

	if (!pd)
		return nullptr;
	pd->pd.context = context;
	pd->pd.handle = handle;
	return &pd->pd;
}

void unimport_pd(struct ibv_pd *pd)
{
	free(to_pd(pd));
}

void *origin_alloc(Origin *origin, struct ibv_pd *ibpd, size_t size, ResourceType type)
{
	Pd *pd = is_parent_domain(ibpd) ? to_pd(ibpd) : nullptr;
	void *ptr = IBV_ALLOCATOR_USE_DEFAULT;

	*origin = {pd, type, false};
	if (pd && pd->alloc)
		ptr = pd->alloc(&pd->pd, pd->pd_context, size, ALIGNMENT, type);
	if (ptr == IBV_ALLOCATOR_USE_DEFAULT) {
		ptr = calloc(1, size);
		if (!ptr)
			return nullptr;
	} else if (ptr) {
		origin->is_custom = true;
		memset(ptr, 0, size);
	} else {
		errno = ENOMEM;
		return nullptr;
	}
	if (pd)
		hold(pd);
	return ptr;
}

void origin_free(const Origin &origin, void *ptr)
{
	Pd *pd = origin.domain;

	if (origin.is_custom)
		pd->free(&pd->pd, pd->pd_context, ptr, origin.type);
	else
		free(ptr);
	if (pd)
		let_go(pd);
}

} /* namespace uroce */
