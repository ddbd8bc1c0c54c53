#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The QP state machine: transitions, attributes and their bounds, posting in each state.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

rc_everywhere 'State*:*/State*'

ktap_finish
