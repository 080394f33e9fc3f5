# SPDX-License-Identifier: Apache-2.0
"""A step as a workload file (docs/workloads.md, "parallel": "events")."""
import json
import os
import re

from names import BYTES_OF_TYPE
from problem import Problem
from step import EXCHANGE, Call, Compute, Step, Wait

NAME_MAX, EVENTS_MAX, GROUPS_MAX = 64, 1_000_000, 64  # of workload files
COMPUTE_US_MAX = 1e9
NO_SIZES = "this trace does not say how many elements its collectives have. Sizes are in: traces of PyTorch's own builds " \
           "from 2.4 on, by torch.profiler with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], of NCCL; or an " \
           "execution trace of the same step, given beside this one (ExecutionGraphObserver in PyTorch 1.13, " \
           "ExecutionTraceObserver in 2.x). Builds without Kineto, as Debian's, never record sizes here"


def check(step, main):
    if step.compute_us() > COMPUTE_US_MAX:
        raise Problem(f"step {step.name} has {step.compute_us() / 1e6:.0f} s of computation; a workload file has at most "
                      f"{COMPUTE_US_MAX / 1e6:.0f}", main.path)
    for call in step.calls():
        if call.elements is None:
            raise Problem(f"{call.place.partition(': ')[2]}: {call.collective}: {NO_SIZES}", main.path)


def check_alone(step, main):
    """Of one rank's trace nobody knows to whom the others send."""
    for call in step.calls():
        if call.parts:
            raise Problem(f"{call.place.partition(': ')[2]}: sends and receives: give the traces of all ranks, or leave them out with "
                          "--skip send,recv", main.path)
    if any(call.splits for call in step.calls()):
        main.notes.append("all-to-all calls give different numbers of elements to each rank: imported as even ones, of the same sum; "
                          "the traces of all ranks together give them as they are")


def add_times(step, step_us, main):
    """Of a trace that has none: the same time before each call and after the last, if the user gives that of a step."""
    if main.has_times:
        if step_us is not None:
            raise Problem("--step-time: this trace has times", main.path)
        return step
    if step_us is None:
        main.notes.append("no times in it: compute is 0; --step-time spreads that of a step evenly, and a profiler's trace of "
                          "the same step beside it gives the times")
        return step
    main.notes.append(f"no times in it: {step_us:g} us are spread evenly")
    part, items = step_us / (len(step.calls()) + 1), []
    for item in step.items:
        items += [Compute(part), item] if isinstance(item, Call) else [item]
    return Step(step.name, [*items, Compute(part)])


def entry(call, number):
    if call.collective == EXCHANGE:
        return {"exchange": [{"send" if is_send else "recv": peer, "elements": elements} for is_send, peer, elements in call.parts],
                "type": call.type, "group": call.group, "id": number}
    return {"collective": call.collective, "elements": call.elements, "type": call.type, "group": call.group, "id": number,
            **({"root": call.root} if call.root else {})}


def events(step, first_id=1):
    """Entries of the file: compute in one piece, waits for what is outside the step or has been waited for left out."""
    ids, waited, found, compute = {}, set(), [], 0.0
    for item in step.items:
        if isinstance(item, Compute):
            compute += item.us
            continue
        if isinstance(item, Wait) and (item.call not in ids or item.call in waited):
            continue
        if compute > 0:
            found.append({"compute_us": round(compute, 3)})
            compute = 0.0
        if isinstance(item, Wait):
            waited.add(item.call)
            found.append({"wait": ids[item.call]})
            continue
        ids[item] = len(ids) + first_id
        found.append(entry(item, ids[item]))
    return found + ([{"compute_us": round(compute, 3)}] if compute > 0 else [])


def events_of_ranks(steps):
    """One rank after the other; each entry is its rank's own."""
    found, calls = [], 0
    for rank, step in enumerate(steps):
        found += [{**each, "only": {"group": "world", "rank": rank}} for each in events(step, calls + 1)]
        calls += len(step.calls())
    return found


def used_groups(steps, groups):
    used = {call.group for step in steps for call in step.calls()}
    return [{"name": name, "size": size, "stride": stride} for name, (size, stride) in groups.items() if name in used]


def source(step, main, times, ranks):
    beside = f" of {ranks} ranks" if ranks > 1 else ""
    beside += f", times of {os.path.basename(times.path)}" if times else ""
    return f"{main.kind} {os.path.basename(main.path)}, step {step.name}{beside}; imported by stratus-tune workload"


def name_of(path):
    """The file's, of the letters that a workload's may have."""
    name = os.path.basename(path)
    for ending in (".gz", ".json", ".et", ".txt"):
        name = name.removesuffix(ending)
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", name)[:NAME_MAX] or "imported"


def check_name(name):
    if name and not re.fullmatch(rf"[A-Za-z0-9._+-]{{1,{NAME_MAX}}}", name):
        raise Problem(f"--name {name}: expected 1 to {NAME_MAX} letters, digits and . _ + -")
    return name


def entries(key, found):
    """A list with one entry a line."""
    return f'  "{key}": [\n    ' + ",\n    ".join(map(json.dumps, found)) + "\n  ]"


def text(steps, main, times, options):
    """Of one step, or of that of each rank."""
    step, groups = steps[0], used_groups(steps, main.groups)
    found = events_of_ranks(steps) if len(steps) > 1 else events(step)
    count = sum(len(each.get("exchange", (each,))) for each in found)
    if count > EVENTS_MAX or len(groups) > GROUPS_MAX:
        raise Problem(f"step {step.name} has {count} events and {len(groups)} groups; a workload file has at most "
                      f"{EVENTS_MAX} and {GROUPS_MAX}", main.path)
    head = {"format": "stratus-workload", "version": 1, "name": check_name(options.name) or name_of(main.path),
            "source": source(step, main, times, len(steps)), "batch": options.batch, "parallel": "events"}
    parts = [json.dumps(head, indent=2)[:-2], *([entries("groups", groups)] if groups else []), entries("events", found)]
    return ",\n".join(parts) + "\n}\n"


def summary(steps, main):
    """Of a step; with several, of rank 0."""
    step, calls, kinds = steps[0], steps[0].calls(), {}
    moved = sum(call.elements * BYTES_OF_TYPE[call.type] for call in calls)
    for call in calls:
        kinds[call.collective] = kinds.get(call.collective, 0) + 1
    whose = f" of {len(steps)} ranks; rank 0" if len(steps) > 1 else ""
    return f"{main.kind}, step {step.name}{whose}: {', '.join(f'{count} {kind}' for kind, count in kinds.items())}, {moved} bytes by the counts of their calls, " \
           f"{step.compute_us() / 1e3:.3f} ms of compute" + (f", of {step.us / 1e3:.3f} ms that the step took" if step.us else "")
