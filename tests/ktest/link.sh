#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# rdma link add and delete: what comes, what goes, and what is refused.
. "${0%/*}/env.sh"

listens() {
	ss -Hluna 'sport = :4791' | grep -q .
}

rdma_setup
check "device is listed" sh -c "rdma link show $dev/1 | grep -E 'state ACTIVE physical_state LINK_UP netdev $netdev'"
check "uverbs device exists" sh -c "ls /dev/infiniband/uverbs*"
check "UDP 4791 is bound" listens
check_eq "link layer" "$(cat /sys/class/infiniband/$dev/ports/1/link_layer)" Ethernet
check_eq "GID of $addr is RoCE v2" "$(cat "/sys/class/infiniband/$dev/ports/1/gid_attrs/types/$gid")" "RoCE v2"
check_eq "GID's netdev" "$(cat "/sys/class/infiniband/$dev/ports/1/gid_attrs/ndevs/$gid")" "$netdev"

check_fails "a second link of the same name" "File exists" \
	rdma link add "$dev" type "$link_type" netdev lo
check_fails "a second link on the same netdev" "File exists" \
	rdma link add "${dev}x" type "$link_type" netdev "$netdev"
if [ "$link_type" = uroce ]; then
	ip link add link "$netdev" name onvlan type vlan id 5
	check_fails "a link on a VLAN, whose addresses are GIDs of the device below" "not supported" \
		rdma link add "${dev}x" type uroce netdev onvlan
	ip link del onvlan
	check_eq "a version for tools" "$(cat /sys/class/infiniband/$dev/fw_ver)" 0.0.1
fi
check_fails "a netdev that is not there" "." rdma link add "${dev}x" type "$link_type" netdev nothere0
check_fails "deleting what is not there" "." rdma link delete "${dev}x"

# an address added later gives a GID, and taking it away takes the GID away
ip addr add 10.0.77.1/24 dev "$netdev"
at_end "ip addr del 10.0.77.1/24 dev $netdev 2>/dev/null"
check "GID of an address added later" wait_gid "$dev" 10.0.77.1
ip addr del 10.0.77.1/24 dev "$netdev"
gone() {
	! gid_index "$dev" "$(gid_string 10.0.77.1)"
}
check "no GID of an address taken away" wait_for 10 gone

ip addr add fd00:77::1/64 dev "$netdev" nodad
check "GID of an IPv6 address added later" wait_gid "$dev" fd00:77::1
ip addr del fd00:77::1/64 dev "$netdev"
gone() {
	! gid_index "$dev" "$(gid_string fd00:77::1)"
}
check "no GID of an IPv6 address taken away" wait_for 10 gone

# the port follows the netdev
port_is() {
	grep -q "$1" "/sys/class/infiniband/$dev/ports/1/state"
}
ip link set "$netdev" down
check "netdev down: port down" wait_for 10 port_is DOWN
ip link set "$netdev" up
check "netdev up: port active" wait_for 10 port_is ACTIVE
# taking the link down flushed the global IPv6 addresses, which later tests want
ip addr replace "$addr6/64" dev "$netdev" nodad

rdma_link_del "$dev"
for round in 1 2 3 4 5; do
	rdma link add "$dev" type "$link_type" netdev "$netdev" && rdma link delete "$dev" ||
		ktap_fail "round $round of add and delete"
done
check_eq "nothing is left" "$(ls /sys/class/infiniband)" ""

# the module comes with the first link, by its alias; or by hand
rmmod "$module"
check "the module is not there" test ! -e "/sys/module/$module"
check "a link loads it" rdma link add "$dev" type "$link_type" netdev "$netdev"
check "the module is there" test -e "/sys/module/$module"
check "and the link goes" rdma link delete "$dev"
check "rmmod" rmmod "$module"
check "insmod of the file" insmod "$(modinfo -n "$module")"
check "rmmod again" rmmod "$module"
rdma_load

# a netdev that goes takes its device along
ip link add gone0 type veth peer name gone1
check "link on a netdev about to go" rdma link add "${dev}g" type "$link_type" netdev gone0
check_eq "speed of a veth" "$(cat "/sys/class/infiniband/${dev}g/ports/1/rate")" "10 Gb/sec (1X FDR10)"
ip link del gone0
check "its device is gone" wait_for 10 test ! -e "/sys/class/infiniband/${dev}g"

ktap_finish
