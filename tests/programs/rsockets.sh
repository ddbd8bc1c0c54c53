#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sockets over RDMA: rdmacm-utils' own programs with their checks of the data. Left out, because they
# do the same over rdma_rxe: blocks of 64 KiB and riostream's larger ones (they wait for ever), udpong
# ("No such file or directory"), socat with the library preloaded (it crashes).
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
start_server server rcopy
check "rcopy: server" wait_listen cm:7427
check "rcopy" timeout -k 5 $((60 * time_scale)) rcopy "$tmp/file" "$addr:$tmp/copy"
check "rcopy: the same" cmp "$tmp/file" "$tmp/copy"
stop_server server

ktap_finish
