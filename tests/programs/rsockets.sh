#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sockets over RDMA: rdmacm-utils' own programs with their checks of the data, and programs that know
# nothing of it with the library preloaded. Left out, because of the library or the program:
#   blocks of 64 KiB, riostream's larger ones   wait for ever, over rdma_rxe too
#   udpong      makes an address handle by LID alone, which the kernel refuses for every RoCE device;
#               the "No such file or directory" that it says is from tidying up
#   socat, nuttcp   crash in the library, as does what calls it with what it does not know
#   nc, iperf3  want socket options that it does not have
#   python3     asks for sockets with SOCK_CLOEXEC, which the library leaves to the kernel's TCP
. "${0%/*}/../ktest/env.sh"

[ -n "$(command -v rstream)" ] || ktap_skip_all "no rstream: apt-get install rdmacm-utils"
rdma_setup

# the server serves one client, then another, until it is stopped
for test in "rstream -S 64" "rstream -S 4096 -T a" "rstream -S 4096 -T n" "riostream -S 64"; do
	start_server server "${test%% *}" -b $addr
	check "$test: server" wait_listen cm:7471
	# shellcheck disable=SC2086
	check "$test, data checked" timeout -k 5 $((60 * time_scale)) $test -s $addr -C 20 -I 1 -T v
	stop_server server
done

head -c 300000 /dev/urandom >"$tmp/file"

# preloaded NAME SERVER PORT CLIENT: both over RDMA, which the counter of the device says
preload=$(ls /usr/lib/*/rsocket/librspreload.so 2>/dev/null)
preloaded() {
	local name=$1 before
	before=$(hw_counter "$dev" kicks)
	# shellcheck disable=SC2086
	start_server server env LD_PRELOAD="$preload" $2
	check "$name: server" wait_listen cm:"$3"
	# shellcheck disable=SC2086
	check "$name" timeout -k 5 $((60 * time_scale)) env LD_PRELOAD="$preload" $4
	check "$name: server's end" wait_server server 20
	check_num "$name: by the device" "$(($(hw_counter "$dev" kicks) - before))" -gt 20
}
if [ "$link_type" = uroce ]; then
	preloaded "iperf, preloaded" "iperf -s -B $addr -P 1" 5001 "iperf -c $addr -n 4M"
fi

start_server server rcopy
check "rcopy: server" wait_listen cm:7427
check "rcopy" timeout -k 5 $((60 * time_scale)) rcopy "$tmp/file" "$addr:$tmp/copy"
check "rcopy: the same" cmp "$tmp/file" "$tmp/copy"
stop_server server

ktap_finish
