// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Entry points of the RDMA core; the work is done by the objects. */
#include <linux/slab.h>
#include <rdma/uverbs_std_types.h>
#include "device.h"
#include "dm.h"
#include "dmabuf.h"
#include "engine.h"
#include "kpost.h"
#include "mcast.h"
#include "mr.h"
#include "mw.h"
#include "notifier.h"
#include "odp.h"
#include "qp.h"
#include "srq.h"
#include "verbs.h"

#define UVERBS_MODULE_NAME uroce
#include <rdma/uverbs_named_ioctl.h>

/* ---- queue pairs ---- */

static int create_check(struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	u32 flags = init->qp_type == IB_QPT_UD ?
		    IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK : 0;

	if (init->create_flags & ~flags)
		return -EOPNOTSUPP;
	if (init->qp_type == IB_QPT_GSI)
		return udata || init->srq ? -EINVAL : 0;
	if (init->rwq_ind_tbl)
		return -EOPNOTSUPP;

	switch (init->qp_type) {
	case IB_QPT_RC:
	case IB_QPT_UC:
	case IB_QPT_UD:
		if (init->srq && init->srq->srq_type != IB_SRQT_BASIC)
			return -EINVAL;
		return init->send_cq && init->recv_cq ? 0 : -EINVAL;
	case IB_QPT_XRC_INI:
		if (!udata)	/* no WR of the kernel's says where to */
			return -EOPNOTSUPP;
		return init->send_cq && !init->srq ? 0 : -EINVAL;
	case IB_QPT_XRC_TGT:	/* of no process: shared, without udata */
		return init->xrcd && !init->srq ? 0 : -EINVAL;
	default:
		return -EOPNOTSUPP;
	}
}

static int create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		     struct ib_udata *udata)
{
	struct uroce_ibqp *shell = container_of(ibqp, struct uroce_ibqp, ib);
	struct uroce_create_qp_resp resp = {};
	struct uroce_ucontext *uctx;
	struct uroce_qp *qp;
	int err;

	err = create_check(init, udata);
	if (err)
		return err;
	if (udata && udata->outlen < sizeof(resp))
		return -EINVAL;
	uctx = rdma_udata_to_drv_context(udata, struct uroce_ucontext, ib);

	qp = kzalloc(sizeof(*qp), GFP_KERNEL_ACCOUNT);
	if (!qp)
		return -ENOMEM;
	shell->qp = qp;
	qp->ib = ibqp;
	uroce_engine_qp_init(qp);

	err = uroce_qp_init(qp, to_udev(ibqp->device), init, uctx, &resp);
	if (err) {
		kfree(qp);
		return err;
	}
	if (udata)
		err = ib_copy_to_udata(udata, &resp, sizeof(resp));
	/* last: from here on others find it */
	if (!err)
		err = uroce_qp_publish(qp);
	if (err) {
		if (uctx)
			uroce_slot_put(uctx, qp->slot);
		uroce_qp_free(qp);
	}
	return err;
}

static int modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		     struct ib_udata *udata)
{
	struct uroce_qp *qp = to_uqp(ibqp);
	int err;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;

	mutex_lock(&qp->mutex);
	uroce_engine_freeze(qp);
	uroce_engine_flush_sq(qp);
	err = uroce_qp_modify(qp, attr, mask);
	uroce_engine_thaw(qp);
	mutex_unlock(&qp->mutex);
	return err;
}

static int query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_qp_init_attr *init)
{
	struct uroce_qp *qp;

	/*
	 * The core asks for "rdma resource show", too, which some kernels keep
	 * away from destroy and some do not.
	 */
	rcu_read_lock();
	qp = to_uqp(ibqp);
	if (qp && !uroce_qp_try_get(qp))
		qp = NULL;
	rcu_read_unlock();
	if (!qp)
		return -EAGAIN;	/* going: "rdma resource" skips it */

	mutex_lock(&qp->mutex);
	uroce_qp_query(qp, attr, init);
	mutex_unlock(&qp->mutex);
	uroce_qp_put(qp);
	return 0;
}

/* Nothing that kernel consumers still have to do leads to the QP. May sleep. */
static void forget_completions(struct uroce_qp *qp)
{
	if (qp->send_cq)
		uroce_cq_forget(qp->send_cq, qp->ib);
	if (qp->recv_cq)
		uroce_cq_forget(qp->recv_cq, qp->ib);
	/*
	 * The MAD layer destroys its QP before its CQ, from whose completions
	 * it posts to the QP: none is left, one may be in its hands.
	 */
	if (qp->type == IB_QPT_GSI)
		uroce_cq_flush_handler(qp->recv_cq);
}

