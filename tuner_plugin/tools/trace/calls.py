# SPDX-License-Identifier: Apache-2.0
"""From PyTorch's facts of a collective to a Call, for profiler and execution traces alike.

AllReduce, Broadcast, Reduce, AllGather count elements of the input; ReduceScatter of the output; all-to-all the input
(the output where it is empty) by the number of ranks, rounded up. Calls of no elements are left out; coalesced calls
are one of the sum. A barrier is an AllReduce of one element, as in c10d. The reduction is a sum: no trace names it."""
import re

from names import COLLECTIVES, INPUT, NO_COLLECTIVES, ONE, OUTPUT, TYPES
from step import EXCHANGE, Call

ELEMENTS_MAX = 1 << 36  # as in workload files


class Skipped(Exception):
    """A call that the user leaves out (--skip)."""


class Empty(Skipped):
    """A call of no elements: it moves nothing."""


def empty_note(count, where=""):
    return f"left out: {count} call{'s' if count > 1 else ''} of no elements" + (f": {where}" if where else "")


def is_collective(name):
    return name not in NO_COLLECTIVES


def operation_of(name, node):
    """(operation, what its count is)."""
    if name not in COLLECTIVES:
        node.fail(f"{name}: no collective that a workload file can name; --skip {name} leaves it out")
    return COLLECTIVES[name]


def type_of(word, node):
    if word not in TYPES:
        node.fail(f"{word}: unknown element type; known: {', '.join(sorted(TYPES))}")
    return TYPES[word]


def count_of(rule, given, received, size, node):
    """The count argument of the NCCL call, from the elements that a rank gives and receives."""
    if rule == ONE:
        return 1
    if given == received == 0:
        raise Empty
    # A rank that gives nothing in an uneven all-to-all may receive something.
    count = {INPUT: given, OUTPUT: received}.get(rule, -(-(given or received) // size) if size else 0)
    if not 1 <= count <= ELEMENTS_MAX:
        node.fail(f"{count} elements, expected 1 to {ELEMENTS_MAX}")
    return count


def make_call(name, given, received, type_word, group, size, root, node):
    """`given`, `received`: elements of one rank's input and output."""
    operation, rule = operation_of(name, node)
    element = "float32" if rule == ONE else type_of(type_word, node)
    return Call(operation, count_of(rule, given, received, size, node), element, group, root,
                place=f"{node.document.path}: {node.name}")


TRANSFERS = {"send": True, "recv": False}  # is it a send


def make_transfer(name, elements, type_word, group, size, peer, node):
    """One send or receive; `peer` is a place in the group."""
    if not 1 <= elements <= ELEMENTS_MAX:
        node.fail(f"{elements} elements, expected 1 to {ELEMENTS_MAX}")
    if not 0 <= peer < size:
        node.fail(f"its peer is {peer}, of a group of {size}")
    return Call(EXCHANGE, elements, type_of(type_word, node), group, parts=((TRANSFERS[name], peer, elements),),
                place=f"{node.document.path}: {node.name}")


def list_of_numbers(text, node):
    """(numbers, None) of "[0, 1, 2]"; (numbers before, numbers behind) of "[0, 1, ...]" and "[0, 1, ..., 9]", which PyTorch writes
    for more than 30."""
    parts = text.strip().split("...")
    number = r"-?\d{1,10}"
    whole = rf"\[({number}(, ?{number})*)?\]"
    head, tail = rf"\[({number}, ?)*", rf"(, ?{number})*\]"
    is_good = re.fullmatch(whole, parts[0]) if len(parts) == 1 else \
        len(parts) == 2 and re.fullmatch(head, parts[0]) and re.fullmatch(tail, parts[1])
    if not is_good:
        node.fail(f"{text[:60]}: must be a list of numbers")
    lists = [[int(word) for word in re.findall(number, part)] for part in parts]
    return lists[0], lists[1] if len(lists) > 1 else None


def ranks_of_list(text, size, node):
    """Ranks of a group, or None; a list that PyTorch cut is continued with its stride, if that leads to its end."""
    ranks, end = list_of_numbers(text, node)
    if not ranks:
        return None
    if end is not None and len(ranks) + len(end) < size and len(ranks) > 1:
        stride = ranks[1] - ranks[0]
        whole = [ranks[0] + index * stride for index in range(size)]
        if whole[:len(ranks)] != ranks or end and whole[-len(end):] != end:
            node.fail(f"[{ranks[0]}, {ranks[1]}, ... {ranks[-1]}, ...{text.rpartition('...')[2]}: which {size} ranks these are "
                      "cannot be told: PyTorch left some out, and they are not the same distance apart. Import an execution trace "
                      "of the step instead, which has all of them")
        return whole
    ranks += end or []
    if len(ranks) != size or len(set(ranks)) != size or min(ranks) < 0:
        node.fail(f"{text[:60]}: must have {size} different ranks, as the group's size says")
    return ranks


def is_guessed(text):
    """Nothing tells where a list of ranks that PyTorch cut ends."""
    return re.search(r"\.\.\.\s*\]\s*$", text) is not None
