# SPDX-License-Identifier: Apache-2.0
"""What each heuristic of the net plugin brings: the plugin without it (STRATUS_ABLATE) against the whole one.

A case runs the plugin once without each heuristic in each round and, in between, whole: before every third of
them, at least twice. A cell is one heuristic in one metric of one case: the speed without it divided by the mean
speed of the whole ones, for each round. Noise is how far a whole one is from the next, as the median over all.

  brings   without it is slower: the median by more than the noise, and the confidence interval of the median
           (90 %, by ranks) is all below 1
  costs    the same, faster
  -        nothing beyond noise

To add a heuristic: a row in common/ablation.h, an `if` where it acts, a line in HEURISTICS."""
import json
import math
import statistics
import tempfile

from benchmark.case import BY_FLOW, Case, Variant, network
from benchmark.cases import CLOUD, VETH, slow_one_flow
from benchmark.compression import gradient
from benchmark.report import failures
from training.sets import TODAY, workload_file

LOSS = ["--loss", "10"]
COLL_SIZES = {"8": 8, "64K": 65536, "1M": 1 << 20, "64M": 64 << 20}
NO_REDIAL = {"STRATUS_REDIAL_SLOW": "0"}

# Heuristic: where it could matter. Not judged by any case: what needs an RDMA device (cq-peek).
HEURISTICS = {
    "coalesce": ["latency", "rate", "allreduce-capped", "allreduce-free", "allreduce-4"],
    "gather": ["latency", "rate", "allreduce-capped", "allreduce-free", "allreduce-4"],
    "idle-sleep": ["latency", "nic-down"],
    "epoll": ["latency", "rate", "connections", "allreduce-free", "allreduce-4"],
    "hot": ["latency", "rate", "connections", "allreduce-capped", "allreduce-free", "allreduce-4"],
    "other": ["latency", "uncapped", "connections", "allreduce-capped", "allreduce-free", "allreduce-4"],
    "peek": ["latency", "rate", "allreduce-capped", "allreduce-free", "allreduce-4"],
    "copy": ["latency", "rate", "allreduce-capped", "allreduce-free", "allreduce-4"],
    "ack-delay": ["latency", "rate", "uncapped", "allreduce-free", "allreduce-4"],
    "lowat": ["capped", "uncapped", "slow-10", "slow-50", "allreduce-capped"],
    "flows": ["capped", "uncapped", "connections", "allreduce-capped", "allreduce-free"],
    "slow": ["slow-10", "slow-50", "redial-10"],
    "reconnect": ["redial-10", "redial-50", "equal"],
    "chunks": ["capped", "uncapped", "equal", "slow-10", "medium", "allreduce-capped", "allreduce-free"],
    "cheap": ["fsdp"],
    "tail": ["latency", "rate", "lossy", "lossy-4"],
    "repeat": ["latency", "uncapped", "lossy", "lossy-4"],
    "turns": ["allreduce-capped", "allreduce-free", "rate"],
    "warm": ["latency", "rate", "medium", "allreduce-capped", "allreduce-free", "allreduce-4"],
}


def perf(*arguments, extra=None, meanwhile=None):
    return lambda bench, env: bench.perf("stratus", list(arguments), {**(extra or {}), **env}, meanwhile)


def by_size(sizes, metric, *arguments):
    """One run over several sizes: a figure for each."""
    def measure(bench, env):
        found = bench.perf("stratus", [*arguments, "--bytes", ",".join(sizes)], env)
        numbers = dict(zip(sizes, found["sizes"].values()))
        return {**found, **{size: numbers[size][metric] for size in sizes}}
    return measure


def coll(*sizes):
    """AllReduce of stock NCCL; a time for each size."""
    def measure(bench, env):
        found = bench.coll("stratus", ["-O", "all_reduce", "--sizes", ",".join(sizes), "-n", "2", "-w", "2",
                                       "--min-time", "60ms", "-c", "1"], env)
        return {**found, **{size: found["rows"][COLL_SIZES[size]]["time_us"] for size in sizes}}
    return measure


def fsdp_steps(bench, env):
    """As scripts/steps --set today has them."""
    job, = TODAY.of(["llama2_7b_fsdp"]).models
    with tempfile.TemporaryDirectory() as scratch:
        text = bench.coll_json("stratus", ["--replay", ",".join(2 * [workload_file(job, scratch)]), "--data", gradient("bf16"),
                                           "--replay-skip", "1", "--replay-steps", "2",
                                           *TODAY.scale.replay_arguments(4, 0.5)], env)
    last = json.loads(text)["workloads"][-1]
    return {"step_us": statistics.mean(last["step_us"]), "wrong": last["wrong"]}


def nic_down(bench, env):
    """The NIC of a host is down for two seconds: its waiting threads must let the kernel run."""
    return bench.fault("nic-down-2s-sender", env)


