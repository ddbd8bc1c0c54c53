# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# First line of every test of this folder: `. "${0%/*}/env.sh"`.
lib=${0%/*}/../lib
. "$lib/ktap.sh"
. "$lib/rdma.sh"
. "$lib/netns.sh"
. "$lib/rc.sh"
[ "$(id -u)" = 0 ] || ktap_skip_all "needs root"
[ "$link_type" != rxe ] || ktap_skip_all "about what only uroce shares with a process"

# tap_run's program is stress-test here, rc-test's sibling with the same options
stress_test=${VM_TOP:-${0%/*}/../..}/build/stress/stress-test
rc_test=$stress_test
rc_need
# seconds that each of its tests goes on
export stress_seconds="${stress_seconds:-4}"
rc_seconds=$((300 + 20 * stress_seconds))

now_ms() {
	awk '{ printf "%d\n", $1 * 1000 }' /proc/uptime
}

# Tasks in uninterruptible sleep, with where they are.
stuck_tasks() {
	local pid
	for pid in $(cat /proc/[0-9]*/stat 2>/dev/null | sed -n 's/^\([0-9]*\) (.*) D .*/\1/p'); do
		echo "$pid $(cat "/proc/$pid/comm") $(tr '\n' ' ' <"/proc/$pid/stack")"
	done
}
no_stuck_tasks() {
	[ -z "$(stuck_tasks)" ]
}
# One that sleeps so only now and then is fine: some moment must be without.
check_no_stuck_tasks() {
	wait_for $((10 * time_scale)) no_stuck_tasks && ktap_pass "$1: no task hangs" ||
		ktap_fail "$1: no task hangs" "$(stuck_tasks)"
}

# stress_run LABEL FILTER DEVICES: those tests of stress-test, and how much they did.
stress_run() {
	rc_run "$@"
	sed -n "s/^# \(.* rounds\|[0-9]* .*\)$/# $1: \1/p" "$tmp/tap.out"
}
