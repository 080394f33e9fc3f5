# SPDX-License-Identifier: Apache-2.0
"""The cases of scripts/bench.

  case      one cluster, some variants, the rows of the table made of them
  variant   a transport with its settings; `measure(bench)` returns {metric: number}
  row       of a metric, a variant's value over that of another one in each round, and the target of their median

To add a case, write a function that returns one and name it in all_cases."""
from dataclasses import dataclass
import os
import random
import time
from typing import Callable, List, Optional, Tuple, Union

from benchmark.run import CLUSTER, ROOT, Failure, cpus_of_host


@dataclass
class Variant:
    key: str
    label: str
    measure: Callable


@dataclass
class Row:
    metric: str
    subject: str
    against: Union[str, Tuple[str, ...], float] = 1  # a variant, the better one of some, or a number
    target: Optional[Tuple[str, float]] = None  # ">=" or "<="


@dataclass
class Case:
    name: str
    title: str
    cluster: List[str]  # options of `cluster up`
    variants: List[Variant]
    rows: List[Row]


LABELS = {"stratus": "stratus", "socket": "Socket", "socket-2x4": "Socket 2x4", "socket-2x8": "Socket 2x8"}
BESIDE = ("stratus", "socket", "socket-2x8")
COLLECTIVE_SIZE = ("-b", "64M", "-e", "64M")
SMALL_BULK = ("--bytes", "512K", "--connections", "2")


def network(nic_gbps, flow_gbps=None, hosts=2):
    """Options of `cluster up`; a flow has an eighth of the NIC unless another rate is given. Caps are by flow, as clouds have them: with
    so many buckets two flows hardly share one."""
    return ["--hosts", str(hosts), "--nic-gbps", f"{nic_gbps:g}", "--flow-gbps", f"{flow_gbps or nic_gbps / 8:g}", "--flow-buckets", "1024"]


def network_text(nic_gbps, flow_gbps=None):
    return f"{nic_gbps:g} Gb/s NIC, {flow_gbps or nic_gbps / 8:g} Gb/s per flow"


def perf(key, *arguments, name=None, label=None, extra=None, meanwhile=None):
    """What stratus perf measures of a transport."""
    return Variant(name or key, label or LABELS[key], lambda bench: bench.perf(key, list(arguments), extra, meanwhile))


def coll(key, *arguments, name=None, label=None, extra=None, iterations=(6, 5)):
    """What stock NCCL has over a transport. `iterations`: those that are timed, and the warm-up; in short one of each."""
    def measure(bench):
        timed, warm_up = (bench.pick(each, 1) for each in iterations)
        return bench.coll(key, ["-c", "1", "-n", str(timed), "-w", str(warm_up), *arguments], extra)
    return Variant(name or key, label or LABELS[key], measure)


def rows_against(metric, targets):
    """stratus against some others."""
    return [Row(metric, "stratus", key, target) for key, target in targets.items()]


# ---- bandwidth of one connection ----

def capped():
    """A NIC that takes eight flows to fill."""
    variants = [*map(perf, BESIDE), Variant("iperf3", "iperf3 -P 8", lambda bench: bench.iperf3(8))]
    return Case("capped", f"1 connection, {network_text(8)}", network(8), variants,
                [Row("gbps", "stratus", 8, (">=", 0.95)), Row("gbps", "stratus", "iperf3")])


def learned_flows(part, target):
    """Flows at 1/part of the NIC, nothing configured, after 2 s of load: how much of what the paths allow."""
    nic_gbps, buckets = 4, 1024
    flow_gbps = nic_gbps / part

    def measure(bench):
        allowed = []

        def count_paths(bench):
            time.sleep(1.8)  # in the warm-up, as it takes a CPU
            flows = bench.runner.run([CLUSTER, "flows", bench.cluster, "0"]).splitlines()
            allowed.append(min(nic_gbps, flow_gbps * len({flow.split()[-1] for flow in flows})))
        found = bench.perf("stratus", ["--warmup", "2s"], None, count_paths)
        return {**found, "of_allowed": found["gbps"] / allowed[-1]}
    return Case(
        f"learned-{part}-of-{buckets}", f"flows at 1/{part} of a {nic_gbps} Gb/s NIC, {buckets} paths, after 2 s",
        network(nic_gbps, flow_gbps), [Variant("stratus", "stratus", measure)], [Row("of_allowed", "stratus", 1, (">=", target))])


