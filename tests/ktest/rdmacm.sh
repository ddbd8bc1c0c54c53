#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Connections by rdma_cm with the programs of rdmacm-utils, one device with itself. Sockets over RDMA
# are in programs/rsockets.sh, cmtime in programs/storms.sh, mckey in mcast.sh. Left out: ucmatose and
# udaddy with `-f gid` and udaddy with `-P ipoib`, which the kernel's CM has for InfiniBand only.
. "${0%/*}/env.sh"

rdma_setup
count=10

# rping checks the data it gets back with -V; 100 bytes fit a packet, 60000 take many
for size in 100 60000; do
	run_pair "rping, $size bytes" cm:7174 "rping -s -a $addr -C $count -S $size -v" \
		"rping -c -a $addr -C $count -S $size -v -V" &&
		check_eq "rping, $size bytes: pings at the server" "$(grep -c 'ping data' "$tmp/server.out")" $count
	check_no_file "rping, $size bytes: data" "mismatch" "$tmp/client.out"
done
run_pair "rping over IPv6" cm:7174 "rping -s -a $addr6 -C $count" "rping -c -a $addr6 -C $count -V"

run_pair "rping with a QP of its own" cm:7174 "rping -s -a $addr -C $count -q" "rping -c -a $addr -C $count -q -V"
run_pair "rping, port and source named" cm:7999 "rping -s -a $addr -p 7999 -C $count" \
	"rping -c -a $addr -p 7999 -I $addr -C $count -V"
start_server server stdbuf -oL rping -s -P -a "$addr" -v
check "rping -P: listens" wait_listen cm:7174
for i in 1 2 3; do
	check "rping -P: client $i" timeout -k 5 $((60 * time_scale)) rping -c -a "$addr" -C $count -V
done
check_eq "rping -P: pings at the server" "$(grep -c 'ping data' "$tmp/server.out")" $((3 * count))
stop_server server

run_pair "ucmatose, 10 connections" cm:7471 "ucmatose -b $addr -c 10 -C 10 -S 2000" \
	"ucmatose -s $addr -c 10 -C 10 -S 2000" &&
	check_file "ucmatose: all of it" "return status 0" "$tmp/client.out"
for options in "-P ib" "-t 8" "-a 18" "-m"; do
	run_pair "ucmatose $options" cm:7471 "ucmatose -b $addr -c 2 -C 5 $options" "ucmatose -s $addr -c 2 -C 5 $options" &&
		check_file "ucmatose $options: all of it" "return status 0" "$tmp/client.out"
done
run_pair "ucmatose over IPv6" cm:7471 "ucmatose -b $addr6 -f ipv6 -C 5" "ucmatose -s $addr6 -f ipv6 -C 5" &&
	check_file "ucmatose over IPv6: all of it" "return status 0" "$tmp/client.out"
run_pair "udaddy" cm:7174 "udaddy -b $addr -c 4 -C 10 -S 500" "udaddy -s $addr -c 4 -C 10 -S 500" &&
	check_file "udaddy: all of it" "return status 0" "$tmp/client.out"
run_pair "udaddy over IPv6" cm:7174 "udaddy -b $addr6 -C 10" "udaddy -s $addr6 -C 10" &&
	check_file "udaddy over IPv6: all of it" "return status 0" "$tmp/client.out"
for address in $addr $addr6; do
	run_pair "rdma_client to $address" cm:7471 "rdma_server -s $address" "rdma_client -s $address" &&
		check_file "rdma_client to $address: all of it" "rdma_client: end 0" "$tmp/client.out"
done
for service in r x; do	# RC, XRC
	[ $service = r ] || [ "$link_type" = uroce ] || continue	# rdma_rxe has no XRC
	run_pair "rdma_xclient -c $service" cm:7471 "rdma_xserver -c $service" "rdma_xclient -s $addr -c $service" || continue
	check_file "rdma_xclient -c $service: all of it" "rdma_xclient: end 0" "$tmp/client.out"
	check_file "rdma_xserver -c $service: all of it" "rdma_xserver: end 0" "$tmp/server.out"
done

# the first program of the README
first_program=${VM_TOP:-${0%/*}/../..}/build/verbs/first-program
if [ -x "$first_program" ]; then
	run_pair "docs/first-program.cpp" cm:4790 "$first_program" "$first_program $addr hello" &&
		check_file "docs/first-program.cpp: what was written" "received: hello" "$tmp/server.out"
else
	ktap_skip "docs/first-program.cpp" "not built, see tests/verbs/CMakeLists.txt"
fi

# processes cannot take the last address handles from the CM
rc_test=${VM_TOP:-${0%/*}/../..}/build/verbs/rc-test
if [ -x "$rc_test" ] && [ "$link_type" = uroce ]; then
	rc_test_hoard=$tmp/hoard $rc_test --dev $dev --gid-index $gid --gtest_filter=Limit.HoardOfAhs >"$tmp/hoard.out" 2>&1 &
	hoard_pid=$!
	check "a process has all address handles" wait_for $((200 * time_scale)) test -e "$tmp/hoard"
	run_pair "rping meanwhile" cm:7174 "rping -s -a $addr -C 3" "rping -c -a $addr -C 3 -V"
	: >"$tmp/hoard.end"
	check "its end" wait $hoard_pid
	check_no_file "what it saw" "^not ok" "$tmp/hoard.out"
fi

# nobody listens: the client must be told, not hang
check_fails "rping without a server" "REJECTED|UNREACHABLE|CONNECT_ERROR|-?[0-9]+" \
	timeout 60 rping -c -a "$addr" -p 7999 -C 1

ktap_finish
