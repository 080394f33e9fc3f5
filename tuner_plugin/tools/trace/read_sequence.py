# SPDX-License-Identifier: Apache-2.0
"""Sequences of calls as NCCL's plugins see them, of STRATUS_RECORD and of NCCL Inspector, into a timeline.

Both know bytes, not elements, and the time at which the host began a call, not what the GPU computed: the time
between two calls is taken as computation."""
from calls import ELEMENTS_MAX
from names import BYTES_OF_TYPE, type_of_bytes
from problem import Problem
from step import Call, Compute, Timeline
from strict_json import Document

RANKS_MAX = 1 << 20
US_MAX = 1e16
# Words of profiles, and of NCCL.
OPERATIONS = {"allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter",
              "broadcast": "broadcast", "reduce": "reduce", "AllReduce": "all_reduce", "AllGather": "all_gather",
              "ReduceScatter": "reduce_scatter", "Broadcast": "broadcast", "Reduce": "reduce"}


class Communicator:
    def __init__(self, ranks, nodes, rank=None):
        self.ranks, self.nodes, self.rank = ranks, nodes, rank
        self.calls = []  # (time in us or None, operation, bytes of the NCCL call's count, place)


def documents(path, text):
    """One object a line; what a job that was killed left of its last line is not counted."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield Document(path, line, number), None
        except Problem as problem:
            if number < len(lines) or "\n" not in text:
                raise Problem(problem.text, path, number, problem.column) from None
            yield None, f"line {number} was not finished by its writer"


def operation_of(node):
    return OPERATIONS[node.word(tuple(OPERATIONS))]


# ---- STRATUS_RECORD ----

def is_record(value):
    return isinstance(value, dict) and value.get("format") == "stratus-calls"


def read_record(path, text, options):
    timeline, communicators = Timeline(path, "STRATUS_RECORD", is_sequence=True), []
    for document, note in documents(path, text):
        if note:
            timeline.notes.append(note)
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
            communicator.calls.append((before, operation, size // share, node))
        communicators.append(communicator)
    return merge(timeline, communicators, options)


# ---- NCCL Inspector ----

def is_inspector(value):
    return isinstance(value, dict) and any(key in value for key in ("coll_perf", "p2p_perf", "dump_stats"))


def read_inspector(path, text, options):
    timeline, communicators, current, lost = Timeline(path, "NCCL Inspector", is_sequence=True), {}, None, 0
    for document, note in documents(path, text):
        if note:
            timeline.notes.append(note)
            continue
        root = document.root
        if root.has("header"):
            header = root.get("header")
            key = header.get("id").text()
            if key not in communicators:
                communicators[key] = Communicator(header.get("n_ranks").integer(1, RANKS_MAX),
                                                  header.get("nnodes").integer(1, RANKS_MAX),
                                                  header.get("rank").integer(0, RANKS_MAX))
            current = communicators[key]
        if root.has("dump_stats") and root.get("dump_stats").has("coll_dropped_total"):
            lost = max(lost, root.get("dump_stats").get("coll_dropped_total").integer())
        if root.has("p2p_perf") and not {"send", "recv"} <= options.skip:
            root.get("p2p_perf").fail("send and recv: no collective that a workload file can name; --skip send,recv leaves "
                                      "them out")
        if root.has("coll_perf"):
            if current is None:
                root.fail("a call without the header of its communicator before it")
            take_inspected(root.get("coll_perf"), current)
    if lost:
        timeline.notes.append(f"Inspector lost {lost} calls (NCCL_INSPECTOR_DUMP_COLL_RING_SIZE): steps may be incomplete")
    for communicator in communicators.values():
        communicator.calls.sort(key=lambda call: call[0])
        communicator.calls = [(call[1], *call[2:]) for call in communicator.calls]
    timeline.rank = next((each.rank for each in communicators.values()), None)
    timeline.has_times = all(call[0] is not None for each in communicators.values() for call in each.calls)
    if not timeline.has_times:
        timeline.notes.append("no times of calls in it: set NCCL_INSPECTOR_DUMP_VERBOSE=1")
        if len(communicators) > 1:
            raise Problem("several communicators without times of their calls, so their order is not known: set "
                          "NCCL_INSPECTOR_DUMP_VERBOSE=1", path)
    return merge(timeline, list(communicators.values()), options)


def take_inspected(node, communicator):
    begin = node.get("event_trace_ts").get("coll_start_ts") if node.has("event_trace_ts") else None
    communicator.calls.append((node.get("coll_sn").integer(), begin.number(0, US_MAX) if begin else None,
                               operation_of(node.get("coll")), node.get("coll_msg_size_bytes").integer(1), node))


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
        calls += [(begin, order, operation, size, group, node) for order, (begin, operation, size, node) in enumerate(each.calls)]
    if timeline.has_times:
        calls.sort(key=lambda call: call[0])
    before = None
    for begin, order, operation, size, group, node in calls:
        place = begin if timeline.has_times else order
        if timeline.has_times and before is not None:
            timeline.items.append((place, Compute(begin - before)))
        before = begin
        element = type_of_bytes(size)
        count = size // BYTES_OF_TYPE[element]
        if count > ELEMENTS_MAX:
            node.fail(f"{count} elements, expected 1 to {ELEMENTS_MAX}")
        timeline.items.append((place, Call(operation, count, element, group, place=f"{timeline.path}: {node.name}")))
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
