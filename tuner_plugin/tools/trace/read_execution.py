# SPDX-License-Identifier: Apache-2.0
"""PyTorch's execution traces into a timeline: collectives with sizes, in their order, without times.

Schema 1.0.1 is what Debian's PyTorch 1.13.1 writes (tests/trace/ddp_job.py); 1.1.x-chakra: pytorch/pytorch
torch/csrc/profiler/standalone/execution_trace_observer.cpp. Read with success: ResNet on two GPUs among the tests of
facebookresearch/param. `wait` entries name the number of the call; those of 1.13 have none."""
import json
import re

from calls import Empty, Skipped, empty_note, is_collective, make_call
from groups import Groups
from names import COLLECTIVES, INPUT_PER_RANK, OUTPUT
from step import Timeline, Wait

STEP = re.compile(r"ProfilerStep\s?#\d+")
OPERATOR = re.compile(r"c10d::(\w+?)_?")
GROUP_INIT = "## process_group:init ##"
RANKS_MAX = 1 << 20
# Tensors of a c10d operator whose elements count: the inputs', except where its schema has the outputs first.
TENSORS_SECOND = ("allgather", "_allgather_base", "allgather_coalesced", "allgather_into_tensor_coalesced", "alltoall",
                  "alltoall_base")
ROOT_AT = {"broadcast": 2, "reduce": 3}


class ExecutionNode:
    """Both layouts: lists beside the name (1.13: schema 1.0.1), and since Chakra's schema below inputs and attrs."""

    def __init__(self, node):
        self.node = node
        self.name = node.get("name").text(1 << 20)
        self.id = node.get("id").integer()
        self.parent = node.value.get("parent", node.value.get("ctrl_deps"))

    def attributes(self):
        if not self.node.has("attrs"):
            return {}
        return {each.get("name").text(): each.get("value") for each in self.node.get("attrs").each()}

    def inputs(self):
        inputs = self.node.get("inputs")
        return list((inputs.get("values") if isinstance(inputs.value, dict) else inputs).each())

    def types(self):
        inputs = self.node.get("inputs")
        types = inputs.get("types") if isinstance(inputs.value, dict) else self.node.get("input_types")
        return [each.text(1 << 20) for each in types.each()]


def tensors(node):
    """All of a value: [id, storage, offset, elements, bytes of one, device], or lists of them. Newer ones may have more."""
    value = node.value
    if not isinstance(value, list):
        node.fail("must be a tensor or a list of tensors")
    if len(value) >= 6 and isinstance(value[5], str):
        return [node]
    return [tensor for each in node.each() for tensor in tensors(each)]


def elements(found):
    return sum(next(node for place, node in enumerate(tensor.each()) if place == 3).integer() for tensor in found)


def element_type(text):
    """"GenericList[Tensor(float)]"."""
    found = re.search(r"Tensor\(([^()]*)\)", text)
    return found.group(1) if found else text[:60]


