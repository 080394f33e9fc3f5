# SPDX-License-Identifier: Apache-2.0
"""Logs and results of runs as launchers, other processes and the end of a job leave them: what is whole is read, what is not
is named with its line."""
import itertools
import json
import os

from problem import Problem
from read import read_source
from tool import data, read, write

READERS = "tests/data/readers"
HEAD = ["# nccl-tests version 2.17.6 nccl-headers=22803 nccl-library=22803",
        "# Collective test starting: all_reduce_perf",
        "#  Rank  0 Group  0 Pid   4000 on node-a device  0 [0000:10:1c] GPU",
        "#  Rank  1 Group  0 Pid   5000 on node-b device  0 [0000:10:1c] GPU",
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)"]
SMALL = "           8             2     float     sum      -1    40.10    0.00    0.00       0    39.80    0.00    0.00       0"
LARGE = "      131072         32768     float     sum      -1    120.5    1.09    1.09       0    119.9    1.09    1.09       0"
TAIL = ["# Out of bounds values : 0 OK"]
LOG = [*HEAD, SMALL, LARGE, *TAIL]
POINTS = [(8, 40.1, False), (8, 39.8, True), (131072, 120.5, False), (131072, 119.9, True)]
# Where nccl-tests print a row in pieces.
PIECES = (LARGE.index("    120.5"), LARGE.index("    119.9"), len(LARGE))
FOREIGN = ("node-a:4000:4031 [0] NCCL INFO Connected all rings",
           "[2026-05-06 10:00:00] node-a:4000:4031 [0] misc/socket.cc:484 NCCL WARN x",
           "2026-05-06 10:00:00,123 INFO a logger 1 2 3",
           "10:00:00 watchdog: 12 processes",
           "/usr/lib/x.py:5: UserWarning: y",
           "WARNING: 3 of 4 workers took 12.5 s",
           "Traceback (most recent call last):")


def source_of(lines, name="run.log"):
    text = lines if isinstance(lines, str) else "\n".join(lines) + "\n"
    return read_source(write(name, text))


def points_of(source, shape=(2, 1), operation="allreduce"):
    assert all((point.shape, point.operation) == (shape, operation) for point in source.points), source.points
    return [(point.bytes, point.time_us, point.in_place) for point in source.points]


def expect(lines, points=None, notes=()):
    source = source_of(lines)
    assert points_of(source) == (POINTS if points is None else points), (lines, source.points, source.notes)
    assert len(source.notes) == len(notes) and all(map(str.__contains__, source.notes, notes)), (lines, source.notes)


def refusal(lines, name="run.log"):
    try:
        source = source_of(lines, name)
    except Problem as problem:
        return str(problem)
    raise AssertionError(f"{name} was taken: {source.points}")


def test_reported_logs():
    for name in sorted(os.listdir(f"{READERS}/log")):
        source = read_source(f"{READERS}/log/{name}")
        has_both = any(point.bytes == 8 for point in source.points)
        assert points_of(source) == (POINTS if has_both else POINTS[2:]), (name, source.points)
        assert source.notes == (["left out: line 8: a row of 5 columns under a heading of 13"] if name == "cut-midrow.log" else [])


def test_prefixes_of_launchers():
    """Each a list of what stands before the lines in turn: clocks go on."""
    clock = [f"10:00:{second:02d}" for second in range(len(LOG))]
    prefixes = {
        "srun --label": ["0: "], "srun --label, padded": ["   0: "], "MPICH": ["[0] "], "pdsh": ["node-a: "],
        "torchrun": ["[default0]:"], "DeepSpeed": ["node-a: [rank0]: "], "Open MPI 4": ["[1,0]<stdout>:"],
        "Open MPI 5": ["[prterun-node-a-4000@1,0]<stdout>: "], "docker compose": ["worker-1  | "], "kubectl": ["[pod/x-0/mpi] "],
        "stern": ["mpi-launcher-x7kp main "], "indented": ["        "], "tabs": ["\t\t"],
        "mpirun --timestamp-output": [f"Wed May  6 {now} 2026<stdout>:" for now in clock],
        "CRI": [f"2026-05-06T{now}.{number}Z stdout F " for number, now in enumerate(clock, 5)],
        "journald": [f"May 06 {now} node-a all_reduce[4000]: " for now in clock],
        "logging": [f"2026-05-06 {now},123 INFO bench: " for now in clock],
        "ts": [f"{now} " for now in clock], "ts -s %.s": [f"{1778061600 + number}.{number}25 " for number in range(len(LOG))],
        "tee of a terminal": ["\x1b[32m"], "quoted": ["> "],
    }
    for name, texts in prefixes.items():
        lines = [prefix + line for prefix, line in zip(itertools.cycle(texts), LOG)]
        try:
            expect(lines)
            expect("\r\n".join(lines) + "\r\n")
        except AssertionError as error:
            raise AssertionError(name) from error
    expect([line.strip() for line in LOG])
    expect([f'<stdout rank="0">{line}&#010;</stdout>' for line in LOG])  # mpirun --xml
    expect([f'{{"log":"{line}\\n","stream":"stdout","time":"2026-05-06T{now}.1Z"}}' for line, now in zip(LOG, clock)])  # Docker
    expect(['{"stdout_lines": [', *[f'  "{line}",' for line in LOG], '""]}'])  # Ansible
    expect([f"{line} \x1b[0m" for line in LOG])


