// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Protection domains and address handles; see pd_ah.h. */
#include <linux/slab.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include "device.h"
#include "pd_ah.h"

#define DEFAULT_HOP_LIMIT	64

int uroce_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return uroce_object_get(to_udev(pd->device), UROCE_OBJ_PD);
}

int uroce_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	uroce_object_put(to_udev(pd->device), UROCE_OBJ_PD);
	return 0;
}

int uroce_av_init(struct uroce_dev *dev, const struct rdma_ah_attr *attr,
		  struct uroce_av *av)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);
	const struct ib_gid_attr *sgid = grh->sgid_attr;
	struct net_device *ndev;

	if (attr->type != RDMA_AH_ATTR_TYPE_ROCE || attr->port_num != 1 ||
	    !(rdma_ah_get_ah_flags(attr) & IB_AH_GRH) || !sgid ||
	    sgid->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return -EINVAL;

	memset(av, 0, sizeof(*av));
	memcpy(&av->saddr, &sgid->gid, sizeof(av->saddr));
	memcpy(&av->daddr, &grh->dgid, sizeof(av->daddr));
	av->ipv4 = ipv6_addr_v4mapped(&av->saddr);
	if (av->ipv4 != ipv6_addr_v4mapped(&av->daddr) ||
	    ipv6_addr_any(&av->daddr))
		return -EINVAL;

	av->tclass = grh->traffic_class;
	av->hop_limit = grh->hop_limit ?: DEFAULT_HOP_LIMIT;
	av->sl = rdma_ah_get_sl(attr);
	av->sgid_index = grh->sgid_index;
	av->flow_label = grh->flow_label & 0xfffff;

	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(sgid);
	av->oif = IS_ERR(ndev) ? dev->ndev->ifindex : ndev->ifindex;
	rcu_read_unlock();
	return 0;
}

int uroce_av_lookup(struct uroce_dev *dev, struct ib_pd *pd, u32 handle,
		    struct uroce_av *av)
{
	const struct uroce_av *found;
	int err = -EINVAL;

	rcu_read_lock();
	found = xa_load(&dev->avs, handle);
	if (found && found->pd == pd) {
		*av = *found;
		err = 0;
	}
	rcu_read_unlock();
	return err;
}

/* May be called in atomic context (no RDMA_CREATE_AH_SLEEPABLE). */
int uroce_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		    struct ib_udata *udata)
{
	bool sleep = init->flags & RDMA_CREATE_AH_SLEEPABLE;
	struct uroce_dev *dev = to_udev(ibah->device);
	gfp_t gfp = sleep ? GFP_KERNEL : GFP_ATOMIC;
	struct uroce_ah *ah = to_uah(ibah);
	unsigned long irq;
	int err;

	err = uroce_object_get(dev, UROCE_OBJ_AH);
	if (err)
		return err;

	err = -ENOMEM;
	ah->av = kzalloc(sizeof(*ah->av), gfp);
	if (!ah->av)
		goto err_count;

	err = uroce_av_init(dev, init->ah_attr, ah->av);
	if (err)
		goto err_free;
	ah->av->pd = ibah->pd;
	ah->attr = *init->ah_attr;

	/* the CM calls with interrupts off */
	xa_lock_irqsave(&dev->avs, irq);
	err = __xa_alloc(&dev->avs, &ah->handle, ah->av, XA_LIMIT(1, U32_MAX),
			 gfp);
	xa_unlock_irqrestore(&dev->avs, irq);
	if (err)
		goto err_free;
	return 0;

err_free:
	kfree(ah->av);
err_count:
	uroce_object_put(dev, UROCE_OBJ_AH);
	return err;
}

int uroce_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	struct uroce_ah *ah = to_uah(ibah);

	memset(attr, 0, sizeof(*attr));
	attr->type = ah->attr.type;
	attr->sl = ah->attr.sl;
	attr->port_num = ah->attr.port_num;
	rdma_ah_set_ah_flags(attr, IB_AH_GRH);
	rdma_ah_set_grh(attr, &ah->attr.grh.dgid, ah->attr.grh.flow_label,
			ah->attr.grh.sgid_index, ah->attr.grh.hop_limit,
			ah->attr.grh.traffic_class);
	return 0;
}

int uroce_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	struct uroce_dev *dev = to_udev(ibah->device);
	struct uroce_ah *ah = to_uah(ibah);
	unsigned long irq;

	xa_lock_irqsave(&dev->avs, irq);
	__xa_erase(&dev->avs, ah->handle);
	xa_unlock_irqrestore(&dev->avs, irq);
	kfree_rcu(ah->av, rcu);
	uroce_object_put(dev, UROCE_OBJ_AH);
	return 0;
}
