// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Requester; see req.h. */
#include "memop.h"
#include "net.h"
#include "opcode.h"
#include "psn.h"
#include "req.h"
#include "timer.h"
#include "wire.h"

/* AckReq at least each so many packets */
#define ACK_REQ_INTERVAL	16

/* Memory operations carried out in a row */
#define MEMOPS_AT_ONCE	64

#define ALL_FLAGS (UROCE_SEND_FENCE | UROCE_SEND_SIGNALED | \
		   UROCE_SEND_SOLICITED | UROCE_SEND_INLINE)

/* Services that have an operation; XRC is RC in this */
#define RC	BIT(0)
#define UC	BIT(1)
#define UD	BIT(2)

struct wr_row {
	u8 services;	/* 0: no operation of ours */
	u8 op;		/* enum uroce_op */
	u8 wc;		/* enum ib_wc_opcode */
	bool memop;	/* no packet, see memop.h */
};

static const struct wr_row wr_table[] = {
	[IB_WR_RDMA_WRITE] = { RC | UC, UROCE_OP_WRITE_ONLY, IB_WC_RDMA_WRITE },
	[IB_WR_RDMA_WRITE_WITH_IMM] = { RC | UC, UROCE_OP_WRITE_ONLY_IMM,
					IB_WC_RDMA_WRITE },
	[IB_WR_SEND] = { RC | UC | UD, UROCE_OP_SEND_ONLY, IB_WC_SEND },
	[IB_WR_SEND_WITH_IMM] = { RC | UC | UD, UROCE_OP_SEND_ONLY_IMM, IB_WC_SEND },
	[IB_WR_SEND_WITH_INV] = { RC, UROCE_OP_SEND_ONLY_INV, IB_WC_SEND },
	[IB_WR_RDMA_READ] = { RC, UROCE_OP_READ_REQ, IB_WC_RDMA_READ },
	[IB_WR_ATOMIC_CMP_AND_SWP] = { RC, UROCE_OP_CMP_SWAP, IB_WC_COMP_SWAP },
	[IB_WR_ATOMIC_FETCH_AND_ADD] = { RC, UROCE_OP_FETCH_ADD, IB_WC_FETCH_ADD },
	[UROCE_WR_ATOMIC_WRITE] = { RC, UROCE_OP_ATOMIC_WRITE, UROCE_WC_ATOMIC_WRITE },
	[IB_WR_LOCAL_INV] = { .services = RC, .wc = IB_WC_LOCAL_INV, .memop = true },
	[IB_WR_BIND_MW] = { .services = RC, .wc = IB_WC_BIND_MW, .memop = true },
	[IB_WR_REG_MR] = { .services = RC, .wc = IB_WC_REG_MR, .memop = true },
};

static u8 service_bit(const struct uroce_qp *qp)
{
	switch (qp->service) {
	case UROCE_SVC_UC:
		return UC;
	case UROCE_SVC_UD:
		return UD;
	default:
		return RC;
	}
}

/* ---- fetch ---- */

/* Header checks; 0 or the status to fail with */
static u8 check_header(struct uroce_qp *qp, struct uroce_swqe *swqe)
{
	const struct uroce_send_wqe *w = &swqe->w;
	const struct wr_row *row;

	if (w->opcode >= ARRAY_SIZE(wr_table))
		return IB_WC_LOC_QP_OP_ERR;
	row = &wr_table[w->opcode];
	swqe->op = row->op;
	swqe->wc_opcode = row->wc;

	if (!(row->services & service_bit(qp)) || w->flags & ~ALL_FLAGS)
		return IB_WC_LOC_QP_OP_ERR;
	/* XRC has most of what RC has */
	if (!row->memop && !uroce_opcodes[qp->service | row->op].flags)
		return IB_WC_LOC_QP_OP_ERR;

	if (row->memop) {
		swqe->memop = UROCE_MEMOP_TODO;
		return uroce_memop_check(qp, w);
	}
	if (uroce_swqe_has_response(swqe)) {
		/* without credit it would wait for ever */
		if (!qp->attr.max_rd_atomic || w->flags & UROCE_SEND_INLINE)
			return IB_WC_LOC_QP_OP_ERR;
	}
	if (uroce_swqe_is_atomic_write(swqe) && w->num_sge)
		return IB_WC_LOC_QP_OP_ERR;
	if (w->flags & UROCE_SEND_INLINE) {
		if (w->num_sge || w->inline_len > qp->max_inline)
			return IB_WC_LOC_LEN_ERR;
	} else if (w->num_sge > qp->sq.max_sge) {
		return IB_WC_LOC_QP_OP_ERR;
	}
	return 0;
}

