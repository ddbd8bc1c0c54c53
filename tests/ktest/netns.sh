#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Two devices in two network namespaces joined by a veth pair: each has its own UDP port and routes,
# traffic passes between them as packets, and a namespace that dies takes its device along.
. "${0%/*}/env.sh"

[ "$link_type" != rxe ] || ktap_skip_all "rdma_rxe of 6.1 knows init_net only"
netns_pair

listens() {
	$1 ss -Hluna 'sport = :4791' | grep -q .
}
silent() {
	! listens "$1"
}
check "UDP 4791 in a" listens "$side_a"
check "UDP 4791 in b" listens "$side_b"
check "not in init_net" silent ""

run_pair "rc_pingpong" tcp:18515 "ibv_rc_pingpong -d da -g $gid_a -n 100 -c" \
	"ibv_rc_pingpong -d db -g $gid_b -n 100 -c $addr_a"
check_no_file "rc_pingpong: data" "invalid data" "$tmp/server.out"
run_pair "rping" cm:7174 "rping -s -a $addr_a -C 10 -S 3000 -v" "rping -c -a $addr_a -C 10 -S 3000 -v -V"
check_no_file "rping: data" "mismatch" "$tmp/client.out"
run_pair "rping over IPv6" cm:7174 "rping -s -a $addr6_a -C 10 -v" "rping -c -a $addr6_a -C 10 -v -V"
for address in $addr_a $addr6_a; do
	for tool in udaddy ucmatose; do
		port=7471
		[ $tool != udaddy ] || port=7174
		run_pair "$tool to $address" cm:$port "$tool -b $address -c 3 -C 10 -S 500" \
			"$tool -s $address -c 3 -C 10 -S 500" &&
			check_file "$tool to $address: all of it" "return status 0" "$tmp/client.out"
	done
done
run_pair "ib_write_bw, 64 KB" tcp:18515 "ib_write_bw -d da -x $gid_a -F -s 65536 -n 50" \
	"ib_write_bw -d db -x $gid_b -F -s 65536 -n 50 $addr_a"

# the traffic went over the wire between the namespaces
packets=$(ip netns exec a cat /sys/class/net/va/statistics/tx_packets)
check_num "packets on the veth" "$packets" -gt 500

# A VLAN has the MAC of the netdev below it, and so its link-local address: a GID on two links.
for end in a b; do
	ip -n $end link add link v$end name v$end.10 type vlan id 10
	ip -n $end link set v$end.10 up
done
link_local() {
	ip -n "$1" -6 -o addr show dev "$2" scope link | sed -n 's/.*inet6 \([^/]*\).*/\1/p'
}
vlan_gid() {
	cat /sys/class/infiniband/"$1"/ports/1/gid_attrs/ndevs/* 2>/dev/null | grep -qx "$2"
}
check "VLAN: GIDs" wait_for $((10 * time_scale)) eval 'vlan_gid da va.10 && vlan_gid db vb.10'
local_a=$(link_local a va.10)
check_eq "VLAN: the same address" "$local_a" "$(link_local a va)"
run_pair "VLAN: rping to its link-local address" cm:7174 "rping -s -a $local_a%va.10 -C 10 -v" \
	"rping -c -a $local_a%vb.10 -C 10 -v -V"
run_pair "rping to that of the netdev below" cm:7174 "rping -s -a $local_a%va -C 10 -v" \
	"rping -c -a $local_a%vb -C 10 -v -V"

# the port goes with the last device of its namespace, and only there
rdma_link_del db
check "UDP 4791 in b is gone" silent "$side_b"
check "UDP 4791 in a is still there" listens "$side_a"
rdma_link_del da
check "UDP 4791 in a is gone" silent "$side_a"

# ... and with its device still there
netns_add c
ip link add vc netns c type veth peer name vd netns c
ip -n c link set vc up
check "a link in c" ip netns exec c rdma link add dc type "$link_type" netdev vc
ip netns del c
check "c took its device along" wait_for $((20 * time_scale)) test ! -e /sys/class/infiniband/dc

ktap_finish
