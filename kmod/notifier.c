// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Netdev events: port state, and removal. GIDs follow the addresses without
 * us: the core keeps the table of a RoCE device.
 */
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <rdma/ib_verbs.h>
#include "device.h"
#include "net.h"
#include "notifier.h"
#include "uapi/uroce-abi.h"

void uroce_port_event(struct uroce_dev *dev)
{
	int active = uroce_device_link_up(dev);
	struct ib_event event = {
		.device = &dev->ib,
		.element.port_num = 1,
		.event = active ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
	};

	ASSERT_RTNL();

	if (active == dev->port_active)
		return;
	dev->port_active = active;
	ib_dispatch_event(&event);
}

static int netdev_event(struct notifier_block *nb, unsigned long event,
			void *arg)
{
	struct net_device *ndev = netdev_notifier_info_to_dev(arg);
	struct ib_device *ib;

	if (event == NETDEV_UNREGISTER) {
		/* before the look, which fails while the core has it in hand */
		uroce_net_leave(ndev);
		/* pairs with uroce_enable_driver() */
		smp_mb();
	}
	ib = ib_device_get_by_netdev(ndev,
				     (enum rdma_driver_id)UROCE_DRIVER_ID);
	if (!ib)
		return NOTIFY_OK;

	switch (event) {
	case NETDEV_UNREGISTER:
		/* the netdev waits for the reference that the device holds */
		ib_unregister_device_queued(ib);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		uroce_port_event(to_udev(ib));
		break;
	default:
		break;
	}
	ib_device_put(ib);
	return NOTIFY_OK;
}

static struct notifier_block netdev_nb = {
	.notifier_call = netdev_event,
};

/*
 * The core makes a device known: a new one, or one that it has moved to another
 * RDMA namespace. Whoever looked for it meanwhile has not found it.
 */
int uroce_enable_driver(struct ib_device *ib)
{
	/* the device can be found now; pairs with netdev_event() */
	smp_mb();
	if (READ_ONCE(to_udev(ib)->leaving))
		ib_unregister_device_queued(ib);
	rtnl_lock();
	uroce_port_event(to_udev(ib));
	rtnl_unlock();
	return 0;
}

int uroce_notifier_init(void)
{
	return register_netdevice_notifier(&netdev_nb);
}

void uroce_notifier_exit(void)
{
	unregister_netdevice_notifier(&netdev_nb);
}
