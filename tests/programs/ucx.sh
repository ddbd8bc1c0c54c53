#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# UCX over connected and unconnected queue pairs, by its own benchmark. Shared memory is left out, so
# that the device does it.
. "${0%/*}/../ktest/env.sh"

[ -n "$(command -v ucx_perftest)" ] || ktap_skip_all "no ucx_perftest: apt-get install ucx-utils"
rdma_setup
export UCX_NET_DEVICES=$dev:1 UCX_IB_GID_INDEX=$gid UCX_WARN_UNUSED_ENV_VARS=n
pair_seconds=120

for transport in rc_verbs ud_verbs; do
	check "ucx_info lists $transport" sh -c "ucx_info -d | grep -A3 'Transport: $transport' | grep -q '$dev:1'"
done

# perf TRANSPORTS TEST SIZE COUNT
perf() {
	export UCX_TLS=$1,self
	run_pair "$1: $2, $3 bytes" tcp:13337 "ucx_perftest -t $2 -s $3 -n $4 -w 1" \
		"ucx_perftest $addr -t $2 -s $3 -n $4 -w 1" || return
	check_no_file "$1: $2, $3 bytes: errors" "ERROR" "$tmp/client.out"
	check_file "$1: $2, $3 bytes: result" "^Final:" "$tmp/client.out"
}

# rc_verbs is wired up by datagrams, hence both
perf rc_verbs,ud_verbs tag_lat 8 50
perf rc_verbs,ud_verbs tag_bw 65536 50
perf rc_verbs,ud_verbs stream_bw 4096 50
perf rc_verbs,ud_verbs ucp_put_bw 65536 50
perf rc_verbs,ud_verbs ucp_get 65536 50
perf rc_verbs,ud_verbs ucp_fadd 8 50
perf rc_verbs,ud_verbs ucp_cswap 8 50
perf ud_verbs tag_lat 8 50
perf ud_verbs tag_bw 4096 50

ktap_finish
