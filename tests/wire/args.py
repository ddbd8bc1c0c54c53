# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Options that the wire tests share; ktest/wire.sh gives them."""
import argparse
import json
import re
import subprocess

import peer


class Options:
    def __init__(self, parsed):
        self.parsed = parsed
        self.dev, self.stranger = parsed.dev, parsed.stranger
        self.qp = None
        self.service = "rc"
        self.wire = peer.Wire(parsed.iface, parsed.mac, parsed.own, parsed.address)

    def held(self):
        return peer.Held(self.parsed.rc_test, self.dev, self.parsed.gid_index, self.wire, self.service)

    def with_qp(self, test):
        """@test(qp) as a function without arguments. One process serves all of them (starting it is
        slow): its QP is reset and connected anew each time. A failed test's is not used again."""
        def wrapped():
            if self.qp is None:
                self.qp = self.held()
            else:
                self.qp.again()
            qp, self.qp = self.qp, None
            try:
                test(qp)
            except Exception:
                qp.close()
                raise
            self.qp = qp
        return wrapped

    def end(self):
        """A last test: the process that held the QP ends well."""
        if self.qp:
            self.qp.close()

    def counters(self):
        """The port's, by netlink: sysfs of another network namespace does not have them."""
        out = subprocess.run(["rdma", "-j", "statistic", "show", "link", f"{self.dev}/1"], check=True,
                             capture_output=True, text=True).stdout
        return json.loads(out)[0]

    def counter(self, name):
        return self.counters()[name]

    def wants(self, name):
        return re.search(self.parsed.filter, name) is not None


def parse(add=None):
    """@add: adds options to the parser."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rc-test", required=True, help="path of the program")
    parser.add_argument("--dev", required=True, help="device under test")
    parser.add_argument("--gid-index", required=True, type=int)
    parser.add_argument("--address", required=True, help="its IP address")
    parser.add_argument("--mac", required=True, help="its MAC address")
    parser.add_argument("--iface", required=True, help="our interface")
    parser.add_argument("--own", required=True, help="our IP address, the peer's")
    parser.add_argument("--stranger", required=True, help="another one, nobody's peer")
    parser.add_argument("--filter", default="", help="regular expression for test names")
    parser.add_argument("--seed", type=int, default=1)
    if add:
        add(parser)
    return Options(parser.parse_args())
