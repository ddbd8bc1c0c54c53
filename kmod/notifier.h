/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What happens to a netdev happens to its device. */
#ifndef UROCE_NOTIFIER_H
#define UROCE_NOTIFIER_H

#include "device.h"

/* The port goes the way the netdev's link does. RTNL held. */
void uroce_port_event(struct uroce_dev *dev);

/* ib_device operation */
int uroce_enable_driver(struct ib_device *ib);

int uroce_notifier_init(void);
void uroce_notifier_exit(void);

#endif
