#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The C++ files look as .clang-format says.
. "${0%/*}/lib.sh"

files provider tests docs -- '*.cpp' '*.hpp' | while read -r f; do
	clang-format-14 --dry-run -Werror "$f" 2>&1 | grep -E '(error|warning):' | head -n 3
done >"$found"
check_none "clang-format"

ktap_finish
