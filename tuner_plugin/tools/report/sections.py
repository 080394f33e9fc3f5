# SPDX-License-Identifier: Apache-2.0
"""The document of `stratus-tune report`, from what was read."""
import slowdown
from compare import FASTER, SAME, SLOWER, WRONG, limit_of, verdict_of
from document import Document, Fact, Figure, Section, Table
from lines import BEST, DEFAULT, RUN, shapes_of
from points import TITLES, geomean, number_text, percent_text, shape_text, size_text

MARKS = {FASTER: "good", SLOWER: "bad", WRONG: "bad", SAME: "quiet"}
FIGURES_MAX = 40  # shapes that are drawn; more become tables only


def build(sources, title=None, in_place=None):
    """`in_place`: which of the two to show; None: out of place, if there is any."""
    profiles = [source for source in sources if source.profile]
    if in_place is None:
        in_place = not any(not point.in_place for source in sources for point in source.points)
    shapes = shapes_of(sources, in_place, profiles[0] if profiles else None)
    document = Document(title or default_title(shapes, sources), [], [], [])
    if shapes:
        document.lead.append(
            f"Times are of {'in-place' if in_place else 'out-of-place'} operations: per call, the median where calls "
            "were timed one by one or in blocks, else their mean. GB/s are 10^9 bytes a second; bus bandwidth is "
            "nccl-tests' busbw.")
    document.warnings = warnings(sources, profiles) + carried_over(shapes, profiles)
    document.facts = facts(shapes, profiles)
    document.sections += collective_sections(shapes)
    document.sections += slowdown_sections([shape for shape in shapes if shape.group], profiles)
    document.sections += table_sections(sources)
    document.sections += [profile_section(source) for source in profiles]
    document.sections.append(inputs_section(sources))
    return document


def default_title(shapes, sources):
    if shapes:
        names = list(dict.fromkeys(TITLES[shape.operation] for shape in shapes))
        where = list(dict.fromkeys(shape_text((shape.nodes, shape.ppn)) for shape in shapes))
        return f"{', '.join(names)} on {' and '.join(where) if len(where) < 3 else f'{len(where)} shapes'}"
    titles = [section.title for source in sources for section in source.sections]
    if titles:
        return ", ".join(dict.fromkeys(titles))
    return ", ".join(f"Profile {source.label}" for source in sources)


def warnings(sources, profiles):
    found = [f"{source.path}: {note}" for source in sources for note in source.notes]
    wrong = sum(point.wrong or 0 for source in sources for point in source.points)
    if wrong:
        found.append(f"{wrong} elements of results were wrong; see #wrong in the tables")
    if any(source.facts.get("GPU", "").find("emulated") >= 0 for source in sources):
        found.append("Measured on emulated GPUs: ratios mean something, GPU times do not.")
    if len(profiles) > 1:
        found.append(f"Choices are those of {profiles[0].path}; the other profiles are only listed.")
    return found


def carried_over(shapes, profiles):
    """Where the profile's choices were measured on other numbers of nodes."""
    carried = [shape for shape in shapes if profiles and shape.group and profiles[0].profile.is_carried(
        shape.operation, shape.nodes, shape.ppn)]
    if not carried:
        return []
    names = ", ".join(f"{TITLES[shape.operation]} on {shape_text((shape.nodes, shape.ppn))}" for shape in carried[:4])
    return [f"The profile has no table for {names}{' and more' if len(carried) > 4 else ''}: its choices there are those "
            "that its model extrapolates from other numbers of nodes."]


# ---- the summary ----

def facts(shapes, profiles):
    groups = [shape.group for shape in shapes if shape.group]
    of_each = [slowdown_facts("NCCL's default", slowdown.summary(groups, "default"))]
    if profiles:
        of_each.append(slowdown_facts(f"profile {profiles[0].label}", slowdown.summary(groups, "chosen")))
    return [fact for same in zip(*filter(None, of_each)) for fact in same] + run_facts(shapes)


def slowdown_facts(name, summary):
    if not summary:
        return []
    worst, group, size = summary["worst"]
    return [Fact(f"Slowdown against best: {name}", f"{summary['geomean']:.3f}x",
                 f"geometric mean of time over the best cell's, {summary['points']} points"),
            Fact(f"Within 5 % of the best: {name}", f"{summary['within'] * 100:.0f} %", f"of {summary['points']} points"),
            Fact(f"Worst of {name}", f"{worst:.2f}x", f"{TITLES[group.operation]} {size_text(size.bytes)}, "
                 f"{shape_text((group.nodes, group.ppn))}", "bad" if worst > 1.1 else "")]


