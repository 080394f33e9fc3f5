# SPDX-License-Identifier: Apache-2.0
"""What `scripts/calibrate-demo --json` writes, a section for each cluster, and what `stratus-tune verify-ab --json` prints,
which is a part of it."""
import redact
from document import Section, Table
from points import BYTES_MAX, TIME_US_MAX, TITLES, number_text, operation_of, percent_text, size_text

MET = {True: "yes", False: "no", None: "-"}
MARKS = {"slower": "bad", "faster": "good"}


def is_calibration(value):
    return isinstance(value, dict) and "clusters" in value


def is_verification(value):
    return isinstance(value, dict) and "points" in value and "geomean_ratio" in value


def read_calibration(source, document):
    root = document.root
    source.kind = "scripts/calibrate-demo JSON"
    root.get("version").integer(1, 1)
    for name, text in root.get("machine").items():
        source.facts[redact.text(name)] = redact.text(text.text())
    for cluster in root.get("clusters").each():
        hosts = cluster.get("hosts").integer(1, 1_000_000)
        section = Section(f"Calibration of {hosts} hosts", tables=[summary_table(cluster)])
        for key, title in (("points", "Choices at the sizes measured"), ("validation", "Choices at validation sizes, which the "
                                                                         "profile was fitted without")):
            if cluster.value.get(key):
                section.tables.append(choices_table(title, cluster.get(key)))
        if cluster.has("ab"):
            section.tables.append(ab_table(cluster.get("ab")))
        source.notes += [f"{hosts} hosts: {redact.text(each.text())}" for each in cluster.get("failures").each()]
        source.sections.append(section)


def read_verification(source, document):
    root = document.root
    source.kind = "stratus-tune verify-ab JSON"
    for key in ("profile", "nodes", "ranks", "rounds"):
        source.facts[key] = redact.text(root.get(key).value)
    if root.get("wrong").integer():
        source.notes.append(f"{root.value['wrong']} values were wrong")
    source.sections.append(Section("Profile against NCCL's own choice", [
        f"{root.get('faster').integer()} sizes faster, {root.get('slower').integer()} slower; geometric mean of the ratios "
        f"{number_text(root.get('geomean_ratio').number())}; {root.get('dropped_rows').integer()} rows dropped."],
        tables=[ab_table(root)]))


def summary_table(cluster):
    table = Table("Summary", ["what", "measured", "target", "met"], [], words=2)
    for line in cluster.get("summary").each():
        met = line.get("met").flag() if line.has("met") else None
        if met is not None:
            table.marks[len(table.rows), 3] = "good" if met else "bad"
        table.rows.append([redact.text(line.get("what").text()).strip(), redact.text(line.get("measured").text()),
                           redact.text(line.get("target").text()) or "-", MET[met]])
    return table


def collective_of(node):
    operation = operation_of(node.get("collective").text(64))
    if not operation:
        node.get("collective").fail("is not a known collective")
    return TITLES[operation]


def choices_table(title, points):
    rows = []
    for point in points.each():
        numbers = [number_text(point.get(key).number()) for key in ("slowdown", "default_slowdown")]
        error = number_text(point.get("error").number()) if point.has("error") else "-"
        rows.append([collective_of(point), size_text(point.get("bytes").integer(0, BYTES_MAX)),
                     redact.text(point.get("chosen").text(64)), redact.text(point.get("best").text(64)), *numbers, error])
    return Table(title, ["collective", "size (B)", "chosen", "best", "slowdown against best", "of NCCL's own choice",
                         "standard error"], rows, words=4)


def ab_table(ab):
    table = Table("Profile against NCCL's own choice, alternating runs", [
        "collective", "size (B)", "NCCL's own (us)", "profile (us)", "ratio", "tolerance", "has a row", "verdict"], [])
    for point in ab.get("points").each():
        verdict = redact.text(point.get("verdict").text(64))
        if verdict in MARKS:
            table.marks[len(table.rows), 7] = MARKS[verdict]
        table.rows.append([
            collective_of(point), size_text(point.get("bytes").integer(0, BYTES_MAX)),
            *(number_text(point.get(key).number(0, TIME_US_MAX), 4) for key in ("default_us", "profile_us")),
            number_text(point.get("ratio").number()), percent_text(point.get("tolerance").number()),
            "yes" if point.get("chosen").flag() else "no", verdict])
    return table
