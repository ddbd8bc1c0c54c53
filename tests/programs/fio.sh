#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# fio's rdma engine: WRITE and READ between two jobs. Its SEND has no flow control and gives up
# after a few RNR NAKs, over rdma_rxe too.
. "${0%/*}/../ktest/env.sh"

[ -n "$(command -v fio)" ] || ktap_skip_all "no fio: apt-get install fio"
rdma_setup

# the job that reads listens, whatever the verb is
for verb in write read; do
	cat >"$tmp/server.fio" <<-EOF
	[server]
	ioengine=rdma
	port=7000
	bs=64k
	size=8m
	rw=read
	iodepth=16
	EOF
	cat >"$tmp/client.fio" <<-EOF
	[client]
	ioengine=rdma
	hostname=$addr
	port=7000
	verb=$verb
	bs=64k
	size=8m
	iodepth=4
	rw=write
	EOF
	run_pair "fio $verb" cm:7000 "fio $tmp/server.fio" "fio $tmp/client.fio" &&
		check_file "fio $verb: no error" "err= 0" "$tmp/client.out"
done

ktap_finish
