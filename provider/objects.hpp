// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the provider keeps for each verbs object, and the entry points that
 * provider.cpp puts into libibverbs' table of operations. An entry point keeps
 * the contract of the verb of its name: a pointer or NULL with errno set, or 0
 * or an errno value.
 *
 * Locks: QpTable's, Cq::lock, Qp::sq_lock, Qp::rq_lock, Srq::lock, and Cq::arm_lock,
 * which may be taken under any of them. A verb holds one of the others at a time,
 * and none during a system call, but for Cq::lock and arm_lock, or Srq::lock, during
 * the one that exchanges the ring, which is short; `resizing` is taken before them.
 *
 * Two pairs of calls return with a lock held: ibv_start_poll() to ibv_end_poll()
 * that of the CQ, ibv_wr_start() to ibv_wr_complete() that of the SQ. Between them
 * the thread may arm the CQ and post to queues whose lock it does not hold, but
 * not poll, resize or destroy that CQ, nor reset or destroy QPs that use it; and
 * threads that do the one within the other must all nest them in the same order.
 */
#ifndef UROCE_OBJECTS_HPP
#define UROCE_OBJECTS_HPP

#include <cstdlib>

#include "pabi.hpp"

#include "domain.hpp"
#include "doorbell.hpp"
#include "lock.hpp"
#include "qp_table.hpp"
#include "ring.hpp"

#include "uroce-abi.h"

namespace uroce {

/* ------------------------------------------------------------------ */
/* Context: provider.cpp                                              */
/* ------------------------------------------------------------------ */

struct Context {
	struct verbs_context vctx; /* ends with the ibv_context */
	Mapping db_map;
	struct uroce_db_region *db;
	QpTable qps;
};

inline Context *to_context(struct ibv_context *context)
{
	return reinterpret_cast<Context *>(reinterpret_cast<char *>(context) -
					   offsetof(Context, vctx.context));
}

/* The kernel is gone for good: nothing posted will ever complete. */
inline bool device_is_gone(struct ibv_context *context)
{
	return load_relaxed(&to_context(context)->db->dead);
}

/* ------------------------------------------------------------------ */
/* Device and port attributes, AH: objects.cpp; PD: domain.hpp         */
/* ------------------------------------------------------------------ */

int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		    struct ibv_device_attr_ex *attr, size_t attr_size);
int query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr);
int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
/* The address itself is the kernel's; WQEs name it by the handle. */
struct Ah {
	struct ibv_ah ah; /* must be first */
	uint32_t handle;
};
static_assert(offsetof(Ah, ah) == 0, "to_ah");

inline Ah *to_ah(struct ibv_ah *ah)
{
	return reinterpret_cast<Ah *>(ah);
}

struct ibv_ah *create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int destroy_ah(struct ibv_ah *ah);

/* ------------------------------------------------------------------ */
/* MR, MW: memory.cpp; device memory: dm.cpp                          */
/* ------------------------------------------------------------------ */

struct Dm {
	struct verbs_dm vdm; /* must be first */
	Mapping map;
	size_t length; /* bytes, as allocated; the mapping is longer */
};
static_assert(offsetof(Dm, vdm) == 0, "to_dm");

inline Dm *to_dm(struct ibv_dm *dm)
{
	return reinterpret_cast<Dm *>(dm);
}

struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va, int access);
struct ibv_mr *reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
			     int fd, int access);
struct ibv_mr *reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset, size_t length,
			 unsigned int access);
int rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
	     int access);
int dereg_mr(struct verbs_mr *vmr);
struct ibv_mr *import_mr(struct ibv_pd *pd, uint32_t handle);
void unimport_mr(struct ibv_mr *mr);
struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int dealloc_mw(struct ibv_mw *mw);
int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
struct ibv_dm *alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int free_dm(struct ibv_dm *dm);
struct ibv_dm *import_dm(struct ibv_context *context, uint32_t handle);
void unimport_dm(struct ibv_dm *dm);

/* ------------------------------------------------------------------ */
/* Completion queue: cq.cpp, cq_resize.cpp                            */
/* ------------------------------------------------------------------ */

struct Cq {
	struct verbs_cq vcq; /* must be first */
	Origin origin;
	Mapping map;
	pthread_mutex_t resizing; /* one resize at a time: the kernel prepares one region */
	Lock lock; /* the fields below, ctrl->ci; start_poll to end_poll */
	Lock arm_lock; /* ctrl->arm; and changes of ctrl are under both */
	struct uroce_cq_ctrl *ctrl;
	struct uroce_cqe *cqes;
	uint32_t entries; /* power of two */
	uint32_t pass_shift; /* entries = 1 << pass_shift */
	uint32_t ci; /* index of the next CQE to poll */
	bool polling; /* between start_poll and end_poll: */
	struct uroce_cqe current; /* the CQE that the readers read */
};
static_assert(offsetof(Cq, vcq) == 0, "to_cq");

