// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "fake_kernel.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <fstream>
#include <string>

#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/rdma_user_ioctl_cmds.h>

namespace fake {

Kernel *kernel;

static const verbs_device_ops *driver;
static constexpr size_t PAGE = 4096;

/* ------------------------------------------------------------------ */
/* Memory                                                             */
/* ------------------------------------------------------------------ */

Kernel::Kernel()
{
	fd = memfd_create("fake-uroce", 0);
	kernel = this;
}

Kernel::~Kernel()
{
	for (const auto &region : regions)
		munmap(region.first, region.second);
	close(fd);
	kernel = nullptr;
}

void *Kernel::new_region(size_t len, __u64 *offset)
{
	len = (len + PAGE - 1) / PAGE * PAGE;
	*offset = end;
	end += len + PAGE; /* a hole: mappings side by side stay two */
	EXPECT_EQ(ftruncate(fd, static_cast<off_t>(end)), 0);
	void *p = mmap(nullptr, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       static_cast<off_t>(*offset));
	EXPECT_NE(p, MAP_FAILED);
	regions.emplace_back(p, len);
	return p;
}

int count_mappings()
{
	std::ifstream maps("/proc/self/maps");
	std::string line;
	int n = 0;

	while (std::getline(maps, line))
		n += line.find("fake-uroce") != std::string::npos;
	return n;
}

void KernelCq::complete(uroce_cqe cqe)
{
	uroce_cqe *slot = &cqes[pi & (entries - 1)];

	cqe.owner = slot->owner;
	*slot = cqe;
	__atomic_store_n(&slot->owner, pi / entries + 1, __ATOMIC_RELEASE);
	pi++;
}

uroce_send_wqe *KernelQp::send_wqe(uint32_t index) const
{
	return reinterpret_cast<uroce_send_wqe *>(region + resp.sq_offset +
						  (index & (resp.sq_entries - 1)) * resp.sq_stride);
}

uroce_recv_wqe *KernelQp::recv_wqe(uint32_t index) const
{
	return reinterpret_cast<uroce_recv_wqe *>(region + resp.rq_offset +
						  (index & (resp.rq_entries - 1)) * resp.rq_stride);
}

uroce_cqe KernelQp::sq_cqe(uint32_t index) const
{
	uroce_cqe cqe = {};

	cqe.wr_id = send_wqe(index)->wr_id;
	cqe.qpn = qpn;
	cqe.wqe_index = index;
	cqe.queue = UROCE_CQE_SQ;
	return cqe;
}

uroce_cqe KernelQp::rq_cqe(uint32_t index) const
{
	uroce_cqe cqe = {};

	cqe.wr_id = recv_wqe(index)->wr_id;
	cqe.qpn = qpn;
	cqe.wqe_index = index;
	cqe.opcode = IBV_WC_RECV;
	cqe.queue = UROCE_CQE_RQ;
	return cqe;
}

uroce_recv_wqe *KernelSrq::wqe(uint32_t index) const
{
	return reinterpret_cast<uroce_recv_wqe *>(region + resp.wqe_offset +
						  (index & (resp.entries - 1)) * resp.stride);
}

uroce_cqe KernelSrq::take(uint32_t qpn)
{
	uroce_cqe cqe = {};

	cqe.wr_id = wqe(ctrl->head)->wr_id;
	cqe.qpn = qpn;
	cqe.opcode = IBV_WC_RECV;
	cqe.queue = UROCE_CQE_SRQ;
	__atomic_store_n(&ctrl->head, ctrl->head + 1, __ATOMIC_RELEASE);
	return cqe;
}

/* ------------------------------------------------------------------ */
/* A context                                                          */
/* ------------------------------------------------------------------ */

ProviderTest::ProviderTest()
{
	device = driver->alloc_device(nullptr);
	device->ops = driver;
	device->refcount = 1;
	context = open_context();
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 5, nullptr, nullptr, 0);
	qp = make_qp(cq);
	qpx = ibv_qp_to_qp_ex(qp);
	set_state(qp, IBV_QPS_RTS);
	k.db->need_wakeup = 1;
}

ProviderTest::~ProviderTest()
{
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(k.live_objects, 0);
	EXPECT_EQ(ibv_close_device(context), 0);
	driver->uninit_device(device);
}

ibv_context *ProviderTest::open_context()
{
	/* libibverbs closes the descriptor with the context. */
	verbs_context *vctx = driver->alloc_context(&device->device, dup(k.fd), nullptr);

	return vctx ? &vctx->context : nullptr;
}

