# SPDX-License-Identifier: Apache-2.0
"""Traces of PyTorch's profiler (Kineto; the JSON of Chrome's trace viewer) into a timeline. README: the rules."""
import re

import gpu
from calls import Skipped, is_collective, list_of_numbers, make_call, operation_of, ranks_of_list
from groups import Groups
from step import Call, Compute, Timeline

RUNTIME = ("cuda_runtime", "cuda_driver")
GPU = ("kernel", "gpu_memcpy", "gpu_memset")
STEP = re.compile(r"ProfilerStep\s?#\d+")
OPERATOR = re.compile(r"c10d::(\w+?)_?")
MARKERS = re.compile(r"c10d::|gloo:|nccl:|record_param_comms$|ProfilerStep|## ")
TS_MAX = 1e16  # microseconds; of the clocks that PyTorch uses, 1970's counts furthest
RANKS_MAX = 1 << 20


class Event:
    """One complete event ("ph": "X") of the trace, checked."""
    __slots__ = ("node", "name", "category", "begin", "end", "thread", "args")

    def __init__(self, node):
        self.node, value = node, node.value
        self.name, begin, duration = value.get("name"), value.get("ts"), value.get("dur")
        # The checks of Node take 5 times as long, and a trace has millions of events: they only say what is wrong.
        if not isinstance(self.name, str) or type(begin) not in (int, float) or type(duration) not in (int, float) or \
                not 0 <= begin <= TS_MAX or not 0 <= duration <= TS_MAX:
            node.get("name").text(1 << 20)
            begin, duration = node.get("ts").number(0, TS_MAX), node.get("dur").number(0, TS_MAX)
        self.begin, self.end = begin, begin + duration
        self.category = value.get("cat")
        self.thread = (str(value.get("pid")), str(value.get("tid")))
        self.args = value["args"] if isinstance(value.get("args"), dict) else {}

    def arg(self, name):
        return self.node.get("args").get(name)

    def stream(self):
        return self.args.get("stream")


