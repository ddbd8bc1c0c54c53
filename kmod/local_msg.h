/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A local message is a packet without an MTU: it is a whole message or a large
 * part of one, with the opcode of such a packet, takes as many PSNs as it would
 * on the wire, its payload comes from the requester's gather list, and the
 * answer goes into struct uroce_local instead of a packet. The rules are the
 * same code.
 */
#ifndef UROCE_LOCAL_MSG_H
#define UROCE_LOCAL_MSG_H

#include "copy.h"

/* Answer to a local message, filled in by the responder */
struct uroce_local {
	struct uroce_sgl *sink;	/* READ: where the data goes */
	u32 num_psn;		/* of the message */
	bool answered;
	u8 syndrome;		/* as in an AETH */
	bool dropped;		/* UC: nobody looked at the requester's list */
	bool source_failed;	/* the requester's own list is at fault */
	u64 orig;		/* atomic: value before */
};

#endif
