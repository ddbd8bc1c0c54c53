#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Single packets to a live QP, and what must follow: the responder's checks.

The requester's are in requester_test.py. Options: see args.py.
"""
import struct

import args
import roce
from peer import (LOC_LEN_ERR, PEER_QPN, SUCCESS, WR_FLUSH_ERR)
from tap import check, check_eq, run

options = args.parse()


def expect_nak(qp, syndrome, psn):
    got = qp.wire.expect("ACK")
    check_eq(got.aeth()[0], syndrome, "syndrome")
    check_eq(got.psn, psn, "PSN of the NAK")


def expect_dead(qp, receives=()):
    """Error state, the receives flushed."""
    for wr_id in receives:
        qp.expect_wc("recv", wr_id, WR_FLUSH_ERR)
    check_eq(qp.state(), "ERR", "state")
    check(qp.quiet(), "surplus completions")


def test_send(qp):
    for length in (0, 1, 2, 3, 4, 1023, 1024):
        qp.recv(length, 2048)
        payload = bytes(range(256)) * 4
        psn = qp.psn
        qp.request("SEND_ONLY", payload=payload[:length])
        ack = qp.wire.expect("ACK")
        check_eq((ack.aeth()[0] & 0xe0, ack.psn, ack.qpn), (0, psn, PEER_QPN), "ACK")
        check_eq(qp.expect_wc("recv", length, SUCCESS)["byte_len"], length, "byte_len")
        check_eq(qp.mem(0, length), payload[:length], "data")


def test_ack_fields(qp):
    qp.request("WRITE_ONLY", roce.reth(qp.va, qp.rkey, 4), payload=b"abcd")
    ack = qp.wire.expect("ACK")
    check_eq((ack.pkey, ack.migreq, ack.pad, ack.tver, ack.se), (0xffff, 1, 0, 0, 0), "BTH")
    check_eq((ack.fecn_becn, ack.qpn_reserved, ack.psn_reserved), (0, 0, 0), "reserved bits")
    check_eq(len(ack.body), 4, "length")


def test_reserved_bits_and_migreq_are_ignored(qp):
    packet = bytearray(qp.packet("WRITE_ONLY", roce.reth(qp.va, qp.rkey, 4), payload=b"abcd", ackreq=1,
                                 migreq=0))
    packet[4] = 0xff
    packet[8] |= 0x7f
    qp.wire.send(bytes(packet))
    qp.wire.expect("ACK")
    check_eq(qp.mem(0, 4), b"abcd", "data")


def test_message_sequence_number(qp):
    """Counts completed requests."""
    for i in range(1, 4):
        qp.request("WRITE_ONLY", roce.reth(qp.va, qp.rkey, 4), payload=b"abcd")
        check_eq(qp.wire.expect("ACK").aeth()[1], i, "MSN")
    qp.request("WRITE_FIRST", roce.reth(qp.va, qp.rkey, qp.mtu + 4), payload=bytes(qp.mtu))
    check_eq(qp.wire.expect("ACK").aeth()[1], 3, "MSN in the middle of a message")
    qp.request("WRITE_LAST", payload=bytes(4))
    check_eq(qp.wire.expect("ACK").aeth()[1], 4, "MSN")


def wrong_length(opcode, length, before=()):
    """B6: a packet whose payload has a length that its opcode does not allow."""
    def test(qp):
        qp.fill(0, 8192, 0x22)
        qp.recv(1, 8192)
        qp.recv(2, 8192)
        for op in before:
            qp.request(op, roce.reth(qp.va, qp.rkey, 3 * qp.mtu) if op == "WRITE_FIRST" else b"",
                       payload=bytes(qp.mtu), ackreq=0)
        psn = qp.psn
        body = roce.reth(qp.va, qp.rkey, length if "ONLY" in opcode else 3 * qp.mtu) \
            if opcode in ("WRITE_FIRST", "WRITE_ONLY") else b""
        qp.request(opcode, body, payload=b"\x99" * length)
        expect_nak(qp, roce.NAK_INV_REQ, psn)
        check(0x99 not in qp.mem(0, 8192), "data was placed")
        check_eq(qp.state(), "ERR", "state")
    return test


WRONG_LENGTHS = {
    f"{op}_of_{length}{'_after_' + '_'.join(before) if before else ''}": wrong_length(op, length, before)
    for op, length, before in [
        ("SEND_FIRST", 0, ()), ("SEND_FIRST", 1020, ()), ("SEND_FIRST", 1023, ()), ("SEND_FIRST", 1028, ()),
        ("SEND_ONLY", 1028, ()), ("SEND_ONLY", 4096, ()),
        ("SEND_MIDDLE", 0, ("SEND_FIRST",)), ("SEND_MIDDLE", 1020, ("SEND_FIRST",)),
        ("SEND_MIDDLE", 1028, ("SEND_FIRST",)), ("SEND_LAST", 0, ("SEND_FIRST",)),
        ("SEND_LAST", 1028, ("SEND_FIRST",)),
        ("WRITE_FIRST", 0, ()), ("WRITE_FIRST", 1020, ()), ("WRITE_FIRST", 1028, ()),
        ("WRITE_ONLY", 1028, ()), ("WRITE_MIDDLE", 1020, ("WRITE_FIRST",)),
        ("WRITE_LAST", 0, ("WRITE_FIRST",)), ("WRITE_LAST", 1028, ("WRITE_FIRST", "WRITE_MIDDLE")),
    ]
}


def write_total(reth_length, packets):
    """B6: the packets' payload together is not what the RETH announced."""
    def test(qp):
        qp.fill(0, 16384, 0x22)
        for i, (opcode, length) in enumerate(packets):
            psn = qp.psn
            qp.request(opcode, roce.reth(qp.va, qp.rkey, reth_length) if i == 0 else b"",
                       payload=b"\x99" * length, ackreq=int(i == len(packets) - 1))
        expect_nak(qp, roce.NAK_INV_REQ, psn)
        check(0x99 not in qp.mem(reth_length, 16384 - reth_length), "data beyond the RETH's length")
        check_eq(qp.state(), "ERR", "state")
    return test


