#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What the device says of itself through libibverbs, and that it agrees with sysfs and rdma(8).
. "${0%/*}/env.sh"

rdma_setup
info=$tmp/info

# value FIELD: its value in ibv_devinfo's output
value() {
	sed -n "s/^[[:space:]]*$1:[[:space:]]*//p" "$info" | head -n 1
}

check "ibv_devices lists it" sh -c "ibv_devices | grep -w $dev"
check "ibv_devinfo -v" sh -c "ibv_devinfo -v -d $dev >$info"
check_eq "port state" "$(value state)" "PORT_ACTIVE (4)"
check_eq "active MTU on a netdev of MTU 4200" "$(value active_mtu)" "4096 (5)"
check_eq "link layer" "$(value link_layer)" "Ethernet"
check_eq "node GUID as in sysfs" "$(value node_guid | tr -d :)" \
	"$(tr -d : <"/sys/class/infiniband/$dev/node_guid")"
check_file "no GUID of zero" "node_guid:.*[1-9a-f]" "$info"
check_file "GID of $addr is listed as RoCE v2" "GID\[ *$gid\]:.*::ffff:$addr, RoCE v2" "$info"
check_file "GID of $addr6 is listed as RoCE v2" "GID\[ *$gid6\]:.*$addr6, RoCE v2" "$info"
limits="max_qp max_qp_wr max_srq max_srq_wr max_sge max_cq max_cqe max_mr max_pd max_ah max_qp_rd_atom"
for limit in $limits; do
	check_num "$limit is not 0" "$(value $limit)" -gt 0
done
for limit in max_sge max_sge_rd; do
	check_num "$limit" "$(value $limit)" -ge 32
done
check_num "page size 4096 is offered" $(($(value page_size_cap) & 4096)) -eq 4096
check_num "an MTU of 4096 is the largest" "$(value max_mtu | cut -d' ' -f1)" -eq 4096

ip link set "$netdev" mtu 1500
check "MTU 1500 gives a path MTU of 1024" \
	wait_for 10 sh -c "ibv_devinfo -d $dev | grep -E 'active_mtu:[[:space:]]+1024 '"
ip link set "$netdev" mtu 4200
check "MTU 4200 gives 4096 again" wait_for 10 sh -c "ibv_devinfo -d $dev | grep -E 'active_mtu:[[:space:]]+4096 '"

ktap_finish
