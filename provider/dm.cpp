// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Device memory: kernel memory, mapped, so that copying is memcpy(). */
#include "objects.hpp"

#include <cstring>

#include "method.hpp"

namespace uroce {

namespace {

/* Offsets and lengths of copies are multiples of this, as on other devices. */
constexpr uint64_t COPY_UNIT = 4;

/* Asks the kernel where to map the memory; 0 or errno. */
int query_dm(int cmd_fd, uint32_t handle, struct uroce_dm_query_resp *resp)
{
	Method<2> method(UVERBS_OBJECT_DM, UROCE_METHOD_DM_QUERY);
	struct ib_uverbs_attr *out;

	method.attr(0, UROCE_ATTR_DM_QUERY_HANDLE)->data = handle;
	out = method.attr(1, UROCE_ATTR_DM_QUERY_RESP);
	out->len = sizeof(*resp);
	out->data = reinterpret_cast<uintptr_t>(resp);
	return method.call(cmd_fd);
}

/* May [offset, offset + length) be copied? */
bool copy_ok(const Dm *dm, uint64_t offset, size_t length)
{
	return !(offset % COPY_UNIT) && !(length % COPY_UNIT) && length <= dm->length &&
	       offset <= dm->length - length;
}

int copy_to_dm(struct ibv_dm *ibdm, uint64_t offset, const void *from, size_t length)
{
	Dm *dm = to_dm(ibdm);

	if (!copy_ok(dm, offset, length))
		return EFAULT;
	memcpy(dm->map.at<unsigned char>(offset), from, length);
	return 0;
}

int copy_from_dm(void *to, struct ibv_dm *ibdm, uint64_t offset, size_t length)
{
	Dm *dm = to_dm(ibdm);

	if (!copy_ok(dm, offset, length))
		return EFAULT;
	memcpy(to, dm->map.at<unsigned char>(offset), length);
	return 0;
}

/* The mapping of memory that the kernel has; 0 or errno. */
int map_dm(Dm *dm, struct ibv_context *context)
{
	struct uroce_dm_query_resp resp = {};
	int err;

	err = query_dm(context->cmd_fd, dm->vdm.handle, &resp);
	if (!err)
		err = dm->map.map(context->cmd_fd, resp.mmap_offset, resp.mmap_len);
	if (err)
		return err;
	dm->length = resp.length;
	dm->vdm.dm.handle = dm->vdm.handle;
	dm->vdm.dm.comp_mask = IBV_DM_MASK_HANDLE;
	dm->vdm.dm.context = context;
	dm->vdm.dm.memcpy_to_dm = copy_to_dm;
	dm->vdm.dm.memcpy_from_dm = copy_from_dm;
	return 0;
}

} /* namespace */

struct ibv_dm *alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	Dm *dm;
	int err;

	if (attr->comp_mask) {
		errno = EINVAL;
		return nullptr;
	}
	dm = alloc_zeroed<Dm>();
	if (!dm)
		return nullptr;

	err = ibv_cmd_alloc_dm(context, attr, &dm->vdm, nullptr);
	if (err)
		goto free_dm;
	err = map_dm(dm, context);
	if (err)
		goto dealloc;
	return &dm->vdm.dm;

dealloc:
	ibv_cmd_free_dm(&dm->vdm);
free_dm:
	free(dm);
	errno = err;
	return nullptr;
}

int free_dm(struct ibv_dm *ibdm)
{
	Dm *dm = to_dm(ibdm);
	int err = ibv_cmd_free_dm(&dm->vdm);

	if (err)
		return err;
	dm->map.unmap();
	free(dm);
	return 0;
}

struct ibv_dm *import_dm(struct ibv_context *context, uint32_t handle)
{
	auto *dm = alloc_zeroed<Dm>();
	int err;

	if (!dm)
		return nullptr;

	dm->vdm.handle = handle;
	err = map_dm(dm, context);
	if (err) {
		free(dm);
		errno = err;
		return nullptr;
	}
	return &dm->vdm.dm;
}

void unimport_dm(struct ibv_dm *ibdm)
{
	Dm *dm = to_dm(ibdm);

	dm->map.unmap();
	free(dm);
}

} /* namespace uroce */
