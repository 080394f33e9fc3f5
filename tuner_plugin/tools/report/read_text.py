# SPDX-License-Identifier: Apache-2.0
"""Tables of nccl-tests, every version since 2.0, and of stratus-coll, which has the same columns.

Columns are found by their heading, as releases differ: 2.0 to 2.11 have "error" where later ones count
"#wrong", broadcast has no "redop", all_gather had no "root"; "-I 1" adds i_min, i_max, i_p99 and i_cv%, "-S" a
timestamp. Logs hold other things as well: prefixes of mpirun and srun, lines of NCCL between and within rows."""
import re

import redact
from points import Point, check_time, nccl_text, operation_of
from problem import Problem

PREFIX = re.compile(r"^(?:\[\d+,\d+\]<std(?:out|err)>:\s?|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)\s|\d{1,5}: )+")
NCCL_LINE = re.compile(r"[\w.-]+:\d+:\d+ \[\d+\] (?:[\w.:]+ )?NCCL [A-Z]+.*$|[\w.-]+:\d+:\d+ \[\d+\] .*NCCL WARN.*$")
DEVICE = re.compile(r"^#\s+Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s+(\S+) device\s+\d+ \[[^\]]*\]\s*(.*)$")
PROGRAM = re.compile(r"\b(\w+)_perf\b")
TIMES = ("time", "cputime")
BANDWIDTHS = ("algbw", "busbw")
KNOWN = {*TIMES, *BANDWIDTHS, "error", "#wrong", "i_min", "i_max", "i_p99", "i_cv%"}
# Standard deviation to median absolute deviation, for a normal distribution.
MAD_OF_DEVIATION = 0.6745


def looks_like_table(text):
    return any({"#", "size", "count", "busbw"} <= set(PREFIX.sub("", line).split()) for line in text.splitlines()
               if "busbw" in line)


