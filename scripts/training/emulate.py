# SPDX-License-Identifier: Apache-2.0
"""FleetX's VGG16 replayed by stratus-coll on emulated hosts: one rank for each machine of 8 GPUs.

Times are TIME_SCALE times as long. Bytes are scaled so that an AllReduce takes TIME_SCALE times as long as on a machine
whose bus bandwidth is the fitted one: the emulated cluster's own is measured first, and a ring of 2 or 4 ranks puts
other parts of a size on the NIC than one of 16 or 32."""
import json
import os
import tempfile

from benchmark.run import Failure, Runner, say
from benchmark.tools import Bench, environment, words
from training.published import FLEETX_AMP, GPUS

# So that two CPUs keep up with four hosts: 4 x 50 MB/s, and steps that are long beside what a busy CPU delays them.
NIC_GBPS = 0.4
TIME_SCALE = 2
# The size whose bus bandwidth counts: about that of the largest gradient, VGG16's first fully connected layer.
SIZE = "4M"
TRANSPORT = "stratus"


class Settings:
    """What a Bench wants."""
    limit_s = 240


def ring_part(ranks):
    """What passes a NIC in each direction, of the size of an AllReduce."""
    return 2 * (ranks - 1) / ranks


def replay(runner, hosts, options, bytes_scale):
    """{batch: mean step in us}, of the slowest rank."""
    names = ",".join(f"vgg16_fleetx_{batch}" for batch in options.batches)
    with tempfile.TemporaryDirectory() as scratch:
        runner.run(words({**environment(TRANSPORT, {}), "NCCL_NET_PLUGIN": TRANSPORT}) + [
            "build/bin/stratus-coll", "--hosts", ",".join(hosts), "--replay", names,
            "--replay-steps", str(options.steps), "--replay-skip", str(options.skip),
            "--compute-scale", str(TIME_SCALE), "--bytes-scale", f"{bytes_scale:.9g}",
            "--json", f"{scratch}/out.json"], limit_s=Settings.limit_s * options.steps)
        with open(f"{scratch}/out.json", encoding="utf-8") as file:
            workloads = json.load(file)["workloads"]
    if any(each["wrong"] for each in workloads):
        raise Failure("a replayed AllReduce gave a wrong result")
    return {each["batch"]: sum(each["step_us"]) / len(each["step_us"]) for each in workloads}


def measure(runner, machines, options, bus_gbs):
    """One round: ({batch: mean step of one host}, {batch: mean step of all}, bus bandwidth in GB/s)."""
    cluster = runner.cluster_up(["--hosts", str(machines), "--nic-gbps", str(NIC_GBPS)])
    try:
        hosts = [f"ns:{cluster}-h{host}" for host in range(machines)]
        bench = Bench(runner, Settings, cluster)
        emulated_gbs = bench.coll(TRANSPORT, ["-O", "all_reduce", "--sizes", SIZE, "-n", "5", "-w", "2"])["busbw_gbs"]
        bytes_scale = TIME_SCALE * emulated_gbs / bus_gbs * ring_part(GPUS * machines) / ring_part(machines)
        return (replay(runner, hosts[:1], options, bytes_scale), replay(runner, hosts, options, bytes_scale),
                emulated_gbs)
    finally:
        runner.cluster_down(cluster)


def median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def rounds(options, bus_gbs):
    """{(machines, batch): [scaling of each round]}, and the emulated bus bandwidths."""
    runner, found, buses = Runner(), {}, []
    try:
        for number in range(options.rounds):
            for machines in options.machines:
                say(f"round {number + 1} of {options.rounds}: {machines} machines")
                alone, together, emulated_gbs = measure(runner, machines, options, bus_gbs)
                buses.append(emulated_gbs)
                for batch in options.batches:
                    found.setdefault((machines, batch), []).append(alone[batch] / together[batch])
    finally:
        runner.close()
    return found, buses


def main(options, tolerance, bus_gbs, model):
    """Prints the table; the exit status. `model(machines, batch)` is the model's scaling."""
    if os.geteuid() != 0:
        print("validate: --emulate makes network namespaces: run as root")
        return 1
    found, buses = rounds(options, bus_gbs)
    print(f"emulated: {NIC_GBPS} Gb/s NICs, AllReduce of {SIZE} has {min(buses) * 1e3:.1f} to {max(buses) * 1e3:.1f} MB/s "
          f"of bus bandwidth; times x {TIME_SCALE}; {options.skip} steps skipped, mean of {options.steps}, median of "
          f"{options.rounds}\n")
    print("| machines | batch | published | model | emulated | emulated - published |\n|---|---|---|---|---|---|")
    status, rows = 0, []
    for (machines, batch), values in found.items():
        published, emulated = FLEETX_AMP.scaling(batch, machines), median(values)
        status = status or int(abs(emulated - published) > tolerance)
        rows.append({"machines": machines, "batch": batch, "published": published, "model": model(machines, batch),
                     "emulated": values})
        print(f"| {machines} | {batch} | {published:.3f} | {rows[-1]['model']:.3f} | {emulated:.3f} "
              f"({min(values):.3f} to {max(values):.3f}) | {emulated - published:+.3f} |")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"fitted_bus_gbs": bus_gbs, "emulated_bus_gbs": buses, "points": rows}, file, indent=1)
    return status
