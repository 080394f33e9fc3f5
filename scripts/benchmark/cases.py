# SPDX-License-Identifier: Apache-2.0
"""The table of what must be shown, case by case.

To add one, write a function that returns a Case and name it in all_cases."""
import json
import statistics
import time

from benchmark.case import (
    BY_FLOW, LABELS, Case, Row, Variant, at_least, at_most, median_of, network, of, of_best, of_constant, perf,
    shown, sweep_row, value)
from benchmark.compression import cases as compression_cases
from benchmark.losses import cases as loss_cases
from benchmark.run import CLUSTER, Failure
from training.plan import CAPPED, MODELS, SCALE, Setting

# ---- bandwidth of one connection ----

def capped(nic_gbps, flow_gbps, name):
    """A NIC that takes eight flows to fill."""
    variants = [
        perf("stratus"), perf("socket"), perf("socket-2x8"),
        Variant("iperf3", "iperf3 -P 8", lambda bench: bench.iperf3(8))]

    def parts(rounds):
        """What the others make of the NIC."""
        medians = ((variant.label, median_of(rounds, variant.key, "gbps")) for variant in variants[1:])
        return "of the NIC: " + ", ".join(f"{label} {gbps / nic_gbps:.2f}" for label, gbps in medians if gbps)
    return Case(
        name, f"1 connection, {flow_gbps:g} Gb/s per flow, {nic_gbps:g} Gb/s NIC",
        network(nic_gbps, flow_gbps), variants,
        [Row("stratus-of-nic", "stratus of the NIC", of_constant("gbps", "stratus", nic_gbps), at_least(0.95),
             shown(variants, "gbps", "Gb/s"), note=parts),
         Row("stratus-of-bound", "stratus of iperf3 -P 8", of("gbps", "stratus", "iperf3"))])


def learned_flows(part, target):
    """Flows at 1/part of the NIC, nothing configured, after 2 s of load: how much of what the paths allow."""
    nic_gbps, buckets = 4, 1024
    flow_gbps = nic_gbps / part

    def measure(bench):
        found = {}

        def count_paths(bench):
            time.sleep(1.8)  # in the warm-up, as it takes a CPU
            flows = bench.runner.run([CLUSTER, "flows", bench.cluster, "0"]).splitlines()
            found["flows"] = len(flows)
            found["allowed_gbps"] = min(nic_gbps, flow_gbps * len({flow.split()[-1] for flow in flows}))
        found.update(bench.perf("stratus", ["--warmup", "2s"], None, count_paths))
        found["of_allowed"] = found["gbps"] / found["allowed_gbps"]
        return found
    variants = [Variant("stratus", "stratus", measure)]
    return Case(
        f"learned-{part}-of-{buckets}", f"flows at 1/{part} of a {nic_gbps} Gb/s NIC, {buckets} paths, after 2 s",
        ["--nic-gbps", str(nic_gbps), "--flow-gbps", f"{flow_gbps:g}", "--flow-buckets", str(buckets)], variants,
        [Row("of-allowed", "of what the NIC and the paths in use allow", value("of_allowed", "stratus"),
             at_least(target), shown(variants, "gbps", "Gb/s"))])


def policed():
    """Packets above a flow's rate are dropped. After 2 s of load, when flows have used up the second that a policer gives."""
    nic_gbps, flow_gbps = 4, 0.5
    arguments = ("--warmup", "2s")
    by_hand = [perf("stratus", *arguments, extra={"STRATUS_FLOWS": str(flows)}, name=f"flows-{flows}",
                    label=f"STRATUS_FLOWS={flows}") for flows in (8, 16)]
    variants = [perf("stratus", *arguments), *by_hand, perf("socket", *arguments), perf("socket-2x8", *arguments)]
    return Case(
        "policed", f"1 connection, flows policed at {flow_gbps:g} Gb/s, {nic_gbps} Gb/s NIC, after 2 s",
        ["--nic-gbps", str(nic_gbps), "--flow-gbps", str(flow_gbps), "--police"], variants,
        [Row("of-hand", "stratus / the better number of flows set by hand",
             of_best("gbps", "stratus", [each.key for each in by_hand]), at_least(0.95), shown(variants, "gbps", "Gb/s")),
         Row("of-nic", "stratus of the NIC", of_constant("gbps", "stratus", nic_gbps)),
         Row("socket", "stratus / Socket", of("gbps", "stratus", "socket")),
         Row("socket-2x8", "stratus / Socket 2x8", of("gbps", "stratus", "socket-2x8"))])


