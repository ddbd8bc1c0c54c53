# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# First line of every test of this folder: `. "${0%/*}/env.sh"`. Finds the helpers, which lie
# beside this folder in the repository and inside it after kselftest's `make install`.
for lib in "${0%/*}/../lib" "${0%/*}/lib"; do
	if [ -e "$lib/ktap.sh" ]; then
		. "$lib/ktap.sh"
		. "$lib/rdma.sh"
		. "$lib/netns.sh"
		break
	fi
done
[ "$(id -u)" = 0 ] || ktap_skip_all "needs root"
