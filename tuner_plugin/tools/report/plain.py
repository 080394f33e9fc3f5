# SPDX-License-Identifier: Apache-2.0
"""Documents as Markdown, and as text for terminals. Figures become their tables."""
import re

import redact


def clean(text):
    return redact.text(text).replace("\n", " ")


# ---- text ----

def text_table(table):
    rows = [[clean(cell) for cell in row] for row in [table.columns, *table.rows]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.columns))]
    lines = [clean(table.caption)] if table.caption else []
    for row in rows:
        cells = [cell.ljust(width) if column < table.words else cell.rjust(width)
                 for column, (cell, width) in enumerate(zip(row, widths))]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return lines


def as_text(document):
    lines = [clean(document.title), ""]
    lines += [clean(each) for each in document.lead]
    lines += [f"WARNING: {clean(each)}" for each in document.warnings]
    width = max((len(fact.name) for fact in document.facts), default=0)
    lines += [f"  {clean(fact.name).ljust(width)}  {clean(fact.value)}{'  ' + clean(fact.note) if fact.note else ''}"
              for fact in document.facts]
    for section in document.sections:
        lines += ["", clean(section.title).upper()]
        lines += [clean(each) for each in section.paragraphs]
        for table in [*(figure.table for figure in section.figures), *section.tables]:
            lines += ["", *text_table(table)]
    return "\n".join(lines) + "\n"


# ---- Markdown ----

def escape(text):
    return re.sub(r"([\\`*_<>|\[\]#~])", r"\\\1", clean(text))


def markdown_table(table):
    lines = [escape(table.caption), ""] if table.caption else []
    lines.append("| " + " | ".join(escape(each) for each in table.columns) + " |")
    lines.append("|" + "|".join("---" if column < table.words else "---:" for column in range(len(table.columns))) + "|")
    for number, row in enumerate(table.rows):
        cells = [escape(cell) for cell in row]
        for column, cell in enumerate(cells):
            if table.marks.get((number, column)) == "bad" and cell:
                cells[column] = f"**{cell}**"
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def as_markdown(document):
    lines = [f"# {escape(document.title)}", ""]
    for each in document.lead:
        lines += [escape(each), ""]
    lines += [line for each in document.warnings for line in (f"**Warning:** {escape(each)}", "")]
    lines += [f"- {escape(fact.name)}: **{escape(fact.value)}** {escape(fact.note)}".rstrip() for fact in document.facts]
    for section in document.sections:
        lines += ["", f"## {escape(section.title)}", ""]
        for each in section.paragraphs:
            lines += [escape(each), ""]
        for table in [*(figure.table for figure in section.figures), *section.tables]:
            lines += [*markdown_table(table), ""]
    return "\n".join(lines).rstrip("\n") + "\n"
