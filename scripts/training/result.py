# SPDX-License-Identifier: Apache-2.0
"""What scripts/steps measured, as JSON. Times are in microseconds, as measured: times of the job x the scale.

  {"format": "stratus-steps", "version": 2,
   "machine": {NAME: TEXT},                                what it was measured on and with
   "scale": {"all_nics_gbps": of all hosts together, "time": emulation / job, "job_nic_gbps", "flow_part": cap / NIC},
   "protocol": {"name", "skip", "steps", "rounds"},        steps that do not count, steps that do, rounds
   "ranks_per_host": N,
   "launches": [                                           in the order in which they ran
     {"caps": "capped" | "uncapped" | "none" (one host), "hosts": N, "compute_scale": X,
      "variant": "socket" | "socket-again" | "socket-2x8" | "stratus" | "stratus-off", "round": N from 0,
      "error": TEXT or null, "retries": N, "took_s": S, "cpu_busy": 0 to 1 or null,
      "models": [                                          of the slowest rank, as coll --replay tells
        {"name", "batch", "collectives", "bytes_per_step", "step_us": [OF EACH STEP], "compute_us", "exposed_us",
         "cpu_s_per_step",
         "wrong": elements of results, or null (not checked),
         "nic_use": sent bytes / what the NICs could send meanwhile, or null (one host),
         "cpu_busy": part of the CPUs' time that was used meanwhile, or null}]}],
   "points": [...], "targets": [...]}                      summary.py; follow from the launches"""
import dataclasses
import json
import typing

from benchmark.run import Failure

from training import summary
from training.plan import Protocol, Scale

FORMAT, VERSION = "stratus-steps", 2


@dataclasses.dataclass
class Replayed:
    """One model in one launch."""
    name: str
    batch: int
    collectives: int
    bytes_per_step: int
    step_us: list
    compute_us: float
    exposed_us: float
    cpu_s_per_step: float
    wrong: typing.Optional[int]
    nic_use: typing.Optional[float] = None
    cpu_busy: typing.Optional[float] = None


@dataclasses.dataclass
class Launch:
    caps: str
    hosts: int
    compute_scale: float
    variant: str
    round: int
    error: typing.Optional[str] = None
    retries: int = 0
    took_s: float = 0.0
    cpu_busy: typing.Optional[float] = None
    models: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Result:
    machine: dict
    scale: Scale
    protocol: Protocol
    ranks_per_host: int
    launches: list

    @property
    def wrong(self):
        return sum(model.wrong or 0 for launch in self.launches for model in launch.models)


def as_json(result):
    points = summary.points(result.launches)
    value = {"format": FORMAT, "version": VERSION, **dataclasses.asdict(result), "points": points,
             "targets": summary.targets(points)}
    return json.dumps(value, indent=1) + "\n"


# ---- reading ----

def replayed(value, nic_use=None, cpu_busy=None):
    """Of a model as coll tells it; the use of NICs and CPUs is measured from outside."""
    known = {field.name: value[field.name] for field in dataclasses.fields(Replayed) if field.name in value}
    return Replayed(**{"nic_use": nic_use, "cpu_busy": cpu_busy, **known})


def launch(value):
    return Launch(**{**value, "models": [replayed(each) for each in value["models"]]})


def parse(text, path):
    try:
        value = json.loads(text)
        if (value["format"], value["version"]) != (FORMAT, VERSION):
            raise ValueError(f"{value['format']!r}, version {value['version']!r}")
        return Result(value["machine"], Scale(**value["scale"]), Protocol(**value["protocol"]), value["ranks_per_host"],
                      [launch(each) for each in value["launches"]])
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(f"{path}: not what scripts/steps --json writes, version {VERSION}: {error}") from None


def read(path):
    with open(path, encoding="utf-8") as file:
        return parse(file.read(), path)
