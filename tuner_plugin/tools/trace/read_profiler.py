# SPDX-License-Identifier: Apache-2.0
"""Traces of PyTorch's profiler (Kineto; the JSON of Chrome's trace viewer) into a timeline.

Facts from pytorch/kineto libkineto/src/output_json.cpp and pytorch/pytorch
torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, torch/csrc/profiler/util.cpp (saveNcclMeta),
torch/cuda/_graph_annotations.py. Read with success: the public traces of April and May 2024 among the tests of
facebookresearch/HolisticTraceAnalysis (nccl_parser_config, ns_resolution_trace).

A collective begins after the kernels that the host launched before it (`correlation`; where no launch is in the
trace, the kernel's begin stands for it). A step has what the host began within its ProfilerStep#N."""
import bisect
import re

import gpu
from calls import TRANSFERS, Empty, Skipped, empty_note, is_collective, is_guessed, list_of_numbers, make_call, make_transfer, \
    operation_of, ranks_of_list
from groups import Groups
from problem import SHOWN_MAX, lines_text
from step import Call, Compute, Timeline

RUNTIME = ("cuda_runtime", "cuda_driver")
GPU = ("kernel", "gpu_memcpy", "gpu_memset")
PASSED_OVER = ("Trace", "python_function", "gpu_user_annotation", "fwdbwd", "ac2g")
STEP = re.compile(r"ProfilerStep\s?#\d+")
OPERATOR = re.compile(r"c10d::(\w+?)_?")
MARKERS = re.compile(r"c10d::|gloo:|nccl:|record_param_comms$|ProfilerStep|## ")
TS_MAX = 1e16  # microseconds; of the clocks that PyTorch uses, 1970's counts furthest
RANKS_MAX = 1 << 20
UNEVEN = "all-to-all calls give different numbers of elements to each rank: imported as even ones, of the same sum"


def is_readable(value):
    """As the checks of Node say, which take 5 times as long, and a trace has millions of events: they only say what is wrong."""
    begin, duration = value.get("ts"), value.get("dur")
    return isinstance(value.get("name"), str) and type(begin) in (int, float) and type(duration) in (int, float) and \
        0 <= begin <= TS_MAX and 0 <= duration <= TS_MAX


def is_needed(value):
    """Whatever else is in the trace."""
    name, category, args = value.get("name"), value.get("cat"), value.get("args")
    if category in RUNTIME:
        return isinstance(args, dict) and "correlation" in args
    return category in (*GPU, "cuda_sync") or not isinstance(name, str) or name == "record_param_comms" or \
        STEP.fullmatch(name) is not None or OPERATOR.fullmatch(name) is not None


class Event:
    """One complete event ("ph": "X") of the trace, checked."""
    __slots__ = ("node", "name", "category", "begin", "end", "thread", "args")

    def __init__(self, node, is_good=False):
        self.node, value = node, node.value
        self.name, begin, duration = value.get("name"), value.get("ts"), value.get("dur")
        if not is_good:
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


class Marks:
    """Events of one name and thread, in their order."""

    def __init__(self):
        self.events, self.times = [], []


NO_MARKS = Marks()