/* Elements or inline data, then the length; 0 or the status to fail with */
static u8 copy_payload(struct uroce_qp *qp, struct uroce_swqe *swqe,
		       const void *from)
{
	u64 len;

	if (uroce_swqe_is_atomic_write(swqe)) {
		len = sizeof(swqe->w.atomic_write);
	} else if (swqe->w.flags & UROCE_SEND_INLINE) {
		memcpy(swqe->data, from, swqe->w.inline_len);
		len = swqe->w.inline_len;
	} else {
		memcpy(swqe->sge, from, swqe->w.num_sge * sizeof(*swqe->sge));
		len = uroce_sgl_length(swqe->sge, swqe->w.num_sge);
	}
	/* what was copied is what is checked: no second look at the ring */
	barrier();

	if (len > UROCE_MAX_MSG ||
	    (uroce_qp_is_datagram(qp) &&
	     len > ib_mtu_enum_to_int(uroce_device_mtu(qp->dev))) ||
	    (uroce_swqe_is_atomic(swqe) && len != sizeof(u64)))
		return IB_WC_LOC_LEN_ERR;
	swqe->length = len;
	return 0;
}

/* Number of posted WQEs not fetched; 0 for a tail that cannot be. */
static u32 sq_pending(struct uroce_qp *qp)
{
	/* ordering pair 1 of the ABI */
	u32 tail = smp_load_acquire(&qp->ctrl->sq_tail);
	u32 n = tail - qp->req.fetched;

	if (n > qp->sq.entries) {
		qp->req.ring_broken = true;
		return 0;
	}
	return n;
}

bool uroce_req_fetch(struct uroce_qp *qp)
{
	struct uroce_req *req = &qp->req;
	struct uroce_swqe *swqe;
	const void *slot;

	uroce_qp_assert_owned(qp, UROCE_SEND);

	/* the private ring is full when the user posts over unretired WQEs */
	if (!sq_pending(qp) || req->fetched - qp->comp.head >= qp->sq.entries)
		return false;

	slot = uroce_ring_slot(&qp->sq, req->fetched);
	swqe = uroce_qp_swqe(qp, req->fetched);
	memcpy(&swqe->w, slot, sizeof(swqe->w));
	barrier();
	swqe->length = 0;
	swqe->op = 0;
	swqe->wc_opcode = 0;
	swqe->memop = UROCE_MEMOP_NONE;

	swqe->error = check_header(qp, swqe);
	if (!swqe->error)
		swqe->error = copy_payload(qp, swqe, slot + sizeof(swqe->w));

	swqe->first_psn = req->next_psn;
	swqe->num_psn = swqe->memop ? 0 : 1;
	if (!uroce_qp_is_datagram(qp) && !uroce_swqe_is_atomic(swqe) &&
	    swqe->length && qp->attr.mtu)
		swqe->num_psn = DIV_ROUND_UP(swqe->length, qp->attr.mtu);
	req->next_psn = uroce_psn_add(req->next_psn, swqe->num_psn);
	req->fetched++;
	return true;
}

/* ---- packets ---- */

/* What one packet of a WQE is */
struct shape {
	u8 opcode;
	bool first;
	bool last;
	u32 psns;	/* it takes */
	u32 offset;	/* of its payload or READ data in the message, bytes */
	u32 payload;	/* bytes in the packet */
	u32 data;	/* bytes it moves: payload, or what a READ asks for */
};