SPEED, TIME = 1, -1
RATES = [("1K", "messages/s", SPEED), ("4K", "messages/s", SPEED), ("16K", "messages/s", SPEED)]
BULK = [("gbps", "Gb/s", SPEED), ("cpu_s_per_gb", "CPU-s/GB", TIME)]
GBPS = [("gbps", "Gb/s", SPEED)]


def times(*sizes):
    return [(size, "us", TIME) for size in sizes]


SIMPLE = ("--shape", "simple")
QUARTER = ["--flow-gbps", "0.25", *BY_FLOW]
# Name: (title, cluster, measure, metrics).
CASES = {
    "latency": ("8 B half round trip", [], perf("--test", "latency", "--bytes", "8"), [("half_trip_us", "us", TIME)]),
    "rate": ("messages of 1, 4, 16 KiB", [], by_size(("1K", "4K", "16K"), "messages_per_s", "--test", "rate"), RATES),
    "medium": ("half round trip of 16, 64, 128 KiB, 0.5 Gb/s per flow", CLOUD[0],
               by_size(("16K", "64K", "128K"), "half_trip_us", "--test", "latency"), times("16K", "64K", "128K")),
    "capped": ("1 connection, 1 Gb/s per flow, 8 Gb/s NIC", network(8),
               perf(*SIMPLE, "--warmup", "500ms"), BULK),
    "equal": ("1 connection, equal flows of 0.25 Gb/s, 2 Gb/s NIC", network(2),
              perf(*SIMPLE, "--warmup", "500ms"), GBPS),
    "uncapped": ("2 connections of 512 KiB, no limits", [],
                 perf(*SIMPLE, "--bytes", "512K", "--connections", "2", "--warmup", "600ms"), BULK),
    "connections": ("64 connections of 64 KiB, no limits", [],
                    perf(*SIMPLE, "--bytes", "64K", "--connections", "64"), BULK),
    "slow-10": ("one of 8 flows at 10 %, not reconnected", QUARTER,
                perf(*SIMPLE, "--warmup", "1500ms", extra=NO_REDIAL, meanwhile=slow_one_flow(0.025)), GBPS),
    "slow-50": ("one of 8 flows at 50 %, not reconnected", QUARTER,
                perf(*SIMPLE, "--warmup", "1500ms", extra=NO_REDIAL, meanwhile=slow_one_flow(0.125)), GBPS),
    "redial-10": ("one of 8 flows at 10 %, another port is better", QUARTER,
                  perf(*SIMPLE, "--warmup", "4s", meanwhile=slow_one_flow(0.025)), GBPS),
    "redial-50": ("one of 8 flows at 50 %, another port is better", QUARTER,
                  perf(*SIMPLE, "--warmup", "4s", meanwhile=slow_one_flow(0.125)), GBPS),
    "nic-down": ("AllReduce while a NIC is down for 2 s: how long it is stalled", None, nic_down,
                 [("stall_s", "s", TIME)]),
    "lossy": ("half round trip of 8 B, 64 KiB, 1 % of the packets lost", LOSS,
              by_size(("8", "64K"), "mean_us", "--test", "latency", "--time", "2s"), times("8", "64K")),
    "lossy-4": (f"AllReduce, 4 hosts, {CLOUD[1]}, 1 % of the packets lost", ["--hosts", "4", *CLOUD[0], *LOSS],
                coll("8", "64K", "1M"), times("8", "64K", "1M")),
    "allreduce-capped": (f"AllReduce, 2 hosts, {CLOUD[1]}", CLOUD[0], coll("8", "64K", "1M", "64M"),
                         times("8", "64K", "1M", "64M")),
    "allreduce-free": ("AllReduce, 2 hosts, no limits", VETH[0], coll("8", "64K", "1M", "64M"),
                       times("8", "64K", "1M", "64M")),
    "fsdp": ("steps of Llama-2-7B by FSDP, half the computing, 4 hosts, 1.6 Gb/s NIC, 0.2 Gb/s per flow",
             ["--hosts", "4", *network(TODAY.scale.nic_gbps(4))], fsdp_steps, [("step_us", "us", TIME)]),
    "allreduce-4": (f"AllReduce, 4 hosts, {CLOUD[1]}", ["--hosts", "4", *CLOUD[0]], coll("8", "64K", "1M"),
                    times("8", "64K", "1M")),
}


def cases_of(heuristic):
    """Of one, or of several joined by +, which are switched off together; none if one of them is unknown."""
    parts = heuristic.split("+")
    is_known = all(each in HEURISTICS for each in parts)
    return [case for case in CASES if is_known and any(case in HEURISTICS[each] for each in parts)]


def all_cases(names):
    """The cases of these heuristics and cases, by name; all if there is none of either kind."""
    heuristics = [each for each in names if cases_of(each)] or list(HEURISTICS)
    wanted = [each for each in names if each in CASES] or list(CASES)
    unknown = [each for each in names if not cases_of(each) and each not in CASES]
    if unknown:
        raise ValueError(f"no heuristic or case '{unknown[0]}'; heuristics, + joins some: {' '.join(HEURISTICS)}; "
                         f"cases: {' '.join(CASES)}")
    made = [make_case(name, [each for each in heuristics if name in cases_of(each)]) for name in wanted]
    return [case for case in made if any(not each.key.startswith(WHOLE) for each in case.variants)]


