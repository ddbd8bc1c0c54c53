/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The device: its limits, its port, its counters, its tables. */
#ifndef UROCE_DEVICE_H
#define UROCE_DEVICE_H

#include <linux/hashtable.h>
#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include "counters.h"

/* Limits: all of them can be had, memory permitting */
#define UROCE_MAX_QP		65535
#define UROCE_MAX_QP_WR		16384
#define UROCE_MAX_SGE		32
#define UROCE_MAX_INLINE	512		/* bytes; the room of 32 elements */
#define UROCE_MAX_SRQ		65535
#define UROCE_MAX_SRQ_WR	16384
#define UROCE_MAX_CQ		65535
#define UROCE_MAX_CQE		1048576
#define UROCE_MAX_MR		1048576
#define UROCE_MAX_MW		1048576
#define UROCE_MAX_FAST_REG	512		/* pages of a fast registration */
#define UROCE_MAX_DM		(64 << 20)	/* bytes of device memory, in all */
#define UROCE_MAX_PD		65535
#define UROCE_MAX_AH		65535
#define UROCE_MAX_XRCD		65535
#define UROCE_MAX_MCAST		2048		/* attachments of QPs to groups */
#define UROCE_MAX_MCAST_QP	256		/* of one group */
#define UROCE_MAX_RD_ATOMIC	128		/* outstanding READs and atomics */
#define UROCE_MAX_MSG		0x80000000U	/* bytes */

/* Live objects of a device, checked against the limits above */
enum uroce_object_type {
	UROCE_OBJ_QP,
	UROCE_OBJ_SRQ,
	UROCE_OBJ_CQ,
	UROCE_OBJ_MR,
	UROCE_OBJ_MW,
	UROCE_OBJ_PD,
	UROCE_OBJ_AH,
	UROCE_OBJ_MCAST,
	UROCE_OBJ_XRCD,
	UROCE_NUM_OBJ
};

struct uroce_stats {
	u64 count[UROCE_NUM_COUNTERS];
};

struct uroce_net;
struct uroce_qp;

struct uroce_dev {
	struct ib_device ib;		/* first: allocated by the core */
	struct net_device *ndev;	/* referenced until dealloc_driver */
	netdevice_tracker ndev_tracker;
	struct net *net;		/* of ndev; outlives the device */
	struct uroce_net *un;		/* socket user of this namespace */
	struct list_head net_node;	/* in un->devs, RCU */
	struct uroce_stats __percpu *stats;
	atomic_t objects[UROCE_NUM_OBJ];
	atomic_long_t dm_pages;		/* device memory allocated */
	atomic_long_t rx_bytes;		/* packets that wait; rxq.h */
	struct xarray keys;		/* key >> 8 -> struct uroce_key, RCU */
	struct xarray paths;		/* AH handle -> struct uroce_path, RCU */
	u32 next_path;
	struct xarray srqs;		/* XRC: number -> struct uroce_srq_entry */
	u32 next_srq;
	struct uroce_qp __rcu *gsi;	/* QP 1 */
	DECLARE_HASHTABLE(members, 8);	/* struct uroce_member; mcast.h */
	bool local_path;		/* setting: copy between QPs of this device */
	int port_active;		/* last state told to the core, under RTNL */
	bool leaving;			/* see uroce_device_leave() */
};

static inline struct uroce_dev *to_udev(struct ib_device *ib)
{
	return container_of(ib, struct uroce_dev, ib);
}

/* Any context, no ordering */
static inline void uroce_count(struct uroce_dev *dev, enum uroce_counter c)
{
	this_cpu_inc(dev->stats->count[c]);
}

static inline void uroce_count_add(struct uroce_dev *dev, enum uroce_counter c,
				   u64 n)
{
	this_cpu_add(dev->stats->count[c], n);
}

/*
 * Account one more object; -ENOMEM at the limit. Kernel consumers (not @user)
 * may have an eighth more: processes cannot take the last one from them.
 */
int uroce_object_get(struct uroce_dev *dev, enum uroce_object_type type,
		     bool user);
void uroce_object_put(struct uroce_dev *dev, enum uroce_object_type type);

/* Tables and counters of a device fresh from ib_alloc_device(); may sleep */
int uroce_device_init(struct uroce_dev *dev, struct net_device *ndev);
void uroce_device_cleanup(struct uroce_dev *dev);

/* True when the netdev can carry packets now; any context */
bool uroce_device_link_up(const struct uroce_dev *dev);
enum ib_mtu uroce_device_mtu(const struct uroce_dev *dev);

/*
 * The netdev is about to go, and the device with it, at once or as soon as the
 * core lets us (uroce_enable_driver()). All QPs but the GSI QP go into error when
 * they have something to send, so that traffic does not keep the CPU from those
 * who take it away, and nobody waits for an answer. For good; any context.
 */
static inline void uroce_device_leave(struct uroce_dev *dev)
{
	WRITE_ONCE(dev->leaving, true);
}

/* Settings of a device, in its sysfs folder (docs/settings.md) */
extern const struct attribute_group uroce_device_group;

/* There is no firmware: for tools that show its version, as 0.0.UROCE_FW_VER */
#define UROCE_FW_VER	1

/* ib_device operations */
void uroce_get_dev_fw_str(struct ib_device *ib, char *str);
int uroce_query_device(struct ib_device *ib, struct ib_device_attr *attr,
		       struct ib_udata *udata);
int uroce_query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr);
int uroce_query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey);
enum rdma_link_layer uroce_get_link_layer(struct ib_device *ib, u32 port);
int uroce_get_port_immutable(struct ib_device *ib, u32 port,
			     struct ib_port_immutable *immutable);
struct rdma_hw_stats *uroce_alloc_hw_port_stats(struct ib_device *ib, u32 port);
int uroce_get_hw_stats(struct ib_device *ib, struct rdma_hw_stats *stats,
		       u32 port, int index);

#endif
