/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Protection domains; address vectors and the handles that own them. */
#ifndef UROCE_PD_AH_H
#define UROCE_PD_AH_H

#include <linux/in6.h>
#include <net/dst_cache.h>
#include <rdma/ib_verbs.h>

struct uroce_dev;

struct uroce_pd {
	struct ib_pd ib;	/* first: allocated by the core */
};

/*
 * Where packets go and come from. Copied out of an AH attribute, so that no
 * reference to the GID is needed on the data path. IPv4 addresses are kept as
 * IPv4-mapped IPv6 ones, like the GIDs.
 */
struct uroce_av {
	struct in6_addr saddr;
	struct in6_addr daddr;
	bool ipv4;
	u8 tclass;
	u8 hop_limit;		/* never 0 */
	u8 sl;
	u8 sgid_index;
	u32 flow_label;		/* 20 bits */
	int oif;		/* interface that carries the source address */
};

/* What an AH leads to: found by its handle under RCU */
struct uroce_path {
	struct uroce_av av;
	struct dst_cache dst;	/* route of av; may be without memory */
	struct ib_pd *pd;
	struct rcu_head rcu;
};

/*
 * Fill @av from @attr, whose sgid_attr the core has resolved.
 * -EINVAL: not a RoCE v2 address of this device's port. Any context.
 */
int uroce_av_init(struct uroce_dev *dev, const struct rdma_ah_attr *attr,
		  struct uroce_av *av);

struct uroce_ah {
	struct ib_ah ib;	/* first: allocated by the core */
	struct uroce_path *path;	/* freed after a grace period */
	u32 handle;		/* in dev->paths; never 0 */
	struct rdma_ah_attr attr;
};

static inline struct uroce_ah *to_uah(struct ib_ah *ib)
{
	return container_of(ib, struct uroce_ah, ib);
}

/*
 * The path of an AH handle, if it belongs to @pd; NULL: no such handle.
 * RCU read lock held, for as long as the path is used.
 */
struct uroce_path *uroce_path_lookup(struct uroce_dev *dev, struct ib_pd *pd,
				     u32 handle);

int uroce_alloc_pd(struct ib_pd *pd, struct ib_udata *udata);
int uroce_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata);
int uroce_create_ah(struct ib_ah *ah, struct rdma_ah_init_attr *init,
		    struct ib_udata *udata);
int uroce_query_ah(struct ib_ah *ah, struct rdma_ah_attr *attr);
int uroce_destroy_ah(struct ib_ah *ah, u32 flags);

#endif
