#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What is on the wire, and what happens to what should not be there:
#
#   1. live traffic between two devices, captured and checked packet by packet
#   2. single packets to a live QP, and single answers to a QP that sends
#   3. random packets
#
#	namespace a [va 10.9.0.1 fd09::1] ---- [vb 10.9.0.2 fd09::2] namespace b
#	 device da on va                        1: device db on vb; 2, 3: tests/wire
. "${0%/*}/env.sh"
. "$lib/rc.sh"

[ "$link_type" != rxe ] || ktap_skip_all "rdma_rxe of 6.1 knows init_net only"
rc_need
wire=$lib/../wire
python=/usr/bin/python3
$python -c 'import scapy' 2>/dev/null || ktap_skip_all "no scapy: apt-get install python3-scapy"
[ -z "$(command -v tcpdump)" ] && ktap_skip_all "no tcpdump"
[ -z "$(command -v tshark)" ] && ktap_skip_all "no tshark"
netns_pair

# capture LABEL DEVICES: MixedBothWays has one QP at each end and every operation
capture() {
	local pcap="$tmp/$1.pcap"
	start_server tcpdump $side_b tcpdump -i vb -w "$pcap" -s 0 -B 65536 --immediate-mode -U udp port 4791
	wait_for 20 grep -q 'listening on' "$tmp/tcpdump.out"
	rc_run "$1: traffic" DataPipeline.MixedBothWays "$2"
	sleep 1		# nothing says that tcpdump has read everything
	stop_server tcpdump
	[ -z "${KEEP-}" ] || cp "$pcap" "$KEEP"
	tap_run "$1: capture" 300 $python "$wire/capture_test.py" "$pcap" 1024
}
capture IPv4 "$(rc_pair)"
capture IPv6 "$(rc_pair6)"

# From here on b has no device: packets are made by hand.
gid6_a=$(wait_gid da $addr6_a)
mac_a=$($side_a cat /sys/class/net/va/address)
rdma_link_del db
$side_b ip addr add 10.9.0.3/24 dev vb
$side_b ip addr add fd09::3/64 dev vb nodad

# by_hand LABEL SECONDS PROGRAM [OPTION...]
by_hand() {
	local label=$1 seconds=$2 program=$3
	shift 3
	tap_run "$label" "$seconds" $side_b $python "$wire/$program" --rc-test "$rc_test" --dev da --mac "$mac_a" \
		--iface vb "$@"
}
ipv4="--gid-index $gid_a --address $addr_a --own $addr_b --stranger 10.9.0.3"
ipv6="--gid-index $gid6_a --address $addr6_a --own $addr6_b --stranger fd09::3"
for family in "IPv4 $ipv4" "IPv6 $ipv6"; do
	name=${family%% *}
	# shellcheck disable=SC2086
	{
		by_hand "$name responder" 300 protocol_test.py ${family#* }
		by_hand "$name requester" 300 requester_test.py ${family#* }
		by_hand "$name fuzz" 300 fuzz.py ${family#* } --packets 4000
	}
done

ktap_finish
