# SPDX-License-Identifier: Apache-2.0
"""How good choices of cells are, by samples of stratus calibrate: over the best cell, and as far as noise allows.

A cell is "default", NCCL's own choice, or (algorithm, protocol, channels); a point is (collective, bytes)."""
import itertools
import json
import math
import statistics

NEAR = 1.05  # of the best measured cell


def read_samples(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def measured_cells(samples):
    """{(collective, bytes): [{cell: time over that of "default", NCCL's own choice}]}, an entry for each launch."""
    points = {}
    for sample in samples:
        cell = "default" if sample["default"] else (sample["algo"], sample["proto"], sample["channels"])
        launches = points.setdefault((sample["coll"], sample["bytes"]), {})
        launches.setdefault(sample["run"], {})[cell] = sample["median_us"]
    return {key: [{cell: us / times["default"] for cell, us in times.items()}
                  for times in launches.values() if "default" in times] for key, launches in points.items()}


def typical(launches):
    """{cell: its ratio, the median over the launches that have it}."""
    cells = {cell for launch in launches for cell in launch}
    return {cell: statistics.median([launch[cell] for launch in launches if cell in launch]) for cell in cells}


def default_cells(samples):
    """{(collective, bytes): what NCCL chooses by itself}."""
    return {(sample["coll"], sample["bytes"]): (sample["algo"], sample["proto"], 0) for sample in samples if sample["default"]}


def choices(tables, defaults):
    """{(collective, bytes): cell} by the rows that hold; a row is for the choice of NCCL's that it was measured over."""
    chosen = {}
    for (collective, size), default in defaults.items():
        cell = "default"
        for row in tables.get(collective, []):
            if row["bytes_lo"] <= size and (row["bytes_hi"] is None or size < row["bytes_hi"]) and (
                    "over_algo" not in row or (row["over_algo"], row["over_proto"]) == default[:2]):
                cell = (row["algo"], row["proto"], row["channels"])
        chosen[collective, size] = "default" if cell == default else cell
    return chosen


def contenders(launches, *chosen):
    """The cells that may be the best as far as the calibration tells, and those that were chosen."""
    ratios = typical(launches)
    least = min(ratios.values())
    return {cell for cell, ratio in ratios.items() if ratio <= NEAR * least} | {
        cell if cell in ratios else "default" for cell in chosen}


def slowdowns(points, chosen, again):
    """[{collective, bytes, chosen, best, slowdown, default_slowdown, seen_slowdown, error}]: times over that of the best
    measured cell, for each choice.

    Of many cells the one that seems fastest is so by luck as well, and the same measurement must not say which is best
    and by how much: in each launch of `again` the best is the one that all the others say, and slowdown is the geometric
    mean over those launches; `error` is its standard error. Where nothing is near the best but what was chosen,
    nothing was measured again. seen_slowdown is what the calibration itself says. A cell that was not measured at a size
    is one that NCCL would not offer: the choice is its own there."""
    found = []
    for (collective, size), launches in sorted(points.items()):
        if (collective, size) not in chosen or not launches:
            continue
        ratios, fresh = typical(launches), again.get((collective, size), [])
        cell = chosen[collective, size] if chosen[collective, size] in ratios else "default"
        seen_best = min(ratios, key=ratios.get)
        together = typical(launches + fresh)
        each = {"slowdown": [], "default_slowdown": []}
        for place, launch in enumerate(fresh):
            others = typical(launches + fresh[:place] + fresh[place + 1:])
            best = min((other for other in launch if other in others), key=others.get)
            if cell in launch:
                each["slowdown"].append(math.log(launch[cell] / launch[best]))
                each["default_slowdown"].append(math.log(1 / launch[best]))
        seen = {"slowdown": ratios[cell] / ratios[seen_best], "default_slowdown": 1 / ratios[seen_best]}
        found.append({
            "collective": collective, "bytes": size, "chosen": cell_text(cell), "best": cell_text(min(together, key=together.get)),
            **{name: math.exp(statistics.fmean(values)) if values else seen[name] for name, values in each.items()},
            "seen_slowdown": seen["slowdown"], "error": standard_error(each["slowdown"])})
    return found


def halves(launches):
    """Every way to make two halves of these, the larger one first and the smaller one first."""
    places = range(len(launches))
    for size in {len(launches) // 2, len(launches) - len(launches) // 2}:
        for half in itertools.combinations(places, size):
            yield [launches[i] for i in half], [launches[i] for i in places if i not in half]


def repeatable(points, again):
    """About how near the best cell one can come here: {near: share of these points, slowdown, points}, or None if too
    little was measured again.

    The chooser takes the cell that is best in one half of the launches of `again`, and the other half says how far it
    is from the best there. Both err by noise alone, so that what is missing to 1 is not a profile's fault; with half of
    the launches each, they err a little more than who has all. At a point that was not measured again nothing else is
    near what was chosen."""
    shares, logs = [], []
    for point in points:
        launches = again.get(point, [])
        if len(launches) == 1:
            continue  # nobody can judge
        found = []
        for chooser, judge in halves(launches) if launches else []:
            chosen, judged = typical(chooser), typical(judge)
            cell = min((cell for cell in chosen if cell in judged), key=chosen.get)
            found.append(judged[cell] / min(judged.values()))
        shares.append(sum(ratio <= NEAR for ratio in found) / len(found) if found else 1)
        logs.append(statistics.fmean([math.log(ratio) for ratio in found]) if found else 0)
    has_judges = any(len(again.get(point, [])) > 1 for point in points)
    return {"near": statistics.fmean(shares), "slowdown": math.exp(statistics.fmean(logs)), "points": len(shares)} if has_judges else None


def standard_error(values):
    if len(values) < 2:
        return None
    return statistics.stdev(values) / math.sqrt(len(values))


def cell_text(cell):
    return cell if cell == "default" else f"{cell[0]}.{cell[1]}" + (f"@{cell[2]}" if cell[2] else "")


def near(points, what="slowdown"):
    return sum(point[what] <= NEAR for point in points) / len(points) if points else 1
