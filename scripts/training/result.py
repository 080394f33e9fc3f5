# SPDX-License-Identifier: Apache-2.0
"""What scripts/steps measured: launches, as in the file of --json, what follows from them, and that as text and as a picture.

  {"machine": {NAME: TEXT},                                what it was measured on and with
   "launches": [                                           in the order in which they ran
     {"caps": "capped" | "uncapped" | "none" (one host), "hosts": N,
      "variant": "socket" | "socket-again" | "socket-2x8" | "stratus" | "stratus-off", "round": N from 0,
      "error": TEXT or null, "models": [...]}]}   workloads of coll --replay --json (tests/coll/replay/replay.h)

  samples/s   batch / mean time of a step, of one rank; Socket's of a round: the mean of its two launches
  acc_ratio   of a round: stratus' samples/s / another's; of a point: the median of its rounds
  ddp_acc     Socket's samples/s / its samples/s on one host, one rank on each: how well plain DDP scales. Where one host was not
              measured, as it can't be where a job has stages: / those of its computing alone
  noise       Socket's second launch / its first, median of rounds, as a part below 1"""
import dataclasses
import statistics

from benchmark.run import Failure
from training.plan import AGAIN, CAPPED, CAPS_TEXT, LABELS, NO_NETWORK, OFF, SOCKET, SOCKET_2X8, STRATUS, UNCAPPED

BASES = (SOCKET, SOCKET_2X8, OFF)


def wrong(result):
    return sum(model["wrong"] or 0 for launch in result["launches"] for model in launch["models"])


# ---- points: a model on a number of hosts ----

@dataclasses.dataclass
class Point:
    caps: str
    hosts: int
    model: str
    acc_ratio: dict  # by base; without those that were not measured
    noise: float     # or None, as the next one
    ddp_acc: float


def rate(model):
    return model["batch"] / statistics.mean(model["step_us"]) * 1e6


def rate_of(variants, key):
    """samples/s in one round, or None."""
    rates = [rate(variants[each]) for each in ((SOCKET, AGAIN) if key == SOCKET else (key,)) if each in variants]
    return statistics.mean(rates) if rates else None


def median_or_none(values):
    known = [value for value in values if value]
    return statistics.median(known) if known else None


def noise_of(rounds):
    ratio = median_or_none(rate(each[AGAIN]) / rate(each[SOCKET]) for each in rounds if AGAIN in each and SOCKET in each)
    return 1 - min(ratio, 1 / ratio) if ratio else None


def points(launches):
    rounds = {}  # by (caps, hosts, model): {round: {variant: what coll told}}
    for launch in launches:
        for model in launch["models"]:
            of_model = rounds.setdefault((launch["caps"], launch["hosts"], model["name"]), {})
            of_model.setdefault(launch["round"], {})[launch["variant"]] = model
    found = []
    for (caps, hosts, name), of_model in rounds.items():
        each_round = list(of_model.values())
        alone = rounds.get((NO_NETWORK, 1, name), {}).values()
        base = median_or_none(rate_of(each, SOCKET) for each in alone) or median_or_none(
            each[SOCKET]["batch"] / each[SOCKET]["compute_us"] * 1e6 for each in each_round if SOCKET in each and each[SOCKET]["compute_us"])
        socket = median_or_none(rate_of(each, SOCKET) for each in each_round)
        ratios = {key: median_or_none(rate_of(each, STRATUS) / rate_of(each, key) for each in each_round
                                      if STRATUS in each and rate_of(each, key)) for key in BASES}
        found.append(Point(caps, hosts, name, {key: ratio for key, ratio in ratios.items() if ratio}, noise_of(each_round),
                           socket / base if socket and base else None))
    return found


# ---- text ----

