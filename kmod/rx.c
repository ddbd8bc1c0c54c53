// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receive. The network is hostile: everything that can be checked without the
 * QP's owner is checked here, and what fails is counted and dropped, quietly.
 */
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>
#include "engine.h"
#include "mcast.h"
#include "net.h"
#include "parse.h"
#include "rx.h"
#include "rxq.h"
#include "wire.h"

static_assert(sizeof(struct uroce_pkt) <= sizeof_field(struct sk_buff, cb));

/* Source and destination as GIDs are: IPv4 mapped into IPv6 */
struct rx_addr {
	struct in6_addr saddr;
	struct in6_addr daddr;
	/* The link that link-local ones are of; RCU read lock held. NULL: IPv4 */
	struct net_device *link;
};

/* While skb->cb is still IP's. */
static void rx_addr(const struct sk_buff *skb, struct rx_addr *a)
{
	a->link = NULL;
	if (ip_hdr(skb)->version == 6) {
		a->saddr = ipv6_hdr(skb)->saddr;
		a->daddr = ipv6_hdr(skb)->daddr;
		a->link = dev_get_by_index_rcu(dev_net(skb->dev), inet6_iif(skb));
	} else {
		ipv6_addr_set_v4mapped(ip_hdr(skb)->saddr, &a->saddr);
		ipv6_addr_set_v4mapped(ip_hdr(skb)->daddr, &a->daddr);
	}
}

static const struct ib_gid_attr *find_gid(struct uroce_dev *dev,
					  const struct in6_addr *addr,
					  struct net_device *link)
{
	if (!(ipv6_addr_type(addr) & IPV6_ADDR_LINKLOCAL))
		link = NULL;
	return rdma_find_gid_by_port(&dev->ib, (const union ib_gid *)addr,
				     IB_GID_TYPE_ROCE_UDP_ENCAP, 1, link);
}

/*
 * Does @dev own the destination of a datagram? Then note in the skb the
 * VLAN that the address is in, for the completion. RCU read lock held.
 */
static bool dev_has_address(struct uroce_dev *dev, const struct rx_addr *addr,
			    struct sk_buff *skb)
{
	const struct ib_gid_attr *attr = find_gid(dev, &addr->daddr, addr->link);
	struct net_device *ndev;

	if (IS_ERR(attr))
		return false;
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	if (!IS_ERR(ndev) && is_vlan_dev(ndev))
		__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q),
				       vlan_dev_vlan_id(ndev));
	else
		__vlan_hwaccel_clear_tag(skb);
	rdma_put_gid_attr(attr);
	return true;
}

/*
 * QP 1 of the device that a datagram is for: of those in the namespace, the
 * one that has its address. RCU read lock held. NULL: none.
 */
static struct uroce_qp *find_gsi(struct sock *sk, struct sk_buff *skb,
				 const struct rx_addr *addr)
{
	struct uroce_net *un = uroce_net_of_sock(sk);
	struct uroce_dev *dev;
	struct uroce_qp *qp;

	if (!un)
		return NULL;
	list_for_each_entry_rcu(dev, &un->devs, net_node) {
		/*
		 * The reference first: with QP 1 there is a GID table, before
		 * and after it there may be none.
		 */
		qp = rcu_dereference(dev->gsi);
		if (!qp || !uroce_qp_try_get(qp))
			continue;
		if (dev_has_address(dev, addr, skb))
			return qp;
		uroce_qp_put(qp);
	}
	return NULL;
}

/*
 * Where to count a packet that belongs to nobody: the device it came in on,
 * else the first of the namespace. RCU read lock held.
 */
static struct uroce_dev *blame_dev(struct sock *sk, const struct sk_buff *skb)
{
	struct uroce_net *un = uroce_net_of_sock(sk);
	struct uroce_dev *dev;

	if (!un)
		return NULL;
	list_for_each_entry_rcu(dev, &un->devs, net_node) {
		if (dev->ndev == skb->dev)
			return dev;
	}
	return list_first_or_null_rcu(&un->devs, struct uroce_dev, net_node);
}

