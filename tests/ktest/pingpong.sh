#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The pingpong programs of ibverbs-utils, one device with itself: RC, UC, UD, SRQ, XRC, sizes around
# the path MTU, polled and by events, over IPv4 and IPv6, and each of their options. -c makes them
# compare the data, but what they find only gets printed, hence the look at both outputs.
# Left out: rc_pingpong with -t and -e, which takes an event whose completion it has seen already for
# an error.
. "${0%/*}/env.sh"

iters=100
[ "$time_scale" = 1 ] || iters=20	# a slow kernel

# pingpong TOOL OPTIONS...
pingpong() {
	local tool=$1
	shift
	run_pair "$tool $*" tcp:18515 "ibv_$tool -d $dev -c $*" "ibv_$tool -d $dev -c $* $addr" || return
	check_no_file "$tool $*: data" "invalid data" "$tmp/server.out"
	check_no_file "$tool $*: data at the client" "invalid data" "$tmp/client.out"
	check_file "$tool $*: all iterations" "^[0-9]+ iters in" "$tmp/client.out"
}

rdma_setup
for size in 1 64 1023 1024 1025 4096 65536 1048576; do
	pingpong rc_pingpong -g "$gid" -n $((size > 100000 ? 5 : iters)) -s $size -m 1024
done
pingpong rc_pingpong -g "$gid" -n $iters -s 8192 -m 4096
pingpong rc_pingpong -g "$gid" -n $iters -e
pingpong rc_pingpong -g "$gid6" -n $iters
link_local=$(grep -l '^fe80:' /sys/class/infiniband/$dev/ports/1/gids/* | head -n 1)
pingpong rc_pingpong -g "${link_local##*/}" -n $iters
pingpong rc_pingpong -g "$gid" -n $iters -N
for size in 1 1024 4096 65536; do
	pingpong uc_pingpong -g "$gid" -n $iters -s $size -m 1024
done
pingpong uc_pingpong -g "$gid6" -n $iters -e
for size in 1 1023 2048; do
	pingpong ud_pingpong -g "$gid" -n $iters -s $size
done
pingpong ud_pingpong -g "$gid6" -n $iters -s 1024 -e
pingpong srq_pingpong -g "$gid" -n $iters -q 8
pingpong srq_pingpong -g "$gid" -n $iters -q 4 -e
pingpong srq_pingpong -g "$gid6" -n $iters -s 65536 -m 1024
for tool in rc uc ud srq; do	# few receives at a time, a service level, the port by its number
	pingpong ${tool}_pingpong -g "$gid" -n $iters -r 16 -l 3 -i 1
done

# xsrq_pingpong CLIENTS OPTION...: so many clients at a time; it has no -c that compares
xsrq_pingpong() {
	local clients=$1 i
	shift
	start_server server ibv_xsrq_pingpong -d "$dev" -n $iters "$@" -c "$clients"
	wait_listen tcp:18515 || ktap_fail "xsrq_pingpong $*: listens" "$(cat "$tmp/server.out")"
	for i in $(seq "$clients"); do
		start_server "client$i" ibv_xsrq_pingpong -d "$dev" -n $iters "$@" "$addr"
	done
	for i in $(seq "$clients"); do
		check "xsrq_pingpong $*: client $i of $clients" wait_server "client$i" 60
		check_file "xsrq_pingpong $*: client $i of $clients: success" "^success" "$tmp/client$i.out"
	done
	check "xsrq_pingpong $*: server" wait_server server 20
	check_file "xsrq_pingpong $*: server: success" "^success" "$tmp/server.out"
}
if [ "$link_type" = uroce ]; then	# rdma_rxe has no XRC, ODP, device memory, completion timestamps
	xsrq_pingpong 1 -g "$gid"
	xsrq_pingpong 1 -g "$gid6" -e
	xsrq_pingpong 1 -g "$gid" -o -s 65536 -m 1024
	xsrq_pingpong 3 -g "$gid"
	for options in "-o" "-o -P" "-O" "-O -P" "-o -N" "-t" "-t -N" "-j" "-j -N"; do
		# shellcheck disable=SC2086
		pingpong rc_pingpong -g "$gid" -n $iters $options
	done
	pingpong srq_pingpong -g "$gid" -n $iters -q 4 -o
fi

ktap_finish