def table_lines(title, rows):
    """The first row is the heading, the first column holds words, the others numbers."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["", title, *("  " + "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]).rstrip()
                         for row in rows)]


def base_lines(all_points, base):
    """acc_ratio of every point against one base, and their extremes: beside Socket against itself, as far as it is from that."""
    columns = list(dict.fromkeys((point.caps, point.hosts) for point in all_points if point.caps != NO_NETWORK))
    known = {(point.model, point.caps, point.hosts): point for point in all_points if base in point.acc_ratio}
    rows = [["model", *(f"{hosts} hosts, {caps}" for caps, hosts in columns)]]
    for model in dict.fromkeys(point.model for point in all_points):
        rows.append([model, *(f"{known[model, *key].acc_ratio[base]:.2f}" if (model, *key) in known else "-" for key in columns)])
    lines = table_lines(f"acc_ratio against {LABELS[base]}", rows)
    for caps in (CAPPED, UNCAPPED):
        chosen = sorted((point for point in known.values() if point.caps == caps), key=lambda point: point.acc_ratio[base])
        if chosen:
            low, high = chosen[0], chosen[-1]
            noise = max((point.noise for point in chosen if point.noise is not None), default=0)
            lines.append(f"  {CAPS_TEXT[caps]}: {low.acc_ratio[base]:.2f} ({low.model}, {low.hosts} hosts) to {high.acc_ratio[base]:.2f} "
                         f"({high.model}, {high.hosts}), median {statistics.median(point.acc_ratio[base] for point in chosen):.2f}; "
                         f"Socket against itself: {1 - noise:.2f}")
    return lines


def as_text(result):
    all_points = points(result["launches"])
    lines = [f"Training steps: {len({point.model for point in all_points})} models, replayed through stock NCCL; "
             + "; ".join(f"{name}: {text}" for name, text in result["machine"].items())]
    if wrong(result):
        lines.append(f"WARNING: {wrong(result)} elements of results were wrong.")
    lines += [f"WARNING: {LABELS[launch['variant']]} on {launch['hosts']} hosts, {CAPS_TEXT[launch['caps']]}, round {launch['round'] + 1}: "
              f"{launch['error']}" for launch in result["launches"] if launch["error"]]
    for base in BASES:
        if any(base in point.acc_ratio and point.caps != NO_NETWORK for point in all_points):
            lines += base_lines(all_points, base)
    return "\n".join(lines) + "\n"


# ---- the picture ----

def draw(result, path):
    """The plot of AIACC-ACSpeed: a dot is a model on a number of hosts. x: ddp_acc; y: acc_ratio against Socket. The band is as far as
    Socket is from itself where that is most."""
    from benchmark import picture  # pylint: disable=import-outside-toplevel
    all_points = points(result["launches"])
    caps = next((each for each in (CAPPED, UNCAPPED) if any(point.caps == each for point in all_points)), None)
    shown = [point for point in all_points if point.caps in (caps, NO_NETWORK) and point.ddp_acc and SOCKET in point.acc_ratio]
    if not caps or not shown:
        raise Failure("nothing to draw: no model ran on several hosts with each transport")
    noise = max((point.noise for point in all_points if point.caps == caps and point.noise is not None), default=0)
    figure, axes = picture.pyplot.subplots(figsize=(11.2, 4.6), layout="constrained")
    axes.axhspan(1 - noise, 1 / (1 - noise), color="gray", alpha=0.2, linewidth=0)
    axes.axhline(1, color="gray", linewidth=1)
    for hosts, marker in zip(sorted({point.hosts for point in shown}), "soD^vP*"):
        dots = [(point.ddp_acc, point.acc_ratio[SOCKET]) for point in shown if point.hosts == hosts]
        axes.plot(*zip(*dots), linestyle="none", marker=marker, markersize=8, label=f"{hosts} host{'s' if hosts > 1 else ''}", gid=f"dots-{hosts}")
    axes.set_xlim(left=0)
    axes.set_xlabel("ddp_acc: scaling with Socket")
    axes.set_ylabel("acc_ratio: stratus / Socket")
    axes.legend()
    picture.save(figure, path, f"{'With' if caps == CAPPED else 'Without'} caps of flows: stratus against Socket",
                 f"scripts/steps, {result['machine'].get('date', '')}, {result['machine'].get('stratus', '')}")
