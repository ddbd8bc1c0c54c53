#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Completion queues: other sizes, moderated events, overflow, extended CQs and their timestamps.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

rc_everywhere 'Cq*'

ktap_finish
