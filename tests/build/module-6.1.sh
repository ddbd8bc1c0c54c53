#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The module builds for the distribution's own kernel, W=1, without warnings.
. "${0%/*}/lib.sh"

kdir=$(tests/vm/kernel stock | sed -n 4p)
[ -n "$kdir" ] || ktap_skip_all "linux-headers-amd64 is not installed"
check_module "$kdir"

ktap_finish