def policed():
    """Packets above a flow's rate are dropped. After 2 s of load, when flows have used up the second that a policer gives."""
    warm_up = ("--warmup", "2s")
    by_hand = [perf("stratus", *warm_up, extra={"STRATUS_FLOWS": str(flows)}, name=f"flows-{flows}", label=f"STRATUS_FLOWS={flows}")
               for flows in (8, 16)]
    return Case(
        "policed", "1 connection, flows policed at 0.5 Gb/s, 4 Gb/s NIC, after 2 s", ["--nic-gbps", "4", "--flow-gbps", "0.5", "--police"],
        [*(perf(key, *warm_up) for key in BESIDE), *by_hand],
        [Row("gbps", "stratus", ("flows-8", "flows-16"), (">=", 0.95)), Row("gbps", "stratus", 4),
         *rows_against("gbps", {"socket": None, "socket-2x8": None})])


def slow_flow(percent, target):
    """Eight flows, as many as Socket 2x4 has: more would leave less to the slow one. A flow that reconnects leaves its cap behind."""
    flow_gbps = 0.25

    def slow(bench):
        """Gives the flow that has sent most another rate, once there is one."""
        def is_slowed():
            try:
                bench.runner.run([CLUSTER, "fault", bench.cluster, "slow-flow", "0", str(flow_gbps * percent / 100)])
                return True
            except Failure:
                return False
        bench.runner.until(is_slowed, 3, "a flow to slow down")
    eight = {"STRATUS_FLOWS": "8"}
    return Case(
        f"slow-flow-{percent}", f"one of 8 flows at {percent} % of the others ({flow_gbps:g} Gb/s)",
        ["--flow-gbps", str(flow_gbps), "--flow-buckets", "1024"],
        [perf("stratus", "--warmup", "1500ms", extra={**eight, "STRATUS_REDIAL_SLOW": "0"}, meanwhile=slow),
         perf("socket-2x4", "--warmup", "1500ms", meanwhile=slow),
         perf("stratus", "--warmup", "4s", extra=eight, name="redial", label="stratus that reconnects slow flows", meanwhile=slow)],
        [Row("gbps", "stratus", "socket-2x4", (">=", target)), Row("gbps", "redial", "socket-2x4")])


def uncapped():
    """After the number of flows is learned, which falls."""
    return Case(
        "uncapped", "veth without limits, 2 connections, 512 KiB, after 4 s", [],
        [perf(key, *SMALL_BULK, "--warmup", "4s") for key in BESIDE],
        [*rows_against("gbytes_per_s", {"socket": (">=", 1.0), "socket-2x8": (">=", 2.5)}),
         *rows_against("cpu_s_per_gb", {"socket": ("<=", 1.0), "socket-2x8": ("<=", 0.4)})])


# ---- many connections, small messages, two NICs ----

def connections():
    return Case(
        "connections", "64 connections; threads with the one that drives them, at the end that has more; CPU of both ends while idle", [],
        [perf(key, "--bytes", "64K", "--connections", "64", "--idle", "2s") for key in BESIDE],
        [Row("threads", "stratus", 1, ("<=", 4)), Row("idle_cpu_percent", "stratus", 1, ("<=", 1)),
         *rows_against("gbytes_per_s", {"socket": None})])


def latency():
    return Case("latency", "8 B half round trip (median)", [], [perf(key, "--test", "latency", "--bytes", "8") for key in BESIDE],
                rows_against("half_trip_us", {"socket": ("<=", 0.8)}))


def rate():
    rows = [row for size in ("1 KiB", "4 KiB", "16 KiB")
            for row in rows_against(f"messages_per_s {size}", {"socket": (">=", 1.0), "socket-2x8": (">=", 3.0)})]
    return Case("rate", "message rate, 1 connection", [], [perf(key, "--bytes", "1K,4K,16K") for key in BESIDE], rows)


