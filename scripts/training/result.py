# SPDX-License-Identifier: Apache-2.0
"""What scripts/steps measured, as JSON. Times are in microseconds, as measured: times of the job x the scale.

  {"format": "stratus-steps", "version": 3,
   "machine": {NAME: TEXT},                                what it was measured on and with
   "scale": {"all_nics_gbps": of all hosts together, "time": emulation / job, "job_nic_gbps", "flow_part": cap / NIC},
   "protocol": {"name", "skip", "steps", "rounds"},        steps that do not count, steps that do, rounds
   "ranks_per_host": N,
   "launches": [                                           in the order in which they ran
     {"caps": "capped" | "uncapped" | "none" (one host), "hosts": N, "compute_scale": X,
      "variant": "socket" | "socket-again" | "socket-2x8" | "stratus" | "stratus-off", "round": N from 0,
      "error": TEXT or null, "retries": N, "took_s": S, "cpu_busy": 0 to 1 or null,
      "models": [...]}],                                   workloads of coll --replay --json (tests/coll/replay/replay.h)
   "points": [...], "targets": [...]}                      summary.py; follow from the launches"""
import json

from benchmark.run import Failure

from training import summary

FORMAT, VERSION = "stratus-steps", 3


def wrong(result):
    return sum(model["wrong"] or 0 for launch in result["launches"] for model in launch["models"])


def as_json(result):
    points = summary.points(result["launches"])
    return json.dumps({"format": FORMAT, "version": VERSION, **result, "points": points, "targets": summary.targets(points)}, indent=1) + "\n"


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
        if (value["format"], value["version"]) != (FORMAT, VERSION):
            raise ValueError(f"{value['format']!r}, version {value['version']!r}")
        return value
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(f"{path}: not what scripts/steps --json writes, version {VERSION}: {error}") from None
