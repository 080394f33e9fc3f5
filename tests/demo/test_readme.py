# SPDX-License-Identifier: Apache-2.0
"""The table of README.md, from invented figures; what is said of its age."""
import importlib.machinery
import importlib.util
import os
import tempfile

import invent
from tap import Skip

LOADER = importlib.machinery.SourceFileLoader("readme_table", "scripts/readme-table")
table = importlib.util.module_from_spec(importlib.util.spec_from_loader("readme_table", LOADER))
LOADER.exec_module(table)

PICTURE = "scripts/demo, 2026-11-26, abc1234. At 64 MiB"


def readme(lines):
    return "\n".join(["# x", table.BEGIN, *lines, table.END, "after", ""])


def fails(text, function, *arguments):
    try:
        function(*arguments)
    except table.Wrong as problem:
        assert text in str(problem), problem
    else:
        assert False, f"no error with '{text}'"


def test_the_table():
    lines = table.table_of(invent.document())
    assert lines[0].startswith("AllReduce by stock NCCL 2.29.7, 2 hosts, NICs of 4 Gb/s, 0.5 Gb/s for a flow, congestion control CUBIC"), lines
    assert "commit abc1234" in lines[1] and "2026-11-26" in lines[1], lines
    assert "| 64 B | 90.0 us | 120.0 us | 100.0 us | 0.90 |" in lines, lines
    assert "| 64 MiB | 0.112 GB/s | 0.224 GB/s | 0.447 GB/s | 2.00 |" in lines, lines
    assert "sizes: 0.90 times (64 B) to 2.00 times (64 MiB) as fast as the better Socket." in "\n".join(lines), lines
    table.check(invent.document(), readme(lines), PICTURE)


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


def test_refused_figures_leave_the_readme():
    before = table.ROOT
    with tempfile.TemporaryDirectory() as table.ROOT:
        try:
            path = os.path.join(table.ROOT, table.README)
            with open(path, "w", encoding="utf-8") as file:
                file.write(readme(["as it was"]))
            fails("without a commit", table.write_table, invent.document(has_changes=True))
            assert table.read(table.README) == readme(["as it was"])
            table.write_table(invent.document())
            assert table.read(table.README) == readme(table.table_of(invent.document()))
        finally:
            table.ROOT = before


def test_its_age():
    def history(count):
        return lambda *words: table.ROOT if words[0] == "rev-parse" else count
    assert table.age_note("abc1234", history("0")) is None
    note = table.age_note("abc1234", history("2"))
    assert note.startswith("note: ") and "older than net_plugin/policy: 2 commits since abc1234" in note and "scripts/demo --readme" in note, note
    # No git, no repository; a repository that is not ours; a shallow clone that does not have the commit.
    for ask in (lambda *words: None, lambda *words: "/", history(None)):
        assert "cannot be told" in table.age_note("abc1234", ask), ask


def test_only_what_is_committed_is_measured():
    table.can_measure(lambda *words: "")
    fails("not committed: common/log.c", table.can_measure, lambda *words: "M common/log.c")
    fails("no git repository", table.can_measure, lambda *words: None)


def test_the_age_by_git_itself():
    if not os.path.exists(".git"):
        raise Skip("no git repository here")
    assert table.git("rev-list", "--count", "HEAD..HEAD", "--", table.POLICY) == "0"
    assert table.git("rev-list", "--count", "0" * 40 + "..HEAD") is None
