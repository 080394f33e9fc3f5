# SPDX-License-Identifier: Apache-2.0
"""Sets of models that scripts/steps runs: their scale, their transports, and what their ranks send.

Of a model of a set, times and bytes may be a part of the job's, beyond the scale: a step of some seconds has hundreds of
collectives and says as much in a tenth of its time. What ranks send matters where stratus compresses: a model that has data
sends numbers of its gradients' type, and models with the same data are one launch."""
import dataclasses
import os
import struct

from benchmark.run import ROOT
from training.plan import MODELS, NOT_COMPRESSED, SCALE, VARIANTS, Scale
from training import workload

SAMPLES = os.path.join(ROOT, "tests/data/codec")
BFLOAT16, FLOAT32, FLOAT16 = "bfloat16", "float32", "float16"
# Gradients of real training. FSDP gathers weights, too, which compress better: 1.49 times, these 1.40 (net_plugin/codec).
DATA = {BFLOAT16: "transformer-gradient.bf16", FLOAT32: "transformer-gradient.f32", FLOAT16: "transformer-gradient.f32"}
LOSS_SCALE = 1 << 10  # of the float16 ones, as training in float16 has one; a power of two changes no mantissa


@dataclasses.dataclass(frozen=True)
class Model:
    name: str         # one of tests/workloads, or a file
    part: float = 1   # of the job's times and bytes
    data: str = ""    # of DATA; "": zeros, and coll sees to it that nobody compresses
    ranks: int = 1    # it needs so many, or a multiple


@dataclasses.dataclass(frozen=True)
class Set:
    scale: Scale
    models: tuple
    variants: tuple
    compute_scales: tuple  # beside the job's own, where step times are guesses
    # The first model of a launch is replayed so often before those that count. A launch skips few steps, and what a job does once
    # would fall into the first ones: TCP finds its speed, stratus tries more flows and fewer, which takes half a second of load.
    warm_up_replays: int

    def of(self, names):
        """The set with these models alone; others than its own are taken as they are if it sends zeros."""
        own = {model.name: model for model in self.models}
        sends_data = any(model.data for model in self.models)
        unknown = [name for name in names if name not in own and sends_data]
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: not in the set; it has {', '.join(own)}")
        return dataclasses.replace(self, models=tuple(own.get(name) or Model(name) for name in names))

    def replays(self, ranks, scratch):
        """[(workloads, options that say what is sent)] of each run of coll that a launch of a transport has."""
        by_data = {}
        for model in self.models:
            if ranks % model.ranks == 0:
                by_data.setdefault(model.data, []).append(workload_file(model, scratch))
        return [(files, ["--data", data_file(data, scratch)] if data else []) for data, files in by_data.items()]

    @property
    def text(self):
        """What a reader of figures must know of it, or nothing."""
        parts = {}
        for model in self.models:
            parts.setdefault(model.part, []).append(model.name)
        return "; ".join(f"times and bytes x {part:g}: {', '.join(names)}" for part, names in parts.items() if part != 1)


# 100 Gb/s: a common instance with 8 GPUs and TCP today. Parts: so that the table takes 30 minutes, and that a collective as large as DDP's
# bucket or FSDP's layer still takes a millisecond at the NIC's rate, far more than a round trip.
TODAY = Set(
    Scale(all_nics_gbps=6.4, time=1, job_nic_gbps=100, flow_part=1 / 8),
    (Model("llama2_7b_fsdp", 0.25, BFLOAT16), Model("gpt_7b_tp8_pp2_hosts", 0.1, FLOAT32, ranks=2),
     Model("mixtral_8x7b_ep", 0.2, FLOAT32), Model("bert_large_zero2", 0.5, FLOAT16)),
    (*VARIANTS, NOT_COMPRESSED), compute_scales=(0.5, 1), warm_up_replays=1)

ACSPEED = Set(SCALE, tuple(map(Model, MODELS)), VARIANTS, compute_scales=(0.5, 1, 2), warm_up_replays=3)
SETS = {"acspeed": ACSPEED, "today": TODAY}


def data_file(kind, scratch):
    """For coll --data."""
    path = os.path.join(SAMPLES, DATA[kind])
    if kind != FLOAT16:
        return path
    with open(path, "rb") as file:
        content = file.read()
    values = [value * LOSS_SCALE for value in struct.unpack(f"<{len(content) // 4}f", content)]
    path = os.path.join(scratch, "gradient.f16")
    with open(path, "wb") as file:
        file.write(struct.pack(f"<{len(values)}e", *values))
    return path


def workload_file(model, scratch):
    """For coll --replay: the name, or a file with a part of the model's times and bytes."""
    if model.part == 1:
        return model.name
    return workload.write(workload.scaled(workload.read(model.name), model.part), scratch, model.name)
