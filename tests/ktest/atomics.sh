#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Atomics execute exactly once, several QPs and threads at a time; ATOMIC WRITEs are whole.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

rc_everywhere 'Atomic*'

ktap_finish
