#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Requests that must fail: status at both ends, flushes, states, asynchronous events.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

rc_everywhere '*Error*:Flush.*:Reset.*:Destroy.*'

ktap_finish
