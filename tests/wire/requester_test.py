#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A live QP sends, and is answered by hand: the requester's checks of what comes back.

The responder's are in protocol_test.py. Options: see args.py.
"""
import struct
import time

import args
import roce
from peer import (BAD_RESP_ERR, REM_ACCESS_ERR, REM_INV_REQ_ERR, REM_OP_ERR, SUCCESS, WR_FLUSH_ERR)
from tap import check, check_eq, run

options = args.parse()
KEY, VA = 0x1234, 0x20000


def sent(qp, *names):
    return qp.wire.expect(*names)


def test_send_packet(qp):
    qp.fill(0, 64, 0x41)
    qp.post("send", 1, 5)
    got = sent(qp, "SEND_ONLY")
    check_eq((got.psn, got.ackreq, got.pad, got.body), (qp.own_psn, 1, 3, b"AAAAA\0\0\0"), "packet")
    qp.respond("ACK", got.psn)
    qp.expect_wc("send", 1, SUCCESS)


def test_write_packets(qp):
    length = 2 * qp.mtu + 5
    qp.fill(0, length, 0x42)
    qp.post("write", 1, length, VA, KEY)
    first, middle, last = sent(qp, "WRITE_FIRST"), sent(qp, "WRITE_MIDDLE"), sent(qp, "WRITE_LAST")
    check_eq(struct.unpack(">QII", first.body[:16]), (VA, KEY, length), "RETH")
    check_eq([len(first.body) - 16, len(middle.body), len(last.body), last.pad], [qp.mtu, qp.mtu, 8, 3], "lengths")
    check_eq([p.psn for p in (first, middle, last)], [qp.own_psn + i & 0xffffff for i in range(3)], "PSNs")
    check_eq(last.ackreq, 1, "AckReq of the last")
    check_eq(len({p.sport for p in (first, middle, last)}), 1, "UDP source ports")
    qp.respond("ACK", last.psn)
    qp.expect_wc("send", 1, SUCCESS)


def test_cumulative_ack(qp):
    """One ACK for the last of several messages completes all of them."""
    for wr_id in range(1, 6):
        qp.post("write", wr_id, 8, VA, KEY)
    packets = [sent(qp, "WRITE_ONLY") for _ in range(5)]
    qp.respond("ACK", packets[2].psn, msn=3)
    for wr_id in range(1, 4):
        qp.expect_wc("send", wr_id, SUCCESS)
    qp.respond("ACK", packets[4].psn, msn=5)
    for wr_id in range(4, 6):
        qp.expect_wc("send", wr_id, SUCCESS)


def nak(syndrome, status):
    def test(qp):
        for wr_id in (1, 2, 3):
            qp.post("write", wr_id, 8, VA, KEY)
        packets = [sent(qp, "WRITE_ONLY") for _ in range(3)]
        qp.respond("ACK", packets[1].psn, syndrome=syndrome)
        qp.expect_wc("send", 1, SUCCESS)	# a NAK acknowledges what is before it
        qp.expect_wc("send", 2, status)
        qp.expect_wc("send", 3, WR_FLUSH_ERR)
        check_eq(qp.state(), "ERR", "state")
        check(qp.quiet(), "surplus completions")
    return test


NAKS = {"invalid_request": nak(roce.NAK_INV_REQ, REM_INV_REQ_ERR),
        "remote_access": nak(roce.NAK_REM_ACCESS, REM_ACCESS_ERR),
        "remote_operation": nak(roce.NAK_REM_OP, REM_OP_ERR)}


def test_sequence_nak_resends_from_there(qp):
    for wr_id in (1, 2, 3):
        qp.post("write", wr_id, 8, VA, KEY)
    packets = [sent(qp, "WRITE_ONLY") for _ in range(3)]
    qp.respond("ACK", packets[1].psn, syndrome=roce.NAK_SEQ)
    again = [sent(qp, "WRITE_ONLY") for _ in range(2)]
    check_eq([p.psn for p in again], [p.psn for p in packets[1:]], "PSNs resent")
    check_eq([p.body for p in again], [p.body for p in packets[1:]], "the same bytes")
    qp.respond("ACK", again[-1].psn)
    for wr_id in (1, 2, 3):
        qp.expect_wc("send", wr_id, SUCCESS)


def test_sequence_nak_in_the_middle_of_a_write(qp):
    """The rest is sent again, at the address where it belongs (A15)."""
    qp.fill(0, 1024, 1)
    qp.fill(1024, 1024, 2)
    qp.fill(2048, 1024, 3)
    qp.post("write", 1, 3072, VA, KEY)
    packets = [sent(qp, name) for name in ("WRITE_FIRST", "WRITE_MIDDLE", "WRITE_LAST")]
    qp.respond("ACK", packets[1].psn, syndrome=roce.NAK_SEQ)
    middle, last = sent(qp, "WRITE_MIDDLE"), sent(qp, "WRITE_LAST")
    check_eq((middle.body, last.body), (b"\2" * 1024, b"\3" * 1024), "data")
    qp.respond("ACK", last.psn)
    qp.expect_wc("send", 1, SUCCESS)


def test_timeout_resends(qp):
    qp.post("write", 1, 8, VA, KEY)
    first = sent(qp, "WRITE_ONLY")
    again = sent(qp, "WRITE_ONLY")
    check_eq((again.psn, again.body), (first.psn, first.body), "the same packet")
    qp.respond("ACK", first.psn)
    qp.expect_wc("send", 1, SUCCESS)


def test_rnr_nak_waits(qp):
    """Not before the timer of the NAK, here 20.48 ms (code 22)."""
    qp.post("send", 1, 8)
    first = sent(qp, "SEND_ONLY")
    start = time.monotonic()
    qp.respond("ACK", first.psn, syndrome=roce.RNR_NAK | 22)
    again = sent(qp, "SEND_ONLY")
    check_eq(again.psn, first.psn, "PSN")
    check(time.monotonic() - start >= 0.02048, "too early", time.monotonic() - start)
    qp.respond("ACK", again.psn)
    qp.expect_wc("send", 1, SUCCESS)


def ignored(make, kind="write"):
    """The answer that @make(qp, psn) sends must change nothing; a good one completes the WR."""
    def test(qp):
        qp.fill(0, 64, 0x22)
        qp.post(kind, 1, 8, VA, KEY)
        got = qp.wire.expect("WRITE_ONLY", "READ_REQ", "FETCH_ADD")
        naks = [options.counter(name) for name in ("packet_seq_err", "implied_nak_seq_err")]
        make(qp, got.psn)
        qp.ping()
        check(qp.quiet(), "it completed something")
        check_eq([options.counter(name) for name in ("packet_seq_err", "implied_nak_seq_err")], naks,
                 "going back because of it")
        check_eq(qp.state(), "RTS", "state")
        check_eq(qp.mem(0, 64), b"\x22" * 64, "memory")
        if kind == "write":
            qp.respond("ACK", got.psn)
        elif kind == "read":
            qp.respond("READ_RESP_ONLY", got.psn, payload=b"response")
        else:
            qp.respond("ATOMIC_ACK", got.psn, body=struct.pack(">Q", 5))
        qp.expect_wc("send", 1, SUCCESS)
        if kind == "read":
            check_eq(qp.mem(0, 8), b"response", "data")
    return test


def later(psn, n):
    return psn + n & 0xffffff


IGNORED = {
    "ACK_of_what_was_not_sent": ignored(lambda q, psn: q.respond("ACK", later(psn, 1))),
    "ACK_far_ahead": ignored(lambda q, psn: q.respond("ACK", later(psn, 0x400000))),
    "ACK_of_the_past": ignored(lambda q, psn: q.respond("ACK", later(psn, -1))),
    "NAK_of_what_was_not_sent": ignored(lambda q, psn: q.respond("ACK", later(psn, 5), syndrome=roce.NAK_REM_OP)),
    "NAK_of_the_past": ignored(lambda q, psn: q.respond("ACK", later(psn, -2), syndrome=roce.NAK_REM_ACCESS)),
    "reserved_syndrome": ignored(lambda q, psn: q.respond("ACK", psn, syndrome=0x40)),
    "READ_response_ahead": ignored(lambda q, psn: q.respond("READ_RESP_ONLY", later(psn, 1), payload=b"abcdefgh"),
                                   "read"),
    "READ_response_of_the_past": ignored(lambda q, psn: q.respond("READ_RESP_ONLY", later(psn, -1),
                                                                  payload=b"abcdefgh"), "read"),
}


def test_reserved_syndromes_acknowledge_nothing(qp):
    for wr_id in (1, 2, 3):
        qp.post("write", wr_id, 8, VA, KEY)
    packets = [sent(qp, "WRITE_ONLY") for _ in range(3)]
    for syndrome in (0x40, 0x5f, 0x80, 0xa0, 0xe0, roce.NAK_REM_OP + 1, roce.NAK_REM_OP + 28):
        qp.respond("ACK", packets[2].psn, syndrome=syndrome)
    qp.ping()
    check(qp.quiet(), "one of them completed something")
    check_eq(qp.state(), "RTS", "state")
    qp.respond("ACK", packets[2].psn)
    for wr_id in (1, 2, 3):
        qp.expect_wc("send", wr_id, SUCCESS)


def test_read(qp):
    qp.fill(0, 4096, 0x22)
    qp.post("read", 1, 2500, VA, KEY)
    got = sent(qp, "READ_REQ")
    check_eq(struct.unpack(">QII", got.body), (VA, KEY, 2500), "RETH")
    data = bytes(i * 7 & 0xff for i in range(2500))
    qp.respond("READ_RESP_FIRST", got.psn, payload=data[:1024])
    qp.respond("READ_RESP_MIDDLE", later(got.psn, 1), payload=data[1024:2048])
    qp.respond("READ_RESP_LAST", later(got.psn, 2), payload=data[2048:])
    qp.expect_wc("send", 1, SUCCESS)
    check_eq(qp.mem(0, 2500), data, "data")
    check_eq(qp.mem(2500, 1024), b"\x22" * 1024, "what is behind")
    qp.post("write", 2, 0, VA, KEY)
    check_eq(sent(qp, "WRITE_ONLY").psn, later(got.psn, 3), "the READ took as many PSNs as its response")


def bad_read_response(length, *responses, status=BAD_RESP_ERR):
    """B23: not the bytes that were asked for. The READ fails, or None: waits; nothing is overrun."""
    def test(qp):
        qp.fill(0, 16384, 0x22)
        qp.post("read", 1, length, VA, KEY)
        got = sent(qp, "READ_REQ")
        for i, (opcode, size) in enumerate(responses):
            qp.respond(opcode, later(got.psn, i), payload=b"\x99" * size)
        if status is None:
            qp.ping()
            check(qp.quiet(), "the READ is done")
        else:
            qp.expect_wc("send", 1, status)
            check_eq(qp.state(), "ERR", "state")
        check(0x99 not in qp.mem(length, 16384 - length), "the sink was overrun")
    return test


BAD_READS = {
    "ONLY_too_long": bad_read_response(8, ("READ_RESP_ONLY", 64)),
    "ONLY_too_short": bad_read_response(64, ("READ_RESP_ONLY", 8)),
    "ONLY_for_two_packets": bad_read_response(2000, ("READ_RESP_ONLY", 1024)),
    "ONLY_empty": bad_read_response(8, ("READ_RESP_ONLY", 0)),
    "FIRST_for_one_packet": bad_read_response(8, ("READ_RESP_FIRST", 1024)),
    "FIRST_too_short": bad_read_response(2000, ("READ_RESP_FIRST", 512), ("READ_RESP_LAST", 1488)),
    "LAST_too_long": bad_read_response(2000, ("READ_RESP_FIRST", 1024), ("READ_RESP_LAST", 1000)),
    "LAST_too_short": bad_read_response(2000, ("READ_RESP_FIRST", 1024), ("READ_RESP_LAST", 8)),
    "MIDDLE_at_the_end": bad_read_response(2048, ("READ_RESP_FIRST", 1024), ("READ_RESP_MIDDLE", 1024)),
    "MIDDLE_at_the_start": bad_read_response(3000, ("READ_RESP_MIDDLE", 1024)),
    "LAST_at_the_start": bad_read_response(8, ("READ_RESP_LAST", 8)),
    "atomic_answer": bad_read_response(8, ("ATOMIC_ACK", 0), status=None),
}


def test_ack_does_not_skip_a_read(qp):
    """A4: an ACK of what came after a READ says that its response was lost."""
    qp.fill(0, 64, 0x22)
    qp.post("read", 1, 8, VA, KEY)
    qp.post("write", 2, 8, VA, KEY)
    read, write = sent(qp, "READ_REQ"), sent(qp, "WRITE_ONLY")
    qp.respond("ACK", write.psn, msn=2)
    again = sent(qp, "READ_REQ")
    check_eq((again.psn, again.body), (read.psn, read.body), "the READ again")
    check(qp.quiet(), "the READ completed without data")
    qp.respond("READ_RESP_ONLY", read.psn, payload=b"response")
    qp.respond("ACK", write.psn, msn=2)
    qp.expect_wc("send", 1, SUCCESS)
    qp.expect_wc("send", 2, SUCCESS)
    check_eq(qp.mem(0, 8), b"response", "data")


def test_lost_read_response_is_asked_for_again(qp):
    """Only the missing rest, from its own address on."""
    data = bytes(i * 5 & 0xff for i in range(3072))
    qp.post("read", 1, 3072, VA, KEY)
    got = sent(qp, "READ_REQ")
    qp.respond("READ_RESP_FIRST", got.psn, payload=data[:1024])
    qp.respond("READ_RESP_LAST", later(got.psn, 2), payload=data[2048:])	# the middle one is lost
    again = sent(qp, "READ_REQ")
    va, key, length = struct.unpack(">QII", again.body)
    done = va - VA
    check_eq((key, length, later(got.psn, done // 1024)), (KEY, 3072 - done, again.psn), "READ of the rest")
    check(done in (0, 1024), "from where", done)
    rest = data[done:]
    pieces = [rest[i:i + 1024] for i in range(0, len(rest), 1024)]
    for i, piece in enumerate(pieces):
        name = "FIRST" if i == 0 else "LAST" if i == len(pieces) - 1 else "MIDDLE"
        qp.respond(f"READ_RESP_{name}", later(again.psn, i), payload=piece)
    qp.expect_wc("send", 1, SUCCESS)
    check_eq(qp.mem(0, 3072), data, "data")


def test_read_nak_in_the_middle(qp):
    """A13: the responder's region went away between two responses."""
    qp.post("read", 1, 3000, VA, KEY)
    got = sent(qp, "READ_REQ")
    qp.respond("READ_RESP_FIRST", got.psn, payload=bytes(1024))
    qp.respond("ACK", later(got.psn, 1), syndrome=roce.NAK_REM_ACCESS)
    qp.expect_wc("send", 1, REM_ACCESS_ERR)
    check_eq(qp.state(), "ERR", "state")


