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

# The kernel complains each 10 s while it waits for a netdev's references, a bound of its own that knows
# nothing of $time_scale. Leaves out complaints of waits that have ended and were shorter than 10 s times
# $time_scale, and the list of references behind each; on the stock kernel, none.
dmesg_short_waits() {
	awk -v scale="${time_scale:-1}" -v now="$(cut -d' ' -f1 /proc/uptime)" '
	/waiting for .* to become free/ {
		time = $0
		gsub(/^\[ *|\].*/, "", time)
		name = $0
		gsub(/.*waiting for | to become free.*/, "", name)
		count[name] = (name in last) && time - last[name] < 15 ? count[name] + 1 : 1
		last[name] = time
		short = now - time > 15 && count[name] < scale
	}
	!/waiting for .* to become free|leaked reference|\]  [a-z_]/ { short = 0 }
	!short'
}

# Leaves out a lockdep report that is nvmet's own, over any device: the CM's handlers run under a mutex and
# look for the subsystem, and a port is taken away under nvmet_config_sem and ends its CM identifier. Not
# when uroce is in it. (Lockdep is off from the first report on: nvme.sh is the last of its VM.)
dmesg_not_nvmet() {
	awk '
	/WARNING: possible circular locking dependency/ { held = 1; text = ""; nvmet = 0; uroce = 0 }
	!held { print; next }
	{ text = text $0 "\n" }
	/nvmet_config_sem/ { nvmet = 1 }
	/\[uroce\]/ { uroce = 1 }
	/<\/TASK>/ {
		if (!nvmet || uroce)
			printf "%s", text
		held = 0
	}
	END { if (held) printf "%s", text }'
}

# Leaves out the kernel's own warnings that it had no memory for a module's jump labels, which come when
# tests/debug loads a module with each allocation failing.
dmesg_not_jump_label() {
	grep -v 'WARNING: .* at kernel/jump_label\.c:'
}

# Prints the faults since the mark with some context; fails when there are none.
dmesg_faults() {
	dmesg_since | dmesg_short_waits | dmesg_not_nvmet | dmesg_not_jump_label | grep -E -A 40 -- "$dmesg_fault"
}
