#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# XRC: who receives what, whose keys are good, shared domains and targets, errors.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

rc_everywhere '*Xrc*' packets

ktap_finish
