#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Sends good datagrams for QP 1 of an IPv6 address until stdin is readable, then says how many.

IPv6 because an ordinary socket makes them: in IPv4 headers it chooses the identification, which
the ICRC covers.

usage: qp1_flood.py OWN-ADDRESS ADDRESS
"""
import select
import socket
import sys

import roce

own, address = sys.argv[1:]
out = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
out.bind((own, 0))
# a MAD of zeroes: the MAD layer drops it
payload = roce.bth(roce.OP["UD_SEND_ONLY"], 1, 0) + roce.deth(0x80010000, 1) + bytes(256)
packet = roce.build(own, address, payload, sport=out.getsockname()[1])
body = packet[48:]
sent = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(64):
        try:
            out.sendto(body, (address, roce.PORT))
            sent += 1
        except OSError:  # nobody listens while there is no device
            pass
print(sent)
