#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Every source file says its licence on top, and the right one for its place.
. "${0%/*}/lib.sh"

either="GPL-2.0 OR BSD-2-Clause"

# without LICENCE: of the files on stdin, those whose first three lines do not say it
without() {
	while read -r f; do
		head -n 3 "$f" | grep -qE "SPDX-License-Identifier: $1( \*/)?$" || echo "$f"
	done
}

files kmod Kbuild -- '*.[ch]' 'Kbuild*' | without "$either" >"$found"
check_none "kmod/"
files uapi -- '*.h' | without "\(GPL-2.0 WITH Linux-syscall-note\) OR BSD-2-Clause" >"$found"
check_none "uapi/"
files provider CMakeLists.txt Makefile docs -- '*.[ch]' '*.[ch]pp' '*.cmake' CMakeLists.txt Makefile |
	without "$either" >"$found"
check_none "provider/, docs/, top"
{
	files tests -- '*.[ch]' '*.[ch]pp' '*.sh' '*.py' '*.config' CMakeLists.txt Makefile Kbuild
	# programs without a suffix
	find tests -type f -perm /111 ! -name '*.*'
} | sort -u | without "$either" >"$found"
check_none "tests/"

ktap_finish
