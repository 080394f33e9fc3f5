# SPDX-License-Identifier: Apache-2.0
"""The document of `stratus-tune compare`, and its JSON."""
from compare import FASTER, LEAST, SAME, SLOWER, WRONG
from document import Document, Fact, Figure, Section, Table
from points import TITLES, number_text, percent_text, shape_text, size_text
from sections import MARKS, inputs_section


def series_of(comparison):
    """[(name, rows)]: what differs in nothing but the size."""
    found = {}
    for row in comparison.rows:
        point = row.point
        words = [TITLES[point.operation], shape_text(point.shape)]
        words += [str(each) for each in (point.type, point.redop) if each not in (None, "none")]
        words += [f"root {point.root}"] if point.root not in (None, -1) else []
        words += ["in place" if point.in_place else "out of place"]
        if point.cell:
            words.append(f"NCCL's choice ({point.cell})" if point.is_default else str(point.cell))
        found.setdefault(", ".join(words), []).append(row)
    return list(found.items())


def verdict_text(comparison):
    if not comparison.is_regression:
        return "no regression"
    slower, wrong = comparison.count(SLOWER), comparison.count(WRONG)
    return " and ".join([*([f"REGRESSION at {slower} of {len(comparison.rows)} points"] if slower else []),
                         *([f"WRONG VALUES at {wrong} points"] if wrong else [])])


def build(comparison, title=None):
    a, b = comparison.a, comparison.b
    document = Document(
        title or f"{b[0].label} against {a[0].label}",
        [f"A: {', '.join(source.path for source in a)}", f"B: {', '.join(source.path for source in b)}",
         "Ratio is B's time over A's: under 1, B is faster. Noise is sqrt(a^2 + b^2) of both sides' median absolute "
         f"deviations; slower or faster is a difference beyond the larger of {LEAST * 100:.0f} % and twice the noise."],
        summary(comparison), [])
    document.warnings = warnings(comparison)
    for number, (name, rows) in enumerate(series_of(comparison)):
        table = series_table(name, rows)
        section = Section(name)
        if len(rows) > 1:
            section.figures.append(series_figure(number, name, rows, table))
        else:
            section.tables.append(table)
        document.sections.append(section)
    if comparison.only_a or comparison.only_b:
        document.sections.append(one_sided(comparison))
    document.sections.append(inputs_section([*a, *b]))
    return document


def summary(comparison):
    worst = max(comparison.rows, key=lambda row: row.ratio)
    return [
        Fact("Verdict", verdict_text(comparison), "", "bad" if comparison.is_regression else "good"),
        Fact("Points", f"{comparison.count(FASTER)} faster, {comparison.count(SLOWER)} slower, "
             f"{comparison.count(SAME)} same", f"of {len(comparison.rows)}"),
        Fact("Geometric mean of B's time / A's", f"{comparison.geomean:.3f}", "all points"),
        Fact("Worst point", f"{worst.ratio:.3f}", f"{TITLES[worst.point.operation]} {size_text(worst.point.bytes)}, "
             f"{worst.verdict}", MARKS[worst.verdict] if worst.verdict != SAME else "")]


def warnings(comparison):
    found = [f"{source.path}: {note}" for source in [*comparison.a, *comparison.b] for note in source.notes]
    if comparison.has_unknown_noise:
        found.append(f"The noise of some points is not known, so {LEAST * 100:.0f} % decides alone there. Time calls one by "
                     "one (nccl-tests -I 1 -J FILE, stratus-coll --per-iteration --json FILE), or give three and "
                     "more pairs of runs: A B A B A B.")
    return found


def series_table(name, rows):
    table = Table(name, ["size (B)", "A (us)", "B (us)", "ratio", "noise", "limit", "verdict"], [])
    for number, row in enumerate(rows):
        verdict = row.verdict if row.verdict != WRONG else f"{row.wrong} {WRONG}"
        table.rows.append([size_text(row.point.bytes), number_text(row.a_us, 4), number_text(row.b_us, 4),
                           f"{row.ratio:.3f}", percent_text(row.noise), percent_text(row.limit), verdict])
        table.marks[number, 6] = MARKS[row.verdict]
    return table


def series_figure(number, name, rows, table):
    speeds = {row.point.bytes: 1 / row.ratio for row in rows}
    limits = {row.point.bytes: row.limit for row in rows}
    verdicts = {row.point.bytes: row.verdict for row in rows}
    low, high = min(speeds, key=speeds.get), max(speeds, key=speeds.get)
    alt = (f"Points over sizes from {size_text(min(speeds))} to {size_text(max(speeds))} bytes: B is {speeds[low]:.2f} "
           f"times as fast as A at {size_text(low)} and {speeds[high]:.2f} times at {size_text(high)}.")

    def draw():
        import plots  # pylint: disable=import-outside-toplevel
        return plots.draw_comparison(speeds, limits, verdicts)
    return Figure(f"c{number}", f"B's speed against A's: {name}", alt, draw, table)


def one_sided(comparison):
    def texts(keys):
        return [[TITLES[key[0]], size_text(key[1]), "in place" if key[2] else "out of place",
                 ", ".join(str(each) for each in key[4:] if each is not None)] for key in keys]
    rows = [[*row, "A"] for row in texts(comparison.only_a)] + [[*row, "B"] for row in texts(comparison.only_b)]
    return Section("Measured on one side only", tables=[
        Table("Not compared", ["collective", "size (B)", "place", "what", "only in"], rows[:200], words=5)],
        paragraphs=[f"{len(rows)} points; the first 200 are listed."] if len(rows) > 200 else [])


def as_json(comparison):
    rows = []
    for row in comparison.rows:
        point = row.point
        rows.append({
            "coll": point.operation, "bytes": point.bytes, "nodes": point.nodes, "ppn": point.ppn, "type": point.type,
            "redop": point.redop, "in_place": point.in_place, "cell": str(point.cell) if point.cell else None,
            "a_us": row.a_us, "b_us": row.b_us, "ratio": row.ratio, "noise": row.noise, "limit": row.limit,
            "pairs": row.pairs, "wrong": row.wrong, "verdict": row.verdict})
    return {"version": 1, "a": [source.path for source in comparison.a], "b": [source.path for source in comparison.b],
            "is_regression": comparison.is_regression, "faster": comparison.count(FASTER),
            "slower": comparison.count(SLOWER), "same": comparison.count(SAME), "wrong": comparison.count(WRONG),
            "geomean_ratio": comparison.geomean, "only_a": len(comparison.only_a), "only_b": len(comparison.only_b),
            "points": rows}