def slow_one_flow(gbps):
    """Gives the flow that has sent most another rate, once there is one."""
    def slow(bench):
        fault = [CLUSTER, "fault", bench.cluster, "slow-flow", "0", str(gbps)]

        def is_slowed():
            try:
                bench.runner.run(fault)
                return True
            except Failure:
                return False
        bench.runner.until(is_slowed, 3, "a flow to slow down")
    return slow


def slow_flow(percent, target):
    """Eight flows, as many as Socket 2x4 has: more would leave less to the slow one."""
    flow_gbps = 0.25
    eight = {"STRATUS_FLOWS": "8"}
    slow = slow_one_flow(flow_gbps * percent / 100)
    arguments = ("--warmup", "1500ms")
    late = ("--warmup", "4s")
    variants = [
        perf("stratus", *arguments, extra={**eight, "STRATUS_REDIAL_SLOW": "0"}, meanwhile=slow),
        perf("socket-2x4", *arguments, meanwhile=slow),
        perf("stratus", *late, extra=eight, name="stratus-redial", label="stratus that reconnects slow flows",
             meanwhile=slow)]
    return Case(
        f"slow-flow-{percent}", f"one of 8 flows at {percent} % of the others ({flow_gbps:g} Gb/s)",
        ["--flow-gbps", str(flow_gbps), *BY_FLOW], variants,
        [Row("slow-path", "stratus / Socket 2x4, the path stays slow", of("gbps", "stratus", "socket-2x4"),
             at_least(target), shown(variants, "gbps", "Gb/s")),
         Row("redial", "with reconnect / Socket 2x4, another port takes another path",
             of("gbps", "stratus-redial", "socket-2x4"))])


def uncapped():
    """After the number of flows is learned, which falls."""
    arguments = ("--bytes", "512K", "--connections", "2", "--warmup", "4s")
    variants = [perf(key, *arguments) for key in ("stratus", "socket", "socket-2x8")]
    cpu = "cpu_s_per_gb"
    return Case(
        "uncapped", "veth without limits, 2 connections, 512 KiB, after 4 s", [], variants,
        [Row("socket", "stratus / Socket", of("gbytes_per_s", "stratus", "socket"), at_least(1.0),
             shown(variants, "gbytes_per_s", "GB/s")),
         Row("socket-2x8", "stratus / Socket 2x8", of("gbytes_per_s", "stratus", "socket-2x8"), at_least(2.5)),
         Row("cpu-socket", "CPU per byte, stratus / Socket", of(cpu, "stratus", "socket"), at_most(1.0),
             shown(variants, cpu, "CPU-s/GB")),
         Row("cpu-socket-2x8", "CPU per byte, stratus / Socket 2x8", of(cpu, "stratus", "socket-2x8"),
             at_most(0.4))])


# ---- many connections, small messages ----

def connections():
    arguments = ("--bytes", "64K", "--connections", "64", "--idle", "2s")
    variants = [perf(key, *arguments) for key in ("stratus", "socket", "socket-2x8")]
    return Case(
        "connections", "64 connections; threads with the one that drives them, at the end that has more", [],
        variants,
        [Row("threads", "threads", value("threads", "stratus"), at_most(4), shown(variants, "threads", "threads"), ""),
         Row("idle", "CPU of both ends while nothing is asked of them", value("idle_cpu_percent", "stratus"),
             at_most(1), shown(variants, "idle_cpu_percent", "%"), "%"),
         Row("bandwidth", "GB/s, stratus / Socket", of("gbytes_per_s", "stratus", "socket"), None,
             shown(variants, "gbytes_per_s", "GB/s"))])


