#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Rules of the project that a pattern can check.
. "${0%/*}/lib.sh"

files kmod uapi tests/kverbs -- '*.[ch]' | grep -v '^kmod/compat/' |
	xargs -r grep -nE 'LINUX_VERSION_CODE|KERNEL_VERSION|\bHAVE_[A-Z]' /dev/null >"$found"
check_none "kernel versions only in kmod/compat/"

files . -- '*.[ch]' '*.[ch]pp' '*.sh' '*.py' | xargs -r wc -l |
	awk '$1 > 800 && $2 != "total" { print $2 ": " $1 " lines" }' >"$found"
check_none "no file longer than 800 lines"

files kmod uapi provider tests docs -- '*.[ch]' '*.[ch]pp' '*.sh' '*.md' | xargs -r grep -nE '[[:space:]]$' /dev/null >"$found"
check_none "no white space at the end of a line"

# what packets and work requests reach must not log: whoever sends them would fill the log
files kmod -- rx.c rxq.c parse.c resp.c rd_res.c recv.c reply.c comp.c req.c local.c engine.c net.c copy.c \
	key.c odp.c fault.c memop.c mcast.c icrc.c timer.c cq.c kpost.c |
	xargs -r grep -nE '\b(printk|(pr|ibdev|dev|netdev|net)_(emerg|alert|crit|err|warn|info|notice|dbg))\b' /dev/null |
	grep -v -e ratelimited -e 'UDP port' >"$found"
check_none "no printk where packets and work requests pass"

ktap_finish
