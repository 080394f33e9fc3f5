# SPDX-License-Identifier: Apache-2.0
"""Forecasts beside what was published, in tests/data/forecast: inputs.json, blind.json (committed before published.json), and
published.json, where `after` has inputs that were changed once the figure was known, with what the model gives then, and
`now` what it gives for the blind inputs since it was corrected."""
import json
import os
import statistics

from benchmark.run import ROOT
from training import forecasts

DIRECTORY = os.path.join(ROOT, "tests/data/forecast")


def read(name):
    with open(f"{DIRECTORY}/{name}.json", encoding="utf-8") as file:
        return json.load(file)


def rows():
    """[(published row, blind forecast, its error, error after the change or None)]: errors are parts of the published value."""
    blind = {row["name"]: row for row in read("blind")["forecasts"]}
    found = []
    for row in read("published")["published"]:
        after = row.get("after")
        changed = after["value"] / row["published"] - 1 if after else None
        found.append((row, blind[row["name"]], blind[row["name"]]["value"] / row["published"] - 1, changed))
    return found


def recomputed(name, changes=None):
    """What the model of today gives for the case."""
    case, = [case for case in forecasts.read_cases(f"{DIRECTORY}/inputs.json") if case["name"] == name]
    return statistics.median(forecasts.value_of({**case, **(changes or {})}, seed) for seed in forecasts.SEEDS)


def changes_of(row):
    return {key: value for key, value in row["after"].items() if key in forecasts.LIMITS}


def table():
    lines = ["| case | published | blind forecast, interval | error | not blind | error |", "|---|---|---|---|---|---|"]
    blind, after = [], []
    for row, forecast, error, changed in rows():
        blind.append((abs(error), row["name"]))
        is_fitted = row.get("after", {}).get("fitted", False)
        if changed is not None and not is_fitted:
            after.append(abs(changed))
        value = f"{row['after']['value']:.3g}" if changed is not None else ""
        lines.append(f"| {row['name']} | {row['published']:g} | {forecast['value']:.3g}, {forecast['low']:.3g} to {forecast['high']:.3g} | "
                     f"{error:+.0%} | {value} | {'' if changed is None else 'fitted' if is_fitted else f'{changed:+.0%}'} |")
    lines.append(f"\n{len(blind)} figures: blind error {statistics.median(each for each, _ in blind):.0%} at the median, "
                 f"worst {max(blind)[0]:.0%} ({max(blind)[1]}); not blind, {len(after)} of them: "
                 f"{statistics.median(after):.0%} at the median, worst {max(after):.0%}")
    return "\n".join(lines)
