# SPDX-License-Identifier: Apache-2.0
"""samples.jsonl: a line for each measurement, as described in common/sample.h."""
import re

from points import TIME_US_MAX, Cell, Point, nccl_text
from problem import Problem
from strict_json import Document

COLLECTIVES = ("broadcast", "reduce", "allgather", "reducescatter", "allreduce")
ALGORITHMS = ("tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat")
PROTOCOLS = ("ll", "ll128", "simple")


def looks_like_samples(text):
    """By the first line that is not blank."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    return first.startswith("{") and '"median_us"' in first and '"coll"' in first


def read_samples(source, text):
    source.kind = "samples"
    lines = text.split("\n")
    releases, runs, plugins = set(), set(), set()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            document = Document(source.path, line, number)
        except Problem as problem:
            if number == len(lines):  # no newline: whoever wrote it was stopped
                source.notes.append(f"line {number} was not finished by its writer, and is left out")
                break
            raise Problem(problem.text, source.path, number, problem.column) from None
        point = take_sample(source, document.root, number)
        releases.add(document.root.value.get("nccl", 0))
        plugins.add(document.root.value.get("plugin", ""))
        runs.add(point.run)
        source.points.append(point)
    if not source.points:
        raise Problem("no sample in the file", source.path)
    source.facts["NCCL"] = ", ".join(nccl_text(each) for each in sorted(releases))
    source.facts["runs"] = str(len(runs))
    if plugins - {""}:
        source.facts["stratus"] = ", ".join(sorted(plugins - {""}))


def word(node):
    if node.value is None:
        return ""
    if not re.fullmatch(r"[A-Za-z0-9._-]{0,39}", node.text()):
        node.fail("must be a text of letters, digits and . _ -, shorter than 40")
    return node.value


def optional(node, high):
    return 0 if node.value is None else node.integer(0, high)


def take_sample(source, node, line):
    node.get("schema").integer(1, 1)
    median = node.get("median_us").number(0, TIME_US_MAX)
    if median <= 0:
        node.get("median_us").fail("must be microseconds, more than 0")
    deviation = node.get("mad_us").number(0, TIME_US_MAX) if node.has("mad_us") else 0.0
    optional(node.get("nccl"), 1 << 31)
    for key in ("plugin", "hosts"):
        word(node.get(key))
    return Point(
        source=source, line=line, operation=node.get("coll").word(COLLECTIVES), bytes=node.get("bytes").integer(),
        time_us=median, in_place=node.has("in_place") and node.get("in_place").flag(),
        nodes=node.get("nodes").integer(1, 1_000_000), ppn=node.get("ppn").integer(1, 1024),
        n=node.get("n").integer(1, (1 << 32) - 1), noise=deviation / median if deviation > 0 else None,
        cell=Cell(node.get("algo").word(ALGORITHMS), node.get("proto").word(PROTOCOLS),
                  optional(node.get("channels"), 64), optional(node.get("chunk"), 1 << 30)),
        is_default=node.has("default") and node.get("default").flag(), environment=word(node.get("env")),
        run=word(node.get("run")))