class Reader:
    def __init__(self, document, options):
        root = document.root
        self.options = options
        self.timeline = Timeline(document.path, "profiler trace")
        self.ops, self.operators, self.kernels, self.launches, self.waits, self.cpu = [], [], [], {}, [], {}
        self.unreadable = []  # nodes of host events, which count only without a GPU
        world = options.world
        if isinstance(root.value, dict) and root.has("distributedInfo"):
            world = self.take_distributed(root.get("distributedInfo"), world)
        self.groups = Groups(world)
        events = root.get("traceEvents") if isinstance(root.value, dict) else root
        for node in events.each():
            self.take(node)
        if self.unreadable and not self.kernels:
            Event(self.unreadable[0])
        if self.unreadable:
            lines = [node.line for node in self.unreadable[:SHOWN_MAX + 1]] + [0] * len(self.unreadable[SHOWN_MAX + 1:])
            self.timeline.notes.append(f"left out: {lines_text(lines)}: events of the host without a good name, ts and dur, not "
                                       "needed")
        self.timeline.groups, self.timeline.world = self.groups.forms, self.groups.world

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
        if category in PASSED_OVER:
            return
        is_good = is_readable(value)
        if not is_good and not is_needed(value):
            self.unreadable.append(node)
            return
        event = Event(node, is_good)
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
        group, ranks = self.group_of(event, size)
        if name in TRANSFERS:
            return make_transfer(name, given or received, event.arg("dtype").text(), group, size, self.peer_of(event, name, ranks),
                                 event.node)
        root = event.args.get("Rank") if name in ("broadcast", "_broadcast_oop", "reduce", "_reduce_oop") else 0
        call = make_call(name, given, received, event.arg("dtype").text(), group, size,
                         event.arg("Rank").integer(0, size - 1) if root else 0, event.node)
        if call.collective == "alltoall":
            call.splits = self.splits_of(event, size)
        return call

    def splits_of(self, event, size):
        """Elements for each rank and from each, where they differ; None where they do not, or PyTorch cut a list."""
        lists = []
        for node in (event.arg(f"{side} split size") for side in ("In", "Out")):
            numbers, rest = list_of_numbers(node.text(), node) if node.value is not None else ([], None)
            lists.append(numbers)
            if rest is not None and len({*numbers, *rest}) > 1:
                self.note_once(UNEVEN)
        if len({*lists[0], *lists[1]}) < 2 or any(len(each) != size or min(each) < 0 for each in lists):
            if len({*lists[0], *lists[1]}) > 1:
                self.note_once(UNEVEN)
            return None
        return tuple(map(tuple, lists))

    def peer_of(self, event, name, ranks):
        """The peer's place in its group: the rank in the job is told where PyTorch knows it, else that place itself."""
        key = "Dst Rank" if TRANSFERS[name] else "Src Rank"
        if ranks and event.args.get(key) is not None:
            peer = event.arg(key).integer(0, RANKS_MAX)
            if peer not in ranks:
                event.node.fail(f"its {key} is {peer}, which is not in its group")
            return sorted(ranks).index(peer)
        return event.arg("Rank").integer(0, RANKS_MAX)

    def note_once(self, note):
        self.timeline.notes += [note] if note not in self.timeline.notes else []

    def group_of(self, event, size):
        """(our name of it, its ranks; None: all, or not known)."""
        name = event.args.get("Process Group Name", event.args.get("Process Group ID", ""))
        description = event.args.get("Process Group Description")
        label = description if isinstance(description, str) and description not in ("", "undefined") else f"group{name}"
        node = event.arg("Process Group Ranks")
        is_of_all = size == self.groups.world and isinstance(node.value, str) and "..." in node.value
        ranks = ranks_of_list(node.text(), size, node) if node.value is not None and not is_of_all else None
        if ranks and is_guessed(node.text()):
            self.note_once(f"which ranks {label} has beyond those that PyTorch wrote is not in the trace: continued with their "
                           "distance")
        return self.groups.find((str(name), size, tuple(ranks or ())), label, size, ranks, event.node.fail), ranks

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
        calls, empty = [], 0
        for event, facts in sorted(found, key=lambda pair: pair[0].begin):
            try:
                calls.append((event, self.call_of(facts)))
            except Empty:
                empty += 1
            except Skipped:
                pass
        if empty:
            self.timeline.notes.append(empty_note(empty))
        return self.coalesced(calls)

    def marks_of(self, name):
        """{thread: Marks}."""
        found = {}
        for event in sorted(self.ops, key=lambda event: event.begin):
            if event.args.get("Collective name") == name:
                marks = found.setdefault(event.thread, Marks())
                marks.events.append(event)
                marks.times.append(event.begin)
        return found

    def coalesced(self, calls):
        """Sends and receives between the same two marks are one call of NCCL, which is launched at the second: that is another
        event by which the kernel may be known."""
        begins, ends = self.marks_of("start_coalescing"), self.marks_of("end_coalescing")
        open_ones, joined, launches = {}, [], []
        for event, call in calls:
            before, after = begins.get(event.thread, NO_MARKS), ends.get(event.thread, NO_MARKS)
            begun, ended = bisect.bisect_right(before.times, event.begin) - 1, bisect.bisect_left(after.times, event.begin)
            is_between = call.parts and begun >= 0 and ended < len(after.times) and \
                (ended == 0 or after.times[ended - 1] <= before.times[begun])
            if not is_between:
                joined.append((event, call))
                continue
            first = open_ones.setdefault((before.events[begun], call.group, call.type), call)
            if first is call:
                launches.append((after.events[ended], first))
            else:
                first.parts += call.parts
                first.elements += call.elements
            joined.append((event, first))
        return joined + launches

    # ---- compute ----

    def read(self):
        calls = self.take_calls()
        items, seen = [], set()
        for event, call in calls:
            if call not in seen:
                items.append(((event.begin, 0), call))
            seen.add(call)
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
