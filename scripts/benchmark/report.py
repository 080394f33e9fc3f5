# SPDX-License-Identifier: Apache-2.0
"""What was measured, as JSON, and the JSON as a Markdown table.

The JSON file:
  {"version": 1, "machine": {NAME: TEXT}, "rounds": N, "is_quick": BOOL, "wrong": N, "cases": [
    {"name", "title", "cluster", "repeat", "error": TEXT or null,
     "variants": [{"key", "label", "command", "retries": N, "rounds": [{METRIC: NUMBER} or {"error": TEXT}]}],
     "rows": [{"name", "what", "measured": [{"label", "value", "unit"}], "ratios": [PER ROUND],
               "ratio": MEDIAN or null, "min", "max", "target": TEXT, "is_met": BOOL or null, "note",
               "repeat"}]}]}
"""
import json
import statistics

from benchmark.case import median_of


def number(value):
    """Three digits that mean something."""
    if value == 0:
        return "0"
    for digits, limit in ((0, 100), (1, 10), (2, 1), (3, 0.1)):
        if abs(value) >= limit:
            return f"{value:.{digits}f}"
    return f"{value:.2g}"


def ratio_text(row):
    if row["ratio"] is None:
        return "-"
    text = f"{row['ratio']:.2f}" if row["unit"] is None else f"{number(row['ratio'])} {row['unit']}".strip()
    if len(row["ratios"]) > 1:
        low, high = (f"{each:.2f}" if row["unit"] is None else number(each) for each in (row["min"], row["max"]))
        text += f" ({low}..{high})"
    return text


def is_met(target, value):
    """`target`: (">=" or "<=", number), or None: only reported."""
    if target is None or value is None:
        return None
    return value >= target[1] if target[0] == ">=" else value <= target[1]


def met_text(row):
    return {None: "-", True: "yes", False: "**no**"}[row["is_met"]]


def summarize_row(row, rounds, repeat):
    """One line of the table, of a Row and {variant: metrics} for each round."""
    ratios = row.ratios(rounds)
    target = row.target
    median = statistics.median(ratios) if ratios else None
    met = is_met(target, median)
    noise = row.noise(rounds)
    if met is False and noise and median >= noise:
        met = None
    measured = []
    for label, key, metric, unit in row.measured:
        measured.append({"label": label, "value": median_of(rounds, key, metric), "unit": unit})
    return {
        "name": row.name, "what": row.what, "unit": row.unit, "measured": measured, "ratios": ratios,
        "ratio": median, "min": min(ratios, default=None), "max": max(ratios, default=None),
        "target": f"{target[0]} {target[1]:g}" if target else "", "is_met": met,
        "note": row.note(rounds) or "", "repeat": repeat}


def measured_text(row):
    parts = []
    for each in row["measured"]:
        value = "failed" if each["value"] is None else f"{number(each['value'])} {each['unit']}".strip()
        parts.append(f"{each['label']} {value}")
    return ", ".join(parts)


def markdown(result):
    lines = ["| | |", "|---|---|"]
    lines += [f"| {name} | {text} |" for name, text in result["machine"].items()]
    lines += ["", "Ratios are medians of the ratios of each round, with their extremes.", "",
              "| case | measured (medians) | ratio | is | target | met |", "|---|---|---|---|---|---|"]
    for case in result["cases"]:
        title = f"**{case['name']}**: {case['title']}"
        for row in case["rows"]:
            note = f"; {row['note']}" if row["note"] else ""
            lines.append(f"| {title} | {measured_text(row)}{note} | {row['what']} | {ratio_text(row)} "
                         f"| {row['target'] or '-'} | {met_text(row)} |")
            title = f"{case['name']}"
        if case["error"]:
            lines.append(f"| {title} | {case['error'].replace('|', '/')} | - | - | - | - |")
    lines += ["", "Repeat a case:", ""]
    lines += [f"    {case['repeat']}" for case in result["cases"]]
    lines += failures(result)
    met = [row["is_met"] for case in result["cases"] for row in case["rows"]]
    lines += ["", f"{met.count(True)} targets met, {met.count(False)} not met, {met.count(None)} rows without a "
              f"target or a figure; wrong values: {result['wrong']}"]
    return "\n".join(lines) + "\n"


def failures(result):
    """What went wrong in single rounds, and what had to be tried again."""
    lines = []
    for case in result["cases"]:
        for variant in case["variants"]:
            errors = [each["error"] for each in variant["rounds"] if "error" in each]
            if errors:
                lines.append(f"- {case['name']}, {variant['label']}: {len(errors)} of {len(variant['rounds'])} "
                             f"rounds failed: {errors[0]}")
            if variant["retries"]:
                lines.append(f"- {case['name']}, {variant['label']}: ended with NCCL's \"message truncated\" "
                             f"{variant['retries']} times, and was tried again")
    return ["", "Failures:", "", *lines] if lines else []


def write_json(result, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(result, indent=1) + "\n")
