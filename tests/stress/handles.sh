#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Uverbs commands with everything wrong: handles of others, values, driver data, answers to nowhere; and on a
# device that has gone.
. "${0%/*}/env.sh"

rdma_setup
stress_run "itself" 'HandleTest.*:Busy.*:DriverData.*:Handshake.*:Value.*' "--dev $dev --gid-index $gid"

# what was refused is not counted, and nothing is left
check_eq "nothing is left" "$(rdma_res $dev)" "pd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0 srq 0"

stress_run "the device goes" 'Gone.*' "--dev $dev --gid-index $gid"
check "it has gone" test ! -e "/sys/class/infiniband/$dev"

ktap_finish
