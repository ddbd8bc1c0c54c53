# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# What the kernel log says about a test.

# Lines that are a fault whatever the test did: kernel reports (warnings, sanitizers, lockdep,
# lockups, leaks of references) and crashes of programs.
dmesg_fault='WARNING|BUG[: ]|Oops|[Kk]ernel panic|general protection|refcount_t|KASAN|UBSAN|ODEBUG|kmemleak: [1-9]'
dmesg_fault="$dmesg_fault|possible (circular|recursive|irq|unsafe)|inconsistent lock|lock held|suspicious RCU|bad unlock"
dmesg_fault="$dmesg_fault|INFO: (task|rcu|trying)|hung_task|soft lockup|workqueue lockup|rcu.*(stall|detected)"
dmesg_fault="$dmesg_fault|waiting for .* to become free|leaked reference|has [0-9-]* users|corruption|[Bb]ad page"
dmesg_fault="$dmesg_fault|sleeping function|scheduling while atomic|segfault|trap (invalid|divide)|Object .* not freed"

# dmesg_mark TEXT: writes a line into the log from which dmesg_since reads.
dmesg_mark() {
	dmesg_marker="uroce-test: $1 $(cut -d' ' -f1 /proc/uptime)"
	echo "$dmesg_marker" >/dev/kmsg
}

dmesg_since() {
	dmesg | awk -v marker="$dmesg_marker" 'seen { print } index($0, marker) { seen = 1 }'
}

# Prints the faults since the mark with some context; fails when there are none.
dmesg_faults() {
	dmesg_since | grep -E -A 40 -- "$dmesg_fault"
}
