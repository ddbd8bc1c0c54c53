# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests as functions, results as TAP."""
import sys
import traceback


class Skip(Exception):
    """Raised by a test that cannot be done here."""


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(map(str, what)))


def check_eq(got, want, what=""):
    if got != want:
        raise AssertionError(f"{what}: got {got!r}, wanted {want!r}")


def run(tests):
    """@tests: (name, function) pairs. Does not return."""
    tests = list(tests)
    failed = 0
    print(f"TAP version 13\n1..{len(tests)}", flush=True)
    for number, (name, function) in enumerate(tests, 1):
        verdict = "ok"
        note = ""
        try:
            function()
        except Skip as skip:
            note = f" # SKIP {skip}"
        except Exception as error:  # whatever it is, it is this test's failure
            verdict = "not ok"
            failed += 1
            if not isinstance(error, AssertionError):
                for line in traceback.format_exc().splitlines():
                    print("#", line)
            for line in str(error).splitlines() or ["no message"]:
                print("#", line)
        print(f"{verdict} {number} {name}{note}", flush=True)
    sys.exit(1 if failed else 0)
