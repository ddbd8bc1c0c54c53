#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The shell programs pass shellcheck. Off: following sourced files (1090, 1091), which leaves
# variables without a visible origin or use (2034, 2154); what dash has beyond POSIX: local, -nt,
# ulimit -l (3043, 3013, 3045); empty assignments in a row (1007) and commas in words (2054).
. "${0%/*}/lib.sh"

{
	files tests .ci -- '*.sh'
	find tests .ci -type f -perm /111 ! -name '*.*' 2>/dev/null | while read -r f; do
		head -n 1 "$f" | grep -qE '^#!/bin/(ba)?sh' && echo "$f"
	done
} | sort -u | while read -r f; do
	shellcheck -S warning -e 1007,1090,1091,2034,2054,2154,3013,3043,3045 -f gcc "$f"
done >"$found"
check_none "shellcheck"

ktap_finish
