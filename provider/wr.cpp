// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posting sends: work requests become WQEs in the mapped queues, written in place.
 *
 * ibv_post_send() and the ibv_wr_*() builders share the table of operations
 * and the functions under "WQE". A WQE lies behind the published tail until
 * its list is complete, so a half-written one is nobody's business but ours;
 * it never exceeds its slot, whose size the kernel chose to fit max_send_sge
 * and max_inline.
 */
#include "objects.hpp"
#include "wqe.hpp"

#include <cstring>

namespace uroce {

namespace {

/* ------------------------------------------------------------------ */
/* Operations                                                         */
/* ------------------------------------------------------------------ */

struct SendOp {
	bool valid; /* as an ibv_send_wr of some QP type; which ones, the kernel knows */
	bool remote; /* names remote memory: remote_addr, rkey */
	bool atomic; /* compare_add, swap */
	bool imm; /* immediate data */
	bool inv; /* rkey for the remote side to invalidate */
	bool reads; /* fills the local buffers: no inline data */
	bool memory; /* no buffers at all: memory operations, ATOMIC_WRITE */
	uint64_t ops_flag; /* IBV_QP_EX_WITH_* of the builder */
};

constexpr unsigned int NUM_SEND_OPS = IBV_WR_ATOMIC_WRITE + 1;

/* Indexed by enum ibv_wr_opcode. */
constexpr SendOp send_ops[NUM_SEND_OPS] = {
	/* RDMA_WRITE */
	{true, true, false, false, false, false, false, IBV_QP_EX_WITH_RDMA_WRITE},
	/* RDMA_WRITE_WITH_IMM */
	{true, true, false, true, false, false, false, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM},
	/* SEND */
	{true, false, false, false, false, false, false, IBV_QP_EX_WITH_SEND},
	/* SEND_WITH_IMM */
	{true, false, false, true, false, false, false, IBV_QP_EX_WITH_SEND_WITH_IMM},
	/* RDMA_READ */
	{true, true, false, false, false, true, false, IBV_QP_EX_WITH_RDMA_READ},
	/* ATOMIC_CMP_AND_SWP */
	{true, true, true, false, false, true, false, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP},
	/* ATOMIC_FETCH_AND_ADD */
	{true, true, true, false, false, true, false, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD},
	/* LOCAL_INV */
	{true, false, false, false, true, true, true, IBV_QP_EX_WITH_LOCAL_INV},
	/* BIND_MW */
	{true, false, false, false, false, true, true, IBV_QP_EX_WITH_BIND_MW},
	/* SEND_WITH_INV */
	{true, false, false, false, true, false, false, IBV_QP_EX_WITH_SEND_WITH_INV},
	/* TSO, DRIVER1, three unused values */
	{},
	{},
	{},
	{},
	{},
	/* ATOMIC_WRITE: ibv_send_wr has no room for it; its bytes come with the builder */
	{false, true, false, false, false, true, true, IBV_QP_EX_WITH_ATOMIC_WRITE},
};

constexpr unsigned int SUPPORTED_SEND_FLAGS =
	IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;

static_assert(IBV_WR_ATOMIC_WRITE == UROCE_WR_ATOMIC_WRITE &&
		      IBV_WC_ATOMIC_WRITE == UROCE_WC_ATOMIC_WRITE,
	      "opcodes are those of the verbs");
static_assert(IBV_SEND_FENCE == UROCE_SEND_FENCE && IBV_SEND_SIGNALED == UROCE_SEND_SIGNALED &&
		      IBV_SEND_SOLICITED == UROCE_SEND_SOLICITED &&
		      IBV_SEND_INLINE == UROCE_SEND_INLINE,
	      "flags of a WQE are those of the verbs");

/* May WRs be posted to the send queue in this state? Those of SQE and ERR are flushed. */
bool may_send(const Qp *qp)
{
	const enum ibv_qp_state state = load_relaxed(&qp->state);

	return state != IBV_QPS_RESET && state != IBV_QPS_INIT && state != IBV_QPS_RTR;
}

/* ------------------------------------------------------------------ */
/* WQE                                                                */
/* ------------------------------------------------------------------ */

/*
 * Keys of one window have their upper bits in common; the lower eight are the
 * user's to choose.
 */
bool same_window(uint32_t key, uint32_t other)
{
	return !((key ^ other) >> 8);
}

/* What can be wrong with a bind that the kernel does not see; 0 or errno. */
int check_bind(const struct ibv_mw *mw, enum ibv_mw_type type, uint32_t rkey,
	       const struct ibv_mw_bind_info *info)
{
	if (!mw || mw->type != type || !same_window(mw->rkey, rkey))
		return EINVAL;
	return info->length && !info->mr ? EINVAL : 0;
}

void put_bind(struct uroce_send_wqe *wqe, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	wqe->rkey = rkey;
	wqe->remote_addr = info->addr;
	wqe->bind.length = info->length;
	wqe->bind.lkey = info->mr ? info->mr->lkey : 0;
	wqe->bind.access = info->mw_access_flags;
}

/* Starts the WQE at index: everything 0 but for what each one has. */
struct uroce_send_wqe *start_wqe(Qp *qp, uint32_t index, uint64_t wr_id, unsigned int opcode,
				 unsigned int flags)
{
	auto *wqe = qp->sq.slot<struct uroce_send_wqe>(index);

	*wqe = {};
	wqe->wr_id = wr_id;
	wqe->opcode = static_cast<uint8_t>(opcode);
	wqe->flags = static_cast<uint8_t>(flags | qp->base_flags);
	return wqe;
}

/* Where a datagram goes. */
void put_ud(struct uroce_send_wqe *wqe, struct ibv_ah *ah, uint32_t remote_qpn,
	    uint32_t remote_qkey)
{
	wqe->ud.ah = to_ah(ah)->handle;
	wqe->ud.remote_qpn = remote_qpn;
	wqe->ud.remote_qkey = remote_qkey;
}

/* One piece of inline data. The two interfaces name it differently. */
const void *piece_addr(const struct ibv_sge &sge)
{
	return reinterpret_cast<const void *>(sge.addr);
}

const void *piece_addr(const struct ibv_data_buf &buf)
{
	return buf.addr;
}

/*
 * Copies inline data behind the header. The length is checked before anything
 * is written, piece by piece, so that no sum of user values can wrap; false if
 * it exceeds the QP's max_inline.
 */
template <class Piece>
bool put_inline(const Qp *qp, struct uroce_send_wqe *wqe, const Piece *list, size_t num)
{
	auto *to = reinterpret_cast<unsigned char *>(wqe + 1);
	size_t room = qp->max_inline;

	for (size_t i = 0; i < num; i++) {
		if (list[i].length > room)
			return false;
		room -= list[i].length;
	}

	for (size_t i = 0; i < num; i++) {
		if (!list[i].length)
			continue; /* its address may be NULL */
		memcpy(to, piece_addr(list[i]), list[i].length);
		to += list[i].length;
	}
	wqe->flags |= UROCE_SEND_INLINE;
	wqe->inline_len = static_cast<uint32_t>(qp->max_inline - room);
	return true;
}

/* Rings for what was published. No lock is held: this may be a system call. */
void ring(const Qp *qp)
{
	struct ibv_context *context = qp->vqp.qp.context;

	ring_doorbell(to_context(context)->db, context->cmd_fd, qp->db_slot);
}

/* ------------------------------------------------------------------ */
/* ibv_post_send                                                      */
/* ------------------------------------------------------------------ */

/* Everything that can be wrong with a WR but its inline length; 0 or errno. */
int check_send_wr(const Qp *qp, const struct ibv_send_wr *wr)
{
	unsigned int opcode = wr->opcode;

	if (opcode >= NUM_SEND_OPS || !send_ops[opcode].valid)
		return EINVAL;
	if (wr->send_flags & ~SUPPORTED_SEND_FLAGS)
		return EINVAL;
	if (wr->num_sge < 0)
		return EINVAL;
	if (qp->vqp.qp.qp_type == IBV_QPT_UD && !wr->wr.ud.ah)
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE)
		return send_ops[opcode].reads ? EINVAL : 0;
	if (send_ops[opcode].memory)
		return 0; /* its list is nobody's business */
	return static_cast<uint32_t>(wr->num_sge) > qp->max_send_sge ? EINVAL : 0;
}

/*
 * Builds the WQE of a WR at index; 0 or errno. bind_type: windows that a
 * BIND_MW may be for. Caller holds qp->sq_lock.
 */
int build_send(Qp *qp, uint32_t index, const struct ibv_send_wr *wr, enum ibv_mw_type bind_type)
{
	struct uroce_send_wqe *wqe;
	const SendOp *op;
	int err;

	err = check_send_wr(qp, wr);
	if (!err && wr->opcode == IBV_WR_BIND_MW)
		err = check_bind(wr->bind_mw.mw, bind_type, wr->bind_mw.rkey,
				 &wr->bind_mw.bind_info);
	if (err)
		return err;
	if (!qp->sq.has_room(index))
		return ENOMEM;

	op = &send_ops[wr->opcode];
	wqe = start_wqe(qp, index, wr->wr_id, wr->opcode, wr->send_flags);
	if (op->imm)
		wqe->imm_data = wr->imm_data;
	if (op->inv)
		wqe->inv_rkey = wr->invalidate_rkey;
	if (wr->opcode == IBV_WR_BIND_MW) {
		put_bind(wqe, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
	} else if (qp->vqp.qp.qp_type == IBV_QPT_UD) {
		put_ud(wqe, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	} else if (op->atomic) {
		wqe->remote_addr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->atomic.compare_add = wr->wr.atomic.compare_add;
		wqe->atomic.swap = wr->wr.atomic.swap;
	} else if (op->remote) {
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
	}
	if (qp->vqp.qp.qp_type == IBV_QPT_XRC_SEND)
		wqe->remote_srqn = wr->qp_type.xrc.remote_srqn;

	if (op->memory)
		return 0;
	if (!(wr->send_flags & IBV_SEND_INLINE))
		put_sges(wqe, wr->sg_list, static_cast<size_t>(wr->num_sge));
	else if (!put_inline(qp, wqe, wr->sg_list, static_cast<size_t>(wr->num_sge)))
		return EINVAL;
	return 0;
}

/* One store of the tail and one doorbell for the list, or for its part before bad_wr. */
int post_list(struct ibv_qp *ibqp, struct ibv_send_wr *wr, enum ibv_mw_type bind_type,
	      struct ibv_send_wr **bad_wr)
{
	Qp *qp = to_qp(ibqp);
	bool posted;
	int err = 0;

	*bad_wr = wr;
	if (device_is_gone(qp->vqp.qp.context))
		return EIO;

	{
		Guard guard(qp->sq_lock);
		uint32_t next = qp->sq.tail;

		if (!may_send(qp))
			return EINVAL;
		for (; wr; wr = wr->next, next++) {
			err = build_send(qp, next, wr, bind_type);
			if (err)
				break;
		}
		posted = next != qp->sq.tail;
		if (posted)
			qp->sq.publish(next);
	}
	*bad_wr = wr;
	if (posted)
		ring(qp);
	return err;
}

} /* namespace */

int post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	return post_list(ibqp, wr, IBV_MW_TYPE_2, bad_wr);
}

/* A type 1 window: bound by a verb of its own, which chooses the key. */
int bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {};
	struct ibv_send_wr *bad_wr;
	int err;

