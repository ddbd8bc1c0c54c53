// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Device and port attributes, object counts, counters. */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>
#include "device.h"
#include "dmabuf.h"
#include "wire.h"

/* "uR", locally administered, so as not to borrow somebody's OUI */
#define UROCE_VENDOR_ID		0x027552
#define UROCE_VENDOR_PART	1
#define UROCE_GID_TABLE_LEN	1024
/* Speed of a netdev that does not know its own */
#define UROCE_DEFAULT_MBIT	1000
/* PortInfo.CapabilityMask (IBTA 14.2.5.6): communication management */
#define UROCE_PORT_CM_SUP	0x10000

static const int object_limit[UROCE_NUM_OBJ] = {
	[UROCE_OBJ_QP] = UROCE_MAX_QP,
	[UROCE_OBJ_SRQ] = UROCE_MAX_SRQ,
	[UROCE_OBJ_CQ] = UROCE_MAX_CQ,
	[UROCE_OBJ_MR] = UROCE_MAX_MR,
	[UROCE_OBJ_MW] = UROCE_MAX_MW,
	[UROCE_OBJ_PD] = UROCE_MAX_PD,
	[UROCE_OBJ_AH] = UROCE_MAX_AH,
	[UROCE_OBJ_MCAST] = UROCE_MAX_MCAST,
	[UROCE_OBJ_XRCD] = UROCE_MAX_XRCD,
};

int uroce_object_get(struct uroce_dev *dev, enum uroce_object_type type,
		     bool user)
{
	int limit = object_limit[type];

	if (!user)
		limit += limit / 8;
	if (atomic_inc_return(&dev->objects[type]) > limit) {
		atomic_dec(&dev->objects[type]);
		return -ENOMEM;
	}
	return 0;
}

void uroce_object_put(struct uroce_dev *dev, enum uroce_object_type type)
{
	atomic_dec(&dev->objects[type]);
}

int uroce_device_init(struct uroce_dev *dev, struct net_device *ndev)
{
	dev->stats = alloc_percpu(struct uroce_stats);
	if (!dev->stats)
		return -ENOMEM;

	xa_init_flags(&dev->keys, XA_FLAGS_ALLOC);
	xa_init_flags(&dev->paths, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->srqs, XA_FLAGS_ALLOC1);
	hash_init(dev->members);
	INIT_LIST_HEAD(&dev->net_node);
	uroce_dmabuf_init_device(&dev->ib.dev);
	dev->local_path = true;
	dev->ndev = ndev;
	netdev_hold(ndev, &dev->ndev_tracker, GFP_KERNEL);

	addrconf_addr_eui48((u8 *)&dev->ib.node_guid, ndev->dev_addr);
	if (ndev->addr_len != ETH_ALEN || is_zero_ether_addr(ndev->dev_addr))
		get_random_bytes(&dev->ib.node_guid, sizeof(dev->ib.node_guid));
	return 0;
}

void uroce_device_cleanup(struct uroce_dev *dev)
{
	WARN_ON(!xa_empty(&dev->keys));
	WARN_ON(!xa_empty(&dev->paths));
	WARN_ON(!xa_empty(&dev->srqs));
	WARN_ON(!hash_empty(dev->members));
	xa_destroy(&dev->keys);
	xa_destroy(&dev->paths);
	xa_destroy(&dev->srqs);
	netdev_put(dev->ndev, &dev->ndev_tracker);
	free_percpu(dev->stats);
}

bool uroce_device_link_up(const struct uroce_dev *dev)
{
	return netif_running(dev->ndev) && netif_carrier_ok(dev->ndev);
}

/* The largest path MTU that fits the netdev's, headers included */
enum ib_mtu uroce_device_mtu(const struct uroce_dev *dev)
{
	enum ib_mtu mtu = iboe_get_mtu(READ_ONCE(dev->ndev->mtu));

	return mtu ? mtu : IB_MTU_256;
}

/* All that takes keys takes those of on-demand regions. */
static void set_odp_caps(struct ib_device_attr *attr)
{
	u32 ud = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV |
		 IB_ODP_SUPPORT_SRQ_RECV;
	u32 uc = ud | IB_ODP_SUPPORT_WRITE;
	u32 rc = uc | IB_ODP_SUPPORT_READ | IB_ODP_SUPPORT_ATOMIC;

	attr->kernel_cap_flags |= IBK_ON_DEMAND_PAGING;
	attr->odp_caps.general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = rc;
	attr->odp_caps.per_transport_caps.uc_odp_caps = uc;
	attr->odp_caps.per_transport_caps.ud_odp_caps = ud;
	attr->odp_caps.per_transport_caps.xrc_odp_caps = rc;
}

