# SPDX-License-Identifier: Apache-2.0
"""What a case is made of: variants that are measured in turn, and rows that compare them.

  case      one cluster, some variants, the rows of the table made of them
  variant   a transport with its settings; `measure(bench)` returns {metric: number}
  round     every variant once; {variant: metrics}, without those that failed
  row       a ratio for each round, its target, and the figures shown beside it"""
from dataclasses import dataclass, field
import statistics
from typing import Callable, List, Optional, Tuple


@dataclass
class Variant:
    key: str
    label: str
    measure: Callable


@dataclass
class Row:
    name: str
    what: str  # of what the ratio is, in words
    ratios: Callable  # of all rounds: a number for each round that has one
    target: Optional[Tuple[str, float]] = None
    measured: List[tuple] = field(default_factory=list)  # (label, variant, metric, unit)
    unit: Optional[str] = None  # of the figure; None: it is a ratio
    note: Callable = lambda rounds: ""
    noise: Callable = lambda rounds: None  # a ratio as far from the target as the baseline is from itself, which says nothing


@dataclass
class Case:
    name: str
    title: str
    cluster: Optional[List[str]]  # options of `cluster up`; None: the variants need none
    variants: List[Variant]
    rows: List[Row]
    rounds_max: Optional[int] = None


LABELS = {"stratus": "stratus", "socket": "Socket", "socket-2x4": "Socket 2x4", "socket-2x8": "Socket 2x8"}
# Caps are by flow, as clouds have them: with so many buckets two flows hardly share one.
BY_FLOW = ["--flow-buckets", "1024"]


def network(nic_gbps, flow_gbps=None):
    """Options of `cluster up`; a flow has an eighth of the NIC unless another rate is given."""
    return ["--nic-gbps", f"{nic_gbps:g}", "--flow-gbps", f"{flow_gbps or nic_gbps / 8:g}", *BY_FLOW]


def perf(key, *arguments, extra=None, name=None, label=None, meanwhile=None):
    """The variant of a transport that stratus perf measures."""
    return Variant(name or key, label or LABELS[key], lambda bench: bench.perf(key, list(arguments), extra, meanwhile))


def shown(variants, metric, unit):
    """The figures beside a ratio."""
    return [(variant.label, variant.key, metric, unit) for variant in variants]


def at_least(value):
    return (">=", value)


def at_most(value):
    return ("<=", value)


def of(metric, subject, baseline):
    """subject / baseline in each round that has both."""
    return lambda rounds: [
        each[subject][metric] / each[baseline][metric] for each in rounds
        if metric in each.get(subject, {}) and each.get(baseline, {}).get(metric)]


def of_constant(metric, subject, constant):
    return lambda rounds: [each[subject][metric] / constant for each in rounds if metric in each.get(subject, {})]


def value(metric, subject):
    return of_constant(metric, subject, 1)


def median_of(rounds, key, metric):
    values = [each[key][metric] for each in rounds if metric in each.get(key, {})]
    return statistics.median(values) if values else None


def best_of(metric, rounds, keys):
    """The variant with the highest median: chosen over all rounds, since the best of each round would be
    the luckiest."""
    medians = {key: median_of(rounds, key, metric) for key in keys}
    medians = {key: median for key, median in medians.items() if median}
    return max(medians, key=medians.get) if medians else None


def of_best(metric, subject, keys):
    def ratios(rounds):
        best = best_of(metric, rounds, keys)
        return of(metric, subject, best)(rounds) if best else []
    return ratios


# ---- sweeps over sizes ----

def sweep_points(rounds, keys):
    """One point per size: how many times as fast the subject is, and the baseline against itself. `keys`: subject, baseline,
    and the baseline once more in each round."""
    points = []
    complete = [each for each in rounds if all(key in each for key in keys)]
    for size in complete[0][keys[1]]["rows"] if complete else []:
        subject, one, other = ([each[key]["rows"][size]["time_us"] for each in complete] for key in keys)
        # The baseline of a round is what its two runs took on average.
        ratios = [(a + b) / 2 / s for s, a, b in zip(subject, one, other)]
        noise = statistics.median(a / b for a, b in zip(one, other))
        points.append({"bytes": size, "ratios": ratios, "ratio": statistics.median(ratios), "noise": min(noise, 1 / noise)})
    return points


def worst_point(points):
    return min(points, key=lambda point: point["ratio"])


def sweep_row(keys, target):
    """Times of many sizes: the ratio is that of the size where the subject does worst."""
    def of_points(value):
        def of_rounds(rounds):
            points = sweep_points(rounds, keys)
            return value(points) if points else []
        return of_rounds
    return Row("worst", "Socket's time / stratus', worst size", of_points(lambda points: worst_point(points)["ratios"]), target,
               note=of_points(lambda points: f"worst at {size_text(worst_point(points)['bytes'])}; Socket against itself, where it differs "
                              f"most: {worst_noise(points):.2f}; " + ", ".join(f"{size_text(each['bytes'])} {each['ratio']:.2f}" for each in points)),
               noise=of_points(worst_noise))


def worst_noise(points):
    """Of the baseline against itself, at the size where it differs most: the same choice that
    worst_point makes, so that a transport equal to the baseline is expected to be as far below 1."""
    return min(point["noise"] for point in points)


def size_text(size):
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if size >= 1 << shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"
