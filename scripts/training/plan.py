# SPDX-License-Identifier: Apache-2.0
"""What scripts/steps runs: sets of models, the scale of the emulation, transports, and clusters.

Of a model of a set, times and bytes may be a part of the job's, beyond the scale: a step of some seconds has hundreds of
collectives and says as much in a tenth of its time. What ranks send matters where stratus compresses: a model that has data
sends numbers of its gradients' type, and models with the same part and data are one launch."""
import dataclasses
import os
import struct

from benchmark.run import ROOT

# The models of AIACC-ACSpeed's plot, by their names in TorchBench: tests/workloads.
MODELS = ("alexnet", "resnet18", "resnet50", "vgg16", "timm_vovnet", "timm_vision_transformer", "pytorch_unet",
          "hf_Bart", "hf_Bert", "speech_transformer", "tts_angular")
HOSTS = (2, 4, 8)  # besides one host, which every figure is relative to

CAPPED, UNCAPPED, NO_NETWORK = "capped", "uncapped", "none"  # NO_NETWORK: one host
CAPS_TEXT = {CAPPED: "flows capped at 1/8 of the NIC", UNCAPPED: "flows without caps", NO_NETWORK: "one host"}

SOCKET, AGAIN, SOCKET_2X8, STRATUS, OFF = "socket", "socket-again", "socket-2x8", "stratus", "stratus-off"


@dataclasses.dataclass(frozen=True)
class Variant:
    key: str
    label: str
    transport: str     # of benchmark/tools.py
    variables: tuple = ()


TUNER = ("NCCL_TUNER_PLUGIN", "libnccl-tuner-stratus.so")
VARIANTS = (Variant(SOCKET, "Socket", "socket"), Variant(SOCKET_2X8, "Socket 2x8", "socket-2x8"),
            Variant(AGAIN, "Socket", "socket"), Variant(STRATUS, "stratus", "stratus", (TUNER,)))
# Beside them where ranks send numbers: stratus compresses as it finds best.
NOT_COMPRESSED = Variant(OFF, "stratus without compression", "stratus", (TUNER, ("STRATUS_COMPRESS", "off")))
LABELS = {variant.key: variant.label for variant in (*VARIANTS, NOT_COMPRESSED)}

# Steps of a launch before those that count, and those that do. They differ little within a launch, launches more: with caps,
# Socket's second launch is within 0.015 of its first for 32 of 33 models and numbers of hosts, 0.034 at worst (3 steps).
SKIP, STEPS = 1, 2


@dataclasses.dataclass(frozen=True)
class Scale:
    """Of the job's bytes, so that a few CPUs can be many hosts: all NICs together have one rate."""
    all_nics_gbps: float
    job_nic_gbps: float  # of the instances that are emulated

    def nic_gbps(self, hosts):
        return self.all_nics_gbps / hosts

    def flow_gbps(self, hosts):
        return self.nic_gbps(hosts) / 8

    def bytes(self, hosts):
        """So that a byte takes the same part of a step as in the job."""
        return self.nic_gbps(hosts) / self.job_nic_gbps

    def replay_arguments(self, hosts, compute_scale=1.0, part=1.0):
        """Of coll --replay."""
        return ["--compute-scale", f"{compute_scale * part:.9g}", "--bytes-scale", f"{self.bytes(hosts) * part:.9g}"]


# 32 Gb/s: the NIC of AIACC's 8-GPU instances; a flow of their VPC has an eighth. 6.4 Gb/s: two CPUs carry it without
# caps: AllReduce of 50 MiB x bytes(hosts) has 0.94 of the NIC with Socket and 0.89 with stratus on 2 hosts, 0.98 and 0.96
# on 4, 0.99 and 0.99 on 8. Times as in the job: with caps, Socket on 8 hosts takes 4 s for a step of
# all models; twice as long, and two rounds of everything have no room in 20 minutes.
SCALE = Scale(all_nics_gbps=6.4, job_nic_gbps=32)


@dataclasses.dataclass(frozen=True)
class Setting:
    """A cluster and a job on it, for all variants."""
    caps: str
    hosts: int

    def cluster(self, scale):
        """Options of `cluster up`, which makes two hosts at least."""
        flow = ["--flow-gbps", f"{scale.flow_gbps(self.hosts):g}", "--flow-buckets", "1024"] if self.caps == CAPPED else []
        return ["--hosts", str(max(2, self.hosts)), "--nic-gbps", f"{scale.nic_gbps(max(2, self.hosts)):g}", *flow]

    @property
    def text(self):
        return CAPS_TEXT[self.caps] if self.hosts == 1 else f"{self.hosts} hosts, {CAPS_TEXT[self.caps]}"


def launches_of(setting, rounds, variants=VARIANTS):
    """(round, variant) of each launch: the variants in turn, each round begins with another one. One host has no network to
    differ by: one round, without Socket's second launch."""
    if setting.caps == NO_NETWORK:
        return [(0, variant) for variant in variants if variant.key not in (AGAIN, OFF)]
    turns = [(number, number % len(variants)) for number in range(rounds)]
    return [(number, variant) for number, turn in turns for variant in variants[turn:] + variants[:turn]]


# ---- sets of models ----

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
    # The first model of a launch is replayed so often before those that count. A launch skips few steps, and what a job does once
    # would fall into the first ones: TCP finds its speed, stratus tries more flows and fewer, which takes half a second of load.
    warm_up_replays: int

    def of(self, names):
        """The set with these models alone; others than its own are taken as they are if it sends zeros."""
        own = {model.name: model for model in self.models}
        unknown = [name for name in names if name not in own and any(model.data for model in self.models)]
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: not in the set; it has {', '.join(own)}")
        return dataclasses.replace(self, models=tuple(own.get(name) or Model(name) for name in names))

    def replays(self, ranks):
        """[(workloads, part, kind of data)] of each run of coll that a launch of a transport has."""
        runs = {}
        for model in self.models:
            if ranks % model.ranks == 0:
                runs.setdefault((model.part, model.data), []).append(model.name)
        return [(names, *run) for run, names in runs.items()]


# 100 Gb/s: a common instance with 8 GPUs and TCP today. Parts: so that the table takes 30 minutes, and that a collective as large as DDP's
# bucket or FSDP's layer still takes a millisecond at the NIC's rate, far more than a round trip.
TODAY = Set(
    Scale(all_nics_gbps=6.4, job_nic_gbps=100),
    (Model("llama2_7b_fsdp", 0.25, BFLOAT16), Model("gpt_7b_tp8_pp2_hosts", 0.1, FLOAT32, ranks=2),
     Model("mixtral_8x7b_ep", 0.2, FLOAT32), Model("bert_large_zero2", 0.5, FLOAT16)),
    (*VARIANTS, NOT_COMPRESSED), warm_up_replays=1)
SETS = {"acspeed": Set(SCALE, tuple(map(Model, MODELS)), VARIANTS, warm_up_replays=3), "today": TODAY}


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
