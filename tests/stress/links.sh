#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Devices that come and go all at once, with their netdevs, their namespaces and the module; and the
# UDP port, open exactly while a namespace has a device.
. "${0%/*}/env.sh"

rounds=$((3 * stress_seconds))

listens() {
	$1 ss -Hluna 'sport = :4791' | grep -q .
}
closed() {
	! listens "$1"
}
no_devices() {
	[ -z "$(ls /sys/class/infiniband)" ]
}
unused() {
	[ "$(cat /sys/module/uroce/refcnt)" = 0 ]
}

# --- the port in two namespaces, and the module loaded and unloaded

netns_add a
netns_add b
netns_veth a b
for i in $(seq $((1 + stress_seconds / 2))); do
	rdma_load
	for ns in a b; do
		check "load $i: closed in $ns before the first device" closed "ip netns exec $ns"
	done
	ip netns exec a ip link add d0 type dummy
	ip netns exec a rdma link add da type uroce netdev va || ktap_fail "load $i: da"
	check "load $i: open in a" listens "ip netns exec a"
	check "load $i: closed in b" closed "ip netns exec b"
	ip netns exec a rdma link add dd type uroce netdev d0 || ktap_fail "load $i: dd"
	ip netns exec b rdma link add db type uroce netdev vb || ktap_fail "load $i: db"
	check "load $i: open in b" listens "ip netns exec b"
	rdma link del da
	check "load $i: still open in a with one device left" listens "ip netns exec a"
	ip netns exec a ip link del d0
	check "load $i: closed in a after the last" wait_for 20 closed "ip netns exec a"
	if [ $((i % 2)) = 0 ]; then
		rdma link del db
		check "load $i: closed in b after the last" closed "ip netns exec b"
	fi	# else rmmod takes it along
	check "load $i: rmmod" timeout 60 rmmod uroce
	check "load $i: closed in b without the module" closed "ip netns exec b"
done

# --- four shells add and delete on the same few netdevs

rdma_load
for n in 0 1 2; do
	ip link add m$n type dummy
	at_end "ip link del m$n 2>/dev/null"
	ip link set m$n up
done
for shell in 1 2 3 4; do
	(
		added=0
		for i in $(seq $((3 * rounds))); do
			n=$(((i + shell) % 3))
			rdma link add s$shell type uroce netdev m$n 2>/dev/null && added=$((added + 1))
			rdma link del s$(((i + shell) % 4 + 1)) 2>/dev/null
		done
		echo $added >"$tmp/added.$shell"
	) &
	pids="$pids $!"
done
# and one takes the netdevs themselves away
for i in $(seq $rounds); do
	ip link del m0 2>/dev/null
	ip link add m0 type dummy
	ip link set m0 up
done
# shellcheck disable=SC2086
wait $pids
ktap_note "links added: $(cat "$tmp"/added.* | tr '\n' ' ')"
for shell in 1 2 3 4; do
	check_num "shell $shell added links" "$(cat "$tmp/added.$shell")" -gt 0
	rdma link del s$shell 2>/dev/null
done
check "all gone" wait_for 20 no_devices
check "the port is closed" closed ""
check_no_stuck_tasks "add and del"

# --- namespaces that end at once

for i in $(seq $rounds); do
	unshare -n sh -c "ip link add d0 type dummy && ip link set d0 up &&
		rdma link add u$i type uroce netdev d0" || ktap_fail "link add in a namespace, $i"
done
check "namespaces that ended took their devices along" wait_for $((30 * time_scale)) no_devices

# the same in parallel, with an address, and the namespace gone while it is being added; names of their
# own, by which dmesg_short_waits can tell which netdev waits
for i in $(seq $rounds); do
	unshare -n sh -c "ip link add d$i type dummy && ip link set d$i up && ip addr add 10.1.0.1/24 dev d$i
		rdma link add p$i type uroce netdev d$i &
		[ $((i % 2)) = 0 ] || ip link del d$i" >/dev/null 2>&1 &
	[ $((i % 4)) != 0 ] || wait
done
wait
check "the same in parallel" wait_for $((30 * time_scale)) no_devices
check_no_stuck_tasks "namespaces"

# --- a netdev that outlives its namespace takes longer to lose its device than the namespace to go

if [ -e /sys/class/net/eth0/device ]; then
	rdma_load
	own=$(netdev_addr -4 eth0)
	own6=$(netdev_addr -6 eth0)
	netns_add c
	ip link set eth0 netns c
	ip -n c addr add 10.7.0.1/24 dev eth0
	ip -n c link set eth0 up
	ip netns exec c rdma link add dc type uroce netdev eth0 || ktap_fail "link on a physical netdev"
	gid=$(wait_gid dc 10.7.0.1)
	stress_ready=$tmp/ready start_server holder "$stress_test" --dev dc --gid-index "$gid" --gtest_filter='Hoard.QueuePairs'
	wait_for $((60 * time_scale)) test -e "$tmp/ready" || ktap_fail "many QPs" "$(cat "$tmp/holder.out")"
	ip netns del c
	check "a physical netdev's device goes with its namespace" wait_for $((60 * time_scale)) no_devices
	netdev_back() {
		ip link show eth0
	}
	check "and the netdev comes back" wait_for $((60 * time_scale)) netdev_back
	check "its holder lives" wait_server holder 60
	# as it was, for the tests that follow in this VM
	ip addr add "$own/24" dev eth0
	ip link set eth0 up
	ip addr add "$own6/64" dev eth0 nodad
fi
check "nobody uses the module" wait_for $((20 * time_scale)) unused
check "rmmod" timeout 60 rmmod uroce

ktap_finish
