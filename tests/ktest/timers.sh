#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# RNR and acknowledgement timers are never early.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

rc_everywhere 'Timer.*'

ktap_finish
