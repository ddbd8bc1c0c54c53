#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Passes, but leaves an RDMA device behind.
. "${0%/*}/../../lib/ktap.sh"
check "link" rdma link add left0 type rxe netdev eth0
ktap_finish
