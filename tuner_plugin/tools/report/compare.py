# SPDX-License-Identifier: Apache-2.0
"""Two measurements, point by point: is B faster than A, slower, or the same within noise?

The ratio is B's time over A's: the median over the pairs, if several runs of each are given. The noise is
sqrt(a^2 + b^2), where a is how far A's times deviate from their median, as a part of it: between the runs where
there are three and more, else between the calls of a run where they were timed one by one; whichever is more. A
point is slower or faster beyond the larger of 3 % and twice the noise."""
import dataclasses
import math
import statistics

from points import OPERATIONS, geomean, median_and_noise, shape_text, size_text
from problem import Problem

LEAST = 0.03
FASTER, SLOWER, SAME, WRONG = "faster", "slower", "same", "wrong values"


def limit_of(*noises):
    """What counts as noise of a comparison of these; None: not known."""
    return max(LEAST, 2 * math.hypot(*(noise or 0.0 for noise in noises)))


def verdict_of(ratio, limit):
    """Of B's time / A's. As far below as above: 1.03 slower and 1 / 1.03 faster are the same distance."""
    return SLOWER if ratio > 1 + limit else FASTER if ratio < 1 / (1 + limit) else SAME


@dataclasses.dataclass
class Row:
    key: tuple
    point: object      # the first of B's, for its names
    a_us: float
    b_us: float
    ratio: float       # B's time / A's
    noise: float       # None: not known
    wrong: int         # elements of B
    pairs: int

    @property
    def limit(self):
        return limit_of(self.noise)

    @property
    def verdict(self):
        return WRONG if self.wrong else verdict_of(self.ratio, self.limit)


@dataclasses.dataclass
class Comparison:
    a: list      # sources
    b: list
    rows: list
    only_a: list  # keys
    only_b: list

    def count(self, verdict):
        return sum(row.verdict == verdict for row in self.rows)

    @property
    def is_regression(self):
        return any(row.verdict in (SLOWER, WRONG) for row in self.rows)

    @property
    def geomean(self):
        return geomean([row.ratio for row in self.rows])

    @property
    def has_unknown_noise(self):
        return any(row.noise is None for row in self.rows)


class Keys:
    """What makes two points comparable: the fields that both sides have."""

    def __init__(self, a_points, b_points):
        def has(name):
            return all(any(getattr(point, name) is not None for point in side) for side in (a_points, b_points))
        self.names = [name for name in ("type", "redop", "root", "nodes", "ppn") if has(name)]
        self.has_cells = has("cell")

    def key(self, point):
        cell = (point.cell, bool(point.is_default)) if self.has_cells else None
        return (point.operation, point.bytes, point.in_place, cell, *(getattr(point, name) for name in self.names))

    def takes(self, point):
        """Compared with a run without cells, only NCCL's own choice among samples counts."""
        return self.has_cells or point.cell is None or point.is_default


def group(sources, keys):
    """{key: [[points of the first source], [of the second], ...]}"""
    found = {}
    for place, source in enumerate(sources):
        for point in source.points:
            if keys.takes(point):
                found.setdefault(keys.key(point), [[] for _ in sources])[place].append(point)
    return found


def side(runs):
    """(time of each run or None, noise) of one side of a row."""
    times = [statistics.median(point.time_us for point in run) if run else None for run in runs]
    all_times = [point.time_us for run in runs for point in run]
    between = median_and_noise(all_times)[1]
    calls = [point.noise for run in runs for point in run if point.noise is not None]
    known = [each for each in (between, statistics.median(calls) if calls else None) if each is not None]
    return times, max(known) if known else None


def compare(a_sources, b_sources):
    a_points = [point for source in a_sources for point in source.points]
    b_points = [point for source in b_sources for point in source.points]
    for sources, points in ((a_sources, a_points), (b_sources, b_points)):
        if not points:
            raise Problem("has no measurement of a collective, so there is nothing to compare", sources[0].path)
    keys = Keys(a_points, b_points)
    a, b = group(a_sources, keys), group(b_sources, keys)
    rows = []
    for key in a.keys() & b.keys():
        (a_times, a_noise), (b_times, b_noise) = side(a[key]), side(b[key])
        pairs = [late / early for early, late in zip(a_times, b_times) if early and late]
        a_us = statistics.median(each for each in a_times if each)
        b_us = statistics.median(each for each in b_times if each)
        noise = None if a_noise is None or b_noise is None else math.hypot(a_noise, b_noise)
        first = next(point for run in b[key] for point in run)
        rows.append(Row(key, first, a_us, b_us, statistics.median(pairs) if pairs else b_us / a_us, noise,
                        sum(point.wrong or 0 for run in b[key] for point in run), len(pairs)))
    if not rows:
        raise Problem(f"nothing in common: A has {describe(a_points)}, B has {describe(b_points)}")
    rows.sort(key=lambda row: (row.point.nodes or 0, row.point.ppn or 0, OPERATIONS.index(row.point.operation),
                               row.point.type or "", row.point.redop or "", row.point.in_place, row.point.bytes,
                               str(row.point.cell)))
    return Comparison(a_sources, b_sources, rows, sorted(a.keys() - b.keys(), key=repr),
                      sorted(b.keys() - a.keys(), key=repr))


def describe(points):
    """The operations, shapes and sizes there are, for a message."""
    kinds = sorted({f"{point.operation} on {shape_text(point.shape)}" for point in points})
    sizes = [point.bytes for point in points]
    more = f" and {len(kinds) - 3} more" if len(kinds) > 3 else ""
    return f"{', '.join(kinds[:3])}{more}, {size_text(min(sizes))} to {size_text(max(sizes))}"
