#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Random packets to a live QP, to QP1 and to nobody: each is counted exactly once, as received or
as dropped for a reason, and a fresh QP works afterwards. B1, B2.

Options: see args.py; --packets N, --seed S.
"""
import args
import roce
from tap import check, check_eq, run

options = args.parse(lambda p: p.add_argument("--packets", type=int, default=256 * 65))
wire = options.wire
rng = wire.rng

# Every packet raises exactly one of these: docs/counters.md.
FATES = ["rcvd_pkts", "rx_icrc_encapsulated", "drop_short", "drop_length", "drop_version", "drop_opcode",
         "drop_qpn", "drop_qp_state", "drop_service", "drop_address", "drop_pkey"]
USUAL = ["rcvd_pkts", "rx_icrc_encapsulated", "drop_short", "drop_length", "drop_version", "drop_qpn",
         "drop_service", "drop_pkey"]


def fates():
    now = options.counters()
    return {name: now[name] for name in FATES}


def random_body(length):
    return rng.randbytes(length)


def random_qpn(qp):
    return rng.choice([qp.qpn] * 6 + [0, 1, 1, 0xffffff, qp.qpn ^ 1, rng.randrange(1 << 24)])


def fuzz(length_of, opcode_of, count, reached):
    """@count packets, some of which must end up in each of @reached; the QP is connected anew whenever
    it went into the error state."""
    qp = options.held()
    sent = 0
    before = fates()
    for i in range(count):
        if i % 50 == 49 and qp.state() == "ERR":
            qp.again()
            qp.recv(1, 4096)
        opcode, length = opcode_of(i), length_of(i)
        header = roce.bth(opcode, random_qpn(qp), rng.choice([qp.psn, qp.psn + rng.randrange(-3, 4),
                                                              rng.randrange(1 << 24)]),
                          ackreq=rng.randrange(2), pad=rng.randrange(4) if rng.randrange(3) == 0 else 0,
                          se=rng.randrange(2), migreq=rng.randrange(2), version=0 if rng.randrange(20) else 3,
                          pkey=0xffff if rng.randrange(20) else 0x1234)
        body = random_body(length)
        if rng.randrange(2):		# a plausible RETH of the QP's own memory
            body = roce.reth(qp.va + rng.randrange(-64, qp.size), qp.rkey, rng.randrange(0, 2 * qp.mtu)) + body
        packet = (header + body)[:max(12, 12 + length)] if rng.randrange(10) else (header + body)[:rng.randrange(12)]
        wire.send(packet, good_icrc=rng.randrange(10) > 0)
        sent += 1
    qp.close()
    deadline = 50
    while deadline and sum(fates().values()) - sum(before.values()) < sent:
        wire.receive(0.1)		# the last ones may still be on their way
        deadline -= 1
    after = fates()
    check_eq(sum(after.values()) - sum(before.values()), sent, f"packets accounted for; {before} {after}")
    for name in reached:
        check(after[name] > before[name], "the fuzzer never got as far as", name)


def works():
    qp = options.held()
    qp.request("WRITE_ONLY", roce.reth(qp.va, qp.rkey, 4), payload=b"abcd")
    wire.expect("ACK")
    check_eq(qp.mem(0, 4), b"abcd", "data")
    qp.close()


def every_opcode_and_length():
    """Every opcode with every length from 0 to 64 behind the BTH."""
    fuzz(lambda i: i // 256 % 65, lambda i: i % 256, options.parsed.packets,
         USUAL + ["drop_opcode"])


def known_opcodes():
    known = sorted(roce.NAME)
    # up to what the path's MTU of 4200 lets through with either IP version
    fuzz(lambda i: rng.choice([0, 4, 16, 20, 28, 32, 1024, 1040, 4096, 4112, rng.randrange(4136)]),
         lambda i: rng.choice(known), options.parsed.packets // 4, USUAL)


run([("every_opcode_and_length", every_opcode_and_length), ("a_fresh_QP_works", works),
     ("known_opcodes", known_opcodes), ("a_fresh_QP_still_works", works)])
