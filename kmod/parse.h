/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * From the bytes of a datagram to a checked description of one packet. The
 * only place that reads headers of received packets.
 * Leaf: compiles in user space too, for unit tests and fuzzing.
 */
#ifndef UROCE_PARSE_H
#define UROCE_PARSE_H

#include <linux/types.h>
#include "counters.h"
#include "opcode.h"

/*
 * One packet or, on the local path, one whole message: what it asks for, in
 * host byte order. Fits skb->cb (48 bytes), hence the unions: only the fields
 * whose header the packet has (UROCE_F_*) mean anything.
 */
struct uroce_pkt {
	__u32 qpn : 24;		/* destination */
	__u32 opcode : 8;
	__u32 psn : 24;
	__u32 syndrome : 8;	/* AETH */
	__u32 srqn : 24;	/* XRCETH */
	__u32 pad : 2;		/* bytes behind the payload */
	__u32 solicited : 1;
	__u32 ack_req : 1;
	__u32 charged : 1;	/* of a queued packet, see rxq.h */
	__u32 payload_len;	/* bytes, without padding */
	union {
		__be32 imm;
		__u32 inv_rkey;	/* IETH */
	};
	__u32 rkey;		/* RETH, atomic ETH */
	__u64 va;		/* RETH, atomic ETH */
	union {
		__u32 dma_len;	/* RETH */
		struct {	/* atomic ETH */
			__u64 swap_add;
			__u64 compare;
		};
		struct {	/* AETH, atomic ACK ETH */
			__u64 orig;
			__u32 msn;
		};
		struct {	/* DETH */
			__u32 qkey;
			__u32 src_qp;
		};
	};
};

/* The row of the opcode table: what the packet is and has (UROCE_F_*) */
static inline __u32 uroce_pkt_flags(const struct uroce_pkt *pkt)
{
	return uroce_opcodes[pkt->opcode].flags;
}

/* A message of one packet? */
static inline int uroce_pkt_is_only(const struct uroce_pkt *pkt)
{
	return uroce_pkt_flags(pkt) & UROCE_F_FIRST &&
	       uroce_pkt_flags(pkt) & UROCE_F_LAST;
}

/* Bytes from the BTH to the payload */
static inline __u32 uroce_pkt_hdr_len(const struct uroce_pkt *pkt)
{
	return uroce_opcodes[pkt->opcode].hdr_len;
}

/* The operation, whatever the service (enum uroce_op) */
static inline __u8 uroce_pkt_op(const struct uroce_pkt *pkt)
{
	return pkt->opcode & ~UROCE_SVC_MASK;
}

/*
 * Parse the packet whose BTH is at @bth.
 * @linear: bytes readable at @bth; at least min(@len, UROCE_MAX_HDR).
 * @len: bytes of the UDP payload, ICRC included.
 * Return: -1 when the packet is well formed, otherwise the counter of the
 * reason to drop it.
 */
int uroce_parse(const __u8 *bth, __u32 linear, __u32 len, struct uroce_pkt *pkt);

#endif
