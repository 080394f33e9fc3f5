# SPDX-License-Identifier: Apache-2.0
"""The table of README.md: from invented figures, and as it is."""
import os

from benchmark import demo, readme as table
from benchmark.run import ROOT, Failure
import invent

PICTURE = "scripts/demo, 2026-11-26, abc1234. At 64 MiB"


def readme(lines):
    return "\n".join(["# x", table.BEGIN, *lines, table.END, "after", ""])


def fails(text, function, *arguments):
    try:
        function(*arguments)
    except Failure as problem:
        assert text in str(problem), problem
    else:
        assert False, f"no error with '{text}'"


def test_readme_has_the_figures_of_the_file():
    table.check(demo.read(os.path.join(ROOT, table.FIGURES)), table.read(table.README), table.read(table.PICTURE))


def test_the_table():
    lines = table.table_of(invent.document())
    assert lines[0].startswith("AllReduce by stock NCCL 2.29.7, 2 hosts, NICs of 4 Gb/s, 0.5 Gb/s for a flow, congestion control CUBIC"), lines
    assert "commit abc1234" in lines[1] and "2026-11-26" in lines[1], lines
    assert "| 64 B | 90.0 us | 120.0 us | 100.0 us | 0.90 |" in lines, lines
    assert "| 64 MiB | 0.112 GB/s | 0.224 GB/s | 0.447 GB/s | 2.00 |" in lines, lines
    assert "sizes: 0.90 times (64 B) to 2.00 times (64 MiB) as fast as the better Socket." in "\n".join(lines), lines
    table.check(invent.document(), readme(lines), PICTURE)
    assert table.split(readme(lines)) == (["# x", table.BEGIN], lines, [table.END, "after", ""])


def test_what_is_not_of_the_figures_is_found():
    lines = table.table_of(invent.document())
    fails("README.md has '| 64 B |", table.check, invent.document(),
          readme([line.replace("0.90 |", "1.90 |") for line in lines]), PICTURE)
    fails("gives '| 64 B |", table.check, invent.document(), readme([line for line in lines if "64 B" not in line]), PICTURE)
    fails("its end", table.check, invent.document(), readme([*lines, "more"]), PICTURE)
    fails("its end", table.check, invent.document(), readme(lines[:-1]), PICTURE)
    fails("scripts/demo --from", table.check, invent.document(commit="abc9999"),
          readme(table.table_of(invent.document(commit="abc9999"))), PICTURE)


def test_markers():
    for text in ("", table.BEGIN, f"{table.END}\n{table.BEGIN}", f"{table.BEGIN}\n{table.BEGIN}\n{table.END}"):
        fails("needs one line", table.split, text)


def test_figures_that_are_for_no_readme():
    for changes, text in (({"is_quick": True}, "--quick"), ({"has_changes": True}, "without a commit"), ({"commit": None}, "names no commit")):
        fails(text, table.table_of, invent.document(**changes))