def two_nics(rates, name, rows):
    # As one device by parameter: NCCL does not ask to fuse NICs that are not on PCI.
    variants = [perf("stratus", extra={"STRATUS_MERGE_NICS": "all"}, label="stratus, both NICs"),
                perf("stratus", "--devices", "0", name="one", label="stratus, first NIC"),
                perf("socket", "--devices", "0,1", "--connections", "2", label="Socket, a connection on each")]
    return Case(name, f"1 connection over two NICs of {' and '.join(rates)} Gb/s", ["--nics", "2", "--nic-gbps", ",".join(rates)], variants, rows)


# ---- lost packets ----

LOSS = ["--loss", "10"]


def lossy(name, title, cluster, rare, target=None, meanwhile=None):
    """Messages whose packets are lost: the mean, and how long the rarest take."""
    arguments = ("--test", "latency", "--bytes", "8,64K", "--time", "2s")
    return Case(
        name, f"half round trips {title}", cluster, [perf(key, *arguments, meanwhile=meanwhile) for key in ("stratus", "socket")],
        [Row(f"{metric} {size}", "stratus", "socket", target) for size in ("8 B", "64 KiB") for metric in ("mean_us", rare)])


def black_out(bench):
    """Nothing arrives at the other host for 50 ms, twice a second, from the warm-up on."""
    for _ in range(10):
        time.sleep(0.5)
        bench.runner.run([CLUSTER, "fault", bench.cluster, "blackout", "1", "50"])


def lossy_bulk():
    """One connection as fast as it can: by itself, as by hand, and as Socket."""
    bulk = ("--bytes", "512K", "--time", "2s")
    by_hand = [perf("stratus", *bulk, extra={"STRATUS_FLOWS": str(flows)}, name=f"flows-{flows}", label=f"STRATUS_FLOWS={flows}")
               for flows in (1, 2, 8)]
    return Case("lossy-bulk", "1 connection, 512 KiB, where 1 % of the packets are lost", LOSS,
                [perf("stratus", *bulk), *by_hand, perf("socket", *bulk)],
                rows_against("gbps", {"socket": (">=", 1.2), **{each.key: None for each in by_hand}}))


def incast():
    """Each host gets from seven at once, and the last hop has room for few packets of up to 64 KiB."""
    variants = [coll(key, "-O", "alltoall", "--sizes", "64K,1M,8M", "-d", "uint8", iterations=(4, 2)) for key in BESIDE]
    return Case("incast", "stock NCCL AllToAll, 8 hosts, 0.5 Gb/s NIC, 8 packets wait at the switch for a NIC",
                ["--hosts", "8", "--nic-gbps", "0.5", "--queue", "8"], variants,
                [Row(f"time_us {size}", "stratus", "socket") for size in ("64 KiB", "1 MiB", "8 MiB")])


# ---- stock NCCL ----

def allreduce():
    """Warmed up as training is after its first seconds: the first calls touch memory and open flows."""
    return Case(
        "allreduce", f"stock NCCL AllReduce 64 MiB, 2 hosts, {network_text(4)}", network(4),
        [coll(key, "-O", "all_reduce", *COLLECTIVE_SIZE) for key in BESIDE],
        [Row("busbw_gbs", "stratus", 0.5, (">=", 0.93)), *rows_against("busbw_gbs", {"socket": None, "socket-2x8": None})])


def collnet(hosts, gpus, nic_gbps, full, half):
    """AllReduce of f32 reduced by the hosts, against NCCL's own choices over stratus. `full` and `half`: targets of exact exchange and of
    16 bits, whose results are not exact, as a check would want them. More hosts share the processors of this machine, so their NICs are
    slower."""
    forced = {"NCCL_COLLNET_ENABLE": "1", "NCCL_ALGO": "collnetchain"}
    variants = [coll("stratus", "-O", "all_reduce", *COLLECTIVE_SIZE, "--ppn", str(gpus), *(("-c", "0") if key == "bf16" else ()),
                     name=key, label=label, extra=extra, iterations=(6, 4)) for key, label, extra in (
        ("ring", "ring", {"NCCL_ALGO": "ring"}), ("tree", "tree", {"NCCL_ALGO": "tree"}),
        ("full", "CollNet", {**forced, "STRATUS_COLLNET": "full"}), ("bf16", "CollNet bf16", {**forced, "STRATUS_COLLNET": "bf16"}))]
    return Case(
        f"collnet-{hosts}x{gpus}", f"stock NCCL AllReduce of 64 MiB f32, {hosts} hosts x {gpus} GPUs, {network_text(nic_gbps)}",
        network(nic_gbps, hosts=hosts), variants,
        [Row("busbw_gbs", "full", ("ring", "tree"), full and (">=", full)), Row("busbw_gbs", "bf16", ("ring", "tree"), (">=", half)),
         Row("busbw_gbs", "bf16", nic_gbps / 8)])