static void shape_packet(struct uroce_qp *qp, const struct uroce_swqe *swqe,
			 struct shape *s)
{
	u32 mtu = qp->attr.mtu;
	u32 n = uroce_psn_dist(qp->req.psn, swqe->first_psn);

	memset(s, 0, sizeof(*s));
	s->first = n == 0;
	s->psns = 1;

	if (uroce_swqe_is_atomic(swqe)) {
		s->last = true;
		s->opcode = qp->service | swqe->op;
		return;
	}

	s->offset = n * mtu;
	if (uroce_swqe_is_read(swqe)) {
		u32 end = uroce_read_unit_end(swqe, n);

		s->psns = end - n;
		s->last = end == swqe->num_psn;
		s->data = min_t(u64, swqe->length, (u64)end * mtu) - s->offset;
		s->opcode = qp->service | swqe->op;
		return;
	}

	s->last = n + 1 == swqe->num_psn;
	s->payload = s->last ? swqe->length - s->offset : mtu;
	s->data = s->payload;
	s->opcode = qp->service | uroce_opcode_part(swqe->op, s->first, s->last);
}

static bool want_ack(struct uroce_qp *qp, const struct shape *s)
{
	struct uroce_req *req = &qp->req;
	u32 out = uroce_psn_dist(req->psn, qp->comp.una) + s->psns;

	if (!uroce_qp_is_reliable(qp))
		return false;
	/* nothing more may go before there is an answer to this one */
	if (s->last || out >= req->window ||
	    ++req->since_ack_req >= ACK_REQ_INTERVAL) {
		req->since_ack_req = 0;
		return true;
	}
	return false;
}

static void put_headers(struct uroce_qp *qp, const struct uroce_swqe *swqe,
			const struct shape *s, u8 *p)
{
	const struct uroce_opcode *row = &uroce_opcodes[s->opcode];
	const struct uroce_send_wqe *w = &swqe->w;

	uroce_bth_put((void *)p, s->opcode, uroce_pad(s->payload),
		      /* of what takes a receive (IBTA 9.2.3) */
		      s->last && w->flags & UROCE_SEND_SOLICITED &&
		      row->flags & (UROCE_F_SEND | UROCE_F_IMM),
		      uroce_qp_is_datagram(qp) ? w->ud.remote_qpn :
						 qp->attr.dest_qpn,
		      qp->req.psn, want_ack(qp, s));
	p += sizeof(struct uroce_bth);

	if (row->flags & UROCE_F_DETH) {
		struct uroce_deth deth = {
			/* the top bit asks for the QP's own (IBTA 3.5.3) */
			.qkey = cpu_to_be32(w->ud.remote_qkey & BIT(31) ?
					    qp->attr.qkey : w->ud.remote_qkey),
			.src_qp = cpu_to_be32(qp->qpn),
		};

		memcpy(p, &deth, sizeof(deth));
		p += sizeof(deth);
	}
	if (row->flags & UROCE_F_XRCETH) {
		struct uroce_xrceth xrceth = {
			.srqn = cpu_to_be32(w->remote_srqn & UROCE_BTH_24_MASK),
		};

		memcpy(p, &xrceth, sizeof(xrceth));
		p += sizeof(xrceth);
	}
	if (row->flags & UROCE_F_RETH) {
		struct uroce_reth reth = {
			.va = cpu_to_be64(w->remote_addr + s->offset),
			.rkey = cpu_to_be32(w->rkey),
			/* a WRITE names the whole message, a READ its unit */
			.len = cpu_to_be32(uroce_swqe_is_read(swqe) ?
					   s->data : swqe->length),
		};

		memcpy(p, &reth, sizeof(reth));
		p += sizeof(reth);
	}
	if (row->flags & UROCE_F_ATOMIC_ETH) {
		bool cas = swqe->op == UROCE_OP_CMP_SWAP;
		struct uroce_atomic_eth eth = {
			.va = cpu_to_be64(w->remote_addr),
			.rkey = cpu_to_be32(w->rkey),
			.swap_add = cpu_to_be64(cas ? w->atomic.swap :
						w->atomic.compare_add),
			.compare = cpu_to_be64(cas ? w->atomic.compare_add : 0),
		};

		memcpy(p, &eth, sizeof(eth));
		p += sizeof(eth);
	}
	if (row->flags & UROCE_F_IMM)
		memcpy(p, &w->imm_data, sizeof(w->imm_data));
	if (row->flags & UROCE_F_IETH) {
		__be32 key = cpu_to_be32(w->inv_rkey);

		memcpy(p, &key, sizeof(key));
	}
}

