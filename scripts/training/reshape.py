# SPDX-License-Identifier: Apache-2.0
"""Workload files, with other times and bytes."""
import copy
import json

from benchmark.run import ROOT, Failure

# What coll takes where a file says nothing (docs/workloads.md); zero2's is a number of elements.
BUCKETS = {"ddp": {"first_bucket_bytes": 1 << 20, "bucket_bytes": 25 << 20}, "zero2": {"bucket_bytes": 500_000_000}}
TYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


def read_workload(name):
    """A built-in one, or a file."""
    path = name if "/" in name or name.endswith(".json") else f"{ROOT}/tuner_plugin/workloads/{name}.json"
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        raise Failure(f"workload {name}: neither one of tuner_plugin/workloads nor a file") from None
    except ValueError as error:
        raise Failure(f"workload {name}: {error}") from None


def write_workload(workload, directory, name):
    """The path, for coll --replay and the simulation."""
    path = f"{directory}/{name}.json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(workload, file)
    return path


def with_step(workload, step_us):
    """The same layers in a step of this time without communication: each keeps its part of forward and backward."""
    layers = [dict(layer) for layer in workload["layers"]]
    before = sum(layer["forward_us"] + layer["backward_us"] for layer in layers)
    after = step_us - workload.get("optimizer_us", 0)
    for layer in layers:
        layer["forward_us"] *= after / before
        layer["backward_us"] *= after / before
    return {**workload, "layers": layers}


def step_us(workload):
    """Of computing alone."""
    return workload.get("optimizer_us", 0) + sum(layer["forward_us"] + layer["backward_us"] for layer in workload["layers"])


def scaled(workload, part):
    """The same step with this part of its times and bytes, as coll's --compute-scale and --bytes-scale make it."""
    def elements(count):
        return max(1, round(count * part))
    found = copy.deepcopy(workload)
    type_bytes = TYPE_BYTES[workload["gradient_type"]] if workload["parallel"] == "zero2" else 1
    for key, size in BUCKETS.get(workload["parallel"], {}).items():
        found[key] = elements(found.get(key, size * type_bytes))
    if "optimizer_us" in found:
        found["optimizer_us"] *= part
    for layer in found.get("layers", []):
        layer["parameters"] = [elements(count) for count in layer["parameters"]]
        layer["forward_us"], layer["backward_us"] = layer["forward_us"] * part, layer["backward_us"] * part
    for event in found.get("events", []):
        if "compute_us" in event:
            event["compute_us"] *= part
        for each in [event, *event.get("exchange", [])]:
            if "elements" in each:
                each["elements"] = elements(each["elements"])
        for key in {"sends", "receives"} & set(event):
            event[key] = [elements(count) for count in event[key]]
    return found
