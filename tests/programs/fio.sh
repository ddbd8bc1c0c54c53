#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# fio's rdma engine between two jobs: WRITE and READ, and SEND with a checksum in each block that the
# receiver looks at. (The engine has nobody who could look at what is written or read.)
#
# The engine asks for no retries after an RNR NAK, so each block needs its receive beforehand: as many
# as there are blocks, and the sender waits half a second for them. Where that was too short it says
# so, and has another try.
. "${0%/*}/../ktest/env.sh"

[ -n "$(command -v fio)" ] || ktap_skip_all "no fio: apt-get install fio"
rdma_setup

# job server|client OPTION...
job() {
	local name=$1
	shift
	{
		printf '%s\n' "[$name]" ioengine=rdma port=7000 bs=64k "$@"
		# the job that reads listens, whatever the verb is
		[ "$name" = server ] && echo rw=read || printf '%s\n' rw=write "hostname=$addr"
	} >"$tmp/$name.fio"
}

for verb in write read; do
	job server size=8m iodepth=16
	job client size=8m iodepth=4 verb=$verb
	run_pair "fio $verb" cm:7000 "fio $tmp/server.fio" "fio $tmp/client.fio" &&
		check_file "fio $verb: no error" "err= 0" "$tmp/client.out"
done

# send: both jobs; the ends' statuses in crc and src
send() {
	local try
	for try in 1 2 3 4 5; do
		crc=0 src=0
		start_server server fio "$tmp/server.fio"
		wait_listen cm:7000
		timeout -k 5 $((60 * time_scale)) fio "$tmp/client.fio" >"$tmp/client.out" 2>&1 || crc=$?
		grep -q "RNR retry" "$tmp/client.out" || break
		ktap_note "try $try: the receives came too late"
		stop_server server
	done
	wait_server server 20 || src=$?
}

for depth in 4 32; do
	job server size=2m iodepth=32 verify=crc32c verify_fatal=1 do_verify=1
	job client size=2m iodepth=$depth verify=crc32c do_verify=0 verb=send
	send
	check_eq "fio send, $depth at a time: sender" $crc 0 || ktap_note "$(tail -n 20 "$tmp/client.out")"
	check_eq "fio send, $depth at a time: receiver and its checksums" $src 0 ||
		ktap_note "$(tail -n 20 "$tmp/server.out")"
	check_file "fio send, $depth at a time: each block" "issued rwts: total=32,0,0,0" "$tmp/server.out"
done
# without checksums in the blocks: does the receiver look?
job client size=2m iodepth=4 verb=send
send
check_num "fio send, no checksums: the receiver complains" $src -ne 0
check_file "fio send, no checksums: of them" "verify: bad" "$tmp/server.out"

ktap_finish
