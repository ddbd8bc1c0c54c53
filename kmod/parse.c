// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Packet parser; see parse.h. Lengths are checked before any arithmetic. */
#ifdef __KERNEL__
#include <linux/string.h>
#else
#include <string.h>
#endif
#include "parse.h"
#include "wire.h"

static __u32 get32(const __u8 **p)
{
	__be32 v;

	memcpy(&v, *p, sizeof(v));
	*p += sizeof(v);
	return __be32_to_cpu(v);
}

static __u64 get64(const __u8 **p)
{
	__be64 v;

	memcpy(&v, *p, sizeof(v));
	*p += sizeof(v);
	return __be64_to_cpu(v);
}

/* Headers behind the BTH; the caller has checked that they are all there. */
static void parse_extended(const __u8 *p, __u32 flags, struct uroce_pkt *pkt)
{
	__u32 v;

	if (flags & UROCE_F_DETH) {
		pkt->qkey = get32(&p);
		pkt->src_qp = get32(&p) & UROCE_BTH_24_MASK;
	}
	if (flags & UROCE_F_XRCETH)
		pkt->srqn = get32(&p) & UROCE_BTH_24_MASK;
	if (flags & UROCE_F_RETH) {
		pkt->va = get64(&p);
		pkt->rkey = get32(&p);
		pkt->dma_len = get32(&p);
	}
	if (flags & UROCE_F_ATOMIC_ETH) {
		pkt->va = get64(&p);
		pkt->rkey = get32(&p);
		pkt->swap_add = get64(&p);
		pkt->compare = get64(&p);
	}
	if (flags & UROCE_F_AETH) {
		v = get32(&p);
		pkt->syndrome = v >> 24;
		pkt->msn = v & UROCE_BTH_24_MASK;
	}
	if (flags & UROCE_F_ATOMIC_ACK_ETH)
		pkt->orig = get64(&p);
	if (flags & UROCE_F_IMM) {
		memcpy(&pkt->imm, p, sizeof(pkt->imm));
		p += sizeof(pkt->imm);
	}
	if (flags & UROCE_F_IETH)
		pkt->inv_rkey = get32(&p);
}

int uroce_parse(const __u8 *p, __u32 linear, __u32 len, struct uroce_pkt *pkt)
{
	const struct uroce_opcode *op;
	struct uroce_bth bth;
	__u32 behind;

	if (len < sizeof(bth) + UROCE_ICRC_LEN || linear < sizeof(bth))
		return UROCE_CNT_DROP_SHORT;

	memcpy(&bth, p, sizeof(bth));
	if (bth.flags & UROCE_BTH_TVER_MASK)
		return UROCE_CNT_DROP_VERSION;

	/* one P_Key, the default; the top bit is membership (IBTA 10.9.1) */
	if ((bth.pkey ^ __cpu_to_be16(UROCE_PKEY_DEFAULT)) & __cpu_to_be16(0x7fff))
		return UROCE_CNT_DROP_PKEY;

	op = &uroce_opcodes[bth.opcode];
	if (!op->flags)
		return UROCE_CNT_DROP_OPCODE;
	if (len < op->hdr_len + UROCE_ICRC_LEN || linear < op->hdr_len)
		return UROCE_CNT_DROP_SHORT;

	memset(pkt, 0, sizeof(*pkt));
	pkt->opcode = bth.opcode;
	pkt->pad = uroce_bth_pad(&bth);
	pkt->solicited = !!(bth.flags & UROCE_BTH_SE);
	pkt->qpn = uroce_bth_qpn(&bth);
	pkt->psn = uroce_bth_psn(&bth);
	pkt->ack_req = !!(__be32_to_cpu(bth.apsn) & UROCE_BTH_ACKREQ);

	/* payload and padding; a multiple of four (IBTA 9.2, PadCnt) */
	behind = len - op->hdr_len - UROCE_ICRC_LEN;
	if (behind & 3 || behind < pkt->pad ||
	    (behind && !(op->flags & UROCE_F_PAYLOAD)) ||
	    (pkt->pad && behind == pkt->pad))
		return UROCE_CNT_DROP_LENGTH;
	pkt->payload_len = behind - pkt->pad;

	parse_extended(p + sizeof(bth), op->flags, pkt);
	return -1;
}