def sweep(operation, name, cluster, text):
    """Every size, against Socket; and Socket against itself, which shows what of it is chance."""
    # Of 8 bytes, each rank has to get some.
    kind = "uint8" if operation == "alltoall" else "float"
    sizes = ("8 B", "64 B", "512 B", "2 KiB", "8 KiB", "32 KiB", "128 KiB", "512 KiB", "2 MiB", "8 MiB", "64 MiB")
    arguments = ("-O", operation, "--sizes", "8,64,512,2K,8K,32K,128K,512K,2M,8M,64M", "-d", kind, "--min-time", "100ms")
    variants = [coll(key, *arguments, name=name, label=label, iterations=(2, 1)) for key, name, label in (
        ("socket", "socket", "Socket"), ("stratus", "stratus", "stratus"), ("socket", "again", "Socket again"))]
    return Case(name, f"stock NCCL {operation}, 4 hosts, {text}", ["--hosts", "4", *cluster], variants,
                [Row(f"time_us {size}", "socket", other, target) for size in sizes for other, target in (("stratus", (">=", 0.97)), ("again", None))])


# ---- what protection costs ----

def protection(name, parameter, title, target):
    variants = [perf("stratus", *SMALL_BULK, extra={parameter: value}, name=name, label=name) for name, value in (("without", "off"), ("with", "on"))]
    return Case(name, f"{title} ({parameter}=on), veth without limits, 2 connections, 512 KiB", [], variants,
                [Row("gbytes_per_s", "with", "without", (">=", target)), Row("cpu_s_per_gb", "with", "without")])


# ---- compression: what it brings where the network is the limit, and that auto never costs anything ----

def gradient(kind):
    """Of real training."""
    return os.path.join(ROOT, "tests/data/codec", f"resnet18-gradient.{kind}")


def noise():
    """A file that no codec makes shorter."""
    path = os.path.join(ROOT, "build/noise")
    if not os.path.exists(path):
        with open(path, "wb") as file:
            file.write(random.Random(1).randbytes(8 << 20))
    return path


def of_modes(make, *arguments, modes=("off", "auto"), **more):
    """`make`: perf or coll."""
    return [make("stratus", *arguments, name=mode, label=mode, extra={"STRATUS_COMPRESS": mode}, **more) for mode in modes]


# auto tries flows first, and then compression.
TRIED = ("--warmup", "1500ms")
MODES = ("off", "on", "auto")


def compressed(kind, target):
    return Case(
        f"compress-{kind}", f"1 connection, gradients {kind}, {network_text(4)}", network(4),
        of_modes(perf, "--data", gradient(kind), *TRIED, modes=MODES),
        [Row("gbps", "on", "off", (">=", target)), Row("gbps", "auto", "off", (">=", target)), Row("cpu_s_per_gb", "on", "off")])


