# SPDX-License-Identifier: Apache-2.0
"""A report before it is HTML, Markdown or text: sections of paragraphs, figures and tables.

All texts are plain; the renderer escapes them. A figure always has the table of what it shows."""
import dataclasses
import typing


@dataclasses.dataclass
class Table:
    caption: str
    columns: list               # titles; with their unit
    rows: list                  # of lists of texts
    words: int = 1              # so many first columns hold words, the others numbers
    marks: dict = dataclasses.field(default_factory=dict)  # (row, column): "good", "bad" or "quiet"


@dataclasses.dataclass
class Figure:
    name: str                   # unique in the document, letters, digits and -
    title: str
    alt: str                    # what one sees, in a sentence or two
    draw: typing.Callable       # draw() -> matplotlib figure
    table: Table
    origin: str = ""            # which inputs it is of


@dataclasses.dataclass
class Section:
    title: str
    paragraphs: list = dataclasses.field(default_factory=list)
    figures: list = dataclasses.field(default_factory=list)
    tables: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Fact:
    """A figure of the summary."""
    name: str
    value: str
    note: str = ""
    mark: str = ""              # as of tables


@dataclasses.dataclass
class Document:
    title: str
    lead: list                  # paragraphs
    facts: list
    sections: list
    warnings: list = dataclasses.field(default_factory=list)
