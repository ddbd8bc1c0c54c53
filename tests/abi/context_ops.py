#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Is struct verbs_context_ops in provider/pabi-NN.hpp that of the installed libibverbs?

libibverbs-dev ships the distribution's own providers as archives, whose relocations tell which
operation lies at which offset of their tables:

    context_ops.py provider/pabi-44.hpp ARCHIVE TABLE [ARCHIVE TABLE ...]

TABLE is the symbol of the archive's table, as siw_context_ops. Fails on any difference, and if
an operation that uroce sets is in none of the tables.
"""
import re
import subprocess
import sys
import tempfile


# What providers call their functions when not after the operation.
OTHER_NAMES = {"free_pd": "dealloc_pd", "notify_cq": "req_notify_cq", "arm_cq": "req_notify_cq"}


def ops_of_header(path):
    """Names of the slots in order, and the names of those with a prototype (that uroce sets)."""
    text = open(path).read()
    body = re.search(r"struct verbs_context_ops \{\n(.*?)\n\};", text, re.S).group(1)
    slots = re.findall(r"(pabi_unused_op) (\w+);|\(\*(\w+)\)\(", body)
    return [unused or used for _, unused, used in slots], [used for _, _, used in slots if used]


def run(*command, cwd=None):
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout


def table_of_archive(archive, table):
    """({offset in bytes: function name}, size in bytes) of an archive's table of operations."""
    with tempfile.TemporaryDirectory() as folder:
        run("ar", "x", archive, cwd=folder)
        for member in run("ar", "t", archive).split():
            symbols = re.findall(r"^([0-9a-f]+) .{7} (\S+)\t([0-9a-f]+) (?:\.hidden )?(\S+)$",
                                 run("objdump", "-t", member, cwd=folder), re.M)
            found = [s for s in symbols if s[3] == table]
            if not found:
                continue
            start, section, size = int(found[0][0], 16), found[0][1], int(found[0][2], 16)
            relocs = re.findall(r"^([0-9a-f]+) R_\w+_64 +(\S+?)(?:\+0x([0-9a-f]+))?$",
                                run("objdump", "-r", "-j", section, member, cwd=folder), re.M)
            functions = {(s[1], int(s[0], 16)): s[3] for s in symbols if int(s[2], 16)}
            result = {}
            for offset, base, addend in relocs:
                name = functions.get((base, int(addend or "0", 16)), base)
                if start <= int(offset, 16) < start + size:
                    result[int(offset, 16) - start] = name
            return result, size
    sys.exit(f"{archive}: no table {table}")


def means(function, operation):
    """Does the name of a provider's function, siw_query_device, fit the operation?"""
    for other, name in OTHER_NAMES.items():
        function = re.sub(rf"_{other}$", f"_{name}", function)
    stem = operation[:-3] if operation.endswith("_ex") else operation
    return re.search(rf"_({operation}|{stem})$", function)


def main():
    slots, used = ops_of_header(sys.argv[1])
    failures, seen = 0, set()
    for archive, table in zip(sys.argv[2::2], sys.argv[3::2]):
        entries, size = table_of_archive(archive, table)
        if size != 8 * len(slots):
            print(f"{table}: {size} bytes, {8 * len(slots)} in the header")
            failures += 1
        for offset, function in sorted(entries.items()):
            name = slots[offset // 8] if offset < 8 * len(slots) else "nothing"
            if not means(function, name):
                print(f"{table}: {function} at {offset:#x}, {name} in the header")
                failures += 1
            seen.add(name)
    for name in used:
        if name not in seen:
            print(f"{name} is in none of the tables")
            failures += 1
    print(f"{len(slots)} operations, {len(seen)} seen in the archives, {failures} differences")
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
