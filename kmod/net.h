/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The network below: UDP port 4791 of each namespace that has a device, and
 * transmission of finished transport packets (headers, route, ICRC).
 */
#ifndef UROCE_NET_H
#define UROCE_NET_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/skbuff.h>
#include <linux/wait.h>

struct dst_cache;
struct net_device;
struct uroce_av;
struct uroce_dev;
struct sock;
struct socket;

/* One for each network namespace; lives as long as that does */
struct uroce_net {
	struct mutex lock;		/* users and sockets; may sleep */
	int users;			/* devices with a share in the sockets */
	struct socket *sock4;		/* open while users > 0 */
	struct socket *sock6;		/* NULL where IPv6 is off */
	struct list_head devs;		/* struct uroce_dev; RCU, written under lock */
	int pins;			/* devices that use the namespace; idle.lock */
	wait_queue_head_t idle;		/* woken when pins becomes 0 */
};

/* Receives the datagrams of the sockets; softirq; skb->data at the UDP header */
typedef int (*uroce_rcv_fn)(struct sock *sk, struct sk_buff *skb);

int uroce_net_init(uroce_rcv_fn rcv);
void uroce_net_exit(void);

/*
 * Is there a device on @ndev, of its present namespace? The core does not find
 * those it is about to (un)register or to move. May sleep.
 */
bool uroce_net_has_device(struct net_device *ndev);

/* @ndev goes or leaves its namespace: so does its device, see uroce_device_leave(). RTNL. */
void uroce_net_leave(struct net_device *ndev);

/* Device comes and goes: the first opens the sockets, the last closes them. */
int uroce_net_attach(struct uroce_dev *dev);
void uroce_net_detach(struct uroce_dev *dev);

/* The namespace's struct uroce_net of a socket of ours; RCU */
struct uroce_net *uroce_net_of_sock(struct sock *sk);

/*
 * An skb with @len bytes for BTH, extended headers, payload and padding, and
 * room for everything around them. BH-disabled context; NULL without memory.
 */
struct sk_buff *uroce_net_alloc(u32 len);

/* Where a packet goes; what uroce_net_xmit() puts around it */
struct uroce_flow {
	const struct uroce_av *av;
	struct dst_cache *dst;	/* its route */
	u16 sport;
	u16 ip_id;
};

/*
 * Finish and send; takes the skb. BH-disabled context.
 * Return 0, also when this host has lost it for good, as any other on the way
 * might (a filter); -EAGAIN when this host dropped it for now (queue full);
 * -EHOSTUNREACH.
 */
int uroce_net_xmit(struct uroce_dev *dev, const struct uroce_flow *flow,
		   struct sk_buff *skb);

/* True when the ICRC behind @len bytes of UDP payload at @offset is right. */
bool uroce_net_icrc_ok(const struct sk_buff *skb, u32 offset, u32 len);

#endif