static int put_payload(struct uroce_qp *qp, const struct uroce_swqe *swqe,
		       u32 offset, u8 *to, u32 len)
{
	const u8 *data = uroce_swqe_inline(swqe);
	struct uroce_sgl sgl;

	memset(to + len, 0, uroce_pad(len));
	if (data) {
		memcpy(to, data + offset, len);
		return 0;
	}
	uroce_sgl_init(&sgl, qp->dev, qp->pd, &qp->fault[UROCE_SEND], swqe->sge,
		       swqe->w.num_sge);
	uroce_sgl_seek(&sgl, offset);
	return uroce_sgl_read(&sgl, to, len);
}

/* An ERR_PTR(): -ENOMEM, -EFAULT or, when a fault was noted, -EAGAIN */
static struct sk_buff *build_packet(struct uroce_qp *qp,
				    struct uroce_swqe *swqe,
				    const struct shape *s)
{
	u32 hdr = uroce_opcodes[s->opcode].hdr_len;
	struct sk_buff *skb;
	int err = 0;

	skb = uroce_net_alloc(hdr + s->payload + uroce_pad(s->payload));
	if (!skb)
		return ERR_PTR(-ENOMEM);

	if (s->payload)
		err = put_payload(qp, swqe, s->offset, skb->data + hdr, s->payload);
	if (err) {
		kfree_skb(skb);
		return ERR_PTR(err);
	}
	put_headers(qp, swqe, s, skb->data);
	return skb;
}

/* A packet is on its way. */
static void note_sent(struct uroce_qp *qp, const struct uroce_swqe *swqe,
		      const struct shape *s)
{
	struct uroce_req *req = &qp->req;

	if (uroce_psn_diff(req->psn, req->high_psn) < 0)
		uroce_count(qp->dev, UROCE_CNT_RETRANSMITS);
	if (uroce_swqe_has_response(swqe))
		req->rd_inflight++;
	req->psn = uroce_psn_add(req->psn, s->psns);
	if (uroce_psn_diff(req->psn, req->high_psn) > 0)
		req->high_psn = req->psn;
	if (s->last)
		req->cur++;
}

/* This host has no room: try the same again in a little while. */
static void back_off(struct uroce_qp *qp)
{
	qp->req.pause = UROCE_PAUSE_LOCAL;
	uroce_timer_start(&qp->resume_timer, uroce_backoff_ns(qp->req.refused));
}

/* Where the packets of a WQE go. -EINVAL: no such AH. RCU read lock held. */
static int find_way(struct uroce_qp *qp, const struct uroce_swqe *swqe,
		    struct uroce_flow *flow)
{
	struct uroce_path *path;

	flow->ip_id = atomic_inc_return(&qp->ip_id);
	if (!uroce_qp_is_datagram(qp)) {
		flow->av = &qp->attr.av;
		flow->dst = &qp->dst;
		flow->sport = qp->attr.sport;
		return 0;
	}

	path = uroce_path_lookup(qp->dev, qp->pd, swqe->w.ud.ah);
	if (!path)
		return -EINVAL;
	flow->av = &path->av;
	flow->dst = &path->dst;
	flow->sport = rdma_get_udp_sport(flow->av->flow_label, qp->qpn,
					 swqe->w.ud.remote_qpn);
	return 0;
}

