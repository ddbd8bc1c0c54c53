#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Devices in RDMA namespaces of their own (exclusive mode): one that the core has in hand, to move it
# to another RDMA namespace, cannot be found when its netdev goes. It must go nevertheless.
. "${0%/*}/env.sh"

limit=$((30 * time_scale))

no_devices() {
	[ -z "$(ls /sys/class/infiniband)" ] && [ -z "$(ip netns exec x ls /sys/class/infiniband)" ]
}
in_hand() {
	! rdma dev show r0 >/dev/null 2>&1
}

netdev_left() {
	! ip link show m0
}

# move HOW COMMAND...: the netdev goes by the command while the core takes the device out of use, to
# move it; that waits for a page fault of a process
move() {
	local how=$1
	shift
	netns_add x
	netns_add y
	ip link add m0 type dummy && ip link set m0 up && ip addr add 10.1.0.1/24 dev m0 ||
		ktap_bail "no netdev"
	check "$how: link add" rdma link add r0 type uroce netdev m0
	gid=$(wait_gid r0 10.1.0.1)
	rm -f "$tmp/ready" "$tmp/ready.end"
	stress_ready=$tmp/ready start_server holder "$stress_test" --dev r0 --gid-index "$gid" --gtest_filter='Fault.EndsWhenTold'
	wait_for $((60 * time_scale)) test -e "$tmp/ready" || ktap_fail "$how: a fault" "$(cat "$tmp/holder.out")"
	rdma dev set r0 netns x &
	mover=$!
	wait_for $((20 * time_scale)) in_hand || ktap_fail "$how: being moved"
	timeout $limit "$@" &
	command=$!
	wait_for $limit netdev_left || ktap_fail "$how: the netdev leaves"
	check "$how: meanwhile the device is in hand" kill -0 $mover
	: >"$tmp/ready.end"
	wait $mover
	check "$how" wait $command
	check "$how: the device goes, too" wait_for $limit no_devices ||
		ktap_note "$(rdma dev show; ip netns exec x rdma dev show)"
	check "$how: the fault" wait_server holder 60 || ktap_note "$(cat "$tmp/holder.out")"
	check_no_stuck_tasks "$how"
	netns_del x
	netns_del y
	ip link del m0 2>/dev/null
	true
}

modprobe -q fuse
[ -e /dev/fuse ] || ktap_skip_all "no FUSE"
# set_mode exclusive|shared: refused while there are namespaces, and some end in the background
set_mode() {
	wait_for $limit rdma system set netns "$1" || ktap_fail "RDMA namespaces, $1" "$(rdma system)"
}

rdma_load
rdma system | grep -q netns || ktap_skip_all "no RDMA namespaces"
set_mode exclusive
at_end "set_mode shared"

move "netdev deleted" ip link del m0
move "netdev moved to the same namespace" ip link set m0 netns x
move "netdev moved to another namespace" ip link set m0 netns y

ktap_finish
