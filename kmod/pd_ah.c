// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Protection domains and address handles; see pd_ah.h. */
#include <linux/slab.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include "device.h"
#include "pd_ah.h"
#include "uapi/uroce-abi.h"

#define DEFAULT_HOP_LIMIT	64

int uroce_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return uroce_object_get(to_udev(pd->device), UROCE_OBJ_PD, udata);
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

struct uroce_path *uroce_path_lookup(struct uroce_dev *dev, struct ib_pd *pd,
				     u32 handle)
{
	struct uroce_path *path = xa_load(&dev->paths, handle);

	return path && path->pd == pd ? path : NULL;
}

static struct uroce_path *path_create(struct uroce_dev *dev, struct ib_pd *pd,
				      const struct rdma_ah_attr *attr, gfp_t gfp)
{
	struct uroce_path *path;
	int err;

	path = kzalloc(sizeof(*path), gfp);
	if (!path)
		return ERR_PTR(-ENOMEM);
	path->pd = pd;
	err = uroce_av_init(dev, attr, &path->av);
	/*
	 * Those made in atomic context are the CM's, for one message each, and
	 * per-CPU memory is scarce there: they look the route up each time.
	 */
	if (!err && gfp != GFP_ATOMIC)
		err = dst_cache_init(&path->dst, gfp);
	if (!err)
		return path;
	kfree(path);
	return ERR_PTR(err);
}

static void path_free_rcu(struct rcu_head *rcu)
{
	struct uroce_path *path = container_of(rcu, struct uroce_path, rcu);

	dst_cache_destroy(&path->dst);
	kfree(path);
}

/*
 * Handles go round, so that a WQE that outlived its AH does not go to where
 * another one leads. The CM calls with interrupts off.
 */
static int path_publish(struct uroce_dev *dev, struct uroce_ah *ah, gfp_t gfp)
{
	unsigned long irq;
	int err;

	xa_lock_irqsave(&dev->paths, irq);
	err = __xa_alloc_cyclic(&dev->paths, &ah->handle, ah->path,
				XA_LIMIT(1, U32_MAX), &dev->next_path, gfp);
	xa_unlock_irqrestore(&dev->paths, irq);
	return min(err, 0);	/* 1: the handles have wrapped */
}

static void path_unpublish(struct uroce_dev *dev, struct uroce_ah *ah)
{
	unsigned long irq;

	xa_lock_irqsave(&dev->paths, irq);
	__xa_erase(&dev->paths, ah->handle);
	xa_unlock_irqrestore(&dev->paths, irq);
	call_rcu(&ah->path->rcu, path_free_rcu);
}

/* May be called in atomic context (no RDMA_CREATE_AH_SLEEPABLE). */
int uroce_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		    struct ib_udata *udata)
{
	bool sleep = init->flags & RDMA_CREATE_AH_SLEEPABLE;
	struct uroce_dev *dev = to_udev(ibah->device);
	gfp_t gfp = sleep ? GFP_KERNEL_ACCOUNT : GFP_ATOMIC;
	struct uroce_ah *ah = to_uah(ibah);
	struct uroce_create_ah_resp resp = {};
	int err;

	if (udata && udata->outlen < sizeof(resp))
		return -EINVAL;
	err = uroce_object_get(dev, UROCE_OBJ_AH, udata);
	if (err)
		return err;

	ah->attr = *init->ah_attr;
	ah->path = path_create(dev, ibah->pd, init->ah_attr, gfp);
	if (IS_ERR(ah->path)) {
		err = PTR_ERR(ah->path);
		goto err_count;
	}
	err = path_publish(dev, ah, gfp);
	if (err) {
		call_rcu(&ah->path->rcu, path_free_rcu);
		goto err_count;
	}
	if (udata) {
		resp.handle = ah->handle;
		err = ib_copy_to_udata(udata, &resp, sizeof(resp));
		if (err)
			goto err_path;
	}
	return 0;

err_path:
	path_unpublish(dev, ah);
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

	path_unpublish(dev, to_uah(ibah));
	uroce_object_put(dev, UROCE_OBJ_AH);
	return 0;
}
