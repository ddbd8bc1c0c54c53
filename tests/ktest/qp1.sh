#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Devices come and go while datagrams for QP 1 arrive: before a device is registered and while it
# goes it has no GID table to look their address up in.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

rounds=${rounds:-30}

wire_setup
# a second device, so that the namespace's socket stays open while the first comes and goes
ip -n a link add d0 type dummy
ip -n a link set d0 up
rdma_link_add dd d0 "$side_a"
before=$(hw_counter da rcvd_pkts)

mkfifo "$tmp/flood.stop"
exec 8<>"$tmp/flood.stop"
$side_b $python "$wire/qp1_flood.py" $addr6_b $addr6_a <"$tmp/flood.stop" >"$tmp/flood.out" 2>&1 8>&- &
flood=$!
at_end "kill $flood 2>/dev/null"
more_than() {
	[ "$(hw_counter da rcvd_pkts)" -gt "$1" ]
}
check "the datagrams are good ones" wait_for $((20 * time_scale)) more_than $((before + 200))

# somebody else's RTNL makes the registration longer
(while :; do ip -n b link set lo mtu 65536; done) 2>/dev/null &
at_end "kill $! 2>/dev/null"
failed=0
for i in $(seq "$rounds"); do
	$side_a rdma link delete da && $side_a rdma link add da type uroce netdev va || failed=$i
done
check_eq "da comes and goes $rounds times" $failed 0
wait_gid da $addr6_a >/dev/null
check "and gets datagrams afterwards" wait_for $((20 * time_scale)) more_than 200
echo >&8
wait $flood
check_num "datagrams sent" "$(tail -n 1 "$tmp/flood.out")" -gt 1000
rdma_link_del dd

ktap_finish