ibv_context *ProviderTest::import_context()
{
	verbs_context *vctx = driver->import_context(&device->device, dup(k.fd));

	return vctx ? &vctx->context : nullptr;
}

ibv_qp *ProviderTest::make_qp(ibv_cq *of_cq, bool sig_all, ibv_qp_type type, ibv_srq *srq)
{
	ibv_qp_init_attr_ex attr = {};

	attr.send_cq = of_cq;
	attr.recv_cq = of_cq;
	attr.srq = srq;
	attr.qp_type = type;
	attr.sq_sig_all = sig_all;
	attr.pd = pd;
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = uroce::supported_send_ops(type);
	return ibv_create_qp_ex(context, &attr);
}

void ProviderTest::set_state(ibv_qp *of_qp, ibv_qp_state state)
{
	ibv_qp_attr attr = {};

	attr.qp_state = state;
	ASSERT_EQ(ibv_modify_qp(of_qp, &attr, IBV_QP_STATE), 0);
}

ibv_send_wr ProviderTest::make_send(ibv_wr_opcode opcode, ibv_sge *sge, int num_sge,
				    unsigned int flags)
{
	ibv_send_wr wr = {};

	wr.wr_id = 0x1122334455667788;
	wr.opcode = opcode;
	wr.sg_list = sge;
	wr.num_sge = num_sge;
	wr.send_flags = flags;
	return wr;
}

int ProviderTest::post(ibv_send_wr *wr)
{
	return ibv_post_send(qp, wr, &bad_send);
}

int ProviderTest::post(ibv_recv_wr *wr)
{
	return ibv_post_recv(qp, wr, &bad_recv);
}

} /* namespace fake */

/* ------------------------------------------------------------------ */
/* What the provider links against                                    */
/* ------------------------------------------------------------------ */

using fake::kernel;

/* Response blocks: the driver's part lies behind the core's. */
template <class Drv, class Core>
static Drv *drv_part(Core *resp, size_t resp_size)
{
	EXPECT_EQ(resp_size, sizeof(Core) + sizeof(Drv));
	return reinterpret_cast<Drv *>(reinterpret_cast<unsigned char *>(resp) + sizeof(Core));
}

/* The driver's part of a command is at its end. */
template <class Drv, class Cmd>
static const Drv *request(const Cmd *cmd, size_t cmd_size)
{
	return reinterpret_cast<const Drv *>(reinterpret_cast<const unsigned char *>(cmd) +
					     cmd_size - sizeof(Drv));
}

static int count_command(int err, int delta)
{
	kernel->commands++;
	if (!err)
		kernel->live_objects += delta;
	return err;
}

