// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: polling (both interfaces) and arming, from memory alone.
 */
#include "objects.hpp"

namespace uroce {

namespace {

/* ------------------------------------------------------------------ */
/* One CQE                                                            */
/* ------------------------------------------------------------------ */

struct uroce_cqe *cqe_slot(const Cq *cq, uint32_t index)
{
	return &cq->cqes[index & (cq->entries - 1)];
}

/* The owner word of a CQE at index. */
uint32_t pass_of(const Cq *cq, uint32_t index)
{
	return (index >> cq->pass_shift) + 1;
}

/* The CQE at index, or NULL if the kernel has not written it. Ordering pair 3. */
struct uroce_cqe *peek_cqe(const Cq *cq, uint32_t index)
{
	struct uroce_cqe *cqe = cqe_slot(cq, index);

	return load_acquire(&cqe->owner) == pass_of(cq, index) ? cqe : nullptr;
}

/* Frees the WQEs that a CQE stands for; those of an SRQ are free already. */
void retire_wqes(Cq *cq, const struct uroce_cqe *cqe)
{
	Qp *qp;

	if (cqe->queue == UROCE_CQE_SRQ)
		return;
	qp = to_context(cq->vcq.cq.context)->qps.find(cqe->qpn);
	if (!qp)
		return;
	if (cqe->queue == UROCE_CQE_SQ)
		qp->sq.retire(cqe->wqe_index);
	else
		qp->rq.retire(cqe->wqe_index);
}

/*
 * Takes the next CQE off the queue; false if there is none. Its slot goes back to the kernel
 * before its WQE goes to the program: what is posted to that may need the slot to complete.
 * Caller holds cq->lock.
 */
bool next_cqe(Cq *cq, struct uroce_cqe *cqe)
{
	const struct uroce_cqe *slot = peek_cqe(cq, cq->ci);

	if (!slot)
		return false;
	*cqe = *slot;
	store_release(&cq->ctrl->ci, ++cq->ci);
	retire_wqes(cq, cqe);
	return true;
}

unsigned int wc_flags_of(const struct uroce_cqe *cqe)
{
	unsigned int flags = 0;

	if (cqe->wc_flags & UROCE_WC_GRH)
		flags |= IBV_WC_GRH;
	if (cqe->wc_flags & UROCE_WC_WITH_IMM)
		flags |= IBV_WC_WITH_IMM;
	if (cqe->wc_flags & UROCE_WC_WITH_INV)
		flags |= IBV_WC_WITH_INV;
	return flags;
}

void fill_wc(struct ibv_wc *wc, const struct uroce_cqe *cqe)
{
	wc->wr_id = cqe->wr_id;
	wc->status = static_cast<enum ibv_wc_status>(cqe->status);
	wc->opcode = static_cast<enum ibv_wc_opcode>(cqe->opcode);
	wc->vendor_err = cqe->vendor_err;
	wc->byte_len = cqe->byte_len;
	wc->imm_data = cqe->imm_data; /* or invalidated_rkey: a union there and here */
	wc->qp_num = cqe->qpn;
	wc->src_qp = cqe->src_qp;
	wc->wc_flags = wc_flags_of(cqe);
	wc->pkey_index = cqe->pkey_index;
	wc->slid = 0;
	wc->sl = cqe->sl;
	wc->dlid_path_bits = 0;
}

/* ------------------------------------------------------------------ */
/* ibv_cq_ex: iterators and readers of the current CQE                */
/* ------------------------------------------------------------------ */

/* 0, or ENOENT if there is no further CQE. */
int advance(Cq *cq)
{
	if (!next_cqe(cq, &cq->current))
		return ENOENT;
	cq->vcq.cq_ex.wr_id = cq->current.wr_id;
	cq->vcq.cq_ex.status = static_cast<enum ibv_wc_status>(cq->current.status);
	return 0;
}

void end_poll(struct ibv_cq_ex *cq_ex)
{
	Cq *cq = to_cq(cq_ex);

	cq->polling = false;
	cq->lock.unlock();
}

/* Keeps the lock for end_poll if it returns 0. */
int start_poll(struct ibv_cq_ex *cq_ex, struct ibv_poll_cq_attr *attr)
{
	Cq *cq = to_cq(cq_ex);
	int err;

	if (attr->comp_mask)
		return EINVAL;

	cq->lock.lock();
	err = advance(cq);
	if (!err) {
		cq->polling = true;
		return 0;
	}
	cq->lock.unlock();
	return device_is_gone(cq_ex->context) ? EIO : err;
}

int next_poll(struct ibv_cq_ex *cq_ex)
{
	return advance(to_cq(cq_ex));
}

enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cq)
{
	return static_cast<enum ibv_wc_opcode>(to_cq(cq)->current.opcode);
}

uint32_t read_vendor_err(struct ibv_cq_ex *cq)
{
	return to_cq(cq)->current.vendor_err;
}

unsigned int read_wc_flags(struct ibv_cq_ex *cq)
{
	return wc_flags_of(&to_cq(cq)->current);
}

uint32_t read_byte_len(struct ibv_cq_ex *cq)
{
	return to_cq(cq)->current.byte_len;
}

/* ibv_wc_read_invalidated_rkey() comes here too. */
__be32 read_imm_data(struct ibv_cq_ex *cq)
{
	return to_cq(cq)->current.imm_data;
}

uint32_t read_qp_num(struct ibv_cq_ex *cq)
{
	return to_cq(cq)->current.qpn;
}

uint32_t read_src_qp(struct ibv_cq_ex *cq)
{
	return to_cq(cq)->current.src_qp;
}

uint32_t read_slid(struct ibv_cq_ex *)
{
	return 0; /* no LIDs on Ethernet */
}

uint8_t read_sl(struct ibv_cq_ex *cq)
{
	return to_cq(cq)->current.sl;
}

uint8_t read_dlid_path_bits(struct ibv_cq_ex *)
{
	return 0;
}

uint64_t read_completion_ts(struct ibv_cq_ex *cq)
{
	return to_cq(cq)->current.timestamp;
}

uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *cq)
{
	return to_cq(cq)->current.wallclock;
}

