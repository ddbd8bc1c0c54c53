#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Packets to and from live UC and UD QPs: what arrives, what is dropped without a word, and that
nothing is ever answered. --service uc|ud; other options: see args.py.
"""
import struct

import args
import roce
from peer import PEER_QPN, SUCCESS
from tap import check, check_eq, run

options = args.parse(lambda p: p.add_argument("--service", choices=("uc", "ud"), required=True))
options.service = options.parsed.service
QKEY = 0x11112222	# kQkey of tests/verbs
GRH = 40


def answers_nothing(qp):
    """What the QP is made to send is the first packet seen: it has not answered anything."""
    qp.post("send", 77, 4)
    got = qp.wire.receive()
    check(got is not None and got.name in ("UC_SEND_ONLY", "UD_SEND_ONLY"), "answered by", got)
    qp.expect_wc("send", 77, SUCCESS)


# ---- UC ----

def uc_send(qp, part, psn=None, payload=b"", body=b"", **bth):
    qp.request("UC_SEND_" + part, body, psn, payload, ackreq=0, **bth)


def uc_arrives(qp, wr_id, byte=0x77):
    """The next message arrives, in this receive; so nothing before it did."""
    uc_send(qp, "ONLY", payload=bytes([byte]) * 12)
    wc = qp.expect_wc("recv", wr_id, SUCCESS)
    check_eq(wc["byte_len"], 12, "byte_len")
    check_eq(qp.mem(0, 12), bytes([byte]) * 12, "data")
    check_eq(qp.state(), "RTS", "state")
    check(qp.quiet(), "surplus completions")


def uc_test_messages(qp):
    """Of one, two and three packets, with and without immediate, AckReq set or not."""
    for parts in (["ONLY"], ["FIRST", "LAST"], ["FIRST", "MIDDLE", "LAST"]):
        for imm in (0, 1):
            qp.fill(0, 8192, 0)
            qp.recv(5, 8192)
            for i, part in enumerate(parts):
                last = i == len(parts) - 1
                qp.request("UC_SEND_" + part + ("_IMM" if imm and last else ""),
                           struct.pack(">I", 0xabcd) if imm and last else b"",
                           payload=bytes([i + 1]) * (5 if last else qp.mtu), ackreq=imm)
            wc = qp.expect_wc("recv", 5, SUCCESS)
            length = (len(parts) - 1) * qp.mtu + 5
            check_eq((wc["byte_len"], wc["imm"]), (length, 0xabcd if imm else 0), "completion")
            check_eq(qp.mem(length - 5, 5), bytes([len(parts)]) * 5, "data of the last")
    answers_nothing(qp)


def uc_test_writes(qp):
    qp.recv(6, 8192)
    qp.request("UC_WRITE_FIRST", roce.reth(qp.va + 64, qp.rkey, qp.mtu + 4), payload=b"a" * qp.mtu)
    qp.request("UC_WRITE_LAST_IMM", struct.pack(">I", 7), payload=b"bcde")
    wc = qp.expect_wc("recv", 6, SUCCESS)
    check_eq((wc["byte_len"], wc["imm"]), (qp.mtu + 4, 7), "completion")
    check_eq(qp.mem(64 + qp.mtu - 1, 5), b"abcde", "data")
    answers_nothing(qp)


def uc_broken(*parts, fault=None):
    """A SEND of @parts of which the one at @fault was lost: nothing completes, the next is whole."""
    def test(qp):
        qp.recv(1, 8192)
        before = options.counters()
        for i, part in enumerate(parts):
            if i == fault:
                qp.psn = qp.psn + 1 & 0xffffff
                continue
            uc_send(qp, part, payload=b"\x55" * (4 if part in ("LAST", "ONLY") else qp.mtu))
        uc_arrives(qp, 1)
        after = options.counters()
        moved = sum(after[name] - before[name] for name in ("out_of_sequence", "drop_broken"))
        check(moved > 0 or fault is None, "nothing counted")
        answers_nothing(qp)
    return test


UC_BROKEN = {
    "no_FIRST": uc_broken("FIRST", "MIDDLE", "LAST", fault=0),
    "no_MIDDLE": uc_broken("FIRST", "MIDDLE", "LAST", fault=1),
    "no_LAST": uc_broken("FIRST", "MIDDLE", "LAST", fault=2),
    "never_a_LAST": uc_broken("FIRST", "MIDDLE", "MIDDLE"),
    "only_a_LAST": uc_broken("LAST"),
    "FIRST_after_FIRST": uc_broken("FIRST", "FIRST", "MIDDLE"),
}


def uc_test_new_message_ends_a_broken_one(qp):
    qp.recv(1, 8192)
    uc_send(qp, "FIRST", payload=b"\x55" * qp.mtu)
    qp.psn = qp.psn + 5 & 0xffffff
    uc_send(qp, "FIRST", payload=b"\x66" * qp.mtu)
    uc_send(qp, "LAST", payload=b"\x66" * 8)
    check_eq(qp.expect_wc("recv", 1, SUCCESS)["byte_len"], qp.mtu + 8, "byte_len")
    check_eq(qp.mem(0, qp.mtu + 8), b"\x66" * (qp.mtu + 8), "data")


def uc_test_rest_of_a_broken_write_is_not_placed(qp):
    qp.fill(0, 8192, 0x22)
    qp.request("UC_WRITE_FIRST", roce.reth(qp.va, qp.rkey, 3 * qp.mtu), payload=b"\x33" * qp.mtu)
    qp.psn = qp.psn + 1 & 0xffffff
    qp.request("UC_WRITE_LAST", payload=b"\x33" * qp.mtu)
    qp.recv(1, 12)
    uc_arrives(qp, 1)
    check_eq(qp.mem(qp.mtu, 4096), b"\x22" * 4096, "memory behind the first packet")


def uc_refused(counter, *packets):
    """Packets (opcode, RETH, payload) of which the last is refused, counted, and not answered."""
    def test(qp):
        qp.fill(0, 16384, 0x22)
        qp.recv(1, 4096)
        before = options.counter(counter)
        for opcode, reth, payload in packets:
            qp.request("UC_" + opcode, roce.reth(qp.va + 8192, qp.rkey ^ reth[1], reth[0]) if reth else b"",
                       payload=payload)
        uc_arrives(qp, 1)
        check_eq(options.counter(counter), before + 1, counter)
        check(0x99 not in qp.mem(0, 16384), "data was placed")
        answers_nothing(qp)
    return test


UC_REFUSED = {
    "SEND_FIRST_short": uc_refused("resp_invalid_request", ("SEND_FIRST", None, b"\x99" * 1020)),
    "SEND_FIRST_long": uc_refused("resp_invalid_request", ("SEND_FIRST", None, b"\x99" * 1028)),
    "SEND_MIDDLE_short": uc_refused("resp_invalid_request", ("SEND_FIRST", None, bytes(1024)),
                                    ("SEND_MIDDLE", None, b"\x99" * 4)),
    "SEND_LAST_empty": uc_refused("resp_invalid_request", ("SEND_FIRST", None, bytes(1024)),
                                  ("SEND_LAST", None, b"")),
    "SEND_LAST_behind_WRITE_FIRST": uc_refused("resp_invalid_request", ("WRITE_FIRST", (2048, 0), bytes(1024)),
                                               ("SEND_LAST", None, b"\x99" * 4)),
    "WRITE_longer_than_RETH": uc_refused("resp_invalid_request", ("WRITE_ONLY", (4, 0), b"\x99" * 8)),
    "WRITE_shorter_than_RETH": uc_refused("resp_invalid_request", ("WRITE_ONLY", (12, 0), b"\x99" * 8)),
    "WRITE_of_an_unknown_key": uc_refused("resp_remote_access_errors", ("WRITE_ONLY", (8, 0x5a00), b"\x99" * 8)),
    "WRITE_beyond_the_region": uc_refused("resp_remote_access_errors",
                                          ("WRITE_FIRST", (1 << 20, 0), b"\x99" * 1024)),
    "SEND_longer_than_the_receive": uc_refused(
        "resp_local_length_error", ("SEND_FIRST", None, bytes(1024)), ("SEND_MIDDLE", None, bytes(1024)),
        ("SEND_MIDDLE", None, bytes(1024)), ("SEND_MIDDLE", None, bytes(1024)), ("SEND_LAST", None, b"\x99" * 4)),
}


def uc_test_requester(qp):
    """Complete without an answer, no AckReq."""
    length = 2 * qp.mtu + 5
    qp.fill(0, length, 0x42)
    qp.post("write", 1, length, 0x20000, 0x1234)
    parts = [qp.wire.expect("UC_WRITE_" + part) for part in ("FIRST", "MIDDLE", "LAST")]
    qp.expect_wc("send", 1, SUCCESS)
    check_eq(struct.unpack(">QII", parts[0].body[:16]), (0x20000, 0x1234, length), "RETH")
    check_eq([p.psn for p in parts], [qp.own_psn + i & 0xffffff for i in range(3)], "PSNs")
    check_eq([(p.ackreq, p.qpn, p.pkey, p.migreq) for p in parts], [(0, PEER_QPN, 0xffff, 1)] * 3, "BTH")
    qp.post("send", 2, 3)
    got = qp.wire.expect("UC_SEND_ONLY")
    qp.expect_wc("send", 2, SUCCESS)
    check_eq((got.psn, got.pad, got.body), (qp.own_psn + 3 & 0xffffff, 1, b"BBB\0"), "packet")


# ---- UD ----

def ud_send(qp, payload=b"\x99" * 12, qkey=QKEY, src_qp=PEER_QPN, opcode="UD_SEND_ONLY", imm=b"", psn=0x123,
            build=None, **bth):
    qp.wire.send(qp.packet(opcode, roce.deth(qkey, src_qp) + imm, psn, payload, **bth), **(build or {}))


def ud_arrives(qp, wr_id):
    ud_send(qp, payload=b"\x77" * 12)
    wc = qp.expect_wc("recv", wr_id, SUCCESS)
    check_eq((wc["byte_len"], wc["src_qp"]), (GRH + 12, PEER_QPN), "completion")
    check_eq(qp.mem(GRH, 12), b"\x77" * 12, "data")
    check_eq(qp.state(), "RTS", "state")
    check(qp.quiet(), "surplus completions")


def ud_test_datagrams(qp):
    """Any PSN, any source QP, any source address."""
    for psn, src_qp, source in ((0, 1, qp.wire.own), (0xffffff, 0xabcdef, qp.wire.own), (5, 6, options.stranger)):
        for imm in (b"", struct.pack(">I", 0xabcd)):
            qp.recv(4, 4096)
            ud_send(qp, b"hello", src_qp=src_qp, psn=psn, imm=imm, build={"src": source},
                    opcode="UD_SEND_ONLY_IMM" if imm else "UD_SEND_ONLY")
            wc = qp.expect_wc("recv", 4, SUCCESS)
            check_eq((wc["byte_len"], wc["src_qp"], wc["imm"]), (GRH + 5, src_qp, 0xabcd if imm else 0),
                     "completion")
            check_eq(qp.mem(GRH, 5), b"hello", "data")
    answers_nothing(qp)


def ud_test_grh(qp):
    """The IP header as it came, at the end of the 40 bytes."""
    qp.fill(0, GRH, 0xff)
    qp.recv(4, 4096)
    ud_send(qp, b"abcd", build={"tos": 0x48, "ttl": 33})
    qp.expect_wc("recv", 4, SUCCESS)
    length = 8 + 12 + 8 + 4 + 4
    make = roce._ipv6 if ":" in qp.wire.own else roce._ipv4
    header = make(qp.wire.own, qp.wire.address, length, 33, 0x48)
    check_eq(qp.mem(0, GRH), header.rjust(GRH, b"\0"), "GRH")


def ud_dropped(counter, **kwargs):
    def test(qp):
        qp.fill(0, 256, 0x22)
        qp.recv(1, 8192 if counter == "drop_length" else 256)
        before = options.counter(counter)
        ud_send(qp, **kwargs)
        ud_arrives(qp, 1)
        check_eq(options.counter(counter), before + 1, counter)
        check(0x99 not in qp.mem(GRH, 256), "data was placed")
        answers_nothing(qp)
    return test


UD_DROPPED = {
    "Q_Key": ud_dropped("drop_qkey", qkey=QKEY ^ 1),
    "Q_Key_top_bit": ud_dropped("drop_qkey", qkey=QKEY | 1 << 31),
    "Q_Key_0": ud_dropped("drop_qkey", qkey=0),
    "P_Key": ud_dropped("drop_pkey", pkey=0x8001),
    "bad_ICRC": ud_dropped("rx_icrc_encapsulated", build={"good_icrc": False}),
    "transport_version": ud_dropped("drop_version", version=1),
    "too_long_for_the_receive": ud_dropped("resp_local_length_error", payload=b"\x99" * 220),
    "longer_than_the_MTU": ud_dropped("drop_length", payload=b"\x99" * 4100),
    "RC_opcode": ud_dropped("drop_service", opcode=0x04),
    "UC_opcode": ud_dropped("drop_service", opcode=0x24),
    "number_of_groups": ud_dropped("drop_qpn", qpn=0xffffff),
}


def ud_test_limited_membership(qp):
    """P_Keys are compared without the membership bit, ours being a full one."""
    qp.recv(4, 4096)
    ud_send(qp, pkey=0x7fff)
    qp.expect_wc("recv", 4, SUCCESS)


def ud_test_requester(qp):
    qp.fill(0, 64, 0x41)
    for i, length in enumerate((0, 5, 4)):
        qp.post("send", 1, length)
        got = qp.wire.expect("UD_SEND_ONLY")
        qp.expect_wc("send", 1, SUCCESS)
        check_eq((got.qpn, got.psn, got.ackreq, got.pad, got.pkey),
                 (PEER_QPN, qp.own_psn + i & 0xffffff, 0, -length % 4, 0xffff), "BTH")
        check_eq(got.body, roce.deth(QKEY, qp.qpn) + roce.padded(b"A" * length), "DETH and data")


if __name__ == "__main__":
    prefix = options.service + "_test_"
    named = {name[len(prefix):]: function for name, function in list(globals().items()) if name.startswith(prefix)}
    for name, group in {"uc": [("broken", UC_BROKEN), ("refused", UC_REFUSED)],
                        "ud": [("dropped", UD_DROPPED)]}[options.service]:
        named.update({f"{name}_{key}": function for key, function in group.items()})
    run([(name, options.with_qp(test)) for name, test in named.items() if options.wants(name)] +
        [("end", options.end)])
