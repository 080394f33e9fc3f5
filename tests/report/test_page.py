# SPDX-License-Identifier: Apache-2.0
"""The page as text: nothing from outside, a table behind every plot, alternative texts, the same page each time."""
import html.parser
import re

import theme
from tool import data, page_of, read, run, scratch

EVERYTHING = [data(name) for name in ("samples.jsonl", "chosen.profile")] + [
    f"{label}={data(name)}" for label, name in (("Socket", "coll-none.1.json"), ("stratus", "coll-stratus.1.json"),
                                                ("2.17", "nccl-tests-2.17.txt"), ("2.19", "nccl-tests-2.19.txt"))]
VOID = {"meta", "link", "br", "img", "hr"}


class Page(html.parser.HTMLParser):
    """What the tests ask of the structure."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.references, self.tags, self.stack = [], [], [], []
        self.figures = []  # {"svg": N, "table": N, "title": ..., "desc": ...}
        self.feed(read(path))
        assert not self.stack, f"not closed: {self.stack}"

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if "id" in attributes:
            self.ids.append(attributes["id"])
        self.references += re.findall(r"#([\w.-]+)", " ".join(str(attributes.get(name)) for name in
                                                             ("href", "xlink:href", "clip-path", "style")))
        self.references += (attributes.get("aria-labelledby") or "").split()
        if tag == "figure":
            self.figures.append({"svg": 0, "table": 0, "title": "", "desc": ""})
        elif self.figures and "figure" in self.stack and tag in ("svg", "table"):
            self.figures[-1][tag] += 1
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.stack.pop()

    def handle_endtag(self, tag):
        assert self.stack and self.stack[-1] == tag, (tag, self.stack)
        self.stack.pop()

    def handle_data(self, text):
        if self.stack and self.stack[-1] in ("title", "desc") and "figure" in self.stack:
            self.figures[-1][self.stack[-1]] += text


def test_nothing_comes_from_outside():
    text = read(page_of("all.html", *EVERYTHING))
    assert not re.search(r"https?:|//[a-z]|<script|@import|url\((?!#)|<iframe|<object|<img", text), "asks for something"
    assert "default-src 'none'" in text


def test_structure_is_whole_and_ids_are_unique():
    page = Page(page_of("all.html", *EVERYTHING))
    assert len(page.ids) == len(set(page.ids)), sorted(each for each in page.ids if page.ids.count(each) > 1)[:5]
    missing = {each for each in page.references if not re.fullmatch(r"[0-9a-f]{6}", each)} - set(page.ids)
    assert not missing, missing


def test_every_plot_has_a_table_and_says_what_it_shows():
    page = Page(page_of("all.html", *EVERYTHING))
    assert len(page.figures) >= 9, len(page.figures)
    for figure in page.figures:
        assert figure["svg"] == 1 and figure["table"] == 1, figure
        assert len(figure["title"]) > 10 and len(figure["desc"]) > 60, figure
    for tag, attributes in page.tags:
        if tag == "svg":
            assert attributes["role"] == "img" and attributes["aria-labelledby"], attributes
        if tag == "th":
            assert attributes.get("scope") in ("col", "row"), attributes


def test_numbers_of_the_plot_are_in_the_table_with_units():
    text = read(page_of("one.html", data("nccl-tests-2.17.txt")))
    for part in ("time (us)", "busbw (GB/s)", "size (B)", "from tests/data/report/nccl-tests-2.17.txt"):
        assert part in text, part


def test_matrices_show_the_numbers_of_their_tables():
    """Slowdowns: two places in the matrix, three in the table."""
    text = read(page_of("samples.html", data("samples.jsonl")))
    figure = text[text.index('<figure id="r-allreduce-8"'):]
    figure = figure[:figure.index("</figure>")]
    shown = [float(each) for each in re.findall(r"<text[^>]*>(\d+\.\d\d)</text>", figure)]
    rows = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", figure)]
    slowdowns = [float(row[3]) for row in rows if row]
    assert len(slowdowns) > 10, rows
    for slowdown in slowdowns:
        assert any(abs(slowdown - each) < 0.006 for each in shown), (slowdown, shown)


def test_the_same_inputs_make_the_same_page():
    some = [data("coll-none.1.json"), data("coll-stratus.1.json")]
    assert read(page_of("a.html", *some)) == read(page_of("b.html", *some))


def test_no_colour_of_matplotlib_is_left():
    """All colours are the theme's."""
    text = read(page_of("all.html", *EVERYTHING))
    found = set(re.findall(r"(?:fill|stroke): ?(#[0-9a-fA-F]{3,6})", text[text.index("<main>"):]))
    assert found and found <= set(theme.COLOURS.values()), found


def luminance(colour):
    parts = [int(colour[place:place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_enough():
    """WCAG 2: 4.5 for text, 3 for what is drawn."""
    colours = theme.COLOURS
    for text, behind in [("text", "page"), ("soft", "page"), ("text", "panel"), ("soft", "panel"), ("good", "page"),
                         ("bad", "page"), ("good", "panel"), ("bad", "panel"), ("link", "page")] + [
                             (f"ink{step}", f"heat{step}") for step in range(theme.HEAT_STEPS)]:
        assert contrast(colours[text], colours[behind]) >= 4.5, (text, behind, contrast(colours[text], colours[behind]))
    for line in ["base", "chosen", "best", *(f"line{number}" for number in range(6))]:
        assert contrast(colours[line], colours["page"]) >= 3, line


def test_compare_makes_a_page_too():
    path = scratch("compare.html")
    run("compare", data("coll-none.1.json"), data("coll-stratus.1.json"), "-o", path)
    page = Page(path)
    assert len(page.figures) == 2 and "no regression" in read(path)
