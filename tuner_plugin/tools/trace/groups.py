# SPDX-License-Identifier: Apache-2.0
"""Process groups: which ranks, as size and stride.

A group must be `size` ranks `stride` apart, into which all ranks can be divided."""
import re


def size_and_stride(ranks):
    """Of a list of ranks in any order; None if they are not `size` ranks `stride` apart that the whole job can be
    divided into: rank r would be in the group of ranks with equal r / (size * stride) and equal r % stride."""
    ranks = sorted(ranks)
    size, stride = len(ranks), ranks[1] - ranks[0] if len(ranks) > 1 else 1
    if stride < 1 or ranks != [ranks[0] + index * stride for index in range(size)]:
        return None
    return (size, stride) if ranks[0] // (size * stride) == ranks[-1] // (size * stride) else None


class Groups:
    """The groups of one trace, by the name that the trace gives them."""

    def __init__(self, world):
        self.world = world     # ranks of the job, None: not known yet
        self.of_name = {}      # the trace's name: ours
        self.forms = {}        # ours: (size, stride)

    def find(self, name, label, size, ranks, fail):
        """Our name of a group. `ranks`: all of them, or None where the trace does not say; `fail` is called with what
        is wrong."""
        if name in self.of_name:
            return self.of_name[name]
        if ranks and not len(ranks) == len(set(ranks)) == size:
            fail(f"group {label} has {size} ranks, and a list of {len(set(ranks))}")
        if self.world is None:
            self.world = size
        if size > self.world:
            fail(f"group {label} has {size} ranks, of a job of {self.world}")
        if size == self.world and "world" not in self.of_name.values():
            self.of_name[name] = "world"
            return "world"
        form = (size, 1) if size in (1, self.world) else size_and_stride(ranks) if ranks else None
        if not form and not ranks:
            fail(f"which {size} of {self.world} ranks group {label} has is not in the trace")
        if not form:
            shown = ", ".join(map(str, ranks[:16])) + (", ..." if len(ranks) > 16 else "")
            fail(f"group {label} has ranks {shown}: not of the form that a workload file can name, `size` ranks `stride` apart")
        ours = self.of_name[name] = self.new_name(label)
        self.forms[ours] = form
        return ours

    def new_name(self, label):
        base = re.sub(r"[^A-Za-z0-9_.-]+", "_", label)[:32] or "group"
        names, ours, number = {"world", *self.forms}, base, 2
        while ours in names:
            ours, number = f"{base}-{number}", number + 1
        return ours