void uroce_get_dev_fw_str(struct ib_device *ib, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "0.0.%u", UROCE_FW_VER);
}

int uroce_query_device(struct ib_device *ib, struct ib_device_attr *attr,
		       struct ib_udata *udata)
{
	if (udata && (udata->inlen || udata->outlen))
		return -EINVAL;

	memset(attr, 0, sizeof(*attr));
	attr->fw_ver = UROCE_FW_VER;
	attr->sys_image_guid = ib->node_guid;
	attr->vendor_id = UROCE_VENDOR_ID;
	attr->vendor_part_id = UROCE_VENDOR_PART;
	attr->max_mr_size = U64_MAX;
	attr->page_size_cap = ~0UL << PAGE_SHIFT;
	attr->max_qp = UROCE_MAX_QP;
	attr->max_qp_wr = UROCE_MAX_QP_WR;
	attr->device_cap_flags = IB_DEVICE_RC_RNR_NAK_GEN |
				 IB_DEVICE_PORT_ACTIVE_EVENT |
				 IB_DEVICE_SYS_IMAGE_GUID |
				 IB_DEVICE_MEM_WINDOW |
				 IB_DEVICE_MEM_WINDOW_TYPE_2B |
				 IB_DEVICE_MEM_MGT_EXTENSIONS |
				 IB_DEVICE_UD_AV_PORT_ENFORCE |
				 IB_DEVICE_SRQ_RESIZE |
				 IB_DEVICE_XRC |
				 IB_DEVICE_BAD_PKEY_CNTR |
				 IB_DEVICE_BAD_QKEY_CNTR;
	attr->kernel_cap_flags = IBK_ALLOW_USER_UNREG |
				 IBK_BLOCK_MULTICAST_LOOPBACK;
	set_odp_caps(attr);
	attr->max_send_sge = UROCE_MAX_SGE;
	attr->max_recv_sge = UROCE_MAX_SGE;
	attr->max_sge_rd = UROCE_MAX_SGE;
	attr->max_srq = UROCE_MAX_SRQ;
	attr->max_srq_wr = UROCE_MAX_SRQ_WR;
	attr->max_srq_sge = UROCE_MAX_SGE;
	attr->max_cq = UROCE_MAX_CQ;
	attr->max_cqe = UROCE_MAX_CQE;
	attr->cq_caps.max_cq_moderation_count = U16_MAX;
	attr->cq_caps.max_cq_moderation_period = U16_MAX;	/* us */
	attr->max_mr = UROCE_MAX_MR;
	attr->max_mw = UROCE_MAX_MW;
	attr->max_fast_reg_page_list_len = UROCE_MAX_FAST_REG;
	attr->max_dm_size = UROCE_MAX_DM;
	attr->max_pd = UROCE_MAX_PD;
	attr->max_ah = UROCE_MAX_AH;
	/* each attachment may be to a group of its own */
	attr->max_mcast_grp = UROCE_MAX_MCAST;
	attr->max_mcast_qp_attach = UROCE_MAX_MCAST_QP;
	attr->max_total_mcast_qp_attach = UROCE_MAX_MCAST;
	attr->max_qp_rd_atom = UROCE_MAX_RD_ATOMIC;
	attr->max_qp_init_rd_atom = UROCE_MAX_RD_ATOMIC;
	attr->max_res_rd_atom = UROCE_MAX_RD_ATOMIC * UROCE_MAX_QP;
	attr->atomic_cap = IB_ATOMIC_HCA;
	attr->max_pkeys = 1;
	/* completions carry ns */
	attr->timestamp_mask = U64_MAX;
	attr->hca_core_clock = 1000000;	/* kHz */
	attr->local_ca_ack_delay = 15;
	return 0;
}

/*
 * Link speed in the terms of InfiniBand: the fastest not above the netdev's.
 * ib_get_eth_speed() would log a line each time the netdev does not know.
 */
