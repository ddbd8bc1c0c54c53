#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What is a fault in the kernel's log and what is not: waits for a netdev's references are, but on a slow
# kernel not short ones; a lock order of nvmet's is nvmet's.
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

# warning PLACE
warning() {
	echo "[    1.000001] WARNING: CPU: 0 PID: 1 at $1+0x1/0x2" | dmesg_not_jump_label | grep -cE -- "$dmesg_fault"
}

# inversion LOCK FRAME: a lockdep report, and a fault after it
inversion() {
	cat >"$tmp/log" <<-EOF
	[    1.000001] WARNING: possible circular locking dependency detected
	[    1.000002] kworker/0:2/760 is trying to acquire lock:
	[    1.000003] ffffffffa0065950 ($1){++++}-{3:3}, at: somewhere+0x194/0x3a0
	[    1.000004]  $2
	[    1.000005]  </TASK>
	[    1.000006] $3
	EOF
	dmesg_not_nvmet <"$tmp/log" | grep -cE -- "$dmesg_fault"
}

check_eq "no memory for jump labels" "$(warning 'kernel/jump_label.c:784 jump_label_module_notify')" 0
check_eq "other warnings" "$(warning 'lib/refcount.c:28 jump_label.c')" 1
check_eq "lock order of nvmet" "$(inversion nvmet_config_sem 'rdma_destroy_id+0x16/0x30')" 0
check_eq "lock order of nvmet with us" "$(inversion nvmet_config_sem 'uroce_x+0x1/0x2 [uroce]')" 1
check_eq "lock order of others" "$(inversion rtnl_mutex 'rdma_destroy_id+0x16/0x30')" 1
check_eq "lock order of nvmet, then a fault" "$(inversion nvmet_config_sem x 'BUG: KASAN: x')" 1
check_eq "stock kernel" "$(faults 1 300)" 2
check_eq "slow kernel, ended" "$(faults 6 300)" 0
check_eq "slow kernel, goes on" "$(faults 6 5)" 2
check_eq "slow kernel, what comes after it" "$(faults 6 300 'leaked reference.')" 1
check_eq "slow kernel, other faults" "$(faults 6 300 'WARNING: CPU: 1 PID: 1')" 1
check_eq "slow kernel, a long wait" "$(long_wait 6)" 1
check_eq "stock kernel, a long wait" "$(long_wait 1)" 6

ktap_finish
