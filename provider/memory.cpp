// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions and windows. What a window is bound to is the kernel's
 * business; a bind is a WR like others, in wr.cpp.
 */
#include "objects.hpp"

namespace uroce {

namespace {

/* Registers with a command that fills in vmr; NULL with errno. */
template <class Register>
struct ibv_mr *new_mr(Register register_mr)
{
	auto *vmr = alloc_zeroed<struct verbs_mr>();
	int err;

	if (!vmr)
		return nullptr;

	err = register_mr(vmr);
	if (err) {
		free(vmr);
		errno = err;
		return nullptr;
	}
	return &vmr->ibv_mr;
}

} /* namespace */

struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va, int access)
{
	Cmd<struct ib_uverbs_reg_mr> cmd = {};
	struct ib_uverbs_reg_mr_resp resp = {};

	return new_mr([&](struct verbs_mr *vmr) {
		return ibv_cmd_reg_mr(pd, addr, length, hca_va, access, vmr,
				      cmd_core<struct ibv_reg_mr>(cmd), sizeof(cmd), &resp,
				      sizeof(resp));
	});
}

struct ibv_mr *reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
			     int fd, int access)
{
	return new_mr([&](struct verbs_mr *vmr) {
		return ibv_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, vmr);
	});
}

struct ibv_mr *reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset, size_t length,
			 unsigned int access)
{
	return new_mr([&](struct verbs_mr *vmr) {
		return ibv_cmd_reg_dm_mr(pd, &to_dm(dm)->vdm, dm_offset, length, access, vmr,
					 nullptr);
	});
}

/* libibverbs updates addr, length and pd of the MR after this returned. */
int rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
	     int access)
{
	Cmd<struct ib_uverbs_rereg_mr> cmd = {};
	struct ib_uverbs_rereg_mr_resp resp = {};

	return ibv_cmd_rereg_mr(
		vmr, static_cast<uint32_t>(flags), addr, length, reinterpret_cast<uintptr_t>(addr),
		access, pd, cmd_core<struct ibv_rereg_mr>(cmd), sizeof(cmd), &resp, sizeof(resp));
}

int dereg_mr(struct verbs_mr *vmr)
{
	int err = ibv_cmd_dereg_mr(vmr);

	if (!err)
		free(vmr);
	return err;
}

/* Where it lies in memory only its owner knows: addr is NULL. */
struct ibv_mr *import_mr(struct ibv_pd *pd, uint32_t handle)
{
	return new_mr([&](struct verbs_mr *vmr) { return ibv_cmd_query_mr(pd, vmr, handle); });
}

void unimport_mr(struct ibv_mr *mr)
{
	free(mr); /* the first field of its verbs_mr */
}

struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	Cmd<struct ib_uverbs_alloc_mw> cmd = {};
	struct ib_uverbs_alloc_mw_resp resp = {};
	auto *mw = alloc_zeroed<struct ibv_mw>();
	int err;

	if (!mw)
		return nullptr;

	err = ibv_cmd_alloc_mw(pd, type, mw, cmd_core<struct ibv_alloc_mw>(cmd), sizeof(cmd), &resp,
			       sizeof(resp));
	if (err) {
		free(mw);
		errno = err;
		return nullptr;
	}
	return mw;
}

int dealloc_mw(struct ibv_mw *mw)
{
	int err = ibv_cmd_dealloc_mw(mw);

	if (!err)
		free(mw);
	return err;
}

} /* namespace uroce */