static void link_speed(struct uroce_dev *dev, struct ib_port_attr *attr)
{
	static const struct {
		u32 mbit;
		u8 width;
		u16 speed;
	} rates[] = {
		{ 400000, IB_WIDTH_4X, IB_SPEED_NDR },
		{ 200000, IB_WIDTH_4X, IB_SPEED_HDR },
		{ 100000, IB_WIDTH_4X, IB_SPEED_EDR },
		{ 50000, IB_WIDTH_2X, IB_SPEED_EDR },
		{ 40000, IB_WIDTH_4X, IB_SPEED_FDR10 },
		{ 25000, IB_WIDTH_1X, IB_SPEED_EDR },
		{ 20000, IB_WIDTH_4X, IB_SPEED_DDR },
		{ 10000, IB_WIDTH_1X, IB_SPEED_FDR10 },
		{ 0, IB_WIDTH_1X, IB_SPEED_SDR },
	};
	struct ethtool_link_ksettings settings = {};
	u32 mbit = UROCE_DEFAULT_MBIT;
	int i = 0;

	rtnl_lock();
	/* what is going may ask a lower netdev that has gone */
	if (dev->ndev->reg_state == NETREG_REGISTERED &&
	    !__ethtool_get_link_ksettings(dev->ndev, &settings) &&
	    settings.base.speed != (u32)SPEED_UNKNOWN)
		mbit = settings.base.speed;
	rtnl_unlock();

	while (mbit < rates[i].mbit)
		i++;
	attr->active_width = rates[i].width;
	attr->active_speed = rates[i].speed;
}

static u64 count_of(struct uroce_dev *dev, enum uroce_counter c)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(dev->stats, cpu)->count[c];
	return sum;
}

/* May sleep; takes the RTNL. */
int uroce_query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr)
{
	struct uroce_dev *dev = to_udev(ib);
	bool up = uroce_device_link_up(dev);

	/* attr is zeroed by the core */
	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP :
			   netif_running(dev->ndev) ?
			   IB_PORT_PHYS_STATE_POLLING :
			   IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = uroce_device_mtu(dev);
	attr->gid_tbl_len = UROCE_GID_TABLE_LEN;
	attr->ip_gids = true;
	attr->port_cap_flags = UROCE_PORT_CM_SUP;
	attr->max_msg_sz = UROCE_MAX_MSG;
	attr->pkey_tbl_len = 1;
	/* 16 bit counters that stop (IBTA 14.2.5.6) */
	attr->bad_pkey_cntr = min_t(u64, count_of(dev, UROCE_CNT_DROP_PKEY), U16_MAX);
	attr->qkey_viol_cntr = min_t(u64, count_of(dev, UROCE_CNT_DROP_QKEY), U16_MAX);
	attr->max_vl_num = 1;

	link_speed(dev, attr);
	return 0;
}

int uroce_query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = UROCE_PKEY_DEFAULT;
	return 0;
}

enum rdma_link_layer uroce_get_link_layer(struct ib_device *ib, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

int uroce_get_port_immutable(struct ib_device *ib, u32 port,
			     struct ib_port_immutable *immutable)
{
	struct ib_port_attr attr;
	int err;

	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;

	err = ib_query_port(ib, port, &attr);
	if (err)
		return err;

	immutable->pkey_tbl_len = attr.pkey_tbl_len;
	immutable->gid_tbl_len = attr.gid_tbl_len;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static ssize_t local_path_show(struct device *device,
			       struct device_attribute *attr, char *buf)
{
	struct uroce_dev *dev = rdma_device_to_drv_device(device,
							  struct uroce_dev, ib);

	return sysfs_emit(buf, "%s\n", dev->local_path ? "auto" : "off");
}

static ssize_t local_path_store(struct device *device,
				struct device_attribute *attr,
				const char *buf, size_t len)
{
	struct uroce_dev *dev = rdma_device_to_drv_device(device,
							  struct uroce_dev, ib);

	if (sysfs_streq(buf, "auto"))
		WRITE_ONCE(dev->local_path, true);
	else if (sysfs_streq(buf, "off"))
		WRITE_ONCE(dev->local_path, false);
	else
		return -EINVAL;
	return len;
}

static DEVICE_ATTR_RW(local_path);

static struct attribute *device_attrs[] = {
	&dev_attr_local_path.attr,
	NULL
};

const struct attribute_group uroce_device_group = {
	.attrs = device_attrs,
};

static const struct rdma_stat_desc counter_desc[] = {
#define UROCE_CNT_DESC(id, counter) [UROCE_CNT_##id].name = #counter,
	UROCE_COUNTERS(UROCE_CNT_DESC)
#undef UROCE_CNT_DESC
};

struct rdma_hw_stats *uroce_alloc_hw_port_stats(struct ib_device *ib, u32 port)
{
	return rdma_alloc_hw_stats_struct(counter_desc, UROCE_NUM_COUNTERS,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

int uroce_get_hw_stats(struct ib_device *ib, struct rdma_hw_stats *stats,
		       u32 port, int index)
{
	struct uroce_dev *dev = to_udev(ib);
	int i;

	if (!port)
		return -EINVAL;

	for (i = 0; i < UROCE_NUM_COUNTERS; i++)
		stats->value[i] = count_of(dev, i);
	return UROCE_NUM_COUNTERS;
}
