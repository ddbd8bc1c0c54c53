#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""kmod/icrc.c against scapy's ICRC (IPv4) and tests/wire/roce.py's (IPv4 and IPv6).

usage: icrc_scapy_test.py liburoce-leaf-plain.so
"""
import ctypes
import os
import random
import struct
import sys
import unittest
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "wire"))
import roce  # noqa: E402
from scapy.contrib.roce import BTH  # noqa: E402
from scapy.layers.inet import IP, UDP  # noqa: E402
from scapy.layers.inet6 import IPv6  # noqa: E402
from scapy.packet import Raw  # noqa: E402

leaf = None


def leaf_icrc(packet: bytes) -> bytes:
    """ICRC of an IP packet whose last four bytes are the place for it."""
    version = packet[0] >> 4
    ip = 20 if version == 4 else 40
    head = ip + 20
    crc = leaf.uroce_icrc_start(packet, version, packet[ip:head]) & 0xffffffff
    # zlib inverts seed and result, crc32_le() does not
    crc = zlib.crc32(packet[head:-4], crc ^ 0xffffffff)
    return struct.pack("<I", crc)


def random_packet(rng, version, payload):
    ip = (IP(src="10.9.0.1", dst="10.9.0.2", tos=rng.randrange(256), ttl=rng.randrange(1, 256),
             id=rng.randrange(65536), flags="DF") if version == 4 else
          IPv6(src="fd09::1", dst="fd09::2", tc=rng.randrange(256), fl=rng.randrange(1 << 20),
               hlim=rng.randrange(1, 256)))
    pad = -payload % 4
    bth = BTH(opcode=4, padcount=pad, migreq=1, dqpn=rng.randrange(1 << 24),
              psn=rng.randrange(1 << 24), ackreq=rng.randrange(2), becn=rng.randrange(2), icrc=0)
    return ip / UDP(sport=rng.randrange(49152, 65536), dport=4791) / bth / Raw(rng.randbytes(payload) + bytes(pad))


class IcrcTest(unittest.TestCase):
    def test_every_payload_size_against_scapy(self):
        rng = random.Random(1)
        for payload in range(1, 600):
            packet = random_packet(rng, 4, payload)
            packet[BTH].icrc = None
            wire = bytes(packet)
            self.assertEqual(leaf_icrc(wire), wire[-4:], f"payload {payload}")

    def test_both_families(self):
        rng = random.Random(2)
        for version in (4, 6):
            for payload in list(range(1, 70)) + [255, 1023, 1024, 4093, 4096]:
                wire = bytes(random_packet(rng, version, payload))
                self.assertEqual(leaf_icrc(wire), roce.icrc(wire[:-4]),
                                 f"IPv{version} payload {payload}")


if __name__ == "__main__":
    leaf = ctypes.CDLL(sys.argv.pop(1))
    unittest.main()
