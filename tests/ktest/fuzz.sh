#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Random packets, every opcode with every small length among them: none is lost to the counters,
# nothing breaks.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

wire_setup
wire_run IPv4 fuzz fuzz.py
wire_run IPv6 fuzz fuzz.py

ktap_finish
