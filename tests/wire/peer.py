# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A peer made of packets: plays the other end of a QP that rc-test --hold connected to it.

Runs in a network namespace joined to the device's by a veth pair and without an RDMA device of
its own. `Wire` sends and receives frames, `Held` is the QP under test and its process.
"""
import json
import os
import random
import select
import socket
import struct
import subprocess
import time

import roce
from tap import check

PEER_QPN = 0x4242
FIRST_PSN, OWN_PSN = 0xfffff0, 0xfffff8	# the peer's and the QP's, near the wrap
PATIENCE = 10 * int(os.environ.get("time_scale", "1"))

STATE = ["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"]
# enum ibv_wc_status
SUCCESS, LOC_LEN_ERR, LOC_QP_OP_ERR, LOC_PROT_ERR, WR_FLUSH_ERR, BAD_RESP_ERR = 0, 1, 2, 4, 5, 7
REM_INV_REQ_ERR, REM_ACCESS_ERR, REM_OP_ERR, RETRY_EXC_ERR, RNR_RETRY_EXC_ERR = 9, 10, 11, 12, 13


class Got:
    """One received packet, taken apart as far as every RoCE v2 packet goes."""

    def __init__(self, ip: bytes):
        self.ip = ip
        self.version = ip[0] >> 4
        udp = 20 if self.version == 4 else 40
        self.src = socket.inet_ntop(*((socket.AF_INET, ip[12:16]) if self.version == 4 else
                                      (socket.AF_INET6, ip[8:24])))
        self.sport, self.dport, self.udp_len = struct.unpack_from(">HHH", ip, udp)
        self.udp = ip[udp + 8:udp + self.udp_len]
        (self.opcode, flags, self.pkey, qpn, apsn) = struct.unpack_from(">BBHII", self.udp)
        self.se, self.migreq, self.pad, self.tver = flags >> 7, flags >> 6 & 1, flags >> 4 & 3, flags & 15
        self.fecn_becn, self.qpn_reserved, self.qpn = qpn >> 30, qpn >> 24 & 0x3f, qpn & 0xffffff
        self.ackreq, self.psn_reserved, self.psn = apsn >> 31, apsn >> 24 & 0x7f, apsn & 0xffffff
        self.body = self.udp[12:-4]		# headers behind the BTH, payload, padding
        self.icrc = self.udp[-4:]

    @property
    def icrc_good(self):
        return roce.icrc(self.ip[:-4]) == self.icrc

    @property
    def name(self):
        return roce.NAME.get(self.opcode, hex(self.opcode))

    def aeth(self):
        """(syndrome, MSN) of a response."""
        value, = struct.unpack_from(">I", self.body)
        return value >> 24, value & 0xffffff

    def __repr__(self):
        return f"<{self.name} psn {self.psn:#x} {len(self.body)} bytes {self.body[:16].hex()}>"


class Wire:
    """Frames on @iface between @own and the device's @address (both IPv4 or both IPv6)."""

    def __init__(self, iface, device_mac, own, address, seed=1):
        self.own, self.address = own, address
        self.rng = random.Random(seed)
        self.family = 0x86dd if ":" in own else 0x0800
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(self.family))
        self.socket.bind((iface, self.family))
        own_mac = self.socket.getsockname()[4]
        self.ether = bytes.fromhex(device_mac.replace(":", "")) + own_mac + struct.pack(">H", self.family)
        # swallows what the device sends, or the kernel would answer with ICMP
        self.sink = socket.socket(socket.AF_INET6 if ":" in own else socket.AF_INET, socket.SOCK_DGRAM)
        self.sink.bind((own, roce.PORT))
        self.sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

    def send_ip(self, ip: bytes):
        self.socket.send(self.ether + ip)

    def send(self, packet: bytes, **kwargs):
        """@packet: from the BTH to the padding."""
        kwargs.setdefault("src", self.own)
        self.send_ip(roce.build(kwargs.pop("src"), self.address, packet, **kwargs))

    def receive(self, seconds=PATIENCE):
        """The device's next packet, None when none comes in time."""
        deadline = time.monotonic() + seconds
        while True:
            left = max(0, deadline - time.monotonic())
            if not select.select([self.socket], [], [], left)[0]:
                return None
            frame = self.socket.recv(65536)
            ip = frame[14:]
            if self.family == 0x0800:
                ip = ip[:struct.unpack_from(">H", ip, 2)[0]]
                if len(ip) < 40 or ip[9] != 17 or frame[:6] == self.ether[:6]:
                    continue
                udp = 20
            else:
                if len(ip) < 60 or ip[6] != 17 or frame[:6] == self.ether[:6]:
                    continue
                ip = ip[:40 + struct.unpack_from(">H", ip, 4)[0]]
                udp = 40
            if struct.unpack_from(">H", ip, udp + 2)[0] == roce.PORT:
                return Got(ip)

    def expect(self, *names, seconds=PATIENCE):
        """The next packet, which must be one of @names."""
        got = self.receive(seconds)
        check(got is not None, "no packet, wanted", names)
        check(got.name in names, "got", got, "wanted", names)
        check(got.icrc_good, "bad ICRC", got)
        return got

    def drain(self):
        """Throw away what has arrived."""
        while self.receive(0):
            pass