	if (!(supported_send_ops(ibqp->qp_type) & IBV_QP_EX_WITH_BIND_MW))
		return EOPNOTSUPP;

	wr.wr_id = bind->wr_id;
	wr.opcode = IBV_WR_BIND_MW;
	wr.send_flags = bind->send_flags;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = bind->bind_info;

	err = post_list(ibqp, &wr, IBV_MW_TYPE_1, &bad_wr);
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return err;
}

/* ------------------------------------------------------------------ */
/* ibv_wr_*: one WQE at a time, setters after the operation           */
/* ------------------------------------------------------------------ */

namespace {

void fail_batch(Qp *qp, int err)
{
	if (!qp->batch.err)
		qp->batch.err = err;
	qp->batch.open = nullptr;
}

/* wr_start takes qp->sq_lock, wr_complete or wr_abort gives it back. */
void wr_start(struct ibv_qp_ex *qp_ex)
{
	Qp *qp = to_qp(qp_ex);

	qp->sq_lock.lock();
	qp->batch.next = qp->sq.tail;
	qp->batch.err = 0;
	qp->batch.open = nullptr;
	if (!may_send(qp))
		fail_batch(qp, EINVAL);
	else if (device_is_gone(qp->vqp.qp.context))
		fail_batch(qp, EIO);
}

/* All or nothing: after an error of a builder nothing of the batch is posted. */
int wr_complete(struct ibv_qp_ex *qp_ex)
{
	Qp *qp = to_qp(qp_ex);
	bool posted = !qp->batch.err && qp->batch.next != qp->sq.tail;
	int err = qp->batch.err;

	if (posted)
		qp->sq.publish(qp->batch.next);
	qp->sq_lock.unlock();
	if (posted)
		ring(qp);
	return err;
}

void wr_abort(struct ibv_qp_ex *qp_ex)
{
	to_qp(qp_ex)->sq_lock.unlock();
}

/* Opens the next WQE of the batch; NULL after an error. */
struct uroce_send_wqe *next_wqe(struct ibv_qp_ex *qp_ex, enum ibv_wr_opcode opcode)
{
	/* Inline data is chosen by its setter here. */
	const unsigned int flags = SUPPORTED_SEND_FLAGS & ~IBV_SEND_INLINE;
	Qp *qp = to_qp(qp_ex);

