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
 * host byte order. Fields without their header in the packet are 0.
 */
struct uroce_pkt {
	__u8 opcode;
	__u8 hdr_len;		/* bytes from the BTH to the payload */
	__u8 pad;		/* bytes behind the payload */
	__u8 solicited;
	__u8 ack_req;
	__u8 syndrome;		/* AETH */
	__u16 pkey;
	__u32 flags;		/* UROCE_F_*, the row of the opcode table */
	__u32 qpn;		/* destination */
	__u32 psn;
	__u32 payload_len;	/* bytes, without padding */
	__u32 rkey;		/* RETH, atomic ETH, or IETH (inv) */
	__u32 dma_len;		/* RETH */
	__u32 msn;		/* AETH */
	__u32 qkey;		/* DETH */
	__u32 src_qp;		/* DETH */
	__u32 inv_rkey;		/* IETH */
	__be32 imm;
	__u64 va;		/* RETH, atomic ETH */
	__u64 swap_add;
	__u64 compare;
	__u64 orig;		/* atomic ACK */
};

/*
 * Parse the packet whose BTH is at @bth.
 * @linear: bytes readable at @bth; at least min(@len, UROCE_MAX_HDR).
 * @len: bytes of the UDP payload, ICRC included.
 * Return: -1 when the packet is well formed, otherwise the counter of the
 * reason to drop it.
 */
int uroce_parse(const __u8 *bth, __u32 linear, __u32 len, struct uroce_pkt *pkt);

#endif
