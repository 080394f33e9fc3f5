# SPDX-License-Identifier: Apache-2.0
"""Workload files, with other times, types, or the collectives of another framework."""
import copy
import json

from benchmark.run import ROOT, Failure

# What stratus-coll takes where a file says nothing (docs/workloads.md); zero2's is a number of elements.
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
    """The path, for stratus-coll --replay and the simulation."""
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
    """The same step with this part of its times and bytes, as stratus-coll's --compute-scale and --bytes-scale make it."""
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


class Fusion:
    """Horovod's: a background thread wakes up in each cycle and sends what is ready in as few AllReduces as fit the buffer.
    Cycles are counted from the beginning of the step, and what is left at its end waits for the next one."""

    def __init__(self, cycle_us, buffer_bytes, type_bytes):
        self.cycle_us, self.buffer, self.type_bytes = cycle_us, buffer_bytes // type_bytes, type_bytes
        self.now_us, self.next_us = 0.0, cycle_us
        self.ready, self.events, self.numbers = [], [], 0

    def compute(self, us):
        while self.now_us + us >= self.next_us:
            part, us = self.next_us - self.now_us, us - (self.next_us - self.now_us)
            self.events.append({"compute_us": part})
            self.now_us, self.next_us = self.next_us, self.next_us + self.cycle_us
            self.send()
        if us > 0:
            self.events.append({"compute_us": us})
            self.now_us += us

    def send(self):
        filled = 0
        for elements in [*self.ready, self.buffer + 1]:
            if filled and filled + elements > self.buffer:
                self.numbers += 1
                self.events.append({"collective": "all_reduce", "elements": filled, "id": self.numbers})
                filled = 0
            filled += elements
        self.ready = []

    def finish(self):
        if self.ready:
            self.compute(self.next_us - self.now_us)
        self.events += [{"wait": number + 1} for number in range(self.numbers)]
        return self.events


def fused(workload, cycle_us, buffer_bytes):
    """The workload as Horovod runs it: gradients become ready in reverse order of the layers."""
    fusion = Fusion(cycle_us, buffer_bytes, TYPE_BYTES[workload["gradient_type"]])
    fusion.compute(sum(layer["forward_us"] for layer in workload["layers"]))
    for layer in reversed(workload["layers"]):
        fusion.compute(layer["backward_us"])
        fusion.ready += reversed(layer["parameters"])
    kept = {key: workload[key] for key in ("format", "version", "name", "source", "batch", "gradient_type", "optimizer_us")}
    return {**kept, "parallel": "events", "events": fusion.finish()}
