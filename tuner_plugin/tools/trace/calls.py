# SPDX-License-Identifier: Apache-2.0
"""From PyTorch's facts of a collective to a Call, for profiler and execution traces alike."""
import json
import re

from names import COLLECTIVES, INPUT, NO_COLLECTIVES, ONE, OUTPUT, TYPES
from step import Call

ELEMENTS_MAX = 1 << 36  # as in workload files


class Skipped(Exception):
    """A call that the user leaves out (--skip)."""


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
    count = {INPUT: given, OUTPUT: received}.get(rule, -(-given // size) if size else 0)
    if not 1 <= count <= ELEMENTS_MAX:
        node.fail(f"{count} elements, expected 1 to {ELEMENTS_MAX}")
    return count


def make_call(name, given, received, type_word, group, size, root, node):
    """`given`, `received`: elements of one rank's input and output."""
    operation, rule = operation_of(name, node)
    element = "float32" if rule == ONE else type_of(type_word, node)
    return Call(operation, count_of(rule, given, received, size, node), element, group, root,
                place=f"{node.document.path}: {node.name}")


def list_of_numbers(text, node):
    """(numbers, whether it is whole) of "[0, 1, 2]", or of "[0, 1, ...]" and "[0, 1, ..., 9]", which PyTorch writes for
    more than 30."""
    text = text.strip()
    if not re.fullmatch(r"\[[-\d, .]*\]", text):
        node.fail(f"{text[:60]}: must be a list of numbers")
    is_whole = "..." not in text
    numbers = json.loads(text) if is_whole and re.fullmatch(r"\[(-?\d{1,10}(, ?-?\d{1,10})*)?\]", text) else None
    if is_whole and numbers is None:
        node.fail(f"{text[:60]}: must be a list of numbers")
    return (numbers, True) if is_whole else ([int(word) for word in re.findall(r"-?\d{1,10}", text.split("...")[0])], False)


def ranks_of_list(text, size, node):
    """Ranks of a group, or None; a list that PyTorch cut is continued with its stride."""
    ranks, is_whole = list_of_numbers(text, node)
    if not ranks:
        return None
    if not is_whole and len(ranks) > 1:
        ranks = [ranks[0] + index * (ranks[1] - ranks[0]) if index >= len(ranks) else ranks[index] for index in range(size)]
    if len(ranks) != size or len(set(ranks)) != size or min(ranks) < 0:
        node.fail(f"{text[:60]}: must have {size} different ranks, as the group's size says")
    return ranks
