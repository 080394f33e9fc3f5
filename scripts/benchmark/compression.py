# SPDX-License-Identifier: Apache-2.0
"""Cases of STRATUS_COMPRESS: what it brings where the network is the limit, and that auto never costs anything.

The data is that of tests/data/codec, gradients of real training. More hosts share the processors of this machine, so
their NICs are slower: the network, not the processors, is to be the limit."""
import os

from benchmark.case import Case, Row, Variant, at_least, at_most, network, of, of_constant, shown
from benchmark.run import ROOT, cpus_of_host

MODES = ("off", "on", "auto")
NEVER = 0.98  # what auto must keep of off, whatever it finds
# auto tries flows first, and then compression.
WARMUP = ("--warmup", "1500ms")


def gradient(kind):
    return os.path.join(ROOT, "tests/data/codec", f"resnet18-gradient.{kind}")


def mode_of(mode):
    return {"STRATUS_COMPRESS": mode}


def labelled(modes, measure):
    return [Variant(mode, mode, lambda bench, mode=mode: measure(bench, mode)) for mode in modes]


# ---- what it brings ----

def one_connection(kind, target):
    nic_gbps = 4
    variants = labelled(MODES, lambda bench, mode: bench.perf(
        "stratus", ["--data", gradient(kind), *WARMUP], mode_of(mode)))
    return Case(
        f"compress-{kind}", f"1 connection, gradients {kind}, {nic_gbps} Gb/s NIC, 0.5 Gb/s per flow", network(nic_gbps), variants,
        [Row("on", "compressed / not", of("gbps", "on", "off"), at_least(target), shown(variants, "gbps", "Gb/s")),
         Row("auto", "auto / off", of("gbps", "auto", "off"), at_least(target)),
         Row("cpu", "CPU per byte, compressed / not", of("cpu_s_per_gb", "on", "off"), None,
             shown(variants, "cpu_s_per_gb", "CPU-s/GB"))])


def collective(operation, hosts, nic_gbps, target):
    """Sums of gradients are gradients, too; results are checked. Warmed up for some seconds: each host tries by itself."""
    def measure(bench, mode):
        return bench.coll("stratus", [
            "-O", operation, "-d", "bfloat16", "-b", "64M", "-e", "64M", "--data", gradient("bf16"), "-c", "1",
            "-n", bench.settings.pick("4", "1"), "-w", bench.settings.pick(str(64 // hosts), "2")], mode_of(mode))
    variants = labelled(MODES, measure)
    text = operation.replace("_", "")
    return Case(
        f"compress-{text}-{hosts}",
        f"stock NCCL {text} of 64 MiB bf16 gradients, {hosts} hosts, {nic_gbps:g} Gb/s NIC, {nic_gbps / 8:g} Gb/s per flow",
        ["--hosts", str(hosts), *network(nic_gbps)], variants,
        [Row("on", "compressed / not", of("busbw_gbs", "on", "off"), at_least(target),
             shown(variants, "busbw_gbs", "GB/s")),
         Row("auto", "auto / off", of("busbw_gbs", "auto", "off"), at_least(target)),
         Row("of-nic", "compressed, busbw of the NIC", of_constant("busbw_gbs", "on", nic_gbps / 8), at_least(1.0))])


# ---- what auto must not cost ----

def never(name, title, cluster, measure, metric="gbps", unit="Gb/s"):
    variants = labelled(("off", "auto"), measure)
    return Case(
        f"compress-never-{name}", f"STRATUS_COMPRESS=auto: {title}", cluster, variants,
        [Row("auto", "auto / off", of(metric, "auto", "off"), at_least(NEVER), shown(variants, metric, unit))])


def bulk(bench, mode, data, *arguments, meanwhile=None):
    return bench.perf("stratus", ["--data", data, *arguments], mode_of(mode), meanwhile)


def with_busy_cpus(bench, mode):
    """Two other processes on each CPU that the hosts use."""
    spin = ["python3", "-c", "while True: pass"]
    others = [bench.runner.start(["taskset", "-c", str(cpu), *spin]) for host in range(2)
              for cpu in cpus_of_host(host, 2) for _ in range(2)]
    try:
        return bulk(bench, mode, gradient("bf16"), *WARMUP)
    finally:
        for other in others:
            bench.runner.kill(other)


def with_slow_direction(bench, mode):
    """What host 1 sends is slow, what it receives is not; both are asked for."""
    for bucket in ("0", "1"):
        bench.runner.run(["tests/netns/cluster", "fault", bench.cluster, "slow", "1", "0", bucket, "0.1"])
    return bench.coll("stratus", ["-O", "all_reduce", "-d", "bfloat16", "-b", "8M", "-e", "8M", "--data", gradient("bf16"),
                                  "-c", "1", "-n", "3", "-w", "4"], mode_of(mode))


def latency():
    variants = labelled(("off", "auto"), lambda bench, mode: bench.perf(
        "stratus", ["--test", "latency", "--bytes", "8"], mode_of(mode)))
    return Case(
        "compress-never-latency", "STRATUS_COMPRESS=auto: 8 B half round trip (median)", [], variants,
        [Row("auto", "auto / off", of("half_trip_us", "auto", "off"), at_most(1 / NEVER),
             shown(variants, "half_trip_us", "us"))])


def cases():
    return [
        one_connection("bf16", 1.28), one_connection("f32", 1.1), one_connection("bf16-in-f32", 2.2),
        collective("all_reduce", 2, 4, 1.25), collective("all_gather", 2, 4, 1.25),
        collective("all_reduce", 4, 1, 1.25), collective("all_gather", 4, 1, 1.25),
        never("random", "random data, 4 Gb/s NIC, 0.5 Gb/s per flow", network(4),
              lambda bench, mode: bulk(bench, mode, "random", *WARMUP)),
        never("uncapped", "bf16, veth without limits, 2 connections, 512 KiB", [],
              lambda bench, mode: bulk(bench, mode, gradient("bf16"), "--bytes", "512K", "--connections", "2")),
        never("busy", "bf16, 4 Gb/s NIC, 0.5 Gb/s per flow, two other processes on each CPU", network(4), with_busy_cpus),
        never("one-slow", "AllReduce of 8 MiB bf16, 2 hosts, one direction of 0.2 Gb/s, the other of 4 Gb/s",
              ["--nic-gbps", "4", "--flow-gbps", "2", "--flow-buckets", "2"], with_slow_direction, "busbw_gbs", "GB/s"),
        never("rate", "messages of 16 KiB, bf16", [], lambda bench, mode: bench.perf(
            "stratus", ["--bytes", "16K", "--data", gradient("bf16")], mode_of(mode)),
              "messages_per_s", "/s"),
        latency(),
    ]