class Reader:
    def __init__(self, document, options):
        self.document, self.options = document, options
        self.timeline = Timeline(document.path, "execution trace", has_times=False)
        self.groups = Groups(options.world)
        self.of_seq, self.pg_ranks = {}, {}
        self.nodes = sorted((ExecutionNode(node) for node in document.root.get("nodes").each()), key=lambda each: each.id)

    def read(self):
        described = [node for node in self.nodes if node.name == "record_param_comms" and "collective_name" in node.attributes()]
        operators = [] if described else [node for node in self.nodes if OPERATOR.fullmatch(node.name)]
        for node in self.nodes:
            if node.name == GROUP_INIT:
                self.take_groups(node)
        empty = 0
        for node in described or operators:
            try:
                if described:
                    self.take_described(node)
                else:
                    self.take_operator(node)
            except Empty:
                empty += 1
            except Skipped:
                pass
        if empty:
            self.timeline.notes.append(empty_note(empty))
        if operators:
            self.timeline.notes.append("its collectives do not say their process group: all are imported into `world`")
        self.take_marks()
        self.timeline.groups = self.groups.forms
        self.timeline.items.sort(key=lambda item: item[0])
        return self.timeline

    def take_marks(self):
        """A step ends where the next begins. A node is written when it ends: of what the observer was stopped in, only the
        parts are there, and so the last step ends with the first part of a node that is not."""
        begins = [(node.name.replace(" ", ""), node.id) for node in self.nodes if STEP.fullmatch(node.name)]
        if not begins:
            return
        written = {node.id for node in self.nodes}
        open_ones = [node.parent for node in self.nodes
                     if type(node.parent) is int and node.parent > begins[-1][1] and node.parent not in written]
        ends = [begin for _, begin in begins[1:]] + [min(open_ones, default=self.nodes[-1].id + 1)]
        self.timeline.marks = [(name, begin, end) for (name, begin), end in zip(begins, ends)]

    def take_groups(self, node):
        for text in node.inputs():
            try:
                found = json.loads(text.text(1 << 24))
            except ValueError:
                text.fail("must be JSON of the process groups")
            for group in found if isinstance(found, list) else []:
                ranks = group.get("ranks") if isinstance(group, dict) else None
                if isinstance(ranks, list) and ranks and all(type(rank) is int and 0 <= rank < RANKS_MAX for rank in ranks):
                    self.pg_ranks[str(group.get("pg_name"))] = ranks

    # ---- record_param_comms: newer releases, NCCL ----

    def take_described(self, node):
        attributes = node.attributes()
        name = attributes["collective_name"].text()
        if not is_collective(name):
            self.take_wait(node)
            return
        if name in self.options.skip:
            raise Skipped

        def attribute(key):
            return attributes[key] if key in attributes else node.node.fail(f"attrs: no {key}")
        size = attribute("pg_size").integer(1, RANKS_MAX)
        inputs = node.inputs()
        root = inputs[3] if name in ("broadcast", "_broadcast_oop", "reduce", "_reduce_oop") and len(inputs) > 3 else None
        call = make_call(name, attribute("in_msg_nelems").integer(), attribute("out_msg_nelems").integer(),
                         attribute("dtype").text(), self.group_of(attributes, size, node.node), size,
                         root.integer(0, size - 1) if root else 0, node.node)
        self.timeline.items.append((node.id, call))
        if len(inputs) > 1:
            self.of_seq[str(inputs[1].value)] = call

    def take_wait(self, node):
        """Of the newest call with that number: the number counts within a process group, which older ones do not name."""
        inputs = node.inputs()
        call = self.of_seq.get(str(inputs[0].value)) if inputs else None
        if call and node.attributes()["collective_name"].value == "wait":
            self.timeline.items.append((node.id, Wait(call)))

    def group_of(self, attributes, size, node):
        def text(key):
            return attributes[key].text() if key in attributes else ""

        def number(key):
            return attributes[key].integer(-1, (1 << 64) - 1) if key in attributes else -1
        name, description = text("pg_name"), text("pg_desc")
        start, stride = number("global_rank_start"), number("global_rank_stride")
        ranks = self.pg_ranks.get(name)
        if ranks is None and 0 <= start < RANKS_MAX and 0 < stride < RANKS_MAX:
            ranks = [start + index * stride for index in range(size)]
        label = description if description not in ("", "undefined") else f"group{name}"
        return self.groups.find((name, size), label, size, ranks, node.fail)

    # ---- c10d operators: PyTorch 1.13, and gloo ----

    def take_operator(self, node):
        name = OPERATOR.fullmatch(node.name).group(1)
        if not is_collective(name):
            return
        if name in self.options.skip:
            raise Skipped
        if name not in COLLECTIVES or name == "barrier":
            self.timeline.items.append((node.id, make_call(name, 1, 1, "float", "world", 1, 0, node.node)))
            return
        inputs, types = node.inputs(), node.types()
        place = 1 if name in TENSORS_SECOND else 0
        if len(inputs) <= place or len(types) != len(inputs):
            node.node.fail(f"{len(inputs)} inputs and {len(types)} types of them, expected the operator's")
        found = tensors(inputs[place])
        root = inputs[ROOT_AT[name]].integer(0, RANKS_MAX) if name in ROOT_AT and len(inputs) > ROOT_AT[name] else 0
        size = self.options.world or (len(found) if name == "alltoall" else 0)
        if COLLECTIVES[name][1] == INPUT_PER_RANK and not size:
            node.node.fail(f"{name}: the number of ranks is not in the trace: give --world")
        count = elements(found)
        call = make_call(name, count, count if COLLECTIVES[name][1] == OUTPUT else 0, element_type(types[place]), "world", size,
                         root, node.node)
        self.timeline.items.append((node.id, call))


def is_execution(value):
    return isinstance(value, dict) and isinstance(value.get("nodes"), list) and "schema" in value


def read_execution(document, options):
    return Reader(document, options).read()
