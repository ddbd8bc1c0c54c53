// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How libibverbs finds this provider, and the life of a device context.
 */
#include <cstdio>
#include <cstring>

#include <dlfcn.h>

#include "objects.hpp"

#include "method.hpp"

namespace uroce {

namespace {

void free_context(struct ibv_context *context)
{
	Context *ctx = to_context(context);

	ctx->qps.destroy();
	ctx->db_map.unmap();
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
}

/* What is not set here stays libibverbs' own answer: EOPNOTSUPP. */
constexpr struct verbs_context_ops make_context_ops()
{
	struct verbs_context_ops ops = {};

	ops.advise_mr = ibv_cmd_advise_mr;
	ops.alloc_dm = alloc_dm;
	ops.alloc_mw = alloc_mw;
	ops.alloc_parent_domain = alloc_parent_domain;
	ops.alloc_pd = alloc_pd;
	ops.alloc_td = alloc_td;
	ops.attach_mcast = attach_mcast;
	ops.bind_mw = bind_mw;
	ops.close_xrcd = close_xrcd;
	ops.create_ah = create_ah;
	ops.create_cq = create_cq;
	ops.create_cq_ex = create_cq_ex;
	ops.create_qp = create_qp;
	ops.create_qp_ex = create_qp_ex;
	ops.create_srq = create_srq;
	ops.create_srq_ex = create_srq_ex;
	ops.dealloc_mw = dealloc_mw;
	ops.dealloc_pd = dealloc_pd;
	ops.dealloc_td = dealloc_td;
	ops.dereg_mr = dereg_mr;
	ops.destroy_ah = destroy_ah;
	ops.destroy_cq = destroy_cq;
	ops.destroy_qp = destroy_qp;
	ops.destroy_srq = destroy_srq;
	ops.detach_mcast = detach_mcast;
	ops.free_context = free_context;
	ops.free_dm = free_dm;
	ops.get_srq_num = get_srq_num;
	ops.import_dm = import_dm;
	ops.import_mr = import_mr;
	ops.import_pd = import_pd;
	ops.modify_cq = modify_cq;
	ops.modify_qp = modify_qp;
	ops.modify_srq = modify_srq;
	ops.open_qp = open_qp;
	ops.open_xrcd = open_xrcd;
	ops.poll_cq = poll_cq;
	ops.post_recv = post_recv;
	ops.post_send = post_send;
	ops.post_srq_recv = post_srq_recv;
	ops.query_device_ex = query_device_ex;
	ops.query_port = query_port;
	ops.query_qp = query_qp;
	ops.query_rt_values = query_rt_values;
	ops.query_srq = query_srq;
	ops.reg_dm_mr = reg_dm_mr;
	ops.reg_dmabuf_mr = reg_dmabuf_mr;
	ops.reg_mr = reg_mr;
	ops.req_notify_cq = req_notify_cq;
	ops.rereg_mr = rereg_mr;
	ops.resize_cq = resize_cq;
	ops.unimport_dm = unimport_dm;
	ops.unimport_mr = unimport_mr;
	ops.unimport_pd = unimport_pd;
	return ops;
}

constexpr struct verbs_context_ops context_ops = make_context_ops();

/* 0 or errno */
int map_doorbells(Context *ctx, int cmd_fd, const struct uroce_alloc_ucontext_resp &resp)
{
	int err = ctx->db_map.map(cmd_fd, resp.db_mmap_offset, resp.db_mmap_len);

	if (!err)
		ctx->db = ctx->db_map.at<struct uroce_db_region>(0);
	return err;
}

/* Opens the kernel's side of the context; 0 or errno. */
int connect_context(Context *ctx, int cmd_fd)
{
	DrvCmd<struct ib_uverbs_get_context, struct uroce_alloc_ucontext_req> cmd = {};
	DrvResp<struct ib_uverbs_get_context_resp, struct uroce_alloc_ucontext_resp> resp = {};
	int err;

	err = ibv_cmd_get_context(&ctx->vctx, cmd_core<struct ibv_get_context>(cmd), sizeof(cmd),
				  cmd_core<struct ib_uverbs_get_context_resp>(resp), sizeof(resp));
	return err ? err : map_doorbells(ctx, cmd_fd, resp.drv);
}

/* Joins what another context, perhaps another process, has opened; 0 or errno. */
int join_context(Context *ctx, int cmd_fd)
{
	Method<1> method(UROCE_OBJECT_DOORBELL, UROCE_METHOD_DOORBELL_QUERY);
	struct uroce_alloc_ucontext_resp resp = {};
	struct ib_uverbs_attr *out = method.attr(0, UROCE_ATTR_DOORBELL_QUERY_RESP);
	int err;

	err = ibv_cmd_query_context(&ctx->vctx.context, nullptr);
	if (err)
		return err;
	out->len = sizeof(resp);
	out->data = reinterpret_cast<uintptr_t>(&resp);
	err = method.call(cmd_fd);
	return err ? err : map_doorbells(ctx, cmd_fd, resp);
}

/* NULL with errno; connect is connect_context or join_context. */
struct verbs_context *make_context(struct ibv_device *device, int cmd_fd,
				   int (*connect)(Context *ctx, int cmd_fd))
{
	/* The offset travels as a pointer, see pabi. */
	auto *offset = reinterpret_cast<struct verbs_context *>(offsetof(Context, vctx));
	auto *ctx = static_cast<Context *>(_verbs_init_and_alloc_context(
		device, cmd_fd, sizeof(Context), offset, UROCE_DRIVER_ID));
	int err;

	if (!ctx)
		return nullptr;

	err = connect(ctx, cmd_fd);
	if (err) {
		verbs_uninit_context(&ctx->vctx);
		free(ctx);
		errno = err;
		return nullptr;
	}

	ctx->qps.init();
	verbs_set_ops(&ctx->vctx, &context_ops);
	return &ctx->vctx;
}

struct verbs_context *alloc_context(struct ibv_device *device, int cmd_fd, void *)
{
	return make_context(device, cmd_fd, connect_context);
}

struct verbs_context *import_context(struct ibv_device *device, int cmd_fd)
{
	return make_context(device, cmd_fd, join_context);
}

struct verbs_device *alloc_device(struct verbs_sysfs_dev *)
{
	return alloc_zeroed<struct verbs_device>();
}

void uninit_device(struct verbs_device *device)
{
	free(device);
}

/* By driver id alone: users choose the names of devices freely. */
constexpr struct verbs_match_ent match_table[] = {
	{nullptr, uint64_t{UROCE_DRIVER_ID}, 0, 0, VERBS_MATCH_DRIVER_ID},
	{nullptr, {}, 0, 0, VERBS_MATCH_SENTINEL},
};

constexpr struct verbs_device_ops make_device_ops()
{
	struct verbs_device_ops ops = {};

	ops.name = "uroce";
	ops.match_min_abi_version = UROCE_ABI_VERSION;
	ops.match_max_abi_version = UROCE_ABI_VERSION;
	ops.match_table = match_table;
	ops.alloc_context = alloc_context;
	ops.import_context = import_context;
	ops.alloc_device = alloc_device;
	ops.uninit_device = uninit_device;
	return ops;
}

constexpr struct verbs_device_ops device_ops = make_device_ops();

/*
 * The rdma-core series of the libibverbs that loads this, by the name of its file
 * (libibverbs.so.1.14.44.0); 0 if that does not tell. A symbol that no program uses: the address
 * of one that does may be the program's own.
 */
unsigned int loaded_series()
{
	unsigned int series = 0;
	char *path, *name;
	Dl_info info;

	if (!dladdr(reinterpret_cast<void *>(verbs_set_ops), &info))
		return 0;
	path = realpath(info.dli_fname, nullptr);
	if (!path)
		return 0;
	name = strrchr(path, '/');
	if (!name || sscanf(name, "/libibverbs.so.%*u.%*u.%u", &series) != 1)
		series = 0;
	free(path);
	return series;
}

/*
 * libibverbs loads the library for what this does. Its private ABI changes without a new symbol
 * version: what was built for another series must not run.
 */
__attribute__((constructor)) void register_driver()
{
	unsigned int series = loaded_series();

	if (series && series != UROCE_RDMA_CORE_SERIES) {
		fprintf(stderr,
			"uroce: the provider was built for rdma-core %d, this is %u: build it anew\n",
			UROCE_RDMA_CORE_SERIES, series);
		return;
	}
	UROCE_REGISTER_DRIVER(&device_ops);
}

} /* namespace */

} /* namespace uroce */