/* Is the packet for an address of the QP's, and from its peer if it has one? */
static bool address_ok(struct uroce_qp *qp, struct sk_buff *skb,
		       const struct rx_addr *addr)
{
	if (qp->type == IB_QPT_GSI)	/* found by its address */
		return true;
	if (uroce_qp_is_datagram(qp))
		return dev_has_address(qp->dev, addr, skb);
	if (!ipv6_addr_equal(&addr->saddr, &qp->attr.av.daddr) ||
	    !ipv6_addr_equal(&addr->daddr, &qp->attr.av.saddr))
		return false;
	/* what this host sends to itself does not come by a wire; IPv4 knows it */
	return !ipv6_addr_equal(&addr->saddr, &addr->daddr) ||
	       skb->dev->flags & IFF_LOOPBACK || netif_is_l3_master(skb->dev);
}

static enum uroce_dir pkt_dir(const struct uroce_pkt *pkt)
{
	return uroce_pkt_flags(pkt) & UROCE_F_RESPONSE ? UROCE_SEND : UROCE_RECV;
}

/*
 * Checks against the QP that need no ownership; attributes of a QP that is
 * being modified are as good as lost packets. Return: -1, or why to drop.
 */
static int check_qp(struct uroce_qp *qp, struct sock *sk,
		    const struct uroce_pkt *pkt)
{
	/* numbers are shared by all namespaces, packets are not */
	if (!net_eq(qp->dev->net, sock_net(sk)))
		return UROCE_CNT_DROP_QPN;
	if ((pkt->opcode & UROCE_SVC_MASK) != qp->service ||
	    !(pkt_dir(pkt) == UROCE_SEND ? uroce_qp_requests(qp) :
					   uroce_qp_responds(qp)))
		return UROCE_CNT_DROP_SERVICE;
	if (!uroce_state_receives(uroce_qp_state(qp)))
		return UROCE_CNT_DROP_QP_STATE;
	/* longer than the path's MTU is an error to be answered; than any, noise */
	if (pkt->payload_len > (uroce_qp_is_datagram(qp) ?
				ib_mtu_enum_to_int(uroce_device_mtu(qp->dev)) :
				ib_mtu_enum_to_int(IB_MTU_4096)))
		return UROCE_CNT_DROP_LENGTH;
	return -1;
}

/* Takes the skb and the reference. */
static void hand_over(struct uroce_qp *qp, struct sk_buff *skb,
		      enum uroce_dir dir)
{
	if (uroce_rxq_put(qp, dir, skb)) {
		uroce_engine_kick(qp, dir, UROCE_WORK_RX);
	} else {
		uroce_count(qp->dev, UROCE_CNT_DROP_QUEUE_FULL);
		kfree_skb(skb);
	}
	uroce_qp_put(qp);
}

/* ---- multicast ---- */

/* Did a packet come in by the device's netdev, or by a VLAN on it? */
static bool came_in_by(const struct uroce_dev *dev, const struct sk_buff *skb)
{
	return skb->dev == dev->ndev ||
	       (is_vlan_dev(skb->dev) && vlan_dev_real_dev(skb->dev) == dev->ndev);
}

/* A datagram of the QP's own that came back to it, as groups do? */
static bool is_own(struct uroce_qp *qp, const struct uroce_pkt *pkt,
		   const struct rx_addr *addr)
{
	const struct ib_gid_attr *attr;

	/* another host may have the same number */
	if (pkt->src_qp != qp->qpn)
		return false;
	attr = find_gid(qp->dev, &addr->saddr, addr->link);
	if (IS_ERR(attr))
		return false;
	rdma_put_gid_attr(attr);
	return true;
}

static void deliver_to_member(struct uroce_qp *qp, struct sock *sk,
			      struct sk_buff *skb, const struct rx_addr *addr)
{
	const struct uroce_pkt *pkt = (void *)skb->cb;
	struct sk_buff *copy;
	int why;

	if (!uroce_qp_try_get(qp))
		return;
	if (qp->no_mcast_loop && is_own(qp, pkt, addr))
		goto put;
	why = check_qp(qp, sk, pkt);
	if (why >= 0) {
		uroce_count(qp->dev, why);
		goto put;
	}
	copy = skb_clone(skb, GFP_ATOMIC);
	if (copy) {
		hand_over(qp, copy, UROCE_RECV);
		return;
	}
	uroce_count(qp->dev, UROCE_CNT_DROP_QUEUE_FULL);
put:
	uroce_qp_put(qp);
}

