// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Sockets, routes, IP and UDP headers; see net.h. */
#include <linux/crc32.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>
#include <linux/udp.h>
#include <net/dst_cache.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/netns/generic.h>
#include <net/route.h>
#include <net/udp_tunnel.h>
#include "device.h"
#include "icrc.h"
#include "net.h"
#include "pd_ah.h"
#include "wire.h"

#define NET_HEADROOM	(LL_MAX_HEADER + sizeof(struct ipv6hdr) + sizeof(struct udphdr))

static unsigned int uroce_net_id;
static uroce_rcv_fn net_rcv;

/* ---- sockets ---- */

static struct socket *sock_open(struct net *net, struct uroce_net *un,
				bool ipv6)
{
	struct udp_tunnel_sock_cfg tunnel = {
		.sk_user_data = un,
		.encap_type = 1,
		.encap_rcv = net_rcv,
	};
	struct udp_port_cfg port = {
		.family = ipv6 ? AF_INET6 : AF_INET,
		.ipv6_v6only = ipv6,
		.local_udp_port = htons(UROCE_UDP_PORT),
		/* RoCE v2 sends UDP checksum 0 */
		.use_udp6_rx_checksums = false,
	};
	struct socket *sock;
	int err;

	err = udp_sock_create(net, &port, &sock);
	if (err == -EADDRINUSE)
		pr_warn("uroce: UDP port %u is taken in this network namespace, by rdma_rxe?\n",
			UROCE_UDP_PORT);
	if (err)
		return ERR_PTR(err);
	setup_udp_tunnel_sock(net, sock, &tunnel);
	/* which tunnels do not want: to members of a group on this host */
	uroce_sock_set_mc_loop(sock->sk);
	return sock;
}

static void socks_close(struct uroce_net *un)
{
	lockdep_assert_held(&un->lock);

	if (un->sock4)
		udp_tunnel_sock_release(un->sock4);
	if (un->sock6)
		udp_tunnel_sock_release(un->sock6);
	un->sock4 = NULL;
	un->sock6 = NULL;
}

static int socks_open(struct net *net, struct uroce_net *un)
{
	struct socket *sock;

	lockdep_assert_held(&un->lock);

	sock = sock_open(net, un, false);
	if (IS_ERR(sock))
		return PTR_ERR(sock);
	un->sock4 = sock;

	sock = sock_open(net, un, true);
	if (!IS_ERR(sock)) {
		un->sock6 = sock;
		return 0;
	}
	if (PTR_ERR(sock) == -EAFNOSUPPORT)	/* ipv6.disable=1 */
		return 0;
	socks_close(un);
	return PTR_ERR(sock);
}

/*
 * A device keeps its namespace, whatever becomes of the netdev. The unlock is
 * the last access of the device to @un, which may be freed from then on.
 */
static void net_pin(struct uroce_net *un, int by)
{
	spin_lock(&un->idle.lock);
	un->pins += by;
	if (!un->pins)
		wake_up_locked(&un->idle);
	spin_unlock(&un->idle.lock);
}

/* True once the last device is out of net_pin(). */
static bool net_unpinned(struct uroce_net *un)
{
	bool none;

	spin_lock(&un->idle.lock);
	none = !un->pins;
	spin_unlock(&un->idle.lock);
	return none;
}

int uroce_net_attach(struct uroce_dev *dev)
{
	struct uroce_net *un;
	int err = 0;

	/* under the RTNL the netdev keeps its namespace alive */
	rtnl_lock();
	if (dev->ndev->reg_state != NETREG_REGISTERED)
		err = -ENODEV;
	dev->net = dev_net(dev->ndev);
	un = net_generic(dev->net, uroce_net_id);
	if (!err)
		net_pin(un, 1);
	rtnl_unlock();
	if (err)
		return err;

	mutex_lock(&un->lock);
	if (!un->users)
		err = socks_open(dev->net, un);
	if (!err) {
		un->users++;
		dev->un = un;
		list_add_tail_rcu(&dev->net_node, &un->devs);
	}
	mutex_unlock(&un->lock);
	if (err)
		net_pin(un, -1);
	return err;
}

void uroce_net_detach(struct uroce_dev *dev)
{
	struct uroce_net *un = dev->un;

	mutex_lock(&un->lock);
	list_del_rcu(&dev->net_node);
	/* packets that found the device in the list get through */
	synchronize_net();
	if (!--un->users)
		socks_close(un);
	mutex_unlock(&un->lock);
	net_pin(un, -1);
}

/* Under the RTNL, which keeps the netdev's namespace alive, and RCU read lock */
static struct uroce_dev *dev_on(struct net_device *ndev)
{
	struct uroce_net *un = net_generic(dev_net(ndev), uroce_net_id);
	struct uroce_dev *dev;

	ASSERT_RTNL();

	list_for_each_entry_rcu(dev, &un->devs, net_node) {
		if (dev->ndev == ndev)
			return dev;
	}
	return NULL;
}

bool uroce_net_has_device(struct net_device *ndev)
{
	bool found;

	rtnl_lock();
	rcu_read_lock();
	found = dev_on(ndev);
	rcu_read_unlock();
	rtnl_unlock();
	return found;
}

