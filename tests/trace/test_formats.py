# SPDX-License-Identifier: Apache-2.0
"""Each format into the events that it says."""
import gzip
import json
import os

import invent
from imported import calls, compute_us, data, events, imported, refused, waits
from names import BYTES_OF_TYPE, TYPES
from tool import read, run, scratch, write

DDP = [("all_reduce", elements, "float32", "world") for elements in invent.DDP_BUCKETS]


def test_the_invented_files_are_what_the_script_writes():
    before = {name: read(data(name)) for name in os.listdir(data("")) if name != "README.md"}
    invent.DATA = scratch("invented")
    invent.main()
    assert before == {name: read(scratch(f"invented/{name}")) for name in os.listdir(scratch("invented"))}


def test_every_type_has_a_size():
    assert set(TYPES.values()) == set(BYTES_OF_TYPE)


def test_profiler_of_ddp():
    found = events(data("ddp.json"))
    assert calls(found) == DDP
    assert compute_us(found) == [210 + 340.5 + 500.25, 500.25, 500.25, 75.125]
    # The optimizer was launched before the last bucket was there and began after it; copies before it waited for nothing.
    assert waits(found) == [3] and found[-2:] == [{"wait": 3}, {"compute_us": 75.125}]


def test_profiler_of_ddp_packed():
    with open(data("ddp.json"), "rb") as file:
        packed = write("ddp.json.gz", gzip.compress(file.read()))
    workload, _ = imported(packed)
    assert workload["events"] == events(data("ddp.json")) and workload["name"] == "ddp"


def test_profiler_of_tensor_parallelism_and_fsdp():
    workload, _ = imported(data("hybrid.json"), "--batch", "24", "--name", "mine")
    assert workload["groups"] == [{"name": "mesh_fsdp", "size": 4, "stride": 4}, {"name": "mesh_tp", "size": 4, "stride": 1}]
    assert (workload["batch"], workload["name"]) == (24, "mine")
    found = workload["events"]
    assert calls(found) == [("all_gather", 1048576, "bfloat16", "mesh_fsdp"), ("all_reduce", 524288, "bfloat16", "mesh_tp"),
                            ("all_reduce", 524288, "bfloat16", "mesh_tp"), ("reduce_scatter", 1048576, "float32", "mesh_fsdp"),
                            ("alltoall", 16384, "float16", "mesh_tp"), ("broadcast", 1, "int64", "world")]
    assert compute_us(found) == [400, 400, 800, 20] and found[-1]["root"] == 3
    # CUPTI's records of cudaStreamWaitEvent name the stream: each call of tensor parallelism at once, the AllGather late.
    assert waits(found) == [2, 3, 1, 5]


def test_a_call_on_the_compute_stream_is_waited_for():
    profile = invent.Profile()
    profile.streams["0"] = invent.MAIN

    def step(each):
        each.kernel(10.0)
        each.collective("allreduce", 1000, 1000, "Float", 50.0)
        each.kernel(20.0)
    profile.step(1, step)
    found = events(write("same-stream.json", json.dumps(profile.document())))
    assert [next(iter(event)) for event in found] == ["compute_us", "collective", "wait", "compute_us"], found


def test_time_of_the_host_counts_if_asked_for():
    profile = invent.Profile()

    def step(each):
        each.kernel(10.0)
        each.host += 90.0  # after the launch's 4
        each.kernel(30.0)
        each.collective("allreduce", 1000, 1000, "Float", 500.0)
        each.host += 1000.0  # while NCCL's kernel runs for half of it
        each.kernel(5.0)
    profile.step(1, step)
    path = write("host.json", json.dumps(profile.document()))
    assert compute_us(events(path)) == [40, 5]
    # The first kernel ends at 14 and the second is launched at 94. The third is launched at 94 + 16 + 1000; NCCL's
    # runs from 128, when the second ends, to 628.
    assert compute_us(events(path, "--host-time")) == [10 + 80 + 30, 1110 - 628 + 5]


def test_kernels_that_run_beside_each_other_count_once():
    profile = invent.Profile()

    def step(each):
        each.kernel(100.0)
        each.kernel(100.0, stream=8)  # launched 4 us later
        each.collective("allreduce", 1000, 1000, "Float", 5.0)
    profile.step(1, step)
    assert compute_us(events(write("beside.json", json.dumps(profile.document())))) == [104]


def test_uneven_all_to_all_is_told():
    text = read(data("hybrid.json")).replace("[16384, 16384, 16384, 16384]", "[1, 2, 3, 65530]")
    workload, said = imported(write("uneven.json", text))
    assert "imported as even ones" in said and ("alltoall", 16384, "float16", "mesh_tp") in calls(workload["events"])


