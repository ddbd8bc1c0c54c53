// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Module, devices, "rdma link add NAME type uroce netdev DEV". */
#include <linux/if_vlan.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rtnetlink.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_netlink.h>
#include "device.h"
#include "engine.h"
#include "net.h"
#include "notifier.h"
#include "qp.h"
#include "rx.h"
#include "uapi/uroce-abi.h"
#include "verbs.h"

static void set_attributes(struct uroce_dev *dev)
{
	struct ib_device *ib = &dev->ib;

	strscpy(ib->node_desc, "uroce", sizeof(ib->node_desc));
	ib->node_type = RDMA_NODE_IB_CA;
	ib->phys_port_cnt = 1;
	ib->num_comp_vectors = num_possible_cpus();
	ib->local_dma_lkey = 0;
	/* where tools look for the netdev; none for veth and the like */
	ib->dev.parent = dev->ndev->dev.parent;
	ib->driver_def = uroce_uapi_defs;
	ib_set_device_ops(ib, &uroce_dev_ops);
}

/* One device for a netdev: link_mutex covers the look and the registration */
static DEFINE_MUTEX(link_mutex);

static struct ib_device *get_by_netdev(struct net_device *ndev)
{
	return ib_device_get_by_netdev(ndev,
				       (enum rdma_driver_id)UROCE_DRIVER_ID);
}

/* Also one that the core has in hand; and one of the netdev's last namespace */
static bool has_device(struct net_device *ndev)
{
	struct ib_device *ib = get_by_netdev(ndev);

	if (ib)
		ib_device_put(ib);
	return ib || uroce_net_has_device(ndev);
}

static int add_device(const char *name, struct net_device *ndev)
{
	struct uroce_dev *dev;
	int err;

	lockdep_assert_held(&link_mutex);

	dev = ib_alloc_device(uroce_dev, ib);
	if (!dev)
		return -ENOMEM;
	err = uroce_device_init(dev, ndev);
	if (err)
		goto err_dealloc;
	err = uroce_net_attach(dev);
	if (err)
		goto err_cleanup;

	/* with the operations set, ib_dealloc_device() calls dealloc_driver */
	set_attributes(dev);
	err = ib_device_set_netdev(&dev->ib, ndev, 1);
	if (err)
		goto err_dealloc;
	dev->port_active = uroce_device_link_up(dev);

	/* from here on another thread may unregister the device */
	err = ib_register_device(&dev->ib, name, NULL);
	if (!err)
		return 0;
	/* what the core says to a name that is taken */
	if (err == -ENFILE)
		err = -EEXIST;
	goto err_dealloc;

err_cleanup:
	uroce_device_cleanup(dev);
err_dealloc:
	ib_dealloc_device(&dev->ib);
	return err;
}

/*
 * The netdev may have begun to go, or have moved to another namespace, before
 * our notifier could find the device, or its link may have changed: do what
 * that would have done.
 */
static void catch_up(struct net_device *ndev)
{
	struct ib_device *ib;

	rtnl_lock();
	ib = get_by_netdev(ndev);
	if (ib) {
		if (ndev->reg_state != NETREG_REGISTERED ||
		    !net_eq(dev_net(ndev), to_udev(ib)->net))
			ib_unregister_device_queued(ib);
		else
			uroce_port_event(to_udev(ib));
		ib_device_put(ib);
	}
	rtnl_unlock();
}

/* The core holds a reference on the netdev. May sleep. */
static int newlink(const char *name, struct net_device *ndev)
{
	int err;

	/* its addresses are GIDs of the device on the netdev below, with a VLAN */
	if (is_vlan_dev(ndev)) {
		netdev_warn(ndev, "uroce: add the link on %s, it serves its VLANs too\n",
			    vlan_dev_real_dev(ndev)->name);
		return -EOPNOTSUPP;
	}

	mutex_lock(&link_mutex);
	err = has_device(ndev) ? -EEXIST : add_device(name, ndev);
	if (!err)
		catch_up(ndev);
	mutex_unlock(&link_mutex);
	return err;
}

/* Every user, QP and reference is gone; the core frees the device after this. */
void uroce_dealloc_driver(struct ib_device *ib)
{
	struct uroce_dev *dev = to_udev(ib);

	uroce_net_detach(dev);
	uroce_device_cleanup(dev);
}

static struct rdma_link_ops link_ops = {
	.type = "uroce",
	.newlink = newlink,
};

static int __init uroce_init(void)
{
	int err;

	uroce_qpn_init();
	err = uroce_fault_init();
	if (err)
		return err;
	err = uroce_engine_init();
	if (err)
		goto err_fault;
	err = uroce_net_init(uroce_rx);
	if (err)
		goto err_engine;
	err = uroce_notifier_init();
	if (err)
		goto err_net;
	rdma_link_register(&link_ops);
	return 0;

err_net:
	uroce_net_exit();
err_engine:
	uroce_engine_exit();
err_fault:
	uroce_fault_exit();
	return err;
}

static void __exit uroce_exit(void)
{
	rdma_link_unregister(&link_ops);
	ib_unregister_driver((enum rdma_driver_id)UROCE_DRIVER_ID);
	uroce_notifier_exit();
	uroce_net_exit();
	uroce_engine_exit();
	uroce_fault_exit();
	/* callbacks of call_rcu() are our text */
	rcu_barrier();
}

module_init(uroce_init);
module_exit(uroce_exit);

MODULE_AUTHOR("the uroce authors");
MODULE_DESCRIPTION("Software RDMA over Converged Ethernet v2");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_ALIAS_RDMA_LINK("uroce");
