#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Live traffic between two devices, captured and checked packet by packet.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

[ "$link_type" != rxe ] || ktap_skip_all "rdma_rxe of 6.1 knows init_net only"
rc_need
wire_need tcpdump tshark
netns_pair

# capture LABEL DEVICES: MixedBothWays has one QP at each end and every operation
capture() {
	local pcap="$tmp/$1.pcap" size=0
	start_server tcpdump $side_b tcpdump -i vb -w "$pcap" -s 0 -B 65536 --immediate-mode -U udp port 4791
	wait_for 20 grep -q 'listening on' "$tmp/tcpdump.out"
	rc_run "$1: traffic" DataPipeline.MixedBothWays "$2"
	# nothing says that tcpdump has read everything, but it is done when the file stops growing
	while [ "$size" != "$(stat -c %s "$pcap")" ]; do
		size=$(stat -c %s "$pcap")
		sleep 1
	done
	stop_server tcpdump
	tap_run "$1: capture" 300 $python "$wire/capture_test.py" "$pcap" 1024
}
capture IPv4 "$(rc_pair)"
capture IPv6 "$(rc_pair6)"

ktap_finish
