# SPDX-License-Identifier: Apache-2.0
"""What every reader makes of a trace: a timeline of one rank, which is cut into steps.

Steps are ProfilerStep#N, else the whole trace is one. Sequences, and PyTorch's traces with --step, are cut where the
calls repeat: the longest part that repeats at least once, if it is at least half of all; a step begins at the longest
median time between two calls of the cycle. A job all of whose calls are equal has steps of one call. Numbers of calls
(NCCL Inspector) that skip at the same place in every repetition are of calls that are not reported (CUDA graphs);
where they skip once, a line was lost, and the step is cut from the longest part without such a place."""
import bisect
import statistics
from dataclasses import dataclass, field

from problem import Problem, lines_text


@dataclass(eq=False)
class Call:
    """A collective. `elements` is the count of the NCCL call; None: the trace has no sizes."""
    collective: str
    elements: int = None
    type: str = None
    group: str = "world"
    root: int = 0
    place: str = ""  # where in the trace, for messages
    number: tuple = None  # (what is counted, its number, line), where a trace numbers its calls
    parts: tuple = ()  # of an EXCHANGE: (is it a send, the peer's place in the group, elements) of each
    splits: tuple = None  # of an uneven all-to-all: elements for each rank, and from each

    @property
    def what(self):
        """Equal for calls that do the same."""
        return self.collective, self.elements, self.type, self.group, self.root, self.parts, self.splits

    @property
    def needs_others(self):
        """What one rank does tells what others do, but not of these."""
        return bool(self.parts or self.splits)


EXCHANGE = "exchange"  # sends and receives, which are one call of NCCL


@dataclass(eq=False)
class Compute:
    us: float


@dataclass(eq=False)
class Wait:
    """The compute stream waits for a call."""
    call: Call


@dataclass
class Timeline:
    """One rank's trace. `items` are in the order in which the host began them, each with its place in that order:
    a time or a node's number. `marks` are the steps that the trace names: (name, begin, end) in the same unit."""
    path: str
    kind: str
    rank: int = None
    items: list = field(default_factory=list)   # (place, Call | Compute | Wait)
    marks: list = field(default_factory=list)
    groups: dict = field(default_factory=dict)  # name: (size, stride); world has no entry
    notes: list = field(default_factory=list)
    has_times: bool = True  # places are microseconds
    is_sequence: bool = False  # of calls of many steps, which are found by repetition
    is_step: bool = False      # all of it is one
    world: int = None          # ranks of the job, where the trace says so

    def add(self, item):
        """Behind all others, where the file is in that order and says no place."""
        self.items.append((len(self.items), item))

    def calls(self):
        return [item for _, item in self.items if isinstance(item, Call)]


@dataclass
class Step:
    name: str
    items: list
    us: float = None  # how long it took, where the trace says it

    def calls(self):
        return [item for item in self.items if isinstance(item, Call)]

    def compute_us(self):
        return sum(item.us for item in self.items if isinstance(item, Compute))


def marked_steps(timeline):
    places = [place for place, _ in timeline.items]
    return [Step(name, [item for _, item in timeline.items[bisect.bisect_left(places, begin):bisect.bisect_left(places, end)]],
                 end - begin if timeline.has_times else None) for name, begin, end in timeline.marks]


# A step has fewer calls than half of this, and a trace more is cut at its begin: comparing is quadratic.
CALLS_COMPARED_MAX = 8192


