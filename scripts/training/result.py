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
      "models": [                                          of the slowest rank, as stratus-coll --replay tells
        {"name", "batch", "collectives", "bytes_per_step", "step_us": [OF EACH STEP], "compute_us", "exposed_us",
         "cpu_s_per_step",
         "wrong": elements of results, or null (not checked),
         "nic_use": sent bytes / what the NICs could send meanwhile, or null (one host),
         "cpu_busy": part of the CPUs' time that was used meanwhile, or null}]}],
   "points": [...], "targets": [...]}                      summary.py; follow from the launches, checked when read

Reading is strict: a key too many or too few, another type or a value out of range is an error with its place."""
import dataclasses
import json
import typing

from problem import Problem
from strict_json import Document

from training import summary
from training.plan import CAPS, LABELS, Protocol, Scale

FORMAT, VERSION = "stratus-steps", 2
TIME_US_MAX = 1e12  # eleven days
SIZE_MAX = 1 << 31  # bytes of a file


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

def exactly(node, keys):
    """The nodes below an object that must have these keys and no others."""
    for key, _ in node.items():
        if key not in keys:
            node.get(key).fail(f"unknown; expected {', '.join(keys)}")
    for key in keys:
        if key not in node.value:
            node.fail(f"lacks {key}")
    return {key: node.get(key) for key in keys}


def names(of):
    return [field.name for field in dataclasses.fields(of)]


def part(node, high):
    return None if node.value is None else node.number(0, high)


def replayed(node, nic_use=None, cpu_busy=None):
    """Of this file's models, and of those of stratus-coll, whose use of NICs and CPUs is measured from outside."""
    steps = [each.number(0, TIME_US_MAX) for each in node["step_us"].each()]
    if not steps or min(steps) <= 0:
        node["step_us"].fail("must be times of steps, each over 0")
    return Replayed(
        name=node["name"].text(256), batch=node["batch"].integer(1, 1 << 40),
        collectives=node["collectives"].integer(0, 1 << 40), bytes_per_step=node["bytes_per_step"].integer(0),
        step_us=steps, compute_us=node["compute_us"].number(0, TIME_US_MAX),
        exposed_us=node["exposed_us"].number(-TIME_US_MAX, TIME_US_MAX),
        cpu_s_per_step=node["cpu_s_per_step"].number(0, 1e6),
        wrong=None if node["wrong"].value is None else node["wrong"].integer(), nic_use=nic_use, cpu_busy=cpu_busy)


def launch(node):
    at = exactly(node, names(Launch))
    models = []
    for each in at["models"].each():
        fields = exactly(each, names(Replayed))
        models.append(replayed(fields, part(fields["nic_use"], 100), part(fields["cpu_busy"], 1)))
    if len({model.name for model in models}) < len(models):
        at["models"].fail("has a model twice")
    return Launch(
        caps=at["caps"].word(CAPS), hosts=at["hosts"].integer(1, 8), compute_scale=at["compute_scale"].number(1e-6, 1e6),
        variant=at["variant"].word(tuple(LABELS)), round=at["round"].integer(0, 99),
        error=None if at["error"].value is None else at["error"].text(), retries=at["retries"].integer(),
        took_s=at["took_s"].number(), cpu_busy=part(at["cpu_busy"], 1), models=models)


def scale(node):
    at = exactly(node, names(Scale))
    return Scale(*(each.number(1e-9, 1e9) for each in at.values()))


def protocol(node):
    at = exactly(node, names(Protocol))
    return Protocol(at["name"].text(64), at["skip"].integer(0, 1 << 30), at["steps"].integer(1, 1 << 30),
                    at["rounds"].integer(1, 99))


def parse(text, path):
    root = Document(path, text).root
    at = exactly(root, ["format", "version", *names(Result), "points", "targets"])
    at["format"].word((FORMAT,))
    at["version"].integer(VERSION, VERSION)
    result = Result(
        machine={key: each.text() for key, each in at["machine"].items()}, scale=scale(at["scale"]),
        protocol=protocol(at["protocol"]), ranks_per_host=at["ranks_per_host"].integer(1, 8),
        launches=[launch(each) for each in at["launches"].each()])
    points = summary.points(result.launches)
    for key, wanted in (("points", points), ("targets", summary.targets(points))):
        if at[key].value != json.loads(json.dumps(wanted)):
            at[key].fail("does not follow from the launches")
    return result


def read(path):
    try:
        with open(path, "rb") as file:
            content = file.read(SIZE_MAX + 1)
        if len(content) > SIZE_MAX:
            raise Problem(f"more than {SIZE_MAX} bytes", path)
        return parse(content.decode("utf-8"), path)
    except OSError as error:
        raise Problem(error.strerror, path) from None
    except UnicodeDecodeError as error:
        raise Problem(f"no UTF-8 at byte {error.start}", path) from None
