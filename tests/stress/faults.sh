#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Page faults of on-demand regions that a file system never answers.
. "${0%/*}/env.sh"

modprobe -q fuse
rdma_setup
for path in auto off; do
	set_local_path "$dev" $path
	stress_run "itself, $path" 'Fault.*' "--dev $dev --gid-index $gid"
done

ktap_finish
