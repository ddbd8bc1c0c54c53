#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# A process that spoils every byte it shares with the kernel: on one device with itself, on the local
# path and as packets, and between two namespaces. Others on the same device must not notice.
. "${0%/*}/env.sh"

# with_victim LABEL FILTER DEVICES: the victim's verified traffic meanwhile
with_victim() {
	rm -f "$tmp/over"
	# shellcheck disable=SC2086
	start_server victim env stress_until="$tmp/over" "$stress_test" $3 --gtest_filter='Victim.*'
	stress_run "$1" "$2" "$3"
	touch "$tmp/over"
	wait_server victim $((60 + 2 * stress_seconds)) || ktap_fail "$1: a victim's traffic" "$(cat "$tmp/victim.out")"
	check_file "$1: a victim's traffic" '^ok 1 Victim' "$tmp/victim.out"
}

pingpong() {
	run_pair "$1: ibv_rc_pingpong -c afterwards" tcp:18515 "ibv_rc_pingpong -d $2 -g $3 -n 50 -c" \
		"ibv_rc_pingpong -d $4 -g $5 -n 50 -c $6"
	check_no_file "$1: data" "invalid data" "$tmp/server.out"
}

rdma_setup
for path in auto off; do
	set_local_path "$dev" $path
	with_victim "itself, $path" 'Spoilt.*:Scribble.*' "--dev $dev --gid-index $gid"
	pingpong "itself, $path" "$dev" "$gid" "$dev" "$gid" "$addr"
done
rdma_link_del "$dev"

netns_pair
with_victim "veth" 'Scribble.*' "$(rc_pair)"
pingpong "veth" da "$gid_a" db "$gid_b" "$addr_a"

ktap_finish
