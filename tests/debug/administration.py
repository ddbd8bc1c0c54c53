#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Loads the module and makes links with each allocation failing in turn.

usage: administration.py MODULE NETDEV
"""
import ctypes
import errno
import os
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "wire"))
import tap  # noqa: E402

MODULE, NETDEV = sys.argv[1:]
LINK = "fail0_link"
SHORTAGE = {errno.ENOMEM, errno.ENOBUFS, errno.ENFILE, errno.EFAULT}  # ENFILE: no socket

libc = ctypes.CDLL(None, use_errno=True)
SYS_FINIT_MODULE, SYS_DELETE_MODULE = 313, 176  # x86-64

# rdma_netlink.h
NETLINK_RDMA = 20
RDMA_NL_NLDEV = 5
NEWLINK, DELLINK = 3, 4
ATTR_DEV_INDEX, ATTR_DEV_NAME, ATTR_NDEV_NAME, ATTR_LINK_TYPE = 1, 2, 51, 65
NLM_F_REQUEST, NLM_F_ACK = 1, 4


class Injector:
    """The n-th allocation of this thread, counted from arming."""

    def __init__(self):
        self.file = os.open("/proc/thread-self/fail-nth", os.O_RDWR)

    def arm(self, count):
        os.pwrite(self.file, b"%d" % count, 0)

    def disarm(self):
        """Whether it came to the n-th."""
        try:
            left = int(os.pread(self.file, 16, 0))
        except OSError:  # reading counts, too
            left = 1
        while True:
            try:
                self.arm(0)
                return left == 0
            except OSError:  # and writing
                pass


def each_fails(what, call, restore):
    """@call gives an errno or 0; @restore makes what was before, whatever came of it: with no memory
    left for the answer it may have been done nevertheless."""
    injector = Injector()
    count = done = 0
    more = True
    while more:
        count += 1
        tap.check(count < 5000, what, "has no end")
        injector.arm(count)
        err = call()
        more = injector.disarm()
        if err:
            tap.check(more and err in SHORTAGE, f"{what}, allocation {count}: {os.strerror(err)}")
        else:
            done += 1
        restore()
    tap.check(done, what, "never worked")
    print(f"# {what}: {count - 1} allocations")


def syscall(*args):
    return ctypes.get_errno() if libc.syscall(*args) < 0 else 0


def modinfo(field):
    return subprocess.run(["modinfo", "-F", field, MODULE], capture_output=True, text=True,
                          check=True).stdout.strip()


def loaded():
    return os.path.exists(f"/sys/module/{MODULE}")


class Module:
    def __init__(self):
        self.file = os.open(modinfo("filename"), os.O_RDONLY)
        self.name = MODULE.encode()
        self.options = b""

    def insert(self):
        return syscall(SYS_FINIT_MODULE, self.file, self.options, 0)

    def remove(self):
        return syscall(SYS_DELETE_MODULE, self.name, 0)

    def be_loaded(self, wanted):
        if loaded() != wanted:
            tap.check_eq(self.insert() if wanted else self.remove(), 0, "restoring the module")


def module():
    module = Module()
    module.be_loaded(False)
    each_fails("init_module", module.insert, lambda: module.be_loaded(False))
    module.be_loaded(True)
    each_fails("delete_module", module.remove, lambda: module.be_loaded(True))


def request(sequence, command, *attributes):
    """A netlink message: RDMA_NLDEV_CMD_*, (type, bytes) pairs."""
    body = b""
    for kind, value in attributes:
        body += struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
    return struct.pack("=IHHII", 16 + len(body), RDMA_NL_NLDEV << 10 | command,
                       NLM_F_REQUEST | NLM_F_ACK, sequence, 0) + body


def index_of(link):
    """None when there is no such link."""
    shown = subprocess.run(["rdma", "dev", "show", link], capture_output=True, text=True,
                           check=False).stdout
    return int(shown.split(":")[0]) if shown else None


class Link:
    """On a netlink socket of its own."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_RDMA)
        self.socket.settimeout(60)
        self.index = None
        self.sequence = 0

    def exchange(self, *what):
        """The errno the kernel answers, or that of the system call."""
        self.sequence += 1
        try:
            self.socket.send(request(self.sequence, *what))
            while True:  # answers that could not be read are still there
                answer = self.socket.recv(4096)
                if struct.unpack_from("=I", answer, 8)[0] == self.sequence:
                    return -struct.unpack_from("=i", answer, 16)[0]
        except OSError as error:
            return error.errno

    def add(self):
        return self.exchange(NEWLINK, (ATTR_DEV_NAME, LINK.encode() + b"\0"),
                             (ATTR_NDEV_NAME, NETDEV.encode() + b"\0"),
                             (ATTR_LINK_TYPE, MODULE.encode() + b"\0"))

    def delete(self, index):
        return self.exchange(DELLINK, (ATTR_DEV_INDEX, struct.pack("=I", index)))

    def be_there(self, wanted):
        index = index_of(LINK)
        if wanted and index is None:
            tap.check_eq(self.add(), 0, "restoring the link")
        if not wanted and index is not None:
            tap.check_eq(self.delete(index), 0, "taking the link away")
        tap.check_eq(os.path.exists(f"/sys/class/infiniband/{LINK}"), wanted, "the link is there")
        self.index = index_of(LINK)


def links():
    link = Link()
    each_fails("link add", link.add, lambda: link.be_there(False))
    link.be_there(True)
    each_fails("link delete", lambda: link.delete(link.index), lambda: link.be_there(True))
    link.be_there(False)


tap.run([("each allocation of loading and unloading the module", module),
         ("each allocation of adding and deleting a link", links)])
