# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# For the programs of this folder: TAP, the repository's root, and its files.
. "${0%/*}/../lib/ktap.sh"
top=$(cd "${0%/*}/../.." && pwd)
cd "$top" || exit 1

# files FOLDER-OR-FILE... -- NAME-PATTERN...: the files of the project, one a line, whether or not
# this is a git checkout; what git ignores lies in build/ and __pycache__/.
files() {
	local where= names=
	while [ "$1" != -- ]; do
		[ ! -e "$1" ] || where="$where $1"
		shift
	done
	shift
	[ -n "$where" ] || return 0
	for name; do names="$names -o -name $name"; done
	# shellcheck disable=SC2086
	(set -f; find $where \( -path ./build -o -path ./.git -o -name __pycache__ \) -prune -o \
		-type f \( ${names# -o } \) -print) | sed 's,^\./,,' | sort
}

# check_none NAME: passes when the file $found is empty, else shows it.
found=$tmp/found
check_none() {
	if [ ! -s "$found" ]; then
		ktap_pass "$1"
	else
		ktap_fail "$1" "$(cat "$found")"
	fi
}
