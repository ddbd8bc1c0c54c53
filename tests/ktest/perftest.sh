#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The perftest programs, one device with itself: every operation and transport, sizes around the
# MTU, polled and by events, connected over TCP and by rdma_cm. Their numbers are not looked at
# (under software emulation they may be inf or nan); that every row is there is.
. "${0%/*}/env.sh"

# perf TOOL ROWS OPTIONS...: both ends must exit 0, the client must print ROWS result rows.
perf() {
	local tool=$1 rows=$2 where=tcp:18515
	shift 2
	case " $* " in *" -R "*) where=cm:18515 ;; esac
	run_pair "$tool $*" "$where" "$tool -d $dev -x $gid -F $*" "$tool -d $dev -x $gid -F $* $addr" ||
		return
	check_eq "$tool $*: rows" "$(grep -cE '^ *[0-9]+ +[0-9]+ +' "$tmp/client.out")" "$rows"
	check_no_file "$tool $*: no error" "[Ee]rror|[Ff]ailed|[Uu]nable|Couldn" "$tmp/client.out"
}

rdma_setup
n=20
[ "$time_scale" = 1 ] || n=5		# a slow kernel: the same cases, fewer iterations
for op in ib_send ib_write ib_read ib_atomic; do
	perf ${op}_lat 1 -n $n
	perf ${op}_bw 1 -n $n
done
for size in 2 1023 1024 1025 65536 1048576; do
	for op in ib_send ib_write ib_read; do
		perf ${op}_bw 1 -m 1024 -s $size -n $((size > 100000 ? 5 : n))
	done
done
[ "$time_scale" != 1 ] || for op in ib_send ib_write ib_read; do
	perf ${op}_bw 23 -a -n 5
done
for op in ib_send ib_write; do
	perf ${op}_lat 1 -c UC -n $n
	perf ${op}_bw 1 -c UC -n $n -s 8192
done
perf ib_send_bw 1 -c UD -n $n -s 1024
perf ib_send_bw 1 -c UD -n $n -s 1024 -q 4
perf ib_send_bw 1 -c UD -n $n -s 1024 -e
perf ib_send_lat 1 -c UD -n $n -s 512
perf ib_send_bw 1 --use-srq -n $n
perf ib_send_bw 1 --use-srq -q 4 -n $n -s 8192
perf ib_send_bw 1 --use-srq -c UD -n $n -s 1024
perf ib_send_lat 1 --use-srq -n $n
if [ "$link_type" = uroce ]; then	# rdma_rxe has no XRC
	for op in ib_send ib_write ib_read ib_atomic; do
		perf ${op}_bw 1 -c XRC -n $n
	done
	perf ib_send_lat 1 -c XRC -n $n
fi
for op in ib_send ib_write ib_read ib_atomic; do
	perf ${op}_lat 1 -R -n $n
	[ $op != ib_write ] || continue	# the tool has no events there
	perf ${op}_bw 1 -e -n $n
	perf ${op}_lat 1 -e -n $n
done
perf ib_atomic_bw 1 -A CMP_AND_SWAP -n $n
perf ib_write_bw 1 -q 16 -n $n
perf ib_read_bw 1 -q 16 -n $n -s 4096
perf ib_atomic_bw 1 -q 16 -n $n
perf ib_send_bw 1 -q 16 -n $n -s 4096
perf ib_write_bw 1 -b -n $n
perf ib_write_bw 1 -Q 10 -n 40
perf ib_send_bw 1 -c UD -g -n $n -s 1024 -x "$gid6"
[ "$link_type" != uroce ] || for op in ib_send ib_write ib_read; do	# rdma_rxe of 6.1 has no ODP
	perf ${op}_bw 1 --odp -n $n
	perf ${op}_lat 1 --odp -n $n
done
perf ib_write_bw 1 -l 16 -n 32
perf ib_write_lat 1 -I 64 -s 64 -n $n
for op in ib_send ib_write ib_read ib_atomic; do
	perf ${op}_bw 1 -R -n $n
done

ktap_finish
