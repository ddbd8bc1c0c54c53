#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Objects that go under load, and exact accounts of work requests: on one device with itself, on the
# local path and as packets, and between two namespaces.
. "${0%/*}/env.sh"

filter='Lifetime.*:Account.*:*Overflow*'

rdma_setup
for path in auto off; do
	set_local_path "$dev" $path
	stress_run "itself, $path" "$filter" "--dev $dev --gid-index $gid"
done
netns_pair
stress_run "veth" "$filter" "$(rc_pair)"

ktap_finish
