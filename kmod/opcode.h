/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One row for each of the 256 BTH opcodes: which headers follow, what the
 * packet does, which part of a message it is.
 * Leaf: compiles in user space too.
 */
#ifndef UROCE_OPCODE_H
#define UROCE_OPCODE_H

#include <linux/types.h>

/* Upper three bits of an opcode: the transport service */
enum uroce_service {
	UROCE_SVC_RC = 0x00,
	UROCE_SVC_UC = 0x20,
	UROCE_SVC_UD = 0x60,
	UROCE_SVC_XRC = 0xa0,
	UROCE_SVC_MASK = 0xe0,
};

/* Lower five bits, shared by the services that have the operation */
enum uroce_op {
	UROCE_OP_SEND_FIRST = 0x00,
	UROCE_OP_SEND_MIDDLE = 0x01,
	UROCE_OP_SEND_LAST = 0x02,
	UROCE_OP_SEND_LAST_IMM = 0x03,
	UROCE_OP_SEND_ONLY = 0x04,
	UROCE_OP_SEND_ONLY_IMM = 0x05,
	UROCE_OP_WRITE_FIRST = 0x06,
	UROCE_OP_WRITE_MIDDLE = 0x07,
	UROCE_OP_WRITE_LAST = 0x08,
	UROCE_OP_WRITE_LAST_IMM = 0x09,
	UROCE_OP_WRITE_ONLY = 0x0a,
	UROCE_OP_WRITE_ONLY_IMM = 0x0b,
	UROCE_OP_READ_REQ = 0x0c,
	UROCE_OP_READ_RESP_FIRST = 0x0d,
	UROCE_OP_READ_RESP_MIDDLE = 0x0e,
	UROCE_OP_READ_RESP_LAST = 0x0f,
	UROCE_OP_READ_RESP_ONLY = 0x10,
	UROCE_OP_ACK = 0x11,
	UROCE_OP_ATOMIC_ACK = 0x12,
	UROCE_OP_CMP_SWAP = 0x13,
	UROCE_OP_FETCH_ADD = 0x14,
	UROCE_OP_SEND_LAST_INV = 0x16,
	UROCE_OP_SEND_ONLY_INV = 0x17,
	UROCE_OP_ATOMIC_WRITE = 0x1d,
};

/* struct uroce_opcode.flags */
enum {
	/* what it is; none of these: reserved opcode */
	UROCE_F_SEND = 1 << 0,
	UROCE_F_WRITE = 1 << 1,
	UROCE_F_READ = 1 << 2,		/* READ request */
	UROCE_F_ATOMIC = 1 << 3,
	UROCE_F_ATOMIC_WRITE = 1 << 4,
	UROCE_F_READ_RESP = 1 << 5,
	UROCE_F_ACK = 1 << 6,		/* ACK and atomic ACK */
	/* part of a message */
	UROCE_F_FIRST = 1 << 7,		/* FIRST and ONLY */
	UROCE_F_LAST = 1 << 8,		/* LAST and ONLY */
	UROCE_F_PAYLOAD = 1 << 9,	/* may carry payload */
	/* headers behind the BTH, in this order on the wire */
	UROCE_F_DETH = 1 << 10,
	UROCE_F_XRCETH = 1 << 11,
	UROCE_F_RETH = 1 << 12,
	UROCE_F_ATOMIC_ETH = 1 << 13,
	UROCE_F_AETH = 1 << 14,
	UROCE_F_ATOMIC_ACK_ETH = 1 << 15,
	UROCE_F_IMM = 1 << 16,
	UROCE_F_IETH = 1 << 17,

	/* one of these is what a request is */
	UROCE_F_REQUEST = UROCE_F_SEND | UROCE_F_WRITE | UROCE_F_READ |
			  UROCE_F_ATOMIC | UROCE_F_ATOMIC_WRITE,
	UROCE_F_RESPONSE = UROCE_F_READ_RESP | UROCE_F_ACK,
};

struct uroce_opcode {
	__u32 flags;		/* 0: reserved, drop */
	__u8 hdr_len;		/* bytes from the BTH to the payload */
};

extern const struct uroce_opcode uroce_opcodes[256];

/*
 * The opcode of one packet of a message (without the service bits).
 * @op: the ONLY opcode of the operation, imm and inv variants included.
 */
__u8 uroce_opcode_part(__u8 op, int first, int last);

#endif
