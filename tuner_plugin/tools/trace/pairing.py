# SPDX-License-Identifier: Apache-2.0
"""Several traces: which rank is taken, and sizes of one beside times of the other."""
from problem import Problem
from step import Call, Step, Wait


def one_of(timelines, kind, options):
    """The rank that is asked for, else the lowest."""
    if len(timelines) == 1:
        if options.rank not in (None, timelines[0].rank) and timelines[0].rank is not None:
            raise Problem(f"is of rank {timelines[0].rank}, not of {options.rank}", timelines[0].path)
        return timelines[0]
    unknown = next((each for each in timelines if each.rank is None), None)
    if unknown:
        raise Problem(f"{len(timelines)} files of one kind ({kind}), and this one does not say its rank: give the one of one rank",
                      unknown.path)
    ranks = sorted(each.rank for each in timelines)
    wanted = ranks[0] if options.rank is None else options.rank
    found = [each for each in timelines if each.rank == wanted]
    if len(found) != 1:
        raise Problem(f"--rank {wanted}: {len(found)} files of it; they are of ranks {', '.join(map(str, ranks))}")
    return found[0]


def choose_traces(timelines, options):
    """(the trace that has the sizes, the profiler's beside an execution trace or None)."""
    of_kind = {}
    for each in timelines:
        of_kind.setdefault(each.kind, []).append(each)
    chosen = {kind: one_of(each, kind, options) for kind, each in of_kind.items()}
    profiler, execution = chosen.get("profiler trace"), chosen.get("execution trace")
    if len(chosen) == 1:
        return next(iter(chosen.values())), None
    if set(chosen) != {"profiler trace", "execution trace"}:
        raise Problem(f"these do not go together: {', '.join(sorted(chosen))}")
    return execution, profiler


def take_sizes(timed, sized, timed_path, sized_path):
    """The step of a profiler's trace, with the collectives of an execution trace of the same step."""
    slots, calls = timed.calls(), sized.calls()
    if [each.collective for each in slots] != [each.collective for each in calls]:
        place = next((index for index, (a, b) in enumerate(zip(slots, calls)) if a.collective != b.collective),
                     min(len(slots), len(calls)))
        raise Problem(f"step {timed.name} has {len(slots)} collectives, step {sized.name} of {sized_path} has {len(calls)}, and "
                      f"they differ from collective {place + 1} on: not traces of the same step", timed_path)
    of_slot = dict(zip(slots, calls))
    return Step(timed.name, [of_slot[item] if isinstance(item, Call) else
                             Wait(of_slot[item.call]) if isinstance(item, Wait) and item.call in of_slot else item
                             for item in timed.items], timed.us)