inline Cq *to_cq(struct ibv_cq *cq)
{
	return reinterpret_cast<Cq *>(cq);
}

inline Cq *to_cq(struct ibv_cq_ex *cq)
{
	return reinterpret_cast<Cq *>(cq);
}

struct ibv_cq *create_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel,
			 int comp_vector);
struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
int destroy_cq(struct ibv_cq *cq);
int poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int req_notify_cq(struct ibv_cq *cq, int solicited_only);
int resize_cq(struct ibv_cq *cq, int cqe);
int modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);

/* From now on the CQ is there. The CQ is new, or the caller holds its lock. */
void cq_set_ring(Cq *cq, struct uroce_cq_ctrl *ctrl, struct uroce_cqe *cqes, uint32_t entries);

/*
 * Takes the CQEs of a QP that are still in the CQ out of it. The kernel must be through
 * with adding any. Takes cq->lock.
 */
void cq_forget_qp(Cq *cq, uint32_t qpn);

/* ------------------------------------------------------------------ */
/* Shared receive queue: srq.cpp; posting: recv.cpp                   */
/* ------------------------------------------------------------------ */

/* Its slots come free when the kernel takes WQEs, which polling does not notice. */
struct Srq {
	struct verbs_srq vsrq; /* must be first */
	Origin origin;
	Mapping map;
	uint32_t max_sge;
	pthread_mutex_t resizing; /* one resize at a time: the kernel prepares one region */

	Lock lock; /* the two below */
	struct uroce_srq_ctrl *ctrl;
	Ring ring; /* its head is not used: ctrl->head is */
};
static_assert(offsetof(Srq, vsrq) == 0, "to_srq");

inline Srq *to_srq(struct ibv_srq *srq)
{
	return reinterpret_cast<Srq *>(srq);
}

struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask);
int resize_srq(Srq *srq, const struct ibv_srq_attr &attr, bool set_limit); /* srq_resize.cpp */
int query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int destroy_srq(struct ibv_srq *srq);
int get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);
struct ibv_xrcd *open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int close_xrcd(struct ibv_xrcd *xrcd);
int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* ------------------------------------------------------------------ */
/* Queue pair: qp.cpp; posting: wr.cpp, recv.cpp                      */
/* ------------------------------------------------------------------ */

/* The WRs between wr_start and wr_complete or wr_abort. */
struct Batch {
	uint32_t next; /* index behind the last WQE built */
	int err; /* first error, wr_complete returns it */
	struct uroce_send_wqe *open; /* what the setters work on; NULL after an error */
	enum ibv_wr_opcode opcode; /* of that */
};

/*
 * An XRC target QP has no queues, nothing to map, and is not in the table of its
 * context: no completion retires anything of it.
 */
struct Qp {
	struct verbs_qp vqp; /* must be first */
	Origin origin;
	Mapping map;
	struct uroce_qp_ctrl *ctrl;
	uint32_t db_slot;
	uint8_t base_flags; /* UROCE_SEND_* of each WQE: SIGNALED with sq_sig_all */
	/*
	 * To where modify_qp has brought it; atomic. Not vqp.qp.state, which libibverbs
	 * also stores after each query: whichever verb returns last would win. An XRC
	 * target, which has no queues to post to, stays in RESET here.
	 */
	enum ibv_qp_state state;

	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline; /* bytes */

	Lock sq_lock; /* sq but for its head, batch */
	Ring sq;
	Batch batch;

	Lock rq_lock; /* rq but for its head */
	Ring rq;
};
static_assert(offsetof(Qp, vqp) == 0, "to_qp");

inline Qp *to_qp(struct ibv_qp *qp)
{
	return reinterpret_cast<Qp *>(qp);
}

inline Qp *to_qp(struct ibv_qp_ex *qp)
{
	return reinterpret_cast<Qp *>(qp);
}

struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
int query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
	     struct ibv_qp_init_attr *init_attr);
int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);
int destroy_qp(struct ibv_qp *qp);
int attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
int detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* The IBV_QP_EX_WITH_* that the ibv_wr_*() builders can do for a QP type. */
uint64_t supported_send_ops(enum ibv_qp_type type);
/* Fills in the builders of an extended QP. */
void set_wr_builders(struct ibv_qp_ex *qp);

/* ------------------------------------------------------------------ */

/* A zeroed T from the heap, to be freed with free(); NULL with errno. */
template <class T>
T *alloc_zeroed()
{
	return static_cast<T *>(calloc(1, sizeof(T)));
}

} /* namespace uroce */

#endif /* UROCE_OBJECTS_HPP */
