# SPDX-License-Identifier: Apache-2.0
"""Execution traces of MLCommons Chakra (.et) into a timeline: a graph of nodes, which is gone through in the order of the file,
no node before those that it depends on.

Facts from mlcommons/chakra schema/protobuf/et_def.proto, attributes: src/feeder/et_feeder_node.cpp,
src/converter/pytorch_converter.py. Read with success: chakra.0.et of its feeder tests, 7 collectives of ResNet-50,
102 MB.

With kernels in the trace (is_cpu_op false), what the host did is left out, and circles that it has are broken; else
all nodes count. comm_size is the bytes of a rank's input, as the converter and ASTRA-sim take it. A compute node
waits for the communication that it depends on. Sends and receives that follow each other unordered are one exchange.
Left out, counted and named: dependencies on nodes that are not there or on the node itself, nodes of memory, and
nodes of no known type. Refused: other circles, nodes of no known type that have comm_size, and fields whose wire type
is not the schema's."""
import heapq
import json
import os
import re

import chakra
from calls import ELEMENTS_MAX, empty_note
from groups import Groups
from names import BYTES_OF_TYPE, type_of_bytes
from problem import SHOWN_MAX, Problem
from step import EXCHANGE, Call, Compute, Timeline, Wait

# CollectiveCommType of the schema: what it is, and whether the bytes of a rank's input are those of all ranks' shares.
COLLECTIVES = {0: ("all_reduce", False), 1: ("reduce", False), 2: ("all_gather", False), 5: ("broadcast", False),
               6: ("alltoall", True), 7: ("reduce_scatter", True), 8: ("reduce_scatter", True), 9: ("all_reduce", False)}
BARRIER = 9
NAMES = ("ALL_REDUCE", "REDUCE", "ALL_GATHER", "GATHER", "SCATTER", "BROADCAST", "ALL_TO_ALL", "REDUCE_SCATTER",
         "REDUCE_SCATTER_BLOCK", "BARRIER")
COMMUNICATION = (chakra.COMM_SEND_NODE, chakra.COMM_RECV_NODE, chakra.COMM_COLL_NODE)
GROUP_INIT = "## process_group:init ##"
RANK = re.compile(r"\.(\d{1,7})\.et(\.gz)?$")
RANKS_MAX, BYTES_MAX, US_MAX = 1 << 20, 1 << 46, 10 ** 9


class GraphNode:
    def __init__(self, reader, number, place, message):
        self.reader, self.number, self.place, self.message = reader, number, place, message
        self.id, self.name, self.type = message.id, chakra.text_of(message.name), message.type
        self.attributes = chakra.attributes(message)
        self.before, self.after = set(), []
        self.is_host = False  # of a trace with a GPU: what the host did

    def fail(self, text):
        raise Problem(f"byte {self.place}: node {self.id}, {self.name[:60]!r}: {text}", self.reader.path)

    def value(self, name):
        """Of an attribute that is needed; None where it is not there."""
        if sum(chakra.text_of(each.name) == name for each in self.message.attr) > 1:
            self.fail(f"{name} is there twice")
        return self.attributes.get(name)

    def whole(self, name, low, high):
        value = self.value(name)
        if type(value) is not int or not low <= value <= high:
            self.fail(f"{name}: {'missing' if value is None else str(value)[:40]}, expected a whole number from {low} to {high}")
        return value


    def is_kernel(self):
        """None where the trace does not say it. Older converters write 0 and 1."""
        value = self.value("is_cpu_op")
        if value not in (None, 0, 1):
            self.fail(f"is_cpu_op: {str(value)[:40]}, expected true or false")
        return None if value is None else not value


def read_groups(path, root):
    """The file that ASTRA-sim takes beside traces: {"name": [ranks]}."""
    groups = {}
    for name, node in root.items():
        groups[name] = [each.integer(0, RANKS_MAX) for each in node.each()]
        if not groups[name] or len(set(groups[name])) != len(groups[name]):
            node.fail("must be a list of different ranks")
    return Timeline(path, "groups", groups=groups)


def is_groups(value):
    return isinstance(value, dict) and bool(value) and all(isinstance(each, list) and each and all(type(rank) is int for rank in each)
                                                           for each in value.values())