static int destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct uroce_qp *qp = to_uqp(ibqp);

	/* no new references, no new owners, then no old ones */
	uroce_qp_unpublish(qp);
	mutex_lock(&qp->mutex);
	uroce_engine_qp_stop(qp);
	mutex_unlock(&qp->mutex);
	uroce_qp_put(qp);
	wait_for_completion(&qp->freed);
	forget_completions(qp);
	uroce_engine_qp_gone(qp);
	/* left-over work may have begun to hold back an event meanwhile */
	forget_completions(qp);
	WRITE_ONCE(container_of(ibqp, struct uroce_ibqp, ib)->qp, NULL);
	uroce_qp_free(qp);
	return 0;
}

/* ---- kick ---- */

static int UVERBS_HANDLER(UROCE_METHOD_KICK)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *ibuctx = ib_uverbs_get_ucontext(attrs);
	struct uroce_ucontext *uctx;
	struct uroce_qp *qp;
	u32 slot;
	int err;

	if (IS_ERR(ibuctx))
		return PTR_ERR(ibuctx);
	err = uverbs_copy_from(&slot, attrs, UROCE_ATTR_KICK_SLOT);
	if (err)
		return err;
	if (slot >= UROCE_DB_SLOTS)
		return -EINVAL;
	uctx = to_uctx(ibuctx);

	rcu_read_lock();
	qp = xa_load(&uctx->slots, slot);
	if (qp && !uroce_qp_try_get(qp))
		qp = NULL;
	rcu_read_unlock();
	if (!qp)
		return -EINVAL;

	uroce_slot_clear(uctx, slot);
	uroce_engine_doorbell(qp);
	uroce_qp_put(qp);
	return 0;
}

DECLARE_UVERBS_NAMED_METHOD(
	UROCE_METHOD_KICK,
	UVERBS_ATTR_PTR_IN(UROCE_ATTR_KICK_SLOT, UVERBS_ATTR_TYPE(u32),
			   UA_MANDATORY));

static int UVERBS_HANDLER(UROCE_METHOD_DOORBELL_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *ibuctx = ib_uverbs_get_ucontext(attrs);
	struct uroce_alloc_ucontext_resp resp;

	if (IS_ERR(ibuctx))
		return PTR_ERR(ibuctx);
	uroce_ucontext_describe(to_uctx(ibuctx), &resp);
	return uverbs_copy_to_struct_or_zero(attrs,
					     UROCE_ATTR_DOORBELL_QUERY_RESP,
					     &resp, sizeof(resp));
}

DECLARE_UVERBS_NAMED_METHOD(
	UROCE_METHOD_DOORBELL_QUERY,
	UVERBS_ATTR_PTR_OUT(UROCE_ATTR_DOORBELL_QUERY_RESP,
			    UVERBS_ATTR_TYPE(struct uroce_alloc_ucontext_resp),
			    UA_MANDATORY));

DECLARE_UVERBS_GLOBAL_METHODS(UROCE_OBJECT_DOORBELL,
			      &UVERBS_METHOD(UROCE_METHOD_KICK),
			      &UVERBS_METHOD(UROCE_METHOD_DOORBELL_QUERY));

/* ---- device memory ---- */

static int UVERBS_HANDLER(UROCE_METHOD_DM_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *dm = uverbs_attr_get_obj(attrs, UROCE_ATTR_DM_QUERY_HANDLE);
	struct uroce_dm_query_resp resp = {};

	if (IS_ERR(dm))
		return PTR_ERR(dm);
	resp.mmap_offset = uroce_region_offset(to_udm(dm)->region);
	resp.mmap_len = to_udm(dm)->region->len;
	resp.length = dm->length;
	return uverbs_copy_to_struct_or_zero(attrs, UROCE_ATTR_DM_QUERY_RESP,
					     &resp, sizeof(resp));
}

DECLARE_UVERBS_NAMED_METHOD(
	UROCE_METHOD_DM_QUERY,
	UVERBS_ATTR_IDR(UROCE_ATTR_DM_QUERY_HANDLE, UVERBS_OBJECT_DM,
			UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(UROCE_ATTR_DM_QUERY_RESP,
			    UVERBS_ATTR_TYPE(struct uroce_dm_query_resp),
			    UA_MANDATORY));

ADD_UVERBS_METHODS(uroce_dm_methods, UVERBS_OBJECT_DM,
		   &UVERBS_METHOD(UROCE_METHOD_DM_QUERY));

/* ---- shared receive queues ---- */

static int UVERBS_HANDLER(UROCE_METHOD_SRQ_RESIZE)(struct uverbs_attr_bundle *attrs)
{
	struct ib_srq *srq = uverbs_attr_get_obj(attrs, UROCE_ATTR_SRQ_RESIZE_HANDLE);
	struct uroce_resize_srq_resp resp = {};
	struct uroce_resize_srq_req req;
	int err;

	if (IS_ERR(srq))
		return PTR_ERR(srq);
	err = uverbs_copy_from(&req, attrs, UROCE_ATTR_SRQ_RESIZE_REQ);
	if (err)
		return err;
	err = uroce_resize_srq(to_usrq(srq), &req, &resp);
	if (err)
		return err;
	return uverbs_copy_to_struct_or_zero(attrs, UROCE_ATTR_SRQ_RESIZE_RESP,
					     &resp, sizeof(resp));
}

DECLARE_UVERBS_NAMED_METHOD(
	UROCE_METHOD_SRQ_RESIZE,
	UVERBS_ATTR_IDR(UROCE_ATTR_SRQ_RESIZE_HANDLE, UVERBS_OBJECT_SRQ,
			UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(UROCE_ATTR_SRQ_RESIZE_REQ,
			   UVERBS_ATTR_TYPE(struct uroce_resize_srq_req),
			   UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(UROCE_ATTR_SRQ_RESIZE_RESP,
			    UVERBS_ATTR_TYPE(struct uroce_resize_srq_resp),
			    UA_MANDATORY));

ADD_UVERBS_METHODS(uroce_srq_methods, UVERBS_OBJECT_SRQ,
		   &UVERBS_METHOD(UROCE_METHOD_SRQ_RESIZE));

const struct uapi_definition uroce_uapi_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(UROCE_OBJECT_DOORBELL),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &uroce_dm_methods),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_SRQ, &uroce_srq_methods),
	{},
};

