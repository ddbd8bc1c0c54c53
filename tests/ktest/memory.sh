#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Memory windows, invalidation, re-registration, and all that a region can be made of.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

# huge pages and an exporter of dma-bufs; where there is none, those tests skip
sysctl -qw vm.nr_hugepages=8
modprobe -q vgem || true
at_end "sysctl -qw vm.nr_hugepages=0"

rc_everywhere '*Mw*:Memory*:DataInvalidate.*'

ktap_finish
