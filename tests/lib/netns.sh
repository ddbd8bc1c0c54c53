# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# Topologies for tests. Needs ktap.sh and rdma.sh.
#
#   T1  one device with itself: rdma_setup of rdma.sh
#
#   T2  netns_pair:    namespace a [va 10.9.0.1 fd09::1] ---- [vb 10.9.0.2 fd09::2] namespace b
#                       device da on va                        device db on vb
#
#   T4  netns_interop: init_net    [va 10.9.0.1 fd09::1] ---- [vb 10.9.0.2 fd09::2] namespace b
#                       rdma_rxe device da on va               the device under test db on vb
#
# Both leave addr_a, addr_b, addr6_a, addr6_b, gid_a, gid_b (GID indices of the IPv4 addresses)
# and the prefixes side_a, side_b that run_pair of rdma.sh uses. T4 exists because rdma_rxe of
# 6.1 listens in init_net only, and two listeners on UDP 4791 need two namespaces.

addr_a=10.9.0.1
addr_b=10.9.0.2
addr6_a=fd09::1
addr6_b=fd09::2

netns_add() {
	ip netns add "$1" || ktap_bail "ip netns add $1 failed"
	at_end "netns_del $1"
	ip netns exec "$1" sh -c 'cd /proc/sys/net/ipv6/conf && echo 0 >all/accept_dad && echo 0 >default/accept_dad'
	ip -n "$1" link set lo up
}

# Ends what still runs in a namespace, then the namespace. What leads out of it (a veth's other
# end) goes with it.
netns_del() {
	local pids
	[ -e "/run/netns/$1" ] || return 0
	pids=$(ip netns pids "$1")
	# shellcheck disable=SC2086
	[ -z "$pids" ] || kill -9 $pids 2>/dev/null
	ip netns del "$1"
}

# netns_veth NS-OF-A|"" NS-OF-B: the wire of the drawings, MTU 4200 for a path MTU of 4096.
netns_veth() {
	ip link add va ${1:+netns "$1"} mtu 4200 type veth peer name vb netns "$2" mtu 4200 ||
		ktap_bail "no veth pair"
	[ -n "$1" ] || at_end "ip link del va 2>/dev/null"
	ip ${1:+-n "$1"} addr add $addr_a/24 dev va
	ip ${1:+-n "$1"} addr add $addr6_a/64 dev va nodad
	ip ${1:+-n "$1"} link set va up
	ip -n "$2" addr add $addr_b/24 dev vb
	ip -n "$2" addr add $addr6_b/64 dev vb nodad
	ip -n "$2" link set vb up
}

netns_gids() {
	gid_a=$(wait_gid da $addr_a) || ktap_bail "no GID for $addr_a on da"
	gid_b=$(wait_gid db $addr_b) || ktap_bail "no GID for $addr_b on db"
}

netns_pair() {
	rdma_load
	netns_add a
	netns_add b
	side_a="ip netns exec a"
	side_b="ip netns exec b"
	netns_veth a b
	rdma_link_add da va "$side_a"
	rdma_link_add db vb "$side_b"
	netns_gids
}

netns_interop() {
	local own=$link_type
	rdma_load
	modprobe rdma_rxe || ktap_skip_all "no rdma_rxe here"
	at_end "modprobe -r rdma_rxe"
	netns_add b
	side_b="ip netns exec b"
	netns_veth "" b
	link_type=rxe
	rdma_link_add da va
	link_type=$own
	rdma_link_add db vb "$side_b"
	netns_gids
}
