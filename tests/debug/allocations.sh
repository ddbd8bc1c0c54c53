#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Memory that cannot be had, at every point of every verb, of the sending side of every operation, of
# adding and deleting links and of loading the module. Needs the debug kernel's fault injection.
. "${0%/*}/../ktest/env.sh"
. "$lib/rc.sh"
. "$lib/leak.sh"

debugfs=/sys/kernel/debug
[ -e /proc/thread-self/fail-nth ] || ktap_skip_all "no fault injection: needs the debug kernel"
[ "$link_type" = uroce ] || ktap_skip_all "others do not survive it"

# fail_set FAULT FILE VALUE
fail_set() {
	[ ! -e "$debugfs/$1/$2" ] || echo "$3" >"$debugfs/$1/$2"
}
for fault in failslab fail_page_alloc fail_usercopy; do
	[ -d "$debugfs/$fault" ] || ktap_bail "no $debugfs/$fault"
	fail_set $fault verbose 0	# no stack in the log each time
	fail_set $fault ignore-gfp-wait N
	fail_set $fault ignore-gfp-highmem N
	fail_set $fault min-order 0
done

# Before there is a device
ip link add fail0 type dummy && ip link set fail0 up || ktap_bail "no dummy netdev"
at_end "ip link del fail0"
rdma_load
tap_run "administration" 300 $python "${0%/*}/administration.py" "$module" fail0

rc_everywhere 'Alloc.*:-Alloc.Contexts' packets

# Linux forgets a reference on the task when a context cannot be had (6.1: its method GET_CONTEXT frees
# the context without rdma_restrack_put()): a task, its signals and its credentials stay.
leaks_but_tasks() {
	leak_memory | awk '
		/^unreferenced object/ { if (!task) printf "%s", text; text = ""; task = 0 }
		/copy_process|prepare_(kernel_)?creds/ { task = 1 }
		{ text = text $0 "\n" }
		END { if (!task) printf "%s", text }'
}
check_eq "no leaks so far" "$(leak_memory)" ""
rc_run "contexts" 'Alloc.Contexts' "--dev $dev --gid-index $gid"
check_eq "contexts: no leaks but the task's" "$(leaks_but_tasks)" ""

ktap_finish