class Reader:
    def __init__(self, path, content, options):
        self.path, self.options = path, options
        self.timeline = Timeline(path, "Chakra trace", is_step=True)
        found = RANK.search(os.path.basename(path))
        self.timeline.rank = int(found.group(1)) if found else None
        self.left_out = {}
        self.pg_ranks = dict(options.pg_ranks)
        _, messages = chakra.read_messages(path, content)
        self.nodes = [GraphNode(self, number, place, message) for number, (place, message) in enumerate(messages)]
        for node in self.nodes:
            if node.name == GROUP_INIT:
                self.take_groups(node)
        self.groups = Groups(options.world or max((max(ranks) + 1 for ranks in self.pg_ranks.values()), default=None))
        self.connect()

    def take_groups(self, node):
        """PyTorch's list of process groups is JSON within the text of a node's inputs."""
        text = chakra.text_of(node.message.inputs.values)
        try:
            found = json.JSONDecoder().raw_decode(text.replace('\\"', '"'), text.index("[{"))[0]
            for group in found:
                ranks = group.get("ranks")
                if isinstance(ranks, list) and ranks and all(type(rank) is int and 0 <= rank < RANKS_MAX for rank in ranks):
                    self.pg_ranks.setdefault(str(group.get("pg_name")), ranks)
        except (ValueError, AttributeError, TypeError):
            self.leave_out(node, "lists of process groups that cannot be read")

    def leave_out(self, node, what):
        self.left_out.setdefault(what, []).append(node)

    def connect(self):
        of_id = {}
        for node in self.nodes:
            if node.id in of_id:
                node.fail(f"its id is also that of the node at byte {of_id[node.id].place}")
            of_id[node.id] = node
        for node in self.nodes:
            for each in {*node.message.ctrl_deps, *node.message.data_deps}:
                if each == node.id or each not in of_id:
                    self.leave_out(node, "dependencies on nodes " + ("themselves" if each == node.id else "that are not there"))
                    continue
                node.before.add(of_id[each])
                of_id[each].after.append(node)

    @staticmethod
    def circle(waiting):
        """Nodes of one, each of which depends on the one behind it; the last on the first. Each that waits does so for another."""
        node, way = next(node for node, count in waiting.items() if count > 0), {}
        while node not in way:
            way[node] = len(way)
            node = min((each for each in node.before if waiting[each] > 0), key=lambda each: each.number)
        return list(way)[way[node]:]

    def break_circle(self, waiting):
        """The node of one that goes first, as if it did not wait: of what the host did. There may be none."""
        circle = self.circle(waiting)
        first = min((node for node in circle if node.is_host), key=lambda each: each.number, default=None)
        if not first:
            shown = ", ".join(str(node.id) for node in circle[1:SHOWN_MAX])
            more = f" and {len(circle) - SHOWN_MAX} more" if len(circle) > SHOWN_MAX else ""
            circle[0].fail(f"is in a circle of dependencies, with nodes {shown}{more}")
        self.leave_out(first, "circles of dependencies of the host, broken")
        return first

    def in_order(self):
        """Circles of what the host did, which PyTorch's converter makes, are broken at their first node."""
        waiting = {node: len(node.before) for node in self.nodes}
        ready = [node.number for node in self.nodes if not waiting[node]]
        for _ in self.nodes:
            if not ready:
                first = self.break_circle(waiting)
                waiting[first], ready = 0, [first.number]
            node = self.nodes[heapq.heappop(ready)]
            yield node
            for each in node.after:
                waiting[each] -= 1
                if waiting[each] == 0:
                    heapq.heappush(ready, each.number)

    # ---- what nodes do ----

    def group_of(self, node):
        name = node.value("pg_name")
        name = "" if name is None else name
        if not isinstance(name, str):
            node.fail("pg_name: expected a text")
        ranks = self.pg_ranks.get(name)
        if ranks is None and name in ("", "0") and self.groups.world:
            return "world", list(range(self.groups.world))
        if ranks is None:
            node.fail(f"which ranks its group {name[:40]!r} has is not in the trace: give the file of groups beside it, or --world for all")
        return self.groups.find((name,), f"group{name}", len(ranks), ranks, node.fail), sorted(ranks)

    def take_collective(self, node):
        kind = node.whole("comm_type", 0, len(NAMES) - 1)
        if NAMES[kind].lower() in self.options.skip:
            return None
        if kind not in COLLECTIVES:
            node.fail(f"{NAMES[kind]}: no collective that a workload file can name; --skip {NAMES[kind].lower()} leaves it out")
        collective, is_shared = COLLECTIVES[kind]
        group, ranks = self.group_of(node)
        if kind == BARRIER:
            return Call(collective, 1, "float32", group, place=f"{self.path}: node {node.id}")
        size = node.whole("comm_size", 0, BYTES_MAX)
        if size == 0:
            self.leave_out(node, "calls of no elements")
            return None
        element = type_of_bytes(size)
        parts = BYTES_OF_TYPE[element] * (len(ranks) if is_shared else 1)
        if size % parts:
            element, parts = "uint8", len(ranks) if is_shared else 1
        if size % parts:
            node.fail(f"comm_size: {size}, expected a multiple of {len(ranks)}, the ranks of its group")
        if size // parts > ELEMENTS_MAX:
            node.fail(f"{size // parts} elements, expected 1 to {ELEMENTS_MAX}")
        return Call(collective, size // parts, element, group, place=f"{self.path}: node {node.id}")

    def take_transfer(self, node):
        """An exchange of one part; `in_order` joins those that nothing orders."""
        is_send = node.type == chakra.COMM_SEND_NODE
        if ("send" if is_send else "recv") in self.options.skip:
            return None
        group, ranks = self.group_of(node)
        peer = node.whole("comm_dst" if is_send else "comm_src", 0, RANKS_MAX)
        if peer not in ranks:
            node.fail(f"its peer is rank {peer}, which is not in its group")
        size = node.whole("comm_size", 1, BYTES_MAX)
        element = type_of_bytes(size)
        elements = size // BYTES_OF_TYPE[element]
        if elements > ELEMENTS_MAX:
            node.fail(f"{elements} elements, expected 1 to {ELEMENTS_MAX}")
        return Call(EXCHANGE, elements, element, group, parts=((is_send, ranks.index(peer), elements),),
                    place=f"{self.path}: node {node.id}")

    @staticmethod
    def take_compute(node):
        us = node.message.duration_micros
        if us > US_MAX:
            node.fail(f"duration_micros: {us}, expected at most {US_MAX}")
        return Compute(float(us)) if us else None

    def find_host(self):
        """PyTorch's operators are nodes like the kernels that they launch: with kernels in it, these alone count."""
        kernels = {node for node in self.nodes if node.is_kernel()}
        for node in self.nodes if kernels else ():
            node.is_host = node not in kernels

    @staticmethod
    def joins(open_call, node, call, calls):
        """Whether a send or receive is one call of NCCL with those before it: they follow each other, and nothing orders them."""
        return open_call is not None and call.group == open_call.group and call.type == open_call.type and \
            not any(calls.get(each) is open_call for each in ancestors(node))

    def read(self):
        self.find_host()
        calls, waited, open_call = {}, set(), None
        for node in self.in_order():
            if node.type in (chakra.MEM_LOAD_NODE, chakra.MEM_STORE_NODE):
                self.leave_out(node, "nodes of memory")
            elif node.type == 0 or node.type > chakra.KNOWN_LAST:
                if "comm_size" in node.attributes:
                    node.fail(f"type: {node.type}, expected one of communication, as it has comm_size")
                self.leave_out(node, "nodes of no known type")
            elif node.type not in COMMUNICATION and "comm_size" in node.attributes:
                self.leave_out(node, "comm_size of nodes that are no communication")
            item = None
            if node.type == chakra.COMP_NODE and not node.is_host:
                item = self.take_compute(node)
            elif node.type in COMMUNICATION and not node.is_host:
                item = self.take_collective(node) if node.type == chakra.COMM_COLL_NODE else self.take_transfer(node)
            for each in ancestors(node):
                if item and each in calls and calls[each] not in waited:
                    waited.add(calls[each])
                    self.timeline.add(Wait(calls[each]))
            if not item:
                continue
            if isinstance(item, Compute):
                self.timeline.add(item)
                open_call = None
                continue
            if item.parts and self.joins(open_call, node, item, calls):
                open_call.parts += item.parts
                open_call.elements += item.elements
                calls[node] = open_call
                continue
            calls[node] = item
            open_call = item if item.parts else None
            self.timeline.add(item)
        return self.finish()

    def finish(self):
        if not self.timeline.calls():
            raise Problem(f"no communication in it: none of its {len(self.nodes)} nodes moves anything", self.path)
        for what, nodes in self.left_out.items():
            shown = ", ".join(f"{node.id} ({node.name[:30]})" for node in nodes[:SHOWN_MAX])
            shown += f" and {len(nodes) - SHOWN_MAX} more" if len(nodes) > SHOWN_MAX else ""
            self.timeline.notes.append(empty_note(len(nodes), f"node {shown}") if what == "calls of no elements" else
                                       f"left out: {what}, {len(nodes)}: {shown}")
        self.timeline.groups, self.timeline.world = self.groups.forms, self.groups.world
        return self.timeline


def ancestors(node):
    """What a node depends on: directly, and through nodes that are neither compute nor communication."""
    found, left = set(), list(node.before)
    while left:
        each = left.pop()
        if each in found:
            continue
        found.add(each)
        if each.type != chakra.COMP_NODE and (each.is_host or each.type not in COMMUNICATION):
            left += each.before
    return sorted(found, key=lambda each: each.number)


def read_chakra(path, content, options):
    return Reader(path, content, options).read()