extern "C" {

void verbs_register_driver_34(const verbs_device_ops *ops)
{
	fake::driver = ops;
}

int ibv_cmd_get_context(verbs_context *, struct ibv_get_context *, size_t cmd_size,
			ib_uverbs_get_context_resp *resp, size_t resp_size)
{
	auto *drv = drv_part<uroce_alloc_ucontext_resp>(resp, resp_size);

	EXPECT_EQ(cmd_size, 16 + sizeof(uroce_alloc_ucontext_req));
	kernel->db = static_cast<uroce_db_region *>(
		kernel->new_region(sizeof(uroce_db_region), &drv->db_mmap_offset));
	drv->db_mmap_len = kernel->mapped_len(sizeof(uroce_db_region));
	drv->db_slots = UROCE_DB_SLOTS;
	kernel->context = *drv;
	return kernel->get_context_err;
}

int ibv_cmd_query_context(ibv_context *, struct ibv_command_buffer *)
{
	return count_command(kernel->get_context_err, 0);
}

int ibv_cmd_query_mr(ibv_pd *pd, verbs_mr *vmr, uint32_t handle)
{
	vmr->ibv_mr.context = pd->context;
	vmr->ibv_mr.pd = pd;
	vmr->ibv_mr.handle = handle;
	return count_command(kernel->simple_err, 0);
}

int ibv_cmd_create_cq(ibv_context *context, int, ibv_comp_channel *, int, ibv_cq *cq,
		      struct ibv_create_cq *cmd, size_t cmd_size, ib_uverbs_create_cq_resp *resp,
		      size_t resp_size)
{
	auto *drv = drv_part<uroce_create_cq_resp>(resp, resp_size);
	size_t len = 4096 + kernel->cq_entries * sizeof(uroce_cqe);

	EXPECT_EQ(cmd_size, 40 + sizeof(uroce_create_cq_req));
	if (count_command(kernel->create_cq_err, 1))
		return kernel->create_cq_err;
	cq->context = context;
	auto *region = static_cast<unsigned char *>(kernel->new_region(len, &drv->mmap_offset));
	drv->mmap_len = kernel->mapped_len(len);
	drv->cqe_offset = 4096;
	drv->cqe_entries = kernel->cq_entries;
	kernel->cqs[cq] = {reinterpret_cast<uroce_cq_ctrl *>(region),
			   reinterpret_cast<uroce_cqe *>(region + 4096), kernel->cq_entries};
	kernel->cqs[cq].flags = request<uroce_create_cq_req>(cmd, cmd_size)->flags;
	return 0;
}

int ibv_cmd_resize_cq(ibv_cq *cq, int cqe, struct ibv_resize_cq *cmd, size_t cmd_size,
		      ib_uverbs_resize_cq_resp *resp, size_t resp_size)
{
	auto *drv = drv_part<uroce_resize_cq_resp>(resp, resp_size);
	auto *req = request<uroce_resize_cq_req>(cmd, cmd_size);
	fake::KernelCq &kcq = kernel->cqs.at(cq);

	EXPECT_EQ(cmd_size, 24 + sizeof(*req));
	kernel->commands++;
	if (req->step == UROCE_RESIZE_CQ_PREPARE) {
		size_t len = 4096 + static_cast<size_t>(cqe) * sizeof(uroce_cqe);

		kcq.next = static_cast<unsigned char *>(kernel->new_region(len, &drv->mmap_offset));
		kcq.next_entries = drv->cqe_entries = static_cast<uint32_t>(cqe);
		drv->mmap_len = kernel->mapped_len(len);
		drv->cqe_offset = 4096;
	} else if (!kernel->resize_commit_err) {
		auto *ctrl = reinterpret_cast<uroce_cq_ctrl *>(kcq.next);

		EXPECT_EQ(ctrl->ci, kcq.ctrl->ci);
		EXPECT_EQ(ctrl->arm, kcq.ctrl->arm);
		ctrl->fired = kcq.ctrl->fired;
		ctrl->first = kcq.pi;
		kcq.ctrl = ctrl;
		kcq.cqes = reinterpret_cast<uroce_cqe *>(kcq.next + 4096);
		kcq.entries = kcq.next_entries;
	} else {
		return kernel->resize_commit_err;
	}
	cq->cqe = static_cast<int>(kcq.entries);
	return 0;
}

int ibv_cmd_modify_cq(ibv_cq *, ibv_modify_cq_attr *, struct ibv_modify_cq *, size_t cmd_size)
{
	EXPECT_EQ(cmd_size, 24 + sizeof(ib_uverbs_ex_modify_cq));
	return count_command(kernel->simple_err, 0);
}

int ibv_cmd_create_qp_ex2(ibv_context *context, verbs_qp *vqp, ibv_qp_init_attr_ex *attr,
			  struct ibv_create_qp_ex *, size_t cmd_size,
			  ib_uverbs_ex_create_qp_resp *resp, size_t resp_size)
{
	auto *drv = drv_part<uroce_create_qp_resp>(resp, resp_size);
	ibv_qp *qp = &vqp->qp;

	EXPECT_EQ(cmd_size, 24 + sizeof(ib_uverbs_ex_create_qp));
	if (count_command(kernel->create_qp_err, 1))
		return kernel->create_qp_err;
	qp->context = context;
	qp->pd = attr->pd;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->srq = attr->srq;
	qp->qp_num = kernel->next_qpn++;
	qp->qp_type = attr->qp_type;
	qp->state = IBV_QPS_RESET;
	vqp->comp_mask = 0;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS)
		kernel->create_flags = attr->create_flags;
	if (attr->qp_type == IBV_QPT_XRC_RECV) /* no queues, nothing to map */
		return 0;
	attr->cap.max_send_wr = kernel->sq_entries;

	drv->max_send_sge = drv->max_recv_sge = kernel->max_sge;
	drv->max_inline = kernel->max_inline;
	drv->sq_offset = 4096;
	drv->sq_entries = kernel->sq_entries;
	drv->sq_stride = 192;
	drv->rq_offset = drv->sq_offset + drv->sq_entries * drv->sq_stride;
	drv->rq_entries = attr->srq ? 0 : kernel->rq_entries;
	drv->rq_stride = 16 + 16 * kernel->max_sge;
	drv->db_slot = 10600 + static_cast<uint32_t>(kernel->qps.size());
	size_t len = drv->rq_offset + drv->rq_entries * drv->rq_stride;
	auto *region = static_cast<unsigned char *>(kernel->new_region(len, &drv->mmap_offset));
	drv->mmap_len = kernel->mapped_len(len);
	kernel->qps[qp] = {qp->qp_num, *drv, reinterpret_cast<uroce_qp_ctrl *>(region), region};
	return 0;
}