	if (qp->batch.err)
		return nullptr;
	if (qp_ex->wr_flags & ~SUPPORTED_SEND_FLAGS) {
		fail_batch(qp, EINVAL);
		return nullptr;
	}
	if (!qp->sq.has_room(qp->batch.next)) {
		fail_batch(qp, ENOMEM);
		return nullptr;
	}
	qp->batch.opcode = opcode;
	qp->batch.open =
		start_wqe(qp, qp->batch.next++, qp_ex->wr_id, opcode, qp_ex->wr_flags & flags);
	return qp->batch.open;
}

struct uroce_send_wqe *next_remote_wqe(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode,
				       uint32_t rkey, uint64_t remote_addr)
{
	struct uroce_send_wqe *wqe = next_wqe(qp, opcode);

	if (wqe) {
		wqe->rkey = rkey;
		wqe->remote_addr = remote_addr;
	}
	return wqe;
}

void wr_send(struct ibv_qp_ex *qp)
{
	next_wqe(qp, IBV_WR_SEND);
}

void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm_data)
{
	struct uroce_send_wqe *wqe = next_wqe(qp, IBV_WR_SEND_WITH_IMM);

	if (wqe)
		wqe->imm_data = imm_data;
}

void wr_send_inv(struct ibv_qp_ex *qp, uint32_t invalidate_rkey)
{
	struct uroce_send_wqe *wqe = next_wqe(qp, IBV_WR_SEND_WITH_INV);

	if (wqe)
		wqe->inv_rkey = invalidate_rkey;
}