/* RCU read lock held */
static void send_packet(struct uroce_qp *qp, struct uroce_swqe *swqe)
{
	struct uroce_flow flow;
	struct sk_buff *skb;
	struct shape s;

	if (find_way(qp, swqe, &flow)) {
		swqe->error = IB_WC_LOC_QP_OP_ERR;
		return;
	}
	shape_packet(qp, swqe, &s);
	skb = build_packet(qp, swqe, &s);
	switch (PTR_ERR_OR_ZERO(skb)) {
	case -EFAULT:
		swqe->error = IB_WC_LOC_PROT_ERR;
		return;
	case -EAGAIN:	/* a fault was noted */
		return;
	}

	if (!IS_ERR(skb) &&
	    !uroce_backoff(&qp->req.refused, uroce_net_xmit(qp->dev, &flow, skb))) {
		note_sent(qp, swqe, &s);
		return;
	}
	back_off(qp);
}

/* ---- run ---- */

/* May the next packet of the current WQE go now? */
static bool may_send(struct uroce_qp *qp, const struct uroce_swqe *swqe)
{
	struct uroce_req *req = &qp->req;
	bool start = req->psn == swqe->first_psn;

	if (!uroce_qp_is_reliable(qp))
		return true;
	if (uroce_psn_dist(req->psn, qp->comp.una) >= req->window)
		return false;
	if (start && swqe->w.flags & UROCE_SEND_FENCE && req->rd_inflight)
		return false;
	if (uroce_swqe_has_response(swqe) &&
	    req->rd_inflight >= qp->attr.max_rd_atomic)
		return false;
	return true;
}

/*
 * Has the memory operation at the cursor been carried out, now or before the
 * requester went back? A fence holds it until all that was posted before it is
 * complete: so a key can be invalidated behind the operations that use it.
 */
static bool memop_done(struct uroce_qp *qp, struct uroce_swqe *swqe)
{
	if (swqe->memop == UROCE_MEMOP_TODO &&
	    !(swqe->w.flags & UROCE_SEND_FENCE && qp->comp.head != qp->req.cur))
		uroce_memop_run(qp, swqe);
	return swqe->memop == UROCE_MEMOP_DONE;
}

struct uroce_swqe *uroce_req_current(struct uroce_qp *qp)
{
	struct uroce_req *req = &qp->req;
	int budget = MEMOPS_AT_ONCE;
	struct uroce_swqe *swqe;

	for (;;) {
		if (req->cur == req->fetched &&
		    (uroce_qp_state(qp) != IB_QPS_RTS || !uroce_req_fetch(qp)))
			return NULL;
		swqe = uroce_qp_swqe(qp, req->cur);
		if (!swqe->memop || swqe->error)
			return swqe;
		if (!memop_done(qp, swqe))
			return swqe->error ? swqe : NULL;
		req->cur++;
		if (!--budget) {
			uroce_qp_mark(qp, UROCE_SEND, UROCE_WORK_TX);
			return NULL;
		}
	}
}

static bool send_all(struct uroce_qp *qp, int *budget)
{
	struct uroce_swqe *swqe;
	int state;

	for (;;) {
		state = uroce_qp_state(qp);
		if (!uroce_state_sends(state) || qp->req.pause ||
		    uroce_fault_pending(&qp->fault[UROCE_SEND]))
			return false;
		swqe = uroce_req_current(qp);
		/* a WQE with an error ends the sending; comp fails it in turn */
		if (!swqe || swqe->error)
			return false;
		if (!may_send(qp, swqe))
			return false;
		rcu_read_lock();
		send_packet(qp, swqe);
		rcu_read_unlock();
		if (--*budget <= 0)
			return true;
	}
}

bool uroce_req_run(struct uroce_qp *qp, int *budget)
{
	u32 from = qp->req.psn;
	bool more;

	uroce_qp_assert_owned(qp, UROCE_SEND);

	more = send_all(qp, budget);
	if (qp->req.psn == from || !uroce_qp_is_reliable(qp))
		return more;
	/*
	 * The time that the peer has begins when the run that sent the oldest
	 * packet is over; on a slow machine the run takes long itself.
	 */
	if (from == qp->comp.una)
		uroce_timer_ack_progress(qp, true);
	else
		uroce_timer_ack_arm(qp);
	return more;
}
