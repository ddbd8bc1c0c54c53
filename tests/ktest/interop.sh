#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# With another implementation of RoCE v2: rdma_rxe in init_net and the device under test in a
# namespace, in both roles, over IPv4 and IPv6.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

[ "$link_type" != rxe ] || ktap_skip_all "it is the other one here"
rc_need
netns_interop
gid6_a=$(wait_gid da $addr6_a)
gid6_b=$(wait_gid db $addr6_b)

# Left out is what rdma_rxe of 6.1 itself gets wrong, in either role:
# SGE and inline lists of ibv_wr_*, flags of SEND with invalidate, extended CQs with timestamps;
not_rxe='CqExtended.*:*RandomScatterLists*WrApi:*DataInline*WrApi:*UdData.Inline*WrApi'
# as requester: it hangs when a READ is refused halfway, it posts no unaligned atomics, bad keys
# of its own are LOC_QP_OP_ERR, and it sends privileged Q_Keys as they are;
not_rxe_req='ErrorRace.*:*/Unaligned*:*FromUnknownLkey:*FromOtherPd:*PrivilegedQkeyOfAWr*'
# as responder: it falls silent when a region goes away under a READ, says "remote operation" for a
# receive that is too short and LOC_QP_OP_ERR for one with a bad key, or of an SRQ for a datagram;
# ibv_start_poll on an empty CQ succeeds.
not_rxe_resp='DataInvalidate.*:*SendInv*:Srq.Datagrams:ErrorRace.*:*/Send*Receive*:ErrorRecv.*:CompletionExtended.*'
# where it is slow, packets of UC come faster than it works, and it drops them
[ "$time_scale" = 1 ] || not_rxe_resp="$not_rxe_resp:*LargeMessages/Uc*"

tests='*Data*:Completion?*.*:*OrderOfMixed*:*Signal*:*SigAll*:*ReceivesAlways*:Event.*:Atomic.*:Reset.Reuse'
tests="$tests:Timer.RnrWait*:*Error.WorkBeforeItSucceeds*:ErrorRecv.*:ErrorRetry.*:ErrorRace.*"
rxe_to_us="--dev da --gid-index $gid_a --peer-dev db --peer-gid-index $gid_b"
us_to_rxe="--dev db --gid-index $gid_b --peer-dev da --peer-gid-index $gid_a"
rc_run "rxe to us" "$tests-$not_rxe:$not_rxe_req" "$rxe_to_us"
rc_run "us to rxe" "$tests-$not_rxe:$not_rxe_resp" "$us_to_rxe"
# errors that the responder reports: ours has the asynchronous events
rc_run "rxe to us, errors" "*Error.Status*-$not_rxe_req" "$rxe_to_us"
rc_run "rxe to us, IPv6" "*Data*:Atomic.*:Event.*:ErrorRecv.*-$not_rxe:$not_rxe_req" \
	"--dev da --gid-index $gid6_a --peer-dev db --peer-gid-index $gid6_b"
rc_run "us to rxe, IPv6" "*Data*:Atomic.*:Event.*-$not_rxe:$not_rxe_resp" \
	"--dev db --gid-index $gid6_b --peer-dev da --peer-gid-index $gid6_a"

# programs of others, server and client in turn; run_pair's server runs on side a. rc_pingpong's
# server listens on IPv4 only, the GIDs decide what the packets are.
for round in "rxe us $addr_a $addr6_a da:$gid_a:$gid6_a db:$gid_b:$gid6_b" \
	     "us rxe $addr_b $addr6_b db:$gid_b:$gid6_b da:$gid_a:$gid6_a"; do
	# shellcheck disable=SC2086
	set -- $round
	name="$1 serves $2"
	[ "$1" = rxe ] && side_a= side_b="ip netns exec b" || side_a="ip netns exec b" side_b=
	sdev=${5%%:*} cdev=${6%%:*}
	sgid=${5#*:} cgid=${6#*:}
	for family in 4 6; do
		[ $family = 4 ] && { addr=$3; sg=${sgid%:*}; cg=${cgid%:*}; } || { addr=$4; sg=${sgid#*:}; cg=${cgid#*:}; }
		for size in 1 4096 100000; do
			run_pair "$name, IPv$family: rc_pingpong of $size bytes" tcp:18515 \
				"ibv_rc_pingpong -d $sdev -g $sg -n 100 -s $size -m 1024 -c" \
				"ibv_rc_pingpong -d $cdev -g $cg -n 100 -s $size -m 1024 -c $3"
			check_no_file "$name, IPv$family: data of $size bytes" "invalid data" "$tmp/server.out"
		done
		run_pair "$name, IPv$family: rping" cm:7174 "rping -s -a $addr -C 10 -S 5000 -v" \
			"rping -c -a $addr -C 10 -S 5000 -v -V"
		check_no_file "$name, IPv$family: rping's data" "mismatch" "$tmp/client.out"
		run_pair "$name, IPv$family: ucmatose" cm:7471 "ucmatose -b $addr -c 3 -C 5 -S 5000" \
			"ucmatose -s $addr -c 3 -C 5 -S 5000"
		run_pair "$name, IPv$family: rdma_server" cm:7471 "rdma_server -s $addr" "rdma_client -s $addr"
		[ "$time_scale" = 1 ] || [ $family = 4 ] || continue	# a slow kernel
		for tool in ib_send_bw ib_write_bw ib_read_bw ib_atomic_bw ib_send_lat ib_write_lat; do
			run_pair "$name, IPv$family: $tool" tcp:18515 "$tool -d $sdev -x $sg -F -n 20 -m 1024" \
				"$tool -d $cdev -x $cg -F -n 20 -m 1024 $3"
		done
	done
done
side_a= side_b="ip netns exec b"

ktap_finish