int ibv_cmd_modify_qp(ibv_qp *qp, ibv_qp_attr *attr, int mask, struct ibv_modify_qp *,
		      size_t cmd_size)
{
	EXPECT_EQ(cmd_size, sizeof(ib_uverbs_modify_qp) + 8);
	if (!kernel->modify_qp_err && (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET &&
	    kernel->qps.count(qp)) {
		kernel->qps[qp].ctrl->sq_tail = kernel->late_tail;
		kernel->qps[qp].ctrl->rq_tail = kernel->late_tail;
	}
	return count_command(kernel->modify_qp_err, 0);
}

int ibv_cmd_query_qp(ibv_qp *, ibv_qp_attr *, int, ibv_qp_init_attr *, struct ibv_query_qp *,
		     size_t cmd_size)
{
	EXPECT_EQ(cmd_size, 24U);
	return count_command(kernel->simple_err, 0);
}

int ibv_cmd_destroy_qp(ibv_qp *qp)
{
	if (!kernel->destroy_qp_err)
		kernel->qps.erase(qp);
	return count_command(kernel->destroy_qp_err, -1);
}

int ibv_cmd_create_srq_ex(ibv_context *context, verbs_srq *vsrq, ibv_srq_init_attr_ex *attr,
			  struct ibv_create_xsrq *, size_t cmd_size,
			  ib_uverbs_create_srq_resp *resp, size_t resp_size)
{
	auto *drv = drv_part<uroce_create_srq_resp>(resp, resp_size);

	EXPECT_EQ(cmd_size, 8 + sizeof(ib_uverbs_create_xsrq));
	if (count_command(kernel->create_srq_err, 1))
		return kernel->create_srq_err;
	vsrq->srq.context = context;
	vsrq->srq.pd = attr->pd;
	vsrq->srq_type = attr->srq_type;
	vsrq->srq_num = 0x1234;
	attr->attr.max_wr = kernel->srq_entries;
	attr->attr.max_sge = kernel->max_sge;

	drv->wqe_offset = 128;
	drv->entries = kernel->srq_entries;
	drv->stride = 16 + 16 * kernel->max_sge;
	drv->max_sge = kernel->max_sge;
	size_t len = drv->wqe_offset + drv->entries * drv->stride;
	auto *region = static_cast<unsigned char *>(kernel->new_region(len, &drv->mmap_offset));
	drv->mmap_len = kernel->mapped_len(len);
	vsrq->srq.handle = ++kernel->srq_handle;
	kernel->srqs[&vsrq->srq] = {
		*drv, reinterpret_cast<uroce_srq_ctrl *>(region), region, nullptr, 0, 0};
	return 0;
}

int ibv_cmd_open_xrcd(ibv_context *context, verbs_xrcd *xrcd, int xrcd_size, ibv_xrcd_init_attr *,
		      struct ibv_open_xrcd *, size_t cmd_size, ib_uverbs_open_xrcd_resp *,
		      size_t resp_size)
{
	EXPECT_EQ(xrcd_size, 16);
	EXPECT_EQ(cmd_size, 8 + sizeof(ib_uverbs_open_xrcd));
	EXPECT_EQ(resp_size, 4U);
	xrcd->xrcd.context = context;
	return count_command(kernel->simple_err, 1);
}

int ibv_cmd_close_xrcd(verbs_xrcd *)
{
	return count_command(kernel->simple_err, -1);
}

int ibv_cmd_open_qp(ibv_context *context, verbs_qp *vqp, int qp_size, ibv_qp_open_attr *attr,
		    struct ibv_open_qp *, size_t cmd_size, ib_uverbs_create_qp_resp *,
		    size_t resp_size)
{
	EXPECT_EQ(qp_size, 368);
	EXPECT_EQ(cmd_size, 8 + sizeof(ib_uverbs_open_qp));
	EXPECT_EQ(resp_size, 32U);
	vqp->qp.context = context;
	vqp->qp.qp_num = attr->qp_num;
	vqp->qp.qp_type = attr->qp_type;
	vqp->qp.state = IBV_QPS_UNKNOWN;
	return count_command(kernel->create_qp_err, 1);
}

int ibv_cmd_modify_srq(ibv_srq *, ibv_srq_attr *, int, struct ibv_modify_srq *, size_t cmd_size)
{
	EXPECT_EQ(cmd_size, 8 + sizeof(ib_uverbs_modify_srq));
	return count_command(kernel->simple_err, 0);
}

int ibv_cmd_query_srq(ibv_srq *, ibv_srq_attr *, struct ibv_query_srq *, size_t cmd_size)
{
	EXPECT_EQ(cmd_size, 8 + sizeof(ib_uverbs_query_srq));
	return count_command(kernel->simple_err, 0);
}

int ibv_cmd_destroy_srq(ibv_srq *srq)
{
	if (!kernel->destroy_srq_err)
		kernel->srqs.erase(srq);
	return count_command(kernel->destroy_srq_err, -1);
}

int ibv_cmd_destroy_cq(ibv_cq *cq)
{
	kernel->cqs.erase(cq);
	return count_command(0, -1);
}

int ibv_cmd_query_device_any(ibv_context *, const ibv_query_device_ex_input *, ibv_device_attr_ex *,
			     size_t, ib_uverbs_ex_query_device_resp *resp, size_t *resp_size)
{
	EXPECT_EQ(*resp_size, sizeof(*resp));
	resp->base.fw_ver = 0x000100020003;
	return count_command(kernel->simple_err, 0);
}

int ibv_cmd_query_port(ibv_context *, uint8_t, ibv_port_attr *, struct ibv_query_port *,
		       size_t cmd_size)
{
	EXPECT_EQ(cmd_size, 24U);
	return count_command(kernel->simple_err, 0);
}

int ibv_cmd_alloc_pd(ibv_context *context, ibv_pd *pd, struct ibv_alloc_pd *, size_t cmd_size,
		     ib_uverbs_alloc_pd_resp *, size_t)
{
	EXPECT_EQ(cmd_size, 16U);
	pd->context = context;
	return count_command(kernel->simple_err, 1);
}

int ibv_cmd_dealloc_pd(ibv_pd *)
{
	return count_command(kernel->simple_err, -1);
}

int ibv_cmd_reg_mr(ibv_pd *pd, void *, size_t, uint64_t, int, verbs_mr *vmr, struct ibv_reg_mr *,
		   size_t cmd_size, ib_uverbs_reg_mr_resp *, size_t)
{
	EXPECT_EQ(cmd_size, 48U);
	vmr->ibv_mr.context = pd->context;
	return count_command(kernel->simple_err, 1);
}

int ibv_cmd_rereg_mr(verbs_mr *vmr, uint32_t, void *, size_t, uint64_t, int, ibv_pd *,
		     struct ibv_rereg_mr *, size_t cmd_size, ib_uverbs_rereg_mr_resp *resp,
		     size_t resp_size)
{
	EXPECT_EQ(cmd_size, 56U);
	EXPECT_EQ(resp_size, sizeof(*resp));
	EXPECT_EQ(vmr->ibv_mr.context, kernel->db ? vmr->ibv_mr.pd->context : nullptr);
	return count_command(kernel->simple_err, 0);
}

int ibv_cmd_advise_mr(ibv_pd *, ibv_advise_mr_advice, uint32_t, ibv_sge *, uint32_t)
{
	return count_command(kernel->simple_err, 0);
}

int ibv_cmd_alloc_mw(ibv_pd *pd, ibv_mw_type type, ibv_mw *mw, struct ibv_alloc_mw *,
		     size_t cmd_size, ib_uverbs_alloc_mw_resp *, size_t)
{
	EXPECT_EQ(cmd_size, 24U);
	mw->context = pd->context;
	mw->pd = pd;
	mw->type = type;
	mw->rkey = 0x1234ff;
	return count_command(kernel->simple_err, 1);
}

int ibv_cmd_dealloc_mw(ibv_mw *)
{
	return count_command(kernel->simple_err, -1);
}

int ibv_cmd_dereg_mr(verbs_mr *)
{
	return count_command(kernel->simple_err, -1);
}

int ibv_cmd_attach_mcast(ibv_qp *, const ibv_gid *, uint16_t)
{
	return count_command(kernel->simple_err, 1);
}

int ibv_cmd_detach_mcast(ibv_qp *, const ibv_gid *, uint16_t)
{
	return count_command(kernel->simple_err, -1);
}

int ibv_cmd_create_ah(ibv_pd *pd, ibv_ah *ah, ibv_ah_attr *, ib_uverbs_create_ah_resp *resp,
		      size_t resp_size)
{
	auto *drv = drv_part<uroce_create_ah_resp>(resp, resp_size);

	ah->context = pd->context;
	drv->handle = ++kernel->ah_handle;
	return count_command(kernel->simple_err, 1);
}

int ibv_cmd_destroy_ah(ibv_ah *)
{
	return count_command(kernel->simple_err, -1);
}

static int resize_srq(const ib_uverbs_ioctl_hdr *hdr)
{
	EXPECT_EQ(hdr->num_attrs, 3);
	EXPECT_EQ(hdr->attrs[0].attr_id, UROCE_ATTR_SRQ_RESIZE_HANDLE);
	EXPECT_EQ(hdr->attrs[1].attr_id, UROCE_ATTR_SRQ_RESIZE_REQ);
	EXPECT_EQ(hdr->attrs[2].attr_id, UROCE_ATTR_SRQ_RESIZE_RESP);

	auto *req = reinterpret_cast<const uroce_resize_srq_req *>(hdr->attrs[1].data);
	auto *resp = reinterpret_cast<uroce_resize_srq_resp *>(hdr->attrs[2].data);
	auto found = std::find_if(kernel->srqs.begin(), kernel->srqs.end(), [&](auto &entry) {
		return entry.first->handle == hdr->attrs[0].data;
	});
	EXPECT_NE(found, kernel->srqs.end());
	fake::KernelSrq &srq = found->second;

	kernel->commands++;
	if (req->step == UROCE_RESIZE_SRQ_PREPARE && kernel->resize_prepare_err) {
		errno = kernel->resize_prepare_err;
		return -1;
	}
	if (req->step == UROCE_RESIZE_SRQ_PREPARE) {
		size_t len = 128 + static_cast<size_t>(req->max_wr) * srq.resp.stride;

		srq.next =
			static_cast<unsigned char *>(kernel->new_region(len, &resp->mmap_offset));
		srq.next_entries = resp->entries = req->max_wr;
		resp->mmap_len = kernel->mapped_len(len);
		resp->wqe_offset = 128;
		if (kernel->resize_takes)
			srq.take(0);
	} else if (!kernel->resize_commit_err) {
		auto *ctrl = reinterpret_cast<uroce_srq_ctrl *>(srq.next);

		EXPECT_EQ(ctrl->tail, srq.ctrl->tail);
		ctrl->head = srq.ctrl->head;
		srq.ctrl = ctrl;
		srq.region = srq.next;
		srq.resp.entries = srq.next_entries;
		if (req->flags & UROCE_RESIZE_SRQ_LIMIT)
			srq.limit = req->srq_limit;
	} else {
		errno = kernel->resize_commit_err;
		return -1;
	}
	return 0;
}

/* Our own methods; everything else goes to the real kernel. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list args;

	va_start(args, request);
	void *arg = va_arg(args, void *);
	va_end(args);

	auto *hdr = static_cast<const ib_uverbs_ioctl_hdr *>(arg);

	if (request == RDMA_VERBS_IOCTL && hdr->object_id == UVERBS_OBJECT_SRQ)
		return resize_srq(hdr);
	if (request != RDMA_VERBS_IOCTL || hdr->object_id != UROCE_OBJECT_DOORBELL)
		return static_cast<int>(syscall(SYS_ioctl, fd, request, arg));
	if (hdr->method_id == UROCE_METHOD_DOORBELL_QUERY) {
		const ib_uverbs_attr &out = hdr->attrs[0];

		EXPECT_EQ(hdr->num_attrs, 1);
		EXPECT_EQ(out.attr_id, UROCE_ATTR_DOORBELL_QUERY_RESP);
		EXPECT_EQ(out.len, sizeof(kernel->context));
		memcpy(reinterpret_cast<void *>(out.data), &kernel->context,
		       sizeof(kernel->context));
		return 0;
	}
	if (kernel->eintr_before_kick) {
		kernel->eintr_before_kick--;
		errno = EINTR;
		return -1;
	}
	auto *bytes = static_cast<const unsigned char *>(arg);
	kernel->kick_commands.emplace_back(bytes, bytes + hdr->length);
	errno = kernel->kick_err;
	return kernel->kick_err ? -1 : 0;
}

} /* extern "C" */
