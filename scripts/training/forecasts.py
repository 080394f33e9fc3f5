# SPDX-License-Identifier: Apache-2.0
"""Forecasts of scaling and bandwidth, by the simulation of many hosts (docs/forecast.md, tests/scale/README.md).

A case is a dictionary, one of tests/data/forecast/inputs.json. Its forecast is the median of three simulations, in which flows
draw other paths, and an interval: the least and the most of these three and of those in which one entry of `between` has one
of its two ends."""
import json
import statistics
import subprocess
import tempfile

from benchmark.run import ROOT, Failure
from training.reshape import fused, read_workload, step_us, with_step, write_workload
from training.simulator import FREE, simulate

QUANTITIES = {"scaling": "throughput of a GPU over that of one GPU alone", "images_per_s": "samples per second of all GPUs",
              "bus_gbs": "GB/s, bus bandwidth of AllReduce", "flow_gbps": "Gb/s of one connection, whose ends have a core each"}
TRANSPORTS = ("socket", "socket-2x8", "stratus", "ideal")
LIMITS = {"hosts": (1, 1024), "gpus": (1, 16), "nic_gbps": (0.001, 10000), "nics": (1, 4), "flow_gbps": (0, 10000), "channels": (1, 8),
          "threads": (1, 16), "byte_ps": (0, 100000), "latency_us": (0, 100000), "batch": (1, 1 << 20), "images_per_s": (1e-3, 1e9),
          "all_reduce_mib": (1, 16384), "cycle_ms": (0.1, 1000), "buffer_mib": (1, 1024)}
WHOLE = {"hosts", "gpus", "nics", "channels", "threads", "byte_ps", "batch", "all_reduce_mib", "buffer_mib"}
WORDS = {"quantity": tuple(QUANTITIES), "transport": TRANSPORTS, "algorithm": ("auto", "ring", "tree")}
TEXTS = {"name", "source", "assumed", "workload"}
# What is not said: as in tests/scale/README.md. Bursts of 128 KiB are those of the emulated cloud.
DEFAULTS = {"gpus": 8, "nics": 1, "flow_gbps": 0, "channels": 2, "threads": 4, "byte_ps": 140, "latency_us": 20, "transport": "socket",
            "algorithm": "auto"}
BURST = "128K"
SEEDS = (1, 2, 3)  # of the paths that flows draw
# Steps that are measured after one: with hosts all alike they differ by the draws of services alone.
STEPS = ["--steps", "3", "--skip", "1", "--variants", "4", "--burst", BURST]


def check_value(place, key, value):
    """Fails unless the value is one that the key can have."""
    if key in WORDS and value not in WORDS[key]:
        raise Failure(f"{place}.{key}: {json.dumps(value)}, expected one of {', '.join(WORDS[key])}")
    if key in TEXTS and not (isinstance(value, str) and value):
        raise Failure(f"{place}.{key}: expected a text")
    if key in LIMITS:
        low, high = LIMITS[key]
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not low <= value <= high or (key in WHOLE and value != int(value)):
            raise Failure(f"{place}.{key}: {json.dumps(value)}, expected a {'whole ' * (key in WHOLE)}number from {low:g} to {high:g}")


def check_case(place, case):
    """Returns the case with its defaults."""
    if not isinstance(case, dict):
        raise Failure(f"{place}: expected an object")
    for key, value in case.items():
        if key not in {*LIMITS, *WORDS, *TEXTS, "between"}:
            raise Failure(f"{place}.{key}: unknown key; known are {', '.join(sorted({*LIMITS, *WORDS, *TEXTS, 'between'}))}")
        check_value(place, key, value)
    needed = {"name", "quantity", "hosts", "nic_gbps"} | {
        "scaling": {"workload"}, "images_per_s": {"workload"}, "bus_gbs": {"all_reduce_mib"}, "flow_gbps": set()}[case.get("quantity", "flow_gbps")]
    if needed - set(case):
        raise Failure(f"{place}: {', '.join(sorted(needed - set(case)))} is missing")
    if ("cycle_ms" in case) != ("buffer_mib" in case):
        raise Failure(f"{place}: cycle_ms and buffer_mib belong together: Horovod's")
    between = case.get("between", {})
    if not isinstance(between, dict):
        raise Failure(f"{place}.between: expected an object")
    for key, ends in between.items():
        if key not in LIMITS or not isinstance(ends, list) or len(ends) != 2:
            raise Failure(f"{place}.between.{key}: expected [least, most] of one of {', '.join(LIMITS)}")
        for end in ends:
            check_value(f"{place}.between", key, end)
    return {**DEFAULTS, **case}


