/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Responder: carries out requests, be they packets from the wire or whole
 * messages of a QP on the same device, and answers them.
 * All functions are for the RECV owner, BH disabled.
 */
#ifndef UROCE_RESP_H
#define UROCE_RESP_H

#include "local_msg.h"
#include "parse.h"
#include "qp.h"

/* PSNs that a READ of @len bytes takes */
static inline u32 uroce_read_psns(const struct uroce_qp *qp, u32 len)
{
	return len ? DIV_ROUND_UP(len, qp->attr.mtu) : 1;
}

/*
 * One request. @local: NULL for a packet.
 * Return false when memory that it touches is not there: a fault was noted, for
 * this direction or by a local message's own list; nothing has been done that a
 * repetition would do twice, and the request is to be repeated.
 */
bool __must_check uroce_resp_request(struct uroce_qp *qp,
				     const struct uroce_pkt *pkt,
				     struct uroce_payload *payload,
				     struct uroce_local *local);

/* A datagram in @skb (UD, GSI). False as above. */
bool __must_check uroce_resp_datagram(struct uroce_qp *qp,
				      const struct uroce_pkt *pkt,
				      struct sk_buff *skb,
				      struct uroce_payload *payload);

/*
 * The QP is in error: give back all receive WQEs with WR_FLUSH_ERR, at most
 * *@budget (counted down). Return: true when there is more.
 */
bool uroce_resp_flush(struct uroce_qp *qp, int *budget);

#endif
