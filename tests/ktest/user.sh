#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# A user without privileges, with Debian's limit of locked memory (8 MiB): pingpongs, perftest and
# rdma_cm run for him as they do for root, and what goes beyond the limit is refused.
. "${0%/*}/env.sh"

[ -n "$(command -v setpriv)" ] || ktap_skip_all "no setpriv"
rdma_setup
n=20
user="prlimit --memlock=$((8 << 20)) setpriv --reuid=nobody --regid=nogroup --clear-groups --bounding-set=-all"

# as udev leaves them with rdma-core's rules, and devtmpfs without
for node in /dev/infiniband/uverbs* /dev/infiniband/rdma_cm; do
	check_eq "$node: for everybody" "$(stat -c %a $node)" 666
done
check_eq "the user has no capabilities" "$($user sed -n 's/^Cap[IPE].*:\t0*//p' /proc/self/status | tr -d '\n')" ""
check_eq "his limit, in KiB" "$($user sh -c 'ulimit -l')" 8192
check "ibv_devinfo -v" $user ibv_devinfo -v -d "$dev"

# as_user NAME WHERE SERVER CLIENT
as_user() {
	run_pair "user: $1" "$2" "$user $3" "$user $4"
}
tools="rc uc ud srq"
[ "$link_type" != uroce ] || tools="$tools xsrq"	# rdma_rxe has no XRC
for tool in $tools; do
	tool="ibv_${tool}_pingpong -d $dev -g $gid -n $n"
	as_user "$tool" tcp:18515 "$tool" "$tool $addr"
done
for tool in "ib_send_bw" "ib_write_bw" "ib_read_bw" "ib_atomic_bw" "ib_send_lat -c UD -s 1024" "ib_write_bw -q 8"; do
	tool="$tool -d $dev -x $gid -F -n $n"
	as_user "$tool" tcp:18515 "$tool" "$tool $addr"
done
as_user "rping" cm:7174 "rping -s -a $addr -C 5" "rping -c -a $addr -C 5 -V"
as_user "ucmatose" cm:7471 "ucmatose -b $addr -C 5" "ucmatose -s $addr -C 5"
as_user "udaddy" cm:7174 "udaddy -b $addr -C 5" "udaddy -s $addr -C 5"

# 16 MB are too many, and what was refused is not counted: the next 6 MB are not
check_fails "user: a region beyond the limit" "Couldn't register MR" \
	$user ibv_rc_pingpong -d "$dev" -g "$gid" -s 16000000
for round in 1 2; do
	tool="ibv_rc_pingpong -d $dev -g $gid -n 3 -s 3000000"
	as_user "3 MB for each end, time $round" tcp:18515 "$tool" "$tool $addr"
done

ktap_finish
