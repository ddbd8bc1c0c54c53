#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# A queue of this host that is full refuses packets. Nothing is lost by that: the device waits and goes
# on with the refused packet, be it a request, a response or an acknowledgment. A loss would show as
# a gap.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

[ "$link_type" != rxe ] || ktap_skip_all "rdma_rxe of 6.1 knows init_net only"
rc_need
modprobe sch_netem || ktap_skip_all "no sch_netem"
netns_pair

# the queue is emptied now on one CPU, now on the other; one backlog keeps the order
for side in a:va b:vb; do
	check "receive on CPU 0: ${side#*:}" \
		ip netns exec ${side%:*} sh -c "echo 1 >/sys/class/net/${side#*:}/queues/rx-0/rps_cpus"
done

filter='Op/DataLength.LargeMessages/Write:Op/DataLength.LargeMessages/Send:Op/DataLength.LargeMessages/Read:DataPipeline.*:Atomic.*'
refused() {
	echo $(($(hw_counter da tx_dropped) + $(hw_counter db tx_dropped)))
}

# both directions are slower than the device, and shorter than a QP's window of 128 packets
rate=$((100 / time_scale))mbit
for limit in 4 16; do
	for side in a:va b:vb; do
		check "netem limit $limit on ${side#*:}" ip netns exec ${side%:*} \
			tc qdisc replace dev ${side#*:} root netem rate $rate limit $limit
	done
	before=$(refused)
	rc_run "limit $limit" "$filter" "$(rc_pair)"
	before=$(($(refused) - before))
	check_num "limit $limit: packets were refused" $before -gt 50
	# a slow machine may let the acknowledgment timer expire now and then
	check_num "limit $limit: hardly any retransmission" \
		$(($(hw_counter da retransmits) + $(hw_counter db retransmits))) -lt $((before / 4))
	for counter in packet_seq_err out_of_sequence implied_nak_seq_err; do
		check_eq "limit $limit: $counter" "$(($(hw_counter da $counter) + $(hw_counter db $counter)))" 0
	done
done

# nothing gets out until it has been refused often: that costs no retry
for side in a:va b:vb; do
	ip netns exec ${side%:*} tc qdisc del dev ${side#*:} root
done
check "va takes nothing" ip netns exec a tc qdisc replace dev va root pfifo limit 0
mkfifo "$tmp/unblock"
ip netns exec a tc -batch "$tmp/unblock" &
rc_test_unblock=$tmp/unblock rc_run "nothing out" 'RcRefused.*' "$(rc_pair)"
kill $! 2>/dev/null	# a test that failed early has told it nothing
check "va takes packets again" sh -c "! ip netns exec a tc qdisc show dev va | grep -q pfifo.limit"

# a filter on the way out drops, which looks like a queue that is full for ever
if modprobe act_gact 2>/dev/null && modprobe cls_matchall 2>/dev/null; then
	check "a filter on va" ip netns exec a tc qdisc add dev va clsact
	check "that drops" ip netns exec a tc filter add dev va egress matchall action drop
	before=$(hw_counter da tx_dropped)
	export rc_test_refused=1
	rc_run "dropping filter" 'UdRefused.*' "$(rc_pair)"
	check_num "tried more often than once" $(($(hw_counter da tx_dropped) - before)) -gt 100
else
	ktap_skip "a filter that drops" "no act_gact or cls_matchall"
fi

ktap_finish
