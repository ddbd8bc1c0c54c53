/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What happens to a netdev happens to its device. */
#ifndef UROCE_NOTIFIER_H
#define UROCE_NOTIFIER_H

int uroce_notifier_init(void);
void uroce_notifier_exit(void);

#endif
