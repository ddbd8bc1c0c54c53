/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Multicast groups: which QPs are attached to which, and the membership of the
 * netdev, which is IP's own (IGMP, MLD, "ip maddr") and counts its users.
 *
 * Written under the RTNL, read under RCU. An attached QP cannot be destroyed:
 * the core sees to that.
 */
#ifndef UROCE_MCAST_H
#define UROCE_MCAST_H

#include <linux/hashtable.h>
#include <net/ipv6.h>
#include "device.h"

/* A QP attached to a group */
struct uroce_member {
	struct hlist_node node;		/* in dev->members, by the hash of gid */
	struct in6_addr gid;		/* an IPv4 group is mapped */
	struct uroce_qp *qp;
	struct rcu_head rcu;
};

/* An IPv6 group, or an IPv4 one mapped as in GIDs */
static inline bool uroce_addr_is_group(const struct in6_addr *addr)
{
	return ipv6_addr_is_multicast(addr) ||
	       (ipv6_addr_v4mapped(addr) &&
		ipv4_is_multicast(addr->s6_addr32[3]));
}

/* ib_device operations; may sleep, take the RTNL */
int uroce_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int uroce_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);

#endif
