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

# A netdev with two queues, each a CPU's by XPS: they overtake each other, so a QP keeps to one,
# wherever its process and the kernel's share of the work happen to run.
ip link add vm0 netns a mtu 4200 numtxqueues 2 numrxqueues 2 type veth \
	peer name vm1 netns b mtu 4200 numtxqueues 2 numrxqueues 2 || ktap_bail "no veth pair"
ip -n a addr add 10.8.0.1/24 dev vm0
ip -n b addr add 10.8.0.2/24 dev vm1
ip -n a link set vm0 up
ip -n b link set vm1 up
# ip netns exec has the namespace's own /sys
xps() {
	$side_a sh -c "echo $2 >/sys/class/net/vm0/queues/tx-$1/xps_cpus"
}
xps 0 1 && xps 1 2 || ktap_bail "no XPS"
tc -n a qdisc add dev vm0 root handle 1: mq
rdma_link_add dma vm0 "$side_a"
rdma_link_add dmb vm1 "$side_b"
gid_ma=$(wait_gid dma 10.8.0.1)
gid_mb=$(wait_gid dmb 10.8.0.2)

# packets of each queue
queues() {
	tc -n a -s class show dev vm0 | awk '$1 == "Sent" { print $4 }'
}
hop() {
	local n=0
	while kill -0 "$1" 2>/dev/null; do
		n=$((1 - n))
		taskset -acp $n "$1" >/dev/null 2>&1
		sleep 0.05
	done
}

start_server server $side_b ib_write_bw -d dmb -x "$gid_mb" -F -n 400 -s 65536
check "queues: server" wait_listen tcp:18515 "$side_b"
$side_a ib_write_bw -d dma -x "$gid_ma" -F -n 400 -s 65536 10.8.0.2 >"$tmp/client.out" 2>&1 &
client=$!
hop $client &
check "queues: client" wait $client || ktap_note "$(cat "$tmp/client.out")"
check "queues: server's end" wait_server server 20
# shellcheck disable=SC2046	# two numbers
check "queues: one has all of it" python3 -c '
import sys
few, many = sorted(map(int, sys.argv[1:]))
print("packets of the queues:", few, many)
sys.exit(many < 6400 or few > 200)' $(queues) || ktap_note "$(tc -n a -s class show dev vm0)"

ktap_finish