WRITE_TOTALS = {
    "ONLY_shorter_than_RETH": write_total(8, [("WRITE_ONLY", 4)]),
    "ONLY_longer_than_RETH": write_total(4, [("WRITE_ONLY", 8)]),
    "ONLY_RETH_of_0": write_total(0, [("WRITE_ONLY", 4)]),
    "FIRST_longer_than_RETH": write_total(4, [("WRITE_FIRST", 1024)]),
    "LAST_too_early": write_total(3000, [("WRITE_FIRST", 1024), ("WRITE_LAST", 4)]),
    "LAST_too_long": write_total(1028, [("WRITE_FIRST", 1024), ("WRITE_LAST", 8)]),
    "MIDDLE_too_many": write_total(2000, [("WRITE_FIRST", 1024), ("WRITE_MIDDLE", 1024)]),
}


def wrong_sequence(*opcodes):
    """The last opcode does not fit behind the ones before it."""
    def test(qp):
        qp.recv(1, 8192)
        qp.recv(2, 8192)
        for i, opcode in enumerate(opcodes):
            last = i == len(opcodes) - 1
            psn = qp.psn
            body = roce.reth(qp.va, qp.rkey, 2 * qp.mtu if opcode == "WRITE_FIRST" else 4) \
                if opcode in ("WRITE_FIRST", "WRITE_ONLY", "READ_REQ") else \
                roce.atomic_eth(qp.va, qp.rkey, 1) if opcode == "FETCH_ADD" else b""
            payload = b"" if opcode in ("READ_REQ", "FETCH_ADD") else \
                bytes(qp.mtu) if "FIRST" in opcode or "MIDDLE" in opcode else b"abcd"
            qp.request(opcode, body, payload=payload, ackreq=int(last))
        expect_nak(qp, roce.NAK_INV_REQ, psn)
        check_eq(qp.state(), "ERR", "state")
    return test


