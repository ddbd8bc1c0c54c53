/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RoCE v2 packet formats (IBTA volume 1, chapter 9; annex 17): what is in a
 * UDP datagram to port 4791. Fields as on the wire, big endian.
 * Leaf: compiles in user space too.
 */
#ifndef UROCE_WIRE_H
#define UROCE_WIRE_H

#include <linux/types.h>
#include <asm/byteorder.h>

#ifndef __packed
#define __packed	__attribute__((__packed__))
#endif

#define UROCE_UDP_PORT		4791
#define UROCE_PKEY_DEFAULT	0xffff
#define UROCE_QPN_GSI		1
#define UROCE_QPN_MULTICAST	0xffffff
#define UROCE_ICRC_LEN		4
#define UROCE_GRH_LEN		40	/* room in front of a datagram (UD) */
#define UROCE_MAD_QKEY		0x80010000

/* Base transport header, in every packet */
struct uroce_bth {
	__u8 opcode;
	__u8 flags;		/* UROCE_BTH_* */
	__be16 pkey;
	__be32 qpn;		/* FECN, BECN, 6 reserved bits, 24 bit destination QP */
	__be32 apsn;		/* AckReq, 7 reserved bits, 24 bit PSN */
} __packed;

#define UROCE_BTH_SE		0x80	/* solicited event */
#define UROCE_BTH_MIGREQ	0x40	/* set: no path migration under way */
#define UROCE_BTH_PAD_SHIFT	4
#define UROCE_BTH_PAD_MASK	0x30
#define UROCE_BTH_TVER_MASK	0x0f	/* transport version, 0 */
#define UROCE_BTH_ACKREQ	0x80000000u
#define UROCE_BTH_24_MASK	0x00ffffffu

/* RDMA extended transport header: WRITE first/only, READ request */
struct uroce_reth {
	__be64 va;
	__be32 rkey;
	__be32 len;
} __packed;

/* ACK extended transport header: acknowledgments, READ responses */
struct uroce_aeth {
	__be32 smsn;		/* 8 bit syndrome, 24 bit MSN */
} __packed;

/* Atomic requests */
struct uroce_atomic_eth {
	__be64 va;
	__be32 rkey;
	__be64 swap_add;
	__be64 compare;
} __packed;

/* Atomic acknowledgment, behind the AETH */
struct uroce_atomic_ack_eth {
	__be64 orig;
} __packed;

/* Datagram extended transport header */
struct uroce_deth {
	__be32 qkey;
	__be32 src_qp;		/* 8 reserved bits, 24 bit source QP */
} __packed;

/* XRC extended transport header, in every request of XRC (annex A14) */
struct uroce_xrceth {
	__be32 srqn;		/* 8 reserved bits, 24 bit number of the SRQ */
} __packed;

/* Longest run of headers from the BTH on (atomic request of XRC) */
#define UROCE_MAX_HDR		(sizeof(struct uroce_bth) + sizeof(struct uroce_xrceth) + \
				 sizeof(struct uroce_atomic_eth))

/* AETH syndrome: bits 6..5 the kind, 4..0 credits, RNR timer or NAK code */
enum uroce_aeth_kind {
	UROCE_AETH_ACK = 0x00,
	UROCE_AETH_RNR_NAK = 0x20,
	UROCE_AETH_NAK = 0x60,
	UROCE_AETH_KIND_MASK = 0xe0,
	UROCE_AETH_VALUE_MASK = 0x1f,
};

/* Credit count "not limited": no end-to-end flow control */
#define UROCE_AETH_CREDITS_NONE	0x1f

/* Syndrome of an ordinary acknowledgment */
#define UROCE_ACK_OK		(UROCE_AETH_ACK | UROCE_AETH_CREDITS_NONE)

enum uroce_nak_code {
	UROCE_NAK_SEQ = 0,
	UROCE_NAK_INV_REQ = 1,
	UROCE_NAK_REM_ACCESS = 2,
	UROCE_NAK_REM_OP = 3,
};

/* Everything of a BTH; @pad: bytes behind the payload, @se, @ack_req: 0 or 1 */
static inline void uroce_bth_put(struct uroce_bth *bth, __u8 opcode, __u8 pad,
				 int se, __u32 qpn, __u32 psn, int ack_req)
{
	bth->opcode = opcode;
	bth->flags = UROCE_BTH_MIGREQ | pad << UROCE_BTH_PAD_SHIFT |
		     (se ? UROCE_BTH_SE : 0);
	bth->pkey = __cpu_to_be16(UROCE_PKEY_DEFAULT);
	bth->qpn = __cpu_to_be32(qpn & UROCE_BTH_24_MASK);
	bth->apsn = __cpu_to_be32((psn & UROCE_BTH_24_MASK) |
				  (ack_req ? UROCE_BTH_ACKREQ : 0));
}

static inline __u32 uroce_bth_qpn(const struct uroce_bth *bth)
{
	return __be32_to_cpu(bth->qpn) & UROCE_BTH_24_MASK;
}

static inline __u32 uroce_bth_psn(const struct uroce_bth *bth)
{
	return __be32_to_cpu(bth->apsn) & UROCE_BTH_24_MASK;
}

static inline __u8 uroce_bth_pad(const struct uroce_bth *bth)
{
	return (bth->flags & UROCE_BTH_PAD_MASK) >> UROCE_BTH_PAD_SHIFT;
}

static inline struct uroce_aeth uroce_aeth_make(__u8 syndrome, __u32 msn)
{
	struct uroce_aeth aeth = {
		.smsn = __cpu_to_be32((__u32)syndrome << 24 |
				      (msn & UROCE_BTH_24_MASK)),
	};

	return aeth;
}

/* Bytes of padding that bring @len to a multiple of four */
static inline __u8 uroce_pad(__u32 len)
{
	return -len & 3;
}

#endif
