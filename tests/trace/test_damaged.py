# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a trace is said with file, place and key, and nothing in a trace breaks the reader."""
import argparse
import gzip
import json
import os
import random

import invent
import workload
from formats import read_trace
from imported import data, refused
from problem import Problem
from step import choose
from tool import mutate, read, run, write


def changed(name, change):
    """A file of tests/data/trace, with its parsed contents changed; one line for each event as in the original."""
    document = json.loads(read(data(name)))
    key = "traceEvents" if "traceEvents" in document else "nodes"
    change(document)
    return write(f"changed-{name}", invent.lines_of(document, key))


def of_collective(change, number=0):
    def apply(document):
        found = [event for event in document["traceEvents"] if event["name"] == "record_param_comms"]
        change(found[number]["args"])
    return lambda: changed("ddp.json", apply)


def put(**values):
    return of_collective(lambda args: args.update({key.replace("_", " "): value for key, value in values.items()}))


def drop(key):
    return of_collective(lambda args: args.pop(key))


def says(path, *parts):
    said = refused(path)
    assert said.startswith(f"stratus-tune: {path}"), said
    for part in parts:
        assert part in said, (part, said)


def line_of(name, part):
    return next(number for number, line in enumerate(read(data(name)).split("\n"), 1) if part in line)


def test_profilers_facts_that_are_wrong():
    place = f":{line_of('ddp.json', 'record_param_comms')}: traceEvents[{line_of('ddp.json', 'record_param_comms') - 2}]"
    cases = (
        (put(dtype="Nibble"), f"{place}: Nibble: unknown element type; known: BFloat16,"),
        (put(dtype=4), f"{place}.args.dtype: must be a text"),
        (put(In_msg_nelems=0), f"{place}: 0 elements, expected 1 to"),
        (put(In_msg_nelems=-1), f"{place}.args.In msg nelems: must be a whole number"),
        (put(In_msg_nelems="many"), f"{place}.args.In msg nelems: must be a whole number"),
        (put(In_msg_nelems=1 << 40), f"{place}: {1 << 40} elements, expected 1 to"),
        (put(Group_size=0), f"{place}.args.Group size: must be a whole number from 1"),
        (put(Group_size=64), f"{place}.args.Process Group Ranks: [0, 1, 2, 3, 4, 5, 6, 7]: must have 64 different ranks"),
        (put(Process_Group_Ranks="[0, 1, 2, 3, 4, 5, 6, x]"), f"{place}.args.Process Group Ranks: [0, 1, 2, 3, 4, 5, 6, x]: must be"),
        (put(Process_Group_Ranks="[0, 1, 2, 3, 4, 5, 6, 6]"), f"{place}.args.Process Group Ranks: [0, 1, 2, 3, 4, 5, 6, 6]: must have"),
        (put(Collective_name="exchange"), f"{place}: exchange: no collective that a workload file can name"),
        (put(Collective_name="wait"), None),
        (drop("dtype"), f"{place}.args.dtype: must be a text"),
        (drop("In msg nelems"), f"{place}.args.In msg nelems: must be a whole number"),
        (drop("Group size"), f"{place}.args.Group size: must be a whole number"),
    )
    for make, part in cases:
        if part:
            says(make(), part)
        else:
            run("workload", make())


def group(ranks, world=16):
    profile = invent.Profile(world=world)
    profile.step(1, lambda each: each.collective("allreduce", 8, 8, "Float", 5.0, ("9", "experts", ranks)))
    return write("group.json", json.dumps(profile.document()))


def test_groups_that_no_workload_can_name():
    for ranks in ([0, 1, 3, 4], [1, 2, 3, 4], [0, 2, 4, 7], [2, 6, 10, 14, 15]):
        says(group(ranks), f"group experts has ranks {', '.join(map(str, ranks))}: not of the form")
    for ranks in ([0, 1], [4, 5, 6, 7], [3, 7, 11, 15], [9]):
        run("workload", group(ranks))
    says(group(list(range(16)), 8), "group experts has 16 ranks, of a job of 8")


def test_without_sizes_it_says_what_to_switch_on():
    def strip(document):
        for event in document["traceEvents"]:
            event["args"] = {key: value for key, value in event["args"].items() if key[0].islower() or key == "External id"}
            event["name"] = event["name"].replace("record_param_comms", "c10d::allreduce_")
    says(changed("ddp.json", strip), "all_reduce: this trace does not say how many elements", "from 2.4 on",
         "ProfilerActivity.CUDA", "ExecutionTraceObserver")


def test_a_step_without_collectives():
    profile = invent.Profile()
    profile.step(1, lambda each: each.kernel(5.0))
    profile.step(2, lambda each: each.collective("allreduce", 8, 8, "Float", 5.0))
    path = write("empty-step.json", json.dumps(profile.document()))
    run("workload", path)
    assert f"{path}: no collective in step ProfilerStep#1" in refused(path, "--step", "1")
    profile = invent.Profile()
    profile.step(1, lambda each: each.kernel(5.0))
    says(write("no-calls.json", json.dumps(profile.document())), "no collective in it")


