#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Single packets to a live QP, and single answers to a QP that sends: what must be refused is
# refused with the right NAK or dropped and counted. IBTA chapter 9.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

wire_setup
wire_run IPv4 responder protocol_test.py
wire_run IPv4 requester requester_test.py
wire_run IPv6 responder protocol_test.py
wire_run IPv6 requester requester_test.py
for service in uc ud; do
	wire_run IPv4 $service unreliable_test.py --service $service
	wire_run IPv6 $service unreliable_test.py --service $service
done

ktap_finish