/* A VLAN tag is off before a packet gets here; flow tags and tag matching are no RoCE. */
constexpr uint64_t SUPPORTED_WC_FLAGS = uint64_t{IBV_WC_STANDARD_FLAGS} |
					IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
					IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

void set_readers(struct ibv_cq_ex *cq, uint64_t wc_flags)
{
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
	cq->end_poll = end_poll;
	cq->read_opcode = read_opcode;
	cq->read_vendor_err = read_vendor_err;
	cq->read_wc_flags = read_wc_flags;

	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		cq->read_byte_len = read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		cq->read_imm_data = read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		cq->read_qp_num = read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		cq->read_src_qp = read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		cq->read_slid = read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		cq->read_sl = read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		cq->read_dlid_path_bits = read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		cq->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		cq->read_completion_wallclock_ns = read_completion_wallclock_ns;
}

/* ------------------------------------------------------------------ */
/* Creation                                                           */
/* ------------------------------------------------------------------ */

/* What new_cq() makes. */
struct CqConfig {
	int cqe;
	struct ibv_comp_channel *channel;
	int comp_vector;
	bool single_threaded;
	uint32_t flags; /* UROCE_CQ_* */
	struct ibv_pd *parent_domain; /* or NULL */
};

/* The kernel's half of the CQ and its mapping; 0 or errno. */
int connect_cq(Cq *cq, struct ibv_context *context, const CqConfig &config)
{
	DrvCmd<struct ib_uverbs_create_cq, struct uroce_create_cq_req> cmd = {};
	DrvResp<struct ib_uverbs_create_cq_resp, struct uroce_create_cq_resp> resp = {};
	int err;

	cmd.drv.flags = config.flags;
	err = ibv_cmd_create_cq(context, config.cqe, config.channel, config.comp_vector,
				&cq->vcq.cq, cmd_core<struct ibv_create_cq>(cmd), sizeof(cmd),
				cmd_core<struct ib_uverbs_create_cq_resp>(resp), sizeof(resp));
	if (err)
		return err;

	err = cq->map.map(context->cmd_fd, resp.drv.mmap_offset, resp.drv.mmap_len);
	if (err) {
		ibv_cmd_destroy_cq(&cq->vcq.cq);
		return err;
	}

	cq_set_ring(cq, cq->map.at<struct uroce_cq_ctrl>(0),
		    cq->map.at<struct uroce_cqe>(resp.drv.cqe_offset), resp.drv.cqe_entries);
	return 0;
}

Cq *new_cq(struct ibv_context *context, const CqConfig &config)
{
	Cq *cq = alloc_in<Cq>(config.parent_domain, RESOURCE_CQ);
	int err;

	if (!cq)
		return nullptr;

	cq->lock.init(!config.single_threaded && needs_lock(config.parent_domain));
	cq->arm_lock.init(!config.single_threaded && needs_lock(config.parent_domain));
	pthread_mutex_init(&cq->resizing, nullptr);
	err = connect_cq(cq, context, config);
	if (err) {
		cq->lock.destroy();
		cq->arm_lock.destroy();
		pthread_mutex_destroy(&cq->resizing);
		free_in(cq);
		errno = err;
		return nullptr;
	}
	return cq;
}

} /* namespace */

