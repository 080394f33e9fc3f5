# SPDX-License-Identifier: Apache-2.0
"""What `scripts/bench --json` writes: a table of its cases, and one for each sweep over sizes. The format is described
in scripts/benchmark/report.py."""
import redact
from document import Section, Table
from points import BYTES_MAX, number_text, size_text

MET = {True: "yes", False: "no", None: "-"}


def is_bench(value):
    return isinstance(value, dict) and "cases" in value and "machine" in value


def read_bench(source, document):
    root = document.root
    source.kind = "scripts/bench JSON"
    root.get("version").integer(1, 1)
    for name, text in root.get("machine").items():
        source.facts[redact.text(name)] = redact.text(text.text())
    wrong = root.get("wrong").integer()
    if wrong:
        source.notes.append(f"{wrong} values were wrong")
    table = Table("Ratios are medians over the rounds, with the smallest and the largest.",
                  ["case", "measured (medians)", "ratio of", "ratio", "smallest", "largest", "target", "met"], [], words=3)
    sweeps = []
    for case in root.get("cases").each():
        name = redact.text(case.get("name").text(256))
        if case.has("error"):
            source.notes.append(f"{name}: {redact.text(case.get('error').text())}")
        for row in case.get("rows").each():
            take_row(table, name, row)
        sweeps += [take_sweep(name, sweep) for sweep in case.get("sweeps").each()]
    met = [row[-1] for row in table.rows]
    source.sections.append(Section("Benchmark", [
        f"{met.count('yes')} targets met, {met.count('no')} not met, {met.count('-')} rows without a target or a figure."],
        tables=[table, *sweeps]))


def optional_number(node):
    return "-" if node.value is None else number_text(node.number(-1e15))


def take_row(table, case, row):
    measured = []
    for each in row.get("measured").each():
        value = optional_number(each.get("value"))
        measured.append(f"{redact.text(each.get('label').text(256))} {'failed' if value == '-' else value} "
                        f"{redact.text(each.get('unit').text(32) if each.has('unit') else '')}".strip())
    met = row.get("is_met").flag() if row.has("is_met") else None
    if met is not None:
        table.marks[len(table.rows), 7] = "good" if met else "bad"
    table.rows.append([case, ", ".join(measured), redact.text(row.get("what").text(256)),
                       *(optional_number(row.get(key)) for key in ("ratio", "min", "max")),
                       redact.text(row.get("target").text(64)) or "-", MET[met]])


def take_sweep(case, sweep):
    rows = [[size_text(point.get("bytes").integer(0, BYTES_MAX)),
             *(optional_number(point.get(key)) for key in ("ratio", "min", "max", "noise_low", "noise_high"))]
            for point in sweep.get("points").each()]
    return Table(f"{case}: {redact.text(sweep.get('name').text(256))}",
                 ["size (B)", "ratio", "smallest", "largest", "noise from", "noise to"], rows)
