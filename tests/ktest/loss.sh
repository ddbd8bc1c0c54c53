#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Packets get lost, doubled, delayed and out of order, in both directions, and nothing of it may
# show: data, completions and atomics as ever. PSNs start near the wrap.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

[ "$link_type" != rxe ] || ktap_skip_all "rdma_rxe of 6.1 knows init_net only"
rc_need
modprobe sch_netem || ktap_skip_all "no sch_netem"
netns_pair

netem() {
	ip netns exec a tc qdisc replace dev va root netem limit 10000 "$@" &&
		ip netns exec b tc qdisc replace dev vb root netem limit 10000 "$@"
}

# Not in here: tests that count on a peer being dead or receives being late within few retries.
filter='*DataLength.Every*:MwOrder.OrderAmongOthers:MwOrder.SendWithInvalidate-*WrApi:*/Uc*'	# UC loses what is lost
check "netem: loss" netem loss 2%
rc_run "loss" "$filter" "$(rc_pair)"
check "netem: duplicates" netem duplicate 5%
rc_run "duplicates" "$filter" "$(rc_pair)"
check "netem: reordering" netem delay 1ms reorder 25% 50%
rc_run "reordering" "$filter" "$(rc_pair)"

check "netem: everything" netem loss 2% duplicate 1% delay 1ms reorder 5% 50%
filter='*Data*/Send:*Data*/Write*:*Data*/Read:*DataAtomic*:DataPipeline.*:Post/Completion.*/PostSend:Completion?*.*:Event.*:Atomic.*:Reset.Reuse'
rc_run "everything" "$filter" "$(rc_pair)"
rc_run "everything, IPv6" "DataPipeline.*:Atomic.*" "$(rc_pair6)"
# UC: what arrives is whole
rc_run "everything" "UcLossy.*" "$(rc_pair)"
rc_run "everything, IPv6" "UcLossy.*" "$(rc_pair6)"

# it did hit the traffic
lost=$(ip netns exec a tc -s qdisc show dev va | sed -n 's/.*dropped \([0-9]*\).*/\1/p')
check_num "packets lost on the way" "$lost" -gt 100
check_num "retransmits counted" "$(hw_counter da retransmits)" -gt 100

ktap_finish