def run_facts(shapes):
    """Each run against the base of its shape, over all sizes and shapes."""
    ratios = {}
    for shape in shapes:
        for line in shape.lines:
            if line is shape.base or line.role == BEST or shape.base.role == DEFAULT and line.role != RUN:
                continue
            for size, at in line.at.items():
                if size in shape.base.at:
                    ratios.setdefault((line.label, shape.base.label), []).append(
                        (shape.base.at[size].time_us / at.time_us, shape, size))
    found = []
    for (label, base), values in list(ratios.items())[:4]:
        worst, best = min(values, key=lambda each: each[0]), max(values, key=lambda each: each[0])
        mean = geomean([each[0] for each in values])
        found.append(Fact(f"{label} against {base}", f"{mean:.2f}x as fast",
                          f"geometric mean of {len(values)} sizes; {worst[0]:.2f}x ({size_text(worst[2])}) to "
                          f"{best[0]:.2f}x ({size_text(best[2])})",
                          "good" if mean > 1.03 else "bad" if mean < 0.97 else ""))
    return found


# ---- collectives ----

def collective_sections(shapes):
    sections = {}
    for number, shape in enumerate(shapes):
        section = sections.setdefault(shape.operation, Section(TITLES[shape.operation]))
        table = shape_table(shape)
        if number < FIGURES_MAX:
            section.figures.append(Figure(
                f"f{number}", f"{TITLES[shape.operation]}, {shape_text((shape.nodes, shape.ppn))}", shape_alt(shape),
                lambda shape=shape: _plots().draw_shape(shape), table, ", ".join(shape.origins)))
        else:
            section.tables.append(table)
    return list(sections.values())


def _plots():
    """Only where something is drawn: reports in Markdown need no matplotlib."""
    import plots  # pylint: disable=import-outside-toplevel
    return plots


def shape_alt(shape):
    sizes, base = shape.sizes, shape.base
    text = [f"Lines over sizes from {size_text(sizes[0])} to {size_text(sizes[-1])} bytes: bus bandwidth in GB/s"]
    if len(shape.lines) > 1:
        text[0] += f", and how many times as fast as {base.label}"
    for line in shape.lines:
        best = max((each for each in line.at.items() if each[1].busbw), key=lambda each: each[1].busbw, default=None)
        if best:
            text.append(f"{line.label} reaches {number_text(best[1].busbw)} GB/s at {size_text(best[0])}")
        ratios = [(base.at[size].time_us / at.time_us, size) for size, at in line.at.items() if size in base.at]
        if line is not base and ratios:
            text[-1] += (f", {min(ratios)[0]:.2f} times as fast as {base.label} at {size_text(min(ratios)[1])}, "
                         f"{max(ratios)[0]:.2f} times at {size_text(max(ratios)[1])}")
    return ". ".join(text) + "."


def shape_table(shape):
    base, lines = shape.base, shape.lines
    has_cells = any(at.what for line in lines for at in line.at.values())
    columns = ["size (B)"]
    for line in lines:
        columns += [f"{line.label}: time (us)", "busbw (GB/s)"]
        columns += ["noise"] if any(at.noise is not None for at in line.at.values()) else []
        columns += ["#wrong"] if any(at.wrong is not None for at in line.at.values()) else []
        columns += ["what"] if has_cells and line.role != RUN else []
        columns += [] if line is base else ["times as fast"]
    table = Table(f"{TITLES[shape.operation]}, {shape_text((shape.nodes, shape.ppn))}"
                  + (f"; times as fast as {base.label}" if len(lines) > 1 else ""), columns, [])
    for size in shape.sizes:
        row = [size_text(size)]
        for line in lines:
            row += line_cells(table, shape, line, size, has_cells, len(row))
        table.rows.append(row)
    return table


def line_cells(table, shape, line, size, has_cells, column):
    """The cells of one line in the row of a size; marks what is beyond noise."""
    at, base, number = line.at.get(size), shape.base.at.get(size), len(table.rows)
    cells = [number_text(at.time_us, 4) if at else "-", number_text(at.busbw) if at else "-"]
    if any(each.noise is not None for each in line.at.values()):
        cells.append(percent_text(at.noise if at else None))
    if any(each.wrong is not None for each in line.at.values()):
        cells.append("-" if not at or at.wrong is None else str(at.wrong))
        if at and at.wrong:
            table.marks[number, column + len(cells) - 1] = "bad"
    if has_cells and line.role != RUN:
        cells.append(at.what if at else "-")
    if line is not shape.base:
        cells.append(f"{base.time_us / at.time_us:.2f}" if at and base else "-")
        if at and base and line.role != BEST:
            verdict = verdict_of(at.time_us / base.time_us, limit_of(base.noise, at.noise))
            if verdict != SAME:
                table.marks[number, column + len(cells) - 1] = MARKS[verdict]
    return cells


# ---- slowdown against the best measured cell ----

def slowdown_sections(shapes, profiles):
    kinds = dict.fromkeys((shape.operation, shape.ppn) for shape in shapes)
    section = Section("Slowdown against best", [
        "Time as a multiple of the best measured cell's, at each size and number of nodes: 1.00 is as good as it gets. "
        "Of equal cells the best is best by luck as well, so a few percent are no loss."])
    for operation, ppn in kinds:
        of_kind = [shape for shape in shapes if (shape.operation, shape.ppn) == (operation, ppn)]
        some = [shape.group for shape in of_kind]
        if all(len(size.cells) < 2 for group in some for size in group.sizes):
            continue
        origins = dict.fromkeys(origin for shape in of_kind for origin in shape.origins)
        section.figures.append(slowdown_figure(operation, ppn, some, profiles, ", ".join(origins)))
    return [section] if section.figures else []


