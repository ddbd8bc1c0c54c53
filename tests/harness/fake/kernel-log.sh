#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Passes, but the kernel complains.
. "${0%/*}/../../lib/ktap.sh"
ktap_pass "always"
echo "<4>WARNING: CPU: 0 PID: 1 at nowhere" >/dev/kmsg
ktap_finish
