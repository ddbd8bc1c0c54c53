#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sizes from 0 to far too much, the edges of every field, unsupported kinds, destroying in the wrong
# order.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

rc_everywhere 'Limit*'
# 2 GiB are a matter of seconds on one device, and of minutes as packets
[ "$link_type" = rxe ] || rc_run "itself" 'LargestMessage.*' "--dev $dev --gid-index $gid"

ktap_finish