def find_period(signs):
    """(first, period, repetitions) of the longest part of a list that repeats at least once; None if that is not at
    least half of it."""
    numbers = {}
    signs = [numbers.setdefault(sign, len(numbers)) for sign in signs]
    best_length, best = 0, None
    for period in range(1, len(signs) // 2 + 1):
        same = bytes(map(int.__eq__, signs, signs[period:]))
        run = max(map(len, same.split(b"\0")))
        if run >= period and run + period > best_length:
            best_length = run + period
            best = (same.find(b"\1" * run), period, best_length // period)
    return best if 2 * best_length >= len(signs) else None


@dataclass
class Gap:
    """Before a call: calls of the same counter that are not in the trace."""
    before: int  # index of the last one that is
    count: int
    line: int


def find_gaps(calls):
    """{index of the call behind: Gap}."""
    latest, found = {}, {}
    for index, call in enumerate(calls):
        counter, number, line = call.number or (None, 0, 0)
        if counter in latest and number != latest[counter][1] + 1:
            found[index] = Gap(latest[counter][0], number - latest[counter][1] - 1, line)
        if counter is not None:
            latest[counter] = index, number
    return found


def is_natural(gaps, index, cycle):
    """Numbers skip there in every repetition: something else took them. What skips once was lost."""
    first, period, repetitions = cycle
    behind = range(first + index - gaps[index].before, first + period * repetitions)
    others = [other for other in (index - period, index + period) if other in behind]
    return bool(others) and all(other in gaps and gaps[other].count == gaps[index].count for other in others)


def find_cycle(timeline, calls):
    """As find_period, of calls some of which may be lost: then of a part from which none is."""
    signs, gaps = [call.what for call in calls], find_gaps(calls)
    cycle = find_period(signs)
    within = [index for index in gaps if not cycle or cycle[0] <= gaps[index].before and index < cycle[0] + cycle[1] * cycle[2]]
    lost = [index for index in within if not cycle or not is_natural(gaps, index, cycle)]
    if not lost:
        return cycle
    parts = list(zip([0, *lost], [*(gaps[index].before + 1 for index in lost), len(calls)]))
    found = [(begin + part[0], *part[1:]) for begin, end in parts if (part := find_period(signs[begin:end]))]
    where = lines_text([gaps[index].line for index in lost])
    if not found:
        timeline.notes.append(f"numbers of calls skip before {where}: calls may be missing, and the step may be wrong")
        return cycle
    timeline.notes.append(f"numbers of calls skip before {where}: those are lost; the step is from where none is")
    return max(found, key=lambda each: each[1] * each[2])


def repeated_steps(timeline):
    """Steps where the trace names none: repetitions of the same calls. Each begins after the last call of the one
    before it; where in the cycle that is, the longest time between two calls, by its median, decides."""
    at = [index for index, (_, item) in enumerate(timeline.items) if isinstance(item, Call)][-CALLS_COMPARED_MAX:]
    found = find_cycle(timeline, [timeline.items[index][1] for index in at])
    if not found:
        return []
    first, period, repetitions = found
    places = [timeline.items[index][0] for index in at[first:first + period * repetitions]]
    gaps = [statistics.median(places[turn * period + offset] - places[turn * period + offset - 1] for turn in range(1, repetitions))
            for offset in range(period)]
    first += gaps.index(max(gaps))
    ends = [first - 1 + turn * period for turn in range(repetitions + 1) if first - 1 + turn * period < len(at)]
    after = [at[end] + 1 if end >= 0 else 0 for end in ends]
    return [Step(str(number), [item for _, item in timeline.items[begin:end]])
            for number, (begin, end) in enumerate(zip(after, after[1:]))]


def find_steps(timeline, wanted):
    """(steps, how they were found). PyTorch's traces without marks are often of one step, in which calls may repeat."""
    if timeline.is_step and wanted is None:
        return [Step("0", [item for _, item in timeline.items])], "the whole file is one"
    if timeline.marks:
        return marked_steps(timeline), "the trace names them"
    if timeline.is_sequence or wanted is not None:
        steps = repeated_steps(timeline)
        if steps or timeline.is_sequence:
            return steps, "repetitions of its collectives"
    else:
        timeline.notes.append("no ProfilerStep#N in it: the whole trace is taken as one step; if it has several, --step N takes "
                              "the Nth repetition of its collectives")
    return [Step("0", [item for _, item in timeline.items])], "the whole trace is one"


def choose(timeline, wanted):
    """The step that is asked for: its name, or its number; without, one from the middle."""
    steps, source = find_steps(timeline, wanted)
    if not steps:
        raise Problem(f"its {len(timeline.calls())} collectives do not repeat: a step cannot be cut out", timeline.path)
    if wanted is None:
        good = [step for step in steps if step.calls()]
        if not good:
            raise Problem(f"no collective in {'it' if len(steps) == 1 else f'any of its {len(steps)} steps'}", timeline.path)
        return good[len(good) // 2]
    step = next((step for step in steps if wanted in (step.name, step.name.rpartition("#")[2])), None)
    if not step:
        names = [step.name for step in steps]
        shown = ", ".join(names[:8]) + (f", ... {names[-1]}" if len(names) > 8 else "")
        raise Problem(f"no step {wanted}; the steps ({source}): {shown}", timeline.path)
    if not step.calls():
        raise Problem(f"no collective in step {step.name}", timeline.path)
    return step
