# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# What a test left behind in the kernel. Each function prints what it finds, and cleans it up as
# far as it can so that the next test starts from nothing.

# RDMA devices.
leak_links() {
	local name
	for name in /sys/class/infiniband/*; do
		[ -e "$name" ] || continue
		name=${name##*/}
		echo "device $name was left behind: $(rdma resource show "$name")"
		timeout 60 rdma link delete "$name" || echo "and cannot be deleted"
	done
}

# Network namespaces.
leak_netns() {
	local name
	for name in /run/netns/*; do
		[ -e "$name" ] || continue
		name=${name##*/}
		echo "network namespace $name was left behind"
		ip netns del "$name"
	done
}

# The modules under test must go as soon as their devices are gone.
leak_modules() {
	local name
	for name in kverbs uroce rdma_rxe siw; do
		[ -e /sys/module/$name ] || continue
		timeout 60 rmmod $name 2>&1 ||
			echo "module $name cannot be removed, it has $(cat /sys/module/$name/refcnt) users"
	done
}

# Memory, on a kernel with kmemleak. An object has to be older than 5 seconds to be reported,
# and the first scan after its loss may still find a stale pointer to it.
leak_memory() {
	[ -e /sys/kernel/debug/kmemleak ] || return 0
	sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	echo scan >/sys/kernel/debug/kmemleak
	cat /sys/kernel/debug/kmemleak
	echo clear >/sys/kernel/debug/kmemleak
}
