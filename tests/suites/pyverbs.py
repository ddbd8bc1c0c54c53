#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Compare a run of rdma-core's pyverbs tests with what is expected.

usage: pyverbs.py EXPECT < OUTPUT

EXPECT has a line "NAME RESULT" per test, RESULT one of ok, skip, fail. A test that does worse than
expected fails here; one that does better passes, with a note to improve the file. Tests for one
vendor's devices are left out. Prints TAP.
"""
import re
import sys

RANK = {"fail": 0, "skip": 1, "ok": 2}
WORD = {"ok": "ok", "FAIL": "fail", "ERROR": "fail", "skipped": "skip"}
OTHER_DEVICES = re.compile(r"^tests\.test_(mlx5|efa|cuda)")
START = re.compile(r"^(test\w+) \((tests\.[\w.]+)\)")
END = re.compile(r"\b(ok|FAIL|ERROR|skipped)(?: (['\"].*))?$")


def read_results(lines):
    """NAME -> (result, reason); a test's verdict may stand lines below its name."""
    results, name = {}, None
    for line in lines:
        line = line.rstrip("\n")
        start = START.match(line)
        if start:
            name = start.group(2) if start.group(2).endswith(start.group(1)) else \
                start.group(2) + "." + start.group(1)
        end = END.search(line)
        if name and end and not OTHER_DEVICES.match(name):
            results[name] = (WORD[end.group(1)], end.group(2) or "")
            name = None
    return results


def read_expected(path):
    with open(path, encoding="utf-8") as file:
        lines = (line.split("#")[0].split() for line in file)
        return dict(words for words in lines if words)


def main():
    expected = read_expected(sys.argv[1])
    results = read_results(sys.stdin)
    bad = 0
    names = sorted(set(expected) | set(results))
    for number, name in enumerate(names, 1):
        got, reason = results.get(name, ("fail", "did not run, or did not end"))
        want = expected.get(name, "ok")
        worse = RANK[got] < RANK[want]
        bad += worse
        note = f" # SKIP {reason}" if got == "skip" and not worse else ""
        print(f"{'not ok' if worse else 'ok'} {number} {name}{note}")
        if worse:
            print(f"# expected {want}, got {got} {reason}")
        elif RANK[got] > RANK[want]:
            print(f"# better than expected ({want}): write '{name} {got}' into the file")
    count = {word: sum(r[0] == word for r in results.values()) for word in RANK}
    print(f"# {count['ok']} ok, {count['skip']} skipped, {count['fail']} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
