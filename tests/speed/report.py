#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Medians, spread and ratios of what tests/bench measured.

usage: report.py FOLDER
Reads results.txt (lines "PLACE CPU ROUND DEVICE NAME VALUE"), writes table.md, table.json and a chart
for each place and CPU.
"""
import collections
import json
import os
import statistics
import subprocess
import sys

UNITS = {"latency": "us", "bandwidth": "MiB/s", "rate": "1/s", "copy": "MiB/s"}
DEVICES = ("rxe", "siw", "uroce")


def unit_of(name):
    return next(unit for word, unit in UNITS.items() if word in name)


def read(path):
    """{(place, cpu): {name: {device: [values]}}}; a value that failed is left out but leaves its key."""
    found = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(list)))
    with open(path, encoding="ascii") as lines:
        for line in lines:
            place, cpu, _, device, name, value = line.split()
            values = found[place, cpu][name][device]
            if value != "failed":
                values.append(float(value))
    return found


def summary(values):
    return {"median": statistics.median(values), "low": min(values), "high": max(values), "rounds": len(values)}


def ratio(name, own, other):
    """How many times better own is than other."""
    if not own or not other:
        return None
    return other["median"] / own["median"] if "latency" in name else own["median"] / other["median"]


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def cell(entry):
    if not entry:
        return "-"
    return f"{number(entry['median'])} ({number(entry['low'])} to {number(entry['high'])})"


def table(place, cpu, names):
    title = {"one": "One device with itself, two CPUs", "wire": "Two VMs of one CPU each, an emulated network"}[place]
    lines = [f"### {title}; CPU profile {cpu}", "", "| | unit | rdma_rxe | siw | uroce | over rxe | over siw |",
             "|---|---|---|---|---|---|---|"]
    facts = []
    for name, devices in names.items():
        entry = {device: summary(values) for device, values in devices.items() if values}
        facts.append({"place": place, "cpu": cpu, "name": name, "unit": unit_of(name), "devices": entry})
        if "reference" in devices:
            continue
        own = entry.get("uroce")
        times = [ratio(name, own, entry.get(device)) for device in ("rxe", "siw")]
        facts[-1]["over rxe"], facts[-1]["over siw"] = times
        lines.append(f"| {name} | {unit_of(name)} | " + " | ".join(cell(entry.get(d)) for d in DEVICES) + " | " +
                     " | ".join(f"{t:.1f}x" if t else "-" for t in times) + " |")
    references = [f"{fact['name']} {number(fact['devices']['reference']['median'])} {fact['unit']}"
                  for fact in facts if "reference" in fact["devices"]]
    if references:
        lines += ["", "For reference: " + ", ".join(references) + "."]
    return lines, facts


def chart(folder, place, cpu, facts):
    """Bars of the ratios over rxe and siw."""
    rows = [f for f in facts if f.get("over rxe")]
    if not rows:
        return
    base = os.path.join(folder, f"{place}-{cpu}")
    with open(base + ".dat", "w", encoding="ascii") as data:
        for fact in rows:
            data.write(f"{fact['name']} {fact['over rxe']} {fact['over siw'] or 0}\n")
    commands = f"""
        set terminal svg size 900,420 font "sans,11" background "white"
        set output "{base}.svg"
        set title "uroce over rdma_rxe and siw, {place}, CPU profile {cpu} (times better)"
        set style data histograms
        set style fill solid 0.8
        set boxwidth 0.9
        set grid ytics
        set yrange [0:*]
        set xtics rotate by -35
        plot "{base}.dat" using 2:xtic(1) title "over rdma_rxe", "" using 3 title "over siw", 1 notitle with lines lc black
    """
    subprocess.run(["gnuplot"], input=commands, text=True, check=True)
    os.remove(base + ".dat")


def main():
    folder = sys.argv[1]
    lines, facts = [], []
    for (place, cpu), names in read(os.path.join(folder, "results.txt")).items():
        text, some = table(place, cpu, names)
        lines += text + [""]
        facts += some
        chart(folder, place, cpu, some)
    with open(os.path.join(folder, "table.md"), "w", encoding="ascii") as out:
        out.write("Median (lowest to highest) of the rounds.\n\n" + "\n".join(lines))
    with open(os.path.join(folder, "table.json"), "w", encoding="ascii") as out:
        json.dump(facts, out, indent=1)


main()
