# SPDX-License-Identifier: Apache-2.0
"""The table of the demo in README.md, between its two markers, from the file that scripts/demo --readme leaves."""
import os

from benchmark import demo
from benchmark.case import size_text
from benchmark.run import ROOT, Failure

BEGIN = "<!-- The demo's table, by scripts/demo: begin -->"
END = "<!-- The demo's table: end -->"
FIGURES, PICTURE, README = "docs/measured/demo.json", "docs/measured/demo.svg", "README.md"
SHOWN = (64, 4 << 10, 64 << 10, 256 << 10, 1 << 20, 8 << 20, 64 << 20)


def table_of(document):
    """The lines between the markers."""
    problems = [text for is_so, text in (
        (document["is_quick"], "it is of --quick"), (document["has_changes"], "it is of changes without a commit"),
        (not document["commit"], "it names no commit"), (demo.wrong(document), "values were wrong")) if is_so]
    if problems:
        raise Failure(f"{FIGURES}: {', '.join(problems)}: sudo scripts/demo --readme")
    sizes = demo.sizes_of(document["runs"])
    best, worst = demo.best_and_worst(sizes)
    cpus = document["cpus"]
    lines = [
        f"AllReduce by stock NCCL {document['nccl']}, {demo.network_text(document)}; hosts and GPUs are emulated",
        f"(`sudo scripts/demo`, {cpus} CPU{'s' if cpus != 1 else ''}, {document['date']}, commit {document['commit']}):", "",
        "| size | Socket, its defaults | Socket as NCCL sets it on AWS | stratus | against the better Socket |", "|---|---|---|---|---|"]
    for size in sizes:
        if size.bytes in SHOWN or size in (worst, best):
            cells = (demo.rate_text(size, net) for net in demo.TRANSPORTS)
            lines.append(f"| {size_text(size.bytes)} | {' | '.join(cells)} | {size.ratio:.2f} |")
    return lines + ["", f"Across {len(sizes)} sizes: {worst.ratio:.2f} times ({size_text(worst.bytes)}) to "
                    f"{best.ratio:.2f} times ({size_text(best.bytes)}) as fast as the better Socket.", "",
                    f"![Bandwidth of AllReduce over sizes, and how many times as fast stratus is]({PICTURE})"]


def split(text):
    """README.md before, between and after the markers."""
    lines = text.split("\n")
    if [line for line in lines if line in (BEGIN, END)] != [BEGIN, END]:
        raise Failure(f"{README} needs one line '{BEGIN}', and one line '{END}' below it")
    begin, end = lines.index(BEGIN), lines.index(END)
    return lines[:begin + 1], lines[begin + 1:end], lines[end:]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def write(document):
    before, _, after = split(read(README))
    text = "\n".join([*before, *table_of(document), *after])  # which may refuse the figures, before anything is written
    with open(os.path.join(ROOT, README), "w", encoding="utf-8") as file:
        file.write(text)


def check(document, readme, picture):
    """Table and picture are those of the figures, or a Failure."""
    for is_now, is_due in zip([*split(readme)[1], "its end"], [*table_of(document), "its end"]):
        if is_now != is_due:
            raise Failure(f"{README} has '{is_now}' where {FIGURES} gives '{is_due}': sudo scripts/demo --readme")
    if f"scripts/demo, {document['date']}, {document['commit']}." not in picture:
        raise Failure(f"{PICTURE} is not of the measurement of {FIGURES}: scripts/demo --from {FIGURES} --plot {PICTURE}")
