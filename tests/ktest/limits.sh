#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sizes from 0 to far too much, the edges of every field, unsupported kinds, destroying in the wrong
# order.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

rc_everywhere 'Limit*'
# 2 GiB are a matter of seconds on one device, on a busy machine of half a minute, and of minutes as packets
export rc_test_patience=60
[ "$link_type" = rxe ] || rc_run "itself" 'LargestMessage.*' "--dev $dev --gid-index $gid"

ktap_finish
