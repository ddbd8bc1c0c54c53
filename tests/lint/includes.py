#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Checks the include graph of kmod/ against layers.txt: includes go down, never up. What tests the
device from inside the kernel, tests/kverbs, includes nothing of it."""

import pathlib
import re
import sys

here = pathlib.Path(__file__).resolve().parent
top = here.parent.parent

layer = {}      # file name without suffix -> rank of its layer
names = []      # the layers' names by rank
never = []      # sets of files that must not include each other
for line in (here / "layers.txt").read_text().splitlines():
    line = line.split("#")[0].strip()
    if line.startswith("never "):
        never.append(set(line.split()[1:]))
    elif line:
        name, files = line.split(":")
        layer.update({f: len(names) for f in files.split()})
        names.append(name)

def includes(path):
    """The headers a file includes in the kernel's build, not those for user space only."""
    kernel = True       # false between #ifndef __KERNEL__ or its #else and the #endif
    depth = 0           # of conditions inside a condition on __KERNEL__
    for line in path.read_text().splitlines():
        directive = re.match(r"\s*#\s*(\w+)\s*(.*)", line)
        if not directive:
            continue
        word, rest = directive.groups()
        if word in ("ifdef", "ifndef") and rest.startswith("__KERNEL__"):
            kernel, depth = word == "ifdef", 1
        elif word.startswith("if") and depth:
            depth += 1
        elif word == "else" and depth == 1:
            kernel = not kernel
        elif word == "endif" and depth:
            depth -= 1
            kernel = kernel or depth == 0
        elif word == "include" and rest.startswith('"') and kernel:
            yield pathlib.PurePath(rest.split('"')[1])


faults = []
sources = sorted((top / "kmod").glob("*.[ch]"))
for path in sources:
    where = path.relative_to(top)
    if path.stem not in layer:
        faults.append(f"{where}: has no layer, add it to tests/lint/layers.txt")
        continue
    for header in includes(path):
        target = header.stem
        if target not in layer:
            faults.append(f"{where}: includes {header}, which has no layer")
        elif layer[target] > layer[path.stem]:
            faults.append(f"{where} ({names[layer[path.stem]]}) includes {header} "
                          f"({names[layer[target]]}): includes go down only")
        for group in never:
            if {path.stem, target} <= group and target != path.stem:
                faults.append(f"{where} includes {header}: these never include each other")

own = sorted((top / "tests" / "kverbs").glob("*.[ch]"))
for path in own:
    for header in includes(path):
        if str(header) not in {p.name for p in own}:
            faults.append(f"{path.relative_to(top)}: includes {header}, which is not of its folder")

for name in sorted(set(layer) - {p.stem for p in sources} - {"uroce-abi"}):
    print(f"# {name} is in layers.txt, but not in kmod/")
print("TAP version 13\n1..1")
print("\n".join("# " + f for f in faults))
print("ok 1 include graph" if not faults else "not ok 1 include graph")
sys.exit(bool(faults))
