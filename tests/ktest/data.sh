#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Every RC operation moves exactly the bytes it names: lengths, scatter lists, inline, addresses.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

rc_everywhere '*Data*'

# the longest message there is; slow machines need not move gigabytes packet by packet
rc_run "itself" 'Huge.*' "--dev $dev --gid-index $gid"
if [ "$link_type" = uroce ] && [ "$time_scale" = 1 ]; then
	set_local_path "$dev" off
	rc_run "itself, packets" 'Huge.*Write4096' "--dev $dev --gid-index $gid"
	set_local_path "$dev" auto
fi

# a second device beside it
ip link add other0 type dummy && at_end "ip link del other0"
ip addr add 10.0.88.1/24 dev other0 && ip link set other0 up
rdma_link_add "${dev}o" other0
rc_run "a second device" 'DataPipeline.*:Atomic.*' "--dev ${dev}o --gid-index $(wait_gid "${dev}o" 10.0.88.1)"
rdma_link_del "${dev}o"

ktap_finish
