# SPDX-License-Identifier: Apache-2.0
"""What is imported is what stratus-coll --replay does, on emulated GPUs: the same collectives, bytes and order."""
import functools
import json
import os
import subprocess

from imported import calls, compute_us, data, imported, waits
from tap import Skip
from test_torch import of_job
from tool import ROOT, read, scratch

COLL = os.path.join(ROOT, "build/bin/stratus-coll")
NCCL = os.path.join(ROOT, "build/fake_cuda/lib/sid")
TUNER = os.path.join(ROOT, "build/lib/libnccl-tuner-stratus.so")
LIMIT_S = 120
NAMES = {"float": "float32", "half": "float16", "double": "float64"}  # of stratus-coll's tables: of workload files
BYTES = {"float": 4, "half": 2, "double": 8, "bfloat16": 2, "int64": 8}


@functools.cache
def need_coll():
    if not os.path.exists(COLL) or not os.path.exists(NCCL):
        raise Skip("make build/bin/stratus-coll and make SUITE=sid nccl first")


def coll(*arguments, status=0, **environment):
    """What it prints, or with another status says."""
    need_coll()
    done = subprocess.run([COLL, *arguments], capture_output=True, text=True, check=False, timeout=LIMIT_S,
                          env={**os.environ, "NCCL_HOME": NCCL, "FAKE_CUDA_CC": "90", **environment})
    assert done.returncode == status, done.stderr
    return done.stderr if status else done.stdout


def listed(path, ranks):
    """(kind, words) of each line of what a rank does."""
    lines = [line.split() for line in coll("--replay", path, "--replay-list", str(ranks)).splitlines()]
    assert lines[0][0] == "workload"
    return [(line[0], line[1:]) for line in lines[1:]]


def check_list(path, workload, ranks):
    """The list is the workload's events, in their order; returns the bytes of a step, as nccl-tests counts."""
    sizes = {"world": ranks, **{group["name"]: group["size"] for group in workload.get("groups", ())}}
    found, total = listed(path, ranks), 0
    assert [kind for kind, _ in found] == [next(iter(event)).removesuffix("_us") for event in workload["events"]]
    for (kind, words), event in zip(found, workload["events"]):
        if kind != "collective":
            continue
        number, collective, element, _, root, group, elements, size = words
        assert (int(number), collective, NAMES.get(element, element), group, int(elements)) == \
            tuple(event[key] for key in ("id", "collective", "type", "group", "elements")), words
        assert root == (str(event.get("root", 0)) if collective in ("broadcast", "reduce") else "-")
        parts = sizes[group] if collective in ("all_gather", "reduce_scatter", "alltoall") else 1
        assert int(size) == event["elements"] * BYTES[element] * parts, words
        total += int(size)
    assert [float(words[0]) for kind, words in found if kind == "compute"] == compute_us(workload["events"])
    assert [int(words[0]) for kind, words in found if kind == "wait"] == waits(workload["events"])
    return total


def replay(traces, ranks, options=()):
    """Imports, lists and replays; checks that the job did what the trace says."""
    need_coll()
    path = scratch("workload.json")
    imported_text, _ = imported(*traces, *options)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(imported_text, file)
    total = check_list(path, imported_text, ranks)
    results = scratch("results.json")
    coll("--hosts", f"local:{ranks}", "--replay", path, "--replay-steps", "3", "--replay-skip", "1", "--json", results, "-T", "100")
    found, = json.loads(read(results))["workloads"]
    assert found["wrong"] == 0 and found["bytes_per_step"] == total, found
    assert found["collectives"] == sum("collective" in event for event in imported_text["events"])
    assert len(found["step_us"]) == 3 and min(found["step_us"]) >= sum(compute_us(imported_text["events"])), found


def test_an_execution_trace_that_pytorch_wrote():
    replay([of_job("graph.0.json")], 2)
    replay([of_job("one.1.json")], 2, ["--step-time", "3ms"])


def test_an_execution_trace_with_times_of_the_profilers():
    replay([of_job("graph.0.json"), of_job("profile.0.json")], 2)


def test_a_profilers_trace():
    replay([data("ddp.json")], 2)


def test_a_job_with_groups():
    """16 ranks: listed; too many to run here."""
    path = scratch("hybrid.json")
    workload, _ = imported(data("hybrid.json"))
    with open(path, "w", encoding="utf-8") as file:
        json.dump(workload, file)
    check_list(path, workload, 16)


def test_a_newer_execution_trace_with_groups():
    replay([data("execution.json")], 4)


def test_sequences():
    replay([data("inspector-4.3.log")], 2)
    path = scratch("record.json")
    workload, _ = imported(data("job.calls"))
    with open(path, "w", encoding="utf-8") as file:
        json.dump(workload, file)
    check_list(path, workload, 32)


def test_a_job_that_recorded_itself():
    """The replay of a trace, recorded by the tuner plugin in each rank and imported again: the same collectives."""
    if not os.path.exists(TUNER):
        raise Skip("make first")
    path, directory = scratch("recorded.json"), scratch("recorded")
    os.makedirs(directory)
    workload, _ = imported(data("ddp.json"))
    with open(path, "w", encoding="utf-8") as file:
        json.dump(workload, file)
    coll("--hosts", "local:2", "--replay", path, "--replay-steps", "20", "--replay-skip", "1", "-T", "100",
         NCCL_TUNER_PLUGIN=TUNER, STRATUS_RECORD=directory)
    found = [name for name in os.listdir(directory) if name.endswith(".calls")]
    assert len(found) == 2, found
    for name in found:
        again, said = imported(os.path.join(directory, name))
        assert calls(again["events"]) == calls(workload["events"]), said
        # The host began a step when the one before was over: computation is all of it.
        assert sum(compute_us(again["events"])) >= sum(compute_us(workload["events"])), said
