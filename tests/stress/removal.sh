#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Devices, netdevs, namespaces and the module are taken away from under a process with 16 busy QPs,
# which lives on (removal_test.cpp says what it must see). Nothing may wait for it.
. "${0%/*}/env.sh"

limit=$((30 * time_scale))	# seconds; it takes well under 2 on an idle machine

device_gone() {
	[ ! -e /sys/class/infiniband/da ]
}
module_unused() {
	[ "$(cat /sys/module/uroce/refcnt)" = 0 ]
}
netdev_gone() {
	! ip -n b link show vb
}

# One device in namespace a, its peer's end of the cable in b; the process itself is in neither, so
# that they can go.
topology() {
	side_a= side_b=
	rdma_load
	netns_add a
	netns_add b
	netns_veth a b
	ip netns exec a rdma link add da type uroce netdev va || ktap_bail "no device da"
	gid_a=$(wait_gid da $addr_a) || ktap_bail "no GID on da"
	options="--dev da --gid-index $gid_a"
	[ "$1" != veth ] || {
		ip netns exec b rdma link add db type uroce netdev vb || ktap_bail "no device db"
		gid_b=$(wait_gid db $addr_b) || ktap_bail "no GID on db"
		options="$options --peer-dev db --peer-gid-index $gid_b"
		return
	}
	set_local_path da "$1"
}

remove() {
	case $1 in
	link-del) timeout $limit rdma link del da ;;
	netdev-del) timeout $limit ip -n a link del va ;;
	# the device goes in the background, when the namespace has
	netns-del) timeout $limit ip netns del a ;;
	netdev-move) timeout $limit ip -n a link set va netns b ;;
	rmmod) timeout $limit rmmod uroce ;;
	kill) kill -9 $survivor_pid ;;
	esac
}

# Has it all happened?
removed() {
	case $1 in
	kill) ! kill -0 $survivor_pid 2>/dev/null ;;
	rmmod) [ ! -e /sys/module/uroce ] && device_gone ;;
	netdev-del | netns-del) device_gone && netdev_gone ;;
	*) device_gone ;;
	esac
}

round() {
	local path=$1 how=$2 name="$2, $1" start rc=0
	topology "$path"
	rm -f "$tmp/ready"
	# shellcheck disable=SC2086
	stress_ready=$tmp/ready start_server survivor "$stress_test" $options --gtest_filter='Removal.*'
	wait_for $((60 * time_scale)) test -e "$tmp/ready" ||
		ktap_fail "$name: traffic" "$(cat "$tmp/survivor.out")"

	start=$(now_ms)
	check "$name: the command" remove "$how"
	check "$name: done" wait_for $limit removed "$how"
	ktap_note "$name: $(($(now_ms) - start)) ms"

	if [ "$how" = kill ]; then
		wait "$survivor_pid" 2>/dev/null
		survivor_pid=
		check "$name: nothing left of it" wait_for $limit rdma_res_is da "pd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0 srq 0"
	else
		wait_server survivor 60 || rc=$?
		check_eq "$name: the process lives and sees EIO" "$rc" 0
		[ $rc = 0 ] || ktap_note "$(cat "$tmp/survivor.out")"
		sed -n 's/^# \(.* completions\)$/# \1/p' "$tmp/survivor.out"
	fi
	check_no_stuck_tasks "$name"
	[ ! -e /sys/class/infiniband/da ] || check "$name: rdma link del da" timeout $limit rdma link del da
	[ ! -e /sys/class/infiniband/db ] || check "$name: rdma link del db" timeout $limit rdma link del db
	netns_del a
	netns_del b
	if [ -e /sys/module/uroce ]; then
		check "$name: nobody uses the module" wait_for $limit module_unused
		check "$name: rmmod" timeout $limit rmmod uroce
	fi
}

for path in auto off veth; do
	for how in link-del netdev-del netns-del netdev-move rmmod kill; do
		round $path $how
	done
done

# hoard KIND: so many objects of a kind that each of them must go quickly
hoard() {
	rm -f "$tmp/ready"
	# shellcheck disable=SC2086
	stress_ready=$tmp/ready start_server survivor "$stress_test" $options --gtest_filter="Hoard.$1"
	wait_for $((60 * time_scale)) test -e "$tmp/ready" || ktap_fail "$1" "$(cat "$tmp/survivor.out")"
	start=$(now_ms)
	remove kill
	check "kill, many $1" wait_for $limit removed kill
	ktap_note "kill, many $1: $(($(now_ms) - start)) ms"
	wait "$survivor_pid" 2>/dev/null
	survivor_pid=
	check "kill, many $1: nothing left" wait_for $limit rdma_res_is da "pd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0 srq 0"
}

topology auto
for kind in QueuePairs XrcSrqs Regions Handles; do
	hoard $kind
done
check "rdma link del da after them" timeout $limit rdma link del da
netns_del a
netns_del b

ktap_finish
