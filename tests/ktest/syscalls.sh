#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The data path and system calls: at most one for a posted list, none to receive or to poll.
# perftest's set-up makes many, so two runs of different length are compared: what the longer one
# makes more is the data path's.
. "${0%/*}/env.sh"

# multiples of the length of a posted list
short=160
long=5120
[ "$time_scale" = 1 ] || long=1600	# a slow kernel
more=$((long - short))
# What two runs may differ by otherwise: perftest's calibration of the clock reads /proc/cpuinfo
# and sleeps, more or less often. A call per message would be five times as many, or twice.
slack=1000
[ "$time_scale" = 1 ] || slack=700

# calls FILE: all system calls of an `strace -c` summary; calls FILE NAME: those of one name.
calls() {
	awk -v name="${2-total}" '$NF == name { print $4; found = 1 } END { if (!found) print 0 }' "$1"
}

# measure TOOL N OPTIONS...: writes $tmp/server.N and $tmp/client.N.
measure() {
	local tool=$1 n=$2
	shift 2
	run_pair "$tool -n $n $* under strace" tcp:18515 \
		"strace -f -c -o $tmp/server.$n $tool -d $dev -x $gid -F -s 64 -n $n $*" \
		"strace -f -c -o $tmp/client.$n $tool -d $dev -x $gid -F -s 64 -n $n $* $addr"
}

# compare SIDE TOOL MOST: the longer run of a side makes at most MOST more ioctls, and no more of
# anything else.
compare() {
	local ioctls=$(($(calls "$tmp/$1.$long" ioctl) - $(calls "$tmp/$1.$short" ioctl)))
	local all=$(($(calls "$tmp/$1.$long") - $(calls "$tmp/$1.$short")))
	ktap_note "$2, $1: $ioctls ioctls and $((all - ioctls)) other system calls for $more more messages"
	check_num "$2: ioctls of the $1" $ioctls -le "$3"
	check_num "$2: other system calls of the $1" $((all - ioctls)) -le $slack
}

command -v strace >/dev/null || ktap_skip_all "no strace"
rdma_setup

for tool in ib_write_bw ib_read_bw; do
	measure $tool $short && measure $tool $long || continue
	compare client $tool $more
	compare server $tool 0
done
measure ib_send_bw $short && measure ib_send_bw $long && {
	compare client ib_send_bw $more
	compare server ib_send_bw 0
}
measure ib_write_bw $short -l 16 && measure ib_write_bw $long -l 16 &&
	compare client "ib_write_bw -l 16" $((more / 16))

ktap_finish
