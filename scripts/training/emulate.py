# SPDX-License-Identifier: Apache-2.0
"""FleetX's VGG16 replayed by stratus-coll on emulated hosts: one rank for each machine of 8 GPUs.

Times are TIME_SCALE times as long. Bytes are scaled so that those that pass an emulated NIC take TIME_SCALE times as long
as the fitted bus bandwidth lets those of a machine take; a ring of 2 or 4 ranks puts other parts of a size on the NIC
than one of 16 or 32."""
import dataclasses
import json
import os
import statistics

from benchmark.machine import congestion_control
from benchmark.run import Failure, Runner, say
from benchmark.tools import Bench
from training.published import FLEETX_AMP, GPUS

# So that two CPUs keep up with four hosts: 4 x 25 MB/s, and steps that are long beside what a busy CPU delays them.
NIC_GBPS = 0.2
NIC_GBS = NIC_GBPS / 8 * 8948 / 9014  # bytes of TCP in a frame of the cluster's 9000, whose limit counts whole frames
TIME_SCALE = 4
TRANSPORT = "stratus"
STEP_LIMIT_S = 30  # of all batches; 4.3 s are expected


def ring_part(ranks):
    """What passes a NIC in each direction, of the size of an AllReduce."""
    return 2 * (ranks - 1) / ranks


@dataclasses.dataclass
class Limit:
    """What a Bench wants."""
    limit_s: float


def replay(runner, cluster, hosts, options, bytes_scale):
    """{batch: median step in us}, of the slowest rank. Not the mean: one round had
    0.64 s too much in ten steps, probably a stall, as four hosts share two CPUs."""
    bench = Bench(runner, Limit(60 + STEP_LIMIT_S * (options.skip + options.steps)), cluster)
    names = ",".join(f"vgg16_fleetx_{batch}" for batch in options.batches)
    text = bench.coll_json(TRANSPORT, [
        "--replay", names, "--replay-steps", str(options.steps), "--replay-skip", str(options.skip),
        "--compute-scale", str(TIME_SCALE), "--bytes-scale", f"{bytes_scale:.9g}"], hosts=hosts)
    workloads = json.loads(text)["workloads"]
    if any(each["wrong"] for each in workloads):
        raise Failure("a replayed AllReduce gave a wrong result")
    return {each["batch"]: statistics.median(each["step_us"]) for each in workloads}


def measure(runner, machines, options, bus_gbs):
    """{batch: median step} of one host alone, where `machines` is 1, or of all hosts of a cluster."""
    cluster = runner.cluster_up(["--hosts", str(max(2, machines)), "--nic-gbps", str(NIC_GBPS)])
    try:
        hosts = ",".join(f"ns:{cluster}-h{host}" for host in range(machines))
        bytes_scale = TIME_SCALE * NIC_GBS / bus_gbs
        if machines > 1:
            bytes_scale *= ring_part(GPUS * machines) / ring_part(machines)
        return replay(runner, cluster, hosts, options, bytes_scale)
    finally:
        runner.cluster_down(cluster)


def rounds(options, bus_gbs):
    """{(machines, batch): [scaling of each round]}."""
    runner, found = Runner(), {}
    try:
        for number in range(options.rounds):
            steps = {}
            for machines in [1, *options.machines]:
                say(f"round {number + 1} of {options.rounds}: machines: {machines}")
                steps[machines] = measure(runner, machines, options, bus_gbs)
            for machines in options.machines:
                for batch in options.batches:
                    found.setdefault((machines, batch), []).append(steps[1][batch] / steps[machines][batch])
    finally:
        runner.close()
    return found


def main(options, tolerance, bus_gbs, model):
    """Prints the table; the exit status. `model(machines, batch)` is the model's scaling."""
    if os.geteuid() != 0:
        raise Failure("--emulate makes network namespaces: run as root")
    congestion = congestion_control()
    found = rounds(options, bus_gbs)
    print(f"emulated: {NIC_GBPS} Gb/s NICs, congestion control {congestion}, times x {TIME_SCALE}; {options.skip} steps skipped, median of "
          f"{options.steps}; rounds: {options.rounds}\n")
    print("| machines | batch | published | model | emulated | emulated - published |\n|---|---|---|---|---|---|")
    status, rows = 0, []
    for (machines, batch), values in found.items():
        published, emulated = FLEETX_AMP.scaling(batch, machines), statistics.median(values)
        status = status or int(abs(emulated - published) > tolerance)
        rows.append({"machines": machines, "batch": batch, "published": published, "model": model(machines, batch),
                     "emulated": values})
        spread = f" ({min(values):.3f} to {max(values):.3f})" if len(values) > 1 else ""
        print(f"| {machines} | {batch} | {published:.3f} | {rows[-1]['model']:.3f} | {emulated:.3f}{spread} | "
              f"{emulated - published:+.3f} |")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"fitted_bus_gbs": bus_gbs, "congestion_control": congestion, "points": rows}, file, indent=1)
    return status
