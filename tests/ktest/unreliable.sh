#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# UC and UD: what is refused, what is dropped, and that neither ends a QP that did nothing wrong.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

rc_everywhere 'Uc*:Ud*:*/Ud*'

ktap_finish
