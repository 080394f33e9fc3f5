# SPDX-License-Identifier: Apache-2.0
"""What NCCL's default costs, what a profile's choice costs, and what the best of the measured cells would.

Samples are taken by shape (collective, nodes, ranks per node) and size. Blocks of one cell are joined by the
median of their times. A ratio between two cells is formed within each launch that has both, and its median is
taken: launches differ by more than cells do. Only where no launch has both are the medians compared."""
import dataclasses
import statistics

from points import Cell, geomean

WITHIN = 0.05  # "as good as the best"


@dataclasses.dataclass
class Measured:
    """One cell at one size."""
    cell: Cell
    is_default: bool
    time_us: float
    noise: float   # relative; None: not known
    runs: dict     # run: median of its blocks
    count: int     # blocks


@dataclasses.dataclass
class Size:
    bytes: int
    default: Measured = None
    best: Measured = None
    chosen: Measured = None
    choice: str = ""      # the profile's choice, in words; empty: no profile
    cells: list = dataclasses.field(default_factory=list)  # all Measured, fastest first

    def slowdown(self, measured):
        """Time as a multiple of the best's; None where either was not measured."""
        return None if measured is None or self.best is None else max(1.0, ratio(measured, self.best))


@dataclasses.dataclass
class Group:
    operation: str
    nodes: int
    ppn: int
    sizes: list  # of Size, ascending


def ratio(over, under):
    """Time of `over` as a multiple of that of `under`."""
    if over is under:
        return 1.0
    shared = [over.runs[run] / under.runs[run] for run in over.runs if run in under.runs]
    return statistics.median(shared) if shared else over.time_us / under.time_us


def join_blocks(points):
    """Blocks of one cell at one size."""
    runs = {}
    for point in points:
        runs.setdefault((point.environment, point.run), []).append(point.time_us)
    times = [point.time_us for point in points]
    middle = statistics.median(times)
    within = [point.noise for point in points if point.noise is not None]
    noise = statistics.median(within) if within else None
    if len(times) >= 3:
        between = statistics.median(abs(each - middle) for each in times) / middle
        noise = max(between, noise or 0.0)
    return Measured(points[0].cell, bool(points[0].is_default), middle, noise,
                    {run: statistics.median(each) for run, each in runs.items()}, len(points))


def groups_of(points, profile=None):
    """Groups in the order of operations and shapes, of points with a cell."""
    by_group = {}
    for point in points:
        key = (point.operation, point.nodes, point.ppn)
        cell_key = (point.cell, bool(point.is_default))
        by_group.setdefault(key, {}).setdefault(point.bytes, {}).setdefault(cell_key, []).append(point)
    groups = []
    for (operation, nodes, ppn), sizes in sorted(by_group.items()):
        made = [make_size(operation, nodes, ppn, size, blocks, profile) for size, blocks in sorted(sizes.items())]
        groups.append(Group(operation, nodes, ppn, made))
    return groups


def make_size(operation, nodes, ppn, size, blocks, profile):
    cells = sorted((join_blocks(points) for points in blocks.values()), key=lambda each: each.time_us)
    defaults = [each for each in cells if each.is_default]
    # NCCL's choice may differ between releases or environments; most blocks decide.
    default = max(defaults, key=lambda each: each.count) if defaults else None
    found = Size(size, default=default, best=cells[0], cells=cells)
    if profile:
        choose(found, profile.row_for(operation, nodes, ppn, size, default.cell if default else None))
    return found


def choose(size, row):
    """What the profile's row means among the measured cells."""
    if row is None:
        size.choice, size.chosen = "NCCL's own", size.default
        return
    wanted = Cell(row["algo"], row["proto"], row["channels"], row["chunk_bytes"])
    size.choice = str(wanted)
    same = [each for each in size.cells if each.cell == wanted]
    asked = [each for each in same if not each.is_default]
    size.chosen = (asked or same or [None])[0]


def summary(groups, which):
    """{points, geomean, within, worst: (slowdown, group, size)} of "default" or "chosen"; None without any."""
    slowdowns = []
    for group in groups:
        for size in group.sizes:
            slowdown = size.slowdown(getattr(size, which))
            if slowdown is not None:
                slowdowns.append((slowdown, group, size))
    if not slowdowns:
        return None
    values = [each[0] for each in slowdowns]
    return {"points": len(values), "geomean": geomean(values),
            "within": sum(each <= 1 + WITHIN for each in values) / len(values),
            "worst": max(slowdowns, key=lambda each: each[0])}