def test_execution_traces_that_are_wrong():
    def node(change):
        def apply(document):
            change(next(each for each in document["nodes"] if each["name"] == "record_param_comms"
                        and {"name": "collective_name", "type": "string", "value": "allreduce"} in each["attrs"]))
        return lambda: changed("execution.json", apply)

    def attribute(name, value):
        return node(lambda each: next(one for one in each["attrs"] if one["name"] == name).update(value=value))
    cases = (
        (attribute("dtype", "QInt8"), "]: QInt8: unknown element type"),
        (attribute("in_msg_nelems", "x"), ".value: must be a whole number"),
        (attribute("pg_size", 0), ".value: must be a whole number from 1"),
        (attribute("collective_name", 7), ".value: must be a text"),
        (node(lambda each: each.update(attrs=[one for one in each["attrs"] if one["name"] != "pg_size"])), "attrs: no pg_size"),
        (node(lambda each: each.update(id="first")), ".id: must be a whole number"),
        (node(lambda each: each.update(name=None)), ".name: must be a text"),
        (node(lambda each: each.update(inputs=5)), "must be a list"),
    )
    for make, part in cases:
        says(make(), ": nodes[", part)
    first = json.dumps({"schema": "1.0.1", "nodes": [
        {"name": "c10d::allreduce_", "id": 3, "inputs": [[[1, 2, 0, "many", 4, "cpu"]]], "input_types": ["GenericList[Tensor(float)]"]}]})
    says(write("first.json", first), ":1: nodes[0].inputs[0][0][3]: must be a whole number")
    says(write("first.json", first.replace('"cpu"]]]', '"cpu"]], 5]').replace("many", "9")), "2 inputs and 1 types of them")


def test_sequences_that_are_wrong():
    text = read(data("job.calls"))
    for old, new, part in (("[10000.0, ", '["x", ', ":2: calls[0][0]: must be a number"),
                           ("[11500.5, ", "[9.5, ", ":2: calls[1][0]: must be a number from 10000"),
                           ('"allgather"', '"gather"', ":1: calls[0][1]: must be one of allreduce,"),
                           ("32768]", "32769]", ":1: calls[0][2]: 32769 bytes, expected a multiple of 4"),
                           ("32768]", "32768, 1]", ":1: calls[0]: must be a call"),
                           ('"nodes": 4', '"nodes": 0', ":1: nodes: must be a whole number"),
                           ('"version": 1', '"version": 2', ":1: version: must be a whole number from 1 to 1")):
        assert old in text, old
        says(write("wrong.calls", text.replace(old, new, 1)), part)
    lines = read(data("inspector-4.3.log")).split("\n")
    says(write("headless.log", "\n".join(lines[1:])), ":1: a call without the header of its communicator before it")
    says(write("torn.log", "\n".join([*lines[:3], lines[3][30:], *lines[4:]])), ":5: a call without the header")
    says(write("word.log", "\n".join(lines).replace("AllGather", "AllGone", 1)), ":2: coll_perf.coll: must be one of")
    says(write("p2p.log", "\n".join([lines[0], '{"p2p_perf": {"p2p": "Send"}}'])), ":2: p2p_perf: send and recv: no collective")


def test_files_that_are_none():
    whole = read(data("ddp.json"))
    says(write("cut.json", whole[:len(whole) // 2]), "no good JSON: the file ends early")
    packed = gzip.compress(whole.encode())
    says(write("cut.json.gz", packed[:len(packed) // 2]), "cannot be unpacked, the file is cut or damaged")
    says(write("noise.json.gz", packed[:40] + b"\x00" * 40 + packed[80:]), "cannot be unpacked")
    says(write("empty.json", ""), "is empty")
    says(write("prose.json", "It was a dark and stormy night.\n"), "no good JSON")
    says(write("other.json", '{"a": 1}'), "unknown format. Accepted: ", "Kineto", "STRATUS_RECORD")
    run("workload", write("zeros.json", whole + "\0" * 100))  # of a machine that stopped: all is there
    says(write("zeros-cut.json", whole[:len(whole) // 2] + "\0" * 100), "no good JSON: the file ends early")
    says(write("bytes.json", bytes(range(256))), "is no text")
    says(write("deep.json", '{"traceEvents":' + "[" * 100_000), "deep.json")
    says(write("list.json", '{"traceEvents": 5}'), "traceEvents: must be a list")
    says(write("items.json", '{"traceEvents": [5]}'), "traceEvents[0]: must be an object")
    says(write("ts.json", '{"traceEvents": [{"ph": "X", "name": "a", "ts": "0", "dur": 1}]}'), "traceEvents[0].ts: must be a number")
    says("tests/data/samples/recorded.jsonl", "has times of calls for `stratus-tune suggest`", ".calls")
    assert "--name a b: expected 1 to 64 letters" in refused(data("ddp.json"), "--name", "a b")
    says("/nowhere/a.json", "No such file")
    says("/tmp", "is a directory")


def test_mutations_are_read_or_refused():
    """Every outcome but a workload or a Problem that names the file is a fault of ours; the seed is printed."""
    seed = int(os.environ.get("SEED") or 1)
    chance, taken, refused_count = random.Random(seed), 0, 0
    options = argparse.Namespace(world=None, skip=set(), rank=None, step=None, batch=1, name=None, host_time=True, pg_ranks={})
    contents = {name: read(data(name)).encode() for name in sorted(os.listdir(data(""))) if name != "README.md"}
    for directory in ("trace", "inspector"):
        for name in sorted(os.listdir(f"tests/data/readers/{directory}")):
            contents[name] = read(f"tests/data/readers/{directory}/{name}").encode()
    for turn in range(60):
        for name, content in contents.items():
            path = write(f"mutant-{name}", mutate(chance, content))
            try:
                timeline = read_trace(path, options)
                step = choose(timeline, None)
                workload.check(step, timeline)
                json.loads(workload.text([step], timeline, None, options))
                taken += 1
            except Problem as problem:
                assert problem.path == path, f"seed {seed}, turn {turn}: {problem}"
                refused_count += 1
            except Exception as error:
                raise AssertionError(f"SEED={seed}, turn {turn}, {path}: {error!r}") from error
    assert taken > 30 and refused_count > 100, (taken, refused_count)