def read_cases(path):
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError) as error:
        raise Failure(f"{path}: {error}") from None
    if not isinstance(document, dict) or document.get("format") != "stratus-forecast-inputs" or document.get("version") != 1:
        raise Failure(f'{path}: expected "format": "stratus-forecast-inputs" and "version": 1')
    cases = document.get("cases")
    if not isinstance(cases, list) or not cases:
        raise Failure(f"{path}: cases: expected a list of objects")
    return [check_case(f"{path}: cases[{number}]", case) for number, case in enumerate(cases)]


# ---- one simulation ----

def workload_of(case):
    """(the workload that is simulated, us of its step on one GPU alone)."""
    if "all_reduce_mib" in case:
        event = {"collective": "all_reduce", "elements": int(case["all_reduce_mib"]) << 18}  # of 4 bytes
        return {"format": "stratus-workload", "version": 1, "name": "all_reduce", "source": "one AllReduce", "batch": 1,
                "parallel": "events", "gradient_type": "float32", "events": [event]}, 0.0
    workload = read_workload(case["workload"])
    if "layers" not in workload:
        if {"batch", "images_per_s", "cycle_ms"} & set(case):
            raise Failure(f"{case['name']}: {case['workload']} lists events: batch, images_per_s and cycle_ms are for layers")
        return workload, None
    workload["batch"] = case.get("batch", workload["batch"])
    if "images_per_s" in case:
        workload = with_step(workload, workload["batch"] / case["images_per_s"] * 1e6)
    alone_us = step_us(workload)
    if "cycle_ms" in case:
        workload = fused(workload, case["cycle_ms"] * 1e3, int(case["buffer_mib"]) << 20)
    return workload, alone_us


def options_of(case, seed):
    names = {"gpus": "--gpus", "nic_gbps": "--nic-gbps", "nics": "--nics", "flow_gbps": "--flow-gbps", "channels": "--channels",
             "threads": "--threads", "byte_ps": "--byte-ps", "algorithm": "--algorithm"}
    options = [*STEPS, "--seed", str(seed), "--latency", f"{case['latency_us']:g}us"]
    for key, option in names.items():
        options += [option, f"{case[key]:g}" if key in LIMITS else case[key]]
    return options + (FREE if case["transport"] == "ideal" or case["quantity"] == "flow_gbps" else [])


def simulated(case, seed=1):
    """(us of a step, us of it on one GPU alone, the document of the simulator)."""
    workload, alone_us = workload_of({"all_reduce_mib": 1, **case} if case["quantity"] == "flow_gbps" else case)
    with tempfile.TemporaryDirectory() as scratch:
        path = write_workload(workload, scratch, workload["name"])
        document = simulate(case["transport"], [path], [int(case["hosts"])], options_of(case, seed))
    row = document["results"][0]
    return row["step_us"], row["compute_us"] if alone_us is None else alone_us, document


def value_of(case, seed=1):
    took_us, alone_us, document = simulated(case, seed)
    ranks = case["hosts"] * case["gpus"]
    if case["quantity"] == "flow_gbps":
        service = document["services"][0]
        return service["of_nic"] * case["nic_gbps"] * case["nics"] / service["connections"]
    if case["quantity"] == "bus_gbs":
        return case["all_reduce_mib"] * (1 << 20) * 2 * (ranks - 1) / ranks / (took_us * 1e3)
    if case["quantity"] == "scaling":
        return alone_us / took_us
    return ranks * case.get("batch", 1) / took_us * 1e6


def forecast(case):
    """The case's value, with the least and the most of its interval."""
    others = [value_of(case, seed) for seed in SEEDS]
    value = statistics.median(others)
    for key, ends in case.get("between", {}).items():
        others += [value_of({**case, key: end}) for end in ends]
    return {"name": case["name"], "quantity": case["quantity"], "value": round(value, 4), "low": round(min(value, *others), 4),
            "high": round(max(value, *others), 4)}


# What a forecast depends on.
MODEL = ("tests/scale", "scripts/training", "scripts/forecast", "tuner_plugin/model", "tuner_plugin/tools/coll/replay",
         "tuner_plugin/workloads", "net_plugin/link", "net_plugin/policy")


def model_commit():
    """The last commit that changed the model; "changed since" it where the tree has other files."""
    git = ["git", "-C", ROOT]
    found = subprocess.run([*git, "log", "-1", "--format=%h", "--", *MODEL], capture_output=True, text=True, check=False)
    if found.returncode or not found.stdout:
        return "unknown: no git"
    changed = subprocess.run([*git, "status", "--porcelain", "--", *MODEL], capture_output=True, text=True, check=False).stdout
    return found.stdout.strip() + (", changed since" if changed.strip() else "")
