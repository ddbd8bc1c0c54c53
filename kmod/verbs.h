/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ib_device operations and the driver's own uverbs method. */
#ifndef UROCE_VERBS_H
#define UROCE_VERBS_H

#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

extern const struct ib_device_ops uroce_dev_ops;
extern const struct uapi_definition uroce_uapi_defs[];

/* dealloc_driver, in main.c: last act of a device */
void uroce_dealloc_driver(struct ib_device *ib);

#endif
