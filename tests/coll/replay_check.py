#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tests/coll/replay.sh looks at more closely than a shell can. Prints one line and exits 1 if something is
wrong; 77 if it cannot be looked at.

usage: replay_check.py json RESULTS STEPS PLAN...     a --json file against the text of each plan (--replay-list)
       replay_check.py calls DIRECTORY PLAN WORKLOAD  NCCL's logs of its calls (subsystem COLL) against a plan
       replay_check.py document TOOL DOCUMENT RESULTS the examples of docs/workloads.md; a --json file for the keys
       replay_check.py buckets TOOL WORKLOAD...       buckets against those of PyTorch's own function
"""

import json
import os
import re
import subprocess
import sys
import tempfile

TYPES = "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2".split()
REDOPS = "sum prod max min avg".split()
CALLS = {"AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter",
         "Broadcast": "broadcast", "Reduce": "reduce", "Send": "send", "Recv": "recv"}
CALL = re.compile(r"NCCL INFO (\w+): opCount .* count (\d+) datatype (\d+) op (\d+) root (\d+) .*\[nranks=(\d+)\]")


def need(condition, what):
    if not condition:
        sys.exit(what)


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Plan:
    """The text of --replay-list, as far as it is for one rank. `groups`: (size, stride) by name."""

    def __init__(self, text, rank=0, groups=None):
        lines = [line.split() for line in text.splitlines()]
        self.name, self.parallel, self.batch, self.ranks = lines[0][1:]
        self.rank, self.groups = rank, {**(groups or {}), "world": (int(self.ranks), 1)}
        lines = [line for line in lines[1:] if self.is_own(line[-1])]
        self.collectives = [line for line in lines if line[0] == "collective"]
        self.communication = [line for line in lines if line[0] in ("collective", "send", "recv")]
        self.bytes = sum(int(line[8 if line[0] == "collective" else 6]) for line in self.communication)
        self.compute_us = sum(float(line[1]) for line in lines if line[0] == "compute")

    def place(self, group):
        """Rank 0 is the first of each group."""
        size, stride = self.groups[group] if self.rank else (1, 1)
        return self.rank // stride % size

    def is_own(self, word):
        group, _, place = word[1:].rpartition(":")
        return word[0] != "@" or self.place(group) == int(place)

    def numbers(self):
        return {line[1] for line in self.communication}


def read_plan(path, *of_whom):
    with open(path, encoding="ascii") as file:
        return Plan(file.read(), *of_whom)


def check_workload(row, steps, plan):
    need(row["name"] == plan.name and row["parallel"] == plan.parallel, f"{row['name']} in the place of {plan.name}")
    need(row["batch"] == int(plan.batch), "batch")
    need(row["collectives"] == len(plan.numbers()), f"{row['collectives']} collectives")
    need(row["bytes_per_step"] == plan.bytes, f"{row['bytes_per_step']} bytes, not {plan.bytes}")
    need(len(row["step_us"]) == steps, f"{len(row['step_us'])} steps")
    mean = sum(row["step_us"]) / steps
    need(abs(row["exposed_us"] - (mean - row["compute_us"])) < 1, "exposed_us is not mean less compute")
    # A sleep never ends early, so neither does a step.
    need(min(row["step_us"]) >= plan.compute_us, f"a step of {min(row['step_us'])} us computes {plan.compute_us} us")
    need(row["compute_us"] >= plan.compute_us, f"compute_us is {row['compute_us']}, less than {plan.compute_us}")
    need(row["cpu_s_per_step"] > 0, "no time of processors")
    need(row["wrong"] == 0, f"{row['wrong']} wrong")


def check_json(results, steps, *plans):
    data = read_json(results)
    need(data["format"] == "stratus-replay" and data["version"] == 1, "format")
    need(data["gpu"] == "emulated" and data["nccl"].startswith("2."), "head")
    need(len(data["workloads"]) == len(plans), "number of workloads")
    for row, path in zip(data["workloads"], plans):
        plan = read_plan(path)
        need(data["ranks"] == int(plan.ranks), "ranks")
        check_workload(row, int(steps), plan)


# ---- what NCCL was called with ----

def uneven_calls(plan, group, kind, split):
    """Of an alltoall: with each peer what it sends, then what it receives, if that is anything."""
    word, _, counts = split.partition(":")
    counts = list(map(int, counts.split(",")))
    for peer, part in enumerate(counts):
        own = counts[plan.place(group)]
        for name, count in (("send", part), ("recv", own)) if word == "sends" else (("send", own), ("recv", part)):
            if count:
                yield (name, count, TYPES.index(kind), None, peer)


def expected_calls(plan):
    """(call, count, type, reduction, root) in order; the two operations that are made of sends and receives as those."""
    for line in plan.communication:
        if line[0] != "collective":
            yield (line[0], int(line[5]), TYPES.index(line[2]), None, int(line[3]))
            continue
        _, _, operation, kind, redop, root, group, count, _, *split = line
        call = (int(count), TYPES.index(kind))
        if split and split[0][0] != "@":
            yield from uneven_calls(plan, group, kind, split[0])
        elif operation in ("sendrecv", "alltoall"):
            # Peers follow from rank and group: in groups of two, one neighbour, or both of the group.
            for name in ("send", "recv") * (1 if operation == "sendrecv" else 2):
                yield (name, *call, None, None)
        else:
            has_number = redop in REDOPS
            yield (operation, *call, REDOPS.index(redop) if has_number else None, int(root) if root != "-" else None)


def logged_calls(path):
    with open(path, encoding="utf-8") as file:
        found = [match.groups() for match in map(CALL.search, file) if match]
    return [(CALLS[name], *map(int, numbers)) for name, *numbers in found]


def matches(call, expected):
    return all(wanted is None or one == wanted for one, wanted in zip(call, expected))


def differs(calls, expected):
    """What is wrong with a log, or None."""
    if len(calls) != len(expected):
        return f"{len(calls)} calls, not {len(expected)}"
    return next((f"call {number} is {call}, not {wanted}" for number, (call, wanted) in enumerate(zip(calls, expected), 1)
                 if not matches(call, wanted)), None)


def check_calls(directory, path, workload):
    """Logs do not say whose they are: each rank takes the first that fits."""
    groups = {group["name"]: (group["size"], group["stride"]) for group in read_json(workload).get("groups", ())}
    logs = [logged_calls(os.path.join(directory, name)) for name in sorted(os.listdir(directory))]
    ranks = int(read_plan(path).ranks)
    need(len(logs) == ranks, f"{len(logs)} logs")
    for rank in range(ranks):
        expected = list(expected_calls(read_plan(path, rank, groups)))
        found = [differs(calls, expected) for calls in logs]
        need(None in found, f"no log has the calls of rank {rank}: {'; '.join(map(str, found))}")
        logs.pop(found.index(None))


# ---- the document ----

def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def keys(value):
    """The keys of an object and of those in it, by their places."""
    if isinstance(value, dict):
        return set(value).union(*(keys(each) for each in value.values()))
    return keys(value[0]) if isinstance(value, list) and value else set()


def list_plan(tool, path, ranks, *options):
    result = subprocess.run([tool, "--replay", path, "--replay-list", str(ranks), *options], capture_output=True,
                            text=True)
    need(result.returncode == 0, result.stderr.strip())
    return result.stdout


def check_document(tool, document, results):
    with open(document, encoding="utf-8") as file:
        text = file.read()
    examples = blocks(text, "json")
    plans = {}
    for example in examples:
        data = json.loads(example)
        if data["format"] == "stratus-replay":
            need(keys(data) == keys(read_json(results)), f"keys differ: {keys(data) ^ keys(read_json(results))}")
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            file.write(example)
            file.flush()
            plans[data["name"]] = {ranks: list_plan(tool, file.name, ranks) for ranks in (4, 8)}
            plans[data["name"]].update({2: list_plan(tool, file.name, 2)} if data["parallel"] == "ddp" else {})
    need(len(examples) == 3 and len(plans) == 2, f"{len(examples)} examples")
    shown = blocks(text, "text")
    need(shown == [plans["two-layers"][2], plans["two-stages"][4]], "the plans of the examples are others")


# ---- PyTorch's rule ----

def check_buckets(tool, *paths):
    try:
        import torch
        from torch.distributed import _compute_bucket_assignment_by_size as assign
    except ImportError as error:
        print(f"no PyTorch: {error}")
        sys.exit(77)
    for path in paths:
        data = read_json(path)
        if data["parallel"] != "ddp":
            continue
        kind = getattr(torch, data["gradient_type"])
        tensors = [torch.empty(count, dtype=kind) for layer in reversed(data["layers"])
                   for count in reversed(layer["parameters"])]
        limits = [data.get("first_bucket_bytes", 1 << 20), data.get("bucket_bytes", 25 << 20)]
        buckets, _ = assign(tensors, limits, [False] * len(tensors), list(range(len(tensors))))
        expected = [sum(tensors[i].numel() for i in bucket) for bucket in buckets]
        got = [int(line[7]) for line in Plan(list_plan(tool, path, 2)).collectives]
        need(got == expected, f"{data['name']}, limits {limits}: {got}, not {expected}")


def main(arguments):
    checks = {"json": check_json, "calls": check_calls, "document": check_document, "buckets": check_buckets}
    if not arguments or arguments[0] not in checks:
        print(__doc__, file=sys.stderr)
        return 2
    checks[arguments[0]](*arguments[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