def latency():
    arguments = ("--test", "latency", "--bytes", "8")
    variants = [perf(key, *arguments) for key in ("stratus", "socket", "socket-2x8")]
    return Case(
        "latency", "8 B half round trip (median)", [], variants,
        [Row("socket", "stratus / Socket", of("half_trip_us", "stratus", "socket"), at_most(0.8),
             shown(variants, "half_trip_us", "us"))])


RATE_SIZES = (1024, 4096, 16384)


def rate():
    arguments = ("--bytes", ",".join(str(size) for size in RATE_SIZES))

    def by_size(key):
        def measure(bench):
            found = bench.perf(key, list(arguments))
            for size in RATE_SIZES:
                found[f"rate-{size}"] = found["sizes"][size]["messages_per_s"] / 1e3
            return found
        return Variant(key, LABELS[key], measure)
    variants = [by_size(key) for key in ("stratus", "socket", "socket-2x8")]
    rows = []
    for size in RATE_SIZES:
        metric = f"rate-{size}"
        text = f"{size // 1024} KiB messages/s"
        rows += [Row(f"{metric}-socket", f"{text}, stratus / Socket", of(metric, "stratus", "socket"), at_least(1.0),
                     shown(variants, metric, "k/s")),
                 Row(f"{metric}-socket-2x8", f"{text}, stratus / Socket 2x8", of(metric, "stratus", "socket-2x8"),
                     at_least(3.0))]
    return Case("rate", "message rate, 1 connection", [], variants, rows)


# ---- two NICs ----

def two_nics(rates, name):
    total = sum(rates)
    variants = [
        # As one device by parameter: NCCL does not ask to fuse NICs that are not on PCI.
        perf("stratus", extra={"STRATUS_MERGE_NICS": "all"}, label="stratus, both NICs"),
        perf("stratus", "--devices", "0", name="one", label="stratus, first NIC"),
        perf("socket", "--devices", "0,1", "--connections", "2", label="Socket, a connection on each")]
    against_one = Row("one", "both NICs / one NIC", of("gbps", "stratus", "one"), at_least(1.9))
    of_sum = Row("sum", "both NICs of their sum", of_constant("gbps", "stratus", total), at_least(0.95))
    rows = [against_one, of_sum] if rates[0] == rates[1] else [of_sum]
    if rates[0] == rates[1]:
        of_sum.target = None
    rows[0].measured = shown(variants, "gbps", "Gb/s")
    text = " and ".join(f"{each:g}" for each in rates)
    return Case(name, f"1 connection over two NICs of {text} Gb/s",
                ["--nics", "2", "--nic-gbps", ",".join(f"{each:g}" for each in rates)], variants, rows)


# ---- stock NCCL ----

def allreduce(flow_gbps, name, target):
    """Warmed up as training is after its first seconds: the first calls touch memory and open flows."""
    nic_gbps = 4

    def coll(key):
        return Variant(key, LABELS[key], lambda bench: bench.coll(
            key, ["-O", "all_reduce", "-b", "64M", "-e", "64M", "-n", bench.settings.pick("6", "1"), "-w",
                  bench.settings.pick("5", "1"), "-c", "1"]))
    variants = [coll(key) for key in ("stratus", "socket", "socket-2x8")]
    return Case(
        name, f"stock NCCL AllReduce 64 MiB, 2 hosts, 4 Gb/s NIC, {flow_gbps:g} Gb/s per flow",
        network(nic_gbps, flow_gbps), variants,
        [Row("of-nic", "stratus' busbw of the NIC", of_constant("busbw_gbs", "stratus", nic_gbps / 8), at_least(target),
             shown(variants, "busbw_gbs", "GB/s")),
         Row("socket", "stratus / Socket", of("busbw_gbs", "stratus", "socket")),
         Row("socket-2x8", "stratus / Socket 2x8", of("busbw_gbs", "stratus", "socket-2x8"))])


# NCCL's own choices over stratus, and CollNet over it.
COLLNET = {"NCCL_COLLNET_ENABLE": "1", "NCCL_ALGO": "collnetchain"}
COLLNET_VARIANTS = (
    ("ring", "ring", {"NCCL_ALGO": "ring"}), ("tree", "tree", {"NCCL_ALGO": "tree"}),
    ("full", "CollNet", {**COLLNET, "STRATUS_COLLNET": "full"}),
    ("bf16", "CollNet bf16", {**COLLNET, "STRATUS_COLLNET": "bf16"}))


