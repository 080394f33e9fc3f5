# SPDX-License-Identifier: Apache-2.0
"""Traces that PyTorch itself writes during the test: Debian's 1.13, data-parallel over gloo, two processes."""
import functools
import json
import os
import subprocess

from imported import calls, compute_us, events, imported, refused
from tap import Skip
from tool import ROOT, read, scratch

PYTHON = "/usr/bin/python3"
LIMIT_S = 120
TYPES = {"float": "float32", "long int": "int64", "double": "float64"}


@functools.cache
def job():
    """The directory with the traces of the job."""
    if subprocess.run([PYTHON, "-c", "import torch.distributed"], capture_output=True, check=False).returncode != 0:
        raise Skip("python3-torch is missing: scripts/install-deps")
    directory = scratch("job")
    os.makedirs(directory)
    done = subprocess.run([PYTHON, "-B", os.path.join(ROOT, "tests/trace/ddp_job.py"), directory], capture_output=True, text=True,
                          check=False, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return directory


def of_job(name):
    return os.path.join(job(), name)


def calls_of_trace(path, mark=None):
    """What the trace says of its c10d operators, in their order: (collective, elements, type); `mark`: of those after it.
    Parents are no help: when gloo's thread ends an operator, PyTorch 1.13 takes another one for the innermost."""
    nodes = sorted(json.loads(read(path))["nodes"], key=lambda node: node["id"])
    begin = next((node["id"] for node in nodes if node["name"] == mark), 0)
    found = []
    for node in nodes:
        if node["name"] in ("c10d::allreduce_", "c10d::broadcast_") and node["id"] > begin:
            collective = {"c10d::allreduce_": "all_reduce", "c10d::broadcast_": "broadcast"}[node["name"]]
            kind = node["input_types"][0].removeprefix("GenericList[Tensor(").removesuffix(")]")
            found.append((collective, sum(tensor[3] for tensor in node["inputs"][0]), TYPES[kind]))
    return found


def without_group(found):
    return [call[:3] for call in calls(found)]


def test_a_step_has_the_collectives_of_the_trace():
    """Bytes and order; and they are the buckets that DDP says it has."""
    for rank in range(2):
        buckets = [int(size) for size in json.loads(read(of_job(f"buckets.{rank}.json"))).split(", ")]
        assert len(buckets) > 1
        workload, said = imported(of_job(f"graph.{rank}.json"))
        found = without_group(workload["events"])
        assert "step ProfilerStep#1;" in workload["source"] and "all are imported into `world`" in said
        after = calls_of_trace(of_job(f"graph.{rank}.json"), "ProfilerStep#1")
        assert found == after[:len(buckets)] and len(after) == 2 * len(buckets) + 1, (found, after)
        assert found == [("all_reduce", size // 4, "float32") for size in buckets]


def test_a_trace_of_one_step_is_taken_whole():
    workload, said = imported(of_job("one.0.json"))
    found = without_group(workload["events"])
    assert found == calls_of_trace(of_job("one.0.json")) and len(found) > 2, found
    assert found[-1] == ("broadcast", 7, "float64") and workload["events"][-1]["root"] == 1
    assert "the whole trace is taken as one step" in said


def test_times_come_from_the_profilers_trace_of_the_same_steps():
    found = events(of_job("graph.0.json"), of_job("profile.0.json"), "--step", "1")
    assert without_group(found) == calls_of_trace(of_job("graph.0.json"), "ProfilerStep#1")[:len(calls(found))]
    profile = json.loads(read(of_job("profile.0.json")))
    step = next(event for event in profile if event["name"] == "ProfilerStep#1")
    # The sum is less than the step, of which a part is waiting.
    assert len(compute_us(found)) == len(calls(found)) + 1 and compute_us(found)[0] > 0
    assert 0 < sum(compute_us(found)) < step["dur"]
    spread = events(of_job("graph.0.json"), "--step-time", "9ms")
    assert compute_us(spread) == [3000.0] * 3 and calls(spread) == calls(found)


def test_the_profilers_trace_alone_has_no_sizes():
    said = refused(of_job("profile.0.json"))
    assert "profile.0.json: [" in said and "all_reduce: this trace does not say how many elements" in said
    assert "ExecutionGraphObserver in PyTorch 1.13" in said and "2.4" in said
