// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Datagrams: address handles of the kernel's, the 40 bytes in front, replies. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <rdma/ib_cache.h>
#include "kverbs.h"

#define QKEY	0x1234567	/* scene.c's */
#define GRH	sizeof(struct ib_grh)

static struct ib_ah *create_ah(struct kv *kv, struct ib_pd *pd, u32 gid_index,
			       u32 flags)
{
	struct rdma_ah_attr attr;
	struct ib_ah *ah;

	kv_ah_attr(kv, gid_index, &attr);
	ah = rdma_create_ah(pd, &attr, flags);
	if (kv_ok(kv, !IS_ERR(ah)))
		return ah;
	return NULL;
}

static void datagram_init(struct kv_side *from, struct kv_wr *w, struct ib_ah *ah,
			  u32 len)
{
	kv_wr_init(from, w, 1, IB_WR_SEND_WITH_IMM, 0, len);
	w->wr.ex.imm_data = cpu_to_be32(len);
	w->ud.ah = ah;
	w->ud.remote_qpn = from->peer->qp->qp_num;
	w->ud.remote_qkey = QKEY;
}

static void check_grh(struct kv_side *to, bool v6, u32 offset)
{
	struct iphdr *ip = (struct iphdr *)(to->buf + offset + 20);
	struct ipv6hdr *ip6 = (struct ipv6hdr *)(to->buf + offset);

	if (v6) {
		kv_eq(to->kv, ip6->version, 6);
		kv_ok(to->kv, ipv6_addr_equal(&ip6->saddr, &ip6->daddr));
	} else {
		kv_eq(to->kv, ip->version, 4);
		kv_eq(to->kv, ip->ihl, 5);
		kv_ok(to->kv, ip->saddr && ip->saddr == ip->daddr);
	}
}

/* There, and back by what the completion says */
static void exchange(struct kv_pair *pair, struct ib_ah *ah, bool v6, u32 len)
{
	struct kv_side *a = &pair->side[KV_A], *b = &pair->side[KV_B];
	struct ib_ah *back;
	struct ib_wc wc;
	struct kv_wr w;

	kv_fill(a, 0, len, len);
	memset(b->buf, 0xee, GRH + len + 8);
	kv_eq(pair->kv, kv_recv(b, 100, 0, GRH + len), 0);
	datagram_init(a, &w, ah, len);
	kv_do(a, &w, IB_WC_SEND);
	if (!kv_expect(b, &wc, 100, 0, IB_WC_RECV))
		return;
	kv_eq(pair->kv, wc.byte_len, GRH + len);
	kv_eq(pair->kv, wc.wc_flags, IB_WC_GRH | IB_WC_WITH_IMM);
	kv_eq(pair->kv, be32_to_cpu(wc.ex.imm_data), len);
	kv_eq(pair->kv, wc.src_qp, a->qp->qp_num);
	kv_eq(pair->kv, wc.port_num, 1);
	kv_eq(pair->kv, wc.pkey_index, 0);
	kv_same(b, GRH, a, 0, len);
	kv_eq(pair->kv, b->buf[GRH + len], 0xee);
	check_grh(b, v6, 0);

	back = ib_create_ah_from_wc(b->pd, &wc, (struct ib_grh *)b->buf, 1);
	if (!kv_ok(pair->kv, !IS_ERR(back)))
		return;
	kv_eq(pair->kv, kv_recv(a, 101, 8192, GRH + len), 0);
	datagram_init(b, &w, back, len);
	w.ud.remote_qpn = wc.src_qp;
	kv_fill(b, 0, len, len + 1);
	kv_do(b, &w, IB_WC_SEND);
	kv_expect(a, &wc, 101, 0, IB_WC_RECV);
	kv_same(a, 8192 + GRH, b, 0, len);
	rdma_destroy_ah(back, RDMA_DESTROY_AH_SLEEPABLE);
}

static void run_exchange(struct kv *kv)
{
	struct kv_options options = { .type = IB_QPT_UD, .inline_data = 64 };
	u32 gids[] = { kv->gid_index, kv->gid6_index };
	struct kv_pair *pair = kv_pair_create(kv, &options);
	struct ib_ah *ah;
	int i;

	if (!pair)
		return;
	for (i = 0; i < 2; i++) {
		if (!gids[i])
			continue;
		ah = create_ah(kv, pair->pd, gids[i], RDMA_CREATE_AH_SLEEPABLE);
		if (!ah)
			continue;
		exchange(pair, ah, i, 0);
		exchange(pair, ah, i, 1);
		exchange(pair, ah, i, 1024);
		rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
	}
	kv_pair_destroy(pair);
}

