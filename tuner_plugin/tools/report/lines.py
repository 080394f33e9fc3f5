# SPDX-License-Identifier: Apache-2.0
"""What is drawn for one collective on one shape: a line for each run, and from samples NCCL's default, what a
profile chooses, and the best of the measured cells."""
import dataclasses
import statistics

import slowdown
from points import OPERATIONS, busbw_gbs

# Roles, in the order of legends.
DEFAULT, RUN, CHOSEN, BEST = "default", "run", "chosen", "best"


@dataclasses.dataclass
class At:
    """A line at one size."""
    time_us: float
    busbw: float = None
    noise: float = None
    wrong: int = None
    what: str = ""  # the cell


@dataclasses.dataclass
class Line:
    label: str
    role: str
    at: dict        # bytes: At


@dataclasses.dataclass
class Shape:
    """All that is known of a collective on so many nodes and ranks."""
    operation: str
    nodes: int
    ppn: int
    lines: list
    group: object = None  # slowdown.Group of the samples
    origins: list = dataclasses.field(default_factory=list)  # paths of the inputs

    @property
    def sizes(self):
        return sorted({size for line in self.lines for size in line.at})

    @property
    def base(self):
        """What others are compared with: NCCL's default, else the first run."""
        return next((line for line in self.lines if line.role == DEFAULT), self.lines[0])


def run_lines(points):
    """{(operation, nodes, ppn): lines} of runs, in the order of the files."""
    by_line = {}
    for point in points:
        key = (point.operation, point.nodes, point.ppn)
        names = (id(point.source), point.type, point.redop, point.root)
        by_line.setdefault(key, {}).setdefault(names, []).append(point)
    found = {}
    for key, lines in by_line.items():
        per_source = [source for source, *_ in lines]
        for (source, *names), of_line in lines.items():
            label = of_line[0].source.label
            if per_source.count(source) > 1:
                label += " " + " ".join(str(name) for name in names if name not in (None, "none", -1))
            found.setdefault(key, []).append(Line(label, RUN, sizes_of(of_line)))
    return found


def sizes_of(points):
    by_size = {}
    for point in points:
        by_size.setdefault(point.bytes, []).append(point)
    at = {}
    for size, repeated in sorted(by_size.items()):
        time_us = statistics.median(point.time_us for point in repeated)
        noises = [point.noise for point in repeated if point.noise is not None]
        wrong = [point.wrong for point in repeated if point.wrong is not None]
        busbw = busbw_gbs(repeated[0].operation, size, time_us, repeated[0].ranks) or repeated[0].busbw
        at[size] = At(time_us, busbw, statistics.median(noises) if noises else None, sum(wrong) if wrong else None)
    return at


def sample_lines(group, profile_label):
    """NCCL's default, the profile's choice and the best cell of one group of samples."""
    made = []
    roles = [(DEFAULT, "NCCL's default"), (BEST, "best measured")]
    if profile_label:
        roles.insert(1, (CHOSEN, f"profile {profile_label}"))
    for role, label in roles:
        at = {}
        for size in group.sizes:
            measured = getattr(size, role)
            if measured:
                at[size.bytes] = At(measured.time_us, busbw_gbs(group.operation, size.bytes, measured.time_us,
                                                                group.nodes * group.ppn),
                                    measured.noise, None, str(measured.cell))
        if at:
            made.append(Line(label, role, at))
    return made


def shapes_of(sources, in_place, profile=None):
    """Shapes, in the order of reports. `profile`: the source of the choices."""
    points = [point for source in sources for point in source.points if point.in_place == in_place]
    by_key = run_lines([point for point in points if point.cell is None])
    shapes = {key: Shape(*key, lines) for key, lines in by_key.items()}
    samples = [point for point in points if point.cell is not None]
    for group in slowdown.groups_of(samples, profile.profile if profile else None):
        key = (group.operation, group.nodes, group.ppn)
        shape = shapes.setdefault(key, Shape(*key, []))
        shape.group = group
        shape.lines = sample_lines(group, profile.label if profile else None) + shape.lines
    for key, shape in shapes.items():
        unique_labels(shape.lines)
        shape.origins = list(dict.fromkeys(point.source.path for point in points
                                           if (point.operation, point.nodes, point.ppn) == key))
    return sorted(shapes.values(),
                  key=lambda shape: (OPERATIONS.index(shape.operation), shape.nodes or 0, shape.ppn or 0))


def unique_labels(lines):
    taken = {}
    for line in lines:
        taken[line.label] = taken.get(line.label, 0) + 1
        if taken[line.label] > 1:
            line.label += f" ({taken[line.label]})"
