# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# For programs that run in both VMs of a pair at the same time (vm/run --pair). $VM_ROLE is a in
# the one at 10.0.0.1 and b in the one at 10.0.0.2; both see the folder $VM_OUT.

pair_addr_a=10.0.0.1
pair_addr_b=10.0.0.2

# pair_barrier NAME [SECONDS]: waits until the other side has come to the same barrier; a name
# serves once per program. 1 when the other side does not come.
pair_barrier() {
	local dir=$VM_OUT/barrier tries=$((${2:-60} * 10)) other=b
	[ "$VM_ROLE" = a ] || other=a
	mkdir -p "$dir"
	echo >"$dir/$1.$VM_ROLE"
	while [ ! -e "$dir/$1.$other" ]; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.1
	done
}
