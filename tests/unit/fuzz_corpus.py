#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Writes the seed inputs of fuzz_parse: one packet for every known opcode.

usage: fuzz_corpus.py FOLDER
"""
import os
import sys

HEADERS = {  # bytes behind the BTH, without payload
    0x00: 0, 0x03: 4, 0x06: 16, 0x0b: 20, 0x0c: 16, 0x0d: 4, 0x11: 4, 0x12: 12, 0x13: 28,
    0x14: 28, 0x17: 4, 0x24: 0, 0x64: 8, 0x65: 12, 0x81: 16, 0xff: 0,
}

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
for opcode, extra in HEADERS.items():
    for payload in (0, 1, 8):
        pad = -payload % 4
        bth = bytes([opcode, 0x40 | pad << 4, 0xff, 0xff, 0, 0, 0, 17, 0x80, 0xff, 0xff, 0xf0])
        body = bytes(range(extra)) + bytes(payload + pad) + b"icrc"
        with open(os.path.join(folder, f"op{opcode:02x}-{payload}"), "wb") as f:
            f.write(b"\0" + bth + body)