static_assert(UROCE_OBJECT_DOORBELL == 1U << UVERBS_ID_NS_SHIFT);

/* ---- the table ---- */

const struct ib_device_ops uroce_dev_ops = {
	.owner = THIS_MODULE,
	.driver_id = (enum rdma_driver_id)UROCE_DRIVER_ID,
	.uverbs_abi_ver = UROCE_ABI_VERSION,
	.device_group = &uroce_device_group,

	.advise_mr = uroce_advise_mr,
	.alloc_dm = uroce_alloc_dm,
	.alloc_hw_port_stats = uroce_alloc_hw_port_stats,
	.alloc_mr = uroce_alloc_mr,
	.alloc_mw = uroce_alloc_mw,
	.alloc_pd = uroce_alloc_pd,
	.alloc_ucontext = uroce_alloc_ucontext,
	.alloc_xrcd = uroce_alloc_xrcd,
	.attach_mcast = uroce_attach_mcast,
	.create_ah = uroce_create_ah,
	.create_cq = uroce_create_cq,
	.create_qp = create_qp,
	.create_srq = uroce_create_srq,
	.create_user_ah = uroce_create_ah,
	.dealloc_dm = uroce_dealloc_dm,
	.dealloc_driver = uroce_dealloc_driver,
	.dealloc_mw = uroce_dealloc_mw,
	.dealloc_pd = uroce_dealloc_pd,
	.dealloc_ucontext = uroce_dealloc_ucontext,
	.dealloc_xrcd = uroce_dealloc_xrcd,
	.dereg_mr = uroce_dereg_mr,
	.destroy_ah = uroce_destroy_ah,
	.destroy_cq = uroce_destroy_cq,
	.destroy_qp = destroy_qp,
	.destroy_srq = uroce_destroy_srq,
	.detach_mcast = uroce_detach_mcast,
	.disassociate_ucontext = uroce_disassociate_ucontext,
	.enable_driver = uroce_enable_driver,
	.get_dev_fw_str = uroce_get_dev_fw_str,
	.get_dma_mr = uroce_get_dma_mr,
	.get_hw_stats = uroce_get_hw_stats,
	.get_link_layer = uroce_get_link_layer,
	.get_port_immutable = uroce_get_port_immutable,
	.map_mr_sg = uroce_map_mr_sg,
	.mmap = uroce_mmap,
	.mmap_free = uroce_mmap_free,
	.modify_cq = uroce_modify_cq,
	.modify_qp = modify_qp,
	.modify_srq = uroce_modify_srq,
	.poll_cq = uroce_poll_cq,
	.post_recv = uroce_post_recv,
	.post_send = uroce_post_send,
	.post_srq_recv = uroce_post_srq_recv,
	.query_ah = uroce_query_ah,
	.query_device = uroce_query_device,
	.query_pkey = uroce_query_pkey,
	.query_port = uroce_query_port,
	.query_qp = query_qp,
	.query_srq = uroce_query_srq,
	.query_ucontext = uroce_query_ucontext,
	.reg_dm_mr = uroce_reg_dm_mr,
	.reg_user_mr = uroce_reg_user_mr,
	.reg_user_mr_dmabuf = uroce_reg_user_mr_dmabuf,
	.req_notify_cq = uroce_req_notify_cq,
	.rereg_user_mr = uroce_rereg_user_mr,
	.resize_cq = uroce_resize_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, uroce_ah, ib),
	INIT_RDMA_OBJ_SIZE(ib_cq, uroce_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_mw, uroce_mw, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, uroce_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, uroce_ibqp, ib),
	INIT_RDMA_OBJ_SIZE(ib_srq, uroce_srq, ib),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, uroce_ucontext, ib),
	INIT_RDMA_OBJ_SIZE(ib_xrcd, uroce_xrcd, ib),
};
