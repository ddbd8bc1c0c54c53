/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Receive: parse, check, find the QP, hand over to the engine. */
#ifndef UROCE_RX_H
#define UROCE_RX_H

#include <linux/skbuff.h>

struct sock;

/* A datagram of port 4791; softirq. Takes the skb; always returns 0. */
int uroce_rx(struct sock *sk, struct sk_buff *skb);

#endif
