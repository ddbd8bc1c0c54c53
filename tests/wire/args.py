# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Options that the wire tests share; ktest/wire.sh gives them."""
import argparse
import json
import re
import subprocess

import peer
from tap import check_eq


class Options:
    def __init__(self, parsed):
        self.parsed = parsed
        self.dev, self.stranger = parsed.dev, parsed.stranger
        self.wire = peer.Wire(parsed.iface, parsed.mac, parsed.own, parsed.address)

    def held(self, **kwargs):
        return peer.Held(self.parsed.rc_test, self.dev, self.parsed.gid_index, self.wire, **kwargs)

    def with_qp(self, test):
        """@test(qp) as a function without arguments; the QP's process must end well."""
        def wrapped():
            qp = self.held()
            try:
                test(qp)
            finally:
                qp.process.stdin.close()
                rc = qp.process.wait(60)
                qp.process.stdout.close()
            check_eq(rc, 0, "end of rc-test --hold")
        return wrapped

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
