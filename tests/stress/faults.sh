#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Page faults of on-demand regions that a file system never answers.
. "${0%/*}/env.sh"

modprobe -q fuse
rdma_setup
# first: no context of other tests is on its way out, which would give back what this one takes
stress_run "itself, one user" 'FaultUser.*' "--dev $dev --gid-index $gid"
for path in auto off; do
	set_local_path "$dev" $path
	stress_run "itself, $path" 'Fault.*' "--dev $dev --gid-index $gid"
done
stress_run "itself, packets" 'FaultPackets.*' "--dev $dev --gid-index $gid"

ktap_finish
