#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Many connections at a time, by rdma_cm.
. "${0%/*}/../ktest/env.sh"

rdma_setup
pair_seconds=200

for count in 10 1000; do
	start_server server cmtime -b $addr
	check "cmtime, $count connections: server" wait_listen cm:7471
	check "cmtime, $count connections" timeout -k 5 $((200 * time_scale)) cmtime -s $addr -c $count
	stop_server server
done

ktap_finish
