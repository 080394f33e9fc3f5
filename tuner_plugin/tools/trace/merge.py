# SPDX-License-Identifier: Apache-2.0
"""Traces of all ranks of a job into one list of events, where the ranks do not all do the same: pipelines, and experts that get
different numbers of elements.

They are merged where one has sends, receives or an uneven all-to-all: the same step of each, each event that of its
rank. Groups whose only name is a number have that of their form, since each rank may number them otherwise."""
import re

from problem import Problem
from step import Call, choose

NAMELESS = re.compile(r"group\d+(-\d+)?")  # a trace that has no description of it; each rank may number it otherwise


def is_wanted(timelines, options):
    """Several ranks of one kind, one of which does what the others' part does not follow from."""
    return len(timelines) > 1 and options.rank is None and len({each.kind for each in timelines}) == 1 and \
        all(each.rank is not None for each in timelines) and any(call.needs_others for each in timelines for call in each.calls())


def in_ranks_order(timelines):
    """All ranks, each once."""
    world = max([each.world or 0 for each in timelines] + [len(timelines)])
    of_rank = {}
    for each in timelines:
        if each.rank in of_rank:
            raise Problem(f"is of rank {each.rank}, and so is {of_rank[each.rank].path}", each.path)
        of_rank[each.rank] = each
    missing = [rank for rank in range(world) if rank not in of_rank]
    if missing or len(of_rank) > world:
        shown = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
        raise Problem(f"ranks send to each other, so the traces of all {world} are needed; missing: {shown or 'none, and there are more'}",
                      timelines[0].path)
    return [of_rank[rank] for rank in range(world)]


def one_name(timelines):
    """The groups of all ranks by names that all of them use: those that only have a number by their form."""
    groups = {}
    for timeline in timelines:
        names = {name: f"{form[0]}x{form[1]}" if NAMELESS.fullmatch(name) else name for name, form in timeline.groups.items()}
        for name, form in timeline.groups.items():
            if groups.setdefault(names[name], form) != form:
                raise Problem(f"group {name} has {form[0]} ranks {form[1]} apart, and with another rank {groups[names[name]]}", timeline.path)
        for call in timeline.calls():
            call.group = names.get(call.group, call.group)
    return groups


def steps_of(timelines, wanted):
    """The same step of each rank."""
    first = choose(timelines[0], wanted)
    return [first, *(choose(each, first.name if each.marks else wanted) for each in timelines[1:])]


def all_alike(steps):
    return all([call.what for call in step.calls()] == [call.what for call in steps[0].calls()] for step in steps)


def take_splits(step):
    """An uneven all-to-all becomes what NCCL is called for."""
    for item in step.items:
        if isinstance(item, Call) and item.splits:
            sent, received = item.splits
            item.parts = tuple(part for peer in range(len(sent)) for part in
                               ((True, peer, sent[peer]), (False, peer, received[peer])) if part[2])
            item.collective, item.elements, item.splits = "exchange", sum(sent), None
