# SPDX-License-Identifier: Apache-2.0
"""What scripts/steps runs: the models, the variants, the scale of the emulation, and how often."""
import dataclasses

# The models of AIACC-ACSpeed's plot, by their names in TorchBench: tests/workloads.
MODELS = ("alexnet", "resnet18", "resnet50", "vgg16", "timm_vovnet", "timm_vision_transformer", "pytorch_unet",
          "hf_Bart", "hf_Bert", "speech_transformer", "tts_angular")
HOSTS = (2, 4, 8)  # besides one host, which every figure is relative to

CAPPED, UNCAPPED, NO_NETWORK = "capped", "uncapped", "none"
CAPS = (CAPPED, UNCAPPED, NO_NETWORK)  # NO_NETWORK: one host
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


@dataclasses.dataclass(frozen=True)
class Scale:
    """Of the job's bytes and times, so that a few CPUs can be many hosts: all NICs together have one rate."""
    all_nics_gbps: float
    time: float
    job_nic_gbps: float  # of the instances that are emulated
    flow_part: float     # a flow's cap as a part of the NIC

    def nic_gbps(self, hosts):
        return self.all_nics_gbps / hosts

    def flow_gbps(self, hosts):
        return self.nic_gbps(hosts) * self.flow_part

    def bytes(self, hosts):
        """So that a byte takes the same part of a step as in the job."""
        return self.nic_gbps(hosts) / self.job_nic_gbps * self.time

    def replay_arguments(self, hosts, compute_scale=1.0):
        """Of coll --replay."""
        return ["--compute-scale", f"{self.time * compute_scale:.9g}", "--bytes-scale", f"{self.bytes(hosts):.9g}"]


# 32 Gb/s: the NIC of AIACC's 8-GPU instances; a flow of their VPC has an eighth. 6.4 Gb/s: two CPUs carry it without
# caps: AllReduce of 50 MiB x bytes(hosts) has 0.94 of the NIC with Socket and 0.89 with stratus on 2 hosts, 0.98 and 0.96
# on 4, 0.99 and 0.99 on 8. Times as in the job: with caps, Socket on 8 hosts takes 4 s for a step of
# all models; twice as long, and two rounds of everything have no room in 20 minutes.
SCALE = Scale(all_nics_gbps=6.4, time=1, job_nic_gbps=32, flow_part=1 / 8)


@dataclasses.dataclass(frozen=True)
class Protocol:
    name: str
    skip: int    # steps of a launch before those that count
    steps: int
    rounds: int

    def with_rounds(self, rounds):
        return dataclasses.replace(self, rounds=rounds)


# Steps differ little within a launch, launches more: with caps, Socket's second launch is within 0.015 of its first for 32 of
# 33 models and numbers of hosts, 0.034 at worst (3 steps). Launches of 3 steps add up to 16 minutes, too few are left to build.
PROTOCOLS = {"quick": Protocol("quick", 1, 2, 1), "default": Protocol("default", 1, 2, 2),
             "full": Protocol("full", 20, 100, 7)}


@dataclasses.dataclass(frozen=True)
class Quick:
    """What --quick runs: a job that compute bounds, one that the network bounds, one between, on few and many hosts."""
    models: tuple
    hosts: tuple


QUICK = Quick(("resnet50", "vgg16", "hf_Bert"), (2, 8))


@dataclasses.dataclass(frozen=True)
class Setting:
    """A cluster and a job on it, for all variants."""
    caps: str
    hosts: int
    compute_scale: float

    def cluster(self, scale):
        """Options of `cluster up`, which makes two hosts at least."""
        flow = ["--flow-gbps", f"{scale.flow_gbps(self.hosts):g}", "--flow-buckets", "1024"] if self.caps == CAPPED else []
        return ["--hosts", str(max(2, self.hosts)), "--nic-gbps", f"{scale.nic_gbps(max(2, self.hosts)):g}", *flow]

    @property
    def text(self):
        hosts = f"{self.hosts} host{'s' if self.hosts > 1 else ''}"
        caps = "" if self.caps == NO_NETWORK else f", {CAPS_TEXT[self.caps]}"
        return f"{hosts}{caps}" + (f", compute x {self.compute_scale:g}" if self.compute_scale != 1 else "")


SENSITIVITY_HOSTS = 4  # where compute is scaled


def settings(hosts, caps, compute_scales):
    """One host first. Compute is scaled on SENSITIVITY_HOSTS, or on the largest number, with caps."""
    found = [Setting(NO_NETWORK, 1, scale) for scale in compute_scales]
    found += [Setting(each, count, 1) for each in caps for count in hosts if count > 1 and 1 in compute_scales]
    sensitive = SENSITIVITY_HOSTS if SENSITIVITY_HOSTS in hosts else max(hosts)
    return found + [Setting(caps[0], sensitive, scale) for scale in compute_scales if scale != 1 and sensitive > 1]


def launches_of(setting, protocol, variants=VARIANTS):
    """(round, variant) of each launch: the variants in turn, each round begins with another one. One host has no network
    to differ by, and the sensitivity is no target of Socket's: one round, without its second launch."""
    if setting.caps == NO_NETWORK and setting.compute_scale != 1:
        return [(0, variants[0])]  # what ddp_acc is relative to
    if setting.caps == NO_NETWORK or setting.compute_scale != 1:
        left_out = (AGAIN, OFF) if setting.caps == NO_NETWORK else (AGAIN,)
        return [(0, variant) for variant in variants if variant.key not in left_out]
    turns = [(number, number % len(variants)) for number in range(protocol.rounds)]
    return [(number, variant) for number, turn in turns for variant in variants[turn:] + variants[:turn]]
