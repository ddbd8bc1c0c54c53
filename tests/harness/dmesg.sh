#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Waits for a netdev's references: a fault, but on a slow kernel not a short one.
. "${0%/*}/../lib/ktap.sh"
. "${0%/*}/../lib/dmesg.sh"

now=$(cut -d. -f1 /proc/uptime)

# faults SCALE SECONDS-AGO: how many lines of a log are a fault, the wait having been that long ago
faults() {
	cat >"$tmp/log" <<-EOF
	[$((now - $2)).000001] unregister_netdevice: waiting for d0 to become free. Usage count = 2
	[$((now - $2)).000002] leaked reference.
	[$((now - $2)).000003]  uroce_device_init+0x34f/0x527 [uroce]
	[$((now - $2)).000004] all is well
	[$((now - $2)).000005] $3
	EOF
	time_scale=$1 dmesg_short_waits <"$tmp/log" | grep -cE -- "$dmesg_fault"
}

# long_wait SCALE: the same of a wait of 70 seconds that has ended
long_wait() {
	for i in 1 2 3 4 5 6; do
		echo "[$((now - 300 + 10 * i)).000001] unregister_netdevice: waiting for d0 to become free. Usage count = 2"
	done >"$tmp/log"
	time_scale=$1 dmesg_short_waits <"$tmp/log" | grep -cE -- "$dmesg_fault"
}

check_eq "stock kernel" "$(faults 1 300)" 2
check_eq "slow kernel, ended" "$(faults 6 300)" 0
check_eq "slow kernel, goes on" "$(faults 6 5)" 2
check_eq "slow kernel, what comes after it" "$(faults 6 300 'leaked reference.')" 1
check_eq "slow kernel, other faults" "$(faults 6 300 'WARNING: CPU: 1 PID: 1')" 1
check_eq "slow kernel, a long wait" "$(long_wait 6)" 1
check_eq "stock kernel, a long wait" "$(long_wait 1)" 6

ktap_finish
