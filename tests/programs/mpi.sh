#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Open MPI over UCX: NetPIPE with its check of the data, two and four ranks on one device.
. "${0%/*}/../ktest/env.sh"

for program in mpirun NPopenmpi; do
	[ -n "$(command -v $program)" ] || ktap_skip_all "no $program: apt-get install openmpi-bin netpipe-openmpi"
done
rdma_setup
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# mpi NAME RANKS TRANSPORT COMMAND...
mpi() {
	local name=$1 ranks=$2 transport=$3 before rc=0
	shift 3
	before=$(hw_counter "$dev" kicks)
	timeout -k 5 $((200 * time_scale)) mpirun -np "$ranks" --oversubscribe --mca btl '^openib,vader,tcp' \
		--mca pml ucx --mca osc ucx -x UCX_TLS="$transport,self" -x UCX_NET_DEVICES="$dev:1" \
		-x UCX_IB_GID_INDEX="$gid" "$@" >"$tmp/mpi.out" 2>&1 || rc=$?
	check_eq "$name: status" $rc 0 || tail -n 20 "$tmp/mpi.out" | sed 's/^/# /'
	check_num "$name: went through the device" $(($(hw_counter "$dev" kicks) - before)) -gt 10
}

# connected ones are wired up by datagrams
for transport in rc_verbs,ud_verbs ud_verbs; do
	mpi "NetPIPE, $transport" 2 $transport NPopenmpi -i -u 65536 -n 3 -o "$tmp/np.out"
	check_file "NetPIPE, $transport: data" "[Ii]ntegrity check passed" "$tmp/mpi.out"
done
mpi "ring of 4 ranks" 4 rc_verbs,ud_verbs /usr/bin/python3 -m mpi4py.bench ringtest -n 65536 -l 20
check_file "ring of 4 ranks: result" "time for 20 loops" "$tmp/mpi.out"

ktap_finish