void uroce_net_leave(struct net_device *ndev)
{
	struct uroce_dev *dev;

	rcu_read_lock();
	dev = dev_on(ndev);
	if (dev)
		uroce_device_leave(dev);
	rcu_read_unlock();
}

struct uroce_net *uroce_net_of_sock(struct sock *sk)
{
	return rcu_dereference_sk_user_data(sk);
}

static int __net_init net_init(struct net *net)
{
	struct uroce_net *un = net_generic(net, uroce_net_id);

	mutex_init(&un->lock);
	init_waitqueue_head(&un->idle);
	INIT_LIST_HEAD(&un->devs);
	return 0;
}

/* The namespace is going; its netdevs go some time after this. */
static void __net_exit net_pre_exit(struct net *net)
{
	struct uroce_net *un = net_generic(net, uroce_net_id);
	struct uroce_dev *dev;

	mutex_lock(&un->lock);
	list_for_each_entry(dev, &un->devs, net_node)
		uroce_device_leave(dev);
	mutex_unlock(&un->lock);
}

/*
 * The namespace's netdevs have gone or left for another one, and the removal
 * of their devices is done or queued. Wait for it: devices use the namespace.
 */
static void __net_exit net_exit(struct net *net)
{
	struct uroce_net *un = net_generic(net, uroce_net_id);

	wait_event(un->idle, net_unpinned(un));
}

static struct pernet_operations net_ops = {
	.init = net_init,
	.pre_exit = net_pre_exit,
	.exit = net_exit,
	.id = &uroce_net_id,
	.size = sizeof(struct uroce_net),
};

int uroce_net_init(uroce_rcv_fn rcv)
{
	net_rcv = rcv;
	return register_pernet_subsys(&net_ops);
}

void uroce_net_exit(void)
{
	unregister_pernet_subsys(&net_ops);
}

/* ---- transmit ---- */

static struct dst_entry *route4(struct uroce_dev *dev,
				const struct uroce_flow *flow)
{
	const struct uroce_av *av = flow->av;
	struct flowi4 fl4 = {
		.flowi4_oif = av->oif,
		.flowi4_tos = RT_TOS(av->tclass),
		.flowi4_proto = IPPROTO_UDP,
		.saddr = av->saddr.s6_addr32[3],
		.daddr = av->daddr.s6_addr32[3],
		.fl4_sport = htons(flow->sport),
		.fl4_dport = htons(UROCE_UDP_PORT),
	};
	struct rtable *rt;

	rt = ip_route_output_flow(dev->net, &fl4, NULL);
	if (IS_ERR(rt))
		return NULL;
	dst_cache_set_ip4(flow->dst, &rt->dst, fl4.saddr);
	return &rt->dst;
}

static struct dst_entry *route6(struct uroce_dev *dev,
				const struct uroce_flow *flow)
{
	const struct uroce_av *av = flow->av;
	struct flowi6 fl6 = {
		.flowi6_oif = av->oif,
		.flowi6_proto = IPPROTO_UDP,
		.flowlabel = ip6_make_flowinfo(av->tclass,
					       htonl(av->flow_label)),
		.saddr = av->saddr,
		.daddr = av->daddr,
		.fl6_sport = htons(flow->sport),
		.fl6_dport = htons(UROCE_UDP_PORT),
	};
	struct socket *sock = READ_ONCE(dev->un->sock6);
	struct dst_entry *dst;

	if (!sock)
		return NULL;
	dst = ip6_dst_lookup_flow(dev->net, sock->sk, &fl6, NULL);
	if (IS_ERR(dst))
		return NULL;
	dst_cache_set_ip6(flow->dst, dst, &fl6.saddr);
	return dst;
}

/* With a reference; NULL: no route */
static struct dst_entry *route_get(struct uroce_dev *dev,
				   const struct uroce_flow *flow)
{
	struct dst_entry *dst = dst_cache_get(flow->dst);

	if (dst)
		return dst;
	return flow->av->ipv4 ? route4(dev, flow) : route6(dev, flow);
}

struct sk_buff *uroce_net_alloc(u32 len)
{
	struct sk_buff *skb;

	skb = alloc_skb(NET_HEADROOM + len + UROCE_ICRC_LEN,
			GFP_ATOMIC | __GFP_NOWARN);
	if (skb) {
		skb_reserve(skb, NET_HEADROOM);
		skb_put(skb, len);
	}
	return skb;
}

static void push_udp(struct sk_buff *skb, u16 sport)
{
	struct udphdr *udp = skb_push(skb, sizeof(*udp));

	skb_reset_transport_header(skb);
	udp->source = htons(sport);
	udp->dest = htons(UROCE_UDP_PORT);
	udp->len = htons(skb->len);
	udp->check = 0;
}