/* To all QPs attached to the group; -1 when there was one. Keeps the skb. */
static int deliver_to_group(struct sock *sk, struct sk_buff *skb, u32 len,
			    const struct rx_addr *addr)
{
	struct uroce_net *un = uroce_net_of_sock(sk);
	int why = UROCE_CNT_DROP_QPN;
	struct uroce_member *member;
	struct uroce_dev *dev;

	if (!un)
		return why;
	list_for_each_entry_rcu(dev, &un->devs, net_node) {
		bool any = false;

		if (!came_in_by(dev, skb))
			continue;
		hash_for_each_possible_rcu(dev->members, member, node,
					   ipv6_addr_hash(&addr->daddr)) {
			if (!ipv6_addr_equal(&member->gid, &addr->daddr))
				continue;
			deliver_to_member(member->qp, sk, skb, addr);
			any = true;
		}
		if (any) {
			uroce_count(dev, UROCE_CNT_RCVD_PKTS);
			uroce_count_add(dev, UROCE_CNT_RCVD_BYTES, len);
			why = -1;
		}
	}
	return why;
}

/* The destination address is a group's, so the QP must be all ones (9.8.3.1). */
static int receive_multicast(struct sock *sk, struct sk_buff *skb, u32 len,
			     const struct uroce_pkt *pkt,
			     const struct rx_addr *addr)
{
	int why;

	if (pkt->qpn != UROCE_QPN_MULTICAST)
		return UROCE_CNT_DROP_ADDRESS;
	if (!uroce_net_icrc_ok(skb, sizeof(struct udphdr), len))
		return UROCE_CNT_RX_ICRC_ENCAPSULATED;
	memcpy(skb->cb, pkt, sizeof(*pkt));
	why = deliver_to_group(sk, skb, len, addr);
	if (why < 0)
		consume_skb(skb);
	return why;
}

/* ---- entry ---- */

/* Everything about the datagram; -1 when it was handed over. */
static int receive(struct sock *sk, struct sk_buff *skb,
		   struct uroce_dev **blame)
{
	const u32 udp_len = sizeof(struct udphdr);
	struct uroce_qp *qp;
	struct rx_addr addr;
	struct uroce_pkt pkt;
	u32 len, linear;
	int why;

	if (skb->len < udp_len)
		return UROCE_CNT_DROP_SHORT;
	len = skb->len - udp_len;
	linear = min_t(u32, len, UROCE_MAX_HDR);
	if (!pskb_may_pull(skb, udp_len + linear))
		return UROCE_CNT_DROP_SHORT;

	why = uroce_parse(skb->data + udp_len, linear, len, &pkt);
	if (why >= 0)
		return why;

	rx_addr(skb, &addr);
	if (uroce_addr_is_group(&addr.daddr))
		return receive_multicast(sk, skb, len, &pkt, &addr);
	/* finding QP 1 is the costly step, for others the ICRC is */
	if (pkt.qpn == UROCE_QPN_GSI) {
		if (!uroce_net_icrc_ok(skb, udp_len, len))
			return UROCE_CNT_RX_ICRC_ENCAPSULATED;
		qp = find_gsi(sk, skb, &addr);
	} else {
		qp = uroce_qp_get(pkt.qpn);
	}
	if (!qp)
		return UROCE_CNT_DROP_QPN;

	why = check_qp(qp, sk, &pkt);
	if (why < 0 && !address_ok(qp, skb, &addr))
		why = UROCE_CNT_DROP_ADDRESS;
	if (why < 0 && pkt.qpn != UROCE_QPN_GSI &&
	    !uroce_net_icrc_ok(skb, udp_len, len))
		why = UROCE_CNT_RX_ICRC_ENCAPSULATED;
	if (why >= 0) {
		if (why != UROCE_CNT_DROP_QPN)
			*blame = qp->dev;
		uroce_qp_put(qp);
		return why;
	}

	uroce_count(qp->dev, UROCE_CNT_RCVD_PKTS);
	uroce_count_add(qp->dev, UROCE_CNT_RCVD_BYTES, len);
	memcpy(skb->cb, &pkt, sizeof(pkt));
	hand_over(qp, skb, pkt_dir(&pkt));
	return -1;
}

int uroce_rx(struct sock *sk, struct sk_buff *skb)
{
	struct uroce_dev *dev = NULL;
	int why;

	rcu_read_lock();
	why = receive(sk, skb, &dev);
	if (why >= 0) {
		dev = dev ?: blame_dev(sk, skb);
		if (dev)
			uroce_count(dev, why);
		kfree_skb(skb);
	}
	rcu_read_unlock();
	return 0;
}