def compressed_collective(operation, hosts, nic_gbps):
    """Sums of gradients are gradients, too; results are checked. Warmed up for some seconds: each host tries by itself."""
    text = operation.replace("_", "")
    return Case(
        f"compress-{text}-{hosts}", f"stock NCCL {text} of 64 MiB bf16 gradients, {hosts} hosts, {network_text(nic_gbps)}",
        network(nic_gbps, hosts=hosts),
        of_modes(coll, "-O", operation, "-d", "bfloat16", *COLLECTIVE_SIZE, "--data", gradient("bf16"), modes=MODES, iterations=(4, 64 // hosts)),
        [Row("busbw_gbs", "on", "off", (">=", 1.25)), Row("busbw_gbs", "auto", "off", (">=", 1.25)), Row("busbw_gbs", "on", nic_gbps / 8, (">=", 1.0))])


def never(name, title, cluster, variants, metric="gbps", target=(">=", 0.98)):
    return Case(f"compress-never-{name}", f"STRATUS_COMPRESS=auto: {title}", cluster, variants, [Row(metric, "auto", "off", target)])


def beside_others(variant):
    """With two other processes on each CPU that the hosts use."""
    def measure(bench):
        spin = ["python3", "-c", "while True: pass"]
        others = [bench.runner.start(["taskset", "-c", str(cpu), *spin]) for host in range(2)
                  for cpu in cpus_of_host(host, 2) for _ in range(2)]
        try:
            return variant.measure(bench)
        finally:
            for other in others:
                bench.runner.kill(other)
    return Variant(variant.key, variant.label, measure)


def with_slow_direction(variant):
    """What host 1 sends is slow, what it receives is not; both are asked for."""
    def measure(bench):
        for bucket in ("0", "1"):
            bench.runner.run([CLUSTER, "fault", bench.cluster, "slow", "1", "0", bucket, "0.1"])
        return variant.measure(bench)
    return Variant(variant.key, variant.label, measure)


def never_cases():
    bf16 = ("--data", gradient("bf16"))
    return [
        never("random", f"random data, {network_text(4)}", network(4), of_modes(perf, "--data", noise(), *TRIED)),
        never("uncapped", "bf16, veth without limits, 2 connections, 512 KiB", [], of_modes(perf, *bf16, *SMALL_BULK)),
        never("busy", f"bf16, {network_text(4)}, two other processes on each CPU", network(4),
              list(map(beside_others, of_modes(perf, *bf16, *TRIED)))),
        never("one-slow", "AllReduce of 8 MiB bf16, 2 hosts, one direction of 0.2 Gb/s, the other of 4 Gb/s",
              ["--nic-gbps", "4", "--flow-gbps", "2", "--flow-buckets", "2"],
              list(map(with_slow_direction, of_modes(coll, "-O", "all_reduce", "-d", "bfloat16", "-b", "8M", "-e", "8M", *bf16, iterations=(3, 4)))),
              "busbw_gbs"),
        never("rate", "messages of 16 KiB, bf16", [], of_modes(perf, "--bytes", "16K", *bf16), "messages_per_s"),
        never("latency", "8 B half round trip (median)", [], of_modes(perf, "--test", "latency", "--bytes", "8"), "half_trip_us", ("<=", 1 / 0.98)),
    ]


def all_cases():
    return [
        capped(), *(learned_flows(*each) for each in ((2, 0.97), (8, 0.95), (32, 0.85))), policed(),
        lossy("lossy", "where 1 % of the packets are lost", LOSS, "rare_us", ("<=", 0.5)), lossy_bulk(),
        lossy("blackout", "while nothing arrives at one host for 50 ms, twice a second", [], "longest_us", meanwhile=black_out), incast(),
        slow_flow(50, 1.8), slow_flow(10, 8.0), uncapped(), connections(), latency(), rate(),
        two_nics(("2", "2"), "two-nics", [Row("gbps", "stratus", "one", (">=", 1.9)), Row("gbps", "stratus", 4)]),
        two_nics(("3", "1"), "two-nics-unequal", [Row("gbps", "stratus", 4, (">=", 0.95))]),
        allreduce(), collnet(2, 1, 4, None, 1.7), collnet(2, 2, 4, 1.0, 1.8), collnet(4, 2, 1, 1.2, 2.2),
        *(sweep(operation, f"sweep-{operation.replace('_', '')}{name}", cluster, text)
          for name, cluster, text in (("", network(4)[2:], network_text(4)), ("-uncapped", [], "no limits"))
          for operation in ("all_reduce", "alltoall")),
        protection("checksum", "STRATUS_CHECKSUM", "CRC32C of every chunk", 0.9),
        protection("encryption", "STRATUS_ENCRYPT", "encryption", 0.5),
        compressed("bf16", 1.28), compressed("f32", 1.1), compressed("bf16-in-f32", 2.2),
        *(compressed_collective(operation, *each) for each in ((2, 4), (4, 1)) for operation in ("all_reduce", "all_gather")),
        *never_cases(),
    ]
