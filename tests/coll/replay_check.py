#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tests/coll/replay.sh looks at more closely than a shell can. Prints one line and exits 1 if something is wrong.

usage: replay_check.py json RESULTS STEPS WORKLOAD...      a --json file against the lines of each workload
       replay_check.py calls DIRECTORY RANKS WORKLOAD      NCCL's logs of its calls (subsystem COLL) against the lines
"""

import json
import os
import re
import sys

TYPES = "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16".split()
TYPE_NAMES = {"float32": "float", "float16": "half"}
CALLS = {"AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter", "Send": "send", "Recv": "recv"}
CALL = re.compile(r"NCCL INFO (\w+): opCount .* count (\d+) datatype (\d+) op (\d+) root (\d+) .*\[nranks=(\d+)\]")


def need(condition, what):
    if not condition:
        sys.exit(what)


class Workload:
    """The lines of a file, as far as they are those of one rank."""

    def __init__(self, path, rank=0):
        with open(path, encoding="utf-8") as file:
            lines = [line.split() for line in file]
        heads = {words[0]: words[1] for words in lines if words[0] in ("batch", "type", "stages")}
        self.name, self.rank = os.path.basename(path)[:-4], rank
        self.batch, self.stages, self.type = int(heads.get("batch", 1)), int(heads.get("stages", 1)), heads.get("type", "float32")
        own = [words[1:] if words[0].endswith(":") else words for words in lines
               if words[0] not in heads and (not words[0].endswith(":") or words[0] == f"{rank % self.stages}:")]
        self.compute_us = sum(float(words[1]) for words in own if words[0] == "compute")
        self.communication = [words for words in own if words[0] not in ("compute", "wait")]

    def calls(self, ranks):
        """(call, count, type, reduction, root) of NCCL's, in order."""
        for words in self.communication:
            kind = next((TYPE_NAMES.get(word, word) for word in words[2:] if TYPE_NAMES.get(word, word) in TYPES),
                        TYPE_NAMES.get(self.type, self.type))
            group, place = ((self.stages, self.rank % self.stages) if "stages" in words else
                            (ranks // self.stages, self.rank // self.stages) if "copies" in words else (ranks, self.rank))
            for name, count, reduction, root in calls_of(words, group, place):
                if count:
                    yield name, count, TYPES.index(kind), reduction, root


def calls_of(words, ranks, rank):
    name, _, counts = words[1].rpartition("=")
    if words[0] == "exchange":
        return [("send", int(words[2]), None, int(words[1])), ("recv", int(words[3]), None, int(words[1]))]
    if name:
        parts = list(map(int, counts.split(",")))
        run = len(parts) // ranks
        parts = [sum(parts[i * run:(i + 1) * run]) for i in range(ranks)]
        both = [(part, parts[rank]) if name == "sends" else (parts[rank], part) for part in parts]
        return [call for peer, (sent, received) in enumerate(both)
                for call in (("send", sent, None, peer), ("recv", received, None, peer))]
    share = -(-int(words[1]) // ranks)
    if words[0] == "alltoall":
        return [(each, share, None, peer) for peer in range(ranks) for each in ("send", "recv")]
    return [(words[0], int(words[1]), 0, None) if words[0] == "all_reduce" else
            (words[0], share, 0 if words[0] == "reduce_scatter" else None, None)]


def check_json(results, steps, *paths):
    with open(results, encoding="utf-8") as file:
        data = json.load(file)
    need(data["format"] == "stratus-replay" and data["version"] == 1 and data["gpu"] == "emulated" and data["nccl"].startswith("2."), "head")
    need(len(data["workloads"]) == len(paths), "number of workloads")
    for row, path in zip(data["workloads"], paths):
        check_row(row, int(steps), Workload(path))


def check_row(row, steps, wanted):
    need(row["name"] == wanted.name and row["batch"] == wanted.batch, f"{row['name']} in the place of {wanted.name}")
    need(row["collectives"] == len(wanted.communication), f"{row['collectives']} collectives")
    need(row["bytes_per_step"] > 0 and len(row["step_us"]) == steps, f"{len(row['step_us'])} steps")
    mean = sum(row["step_us"]) / steps
    need(abs(row["exposed_us"] - (mean - row["compute_us"])) < 1, "exposed_us is not mean less compute")
    # A sleep never ends early, so neither does a step.
    compute_us = wanted.compute_us * row["compute_scale"]
    need(min(row["step_us"]) >= compute_us, f"a step of {min(row['step_us'])} us computes {compute_us} us")
    need(row["compute_us"] >= compute_us, f"compute_us is {row['compute_us']}, less than {compute_us}")
    need(row["cpu_s_per_step"] > 0, "no time of processors")
    need(row["wrong"] == 0, f"{row['wrong']} wrong")


# ---- what NCCL was called with ----

def logged_calls(path):
    with open(path, encoding="utf-8") as file:
        found = [match.groups() for match in map(CALL.search, file) if match]
    return [(CALLS[name], *map(int, numbers)) for name, *numbers in found]


def differs(calls, expected):
    """What is wrong with a log, or None."""
    if len(calls) != len(expected):
        return f"{len(calls)} calls, not {len(expected)}"
    return next((f"call {number} is {call}, not {wanted}" for number, (call, wanted) in enumerate(zip(calls, expected), 1)
                 if any(each is not None and one != each for one, each in zip(call, wanted))), None)


def check_calls(directory, ranks, path):
    """Logs do not say whose they are: each rank takes the first that fits."""
    logs = [logged_calls(os.path.join(directory, name)) for name in sorted(os.listdir(directory))]
    need(len(logs) == int(ranks), f"{len(logs)} logs")
    for rank in range(int(ranks)):
        expected = list(Workload(path, rank).calls(int(ranks)))
        found = [differs(calls, expected) for calls in logs]
        need(None in found, f"no log has the calls of rank {rank}: {'; '.join(map(str, found))}")
        logs.pop(found.index(None))


def main(arguments):
    checks = {"json": check_json, "calls": check_calls}
    if not arguments or arguments[0] not in checks:
        print(__doc__, file=sys.stderr)
        return 2
    checks[arguments[0]](*arguments[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