def test_atomic(qp):
    qp.post("fadd", 1, 8, VA, KEY)
    got = sent(qp, "FETCH_ADD")
    check_eq(struct.unpack(">QIQQ", got.body), (VA, KEY, 1, 0), "AtomicETH")
    qp.respond("ATOMIC_ACK", got.psn, body=struct.pack(">Q", 0x1122334455667788))
    qp.expect_wc("send", 1, SUCCESS)
    check_eq(struct.unpack("=Q", qp.mem(0, 8))[0], 0x1122334455667788, "old value")


def test_atomic_is_resent_not_skipped(qp):
    """A1: an ACK of what came after an atomic says that its answer was lost."""
    qp.post("fadd", 1, 8, VA, KEY)
    qp.post("write", 2, 8, VA, KEY)
    atomic, write = sent(qp, "FETCH_ADD"), sent(qp, "WRITE_ONLY")
    qp.respond("ACK", write.psn, msn=2)
    again = sent(qp, "FETCH_ADD")
    check_eq((again.psn, again.body), (atomic.psn, atomic.body), "the atomic again")
    qp.respond("ATOMIC_ACK", atomic.psn, body=struct.pack(">Q", 3))
    qp.respond("ACK", write.psn, msn=2)
    qp.expect_wc("send", 1, SUCCESS)
    qp.expect_wc("send", 2, SUCCESS)


def test_rnr_retry_seven_is_for_ever(qp):
    """A3: many NAKs do not end the WR."""
    qp.post("send", 1, 8)
    for _ in range(20):
        got = sent(qp, "SEND_ONLY")
        qp.respond("ACK", got.psn, syndrome=roce.RNR_NAK | 1)
    check(qp.quiet(), "it completed")
    got = sent(qp, "SEND_ONLY")
    qp.respond("ACK", got.psn)
    qp.expect_wc("send", 1, SUCCESS)


if __name__ == "__main__":
    named = {name[5:]: function for name, function in list(globals().items()) if name.startswith("test_")}
    for prefix, group in (("nak", NAKS), ("ignored", IGNORED), ("bad_read_response", BAD_READS)):
        named.update({f"{prefix}_{name}": function for name, function in group.items()})
    run([(name, options.with_qp(test)) for name, test in named.items() if options.wants(name)] +
        [("end", options.end)])
