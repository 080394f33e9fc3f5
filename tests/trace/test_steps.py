# SPDX-License-Identifier: Apache-2.0
"""Which step and which rank are taken."""
import json
import random

import invent
from imported import calls, compute_us, data, events, imported, refused
from step import find_period
from tool import read, run, write


def ddp_of_rank(rank, elements):
    profile = invent.Profile(rank=rank)
    profile.step(1, lambda each: each.collective("allreduce", elements, elements, "Float", 5.0))
    return write(f"rank-{rank}.json", json.dumps(profile.document()))


def test_a_step_from_the_middle_or_the_one_asked_for():
    for wanted, step in (((), 11), (("--step", "10"), 10), (("--step", "ProfilerStep#12"), 12)):
        workload, said = imported(data("ddp.json"), *wanted)
        assert f"step ProfilerStep#{step};" in workload["source"] and f"step ProfilerStep#{step}:" in said, said
    said = refused(data("ddp.json"), "--step", "13")
    assert "no step 13; the steps (the trace names them): ProfilerStep#10, ProfilerStep#11, ProfilerStep#12" in said


def test_without_marks_the_whole_trace_is_one_step():
    document = json.loads(read(data("ddp.json")))
    document["traceEvents"] = [event for event in document["traceEvents"] if "ProfilerStep" not in event["name"]]
    path = write("unmarked.json", json.dumps(document))
    workload, said = imported(path)
    assert len(calls(workload["events"])) == 9 and "the whole trace is taken as one step" in said
    # Cut by repetition, a step begins after the last collective of the one before: with its optimizer.
    assert calls(events(path, "--step", "1")) == calls(events(data("ddp.json")))
    assert compute_us(events(path, "--step", "1")) == [75.125 + 1050.75, 500.25, 500.25]


def test_the_lowest_rank_or_the_one_asked_for():
    files = [ddp_of_rank(rank, 100 + rank) for rank in (3, 1, 2)]
    assert calls(events(*files))[0][1] == 101
    assert calls(events(*files, "--rank", "3"))[0][1] == 103
    assert "--rank 7: 0 files of it; they are of ranks 1, 2, 3" in refused(*files, "--rank", "7")
    assert "is of rank 3, not of 1" in refused(files[0], "--rank", "1")
    assert "does not say its rank" in refused(data("execution.json"), data("execution.json"))
    assert "do not go together" in refused(data("ddp.json"), data("job.calls"))


def test_calls_can_be_left_out():
    profile = invent.Profile()

    def step(each):
        each.kernel(7.0)
        each.collective("send", 8, 8, "Float", 5.0, Rank=1)
        each.kernel(8.0)
        each.collective("allreduce", 16, 16, "Float", 5.0)
    profile.step(1, step)
    path = write("send.json", json.dumps(profile.document()))
    assert ": sends and receives: give the traces of all ranks, or leave them out with --skip send,recv" in refused(path)
    found = events(path, "--skip", "send,recv")
    assert compute_us(found) == [15] and calls(found) == [("all_reduce", 16, "float32", "world")]


def test_the_number_of_ranks_can_be_given():
    """Without it in the trace, the first group is taken for all ranks."""
    document = json.loads(read(data("hybrid.json")))
    del document["distributedInfo"]
    path = write("no-world.json", json.dumps(document))
    assert "group default_pg has 16 ranks, of a job of 4" in refused(path)
    assert imported(path, "--world", "16")[0]["groups"] == imported(data("hybrid.json"))[0]["groups"]


def test_repetitions_are_found():
    """Steps of random calls, several times, with other calls before and after; the seed is fixed."""
    chance = random.Random(5)
    for _ in range(200):
        step = [chance.randrange(4) for _ in range(chance.randint(1, 40))] + [9]
        times = chance.randint(3, 9)
        around = max(0, len(step) * times // 4)
        before, after = ([chance.randrange(20, 1000) for _ in range(chance.randint(0, around))] for _ in range(2))
        first, period, repetitions = find_period(before + step * times + after)
        assert period == len(step) and repetitions == times and first == len(before), (step, times, before, after)
    assert find_period([1, 2, 3, 4, 5]) is None and find_period([1]) is None and find_period([]) is None
    assert find_period([1, 1, 2, 3, 4, 5, 6]) is None  # a small part that repeats is no step
    assert find_period([7] * 48 + [8] + [7] * 48 + [8]) == (0, 49, 2)


def test_a_sequence_that_does_not_repeat_is_refused():
    line = {"format": "stratus-calls", "version": 1, "ranks": 2, "nodes": 2, "nccl": 0, "dropped": 0,
            "calls": [[1.0 * turn, "broadcast", 8 * turn] for turn in range(1, 9)]}
    assert "its 8 collectives do not repeat" in refused(write("once.calls", json.dumps(line) + "\n"))


def test_which_ranks_a_group_has_must_be_known():
    text = read(data("job.calls")).replace('"ranks": 4, "nodes": 4', '"ranks": 6, "nodes": 4').replace("32768]", "49152]")
    assert "which 6 of 32 ranks its communicator 2 has, on 4 nodes, cannot be told" in refused(write("six.calls", text))


def test_output_goes_to_a_file():
    path = write("out.json", "")
    output, _ = run("workload", data("ddp.json"), "-o", path)
    assert output == "" and json.loads(read(path))["events"] == events(data("ddp.json"))
    assert "cannot be written" in refused(data("ddp.json"), "-o", "/nowhere/out.json")
