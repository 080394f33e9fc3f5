# SPDX-License-Identifier: Apache-2.0
"""What `stratus-tune verify-ab --json` prints."""
import redact
from document import Section, Table
from points import BYTES_MAX, TIME_US_MAX, TITLES, number_text, operation_of, percent_text, size_text

MARKS = {"slower": "bad", "faster": "good"}


def is_verification(value):
    return isinstance(value, dict) and "points" in value and "geomean_ratio" in value


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


def collective_of(node):
    operation = operation_of(node.get("collective").text(64))
    if not operation:
        node.get("collective").fail("is not a known collective")
    return TITLES[operation]


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
