#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# libfabric's pingpong over its verbs provider, with its own check of the data: connected messages,
# reliable datagrams on top of them, unreliable ones.
. "${0%/*}/../ktest/env.sh"

[ -n "$(command -v fi_pingpong)" ] || ktap_skip_all "no fi_pingpong: apt-get install libfabric-bin"
rdma_setup

check "fi_info lists the device" sh -c "fi_info -p verbs | grep -q 'domain: *$dev'" || {
	fi_info -p verbs 2>&1 | head -n 20 | sed 's/^/# /'
}

# pingpong NAME SIZES OPTION...: "default" are the sizes that the program has without -S
pingpong() {
	local name=$1 sizes=$2 options size
	shift 2
	for size in $sizes; do
		options="$* -c -I 20"
		[ "$size" = default ] || options="$options -S $size"
		run_pair "$name, $size bytes" tcp:47592 "fi_pingpong $options" "fi_pingpong $options $addr"
	done
}

pingpong "messages" "64 4096 65536 1048576 default" -d $dev -p verbs -e msg
pingpong "reliable datagrams" "64 65536 default" -d $dev -p "verbs;ofi_rxm" -e rdm
pingpong "reliable datagrams, tagged" "64 65536" -d $dev -p "verbs;ofi_rxm" -e rdm -m tagged
pingpong "datagrams" "64 1024" -d $dev-dgram -p verbs -e dgram

ktap_finish
