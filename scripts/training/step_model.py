# SPDX-License-Identifier: Apache-2.0
"""How long a training step takes on a network of which only two figures are known. PURE but for plan_of.

The plan is stratus-coll's own (--replay-list): compute, collectives in order on one stream, waits. A collective takes

    latency + size * f / bus bandwidth        f = 2 (n - 1) / n for an AllReduce of n ranks

where size * f is what passes each NIC in each direction when n ranks, 8 of them behind one NIC, are one ring, and what
nccl-tests calls bus bandwidth. Computation is not slowed by communication, and machines do not differ."""
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COLL = os.path.join(ROOT, "build/bin/stratus-coll")

# Per hop of a ring between machines, as NCCL 2.4 itself reckons when it chooses between ring and tree (ringlatinter in
# ncclTreeThreshold, src/init.cc).
HOP_US = 6


def plan_of(workload, ranks):
    """[(kind, value)] of a workload (a name or a path): ("compute", us), ("collective", bytes), ("wait", number)."""
    done = subprocess.run([COLL, "--replay", workload, "--replay-list", str(ranks)], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise RuntimeError(f"stratus-coll --replay {workload} --replay-list {ranks}: {done.stderr.strip()}")
    plan = []
    for line in done.stdout.splitlines():
        kind, *fields = line.split()
        if kind == "compute":
            plan.append((kind, float(fields[0])))
        elif kind == "collective":
            plan.append((kind, int(fields[7])))
        elif kind == "wait":
            plan.append((kind, int(fields[0])))
        elif kind in ("send", "recv"):
            raise RuntimeError(f"{workload}: sends and receives are not in this model of a step")
    return plan


def allreduce_us(size_bytes, ranks, bus_gbs):
    """Of one AllReduce; `bus_gbs` is in GB/s of 10^9 bytes."""
    return HOP_US * (ranks - 1) + size_bytes * 2 * (ranks - 1) / ranks / (bus_gbs * 1e3)


def step_us(plan, ranks, bus_gbs):
    """Of a whole step: compute, and what communication it does not hide."""
    now, free, ends = 0.0, 0.0, []
    for kind, value in plan:
        if kind == "compute":
            now += value
        elif kind == "collective":
            free = max(now, free) + allreduce_us(value, ranks, bus_gbs)
            ends.append(free)
        else:
            now = max(now, ends[value - 1])
    return max(now, free)


def fit_bus_gbs(plan, ranks, wanted_us):
    """The bus bandwidth at which the step takes so long: a faster network makes no step longer."""
    low, high = 0.01, 1000.0
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if step_us(plan, ranks, middle) > wanted_us else (low, middle)
    return (low * high) ** 0.5
