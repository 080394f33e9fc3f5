# SPDX-License-Identifier: Apache-2.0
"""Sums over launches: the points of the plot, and the targets.

  samples/s   batch / mean time of a step, of one rank; Socket's of a round: the mean of its two launches
  acc_ratio   of a round: stratus' samples/s / Socket's; of a point: the median of its rounds
  ddp_acc     Socket's samples/s / its samples/s on one host, one rank on each: how well plain DDP scales. Where one host was not
              measured, as it can't be where a job has stages: / those of its computing alone
  noise       of a point: Socket's second launch / its first, median of rounds, as a part below 1. Of many points
              the worst, as the worst acc_ratio of many is looked for

A point: {"caps", "hosts", "compute_scale", "model", "ddp_acc", "noise": 0 to 1 or null,
          "acc_ratio": {"socket", "socket-2x8", "stratus-off": {"median", "min", "max"} or null}}
A target: {"caps", "name", "is", "where": TEXT, "target": TEXT, "noise", "is_met": BOOL or null (not to be told)}"""
import statistics

from training.plan import AGAIN, CAPPED, LABELS, NO_NETWORK, OFF, SOCKET, SOCKET_2X8, STRATUS, UNCAPPED

BASES = (SOCKET, SOCKET_2X8, OFF)
MEDIAN_TARGET, BEST_TARGET = 1.5, 2.5  # against Socket as it comes, with caps: issue of this script
COMPRESSED_TARGET = 1.2  # the best model against stratus without compression, with caps: issue of today's jobs
NOISE_MAX = 0.1  # Socket against itself; beyond, less than wanted but within noise says nothing


def rate(model):
    return model["batch"] / statistics.mean(model["step_us"]) * 1e6


def median_or_none(values):
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def by_point(launches):
    """{(caps, hosts, compute scale, model): {round: {variant: what coll told}}}, in the order of the launches."""
    found = {}
    for launch in launches:
        for model in launch["models"]:
            rounds = found.setdefault((*(launch[key] for key in ("caps", "hosts", "compute_scale")), model["name"]), {})
            rounds.setdefault(launch["round"], {})[launch["variant"]] = model
    return found


def rate_of(variants, key):
    """samples/s in one round, or None."""
    keys = (SOCKET, AGAIN) if key == SOCKET else (key,)
    rates = [rate(variants[each]) for each in keys if each in variants]
    return statistics.mean(rates) if rates else None


def acc_ratio(rounds, base):
    ratios = [rate_of(each, STRATUS) / rate_of(each, base) for each in rounds if STRATUS in each and rate_of(each, base)]
    return {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios)} if ratios else None


def noise_of(rounds):
    ratios = [rate(each[AGAIN]) / rate(each[SOCKET]) for each in rounds if AGAIN in each and SOCKET in each]
    if not ratios:
        return None
    median = statistics.median(ratios)
    return 1 - min(median, 1 / median)


def points(launches):
    found, together = [], by_point(launches)
    for (caps, hosts, compute_scale, name), rounds in together.items():
        rounds = list(rounds.values())
        alone = together.get((NO_NETWORK, 1, compute_scale, name), {}).values()
        base_rate = median_or_none(rate_of(each, SOCKET) for each in alone) or median_or_none(
            each[SOCKET]["batch"] / each[SOCKET]["compute_us"] * 1e6 for each in rounds if SOCKET in each and each[SOCKET]["compute_us"])
        socket_rate = median_or_none(rate_of(each, SOCKET) for each in rounds)
        found.append({
            "caps": caps, "hosts": hosts, "compute_scale": compute_scale, "model": name,
            "ddp_acc": socket_rate / base_rate if socket_rate and base_rate else None, "noise": noise_of(rounds),
            "acc_ratio": {base: acc_ratio(rounds, base) for base in BASES}})
    return found


# ---- targets ----

def place(point):
    scale = "" if point["compute_scale"] == 1 else f", compute x {point['compute_scale']:g}"
    return f"{point['model']} on {point['hosts']} hosts{scale}"


def target(caps, name, value, wanted, where="", noise=None):
    """`noise`: what may be missing of `wanted`."""
    is_met = value >= wanted - (noise or 0)
    if is_met and value < wanted and noise is not None and noise > NOISE_MAX:
        is_met = None
    text = f">= {wanted:.2f}" + ("" if noise is None else f" - noise {noise:.2f}")
    return {"caps": caps, "name": name, "is": value, "where": where, "target": text, "noise": noise, "is_met": is_met}


def targets_of(caps, base, chosen):
    label = LABELS[base]
    known = [point for point in chosen if point["acc_ratio"][base]]
    if not known:
        return []

    def ratio(point):
        return point["acc_ratio"][base]["median"]
    noise = max((point["noise"] for point in known if point["noise"] is not None), default=None)
    worst, best = min(known, key=ratio), max(known, key=ratio)
    found = [target(caps, f"worst acc_ratio against {label}", ratio(worst), 1, place(worst), noise)]
    if caps == CAPPED and base == SOCKET:
        found += [target(caps, f"median acc_ratio against {label}", statistics.median(map(ratio, known)), MEDIAN_TARGET),
                  target(caps, f"best acc_ratio against {label}", ratio(best), BEST_TARGET, place(best))]
    return found


def compression_target(all_points):
    """Where the network bounds the step: with shorter computing, too."""
    known = [point for point in all_points if point["caps"] == CAPPED and point["acc_ratio"][OFF]]
    if not known:
        return []
    best = max(known, key=lambda point: point["acc_ratio"][OFF]["median"])
    return [target(CAPPED, f"best acc_ratio against {LABELS[OFF]}", best["acc_ratio"][OFF]["median"], COMPRESSED_TARGET,
                   place(best))]


def targets(all_points):
    """Of the points with a network; but for compression, with the job's own compute times."""
    found = []
    for caps in (CAPPED, UNCAPPED):
        chosen = [point for point in all_points if point["caps"] == caps and point["compute_scale"] == 1]
        found += [each for base in BASES for each in targets_of(caps, base, chosen)]
    return found + compression_target(all_points)


def below_one(all_points):
    """Points at which stratus was slower than a base by more than that point's noise."""
    return [(point, base) for point in all_points for base in BASES
            if point["caps"] != NO_NETWORK and point["acc_ratio"][base]
            and point["acc_ratio"][base]["median"] < 1 - max(0.02, point["noise"] or 0)]
