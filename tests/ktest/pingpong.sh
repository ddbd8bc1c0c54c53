#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The pingpong programs of ibverbs-utils, one device with itself: RC, UC, UD, SRQ, XRC, sizes around
# the path MTU, polled and by events, over IPv4 and IPv6. -c makes them compare the data, but what
# they find only gets printed, hence the look at both outputs.
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
if [ "$link_type" = uroce ]; then	# rdma_rxe has no XRC; this one has no -c that compares
	for family in "$gid" "$gid6"; do
		xsrq="ibv_xsrq_pingpong -d $dev -g $family -n $iters"
		run_pair "xsrq_pingpong -g $family" tcp:18515 "$xsrq" "$xsrq $addr" || continue
		check_file "xsrq_pingpong -g $family: success" "^success" "$tmp/client.out"
	done
fi

ktap_finish