def test_ranks_that_pytorch_cut_are_continued():
    profile = invent.Profile(rank=2, world=256)
    profile.step(1, lambda each: each.collective("allreduce", 8, 8, "Float", 5.0, ("5", "shards", list(range(2, 256, 4)))))
    workload, _ = imported(write("many.json", json.dumps(profile.document())))
    assert workload["groups"] == [{"name": "shards", "size": 64, "stride": 4}]


def test_a_kernel_of_a_graph_names_its_own_collective():
    """Newer releases describe NCCL's kernels in a CUDA graph, for which there is no operator."""
    profile = invent.Profile()
    profile.step(1, invent.ddp_step)
    document = profile.document()
    document["traceEvents"] = [event for event in document["traceEvents"] if event["name"] != "record_param_comms"]
    assert calls(events(write("graph.json", json.dumps(document)))) == DDP


def test_execution_trace():
    workload, said = imported(data("execution.json"))
    found = workload["events"]
    assert workload["groups"] == [{"name": "mesh_tp", "size": 2, "stride": 1}]
    assert calls(found) == [("broadcast", 53, "int64", "world"), *DDP, ("all_gather", 4096, "bfloat16", "mesh_tp")]
    assert found[0]["root"] == 2 and waits(found) == [1] and compute_us(found) == [] and "no times in it" in said
    assert compute_us(events(data("execution.json"), "--step-time", "60ms")) == [10000.0] * 6


def test_execution_trace_with_times_of_a_profilers():
    profile, trace = invent.Profile(), invent.Execution()
    for number in (4, 5):
        profile.step(number, invent.ddp_step)
        trace.node(f"ProfilerStep#{number}")
        for bucket, elements in enumerate(invent.DDP_BUCKETS):
            trace.collective(10 * number + bucket, "allreduce", elements, elements, "Double")
    times = write("times.json", json.dumps(profile.document()))
    sizes = write("sizes.json", json.dumps(trace.document()))
    found = events(sizes, times)
    assert calls(found) == [("all_reduce", elements, "float64", "world") for elements in invent.DDP_BUCKETS]
    assert compute_us(found) == compute_us(events(data("ddp.json"))) and waits(found) == [3]
    other = json.loads(read(sizes))
    other["nodes"] = other["nodes"][:-2]
    said = refused(write("other.json", json.dumps(other)), times)
    assert times in said and "not traces of the same step" in said


def test_sequence_of_stratus_record():
    workload, _ = imported(data("job.calls"))
    assert workload["groups"] == [{"name": "group1", "size": 4, "stride": 8}]
    assert calls(workload["events"]) == [*DDP[:2], ("all_gather", 2048, "float32", "group1"), DDP[2]]
    assert compute_us(workload["events"]) == [9000, 1500.5, 700.25, 650]


def test_bytes_that_are_no_floats():
    line = {"format": "stratus-calls", "version": 1, "ranks": 2, "nodes": 2, "nccl": 0, "dropped": 0,
            "calls": [[1.0 * turn, "broadcast", 7] for turn in range(1, 9)]}
    assert calls(events(write("odd.calls", json.dumps(line) + "\n"))) == [("broadcast", 7, "uint8", "world")]


def test_sequence_of_nccl_inspector():
    for name in ("inspector-4.0.log", "inspector-4.3.log"):
        found = events(data(name))
        assert calls(found) == [("all_gather", 65536, "float32", "world"), ("all_gather", 131072, "float32", "world"),
                                ("reduce_scatter", 65536, "float32", "world"), ("all_reduce", 1025, "float32", "world")]
        assert compute_us(found) == [8000, 2000, 1000, 400]
    plain = write("plain.log", invent.inspector_lines(True, is_verbose=False))
    workload, said = imported(plain)
    assert calls(workload["events"]) == calls(found) and compute_us(workload["events"]) == []
    assert "NCCL_INSPECTOR_DUMP_VERBOSE=1" in said


def test_a_job_that_was_killed_leaves_half_a_line():
    text = read(data("inspector-4.3.log"))
    workload, said = imported(write("killed.log", text[:-40]))
    assert calls(workload["events"]) == calls(events(data("inspector-4.3.log")))
    assert f"line {len(text.splitlines())} was not finished by its writer" in said


def test_the_example_of_the_help_runs():
    text, _ = run("workload", "-h")
    example = text.split("\nexample:\n  ")[1].split("\n")[0].split()
    run(*example[1:])
    assert json.loads(read(example[-1]))["name"] == "ddp"