static void push_ipv4(struct sk_buff *skb, const struct uroce_flow *flow)
{
	struct iphdr *ip = skb_push(skb, sizeof(*ip));

	skb_reset_network_header(skb);
	skb->protocol = htons(ETH_P_IP);
	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tos = flow->av->tclass;
	ip->tot_len = htons(skb->len);
	ip->id = htons(flow->ip_id);
	ip->frag_off = htons(IP_DF);
	ip->ttl = flow->av->hop_limit;
	ip->protocol = IPPROTO_UDP;
	ip->check = 0;		/* ip_local_out() fills it in */
	ip->saddr = flow->av->saddr.s6_addr32[3];
	ip->daddr = flow->av->daddr.s6_addr32[3];
}

static void push_ipv6(struct sk_buff *skb, const struct uroce_flow *flow)
{
	u16 payload = skb->len;
	struct ipv6hdr *ip = skb_push(skb, sizeof(*ip));

	skb_reset_network_header(skb);
	skb->protocol = htons(ETH_P_IPV6);
	ip6_flow_hdr(ip, flow->av->tclass, htonl(flow->av->flow_label));
	ip->payload_len = htons(payload);
	ip->nexthdr = IPPROTO_UDP;
	ip->hop_limit = flow->av->hop_limit;
	ip->saddr = flow->av->saddr;
	ip->daddr = flow->av->daddr;
}

/* The packet is linear and whole but for the ICRC's four bytes at its end. */
static void put_icrc(struct sk_buff *skb, int version)
{
	const u8 *bth = skb_transport_header(skb) + sizeof(struct udphdr);
	u8 *end = skb_tail_pointer(skb) - UROCE_ICRC_LEN;
	const u8 *rest = bth + sizeof(struct uroce_bth);
	__le32 icrc;
	u32 crc;

	crc = uroce_icrc_start(skb_network_header(skb), version,
			       skb_transport_header(skb));
	crc = crc32_le(crc, rest, end - rest);
	icrc = uroce_icrc_finish(crc);
	memcpy(end, &icrc, sizeof(icrc));
}

/*
 * All packets of a QP in one queue of the netdev, whatever CPU they are made on:
 * XPS would choose it by the CPU, and queues overtake each other. This is where
 * XPS keeps the CPU it goes by (0: not yet known).
 */
static void keep_order(struct sk_buff *skb, u16 sport)
{
#ifdef CONFIG_XPS
	skb->sender_cpu = sport % nr_cpu_ids + 1;
#endif
}

int uroce_net_xmit(struct uroce_dev *dev, const struct uroce_flow *flow,
		   struct sk_buff *skb)
{
	struct dst_entry *dst = route_get(dev, flow);
	bool ipv4 = flow->av->ipv4;
	struct socket *sock;
	u32 len = skb->len;
	int err;

	if (!dst) {
		kfree_skb(skb);
		uroce_count(dev, UROCE_CNT_TX_NO_ROUTE);
		return -EHOSTUNREACH;
	}
	skb_dst_set(skb, dst);

	skb_put(skb, UROCE_ICRC_LEN);
	push_udp(skb, flow->sport);
	if (ipv4)
		push_ipv4(skb, flow);
	else
		push_ipv6(skb, flow);
	put_icrc(skb, ipv4 ? 4 : 6);
	keep_order(skb, flow->sport);

	sock = ipv4 ? dev->un->sock4 : dev->un->sock6;
	err = ipv4 ? ip_local_out(dev->net, sock->sk, skb) :
		     ip6_local_out(dev->net, sock->sk, skb);
	if (unlikely(net_xmit_eval(err))) {
		uroce_count(dev, UROCE_CNT_TX_DROPPED);
		/* a full queue empties; some filters look like one */
		return err == NET_XMIT_DROP || err == -ENOBUFS ? -EAGAIN : 0;
	}
	uroce_count(dev, UROCE_CNT_SENT_PKTS);
	uroce_count_add(dev, UROCE_CNT_SENT_BYTES, len);
	return 0;
}

/* ---- receive ---- */

static u32 crc_range(u32 crc, const struct sk_buff *skb, u32 from, u32 to)
{
	struct skb_seq_state seq;
	u32 done = 0;

	skb_prepare_seq_read((struct sk_buff *)skb, from, to, &seq);
	while (done < to - from) {
		const u8 *data;
		u32 n = skb_seq_read(done, &data, &seq);

		if (!n)
			break;
		/* the last run may reach beyond what was asked for */
		n = min(n, to - from - done);
		crc = crc32_le(crc, data, n);
		done += n;
	}
	skb_abort_seq_read(&seq);
	return crc;
}

bool uroce_net_icrc_ok(const struct sk_buff *skb, u32 offset, u32 len)
{
	int version = ip_hdr(skb)->version;
	__le32 want, have;
	u32 crc;

	/* options and extension headers are not what the ICRC is defined over */
	if (version == 4 && ip_hdr(skb)->ihl != 5)
		return false;

	crc = uroce_icrc_start(skb_network_header(skb), version,
			       skb_transport_header(skb));
	crc = crc_range(crc, skb, offset + sizeof(struct uroce_bth),
			offset + len - UROCE_ICRC_LEN);
	want = uroce_icrc_finish(crc);
	if (skb_copy_bits(skb, offset + len - UROCE_ICRC_LEN, &have, sizeof(have)))
		return false;
	return want == have;
}