def collnet(hosts, gpus, nic_gbps, full, half):
    """AllReduce of f32 reduced by the hosts, against the better of ring and tree. `full` and `half`: targets of
    exact exchange and of 16 bits. More hosts share the processors of this machine, so their NICs are slower."""
    def coll(key, label, extra):
        return Variant(key, label, lambda bench: bench.coll(
            # Results in 16 bits are not exact, as a check would want them.
            "stratus", ["-O", "all_reduce", "-b", "64M", "-e", "64M", "--ppn", str(gpus), "-c", "10"[key == "bf16"],
                        "-n", bench.settings.pick("6", "1"), "-w", bench.settings.pick("4", "1")], extra))
    variants = [coll(*each) for each in COLLNET_VARIANTS]
    flow_gbps = nic_gbps / 8
    return Case(
        f"collnet-{hosts}x{gpus}",
        f"stock NCCL AllReduce of 64 MiB f32, {hosts} hosts x {gpus} GPUs, {nic_gbps:g} Gb/s NIC, {flow_gbps:g} Gb/s "
        "per flow",
        ["--hosts", str(hosts), *network(nic_gbps)], variants,
        [Row("full", "CollNet / the better of ring and tree", of_best("busbw_gbs", "full", ("ring", "tree")),
             at_least(full) if full else None, shown(variants, "busbw_gbs", "GB/s")),
         Row("bf16", "CollNet bf16 / the better of ring and tree", of_best("busbw_gbs", "bf16", ("ring", "tree")),
             at_least(half)),
         Row("of-nic", "CollNet bf16, busbw of the NIC", of_constant("busbw_gbs", "bf16", nic_gbps / 8))])


# ---- training steps ----

def training_steps(hosts, key, label, extra):
    """Steps per second of the models of scripts/steps, at its scale. With the tuner, nothing forced."""
    def measure(bench):
        steps = bench.settings.pick(2, 1)
        text = bench.coll_json("stratus", [
            "--replay", ",".join(MODELS), "--replay-steps", str(steps), "--replay-skip", "1",
            *SCALE.replay_arguments(hosts), "--ppn", "1", "-c", "0"],  # results in 16 bits are not exact
            {"NCCL_TUNER_PLUGIN": "libnccl-tuner-stratus.so", **extra})
        return {each["name"]: 1e6 / statistics.mean(each["step_us"]) for each in json.loads(text)["workloads"]}
    return Variant(key, label, measure)


def of_models(choose, subject):
    return lambda rounds: [
        choose(each[subject][model] / each["stratus"][model] for model in MODELS) for each in rounds
        if subject in each and "stratus" in each]


def steps_with(name, subject, label, extra, target):
    """With caps: stratus with some variables against stratus without, and without against itself."""
    setting = Setting(CAPPED, 4)
    variants = [training_steps(4, *each) for each in (
        ("stratus", "stratus", {}), ("again", "stratus again", {}), (subject, label, extra))]
    figures = [(model, subject, model, "steps/s") for model in MODELS]
    return Case(
        name, f"training steps of {len(MODELS)} models, {setting.text}",
        setting.cluster(SCALE), variants,
        [Row("median", f"{label} / stratus, median of the models", of_models(statistics.median, subject), at_least(target),
             figures),
         Row("worst", "the same, worst model", of_models(min, subject)),
         Row("noise", "stratus again / stratus, median of the models", of_models(statistics.median, "again")),
         Row("noise-worst", "the same, worst model", of_models(min, "again"))])


SWEEP_SIZES = "8,64,512,2K,8K,32K,128K,512K,2M,8M,64M"
SWEEP_SIZES_QUICK = "8,2K,32K,512K,8M"


