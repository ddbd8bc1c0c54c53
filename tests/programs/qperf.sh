#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# qperf's tests of RC queue pairs, by rdma_cm; two of them check what atomics return. Left out, over
# rdma_rxe too:
#   uc_*, ud_*  are connected by LID alone, whatever the options: no GID, so the kernel refuses the
#               address of any RoCE device (rc_* without -cm1 likewise)
#   xrc_*       are not in Debian's qperf, though in its help: they want an API of XRC that never came
. "${0%/*}/../ktest/env.sh"

[ -n "$(command -v qperf)" ] || ktap_skip_all "no qperf: apt-get install qperf"
rdma_setup

# its children crash when they are done, over rdma_rxe too: no lines in the log for that
echo 0 >/proc/sys/debug/exception-trace
at_end "echo 1 >/proc/sys/debug/exception-trace"
start_server server qperf
check "server" wait_listen tcp:19765 || ktap_finish

for test in rc_lat rc_bw rc_bi_bw rc_rdma_read_lat rc_rdma_read_bw rc_rdma_write_lat rc_rdma_write_bw \
	rc_rdma_write_poll_lat rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add; do
	check "$test" timeout -k 5 $((60 * time_scale)) qperf "$addr" -cm1 -t 1 -m 4K $test
done
qperf "$addr" quit >/dev/null 2>&1

ktap_finish
