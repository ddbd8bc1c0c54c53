#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# A wire that loses nothing and keeps the order (veth): then the device must not see a gap either.
# Packets of one QP that overtake each other on their way out, or are thrown away on their way in,
# show as sequence errors, and cost a retransmission each. The acknowledgment timer is left out:
# on a slow machine it may expire.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

[ "$link_type" != rxe ] || ktap_skip_all "rdma_rxe of 6.1 knows init_net only"
rc_need
netns_pair

gaps() {
	local dev counter
	for dev in da db; do
		for counter in packet_seq_err implied_nak_seq_err out_of_sequence drop_queue_full tx_dropped; do
			[ "$(hw_counter $dev $counter)" = 0 ] ||
				printf '%s ' "$dev:$counter=$(hw_counter $dev $counter)"
		done
	done
}

for filter in 'Op/DataLength.LargeMessages/Write' 'Op/DataLength.LargeMessages/Send' \
	      'Op/DataLength.LargeMessages/Read' 'DataPipeline.*' 'Atomic.*'; do
	rc_run "lossless" "$filter" "$(rc_pair)"
	check_eq "$filter: no gaps so far" "$(gaps)" ""
done

ktap_finish