def sweep(operation, limits, name, limits_text):
    """Every size, against Socket; and Socket against itself, which shows what of it is chance."""
    # Of 8 bytes, each rank has to get some.
    kind = "uint8" if operation == "alltoall" else "float"

    def coll(key, transport, label):
        return Variant(key, label, lambda bench: bench.coll(
            transport, ["-O", operation, "--sizes", bench.settings.pick(SWEEP_SIZES, SWEEP_SIZES_QUICK), "-d", kind,
                        "-n", "2", "-w", "1", "--min-time", bench.settings.pick("100ms", "30ms"), "-c", "1"]))
    variants = [coll("socket", "socket", "Socket"), coll("stratus", "stratus", "stratus"),
                coll("again", "socket", "Socket again")]
    return Case(
        name, f"stock NCCL {operation}, 4 hosts, 8 B to 64 MiB, {limits_text}", ["--hosts", "4", *limits], variants,
        [sweep_row(("stratus", "socket", "again"), at_least(0.97))])


# ---- what protection costs ----

def protection(name, parameter, title, target):
    arguments = ("--bytes", "512K", "--connections", "2")
    variants = [perf("stratus", *arguments, extra={parameter: "off"}, label="without"),
                perf("stratus", *arguments, extra={parameter: "on"}, name="with", label="with")]
    return Case(
        name, f"{title} ({parameter}=on), veth without limits, 2 connections, 512 KiB", [], variants,
        [Row("bandwidth", "bandwidth with / without", of("gbytes_per_s", "with", "stratus"),
             at_least(target), shown(variants, "gbytes_per_s", "GB/s")),
         Row("cpu", "CPU per byte with / without", of("cpu_s_per_gb", "with", "stratus"), None,
             shown(variants, "cpu_s_per_gb", "CPU-s/GB"))])


# ---- faults ----

FAULTS = (("reset-1", 1.0), ("reset-7", 1.0), ("drop-1", None), ("drop-7", None), ("nic-down-2s-sender", None))


def faults():
    """By the test that breaks a running job: how long it stalled, and what bandwidth came back."""
    def fault(name):
        return Variant(name, name, lambda bench: bench.fault(name))
    rows = []
    for name, stall_s in FAULTS:
        figures = [("before", name, "before_gbs", "GB/s"), ("after", name, "after_gbs", "GB/s")]
        rows += [Row(f"{name}-stall", f"{name}: stalled", value("stall_s", name),
                     at_most(stall_s) if stall_s else None, figures, "s"),
                 Row(f"{name}-back", f"{name}: bandwidth after / before", value("back", name), at_least(0.85))]
    return Case(
        "faults", "stock NCCL AllReduce while flows of 8 are reset or black-holed, and the NIC goes and comes", None,
        [fault(name) for name, _ in FAULTS], rows, rounds_max=3)


CLOUD = (network(4), "4 Gb/s NIC, 0.5 Gb/s per flow")
VETH = ([], "no limits")


def all_cases():
    return [
        capped(8, 1, "capped"), *(learned_flows(*each) for each in ((2, 0.97), (8, 0.95), (32, 0.85))),
        policed(), *loss_cases(), slow_flow(50, 1.8), slow_flow(10, 8.0), uncapped(), connections(), latency(),
        rate(),
        two_nics((2, 2), "two-nics"), two_nics((3, 1), "two-nics-unequal"),
        allreduce(0.5, "allreduce", 0.93),
        collnet(2, 1, 4, None, 1.7), collnet(2, 2, 4, 1.0, 1.8), collnet(4, 2, 1, 1.2, 2.2),
        steps_with("collnet-steps-4", "bf16", "CollNet bf16", {"NCCL_COLLNET_ENABLE": "1", "STRATUS_COLLNET": "bf16"}, 1.3),
        sweep("all_reduce", CLOUD[0], "sweep-allreduce", CLOUD[1]),
        sweep("alltoall", CLOUD[0], "sweep-alltoall", CLOUD[1]),
        sweep("all_reduce", VETH[0], "sweep-allreduce-uncapped", VETH[1]),
        sweep("alltoall", VETH[0], "sweep-alltoall-uncapped", VETH[1]),
        protection("checksum", "STRATUS_CHECKSUM", "CRC32C of every chunk", 0.9),
        protection("encryption", "STRATUS_ENCRYPT", "encryption", 0.5),
        *compression_cases(),
        faults(),
    ]