void wr_local_inv(struct ibv_qp_ex *qp, uint32_t invalidate_rkey)
{
	struct uroce_send_wqe *wqe = next_wqe(qp, IBV_WR_LOCAL_INV);

	if (wqe)
		wqe->inv_rkey = invalidate_rkey;
}

void wr_bind_mw(struct ibv_qp_ex *qp_ex, struct ibv_mw *mw, uint32_t rkey,
		const struct ibv_mw_bind_info *info)
{
	struct uroce_send_wqe *wqe = next_wqe(qp_ex, IBV_WR_BIND_MW);

	if (!wqe)
		return;
	if (check_bind(mw, IBV_MW_TYPE_2, rkey, info))
		fail_batch(to_qp(qp_ex), EINVAL);
	else
		put_bind(wqe, rkey, info);
}

void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
	next_remote_wqe(qp, IBV_WR_RDMA_WRITE, rkey, remote_addr);
}

void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
	struct uroce_send_wqe *wqe =
		next_remote_wqe(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr);

	if (wqe)
		wqe->imm_data = imm_data;
}

void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
	next_remote_wqe(qp, IBV_WR_RDMA_READ, rkey, remote_addr);
}

void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, uint64_t compare,
		       uint64_t swap)
{
	struct uroce_send_wqe *wqe =
		next_remote_wqe(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr);

	if (wqe) {
		wqe->atomic.compare_add = compare;
		wqe->atomic.swap = swap;
	}
}

