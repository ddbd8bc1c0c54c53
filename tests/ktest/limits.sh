#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sizes from 0 to far too much, unsupported kinds, destroying in the wrong order.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

rc_everywhere 'Limit*'

ktap_finish