class Run:
    """One program's part of a log."""

    def __init__(self, operation=None):
        self.operation = operation
        self.ranks, self.hosts = set(), set()
        self.columns = None  # of the table that is being read

    @property
    def shape(self):
        nodes, count = len(self.hosts), len(self.ranks)
        return (nodes, count // nodes) if nodes and count % nodes == 0 else (None, None)


class Columns:
    """What the words of a row mean."""

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


class TextReader:
    def __init__(self, source, operation):
        self.source = source
        self.preset = operation  # of tables that do not say
        self.run = Run(operation)
        self.pending = ""  # the beginning of a row that NCCL's log broke
        self.line = 0
        self.failed_values = 0

    def read(self, text):
        for self.line, line in enumerate(text.splitlines(), 1):
            try:
                self.take_line(line)
            except Problem as problem:
                problem.line = self.line
                raise problem.at(self.source.path)
        if self.pending:
            raise Problem("the file ends within a row", self.source.path, self.line)
        if not self.source.points:
            raise Problem("a table without a row: did the run fail?", self.source.path, self.line)
        if self.failed_values:
            self.source.notes.append(f"the run reported {self.failed_values} values out of bounds: FAILED")

    def take_line(self, line):
        if len(line) > 65536:
            raise Problem("a line of more than 64 KiB: this is no text of nccl-tests")
        line = PREFIX.sub("", line)
        if found := NCCL_LINE.search(line):
            rest = line[:found.start() + self.digits_before_host(found.group(0))]
            if self.pending or re.match(r"^\s*\d+\s+\d+\s", rest):
                self.pending += rest + " "
            return
        if line.lstrip().startswith("#"):
            self.take_remark(line.strip())
        elif self.pending or re.match(r"^\s*-?\d+\s+-?\d+(\s|$)", line):
            self.take_row_text(line)
        else:
            self.take_talk(line)

    def digits_before_host(self, text):
        """How much of "-1node0:4000:4031 [0] NCCL INFO" still belongs to the row that NCCL broke."""
        name = text.partition(":")[0]
        for host in sorted(self.run.hosts, key=len, reverse=True):
            if name.endswith(host):
                return len(name) - len(host)
        return 2 if name.startswith("-1") else 0

    # ---- what stands around the tables ----

    def take_talk(self, line):
        """A command line that a script echoed names the program that follows."""
        found = PROGRAM.search(line)
        if found and operation_of(found.group(1)):
            self.begin_run(operation_of(found.group(1)))

    def begin_run(self, operation=None):
        self.run = Run(operation or self.preset)

    def take_remark(self, line):
        words = line[1:].split()
        if {"size", "count", "busbw"} <= set(words):
            self.run.columns = Columns(words)
        elif found := DEVICE.match(line):
            self.take_device(*found.groups())
        elif found := re.match(r"# Operation: (\S+)", line):
            self.run.operation = operation_of(found.group(1))
        elif found := re.match(r"# Collective test starting: (\S+)", line):
            self.begin_run(operation_of(found.group(1)))
        elif re.match(r"# nThread\s", line):
            if self.run.columns:  # the next program of a log
                self.begin_run()
            self.source.facts.setdefault("settings", redact.text(line[1:].strip()))
        else:
            self.take_fact(line)

    def take_device(self, rank, host, name):
        if self.run.columns:
            self.begin_run(self.run.operation)
        if int(rank) > 10_000_000:
            raise Problem(f"rank {rank}: no such rank")
        self.run.ranks.add(int(rank))
        self.run.hosts.add(host)
        self.source.facts["GPU"] = redact.text(name)

    def take_fact(self, line):
        if found := re.match(r"# stratus-coll: NCCL (\S+)", line):
            self.source.kind = "stratus-coll text"
            self.source.facts["NCCL"] = redact.text(found.group(1))
        elif found := re.match(r"# nccl-tests version (\S+) .*nccl-library=(\d{3,6})\b", line):
            self.source.facts["nccl-tests"] = redact.text(found.group(1))
            self.source.facts["NCCL"] = nccl_text(int(found.group(2)))
        elif found := re.match(r"# Out of bounds values\s*:\s*(\d+)", line):
            self.failed_values += int(found.group(1)[:15])
        elif re.match(r"# Reducing maxBytes", line):
            self.source.notes.append(redact.text(line[1:].strip()))

    # ---- rows ----

    def take_row_text(self, line):
        words = (self.pending + line).split()
        self.pending = ""
        columns = self.run.columns
        if columns is None and len(words) < 8:
            return  # talk that begins with numbers
        if columns is None:
            raise Problem("a row without the heading of its table (the line with size, count, ... busbw)")
        if columns.has_timestamp:
            words = self.drop_timestamp(words)
        prefix, group = len(columns.first), len(columns.group)
        bodies = [words[prefix + place * group:prefix + (place + 1) * group] for place in range(columns.groups)]
        if len(words) == prefix + group and columns.groups == 2:
            bodies = [None, bodies[0]]  # out of place was left blank, as for collectives that have none
        elif len(words) != prefix + columns.groups * group:
            raise Problem(f"a row of {len(words)} columns under a heading of {prefix + columns.groups * group}")
        for place, body in enumerate(bodies):
            if body:
                self.take_point(dict(zip(columns.first, words)), dict(zip(columns.group, body)), place == 1)

    def drop_timestamp(self, words):
        if len(words) > 2 and re.fullmatch(r"\d{4}-\d\d-\d\d", words[-2]):
            return words[:-2]
        return words

    def take_point(self, first, body, in_place):
        time_text = body.get("time", body.get("cputime"))
        if time_text == "N/A":
            return
        size, time_us = self.integer(first["size"], "size"), self.number(time_text, "time")
        if problem := check_time(time_us, "time"):
            raise Problem(problem)
        if size == 0 or time_us == 0:
            return  # nothing was sent: no figure to compare
        if self.run.operation is None:
            raise Problem("the collective of this table is unknown: rename the file to begin with it, as "
                          "in all_reduce.txt, or give --coll")
        nodes, ppn = self.run.shape
        wrong = body.get("#wrong", "N/A")
        spread = self.number(body["i_cv%"], "i_cv%") / 100 if "i_cv%" in body else None
        self.source.points.append(Point(
            source=self.source, line=self.line, operation=self.run.operation, bytes=size, time_us=time_us,
            in_place=in_place, type=first.get("type"), redop=first.get("redop"),
            root=self.integer(first["root"], "root", -1) if "root" in first else None, nodes=nodes, ppn=ppn,
            noise=spread * MAD_OF_DEVIATION if spread is not None else None,
            busbw=self.number(body["busbw"], "busbw"), wrong=None if wrong == "N/A" else int(self.number(wrong, "#wrong"))))

    def integer(self, word, name, low=0):
        if not re.fullmatch(r"-?\d{1,19}", word) or not low <= int(word) < 1 << 62:
            raise Problem(f"{name} must be a whole number of {low} and more, not \"{redact.text(word[:40])}\"")
        return int(word)

    def number(self, word, name):
        if not re.fullmatch(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", word[:64]) or abs(float(word)) > 1e15:
            raise Problem(f"{name} must be a number, not \"{redact.text(word[:40])}\"")
        return float(word)


def read_text(source, text, operation):
    """`operation`: what tables that name none are of; from --coll, or from the name of the file."""
    source.kind = "nccl-tests text"
    TextReader(source, operation).read(text)
