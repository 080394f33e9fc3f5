# SPDX-License-Identifier: Apache-2.0
"""Sequences of calls as NCCL's plugins see them into a timeline: those of STRATUS_RECORD, and what those of NCCL Inspector
(read_inspector.py) have in common with them.

Both know bytes, not elements, and the time at which the host began a call, not what the GPU computed: the time
between two calls is taken as computation.

The element type is float32 where four divide the bytes, else uint8. Of the communicators the largest is the job; a
smaller one is of neighbours if it is on one node, and of one rank of each node if it has as many nodes as ranks; of
others it cannot be told. The format: tuner_plugin/plugin/record.h."""
from calls import ELEMENTS_MAX
from names import BYTES_OF_TYPE, type_of_bytes
from mend import put_right
from problem import Problem
from step import Call, Compute, Timeline
from strict_json import LENIENT, Document

RANKS_MAX = 1 << 20
US_MAX = 1e16
# Words of profiles, and of NCCL.
OPERATIONS = {"allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter",
              "broadcast": "broadcast", "reduce": "reduce", "AllReduce": "all_reduce", "AllGather": "all_gather",
              "ReduceScatter": "reduce_scatter", "Broadcast": "broadcast", "Reduce": "reduce"}


class Communicator:
    def __init__(self, ranks, nodes, rank=None):
        self.ranks, self.nodes, self.rank = ranks, nodes, rank
        self.calls = []  # (time in us or None, operation, bytes of the NCCL call's count, place, number or None)


def documents(path, text):
    """One object a line, as (document, or None and what is wrong with the line; the line; whether its writer was stopped in it)."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield Document(path, put_right(line), number, LENIENT), None, line, False
            except Problem as problem:
                yield None, Problem(problem.text, path, number, problem.column), line, number == len(lines) > 1


def unfinished(problem):
    return f"line {problem.line} was not finished by its writer"


def operation_of(node):
    return OPERATIONS[node.word(tuple(OPERATIONS))]


# ---- STRATUS_RECORD ----

def is_record(value):
    return isinstance(value, dict) and value.get("format") == "stratus-calls"


def read_record(path, text, options):
    timeline, communicators = Timeline(path, "STRATUS_RECORD", is_sequence=True), []
    for document, problem, _, is_last in documents(path, text):
        if problem and not is_last:
            raise problem  # all calls of a communicator
        if problem:
            timeline.notes.append(unfinished(problem))
            continue
        root = document.root
        root.get("format").word(("stratus-calls",))
        root.get("version").integer(1, 1)
        ranks, nodes = root.get("ranks").integer(1, RANKS_MAX), root.get("nodes").integer(1, RANKS_MAX)
        communicator, before = Communicator(ranks, nodes), 0.0
        for node in root.get("calls").each():
            parts = list(node.each())
            if len(parts) != 3:
                node.fail("must be a call: [microseconds, collective, bytes]")
            before = parts[0].number(before, US_MAX)
            operation, size = operation_of(parts[1]), parts[2].integer(1)
            share = ranks if operation in ("all_gather", "reduce_scatter") else 1
            if size % share:
                parts[2].fail(f"{size} bytes, expected a multiple of {ranks}, the number of ranks")
            communicator.calls.append((before, operation, size // share, node, None))
        communicators.append(communicator)
    return merge(timeline, communicators, options)


# ---- both ----

def merge(timeline, communicators, options):
    """Communicators of one process into one timeline. The largest is the job."""
    communicators = [each for each in communicators if each.calls]
    if not communicators:
        raise Problem("no call in it", timeline.path)
    communicators.sort(key=lambda each: -each.ranks)
    world = options.world or communicators[0].ranks
    calls = []
    for number, each in enumerate(communicators):
        group = group_of(timeline, each, number, world, communicators[0])
        calls += [(begin, order, group, *call) for order, (begin, *call) in enumerate(each.calls)]
    if timeline.has_times:
        calls.sort(key=lambda call: call[0])
    before = None
    for begin, order, group, operation, size, node, number in calls:
        place = begin if timeline.has_times else order
        if timeline.has_times and before is not None:
            timeline.items.append((place, Compute(begin - before)))
        before = begin
        element = type_of_bytes(size)
        count = size // BYTES_OF_TYPE[element]
        if count > ELEMENTS_MAX:
            node.fail(f"{count} elements, expected 1 to {ELEMENTS_MAX}")
        timeline.items.append((place, Call(operation, count, element, group, place=f"{timeline.path}: {node.name}", number=number)))
    return timeline


def group_of(timeline, communicator, number, world, largest):
    """Which ranks a smaller one has is not recorded. Two forms can be told: all within a node, and one of each node."""
    ranks, nodes = communicator.ranks, communicator.nodes
    if ranks > world:
        raise Problem(f"a communicator of {ranks} ranks, of a job of {world}", timeline.path)
    if ranks == world and number == 0:
        return "world"
    if nodes == 1 or ranks == world:
        stride = 1
    elif nodes == ranks and largest.ranks % largest.nodes == 0:
        stride = largest.ranks // largest.nodes
    else:
        raise Problem(f"which {ranks} of {world} ranks its communicator {number + 1} has, on {nodes} nodes, cannot be told",
                      timeline.path)
    name = f"group{number}"
    timeline.groups[name] = (ranks, stride)
    return name