/* Wrong keys and lengths; who is too long for the receive gets nothing */
static void run_refused(struct kv *kv)
{
	struct kv_options options = { .type = IB_QPT_UD };
	struct kv_pair *pair = kv_pair_create(kv, &options);
	struct kv_side *a, *b;
	struct ib_ah *ah;
	struct ib_wc wc;
	struct kv_wr w;

	if (!pair)
		return;
	a = &pair->side[KV_A];
	b = &pair->side[KV_B];
	ah = create_ah(kv, pair->pd, kv->gid_index, RDMA_CREATE_AH_SLEEPABLE);
	if (!ah)
		goto out;
	kv_eq(kv, kv_recv(b, 100, 0, 4096), 0);
	/* the sender does not know that nobody listens */
	datagram_init(a, &w, ah, 10);
	w.ud.remote_qkey = QKEY + 1;
	kv_do(a, &w, IB_WC_SEND);
	datagram_init(a, &w, ah, 10);
	w.ud.remote_qpn ^= 0x800000;
	kv_do(a, &w, IB_WC_SEND);
	/* top bit: the sender's own key */
	datagram_init(a, &w, ah, 20);
	w.ud.remote_qkey = 0x80000000;
	kv_do(a, &w, IB_WC_SEND);
	/* what comes is the third */
	if (kv_expect(b, &wc, 100, 0, IB_WC_RECV))
		kv_eq(kv, wc.byte_len, GRH + 20);
	kv_expect_none(b);

	/* operations of connections */
	kv_wr_init(a, &w, 2, IB_WR_SEND, 0, 8);
	w.ud.ah = ah;
	w.wr.opcode = IB_WR_RDMA_WRITE;
	kv_do_fail(a, &w, IB_WC_LOC_QP_OP_ERR);
	/* SQE: what follows is flushed; RTS again, and it works */
	datagram_init(a, &w, ah, 10);
	kv_do_fail(a, &w, IB_WC_WR_FLUSH_ERR);
	kv_eq(kv, kv_modify(a, IB_QPS_RTS), 0);
	kv_eq(kv, kv_recv(b, 101, 0, 4096), 0);
	datagram_init(a, &w, ah, 10);
	kv_do(a, &w, IB_WC_SEND);
	kv_expect(b, NULL, 101, 0, IB_WC_RECV);
	datagram_init(a, &w, ah, 5000);
	kv_do_fail(a, &w, IB_WC_LOC_LEN_ERR);
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
out:
	kv_pair_destroy(pair);
}

/* Handles made, used and destroyed with a lock held, as the CM does */
static void run_atomic_ah(struct kv *kv)
{
	struct kv_options options = { .type = IB_QPT_UD };
	struct kv_pair *pair = kv_pair_create(kv, &options);
	static DEFINE_SPINLOCK(lock);
	const struct ib_gid_attr *sgid;
	struct rdma_ah_attr attr;
	struct kv_side *a, *b;
	unsigned long flags;
	struct ib_ah *ah;
	struct kv_wr w;
	int i, err;

	if (!pair)
		return;
	a = &pair->side[KV_A];
	b = &pair->side[KV_B];
	sgid = rdma_get_gid_attr(kv->dev, 1, kv->gid_index);
	if (!kv_ok(kv, !IS_ERR(sgid)))
		goto out;
	kv_ah_attr(kv, kv->gid_index, &attr);
	for (i = 0; i < 20; i++) {
		kv_eq(kv, kv_recv(b, 100, 0, 4096), 0);
		kv_fill(a, 0, 64, i);
		spin_lock_irqsave(&lock, flags);
		ah = rdma_create_ah(pair->pd, &attr, 0);
		err = PTR_ERR_OR_ZERO(ah);
		if (!err) {
			datagram_init(a, &w, ah, 64);
			err = kv_post(a, &w);
		}
		spin_unlock_irqrestore(&lock, flags);
		if (!kv_eq(kv, err, 0))
			break;
		kv_expect(a, NULL, 1, 0, IB_WC_SEND);
		kv_expect(b, NULL, 100, 0, IB_WC_RECV);
		kv_same(b, GRH, a, 0, 64);
		spin_lock_irqsave(&lock, flags);
		rdma_destroy_ah(ah, 0);
		spin_unlock_irqrestore(&lock, flags);
	}
	rdma_put_gid_attr(sgid);
out:
	kv_pair_destroy(pair);
}

const struct kv_case kv_ud[] = {
	{ "ud.exchange", run_exchange },
	{ "ud.refused", run_refused },
	{ "ud.atomic_ah", run_atomic_ah },
	{}
};
