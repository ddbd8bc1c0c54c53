#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Kernel consumers: NVMe over RDMA, host and target on one device. The host registers its memory with
# fast-register regions and invalidates them, by itself or by the target's SEND with invalidate.
. "${0%/*}/env.sh"

nqn=uroce-test
port=/sys/kernel/config/nvmet/ports/1
subsystem=/sys/kernel/config/nvmet/subsystems/$nqn

for module in null_blk nvmet-rdma nvme-rdma; do
	case $module in null_blk) options="nr_devices=0" ;; *) options= ;; esac
	# shellcheck disable=SC2086
	modprobe $module $options || ktap_skip_all "no module $module"
done
[ -n "$(command -v fio)" ] || ktap_skip_all "no fio: apt-get install fio"
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config ||
	ktap_skip_all "no configfs"
rdma_setup

null_blk_add() {
	mkdir /sys/kernel/config/nullb/uroce-null &&
		echo 128 >/sys/kernel/config/nullb/uroce-null/size &&
		echo 1 >/sys/kernel/config/nullb/uroce-null/memory_backed &&
		echo 1 >/sys/kernel/config/nullb/uroce-null/power
}
null_blk_del() {
	rmdir /sys/kernel/config/nullb/uroce-null
}

target_add() {
	mkdir "$subsystem" "$port" &&
		echo 1 >"$subsystem/attr_allow_any_host" &&
		mkdir "$subsystem/namespaces/1" &&
		echo /dev/uroce-null >"$subsystem/namespaces/1/device_path" &&
		echo 1 >"$subsystem/namespaces/1/enable" &&
		echo rdma >"$port/addr_trtype" && echo ipv4 >"$port/addr_adrfam" &&
		echo "$addr" >"$port/addr_traddr" && echo 4420 >"$port/addr_trsvcid" &&
		ln -s "$subsystem" "$port/subsystems/$nqn"
}
target_del() {
	rm -f "$port/subsystems/$nqn"
	[ ! -d "$port" ] || rmdir "$port"
	[ ! -d "$subsystem" ] || { rmdir "$subsystem"/namespaces/* && rmdir "$subsystem"; }
}

# The controller's folder in sysfs, and its block device.
controller() {
	grep -ls "^$nqn\$" /sys/class/nvme/nvme*/subsysnqn | head -n 1 | sed 's,/subsysnqn,,'
}
controller_is() {
	[ "$(cat "$(controller)/state")" = "$1" ]
}
block_device() {
	local name
	# with multipath the namespace hangs below the subsystem, without it below the controller
	name=$(ls -d "$(controller)"/nvme*n1 /sys/class/nvme-subsystem/*/nvme*n1 2>/dev/null | head -n 1)
	name=$(echo "${name##*/}" | sed 's/c[0-9]*n/n/')
	[ -n "$name" ] && [ -b "/dev/$name" ] && echo "/dev/$name"
}

# host_add [OPTION]: connects, waits for the block device, and names it in $disk.
host_add() {
	echo "transport=rdma,traddr=$addr,trsvcid=4420,nqn=$nqn,nr_io_queues=2,reconnect_delay=1,ctrl_loss_tmo=60${1-}" \
		>/dev/nvme-fabrics || return 1
	wait_for $((20 * time_scale)) block_device && disk=$(block_device)
}
host_del() {
	local c
	c=$(controller)
	[ -z "$c" ] || timeout $((60 * time_scale)) sh -c "echo 1 >$c/delete_controller"
}

# verify NAME OPTION...: writes and checks a crc32c in every block.
verify() {
	local name=$1
	shift
	check "$name" timeout $((200 * time_scale)) fio --name=verify --filename="$disk" --direct=1 --ioengine=psync \
		--thread --verify=crc32c --verify_fatal=1 --do_verify=1 --group_reporting "$@"
}

check "a null_blk with memory" null_blk_add
at_end null_blk_del
check "target" target_add
at_end target_del
check "host connects" host_add || ktap_finish
at_end host_del

verify "4 KiB blocks" --rw=randwrite --bs=4k --size=4m
verify "blocks of all sizes" --rw=randwrite --bsrange=512-256k --blockalign=512 --size=16m
verify "four at a time" --rw=randwrite --bs=64k --size=4m --numjobs=4 --offset_increment=8m

# packets instead of the local path
echo off >"/sys/class/infiniband/$dev/local_path"
verify "packets, 4 KiB blocks" --rw=randwrite --bs=4k --size=2m
verify "packets, 128 KiB blocks" --rw=randwrite --bs=128k --size=8m
echo auto >"/sys/class/infiniband/$dev/local_path"

# the controller comes back
check "reset of the controller" timeout $((60 * time_scale)) sh -c "echo 1 >$(controller)/reset_controller"
check "reset: live again" wait_for $((20 * time_scale)) controller_is live
verify "after the reset" --rw=randwrite --bs=16k --size=4m

# the target goes under I/O and comes again: the host waits and goes on
fio --name=bg --filename="$disk" --direct=1 --ioengine=psync --thread --rw=randwrite --bs=16k --size=16m \
	--verify=crc32c --do_verify=1 --verify_fatal=1 >"$tmp/fio.out" 2>&1 &
fio_pid=$!
wait_for $((10 * time_scale)) sh -c "[ \$(awk '{ print \$5 }' /sys/block/${disk##*/}/stat) -gt 20 ]"
rm "$port/subsystems/$nqn"
check "target gone: the host notices" wait_for $((20 * time_scale)) controller_is connecting
check "target back" ln -s "$subsystem" "$port/subsystems/$nqn"
check "target back: live again" wait_for $((40 * time_scale)) controller_is live
if wait_for $((120 * time_scale)) sh -c "! kill -0 $fio_pid 2>/dev/null" && wait $fio_pid; then
	ktap_pass "I/O across the loss of the target"
else
	kill $fio_pid 2>/dev/null
	ktap_fail "I/O across the loss of the target" "$(tail -n 20 "$tmp/fio.out")"
fi

check "disconnect" host_del
check "disconnect: the controller is gone" wait_for $((20 * time_scale)) sh -c \
	"! grep -qs '^$nqn\$' /sys/class/nvme/nvme*/subsysnqn"
check "reconnect" host_add
verify "after the reconnect" --rw=randwrite --bs=16k --size=2m

host_del
target_del
rdma_pooled_cqs_stay "$dev"

# a target that takes its requests from shared receive queues
check "nvmet-rdma with SRQs" sh -c "modprobe -r nvmet-rdma && modprobe nvmet-rdma use_srq=1 srq_size=256"
check "SRQ: target" target_add
check "SRQ: host connects" host_add
check "SRQ: there is one" sh -c "rdma resource show $dev | grep -q 'srq [1-9]'"
verify "SRQ: 4 KiB blocks" --rw=randwrite --bs=4k --size=4m
verify "SRQ: four at a time" --rw=randwrite --bsrange=512-64k --blockalign=512 --size=4m --numjobs=4 --offset_increment=8m
host_del
target_del
rdma_pooled_cqs_stay "$dev"

ktap_finish