WHOLE = "whole-"
WITHOUT_PER_WHOLE = 3


def make_case(name, heuristics):
    title, cluster, measure, _ = CASES[name]

    def variant(key, label, env):
        return Variant(key, label, lambda bench: measure(bench, env))
    without = [variant(each, f"without {each}", {"STRATUS_ABLATE": each.replace("+", ",")}) for each in heuristics]
    whole = max(2, math.ceil(len(without) / WITHOUT_PER_WHOLE))
    variants = []
    for number in range(whole):
        variants.append(variant(f"{WHOLE}{number + 1}", "whole", {}))
        variants += without[number * len(without) // whole:(number + 1) * len(without) // whole]
    return Case(name, title, cluster, variants, [])


# ---- verdicts ----

def interval(values):
    """The confidence interval of the median by ranks, at least 90 %; of few values all of them."""
    ordered, count = sorted(values), len(values)
    rank, below = 0, 0.5 ** count
    while rank + 1 < count / 2 and 2 * (below + math.comb(count, rank + 1) * 0.5 ** count) <= 0.1:
        rank += 1
        below += math.comb(count, rank) * 0.5 ** count
    return ordered[rank], ordered[count - 1 - rank]


MIN_ROUNDS = 5  # below, not even unanimous rounds are evidence


def verdict(ratios, noise):
    if len(ratios) < MIN_ROUNDS:
        return "too few rounds"
    low, high = interval(ratios)
    median = statistics.median(ratios)
    if high < 1 and median < 1 / (1 + noise):
        return "brings"
    return "costs" if low > 1 and median > 1 + noise else "-"


def cell(case_name, metric, unit, direction, heuristic, rounds):
    """`rounds`: {variant: metrics} of each."""
    def speed(each, key):
        return each[key][metric] ** direction
    ratios, means, noises, without = [], [], [], []
    for each in rounds:
        whole = [speed(each, key) for key in each if key.startswith(WHOLE) and each[key].get(metric)]
        if len(whole) > 1 and each.get(heuristic, {}).get(metric):
            means.append(statistics.geometric_mean(whole))
            without.append(speed(each, heuristic))
            ratios.append(without[-1] / means[-1])
            noises += [max(one, other) / min(one, other) - 1 for one, other in zip(whole, whole[1:])]
    if not ratios:
        return None
    noise = statistics.median(noises)
    return {"heuristic": heuristic, "case": case_name, "metric": metric, "unit": unit, "ratios": ratios,
            "ratio": statistics.median(ratios), "min": min(ratios), "max": max(ratios), "noise": noise,
            "with": statistics.median(means) ** direction, "without": statistics.median(without) ** direction,
            "verdict": verdict(ratios, noise)}


def rounds_of(case):
    """Of a case of the result: {variant: metrics} of each round, without those that failed."""
    count = max((len(variant["rounds"]) for variant in case["variants"]), default=0)
    return [{variant["key"]: variant["rounds"][number] for variant in case["variants"]
             if number < len(variant["rounds"]) and "error" not in variant["rounds"][number]}
            for number in range(count)]


def cells(cases):
    found = []
    for case in cases:
        rounds = rounds_of(case)
        keys = [each["key"] for each in case["variants"] if not each["key"].startswith(WHOLE)]
        for metric, unit, direction in CASES[case["name"]][3]:
            found += [cell(case["name"], metric, unit, direction, key, rounds) for key in keys]
    return [each for each in found if each]


def markdown(result):
    """A table of heuristic x case, and what follows for each heuristic."""
    found = result["ablation"]
    heuristics = list(dict.fromkeys([*HEURISTICS, *(each["heuristic"] for each in found)]))
    lines = ["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in result["machine"].items()), "",
             "| heuristic | case | speed without / with | noise | with, without | verdict |",
             "|---|---|---|---|---|---|"]
    for heuristic in heuristics:
        for each in found:
            if each["heuristic"] == heuristic:
                spread = f"{each['ratio']:.2f} ({each['min']:.2f} to {each['max']:.2f})"
                lines.append(f"| {heuristic} | {each['case']} {each['metric']} | {spread} | {each['noise'] * 100:.0f} % "
                             f"| {each['with']:.4g}, {each['without']:.4g} {each['unit']} | {each['verdict']} |")
    lines += ["", "| heuristic | brings | costs | nothing beyond noise |", "|---|---|---|---|"]
    for heuristic in heuristics:
        own = [each for each in found if each["heuristic"] == heuristic]

        def named(kind, own=own):
            return ", ".join(f"{each['case']} {each['metric']} {each['ratio']:.2f}"
                             for each in own if each["verdict"] == kind) or ("" if kind == "-" else "nothing")
        if own:
            lines.append(f"| {heuristic} | {named('brings')} | {named('costs')} | {named('-')} |")
    return "\n".join(lines + failures(result)) + "\n"
