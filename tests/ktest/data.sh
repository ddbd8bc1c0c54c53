#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Every RC operation moves exactly the bytes it names: lengths, scatter lists, inline, addresses.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

rc_everywhere '*Data*'

ktap_finish