def test_text_of_others_within_rows():
    for (first, end), text, between in itertools.product(((PIECES[0], PIECES[2]), (PIECES[1], PIECES[2])), FOREIGN, ("", "\n")):
        expect([*HEAD, SMALL, LARGE[:first] + between + text, LARGE[first:end], *TAIL])
        expect([*HEAD, SMALL, LARGE[:first] + between + text, "", "more talk", LARGE[first:end] + text, "", *TAIL])
    for text in FOREIGN:
        expect([*HEAD, SMALL, LARGE + text, "", *TAIL])
        expect([*HEAD, SMALL, text + LARGE, *TAIL])
        expect([*HEAD, SMALL + " " + text, LARGE, *TAIL])
        twice = [LARGE[:PIECES[0]] + text, LARGE[PIECES[0]:PIECES[1]] + text, LARGE[PIECES[1]:]]
        expect([*HEAD, SMALL, *twice, *TAIL])
        expect([f"[1,0]<stdout>:{line}" for line in [*HEAD, SMALL, twice[0]]] + [f"[1,1]<stderr>:{text}"]
               + [f"[1,0]<stdout>:{line}" for line in [*twice[1:], *TAIL]])


def test_a_root_is_not_joined_with_a_date():
    row = LARGE.replace("     sum      -1", "     sum       1").replace("float     sum", "float    none")
    source = source_of([*HEAD, row[:PIECES[0]] + FOREIGN[2], row[PIECES[0]:]])
    assert [point.root for point in source.points] == [1, 1], source.points
    bad = LARGE.replace("      -1", "       7")
    expect([*HEAD, SMALL, bad, *TAIL], POINTS[:2], ["left out: line 8: root 7 of 2 ranks"])


def test_tables_of_several_processes_are_told_apart():
    """Without MPI each process is a job of its own; their lines alternate."""
    def log(rank, row):
        head = [line for line in HEAD if "Rank" not in line]
        head.insert(2, f"#  Rank  0 Group  0 Pid   400{rank} on node-{rank} device  0 [0000:10:1c] GPU")
        row = row.replace("    1.09    1.09", "    1.09    0.00")
        return [f"[1,{rank}]<stdout>:{line}" for line in [*head, SMALL, row[:PIECES[0]] + FOREIGN[0], row[PIECES[0]:], *TAIL]]
    other = LARGE.replace("120.5", "220.5").replace("119.9", "219.9")
    source = source_of([line for pair in zip(log(0, LARGE), log(1, other)) for line in pair])
    assert sorted(points_of(source, (1, 1))) == sorted([*POINTS, *POINTS[:2], (131072, 220.5, False), (131072, 219.9, True)])
    assert not source.notes, source.notes


def test_bad_rows_are_named_and_cost_themselves():
    for bad, why in ((LARGE.replace("120.5", "  nan"), "time must be a number, not \"nan\""),
                     (LARGE.replace("120.5", "-20.5"), "time must be microseconds"),
                     (LARGE.replace("  131072", "99999999999999999999"), "size must be a whole number"),
                     (LARGE + "  1.00  2.00", "a row of 15 columns under a heading of 13"),
                     (LARGE[:PIECES[1]], "a row of 9 columns under a heading of 13"),
                     (LARGE[:PIECES[1]] + "  119.9", "a row of 10 columns under a heading of 13"),
                     (LARGE[:PIECES[0]], "a row of 5 columns under a heading of 13")):
        expect([*HEAD, bad, SMALL, *TAIL], POINTS[:2], [f"left out: line 7: {why}"])
        assert f"run.log:7: {why}" in refusal([*HEAD, bad, *TAIL])
    expect([*HEAD, *[LARGE[:PIECES[0]]] * 12, SMALL], POINTS[:2], ["lines 7, 8, 9, 10, 11, 12, 13, 14 and 4 more: a row of 5 columns"])


def test_a_log_that_ends_anywhere_gives_whole_rows_only():
    text = "\n".join(LOG) + "\n"
    begin = text.index(SMALL)
    for end in range(begin, len(text)):
        try:
            found = points_of(source_of(text[:end]))
        except Problem:
            found = []
        whole = [point for row, points in ((SMALL, POINTS[:2]), (LARGE, POINTS[2:])) if row in text[:end] for point in points]
        assert found == whole, (text[:end], found)


