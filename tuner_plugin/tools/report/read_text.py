# SPDX-License-Identifier: Apache-2.0
"""Tables of nccl-tests, every version since 2.0, and of stratus-coll, which has the same columns.

Columns are found by their heading, as releases differ: 2.0 to 2.11 have "error" where later ones count
"#wrong", broadcast has no "redop", all_gather had no "root"; "-I 1" adds i_min, i_max, i_p99 and i_cv%, "-S" a
timestamp. Logs hold other things as well: what launchers and loggers put before each line, tables of several processes, and
text of others between and within rows (table_rows.py). A bad row costs that row, and a note names its line."""
import re

import redact
from points import Point, bus_factor, check_time, nccl_text, operation_of
from problem import Problem, lines_text
from table_rows import HEADING, Columns, row_start

# What changes from line to line in the prefixes that launchers and loggers write: the rest tells which process it is.
STAMP = re.compile(r"(?:[A-Z][a-z]{2},? )?(?:[A-Z][a-z]{2} +\d{1,2} )?\d\d:\d\d:\d\d(?:[.,]\d+)?(?: \d{4}\b)?(?:Z|[+-]\d\d:?\d\d)?"
                   r"|\d{4}[-/]\d\d[-/]\d\d[T ]?|\d{9,}(?:\.\d+)?")
DEVICE = re.compile(r"#\s+Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s+(\S+) device\s+\d+ \[[^\]]*\]\s*(.*)$")
PROGRAM = re.compile(r"\b(\w+)_perf\b")
LINE_MAX = 65536
NO_HEADING = "a row without the heading of its table (the line with size, count, ... busbw)"
NO_OPERATION = "the collective of this table is unknown: rename the file to begin with it, as in all_reduce.txt, or give --coll"
# Whose bus bandwidth is the same factor of the other in all releases.
CHECKED = ("allreduce", "allgather", "reducescatter", "broadcast", "reduce", "alltoall")
ROUNDING_GBS = 0.0051  # half of the last digit that nccl-tests print, and what floating point adds
# Standard deviation to median absolute deviation, for a normal distribution.
MAD_OF_DEVIATION = 0.6745


def looks_like_table(text):
    return any(HEADING.search(line) for line in text.splitlines() if "busbw" in line)


def key_of(prefix):
    """The part of a prefix that stays the same."""
    return " ".join(STAMP.sub("", prefix).split())


