# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""RoCE v2 packets for scapy: what scapy.contrib.roce lacks.

RETH, AtomicETH, AtomicAckETH, DETH, ImmDt and IETH as scapy layers, bound to
their opcodes; an ICRC for IPv4 and IPv6; a builder for whole packets.
"""
import socket
import struct
import zlib

from scapy.contrib.roce import AETH, BTH  # noqa: F401  (AETH is for our users)
from scapy.fields import BitField, IntField, LongField, XIntField, XLongField
from scapy.packet import Packet, bind_layers

PORT = 4791

# RC opcodes by name; UC and UD ones with their service bits
OP = {
    "SEND_FIRST": 0x00, "SEND_MIDDLE": 0x01, "SEND_LAST": 0x02, "SEND_LAST_IMM": 0x03,
    "SEND_ONLY": 0x04, "SEND_ONLY_IMM": 0x05,
    "WRITE_FIRST": 0x06, "WRITE_MIDDLE": 0x07, "WRITE_LAST": 0x08, "WRITE_LAST_IMM": 0x09,
    "WRITE_ONLY": 0x0a, "WRITE_ONLY_IMM": 0x0b,
    "READ_REQ": 0x0c, "READ_RESP_FIRST": 0x0d, "READ_RESP_MIDDLE": 0x0e,
    "READ_RESP_LAST": 0x0f, "READ_RESP_ONLY": 0x10,
    "ACK": 0x11, "ATOMIC_ACK": 0x12, "CMP_SWAP": 0x13, "FETCH_ADD": 0x14,
    "SEND_LAST_INV": 0x16, "SEND_ONLY_INV": 0x17, "ATOMIC_WRITE": 0x1d,
    "UC_SEND_FIRST": 0x20, "UC_SEND_MIDDLE": 0x21, "UC_SEND_LAST": 0x22, "UC_SEND_LAST_IMM": 0x23,
    "UC_SEND_ONLY": 0x24, "UC_SEND_ONLY_IMM": 0x25,
    "UC_WRITE_FIRST": 0x26, "UC_WRITE_MIDDLE": 0x27, "UC_WRITE_LAST": 0x28, "UC_WRITE_LAST_IMM": 0x29,
    "UC_WRITE_ONLY": 0x2a, "UC_WRITE_ONLY_IMM": 0x2b,
    "UD_SEND_ONLY": 0x64, "UD_SEND_ONLY_IMM": 0x65,
}
NAME = {code: name for name, code in OP.items()}

# AETH syndromes
ACK = 0x1f
RNR_NAK = 0x20		# plus the timer code
NAK_SEQ, NAK_INV_REQ, NAK_REM_ACCESS, NAK_REM_OP = 0x60, 0x61, 0x62, 0x63


class RETH(Packet):
    fields_desc = [XLongField("va", 0), XIntField("rkey", 0), IntField("dma_len", 0)]


class AtomicETH(Packet):
    fields_desc = [XLongField("va", 0), XIntField("rkey", 0), LongField("swap_add", 0),
                   LongField("compare", 0)]


class AtomicAckETH(Packet):
    fields_desc = [LongField("orig", 0)]


class DETH(Packet):
    fields_desc = [XIntField("qkey", 0), BitField("reserved", 0, 8), BitField("src_qp", 0, 24)]


class ImmDt(Packet):
    fields_desc = [XIntField("imm", 0)]


class IETH(Packet):
    fields_desc = [XIntField("rkey", 0)]


def _chain(opcode, *layers):
    """Bind the headers behind the BTH of one opcode."""
    bind_layers(BTH, layers[0], opcode=OP[opcode])


for _op in ("WRITE_FIRST", "WRITE_ONLY", "WRITE_ONLY_IMM", "READ_REQ", "ATOMIC_WRITE", "UC_WRITE_FIRST", "UC_WRITE_ONLY",
            "UC_WRITE_ONLY_IMM"):
    _chain(_op, RETH)
for _op in ("CMP_SWAP", "FETCH_ADD"):
    _chain(_op, AtomicETH)
for _op in ("READ_RESP_FIRST", "READ_RESP_LAST", "READ_RESP_ONLY", "ATOMIC_ACK"):
    _chain(_op, AETH)
for _op in ("SEND_LAST_IMM", "SEND_ONLY_IMM", "WRITE_LAST_IMM", "UC_SEND_LAST_IMM", "UC_SEND_ONLY_IMM",
            "UC_WRITE_LAST_IMM"):
    _chain(_op, ImmDt)
for _op in ("SEND_LAST_INV", "SEND_ONLY_INV"):
    _chain(_op, IETH)
for _op in ("UD_SEND_ONLY", "UD_SEND_ONLY_IMM"):
    _chain(_op, DETH)


def icrc(packet: bytes) -> bytes:
    """ICRC of an IP packet (IPv4 without options, or IPv6) that ends before the ICRC.

    The lengths in the headers must already count the ICRC's four bytes.
    """
    p = bytearray(packet)
    if p[0] >> 4 == 4:
        udp = 20
        p[1] = p[8] = p[10] = p[11] = 0xff		# TOS, TTL, checksum
    else:
        udp = 40
        p[0] |= 0x0f					# traffic class
        p[1] = p[2] = p[3] = p[7] = 0xff		# and flow label, hop limit
    p[udp + 6] = p[udp + 7] = 0xff			# UDP checksum
    p[udp + 8 + 4] = 0xff				# FECN, BECN, reserved
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(p)))


def _ipv4(src, dst, length, ttl, tos):
    header = struct.pack(">BBHHHBBH4s4s", 0x45, tos, 20 + length, 0, 0x4000, ttl, 17, 0,
                         socket.inet_aton(src), socket.inet_aton(dst))
    total = sum(struct.unpack(">10H", header))
    total = (total & 0xffff) + (total >> 16)
    total = (total & 0xffff) + (total >> 16)
    return header[:10] + struct.pack(">H", ~total & 0xffff) + header[12:]


def _ipv6(src, dst, length, ttl, tos):
    return struct.pack(">IHBB16s16s", 6 << 28 | tos << 20, length, 17, ttl,
                       socket.inet_pton(socket.AF_INET6, src), socket.inet_pton(socket.AF_INET6, dst))


def build(src, dst, payload, sport=50000, ttl=64, tos=0, good_icrc=True):
    """IP packet around @payload, the bytes from the BTH to the padding; adds the ICRC.

    By hand, not by scapy: packets may be odd in every way, and the fuzzer makes many.
    """
    length = 8 + len(payload) + 4
    ip = (_ipv6 if ":" in dst else _ipv4)(src, dst, length, ttl, tos)
    packet = ip + struct.pack(">HHHH", sport, PORT, length, 0) + bytes(payload)
    # of less than a BTH there is no ICRC to speak of
    crc = icrc(packet) if len(payload) >= 12 else bytes(4)
    return packet + (crc if good_icrc else bytes(b ^ 0x5a for b in crc))


def bth(opcode, qpn, psn, ackreq=0, pad=0, se=0, migreq=1, pkey=0xffff, version=0, becn=0):
    """The twelve bytes of a base transport header."""
    flags = se << 7 | migreq << 6 | pad << 4 | version
    return struct.pack(">BBHII", opcode, flags, pkey, becn << 30 | qpn & 0xffffff,
                       ackreq << 31 | psn & 0xffffff)


def reth(va, rkey, length):
    return struct.pack(">QII", va & (1 << 64) - 1, rkey, length)


def atomic_eth(va, rkey, swap_add, compare=0):
    return struct.pack(">QIQQ", va & (1 << 64) - 1, rkey, swap_add, compare)


def aeth(syndrome, msn):
    return struct.pack(">I", syndrome << 24 | msn & 0xffffff)


def deth(qkey, src_qp):
    return struct.pack(">II", qkey, src_qp & 0xffffff)


def padded(payload: bytes) -> bytes:
    return payload + bytes(-len(payload) % 4)
