#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The kernel's checkpatch.pl --strict over what is built into the kernel. checkpatch.ignore names what it cannot
# know, per file; nothing is off for all files but what only makes sense inside the kernel's tree.
. "${0%/*}/lib.sh"

linux=$(tests/lib/linux-scripts) || ktap_skip_all "no checkpatch.pl: apt-get install linux-source-6.1"
files kmod uapi tests/kverbs -- '*.[ch]' | xargs -r perl "$linux/scripts/checkpatch.pl" --strict --no-tree --terse \
	--no-summary --show-types --ignore FILE_PATH_CHANGES,SPDX_LICENSE_TAG -f 2>&1 |
	awk -F: -v table=tests/lint/checkpatch.ignore '
		BEGIN { while ((getline line <table) > 0) { split(line, word, " "); ignore[word[1] ":" word[2]] = 1 } }
		!(($1 ":" $4) in ignore)' >"$found"
check_none "checkpatch.pl --strict"

ktap_finish
