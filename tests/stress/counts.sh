#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# As many objects of each kind as are advertised, and not one more. They go with their process, and all
# of them are there again for the next one.
. "${0%/*}/env.sh"

kinds="ProtectionDomains XrcDomains AddressHandles"
# a debug kernel needs more memory for them than its VM has
[ "${time_scale:-1}" != 1 ] || kinds="$kinds CompletionQueues SharedReceiveQueues XrcSharedReceiveQueues QueuePairs
	XrcTargets Windows Regions"

rdma_setup
for kind in $kinds; do
	start=$(now_ms)
	stress_run "itself" "Count.$kind" "--dev $dev --gid-index $gid"
	ktap_note "$kind, and their end: $(($(now_ms) - start)) ms"
	check "$kind: nothing left" wait_for $((60 * time_scale)) rdma_res_is "$dev" \
		"pd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0 srq 0"
done

ktap_finish
