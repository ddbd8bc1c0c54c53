#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# NFS over RDMA, server and client in this kernel: a tree copied both ways with checksums, and fio with
# a checksum in each block.
. "${0%/*}/../ktest/env.sh"

modprobe rpcrdma 2>/dev/null || ktap_skip_all "no module rpcrdma"
modprobe nfsd 2>/dev/null || ktap_skip_all "no module nfsd"
for program in rpc.nfsd rpc.mountd exportfs mount.nfs fio; do
	[ -n "$(command -v $program)" ] || ktap_skip_all "no $program: apt-get install nfs-kernel-server nfs-common fio"
done
rdma_setup

served=$tmp/served
mounted=$tmp/mounted
mkdir -p "$served" "$mounted"
check "memory to serve" mount -t tmpfs -o size=256m none "$served"
at_end "umount $served"
mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
mkdir -p /var/lib/nfs/rpc_pipefs /var/lib/nfs/v4recovery /run/rpcbind
touch /var/lib/nfs/etab /var/lib/nfs/rmtab

nfs_down() {
	rpc.nfsd 0
	exportfs -ua
}
check "export" exportfs -o rw,no_root_squash,fsid=0,insecure "*:$served"
at_end nfs_down
# answers the kernel's questions about exports
start_server mountd rpc.mountd -F -N 2 -N 3
check "server" rpc.nfsd --no-udp --rdma=20049 -N 3 2
check "mount over RDMA" timeout $((60 * time_scale)) mount -t nfs \
	-o proto=rdma,port=20049,vers=4.2,sec=sys,soft,timeo=600 "$addr:/" "$mounted" || ktap_finish
at_end "timeout 60 umount -f $mounted"
check_file "it is RDMA" "$mounted .*proto=rdma" /proc/mounts

sums() {
	(cd "$1" && find . -type f -exec sha256sum {} + | sort -k 2)
}
mkdir "$tmp/tree"
i=0
while [ $i -lt 40 ]; do
	mkdir -p "$tmp/tree/$((i % 7))"
	head -c $((i * i * 700 + i)) /dev/urandom >"$tmp/tree/$((i % 7))/$i"
	i=$((i + 1))
done
sums "$tmp/tree" >"$tmp/sums"
check "tree to the server" cp -r "$tmp/tree" "$mounted/"
check_eq "tree at the server" "$(sums "$served/tree")" "$(cat "$tmp/sums")"
# read by the wire, not from the client's cache
echo 3 >/proc/sys/vm/drop_caches
check "tree back" cp -r "$mounted/tree" "$tmp/back"
check_eq "tree come back" "$(sums "$tmp/back")" "$(cat "$tmp/sums")"

for bs in 4k 64k 1m; do
	check "fio, blocks of $bs" timeout $((200 * time_scale)) fio --name=verify --directory="$mounted" \
		--filename=verify --direct=1 --ioengine=psync --thread --rw=randwrite --bs=$bs --size=8m \
		--verify=crc32c --verify_fatal=1 --do_verify=1
done

# packets instead of the local path
echo off >"/sys/class/infiniband/$dev/local_path"
check "fio, packets" timeout $((200 * time_scale)) fio --name=verify --directory="$mounted" \
	--filename=verify --direct=1 --ioengine=psync --thread --rw=randwrite --bs=64k --size=4m \
	--verify=crc32c --verify_fatal=1 --do_verify=1
echo auto >"/sys/class/infiniband/$dev/local_path"

check "umount" timeout $((60 * time_scale)) umount "$mounted"
nfs_down
rdma_pooled_cqs_stay "$dev"

ktap_finish