void cq_set_ring(Cq *cq, struct uroce_cq_ctrl *ctrl, struct uroce_cqe *cqes, uint32_t entries)
{
	cq->ctrl = ctrl;
	cq->cqes = cqes;
	cq->entries = entries;
	cq->pass_shift = static_cast<uint32_t>(__builtin_ctz(entries));
	cq->vcq.cq.cqe = static_cast<int>(entries);
}

struct ibv_cq *create_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel,
			 int comp_vector)
{
	CqConfig config = {};
	Cq *cq;

	config.cqe = cqe;
	config.channel = channel;
	config.comp_vector = comp_vector;
	cq = new_cq(context, config);
	return cq ? &cq->vcq.cq : nullptr;
}

struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
	CqConfig config = {};
	Cq *cq;

	if ((attr->comp_mask & ~(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) ||
	    (flags & ~IBV_CREATE_CQ_ATTR_SINGLE_THREADED) ||
	    (attr->wc_flags & ~SUPPORTED_WC_FLAGS)) {
		errno = EOPNOTSUPP;
		return nullptr;
	}
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD)
		config.parent_domain = attr->parent_domain;
	if (attr->cqe > INT32_MAX || attr->comp_vector > INT32_MAX ||
	    (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
	     !is_parent_domain(attr->parent_domain))) {
		errno = EINVAL;
		return nullptr;
	}

	config.cqe = static_cast<int>(attr->cqe);
	config.channel = attr->channel;
	config.comp_vector = static_cast<int>(attr->comp_vector);
	config.single_threaded = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	if (attr->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		config.flags |= UROCE_CQ_WALLCLOCK;
	cq = new_cq(context, config);
	if (!cq)
		return nullptr;
	set_readers(&cq->vcq.cq_ex, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

int destroy_cq(struct ibv_cq *ibcq)
{
	Cq *cq = to_cq(ibcq);
	int err = ibv_cmd_destroy_cq(ibcq);

	if (err)
		return err;
	cq->map.unmap();
	cq->lock.destroy();
	cq->arm_lock.destroy();
	pthread_mutex_destroy(&cq->resizing);
	free_in(cq);
	return 0;
}

/* ------------------------------------------------------------------ */
/* Polling and arming                                                 */
/* ------------------------------------------------------------------ */

int poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	Cq *cq = to_cq(ibcq);
	Guard guard(cq->lock);
	struct uroce_cqe cqe;
	int n;

	for (n = 0; n < num_entries && next_cqe(cq, &cqe); n++)
		fill_wc(&wc[n], &cqe);
	/* a program that only polls would otherwise do so for ever */
	if (!n && num_entries && device_is_gone(ibcq->context))
		return -EIO;
	return n;
}

/*
 * Each call makes a new value, even if the CQ looks armed: the kernel may be
 * raising the event for the old one right now, which the caller may have taken
 * already. While the last arming for any CQE has not fired, one for solicited
 * CQEs must not take its place.
 */
int req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	Cq *cq = to_cq(ibcq);
	Guard guard(cq->arm_lock); /* not that of the pollers: they may be armed meanwhile */
	uint32_t arm = cq->ctrl->arm;
	uint32_t kind = solicited_only ? UROCE_ARM_SOLICITED : UROCE_ARM_NEXT;

	if (arm != load_acquire(&cq->ctrl->fired) && (arm & UROCE_ARM_KIND_MASK) == UROCE_ARM_NEXT)
		kind = UROCE_ARM_NEXT;

	arm = (arm & ~uint32_t{UROCE_ARM_KIND_MASK}) + UROCE_ARM_SEQ_INC;
	store_release(&cq->ctrl->arm, arm | kind);
	full_fence(); /* ordering pair 4: the caller polls once more */
	return 0;
}

/*
 * Takes the CQEs of a QP out and gives their slots back at once: nobody may
 * ever poll for them, and a CQ that is full of them would overflow. What is
 * kept moves up, in its order; the kernel does not look at what it has written.
 */
void cq_forget_qp(Cq *cq, uint32_t qpn)
{
	Guard guard(cq->lock);
	uint32_t to = cq->ci;
	uint32_t from;

	while (peek_cqe(cq, to))
		to++;
	for (from = to; from != cq->ci;) {
		const struct uroce_cqe *cqe = cqe_slot(cq, --from);
		struct uroce_cqe *kept;

		if (cqe->qpn == qpn)
			continue;
		to--;
		if (to == from)
			continue; /* it is where it belongs */
		kept = cqe_slot(cq, to);
		*kept = *cqe;
		kept->owner = pass_of(cq, to);
	}
	cq->ci = to;
	store_release(&cq->ctrl->ci, to);
}

} /* namespace uroce */
