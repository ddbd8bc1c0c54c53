#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Completions and their events: number, order, fields, signalling, fences.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

# how often a receiver waits for an event, at each of the places
export rc_test_rounds="${rounds:-2000}"

rc_everywhere '*Completion*:Event.*'

ktap_finish