def test_a_list_of_devices_that_is_not_whole_gives_no_shape():
    source = source_of([*HEAD[:2], HEAD[3], *HEAD[4:], SMALL])
    assert [point.shape for point in source.points] == [(None, None)] * 2
    assert source.notes == ["line 4: the list of devices above has no rank 0: the numbers of nodes and ranks are not known"]


def test_bandwidths_tell_that_ranks_are_missing():
    doubt = "line 7: busbw is not that of a job of 1, which the list of devices has: is it whole, and did all of them take part?"
    assert source_of([*HEAD[:3], *HEAD[4:], SMALL, LARGE]).notes == [doubt]  # the last rank's line was lost
    eight = [line.replace("Rank  0", f"Rank  {rank}") for rank, line in enumerate([HEAD[2]] * 8)]
    row = LARGE.replace("120.5    1.09    1.09", "120.5   50.00   87.50").replace("119.9    1.09    1.09", "119.9   50.00   87.50")
    assert not source_of([*HEAD[:2], *eight, *HEAD[4:], row, row]).notes
    assert len(source_of([*HEAD[:2], *eight[:7], *HEAD[4:], row, row]).notes) == 1


def test_in_place_only_is_told_from_a_row_that_was_cut():
    blank = LARGE[:PIECES[0]] + " " * 33 + LARGE[PIECES[1]:]
    expect([*HEAD, SMALL, blank, *TAIL], [*POINTS[:2], POINTS[3]])


def test_zeros_where_the_machine_stopped():
    lines = "\n".join(LOG) + "\n"
    expect(lines + "\0" * 5000, notes=["left out: 5000 zero bytes at the end"])
    cut = "\n".join([*HEAD, SMALL, LARGE[:55]])
    expect(cut + "\0" * 9, POINTS[:2], ["left out: 9 zero bytes at the end", "left out: line 8: a row of 5 columns"])
    assert "is empty" in refusal("\0" * 4096)
    assert "is no text" in refusal("\0" + lines)


def test_results_of_a_killed_run():
    source = read_source(f"{READERS}/results/killed-after-row.json")
    assert points_of(source) == [(8, 40.1, False), (8, 40.1, True), (1024, 41.3, False), (1024, 41.3, True)]
    assert source.notes[0] == "no good JSON: the file ends early, in line 1: was the run stopped? Its 2 whole results before are read"
    whole = json.loads(read(data("nccl-tests-v3.json")))
    text = json.dumps(whole, indent=1)
    rows = [(point.bytes, point.time_us, point.in_place) for point in read_source(data("nccl-tests-v3.json")).points]
    begin = text.index('"results"')
    seen = set()
    for end in range(begin, len(text), 7):
        try:
            found = [(point.bytes, point.time_us, point.in_place) for point in source_of(text[:end], "cut.json").points]
        except Problem as problem:
            assert str(problem).startswith(problem.path) and ("ends early" in str(problem) or "no measurement" in str(problem)), problem
            found = []
        assert found == rows[:len(found)] and len(found) % 2 == 0, (end, found)
        seen.add(len(found))
    assert seen == {0, 2, 4, 6}, seen
    assert "ends early" in refusal(text[:begin - 5], "early.json")
    for junk in ("slurmstepd: error: *** JOB 5 CANCELLED ***\n", "\n]}", "}", "Killed\n", '{"size": 8, "out_of_place": '):
        source = source_of(text[:text.index("{", text.index('"size": 65536') - 40)] + junk, "junk.json")
        assert [(point.bytes, point.time_us, point.in_place) for point in source.points] == rows[:2], (junk, source.points)
        assert "Its 1 whole results before are read" in source.notes[0], source.notes


def test_one_result_without_a_time_costs_that_result():
    value = json.loads(read(data("nccl-tests-v1.json")))
    value["results"][1]["out_of_place"]["time"] = "nan"
    source = source_of(json.dumps(value, indent=1), "nan.json")
    assert len(source.points) == 2 * len(value["results"]) - 1
    assert any("results[1].out_of_place.time is no number" in note for note in source.notes), source.notes


def test_files_of_rccl_tests_are_called_so():
    with open(f"{READERS}/results/rccl.csv", encoding="utf-8") as file:
        heading, row = file.read().split("\n")[:2]
    names = dict(zip(heading.split(","), row.split(",")))
    for name, text in (("rccl.csv", heading + "\n" + row), ("bom.csv", "\ufeff" + heading), ("crlf.csv", heading + "\r\n"),
                       ("rccl.json", json.dumps([names])), ("lines.json", json.dumps([names, names], indent=2))):
        assert "rccl-tests write with -x" in refusal(text, name) and "the table that they print" in refusal(text, name)


def test_a_log_may_begin_like_json():
    expect(["[" + line for line in LOG])
    expect(["{", *LOG])
    expect(['{"level": "info"}', "[node-a:4000] mca: x", *LOG])
