#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# mmap and the kick ioctl with everything wrong, racing destruction, and across fork.
. "${0%/*}/env.sh"

rdma_setup
stress_run "itself" 'MapTest.*:Kick.*' "--dev $dev --gid-index $gid"

ktap_finish
