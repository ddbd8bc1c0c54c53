#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What must not wear out: keys and memory of regions, wake-ups of a completion queue; and what a
# region of 1 GiB costs, beside rdma_rxe's. Of a slow kernel a hundredth of the rounds is asked.
#
# usage: endurance.sh [REGISTRATIONS [WAKE-UPS]]; or in the environment
. "${0%/*}/env.sh"

few=1
[ "$time_scale" = 1 ] || few=100
registrations=${1:-${registrations:-$((200000 / few))}}
wakeups=${2:-${wakeups:-$((300000 / few))}}
rc_seconds=$((300 + registrations / 500 + wakeups / 100))

# run LABEL TEST DIVISOR DEVICES: so much of the rounds
run() {
	local start
	start=$(now_ms)
	rc_test_registrations=$((registrations / $3)) rc_test_rounds=$((wakeups / $3)) \
		stress_run "$1" "$2" "$4"
	ktap_note "$1: $2: $(($(now_ms) - start)) ms"
}

rdma_setup
run "itself" 'MemoryWear.*' 1 "--dev $dev --gid-index $gid"
run "itself" Event.NoLostWakeUp 1 "--dev $dev --gid-index $gid"
# completions that come in the receive path's context
set_local_path "$dev" off
run "itself, packets" Event.NoLostWakeUp 10 "--dev $dev --gid-index $gid"
rdma_link_del "$dev"

sysctl -qw vm.nr_hugepages=0
netns_interop
both="--dev db --gid-index $gid_b --peer-dev da --peer-gid-index $gid_a"
stress_run "beside rxe" Cost.OneGiBOfSmallPages "$both"
sysctl -qw vm.compact_memory=1 vm.nr_hugepages=512
at_end "sysctl -qw vm.nr_hugepages=0"
stress_run "beside rxe" Cost.OneGiBOfHugePages "$both"

ktap_finish