WRONG_SEQUENCES = {"_then_".join(ops): wrong_sequence(*ops) for ops in [
    ("SEND_MIDDLE",), ("SEND_LAST",), ("WRITE_MIDDLE",), ("WRITE_LAST",),
    ("SEND_FIRST", "SEND_ONLY"), ("SEND_FIRST", "SEND_FIRST"), ("SEND_FIRST", "WRITE_MIDDLE"),
    ("SEND_FIRST", "WRITE_LAST"), ("SEND_FIRST", "WRITE_ONLY"), ("SEND_FIRST", "READ_REQ"),
    ("SEND_FIRST", "FETCH_ADD"), ("WRITE_FIRST", "SEND_MIDDLE"), ("WRITE_FIRST", "SEND_LAST"),
    ("WRITE_FIRST", "WRITE_FIRST"), ("WRITE_FIRST", "READ_REQ"), ("SEND_ONLY", "SEND_LAST"),
]}


def test_sequence_error_is_reported_once(qp):
    expected = qp.psn
    for ahead in (1, 2, 3):
        qp.request("WRITE_ONLY", roce.reth(qp.va, qp.rkey, 4), psn=expected + ahead & 0xffffff,
                   payload=b"late")
    expect_nak(qp, roce.NAK_SEQ, expected)
    qp.request("WRITE_ONLY", roce.reth(qp.va + 8, qp.rkey, 4), payload=b"gone")
    got = qp.wire.expect("ACK")
    check_eq(got.aeth()[0] & 0xe0, 0, "an ACK, not a second NAK")
    check_eq(qp.state(), "RTS", "state")


def test_duplicate_send_is_acknowledged_not_executed(qp):
    qp.recv(1, 64)
    qp.recv(2, 64)
    psn = qp.psn
    qp.request("SEND_ONLY", payload=b"once")
    qp.wire.expect("ACK")
    qp.expect_wc("recv", 1, SUCCESS)
    for _ in range(3):
        qp.request("SEND_ONLY", psn=psn, payload=b"more")
        got = qp.wire.expect("ACK")
        check_eq((got.psn, got.aeth()[0] & 0xe0), (psn, 0), "ACK of a duplicate")
    check(qp.quiet(), "a duplicate was executed")
    check_eq(qp.mem(0, 4), b"once", "data")


def test_duplicate_write_is_not_executed(qp):
    psn = qp.psn
    qp.request("WRITE_ONLY", roce.reth(qp.va, qp.rkey, 4), payload=b"once")
    qp.wire.expect("ACK")
    qp.fill(0, 4, 0x33)
    qp.request("WRITE_ONLY", roce.reth(qp.va, qp.rkey, 4), psn=psn, payload=b"more")
    qp.wire.expect("ACK")
    check_eq(qp.mem(0, 4), b"3333", "data")


def test_duplicate_write_before_a_read(qp):
    """The ACK of what comes before a READ must not claim the READ, whose responses may be lost."""
    psn = qp.psn
    pattern(qp, 4096)
    qp.request("WRITE_ONLY", roce.reth(qp.va + 4096, qp.rkey, 4), payload=b"once", ackreq=0)
    qp.request("READ_REQ", roce.reth(qp.va, qp.rkey, 3000))
    read_responses(qp, 3)
    qp.psn = psn + 4 & 0xffffff
    qp.request("WRITE_ONLY", roce.reth(qp.va + 4096, qp.rkey, 4), psn=psn, payload=b"once")
    check_eq(qp.wire.expect("ACK").psn, psn, "PSN of the duplicate's ACK")
    qp.ping()


def read_responses(qp, count):
    data = b""
    packets = []
    for _ in range(count):
        got = qp.wire.expect("READ_RESP_ONLY", "READ_RESP_FIRST", "READ_RESP_MIDDLE", "READ_RESP_LAST")
        packets.append(got)
        body = got.body if got.name == "READ_RESP_MIDDLE" else got.body[4:]
        data += body[:len(body) - got.pad]
    return packets, data


