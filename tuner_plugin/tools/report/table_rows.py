# SPDX-License-Identifier: Apache-2.0
"""Rows of nccl-tests' tables, found in lines of a log: behind any prefix, and with foreign text where it can stand.

nccl-tests and stratus-coll print a row in pieces: the first columns, a group of columns for each placement, the end of the
line. What another process prints meanwhile stands between two pieces, with or without an end of line of its own."""
import re

from problem import Problem

TIMES = ("time", "cputime")
KNOWN = {*TIMES, "algbw", "busbw", "error", "#wrong", "i_min", "i_max", "i_p99", "i_cv%"}
# Blanks that nccl-tests print where a placement was not measured: 33 (v2.17.6 src/util.cu). More than between columns.
BLANK_GROUP = 30

# A whole number ends before a date or a time of day that another process printed right behind it.
_WHOLE = r"\d+?(?=\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|[^\d.]|$)"
_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|-?nan|-?inf"
_TYPES = r"u?int(?:8|32|64)|half|float|double|bfloat16|fp?8_?e[45]m[23]|char|uchar"
_REDOPS = "sum|prod|max|min|avg|mulsum|none|all"
_WORD = r"[A-Za-z]\w*"
CELLS = {"size": rf"-?{_WHOLE}", "count": rf"-?{_WHOLE}", "type": rf"{_TYPES}|{_WORD}", "redop": rf"{_REDOPS}|{_WORD}",
         "root": rf"-1|{_WHOLE}", "#wrong": rf"N/A|{_WHOLE}", "error": rf"N/A|{_NUMBER}", "algbw": r"-?\d+\.\d+",
         "busbw": r"-?\d+\.\d+"}
HEADING = re.compile(r"#\s+size\s+count\s(?:.*\s)?busbw\b.*$")
ROW = re.compile(rf"(?<![\w.])-?\d+\s+-?\d+\s+(?:{_TYPES})")
# Of a type that is not known here, where the row begins the line.
PLAIN_ROW = re.compile(rf"^\s*(-?\d+\s+-?\d+\s+{_WORD}\s)")
TIMESTAMP = re.compile(r"\s+\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


TEXTS = ("type", "redop")


def is_number(word):
    return re.fullmatch(rf"{_NUMBER}|N/A", word) is not None


def row_start(line):
    """Where a row begins in a line; None: no row begins in it."""
    if found := ROW.search(line):
        return found.start()
    found = PLAIN_ROW.match(line)
    return found.start(1) if found else None


class Row:
    """What of a row has been read. `bodies` are the groups' words, None for one that was left blank."""

    def __init__(self, line, first):
        self.line, self.first, self.bodies = line, first, []
        self.more = 0  # numbers behind, which are no whole group
        self.is_begun = False  # the first columns are there

    def words(self):
        return len(self.first) + sum(len(body) for body in self.bodies if body) + self.more


class Columns:
    """What the words of a row mean, by its table's heading."""

    def __init__(self, words):
        starts = [place for place, word in enumerate(words) if word in TIMES]
        if not starts or len(starts) > 2:
            raise Problem(f"a heading with {len(starts)} columns of times; nccl-tests has one or two")
        self.first = words[:starts[0]]
        end = starts[1] if len(starts) == 2 else len(words)
        self.group = [word for word in words[starts[0]:end] if word in KNOWN]
        self.groups = len(starts)
        if "size" not in self.first or "busbw" not in self.group:
            raise Problem("a heading without the columns size and busbw")
        self.has_timestamp = words[-1] == "timestamp"
        self.count = len(self.first) + self.groups * len(self.group)
        self.first_piece = re.compile(r"\s+".join(f"({CELLS.get(name, self._other)})" for name in self.first))
        self.group_piece = re.compile("".join(rf"\s+({CELLS.get(name, _NUMBER)})" for name in self.group))

    _other = r"\S+"

    def begin(self, line, start, number):
        """The row that begins there: all of it, or as many pieces as the line has."""
        found, words = self.first_piece.match(line, start), line[start:].split()
        row = Row(number, list(found.groups()) if found else words[:len(self.first)])
        row.is_begun = found is not None
        if found:
            blanks = re.compile(r"\s*").match(line, found.end())
            if self.groups == 2 and len(blanks.group()) >= BLANK_GROUP:
                row.bodies.append(None)
            self.go_on(row, line, found.end())
        if not self.is_whole(row) and len(words) == self.count and sum(map(is_number, words)) >= self.count - len(TEXTS) - 1:
            # A word is no number: whoever takes the row tells which.
            row.first, row.more = words[:len(self.first)], 0
            row.bodies = [words[place:place + len(self.group)] for place in range(len(self.first), self.count, len(self.group))]
        return row

    def go_on(self, row, line, start):
        """Takes the groups that follow; the rest of the line is foreign, unless it goes on with numbers."""
        while len(row.bodies) < self.groups and (found := self.group_piece.match(line, start)):
            row.bodies.append(list(found.groups()))
            start = found.end()
        if self.has_timestamp and (found := TIMESTAMP.match(line, start)):
            start = found.end()
        numbers = re.compile(rf"(?:\s+(?:{_NUMBER}|N/A)(?=\s|$))*").match(line, start)
        row.more = len(numbers.group().split())

    def next_piece(self, line):
        """Where the next group of a broken row begins, behind any prefix; None: nowhere."""
        found = self.group_piece.search(line)
        return found.start() if found else None

    def is_broken(self, row):
        """The rest of it may follow in another line."""
        return row.is_begun and len(row.bodies) < self.groups and not row.more

    def is_whole(self, row):
        return len(row.bodies) == self.groups and not row.more

    def why_not(self, row):
        return f"a row of {row.words()} columns under a heading of {self.count}"
