#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Two machines, a network between them: verbs tools, rdma_cm, and perftest. VM a has the servers,
# VM b the clients.
. "${0%/*}/../lib/ktap.sh"
. "${0%/*}/../lib/rdma.sh"
. "${0%/*}/../lib/pair.sh"

rdma_setup
steps=0

# apart NAME WHERE SERVER CLIENT: run_pair across the machines. A barrier before the client starts
# and one after it has ended. WHERE may also be says:WORDS, of the server's output.
apart() {
	steps=$((steps + 1))
	if [ "$VM_ROLE" = a ]; then
		start_server server $3
		case $2 in
		says:*) wait_for $((30 * time_scale)) grep -q "${2#says:}" "$tmp/server.out" ;;
		*) wait_listen "$2" ;;
		esac || ktap_fail "$1: listens" "$(cat "$tmp/server.out")"
		pair_barrier "traffic-$steps-listens" || ktap_bail "the other VM did not come"
		check "$1: server" wait_server server $((60 * time_scale))
		check_no_file "$1: server's output" "[Ee]rror|invalid data|mismatch" "$tmp/server.out"
	else
		pair_barrier "traffic-$steps-listens" || ktap_bail "the other VM did not come"
		check "$1: client" timeout -k 5 $((60 * time_scale)) $4
	fi
	pair_barrier "traffic-$steps-done" || ktap_bail "the other VM did not come"
}

apart "rc_pingpong" tcp:18515 "ibv_rc_pingpong -d $dev -g $gid -n 200 -c" \
	"ibv_rc_pingpong -d $dev -g $gid -n 200 -c $pair_addr_a"
apart "rc_pingpong, 64 KB at path MTU 4096" tcp:18515 "ibv_rc_pingpong -d $dev -g $gid -n 50 -s 65536 -m 4096 -c" \
	"ibv_rc_pingpong -d $dev -g $gid -n 50 -s 65536 -m 4096 -c $pair_addr_a"
apart "uc_pingpong" tcp:18515 "ibv_uc_pingpong -d $dev -g $gid -n 50 -s 16384 -m 4096 -c" \
	"ibv_uc_pingpong -d $dev -g $gid -n 50 -s 16384 -m 4096 -c $pair_addr_a"
apart "ud_pingpong" tcp:18515 "ibv_ud_pingpong -d $dev -g $gid -n 200 -s 1024 -c" \
	"ibv_ud_pingpong -d $dev -g $gid -n 200 -s 1024 -c $pair_addr_a"
apart "rping" cm:7174 "rping -s -a $pair_addr_a -C 20 -S 3000 -v" "rping -c -a $pair_addr_a -C 20 -S 3000 -v -V"
apart "udaddy" cm:7174 "udaddy -b $pair_addr_a -C 10" "udaddy -s $pair_addr_a -C 10"
apart "ib_send_lat, UD" tcp:18515 "ib_send_lat -d $dev -x $gid -F -c UD -n 50 -s 1024" \
	"ib_send_lat -d $dev -x $gid -F -c UD -n 50 -s 1024 $pair_addr_a"
apart "ib_write_bw" tcp:18515 "ib_write_bw -d $dev -x $gid -F -n 100" "ib_write_bw -d $dev -x $gid -F -n 100 $pair_addr_a"
apart "ib_read_bw" tcp:18515 "ib_read_bw -d $dev -x $gid -F -n 100" "ib_read_bw -d $dev -x $gid -F -n 100 $pair_addr_a"
apart "ib_send_bw by events" tcp:18515 "ib_send_bw -d $dev -x $gid -F -e -n 100" \
	"ib_send_bw -d $dev -x $gid -F -e -n 100 $pair_addr_a"

# Multicast. Line by line, since a file would get what it says at the end only
mckey="stdbuf -oL mckey -m 239.1.1.1 -c 2 -C 10"
apart "mckey" "says:receiving data" "$mckey -b $pair_addr_a" "$mckey -b $pair_addr_b -s"

# 64 QPs post 5 MB at once. A network of software emulation takes longer for them than the tool's ACK
# timeout of 67 ms; what is sent again comes on top, until a QP has had its seven retries. (fq_codel
# drops some of what waits in eth0's queue, but a queue that drops nothing ends the same way.) With a
# timeout of a second it does not come to that.
for tool in ib_send_bw ib_write_bw; do
	tool="$tool -d $dev -x $gid -F -q 64 -s 4096 -n 20 -u 18"
	apart "64 QPs, ${tool%% *}" tcp:18515 "$tool" "$tool $pair_addr_a"
done

ktap_finish
