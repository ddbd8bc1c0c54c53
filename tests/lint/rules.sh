#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Rules of the project that a pattern can check.
. "${0%/*}/lib.sh"

files kmod uapi -- '*.[ch]' | grep -v '^kmod/compat/' |
	xargs -r grep -nE 'LINUX_VERSION_CODE|KERNEL_VERSION|\bHAVE_[A-Z]' /dev/null >"$found"
check_none "kernel versions only in kmod/compat/"

files . -- '*.[ch]' '*.[ch]pp' '*.sh' '*.py' | xargs -r wc -l |
	awk '$1 > 800 && $2 != "total" { print $2 ": " $1 " lines" }' >"$found"
check_none "no file longer than 800 lines"

files kmod uapi provider tests docs -- '*.[ch]' '*.[ch]pp' '*.sh' '*.md' | xargs -r grep -nE '[[:space:]]$' /dev/null >"$found"
check_none "no white space at the end of a line"

# the receive path must not log: whoever sends packets would fill the log
files kmod -- rx.c parse.c resp.c comp.c | xargs -r grep -nE '\b(printk|pr_(err|warn|info|notice)|ibdev_(err|warn|info|notice))\b' /dev/null |
	grep -v ratelimited >"$found"
check_none "no printk on the receive path"

ktap_finish