class Run:
    """One program's part of a log."""

    def __init__(self, operation=None):
        self.operation = operation
        self.ranks, self.hosts = set(), set()
        self.columns = None  # of the table that is being read
        self.broken = None   # a row that another process's text broke
        self.is_doubted = False

    @property
    def is_complete(self):
        return self.ranks == set(range(len(self.ranks)))

    @property
    def shape(self):
        nodes, count = len(self.hosts), len(self.ranks)
        return (nodes, count // nodes) if nodes and count % nodes == 0 and self.is_complete else (None, None)

    def is_of_others(self, algbw, busbw):
        """The bandwidths are those of another number of ranks: the list of devices is not whole, or not all of them took part."""
        factor = bus_factor(self.operation, self.shape[0] and len(self.ranks))
        if factor is None or self.operation not in CHECKED:
            return False
        return abs(busbw - algbw * factor) > ROUNDING_GBS * (1 + factor)


class TextReader:
    def __init__(self, source, operation):
        self.source = source
        self.preset = operation  # of tables that do not say
        self.runs = {}           # of each process that prints, by what stands before its lines
        self.latest = None       # the run of the latest heading
        self.program = None      # what a command line named, and whose runs know it
        self.informed = set()
        self.line = 0
        self.failed_values = 0
        self.bad = {}            # reason: lines
        self.remarks = ((HEADING, self.take_heading), (DEVICE, self.take_device),
                        (re.compile(r"# Operation: (\w+)"), self.take_operation),
                        (re.compile(r"# Collective test starting: (\w+)"), self.take_start),
                        (re.compile(r"# nThread\s.*"), self.take_settings),
                        (re.compile(r"# stratus-coll: NCCL (\S+)"), self.take_coll_version),
                        (re.compile(r"# nccl-tests version (\S+) .*nccl-library=(\d{3,6})\b"), self.take_tests_version),
                        (re.compile(r"# Out of bounds values\s*:\s*(\d+)"), self.take_failed),
                        (re.compile(r"# Reducing maxBytes.*"), self.take_reduction))

    def read(self, text):
        for self.line, line in enumerate(text.splitlines(), 1):
            self.take_line(line)
        for run in list(self.runs.values()):
            self.give_up(run)
        if not text.endswith("\n"):
            self.check_end(line)
        if not self.source.points:
            reason, lines = min(self.bad.items(), key=lambda item: item[1][0],
                                default=("a table without a row: did the run fail?", [self.line]))
            raise Problem(reason, self.source.path, lines[0])
        for reason, lines in self.bad.items():
            self.source.notes.append(f"left out: {lines_text(lines)}: {reason}")
        if self.failed_values:
            self.source.notes.append(f"the run reported {self.failed_values} values out of bounds: FAILED")

    def leave_out(self, reason, line):
        self.bad.setdefault(reason, []).append(line)

    def take_line(self, line):
        if len(line) > LINE_MAX:
            self.leave_out(f"more than {LINE_MAX >> 10} KiB: this is no text of nccl-tests", self.line)
            return
        for pattern, take in self.remarks if "#" in line else ():
            if found := pattern.search(line):
                take(self.run_of(line[:found.start()]), found)
                return
        start = row_start(line)
        if start is not None:
            self.take_row(line, start)
        elif not self.take_rest(line):
            self.take_talk(line)

    def check_end(self, line):
        """The last line, which has no end: the beginning of a row?"""
        if self.latest and row_start(line) is None and re.search(r"(?:^|\s)\d+(?:\s+\d+(?:\s+[a-z]\w*)?)?\s*$", line):
            self.leave_out("the file ends within a row", self.line)

    # ---- which process ----

    def run_of(self, prefix):
        key = key_of(prefix)
        if key not in self.runs:
            self.begin_run(key)
        return key

    def begin_run(self, key, operation=None):
        if key in self.runs:
            self.give_up(self.runs[key])
        if not operation and key not in self.informed:
            operation = self.program
            self.informed.add(key)
        self.runs[key] = Run(operation or self.preset)

    def run_with_table(self, prefix):
        """The run whose lines begin so; of a row behind foreign text, the latest."""
        run = self.runs.get(key_of(prefix))
        return run if run and run.columns else self.latest

    # ---- what stands around the tables ----

    def take_talk(self, line):
        """A command line that a script echoed names the program that follows."""
        found = PROGRAM.search(line)
        if found and operation_of(found.group(1)) and " NCCL " not in line:
            self.program, self.informed = operation_of(found.group(1)), set()
            for key in [key for key, run in self.runs.items() if not run.broken]:
                self.begin_run(key)

    def take_heading(self, key, found):
        run = self.runs[key]
        self.give_up(run)
        run.columns, self.latest = None, run
        try:
            run.columns = Columns(found.group(0)[1:].split())
        except Problem as problem:
            self.leave_out(problem.text, self.line)
        if run.ranks and not run.is_complete:
            missing = min(set(range(max(run.ranks))) - run.ranks)
            self.source.notes.append(f"line {self.line}: the list of devices above has no rank {missing}: the numbers of nodes and "
                                     "ranks are not known")

    def take_device(self, key, found):
        rank, host, name = found.groups()
        run = self.runs[key]
        if run.columns or int(rank[:9]) in run.ranks:
            self.begin_run(key, run.operation)
        if int(rank[:9]) > 10_000_000:
            self.leave_out(f"rank {rank[:20]}: no such rank", self.line)
            return
        self.runs[key].ranks.add(int(rank))
        self.runs[key].hosts.add(host)
        self.source.facts["GPU"] = redact.text(name)

    def take_operation(self, key, found):
        self.runs[key].operation = operation_of(found.group(1))

    def take_start(self, key, found):
        self.begin_run(key, operation_of(found.group(1)))

    def take_settings(self, key, found):
        if self.runs[key].columns:  # the next program of a log
            self.begin_run(key)
        self.source.facts.setdefault("settings", redact.text(found.group(0)[1:].strip()))

    def take_coll_version(self, _, found):
        self.source.kind = "stratus-coll text"
        self.source.facts["NCCL"] = redact.text(found.group(1))

    def take_tests_version(self, _, found):
        self.source.facts["nccl-tests"] = redact.text(found.group(1))
        self.source.facts["NCCL"] = nccl_text(int(found.group(2)))

    def take_failed(self, _, found):
        self.failed_values += int(found.group(1)[:15])

    def take_reduction(self, _, found):
        self.source.notes.append(redact.text(found.group(0)[1:].strip()))

    # ---- rows ----

    def take_row(self, line, start):
        run = self.run_with_table(line[:start])
        if run is None or run.columns is None:
            if len(line[start:].split()) >= 8:  # fewer: talk that begins with numbers
                self.leave_out(NO_HEADING, self.line)
            return
        self.give_up(run)
        self.finish(run, run.columns.begin(line, start, self.line))

    def take_rest(self, line):
        """Whether the line goes on with a broken row."""
        line = " " + line  # loggers may strip the blanks
        for run in {id(run): run for run in [*self.runs.values(), self.latest] if run and run.broken}.values():
            start = run.columns.next_piece(line)
            if start is None:
                continue
            owner = self.runs.get(key_of(line[:start]))
            if owner is None or owner is run or not owner.broken:
                run.columns.go_on(run.broken, line, start)
                self.finish(run, run.broken)
                return True
        return False

    def give_up(self, run):
        """The rest of a broken row does not come any more."""
        if run.broken:
            self.leave_out(run.columns.why_not(run.broken), run.broken.line)
        run.broken = None

    def finish(self, run, row):
        run.broken = None
        if run.columns.is_whole(row):
            try:
                self.source.points += self.points_of(run, row)
            except Problem as problem:
                self.leave_out(problem.text, row.line)
        elif run.columns.is_broken(row):
            run.broken = row
        else:
            self.leave_out(run.columns.why_not(row), row.line)

    def doubt_ranks(self, run, line):
        if not run.is_doubted:
            run.is_doubted = True
            self.source.notes.append(f"line {line}: busbw is not that of a job of {len(run.ranks)}, which the list of devices has: "
                                     "is it whole, and did all of them take part?")

    def points_of(self, run, row):
        first = dict(zip(run.columns.first, row.first))
        points = [self.point_of(run, first, dict(zip(run.columns.group, body)), place == 1, row.line)
                  for place, body in enumerate(row.bodies) if body]
        return [point for point in points if point]

    def point_of(self, run, first, body, in_place, line):
        time_text = body.get("time", body.get("cputime"))
        if time_text == "N/A":
            return None
        size, time_us = self.integer(first["size"], "size"), self.number(time_text, "time")
        if problem := check_time(time_us, "time"):
            raise Problem(problem)
        if size == 0 or time_us == 0:
            return None  # nothing was sent: no figure to compare
        if run.operation is None:
            raise Problem(NO_OPERATION)
        nodes, ppn = run.shape
        root = self.integer(first["root"], "root", -1) if "root" in first else None
        if root is not None and run.ranks and run.is_complete and root >= len(run.ranks):
            raise Problem(f"root {root} of {len(run.ranks)} ranks")
        wrong = body.get("#wrong", "N/A")
        busbw = self.number(body["busbw"], "busbw")
        if "algbw" in body and run.is_of_others(self.number(body["algbw"], "algbw"), busbw):
            self.doubt_ranks(run, line)
        spread = self.number(body["i_cv%"], "i_cv%") / 100 if "i_cv%" in body else None
        return Point(
            source=self.source, line=line, operation=run.operation, bytes=size, time_us=time_us,
            in_place=in_place, type=first.get("type"), redop=first.get("redop"), root=root, nodes=nodes, ppn=ppn,
            noise=spread * MAD_OF_DEVIATION if spread is not None else None,
            busbw=busbw, wrong=None if wrong == "N/A" else int(self.number(wrong, "#wrong")))

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
