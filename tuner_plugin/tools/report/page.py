# SPDX-License-Identifier: Apache-2.0
"""Documents as one HTML page that needs nothing else: no script, no font, no request. Its policy forbids them."""
import html
import io
import re

import plots
import redact
import theme

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def escape(text):
    return html.escape(redact.text(text))


# ---- pictures ----

def svg_of(figure, name, title, alt):
    """The picture as an element of the page: ids of its own, nothing else's styles."""
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    plots.pyplot.close(figure)
    svg = text.getvalue()
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'href="#', f'href="#{name}-', svg)
    svg = svg.replace("url(#", f"url(#{name}-")
    # Hundredths of a point are enough for places; numbers that people read stand between tags.
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d\.\d{2})\d+", r"\1", tag.group(0)), svg)
    box = re.search(r'viewBox="[^"]*"', svg).group(0)
    width = float(box.split()[2])
    head = (f'<svg {box} width="{width * 4 / 3:.0f}" role="img" '
            f'aria-labelledby="{name}-title {name}-alt"><title id="{name}-title">{escape(title)}</title>'
            f'<desc id="{name}-alt">{escape(alt)}</desc>')
    return head + svg[svg.index(">") + 1:]


def svg_file(figure, title, alt):
    """The picture as a file of its own, as a document shows it, on the page's own colour."""
    svg = re.sub(r"\s*\n\s*", "\n", svg_of(figure, "plot", title, alt))
    svg = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font: \1 sans-serif", svg)
    _, _, width, height = re.search(r'viewBox="([^"]*)"', svg).group(1).split()
    background = f'<rect width="{width}" height="{height}" fill="{theme.COLOURS["page"]}"/>'
    fonts = "<style>text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,sans-serif!important}</style>"
    svg = svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" ', 1)
    return svg.replace("</desc>", f"</desc>{fonts}{background}", 1)


def figure_html(figure):
    picture = svg_of(figure.draw(), figure.name, figure.title, figure.alt)
    origin = f"<small>from {escape(figure.origin)}</small>" if figure.origin else ""
    return (f'<figure id="{figure.name}"><figcaption>{escape(figure.title)}{origin}</figcaption>'
            f'<div class="scroll" tabindex="0">{picture}</div><details><summary>Table: {escape(figure.title)}</summary>'
            f"{table_html(figure.table)}</details></figure>")


# ---- tables and texts ----

def table_html(table):
    """May be wider than a telephone: then it scrolls within its own box, which the keyboard reaches."""
    head = "".join(f'<th scope="col"{" class=word" if column < table.words else ""}>{escape(title)}</th>'
                   for column, title in enumerate(table.columns))
    lines = [f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.caption)}"><table>'
             f"<caption>{escape(table.caption)}</caption><thead><tr>{head}</tr></thead><tbody>"]
    for number, row in enumerate(table.rows):
        lines.append("<tr>" + "".join(cell_html(table, number, column, cell) for column, cell in enumerate(row)) + "</tr>")
    lines.append("</tbody></table></div>")
    return "\n".join(lines)


def cell_html(table, number, column, cell):
    classes = [table.marks.get((number, column), ""), "word" if column < table.words else "",
               "long" if len(cell) > 48 else ""]
    names = " ".join(each for each in classes if each)
    attribute = f' class="{names}"' if names else ""
    return f'<th scope="row">{escape(cell)}</th>' if column == 0 else f"<td{attribute}>{escape(cell)}</td>"


def facts_html(facts):
    if not facts:
        return ""
    boxes = []
    for fact in facts:
        note = f'<dd class="note">{escape(fact.note)}</dd>' if fact.note else ""
        boxes.append(f'<div><dt>{escape(fact.name)}</dt><dd class="{fact.mark}">{escape(fact.value)}</dd>{note}</div>')
    return f'<dl class="facts">{"".join(boxes)}</dl>'


def section_html(section, number):
    parts = [f'<section aria-labelledby="s{number}"><h2 id="s{number}">{escape(section.title)}</h2>']
    parts += [f"<p>{escape(each)}</p>" for each in section.paragraphs]
    parts += [figure_html(each) for each in section.figures]
    parts += [table_html(each) for each in section.tables]
    return "\n".join([*parts, "</section>"])


def as_html(document, footer):
    links = "".join(f'<a href="#s{number}">{escape(section.title)}</a>'
                    for number, section in enumerate(document.sections))
    body = [f"<h1>{escape(document.title)}</h1>", *(f"<p>{escape(each)}</p>" for each in document.lead),
            *(f'<p class="warning">{escape(each)}</p>' for each in document.warnings), facts_html(document.facts),
            f'<nav aria-label="Sections">{links}</nav>' if len(document.sections) > 2 else "",
            *(section_html(section, number) for number, section in enumerate(document.sections))]
    content = "\n".join(body)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(document.title)}</title>
<link rel="icon" href="data:,">
<style>
{theme.css()}</style>
</head>
<body>
<main>
{content}
<footer>{escape(footer)}</footer>
</main>
</body>
</html>
"""