def pattern(qp, length):
    for i in range(0, length, 256):
        qp.fill(i, 256, i // 256 % 251)
    return qp.mem(0, length)


def test_read(qp):
    want = pattern(qp, 4096)
    for length, count in ((0, 1), (1, 1), (1023, 1), (1024, 1), (1025, 2), (3000, 3), (3072, 3)):
        psn = qp.psn
        qp.request("READ_REQ", roce.reth(qp.va, qp.rkey, length), ackreq=0)
        packets, data = read_responses(qp, count)
        check_eq(data, want[:length], f"data of {length} bytes")
        check_eq([p.psn for p in packets], [psn + i & 0xffffff for i in range(count)], "PSNs")
        names = ["READ_RESP_ONLY"] if count == 1 else \
            ["READ_RESP_FIRST"] + ["READ_RESP_MIDDLE"] * (count - 2) + ["READ_RESP_LAST"]
        check_eq([p.name for p in packets], names, "opcodes")
        qp.psn = psn + count & 0xffffff


def test_duplicate_read_is_answered_again(qp):
    want = pattern(qp, 4096)
    psn = qp.psn
    for _ in range(3):
        qp.request("READ_REQ", roce.reth(qp.va, qp.rkey, 3000), psn=psn)
        check_eq(read_responses(qp, 3)[1], want[:3000], "data")
    qp.psn = psn + 3 & 0xffffff
    qp.ping()


def test_duplicate_read_of_the_rest(qp):
    """A requester that lost a response asks for what is missing, from the PSN of the hole on."""
    want = pattern(qp, 4096)
    psn = qp.psn
    qp.request("READ_REQ", roce.reth(qp.va, qp.rkey, 3000), psn=psn)
    read_responses(qp, 3)
    qp.request("READ_REQ", roce.reth(qp.va + 1024, qp.rkey, 3000 - 1024), psn=psn + 1 & 0xffffff)
    packets, data = read_responses(qp, 2)
    check_eq(data, want[1024:3000], "data")
    check_eq([p.psn for p in packets], [psn + 1 & 0xffffff, psn + 2 & 0xffffff], "PSNs")


def test_duplicate_read_of_a_region_that_is_gone(qp):
    """The peer had the data, so that the owner could take the region away: no error of the QP."""
    region = qp.ask("region")
    psn = qp.psn
    qp.request("READ_REQ", roce.reth(region["va"], region["rkey"], 3000), psn=psn)
    read_responses(qp, 3)
    qp.psn = psn + 3 & 0xffffff
    check(qp.ask("unregion")["ok"], "deregistration")
    qp.request("READ_REQ", roce.reth(region["va"], region["rkey"], 3000), psn=psn)
    expect_nak(qp, roce.NAK_REM_ACCESS, psn)
    check_eq(qp.state(), "RTS", "state")
    qp.ping()


def widened_read(va_shift, length, psn_shift=0, good_key=True):
    """B5: a duplicate READ may ask for a part of the original range only."""
    def test(qp):
        pattern(qp, 16384)
        psn = qp.psn
        base = 4096
        qp.request("READ_REQ", roce.reth(qp.va + base, qp.rkey, 2048), psn=psn)
        read_responses(qp, 2)
        qp.psn = psn + 2 & 0xffffff
        qp.request("READ_REQ", roce.reth(qp.va + base + va_shift, qp.rkey if good_key else qp.rkey ^ 0x100,
                                         length), psn=psn + psn_shift & 0xffffff)
        qp.wire.send(qp.packet("WRITE_ONLY", roce.reth(0, 0, 0), ackreq=1))	# ends the wait
        while True:
            got = qp.wire.receive(1)
            check(got is None or not got.name.startswith("READ_RESP"), "answered", got)
            if got is None or got.name == "ACK":
                break
    return test


WIDENED_READS = {
    "longer": widened_read(0, 4096), "one_byte_longer": widened_read(0, 2049),
    "before_it": widened_read(-1024, 1024), "behind_it": widened_read(2048, 1024),
    "longer_from_the_middle": widened_read(1024, 2048, 1), "moved": widened_read(512, 1024),
    "other_key": widened_read(0, 2048, 0, False), "huge": widened_read(0, 0x7fffffff),
}


def test_atomics(qp):
    qp.fill(0, 8, 0)
    for i in range(4):
        qp.request("FETCH_ADD", roce.atomic_eth(qp.va, qp.rkey, 5))
        got = qp.wire.expect("ATOMIC_ACK")
        check_eq(struct.unpack(">Q", got.body[4:12])[0], 5 * i, "old value")
        check_eq(len(got.body), 12, "length")
    check_eq(struct.unpack("=Q", qp.mem(0, 8))[0], 20, "memory")


def atomic_write(qp, value, psn=None):
    """Answered like a READ of nothing."""
    expected = qp.psn if psn is None else psn
    qp.request("ATOMIC_WRITE", roce.reth(qp.va, qp.rkey, 8), psn=psn, payload=value)
    got = qp.wire.expect("READ_RESP_ONLY")
    check_eq((got.psn, got.aeth()[0], len(got.body)), (expected, roce.ACK, 4), "response")
    return expected


def test_atomic_write(qp):
    qp.fill(0, 24, 0x22)
    for i in range(4):
        atomic_write(qp, bytes([i] * 8))
        check_eq(qp.mem(0, 24), bytes([i] * 8 + [0x22] * 16), "memory")


def test_duplicate_atomic_write_is_answered_not_executed(qp):
    psn = atomic_write(qp, b"firstone")
    atomic_write(qp, b"the last")
    for _ in range(2):
        atomic_write(qp, b"firstone", psn)
        check_eq(qp.mem(0, 8), b"the last", "memory")
    qp.request("WRITE_ONLY", roce.reth(qp.va, qp.rkey, 0))
    qp.wire.expect("ACK")


def bad_atomic_write(syndrome, va=0, key=0, dma_len=8, length=8):
    def test(qp):
        qp.fill(0, 32, 0x22)
        psn = qp.psn
        qp.request("ATOMIC_WRITE", roce.reth(qp.va + va, qp.rkey ^ key, dma_len), payload=bytes(length))
        expect_nak(qp, syndrome, psn)
        check_eq(qp.mem(0, 32), b"\x22" * 32, "memory")
        expect_dead(qp)
    return test


BAD_ATOMIC_WRITES = {
    "unaligned": bad_atomic_write(roce.NAK_INV_REQ, va=4), "short": bad_atomic_write(roce.NAK_INV_REQ, length=4),
    "long": bad_atomic_write(roce.NAK_INV_REQ, length=16), "empty": bad_atomic_write(roce.NAK_INV_REQ, length=0),
    "other_length": bad_atomic_write(roce.NAK_INV_REQ, dma_len=16),
    "other_key": bad_atomic_write(roce.NAK_REM_ACCESS, key=0x100),
    "outside": bad_atomic_write(roce.NAK_REM_ACCESS, va=1 << 40),
}


def test_duplicate_atomic_is_answered_not_executed(qp):
    qp.fill(0, 8, 0)
    psn = qp.psn
    qp.request("FETCH_ADD", roce.atomic_eth(qp.va, qp.rkey, 7))
    qp.wire.expect("ATOMIC_ACK")
    qp.request("FETCH_ADD", roce.atomic_eth(qp.va, qp.rkey, 1))
    qp.wire.expect("ATOMIC_ACK")
    for _ in range(2):
        for shift, old in ((0, 0), (1, 7)):
            qp.request("FETCH_ADD", roce.atomic_eth(qp.va, qp.rkey, 7 if shift == 0 else 1),
                       psn=psn + shift & 0xffffff)
            got = qp.wire.expect("ATOMIC_ACK")
            check_eq(struct.unpack(">Q", got.body[4:12])[0], old, "old value again")
            check_eq(got.psn, psn + shift & 0xffffff, "PSN")
    check_eq(struct.unpack("=Q", qp.mem(0, 8))[0], 8, "memory")


def test_duplicate_of_a_read_as_an_atomic(qp):
    """The PSN of a READ, repeated with another operation: never executed."""
    qp.fill(0, 8, 0)
    psn = qp.psn
    qp.request("READ_REQ", roce.reth(qp.va, qp.rkey, 8), psn=psn)
    read_responses(qp, 1)
    qp.psn = psn + 1 & 0xffffff
    qp.request("FETCH_ADD", roce.atomic_eth(qp.va, qp.rkey, 9), psn=psn)
    qp.request("CMP_SWAP", roce.atomic_eth(qp.va, qp.rkey, 9, 0), psn=psn)
    qp.ping()
    check_eq(qp.mem(0, 8), bytes(8), "memory")


def refused(syndrome, opcode, body, payload=b""):
    """@body: of the QP; the request must be NAKed and the QP end."""
    def test(qp):
        qp.fill(0, qp.size, 0x22)
        qp.recv(1, 64)
        psn = qp.psn
        qp.request(opcode, body(qp), payload=payload)
        expect_nak(qp, syndrome, psn)
        expect_dead(qp, [1])
        check(set(qp.mem(0, qp.size)) == {0x22}, "memory changed")
    return test


REFUSED = {
    "write_key": refused(roce.NAK_REM_ACCESS, "WRITE_ONLY", lambda q: roce.reth(q.va, q.rkey ^ 0x100, 4), b"abcd"),
    "write_range": refused(roce.NAK_REM_ACCESS, "WRITE_ONLY",
                           lambda q: roce.reth(q.va + q.size - 3, q.rkey, 4), b"abcd"),
    "write_wrap": refused(roce.NAK_REM_ACCESS, "WRITE_ONLY", lambda q: roce.reth(-2, q.rkey, 4), b"abcd"),
    "write_announces_2_GiB": refused(roce.NAK_REM_ACCESS, "WRITE_FIRST",
                                     lambda q: roce.reth(q.va, q.rkey, 0x80000000), bytes(1024)),
    "read_key": refused(roce.NAK_REM_ACCESS, "READ_REQ", lambda q: roce.reth(q.va, q.rkey ^ 0x100, 4)),
    "read_range": refused(roce.NAK_REM_ACCESS, "READ_REQ", lambda q: roce.reth(q.va + 1, q.rkey, q.size)),
    "read_wrap": refused(roce.NAK_REM_ACCESS, "READ_REQ", lambda q: roce.reth(-8, q.rkey, 16)),
    "read_2_GiB": refused(roce.NAK_REM_ACCESS, "READ_REQ", lambda q: roce.reth(q.va, q.rkey, 0x80000000)),
    "atomic_key": refused(roce.NAK_REM_ACCESS, "FETCH_ADD", lambda q: roce.atomic_eth(q.va, q.rkey ^ 0x100, 1)),
    "atomic_range": refused(roce.NAK_REM_ACCESS, "FETCH_ADD",
                            lambda q: roce.atomic_eth(q.va + q.size, q.rkey, 1)),
    "atomic_wrap": refused(roce.NAK_REM_ACCESS, "CMP_SWAP", lambda q: roce.atomic_eth(-8, q.rkey, 1)),
    "atomic_unaligned": refused(roce.NAK_INV_REQ, "FETCH_ADD", lambda q: roce.atomic_eth(q.va + 4, q.rkey, 1)),
}


def test_invalidate_of_a_region(qp):
    """An ordinary region's key cannot be invalidated from afar."""
    qp.recv(1, 64)
    qp.request("SEND_ONLY_INV", struct.pack(">I", qp.rkey), payload=b"abcd")
    got = qp.wire.expect("ACK")
    check(got.aeth()[0] in (roce.NAK_INV_REQ, roce.NAK_REM_ACCESS, roce.NAK_REM_OP), "NAK, got", got)
    check_eq(qp.state(), "ERR", "state")


def test_send_longer_than_the_receive(qp):
    qp.recv(1, 3)
    qp.recv(2, 64)
    psn = qp.psn
    qp.request("SEND_ONLY", payload=b"abcd")
    expect_nak(qp, roce.NAK_INV_REQ, psn)
    qp.expect_wc("recv", 1, LOC_LEN_ERR)
    expect_dead(qp, [2])


def test_no_receive(qp):
    """RNR NAK with the QP's timer code; the same PSN succeeds later."""
    psn = qp.psn
    qp.request("SEND_ONLY", psn=psn, payload=b"abcd")
    got = qp.wire.expect("ACK")
    check_eq((got.aeth()[0], got.psn), (roce.RNR_NAK | 1, psn), "RNR NAK")
    qp.recv(1, 64)
    qp.request("SEND_ONLY", psn=psn, payload=b"abcd")
    check_eq(qp.wire.expect("ACK").aeth()[0] & 0xe0, 0, "ACK")
    qp.expect_wc("recv", 1, SUCCESS)


# Packets that must be dropped: (the packet's making, the counter that accounts for it)

def dropped(counter, make, **build):
    def test(qp):
        qp.fill(0, 64, 0x22)
        qp.recv(1, 64)
        before = options.counter(counter)
        qp.wire.send(make(qp), **build)
        qp.ping()
        check_eq(options.counter(counter), before + 1, counter)
        check(qp.quiet(), "it was executed")
        check_eq(qp.mem(0, 64), b"\x22" * 64, "memory")
    return test


def write(qp, **kwargs):
    """A good WRITE at the PSN that comes next, which stays the next one."""
    return qp.packet("WRITE_ONLY", roce.reth(qp.va, qp.rkey, 4), psn=qp.psn, payload=b"abcd", ackreq=1, **kwargs)


def shortened(n):
    return lambda q: write(q)[:n]


DROPPED = {
    "bad_ICRC": dropped("rx_icrc_encapsulated", write, good_icrc=False),
    "transport_version": dropped("drop_version", lambda q: write(q, version=1)),
    "P_Key": dropped("drop_pkey", lambda q: write(q, pkey=0x8001)),
    "unknown_QPN": dropped("drop_qpn", lambda q: write(q, qpn=q.qpn ^ 0x800000)),
    "reserved_opcode": dropped("drop_opcode", lambda q: q.packet(0x15, psn=q.psn)),
    "vendor_opcode": dropped("drop_opcode", lambda q: q.packet(0xff, psn=q.psn)),
    "XRC_opcode": dropped("drop_service", lambda q: q.packet(0xa4, bytes(4), psn=q.psn)),
    "XRC_without_its_header": dropped("drop_short", lambda q: q.packet(0xa4, psn=q.psn)),
    "UD_opcode": dropped("drop_service", lambda q: q.packet("UD_SEND_ONLY", roce.deth(0, 5), psn=q.psn)),
    "shorter_than_a_BTH": dropped("drop_short", shortened(8)),
    "BTH_alone_of_a_WRITE": dropped("drop_short", shortened(12)),
    "part_of_the_RETH": dropped("drop_short", shortened(24)),
    "payload_not_a_multiple_of_4": dropped("drop_length", shortened(30)),
    "longer_than_any_MTU": dropped("drop_length", lambda q: q.packet(
        "SEND_ONLY", psn=q.psn, payload=bytes(4100))),
    "pad_without_payload": dropped("drop_length", lambda q: q.packet("SEND_ONLY", psn=q.psn, pad=3)),
    "READ_request_with_payload": dropped("drop_length", lambda q: q.packet(
        "READ_REQ", roce.reth(q.va, q.rkey, 4), psn=q.psn, payload=b"abcd")),
    "ACK_with_payload": dropped("drop_length", lambda q: q.packet(
        "ACK", roce.aeth(roce.ACK, 0), psn=q.own_psn, payload=b"abcd")),
    "other_source_address": dropped("drop_address", write, src=options.stranger),
    "unasked_ACK": dropped("drop_response", lambda q: q.packet("ACK", roce.aeth(roce.ACK, 1), psn=q.own_psn)),
    "unasked_NAK": dropped("drop_response", lambda q: q.packet("ACK", roce.aeth(roce.NAK_REM_OP, 1), psn=q.own_psn)),
    "unasked_READ_response": dropped("drop_response", lambda q: q.packet(
        "READ_RESP_ONLY", roce.aeth(roce.ACK, 1), psn=q.own_psn, payload=b"abcd")),
    "unasked_atomic_answer": dropped("drop_response", lambda q: q.packet(
        "ATOMIC_ACK", roce.aeth(roce.ACK, 1) + bytes(8), psn=q.own_psn)),
}


if __name__ == "__main__":
    named = {name[5:]: function for name, function in list(globals().items()) if name.startswith("test_")}
    for prefix, group in (("length", WRONG_LENGTHS), ("write_total", WRITE_TOTALS), ("sequence", WRONG_SEQUENCES),
                          ("widened_read", WIDENED_READS), ("bad_atomic_write", BAD_ATOMIC_WRITES),
                          ("refused", REFUSED), ("dropped", DROPPED)):
        named.update({f"{prefix}_{name}": function for name, function in group.items()})
    run([(name, options.with_qp(test)) for name, test in named.items() if options.wants(name)] +
        [("end", options.end)])
