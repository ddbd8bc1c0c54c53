#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shared receive queues: who gets what, the limit event, QPs that break, sizes.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

rc_everywhere '*Srq*' packets

ktap_finish
