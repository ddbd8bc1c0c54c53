// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Multicast groups; see mcast.h. */
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include "mcast.h"
#include "qp.h"

/* Joining an IPv4 group returns nothing, also when there was no memory for it. */
static bool is_member4(const struct in_device *in_dev, __be32 group)
{
	const struct ip_mc_list *im;

	for (im = rtnl_dereference(in_dev->mc_list); im;
	     im = rtnl_dereference(im->next_rcu)) {
		if (im->multiaddr == group)
			return true;
	}
	return false;
}

/* One more user of the group on the netdev */
static int group_join(struct uroce_dev *dev, const struct in6_addr *gid)
{
	struct in_device *in_dev;

	ASSERT_RTNL();

	/* it has left for another namespace, and the device is going */
	if (!net_eq(dev_net(dev->ndev), dev->net))
		return -ENODEV;
	if (!ipv6_addr_v4mapped(gid))
		return ipv6_dev_mc_inc(dev->ndev, gid);

	in_dev = __in_dev_get_rtnl(dev->ndev);
	if (!in_dev)
		return -ENODEV;
	ip_mc_inc_group(in_dev, gid->s6_addr32[3]);
	return is_member4(in_dev, gid->s6_addr32[3]) ? 0 : -ENOMEM;
}

/* IP forgets the groups of a netdev that goes or leaves by itself. */
static void group_leave(struct uroce_dev *dev, const struct in6_addr *gid)
{
	struct in_device *in_dev;

	ASSERT_RTNL();

	if (!net_eq(dev_net(dev->ndev), dev->net))
		return;
	if (!ipv6_addr_v4mapped(gid)) {
		ipv6_dev_mc_dec(dev->ndev, gid);
		return;
	}
	in_dev = __in_dev_get_rtnl(dev->ndev);
	if (in_dev)
		ip_mc_dec_group(in_dev, gid->s6_addr32[3]);
}

/* The QP's own membership, NULL if it has none. *@num: how many QPs have one. */
static struct uroce_member *find_member(struct uroce_qp *qp,
					const struct in6_addr *gid, u32 *num)
{
	struct uroce_member *member, *found = NULL;

	ASSERT_RTNL();

	*num = 0;
	hash_for_each_possible(qp->dev->members, member, node,
			       ipv6_addr_hash(gid)) {
		if (!ipv6_addr_equal(&member->gid, gid))
			continue;
		++*num;
		if (member->qp == qp)
			found = member;
	}
	return found;
}

static int add_member(struct uroce_qp *qp, struct uroce_member *member)
{
	u32 num;
	int err;

	if (find_member(qp, &member->gid, &num))
		return -EEXIST;
	if (num >= UROCE_MAX_MCAST_QP)
		return -ENOMEM;
	err = group_join(qp->dev, &member->gid);
	if (err)
		return err;
	hash_add_rcu(qp->dev->members, &member->node,
		     ipv6_addr_hash(&member->gid));
	return 0;
}

int uroce_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct uroce_qp *qp = to_uqp(ibqp);
	struct uroce_member *member;
	int err;

	err = uroce_object_get(qp->dev, UROCE_OBJ_MCAST, qp->uctx);
	if (err)
		return err;
	member = kzalloc(sizeof(*member), GFP_KERNEL_ACCOUNT);
	if (!member) {
		err = -ENOMEM;
		goto err_count;
	}
	memcpy(&member->gid, gid, sizeof(member->gid));
	member->qp = qp;

	rtnl_lock();
	err = add_member(qp, member);
	rtnl_unlock();
	if (!err)
		return 0;

	kfree(member);
err_count:
	uroce_object_put(qp->dev, UROCE_OBJ_MCAST);
	return err;
}

int uroce_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct uroce_qp *qp = to_uqp(ibqp);
	struct uroce_member *member;
	struct in6_addr addr;
	u32 num;

	memcpy(&addr, gid, sizeof(addr));
	rtnl_lock();
	member = find_member(qp, &addr, &num);
	if (member) {
		hash_del_rcu(&member->node);
		group_leave(qp->dev, &addr);
	}
	rtnl_unlock();
	if (!member)
		return -EINVAL;

	kfree_rcu(member, rcu);
	uroce_object_put(qp->dev, UROCE_OBJ_MCAST);
	return 0;
}
