#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The verbs as kernel consumers call them: the cases of tests/kverbs, a module that the host has built,
# on the local path and by packets; then devices, netdevs and modules that go under its traffic.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

ko=${KVERBS_KO:-${VM_TOP:-${0%/*}/../..}/build/kverbs-$(uname -r)/kverbs.ko}
files=/sys/kernel/debug/kverbs
limit=$((60 * time_scale))	# seconds, of what hangs

[ -e "$ko" ] || ktap_skip_all "no $ko: make kverbs"
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug || ktap_skip_all "no debugfs"

kverbs_load() {
	insmod "$ko" patience=$((30 * time_scale)) || ktap_bail "insmod $ko failed"
}
kverbs_unload() {
	[ ! -e /sys/module/kverbs ] || timeout $limit rmmod kverbs
}

# kverbs LABEL WHAT: has the module run the cases whose names have WHAT in them
kverbs() {
	tap_run "$1" 250 sh -c "echo >$files/results; echo $dev $gid $gid6 $2 >$files/run || exit 2; cat $files/results"
}

rdma_setup
at_end kverbs_unload
kverbs_load

for path in auto off; do
	case $path in auto) label=local ;; off) label=packets ;; esac
	[ "$link_type" != uroce ] || set_local_path "$dev" $path
	for suite in ops cqs frwr keys queues drain ud srq; do
		kverbs $label $suite.
	done
done
set_local_path "$dev" auto
check "rmmod kverbs" kverbs_unload
rdma_link_del "$dev"

# ---- what goes under traffic ----

netdev_gone() {
	! ip link show kv0
}
device_gone() {
	[ ! -e /sys/class/infiniband/$dev ]
}
module_gone() {
	[ ! -e /sys/module/"$1" ]
}

remove() {
	case $1 in
	link) timeout $limit rdma link del "$dev" ;;
	netdev) timeout $limit ip link del kv0 ;;
	driver) timeout $limit rmmod "$module" ;;
	client) timeout $limit rmmod kverbs ;;
	esac
}
removed() {
	case $1 in
	link) device_gone ;;
	netdev) device_gone && netdev_gone ;;
	driver) device_gone && module_gone "$module" ;;
	client) module_gone kverbs ;;
	esac
}

# round auto|off WHAT
round() {
	local name="$2 goes, local path $1"
	rdma_load
	ip link add kv0 type dummy && ip addr add 10.0.78.1/24 dev kv0 && ip link set kv0 mtu 4200 up ||
		ktap_bail "no dummy netdev"
	rdma link add "$dev" type "$link_type" netdev kv0 || ktap_bail "no device on kv0"
	set_local_path "$dev" "$1"
	gid=$(wait_gid "$dev" 10.0.78.1) || ktap_bail "no GID on kv0"
	gid6=0
	res=$(rdma_res "$dev")
	kverbs_load
	kverbs "$name" traffic
	# of what is done by the removal itself
	echo >$files/results
	check "$name: the command" remove "$2"
	check "$name: it has gone" wait_for $limit removed "$2"
	if [ "$2" = client ]; then
		# its results are gone; it has warned in the kernel log if there was anything to say
		check "$name: nothing left" wait_for $limit rdma_res_is "$dev" "$res"
	else
		tap_run "$name" 60 cat $files/results
		check_eq "$name: all pairs have ended" "$(grep -c '^ok' $files/results)" 6
		grep '^# pair' $files/results
		check "$name: rmmod kverbs" kverbs_unload
	fi
	[ ! -e /sys/class/infiniband/"$dev" ] || check "$name: rdma link del" timeout $limit rdma link del "$dev"
	netdev_gone >/dev/null 2>&1 || ip link del kv0
	[ ! -e /sys/module/"$module" ] || check "$name: rmmod $module" timeout $limit rmmod "$module"
}
for path in auto off; do
	for how in link netdev driver client; do
		round $path $how
	done
done

ktap_finish
