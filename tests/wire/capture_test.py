#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Checks every RoCE v2 packet of a capture of live traffic between two RC QPs.

usage: capture_test.py FILE.pcap PATH-MTU
"""
import collections
import subprocess
import sys

from scapy.utils import RawPcapReader

import roce
from peer import Got
from tap import check, check_eq, run

path, mtu = sys.argv[1], int(sys.argv[2])
HEADERS = {  # bytes between BTH and payload
    "SEND_LAST_IMM": 4, "SEND_ONLY_IMM": 4, "WRITE_FIRST": 16, "WRITE_ONLY": 16, "WRITE_ONLY_IMM": 20,
    "WRITE_LAST_IMM": 4, "READ_REQ": 16, "READ_RESP_FIRST": 4, "READ_RESP_LAST": 4, "READ_RESP_ONLY": 4,
    "ACK": 4, "ATOMIC_ACK": 12, "CMP_SWAP": 28, "FETCH_ADD": 28, "SEND_LAST_INV": 4, "SEND_ONLY_INV": 4,
}


def load():
    packets = []
    for frame, _ in RawPcapReader(path):
        family = frame[12:14]
        ip = frame[14:]
        if family == b"\x08\x00" and ip[9] == 17:
            packets.append(Got(ip[:int.from_bytes(ip[2:4], "big")]))
        elif family == b"\x86\xdd" and ip[6] == 17:
            packets.append(Got(ip[:40 + int.from_bytes(ip[4:6], "big")]))
    return [p for p in packets if p.dport == roce.PORT]


packets = load()


def each(test):
    def wrapped():
        for number, packet in enumerate(packets, 1):
            try:
                test(packet)
            except AssertionError as error:
                raise AssertionError(f"packet {number} {packet}: {error}") from error
    return wrapped


def there_are_enough():
    check(len(packets) > 200, len(packets), "packets")
    names = collections.Counter(p.name for p in packets)
    for name in ("SEND_ONLY", "SEND_FIRST", "SEND_LAST_IMM", "WRITE_FIRST", "WRITE_MIDDLE", "WRITE_LAST",
                 "WRITE_LAST_IMM", "READ_REQ", "READ_RESP_FIRST", "READ_RESP_LAST", "ACK", "FETCH_ADD", "CMP_SWAP",
                 "ATOMIC_ACK"):
        check(names[name], "no", name, "in", dict(names))


def icrc(p):
    check(p.icrc_good, "ICRC is", p.icrc.hex(), "should be", roce.icrc(p.ip[:-4]).hex())


def bth(p):
    check_eq((p.migreq, p.tver, p.fecn_becn, p.qpn_reserved, p.psn_reserved), (1, 0, 0, 0, 0),
             "MigReq, version, FECN and BECN, reserved bits")
    check_eq(p.pkey, 0xffff, "P_Key")
    check(p.name in roce.OP, "opcode", p.opcode)
    check(p.ackreq == 0 or p.name not in ("ACK", "ATOMIC_ACK"), "AckReq in a response")


def lengths(p):
    payload = len(p.body) - HEADERS.get(p.name, 0) - p.pad
    check_eq(len(p.udp) % 4, 0, "multiple of four")
    check(0 <= payload <= mtu, "payload of", payload)
    if p.name.endswith(("FIRST", "MIDDLE")):
        check_eq(payload, mtu, "payload")
    elif "LAST" in p.name:
        check(payload > 0, "empty LAST")
    check_eq(p.body[len(p.body) - p.pad:], bytes(p.pad), "pad bytes")


def ip_and_udp(p):
    if p.version == 4:
        check_eq(p.ip[0], 0x45, "IP version and header length")
        check_eq(p.ip[8], 64, "TTL")
        check_eq(p.ip[6] & 0x40, 0x40, "DF")
        check_eq(p.ip[1] >> 2, 0, "DSCP")
        checksum = p.ip[26:28]
    else:
        check_eq(p.ip[7], 64, "hop limit")
        check_eq(int.from_bytes(p.ip[0:2], "big") >> 6 & 0x3f, 0, "DSCP")
        checksum = p.ip[46:48]
    check_eq(checksum, b"\0\0", "UDP checksum, which the ICRC stands in for")
    check(p.sport >= 0xc000, "UDP source port", p.sport)


def one_source_port_for_each_qp():
    ports = collections.defaultdict(set)
    for p in packets:
        ports[p.src, p.qpn].add(p.sport)
    check_eq(len(ports), 2, "flows")
    check(all(len(s) == 1 for s in ports.values()), dict(ports))


def tshark():
    """An independent dissector finds nothing wrong, and RoCE in every packet."""
    # It guesses at the protocol of the payload, which is random here.
    guesses = [option for name in ("rpcordma", "smb_direct", "iser", "nvme-rdma")
               for option in ("--disable-protocol", name)]

    def count(display_filter):
        out = subprocess.run(["tshark", "-r", path, *guesses, "-Y", display_filter, "-T", "fields", "-e",
                              "frame.number"], check=True, capture_output=True, text=True).stdout
        return len(out.split())
    check_eq(count("_ws.malformed"), 0, "malformed packets")
    check_eq(count("udp.dstport == 4791 && infiniband.bth"), len(packets), "packets with a BTH")


run([("there_are_enough", there_are_enough), ("icrc", each(icrc)), ("bth", each(bth)), ("lengths", each(lengths)),
     ("ip_and_udp", each(ip_and_udp)), ("one_source_port_for_each_qp", one_source_port_for_each_qp),
     ("tshark", tshark)])
