# SPDX-License-Identifier: Apache-2.0
"""Rounds of a case as rows of ratios, and these as a Markdown table."""
import statistics

METRICS = {  # what it is, and its unit
    "gbps": ("rate", " Gb/s"), "gbytes_per_s": ("rate", " GB/s"), "busbw_gbs": ("busbw", " GB/s"), "messages_per_s": ("messages", "/s"),
    "time_us": ("time", " us"), "half_trip_us": ("time", " us"), "mean_us": ("mean", " us"), "rare_us": ("p99.9", " us"),
    "longest_us": ("longest", " us"), "cpu_s_per_gb": ("CPU per byte", " CPU-s/GB"), "idle_cpu_percent": ("CPU while idle", " %"),
    "threads": ("threads", ""), "of_allowed": ("of what the NIC and the paths in use allow", "")}


def number(value):
    """Three digits that mean something."""
    if value == 0:
        return "0"
    for digits, limit in ((0, 100), (1, 10), (2, 1), (3, 0.1)):
        if abs(value) >= limit:
            return f"{value:.{digits}f}"
    return f"{value:.2g}"


def median_of(rounds, key, metric):
    values = [each[key][metric] for each in rounds if metric in each.get(key, {})]
    return statistics.median(values) if values else None


def ratios_of(row, rounds):
    """Of each round that has both. The best of several variants is chosen over all rounds: the best of each would be the luckiest."""
    base = row.against
    if isinstance(base, tuple):
        base = max(base, key=lambda key: median_of(rounds, key, row.metric) or 0)
    found = []
    for each in rounds:
        value = each.get(row.subject, {}).get(row.metric)
        other = each.get(base, {}).get(row.metric) if isinstance(base, str) else base
        if value is not None and other:
            found.append(value / other)
    return found


def summarize(case, row, rounds):
    """One line of the table. `rounds`: {variant: metrics} of each, without those that failed."""
    metric, _, size = row.metric.partition(" ")
    what, unit = METRICS[metric]
    labels = {variant.key: variant.label for variant in case.variants}
    against = row.against if isinstance(row.against, tuple) else (row.against,)
    base = " or ".join(labels.get(each, f"{each:g}{unit}" if isinstance(each, (int, float)) else "") for each in against)
    ratios = ratios_of(row, rounds)
    median = statistics.median(ratios) if ratios else None
    met = None
    if row.target and ratios:
        met = median >= row.target[1] if row.target[0] == ">=" else median <= row.target[1]
    return {
        "what": f"{what}{size and f' of {size}'}: {labels[row.subject]}{'' if row.against == 1 else f' / {base}'}", "metric": row.metric, "unit": unit,
        "measured": {label: median_of(rounds, key, row.metric) for key, label in labels.items()},
        "ratios": ratios, "ratio": median, "target": f"{row.target[0]} {row.target[1]:.3g}" if row.target else "", "is_met": met}


def ratio_text(row):
    if row["ratio"] is None:
        return "-"
    return f"{row['ratio']:.2f}" + (f" ({min(row['ratios']):.2f}..{max(row['ratios']):.2f})" if len(row["ratios"]) > 1 else "")


def measured_text(row):
    return ", ".join(f"{label} {number(value)}{row['unit']}" for label, value in row["measured"].items() if value is not None)


def case_lines(case):
    """The figures stand in the first row of each metric."""
    title, told, lines = f"**{case['name']}**: {case['title']}", set(), []
    for row in case["rows"]:
        figures = "" if row["metric"] in told else measured_text(row)
        told.add(row["metric"])
        met = {None: "-", True: "yes", False: "**no**"}[row["is_met"]]
        lines.append(f"| {title} | {figures} | {row['what']} | {ratio_text(row)} | {row['target'] or '-'} | {met} |")
        title = case["name"]
    return lines + [f"| {title} | {error.replace('|', '/')} | - | - | - | - |" for error in case["errors"]]


def markdown(result):
    lines = ["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in result["machine"].items()), "",
             "Ratios are medians of the ratios of each round, with their extremes.", "",
             "| case | measured (medians) | ratio of | is | target | met |", "|---|---|---|---|---|---|"]
    for case in result["cases"]:
        lines += case_lines(case)
    lines += ["", "Repeat a case:", "", *(f"    {case['repeat']}" for case in result["cases"])]
    met = [row["is_met"] for case in result["cases"] for row in case["rows"]]
    lines += ["", f"{met.count(True)} targets met, {met.count(False)} not met, {met.count(None)} rows without a target or a figure; "
              f"wrong values: {result['wrong']}; tried again: {result['retries']}"]
    return "\n".join(lines) + "\n"
