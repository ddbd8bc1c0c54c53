// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The opcode table (IBTA 9.2, table 38) and the parts of a message. */
#include "opcode.h"
#include "wire.h"

#define HDR_LEN(f) (sizeof(struct uroce_bth) +					\
	((f) & UROCE_F_DETH ? sizeof(struct uroce_deth) : 0) +			\
	((f) & UROCE_F_RETH ? sizeof(struct uroce_reth) : 0) +			\
	((f) & UROCE_F_ATOMIC_ETH ? sizeof(struct uroce_atomic_eth) : 0) +	\
	((f) & UROCE_F_AETH ? sizeof(struct uroce_aeth) : 0) +			\
	((f) & UROCE_F_ATOMIC_ACK_ETH ? sizeof(struct uroce_atomic_ack_eth) : 0) + \
	((f) & UROCE_F_IMM ? 4 : 0) +						\
	((f) & UROCE_F_IETH ? 4 : 0))

#define ROW(svc, op, f) [UROCE_SVC_##svc | UROCE_OP_##op] = {	\
	.flags = (f),						\
	.hdr_len = HDR_LEN(f),					\
}

#define SENDS	(UROCE_F_SEND | UROCE_F_PAYLOAD)
#define WRITES	(UROCE_F_WRITE | UROCE_F_PAYLOAD)
#define RESPS	(UROCE_F_READ_RESP | UROCE_F_PAYLOAD)
#define FIRST	UROCE_F_FIRST
#define LAST	UROCE_F_LAST
#define ONLY	(UROCE_F_FIRST | UROCE_F_LAST)
#define RETH	UROCE_F_RETH
#define AETH	UROCE_F_AETH
#define DETH	UROCE_F_DETH
#define IMM	UROCE_F_IMM
#define IETH	UROCE_F_IETH

const struct uroce_opcode uroce_opcodes[256] = {
	ROW(RC, SEND_FIRST, SENDS | FIRST),
	ROW(RC, SEND_MIDDLE, SENDS),
	ROW(RC, SEND_LAST, SENDS | LAST),
	ROW(RC, SEND_LAST_IMM, SENDS | LAST | IMM),
	ROW(RC, SEND_ONLY, SENDS | ONLY),
	ROW(RC, SEND_ONLY_IMM, SENDS | ONLY | IMM),
	ROW(RC, WRITE_FIRST, WRITES | FIRST | RETH),
	ROW(RC, WRITE_MIDDLE, WRITES),
	ROW(RC, WRITE_LAST, WRITES | LAST),
	ROW(RC, WRITE_LAST_IMM, WRITES | LAST | IMM),
	ROW(RC, WRITE_ONLY, WRITES | ONLY | RETH),
	ROW(RC, WRITE_ONLY_IMM, WRITES | ONLY | RETH | IMM),
	ROW(RC, READ_REQ, UROCE_F_READ | ONLY | RETH),
	ROW(RC, READ_RESP_FIRST, RESPS | FIRST | AETH),
	ROW(RC, READ_RESP_MIDDLE, RESPS),
	ROW(RC, READ_RESP_LAST, RESPS | LAST | AETH),
	ROW(RC, READ_RESP_ONLY, RESPS | ONLY | AETH),
	ROW(RC, ACK, UROCE_F_ACK | ONLY | AETH),
	ROW(RC, ATOMIC_ACK, UROCE_F_ACK | ONLY | AETH | UROCE_F_ATOMIC_ACK_ETH),
	ROW(RC, CMP_SWAP, UROCE_F_ATOMIC | ONLY | UROCE_F_ATOMIC_ETH),
	ROW(RC, FETCH_ADD, UROCE_F_ATOMIC | ONLY | UROCE_F_ATOMIC_ETH),
	ROW(RC, SEND_LAST_INV, SENDS | LAST | IETH),
	ROW(RC, SEND_ONLY_INV, SENDS | ONLY | IETH),
	ROW(RC, ATOMIC_WRITE, UROCE_F_ATOMIC_WRITE | UROCE_F_PAYLOAD | ONLY | RETH),

	ROW(UC, SEND_FIRST, SENDS | FIRST),
	ROW(UC, SEND_MIDDLE, SENDS),
	ROW(UC, SEND_LAST, SENDS | LAST),
	ROW(UC, SEND_LAST_IMM, SENDS | LAST | IMM),
	ROW(UC, SEND_ONLY, SENDS | ONLY),
	ROW(UC, SEND_ONLY_IMM, SENDS | ONLY | IMM),
	ROW(UC, WRITE_FIRST, WRITES | FIRST | RETH),
	ROW(UC, WRITE_MIDDLE, WRITES),
	ROW(UC, WRITE_LAST, WRITES | LAST),
	ROW(UC, WRITE_LAST_IMM, WRITES | LAST | IMM),
	ROW(UC, WRITE_ONLY, WRITES | ONLY | RETH),
	ROW(UC, WRITE_ONLY_IMM, WRITES | ONLY | RETH | IMM),

	ROW(UD, SEND_ONLY, SENDS | ONLY | DETH),
	ROW(UD, SEND_ONLY_IMM, SENDS | ONLY | DETH | IMM),
};

__u8 uroce_opcode_part(__u8 op, int first, int last)
{
	if (first && last)
		return op;

	switch (op) {
	case UROCE_OP_SEND_ONLY:
	case UROCE_OP_SEND_ONLY_IMM:
	case UROCE_OP_SEND_ONLY_INV:
		if (first)
			return UROCE_OP_SEND_FIRST;
		if (!last)
			return UROCE_OP_SEND_MIDDLE;
		if (op == UROCE_OP_SEND_ONLY_IMM)
			return UROCE_OP_SEND_LAST_IMM;
		return op == UROCE_OP_SEND_ONLY_INV ? UROCE_OP_SEND_LAST_INV :
						      UROCE_OP_SEND_LAST;
	case UROCE_OP_WRITE_ONLY:
	case UROCE_OP_WRITE_ONLY_IMM:
		if (first)
			return UROCE_OP_WRITE_FIRST;
		if (!last)
			return UROCE_OP_WRITE_MIDDLE;
		return op == UROCE_OP_WRITE_ONLY_IMM ? UROCE_OP_WRITE_LAST_IMM :
						       UROCE_OP_WRITE_LAST;
	case UROCE_OP_READ_RESP_ONLY:
		if (first)
			return UROCE_OP_READ_RESP_FIRST;
		return last ? UROCE_OP_READ_RESP_LAST : UROCE_OP_READ_RESP_MIDDLE;
	default:
		return op;
	}
}