void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
	struct uroce_send_wqe *wqe =
		next_remote_wqe(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr);

	if (wqe)
		wqe->atomic.compare_add = add;
}

void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, const void *value)
{
	struct uroce_send_wqe *wqe = next_remote_wqe(qp, IBV_WR_ATOMIC_WRITE, rkey, remote_addr);

	if (wqe)
		memcpy(wqe->atomic_write, value, sizeof(wqe->atomic_write));
}

void wr_set_ud_addr(struct ibv_qp_ex *qp_ex, struct ibv_ah *ah, uint32_t remote_qpn,
		    uint32_t remote_qkey)
{
	Qp *qp = to_qp(qp_ex);

	if (!qp->batch.open)
		return;
	if (ah)
		put_ud(qp->batch.open, ah, remote_qpn, remote_qkey);
	else
		fail_batch(qp, EINVAL);
}

void wr_set_xrc_srqn(struct ibv_qp_ex *qp_ex, uint32_t remote_srqn)
{
	Qp *qp = to_qp(qp_ex);

	if (qp->batch.open)
		qp->batch.open->remote_srqn = remote_srqn;
}

void wr_set_sge_list(struct ibv_qp_ex *qp_ex, size_t num_sge, const struct ibv_sge *sg_list)
{
	Qp *qp = to_qp(qp_ex);

	if (!qp->batch.open)
		return;
	if (num_sge > qp->max_send_sge || send_ops[qp->batch.opcode].memory)
		fail_batch(qp, EINVAL);
	else
		put_sges(qp->batch.open, sg_list, num_sge);
}

void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct ibv_sge sge = {addr, length, lkey};

	wr_set_sge_list(qp, 1, &sge);
}

void wr_set_inline_data_list(struct ibv_qp_ex *qp_ex, size_t num_buf,
			     const struct ibv_data_buf *buf_list)
{
	Qp *qp = to_qp(qp_ex);

	if (!qp->batch.open)
		return;
	if (send_ops[qp->batch.opcode].reads || !put_inline(qp, qp->batch.open, buf_list, num_buf))
		fail_batch(qp, EINVAL);
}

void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	const struct ibv_data_buf buf = {addr, length};

	wr_set_inline_data_list(qp, 1, &buf);
}

} /* namespace */

uint64_t supported_send_ops(enum ibv_qp_type type)
{
	const uint64_t sends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	uint64_t flags = 0;

	switch (type) {
	case IBV_QPT_UD:
		return sends;
	case IBV_QPT_UC:
		return sends | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	case IBV_QPT_RC:
	case IBV_QPT_XRC_SEND:
		for (const SendOp &op : send_ops)
			flags |= op.ops_flag;
		return type == IBV_QPT_RC ? flags : flags & ~uint64_t{IBV_QP_EX_WITH_ATOMIC_WRITE};
	default:
		return 0;
	}
}

void set_wr_builders(struct ibv_qp_ex *qp)
{
	qp->wr_start = wr_start;
	qp->wr_complete = wr_complete;
	qp->wr_abort = wr_abort;

	qp->wr_send = wr_send;
	qp->wr_send_imm = wr_send_imm;
	qp->wr_send_inv = wr_send_inv;
	qp->wr_local_inv = wr_local_inv;
	qp->wr_bind_mw = wr_bind_mw;
	qp->wr_rdma_write = wr_rdma_write;
	qp->wr_rdma_write_imm = wr_rdma_write_imm;
	qp->wr_rdma_read = wr_rdma_read;
	qp->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	qp->wr_atomic_fetch_add = wr_atomic_fetch_add;
	qp->wr_atomic_write = wr_atomic_write;

	qp->wr_set_ud_addr = wr_set_ud_addr;
	qp->wr_set_xrc_srqn = wr_set_xrc_srqn;

	qp->wr_set_sge = wr_set_sge;
	qp->wr_set_sge_list = wr_set_sge_list;
	qp->wr_set_inline_data = wr_set_inline_data;
	qp->wr_set_inline_data_list = wr_set_inline_data_list;
}

} /* namespace uroce */