class Reader:
    def __init__(self, document, options):
        root = document.root
        self.options = options
        self.timeline = Timeline(document.path, "profiler trace")
        self.ops, self.operators, self.kernels, self.launches, self.waits, self.cpu = [], [], [], {}, [], {}
        world = options.world
        if isinstance(root.value, dict) and root.has("distributedInfo"):
            world = self.take_distributed(root.get("distributedInfo"), world)
        self.groups = Groups(world)
        events = root.get("traceEvents") if isinstance(root.value, dict) else root
        for node in events.each():
            self.take(node)
        self.timeline.groups = self.groups.forms

    def take_distributed(self, node, world):
        if node.has("rank"):
            self.timeline.rank = node.get("rank").integer(0, RANKS_MAX)
        if world is None and node.has("world_size"):
            world = node.get("world_size").integer(1, RANKS_MAX)
        return world

    def take(self, node):
        value = node.value
        if not isinstance(value, dict):
            node.fail("must be an object")
        if value.get("ph") != "X":
            return
        category = value.get("cat")
        if category in ("Trace", "python_function", "gpu_user_annotation", "fwdbwd", "ac2g"):
            return
        event = Event(node)
        if category in RUNTIME:
            if "correlation" in event.args:
                self.launches[event.args["correlation"]] = event
        elif category in GPU:
            self.kernels.append(event)
        elif category == "cuda_sync":
            self.waits.append(event)
        elif STEP.fullmatch(event.name):
            self.timeline.marks.append((event.name.replace(" ", ""), event.begin, event.end))
        elif event.name == "record_param_comms":
            self.ops.append(event)
        else:
            if OPERATOR.fullmatch(event.name):
                self.operators.append(event)
            self.cpu.setdefault(event.thread, []).append(event)

    # ---- collectives ----

    def call_of(self, event):
        """Of a record_param_comms, or of an NCCL kernel that has its facts."""
        name = event.arg("Collective name").text()
        if name in self.options.skip:
            raise Skipped
        size = event.arg("Group size").integer(1, RANKS_MAX)
        given, received = (event.arg(f"{side} msg nelems").integer() for side in ("In", "Out"))
        group = self.group_of(event, size)
        root = event.args.get("Rank") if name in ("broadcast", "_broadcast_oop", "reduce", "_reduce_oop") else 0
        call = make_call(name, given, received, event.arg("dtype").text(), group, size,
                         event.arg("Rank").integer(0, size - 1) if root else 0, event.node)
        if call.collective == "alltoall":
            self.check_splits(event)
        return call

    def check_splits(self, event):
        splits = {split for side in ("In", "Out") if event.node.get("args").has(f"{side} split size")
                  for split in list_of_numbers(event.arg(f"{side} split size").text(), event.arg(f"{side} split size"))[0]}
        if len(splits) > 1:
            note = "all-to-all calls give different numbers of elements to each rank: imported as even ones, of the same sum"
            self.timeline.notes += [note] if note not in self.timeline.notes else []

    def group_of(self, event, size):
        name = event.args.get("Process Group Name", event.args.get("Process Group ID", ""))
        description = event.args.get("Process Group Description")
        label = description if isinstance(description, str) and description not in ("", "undefined") else f"group{name}"
        node = event.arg("Process Group Ranks")
        ranks = ranks_of_list(node.text(), size, node) if node.value is not None else None
        return self.groups.find((str(name), size, tuple(ranks or ())), label, size, ranks, event.node.fail)

    def is_described(self, event):
        return isinstance(event.args.get("Collective name"), str)

    def take_calls(self):
        """(event, call) of all of them. Without sizes in the trace, the calls are known by the operators alone."""
        described = [event for event in self.ops if self.is_described(event)]
        if not described and not any(self.is_described(kernel) for kernel in self.kernels):
            return [(event, Call(operation_of(name, event.node)[0], place=f"{self.timeline.path}: {event.node.name}"))
                    for event in self.operators for name in OPERATOR.fullmatch(event.name).groups()
                    if is_collective(name) and name not in self.options.skip]
        found, taken = [], set()
        for event in described:
            taken.add(event.args.get("External id"))
            if is_collective(event.args["Collective name"]):
                found.append((event, event))
        # What a CUDA graph launches has no operator, but newer releases describe its kernels.
        found += [(kernel, kernel) for kernel in self.kernels
                  if self.is_described(kernel) and kernel.args.get("External id") not in taken]
        calls = []
        for event, facts in found:
            try:
                calls.append((event, self.call_of(facts)))
            except Skipped:
                pass
        return calls

    # ---- compute ----

    def read(self):
        calls = self.take_calls()
        items = [((event.begin, 0), call) for event, call in calls]
        self.timeline.marks.sort(key=lambda mark: mark[1])
        if self.kernels:
            items += gpu.compute_and_waits(self, calls)
        else:
            items += self.cpu_compute(calls)
        items.sort(key=lambda item: item[0])
        self.timeline.items = [(place[0], item) for place, item in items]
        return self.timeline

    def cpu_compute(self, calls):
        """No GPU in it: the time of the operators that contain no other, on the threads that begin collectives."""
        items = []
        for thread in {event.thread for event, _ in calls}:
            events = sorted(self.cpu.get(thread, ()), key=lambda event: (event.begin, -event.end))
            until = 0.0
            for event, after in zip(events, [*events[1:], None]):
                has_parts = after and after.begin < event.end
                if not has_parts and not MARKERS.match(event.name):
                    items.append(((event.begin, 2), Compute(max(0.0, event.end - max(event.begin, until)))))
                    until = max(until, event.end)
        return items


def is_profiler(value):
    """Kineto's are objects; without Kineto, as Debian builds PyTorch 1.13, a list of events."""
    return isinstance(value, dict) and "traceEvents" in value or \
        isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "ph" in value[0]


def read_profiler(document, options):
    return Reader(document, options).read()