def slowdown_figure(operation, ppn, groups, profiles, origin):
    nodes = sorted(group.nodes for group in groups)
    sizes = sorted({size.bytes for group in groups for size in group.sizes})
    panels, rows = [], []
    whiches = [("default", "NCCL's default")] + ([("chosen", f"profile {profiles[0].label}")] if profiles else [])
    for which, name in whiches:
        values = {}
        for group in groups:
            for size in group.sizes:
                value = size.slowdown(getattr(size, which))
                if value is not None:
                    values[nodes.index(group.nodes), sizes.index(size.bytes)] = value
        panels.append((name, values))
    for group in sorted(groups, key=lambda each: each.nodes):
        for size in group.sizes:
            rows.append(slowdown_row(group, size, bool(profiles)))
    columns = ["nodes", "size (B)", "NCCL's default", "time (us)", "slowdown"]
    columns += ["profile", "time (us)", "slowdown"] if profiles else []
    columns += ["best cell", "time (us)", "cells measured"]
    known = [value for _, values in panels for value in values.values()]
    alt = f"Heat map of {len(sizes)} sizes by {len(nodes)} node counts. " + " ".join(
        f"{name}: from {min(values.values()):.2f} to {max(values.values()):.2f}." for name, values in panels if values)
    title = f"Slowdown against best: {TITLES[operation]}, {ppn} rank{'s' if ppn != 1 else ''} per node"
    return Figure(f"r-{operation}-{ppn}", title, alt if known else "Nothing was measured.",
                  lambda: _plots().draw_slowdown(panels, sizes, [str(each) for each in nodes]),
                  Table(title, columns, rows), origin)


def slowdown_row(group, size, has_profile):
    def cells(measured):
        if measured is None:
            return ["not measured", "-", "-"]
        return [str(measured.cell), number_text(measured.time_us, 4), f"{size.slowdown(measured):.3f}"]
    row = [str(group.nodes), size_text(size.bytes), *cells(size.default)]
    if has_profile:
        chosen = cells(size.chosen)
        row += [size.choice if size.chosen else f"{size.choice}: not measured", *chosen[1:]]
    return [*row, *cells(size.best)[:2], str(len(size.cells))]


# ---- tables, profiles, inputs ----

def table_sections(sources):
    """Of formats that are shown as tables; with the name of the input where there are several."""
    found = [(source, section) for source in sources for section in source.sections]
    if len(found) > 1:
        for source, section in found:
            section.title += f": {source.label}"
    return [section for _, section in found]


def profile_section(source):
    profile = source.profile.shown
    rows = []
    for table in profile["tables"]:
        for row in table["rows"]:
            high = "and more" if row["bytes_hi"] is None else f"to under {size_text(row['bytes_hi'])}"
            channels = str(row["channels"]) if row["channels"] else "NCCL's"
            over, gain = "not known", "-"
            if "over_algo" in row:
                over = f"{row['over_algo']} {row['over_proto']}"
                gain = f"{(row['default_us'] / row['choice_us'] - 1) * 100:.1f} %" if row["choice_us"] else "-"
            rows.append([TITLES[table["collective"]], str(table["nodes"]), str(table["ppn"]),
                         f"{size_text(row['bytes_lo'])} {high}", row["algo"], row["proto"], channels,
                         size_text(row["chunk_bytes"]) if row["chunk_bytes"] else "NCCL's", over, gain])
    section = Section(f"Profile {profile['meta']['id']}", [
        f"From {source.path}, hash {profile['hash']}. Where it has no row, the choice is NCCL's own."])
    net = [[key, str(value)] for key, value in profile.get("net", {}).items() if value]
    if net:
        section.tables.append(Table("Links", ["setting", "value"], net))
    early = [[key, str(value)] for key, value in profile.get("env", {}).items() if value]
    if early:
        section.tables.append(Table("Settings of NCCL", ["variable", "value"], early))
    if rows:
        section.tables.append(Table("Choices", ["collective", "nodes", "ranks per node", "sizes", "algorithm",
                                                "protocol", "channels at most", "chunk", "measured against", "gain at least"],
                                    rows, words=9))
    return section


def inputs_section(sources):
    rows, how = [], []
    for source in sources:
        said = "; ".join(f"{name} {value}" for name, value in source.facts.items())
        rows.append([source.path, source.label, source.kind, str(len(source.points)), source.sha256[:12], said])
        if source.command:
            how.append([source.path, "command", " ".join(source.command)])
        how += [[source.path, name, value] for name, value in source.environment.items()]
    section = Section("Inputs", tables=[
        Table("Files", ["file", "label", "format", "measurements", "SHA-256 begins", "facts"], rows, words=6)])
    if how:
        section.paragraphs.append("Of command lines and environments only what explains a measurement is shown; what is "
                                  "or looks like a secret was removed.")
        section.tables.append(Table("How they were made", ["file", "what", "value"], how, words=3))
    return section