class Held:
    """The QP under test; its peer is (wire.own, PEER_QPN), which sends @psn next."""

    def __init__(self, rc_test, dev, gid_index, wire, service="rc"):
        self.wire = wire
        self.psn, self.own_psn = FIRST_PSN, OWN_PSN
        wire.drain()
        self.process = subprocess.Popen(
            [rc_test, "--dev", dev, "--gid-index", str(gid_index), "--hold", wire.own, str(PEER_QPN),
             str(FIRST_PSN), str(OWN_PSN), service],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.info = self._answer()
        self.qpn, self.va, self.rkey = self.info["qpn"], self.info["va"], self.info["rkey"]
        self.mtu, self.size = self.info["mtu"], self.info["size"]

    def again(self):
        """As if new: RESET, and connected with the same numbers."""
        check(self.ask("again")["ok"], "again")
        self.psn = FIRST_PSN
        self.fill(0, self.size, 0)
        self.wire.drain()

    def close(self):
        self.process.stdin.close()
        rc = self.process.wait(60)
        self.process.stdout.close()
        check(rc == 0, "rc-test --hold ended with", rc)

    def _answer(self):
        line = self.process.stdout.readline()
        check(line, "rc-test ended with", self.process.poll())
        return json.loads(line)

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        answer = self._answer()
        check("error" not in answer, words, answer)
        return answer

    def state(self):
        return STATE[self.ask("state")["state"]]

    def recv(self, wr_id, length):
        check(self.ask("recv", wr_id, length)["ok"], "post_recv")

    def post(self, kind, wr_id, length, va=0x10000, rkey=0x77):
        check(self.ask(kind, wr_id, length, va, rkey)["ok"], "post_send")

    def poll(self, queue, count=1):
        return self.ask("poll", queue, count)

    def expect_wc(self, queue, wr_id, status):
        wc = self.poll(queue)[0]
        check((wc["id"], wc["status"]) == (wr_id, status), "completion", wc, "wanted id", wr_id,
              "status", status)
        return wc

    def quiet(self):
        return self.ask("quiet")["quiet"]

    def mem(self, offset, length):
        return bytes.fromhex(self.ask("mem", offset, length)["mem"])

    def fill(self, offset, length, byte):
        self.ask("fill", offset, length, byte)

    # what the peer sends

    def packet(self, opcode, body=b"", psn=None, payload=b"", **bth):
        """BTH, @body, @payload and its padding; takes the next PSN unless told one."""
        if psn is None:
            psn = self.psn
            self.psn = self.psn + 1 & 0xffffff
        bth.setdefault("pad", -len(payload) % 4)
        return roce.bth(roce.OP.get(opcode, opcode), bth.pop("qpn", self.qpn), psn, **bth) + body + \
            roce.padded(payload)

    def request(self, opcode, body=b"", psn=None, payload=b"", ackreq=1, **bth):
        self.wire.send(self.packet(opcode, body, psn, payload, ackreq=ackreq, **bth))

    def respond(self, opcode, psn, syndrome=roce.ACK, msn=1, body=b"", payload=b""):
        aeth = b"" if opcode == "READ_RESP_MIDDLE" else roce.aeth(syndrome, msn)
        self.wire.send(self.packet(opcode, aeth + body, psn, payload))

    def ping(self):
        """The QP is alive and has dealt with everything before: a WRITE of nothing is acknowledged.

        What the QP itself sends meanwhile, a repetition by its timer for example, is passed over.
        """
        psn = self.psn
        self.request("WRITE_ONLY", roce.reth(0, 0, 0))
        while True:
            got = self.wire.receive()
            check(got is not None, "no answer, the QP is in state", self.state())
            if got.name == "ACK" and got.psn == psn and got.aeth()[0] & 0xe0 == 0:
                return
