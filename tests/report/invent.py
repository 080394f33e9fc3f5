#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the invented inputs of tests/data/report anew; the same ones each time. Nobody measured them.

usage: tests/report/invent.py

The formats are those of the sources of NVIDIA/nccl-tests: heads and rows of src/common.cu and src/*.cu at v2.0.0,
v2.11.0 and v2.13.8, of src/util.cu at v2.17.3, v2.17.6 and v2.19.6; the JSON is src/util.cu's, file version 1 at
v2.17.3 and 3 at v2.19.6."""
import json
import math
import os
import random

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "../data/report")
SIZES = [1 << shift for shift in range(10, 29, 2)]
# Cells: us for each step, and what part of the bandwidth is left.
PROTOCOLS = {"ll": (7.0, 0.46), "ll128": (11.0, 0.9), "simple": (27.0, 1.0)}
GBS = 44.0  # of a node


def truth_us(coll, algo, proto, size, nodes, ppn):
    ranks = nodes * ppn
    latency, part = PROTOCOLS[proto]
    rounds = 2 if coll == "allreduce" else 1
    volume = rounds * size * (ranks - 1) / ranks
    if algo == "ring":
        return rounds * ((nodes - 1) * latency + (ranks - nodes) * 1.1) + volume / (GBS * 1e3 * part)
    return rounds * (math.log2(nodes) * latency * 1.7 + ppn * 1.3) + volume / (GBS * 1e3 * part * 0.82)


def default_cell(coll, size, nodes):
    """NCCL, with latencies that are too small for a cloud's network."""
    if size <= 16 << 10:
        proto = "ll"
    else:
        proto = "ll128" if size <= 1 << 20 else "simple"
    is_tree = coll == "allreduce" and nodes > 2 and size < (4 << 20)
    return ("tree" if is_tree else "ring"), proto


def sample(noise, coll, size, nodes, cell, is_default, order, run):
    algo, proto = cell
    time_us = truth_us(coll, algo, proto, size, nodes, 8) * math.exp(noise.gauss(0, 0.012))
    return {"schema": 1, "coll": coll, "bytes": size, "nodes": nodes, "ppn": 8, "algo": algo, "proto": proto,
            "channels": 0, "chunk": 0, "default": is_default, "in_place": False, "n": 20,
            "median_us": round(time_us, 3), "mad_us": round(time_us * noise.uniform(0.004, 0.02), 3), "p99_us": 0,
            "order": order, "time": 1785578102 + order, "nccl": 22809, "plugin": "0.1.0", "env": "default", "run": run,
            "hosts": "9f86d081"}


def samples():
    noise, lines = random.Random(5), []
    cells = {"allreduce": [("ring", "ll"), ("ring", "ll128"), ("ring", "simple"), ("tree", "ll"), ("tree", "ll128"),
                           ("tree", "simple")],
             "allgather": [("ring", "ll"), ("ring", "ll128"), ("ring", "simple")]}
    for coll, of_coll in cells.items():
        for nodes in (2, 4, 8) if coll == "allreduce" else (4, 8):
            for run in ("a1", "a2"):
                for order, size in enumerate(SIZES):
                    for cell in of_coll:
                        if cell[1] != "ll" or size <= 4 << 20:  # hopeless above
                            lines.append(sample(noise, coll, size, nodes, cell, False, order, run))
                    lines.append(sample(noise, coll, size, nodes, default_cell(coll, size, nodes), True, order, run))
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def profile():
    """The best cells of the truth above, where they are 5 % better."""
    text = ["# Made for the samples beside it: nobody measured anything.", "schema = 1", "[meta]", "id = invented",
            "created = 2026-08-01", 'source = "chosen for invented samples"', "nccl_min = 2.28.3", "nccl_max = 2.28"]
    for coll, all_nodes in (("allreduce", (2, 4)), ("allgather", (4, 8))):
        for nodes in all_nodes:
            text.append(f"[table {coll} nodes={nodes} ppn=8]")
            for size in SIZES:
                cells = [(algo, proto) for algo in (("ring", "tree") if coll == "allreduce" else ("ring",))
                         for proto in PROTOCOLS]
                best = min(cells, key=lambda cell, s=size, c=coll, n=nodes: truth_us(c, *cell, s, n, 8))
                default = default_cell(coll, size, nodes)
                if truth_us(coll, *default, size, nodes, 8) > 1.05 * truth_us(coll, *best, size, nodes, 8):
                    text.append(f"{size} {size * 4 if size < SIZES[-1] else 'max'} {best[0]} {best[1]} 0")
    return "\n".join(text) + "\n"


# ---- nccl-tests ----

def figures(nodes=2, ppn=4, seed=1, sizes=(8, 1024, 65536, 1 << 20, 1 << 24, 1 << 28)):
    """(size, time out of place, in place) of an AllReduce."""
    noise = random.Random(seed)
    for size in sizes:
        time_us = min(truth_us("allreduce", algo, proto, size, nodes, ppn) for algo in ("ring", "tree")
                      for proto in PROTOCOLS)
        yield size, time_us * math.exp(noise.gauss(0, 0.01)), time_us * math.exp(noise.gauss(0, 0.01))


def time_text(time_us):
    return f"{time_us:7.0f}" if time_us >= 1e4 else f"{time_us:7.1f}" if time_us >= 100 else f"{time_us:7.2f}"


def body(size, time_us, ranks, wrong, factor=None):
    bandwidth = size / time_us / 1e3
    return f"  {time_text(time_us)}  {bandwidth:6.2f}  " \
           f"{bandwidth * (2 * (ranks - 1) / ranks if factor is None else factor):6.2f}  {wrong}"


def devices(group, bus, nodes=2, ppn=4):
    return [f"#  {'' if group else ' '}Rank {rank:2d} {'Group  0 ' if group else ''}Pid {4000 + rank:6d} on "
            f"{'node' + str(rank // ppn):>10s} device {rank % ppn:2d} [{bus}] NVIDIA A100-SXM4-40GB"
            for rank in range(nodes * ppn)]


def footer(extra=()):
    return ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 7.4242 ", "#", *extra]


def head(columns, widths):
    units = {"size": "(B)", "count": "(elements)", "time": "(us)", "algbw": "(GB/s)", "busbw": "(GB/s)", "i_min": "(us)",
             "i_max": "(us)", "i_p99": "(us)", "i_cv%": "(%)", "timestamp": "%Y-%m-%d %H:%M:%S"}
    return ["# " + "  ".join(f"{name:>{width}}" for name, width in zip(columns, widths)),
            "# " + "  ".join(f"{units.get(name, ''):>{width}}" for name, width in zip(columns, widths))]


GROUP = ["time", "algbw", "busbw"]


def v2_0():
    """"error" is the largest difference; no rank group, the bus in hexadecimal; nothing names the collective."""
    columns = ["size", "count", "type", "redop", *GROUP, "error", *GROUP, "error"]
    lines = ["# nThread 1 nGpus 4 minBytes 8 maxBytes 268435456 step: 2(factor) warmup iters: 5 iters: 20 validation: 1 ",
             "#", "# Using devices", *devices(False, "0x10"), "#",
             f"# {'':>10}  {'':>12}  {'':>6}  {'':>6}            out-of-place                       in-place          ",
             *head(columns, [10, 12, 6, 6, 7, 6, 6, 5, 7, 6, 6, 5])]
    for size, out, inside in figures():
        lines.append(f"{size:12d}  {size // 4:12d}  {'float':>6}  {'sum':>6}" + body(size, out, 8, "2e-07")
                     + body(size, inside, 8, "1e-07"))
    return lines + footer()


def v2_0_all_gather():
    columns = ["size", "count", "type", *GROUP, "error", *GROUP, "error"]
    lines = ["# nThread 1 nGpus 4 minBytes 8 maxBytes 268435456 step: 2(factor) warmup iters: 5 iters: 20 validation: 1 ",
             "#", "# Using devices", *devices(False, "0x10"), "#",
             *head(columns, [10, 12, 6, 7, 6, 6, 5, 7, 6, 6, 5])]
    for size, out, inside in figures():
        lines.append(f"{size:12d}  {size // 32:12d}  {'float':>6}" + body(size, out / 2, 8, "0e+00", 7 / 8)
                     + body(size, inside / 2, 8, "  N/A", 7 / 8))
    return lines + footer()


def v2_13():
    columns = ["size", "count", "type", "redop", "root", *GROUP, "#wrong", *GROUP, "#wrong"]
    lines = ["# nThread 1 nGpus 4 minBytes 8 maxBytes 268435456 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 "
             "validation: 1 graph: 0", "#", "# Using devices", *devices(True, "0x10"), "#",
             *head(columns, [10, 12, 8, 6, 6, 7, 6, 6, 6, 7, 6, 6, 6])]
    for size, out, inside in figures(seed=2):
        lines.append(f"{size:12d}  {size // 4:12d}  {'float':>8}  {'sum':>6}  {-1:6d}" + body(size, out, 8, "    0")
                     + body(size, inside, 8, "    0"))
    return lines + footer()


def v2_17():
    """With -S, a timestamp; names itself."""
    columns = ["size", "count", "type", "redop", "root", *GROUP, "#wrong", *GROUP, "#wrong", "timestamp"]
    lines = ["# nccl-tests version 2.17.6 nccl-headers=22803 nccl-library=22809",
             "# Collective test starting: all_reduce_perf",
             "# nThread 1 nGpus 1 minBytes 8 maxBytes 268435456 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 "
             "validation: 1 graph: 0", "#", "# Using devices", *devices(True, "0000:10:1c"), "#",
             *head(columns, [10, 12, 8, 6, 6, 7, 6, 6, 6, 7, 6, 6, 6, 20])]
    for size, out, inside in figures(seed=3):
        lines.append(f"{size:12d}  {size // 4:12d}  {'float':>8}  {'sum':>6}  {-1:6d}" + body(size, out, 8, "     0")
                     + body(size, inside, 8, "     0") + f"{'2026-07-01 10:00:00':>21}")
    return lines + footer(["# Collective test concluded: all_reduce_perf"])


def v2_19():
    """With -I 1: more columns of each call's times."""
    more = ["i_min", "i_max", "i_p99", "i_cv%"]
    columns = ["size", "count", "type", "redop", "root", *GROUP, "#wrong", *more, *GROUP, "#wrong", *more]
    lines = ["# nccl-tests version 2.19.6 nccl-headers=23003 nccl-library=23007",
             "# Collective test starting: all_reduce_perf",
             "# nThread 1 nGpus 1 minBytes 8 maxBytes 268435456 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 "
             "validation: 1 graph: 0 unalign: 0",
             "# Per-Iteration Report: CUDA event timing; i_* uses max over process rows ", "#", "# Using devices",
             *devices(True, "0000:10:1c"), "#", *head(columns, [10, 12, 8, 6, 6] + ([7, 6, 6, 6] + [7] * 4) * 2)]

    def spread(time_us):
        return "".join(f"  {time_us * part:7.1f}" for part in (0.97, 1.2, 1.1)) + f"  {3.1:7.2f}"
    for size, out, inside in figures(seed=4):
        lines.append(f"{size:12d}  {size // 4:12d}  {'float':>8}  {'sum':>6}  {-1:6d}" + body(size, out, 8, "     0")
                     + spread(out) + body(size, inside, 8, "     0") + spread(inside))
    return lines + footer(["# Collective test concluded: all_reduce_perf"])


def job_log():
    """A batch job's log: what the script echoed, two programs, NCCL's lines between rows and within one, and the
    prefix of mpirun."""
    info = "node0:4000:4031 [0] NCCL INFO "
    table = v2_13()
    row = next(number for number, line in enumerate(table) if line.startswith(f"{1 << 20:12d}"))
    table[row:row + 1] = [table[row][:52] + info + "Channel 00/0 : 0[0] -> 4[0] [send] via NET/Socket/0", table[row][52:]]
    table.insert(row, info + "Connected all rings")
    gather = v2_0_all_gather()
    lines = ["+ mpirun -np 8 -x NCCL_DEBUG=INFO ./build/all_reduce_perf -b 8 -e 256M", "NCCL version 2.20.5+cuda12.4",
             *table, "+ mpirun -np 8 ./build/all_gather_perf -b 8 -e 256M", *gather]
    return [f"[1,0]<stdout>:{line}" for line in lines]


def json_file(version):
    results = []
    for size, out, inside in figures(seed=6, sizes=(8, 65536, 1 << 24)):
        noise = random.Random(size)

        def part(time_us):
            bandwidth = size / time_us / 1e3
            return {"time": round(time_us, 6), "alg_bw": round(bandwidth, 6), "bus_bw": round(bandwidth * 1.75, 6), "nwrong": 0.0}

        def calls(time_us):
            times = [round(time_us * math.exp(noise.gauss(0, 0.02)), 6) for _ in range(20)]
            return {"skipped_iterations": 0, "min_us": min(times), "max_us": max(times), "p50_us": sorted(times)[10],
                    "times_us": times}
        result = {"size": size, "count": size // 4, "type": "float", "redop": "sum", "root": "    -1",
                  "out_of_place": part(out)}
        result |= {"out_of_place_per_iter": calls(out)} if version == 3 else {}
        result |= {"in_place": part(inside)}
        result |= {"in_place_per_iter": calls(inside)} if version == 3 else {}
        results.append(result | {"actual_iterations": 20, "experiment_name": ""})
    okay, word = ("bandwidth", "average_bus_bandwidth") if version == 3 else ("bandwidith", "average_bus_bandwidith")
    hosts = [{"rank": rank, "group": 0, "pid": 4000 + rank, "hostname": f"node{rank // 4}", "device": rank % 4,
              "device_hex": "0000:10:1c", "device_info": "NVIDIA A100-SXM4-40GB"} for rank in range(8)]
    return {"version": version, "start_time": "2026-07-01 10:00:00",
            "args": ["./build/all_reduce_perf", "-b", "8", "-e", "16M", "-J", "x.json"],
            "env": ["HOME=/home/somebody", "NCCL_DEBUG=INFO", "NCCL_NET_PLUGIN=stratus", "STRATUS_FLOWS=8",
                    "LS_COLORS=rs=0:di=01;34"],
            "nccl_version": 22809 if version == 1 else 23007,
            "config": {"nthreads": 1, "ngpus": 1, "minimum_bytes": 8, "maximum_bytes": 1 << 24, "step_factor": 2,
                       "warmup_iters": 1, "iterations": 20, "aggregated_iterations": 1, "validation": 1, "graph": 0,
                       "blocking_collectives": "false", "parallel_init": "false", "devices": hosts},
            "results": results, "out_of_bounds": {"count": 0, "okay": "true"}, word: {okay: 7.4, "okay": "unchecked"},
            "errors": ["no error"], "end_time": "2026-07-01 10:01:00"}


def write(name, text):
    with open(os.path.join(DATA, name), "w", encoding="utf-8") as file:
        file.write(text)


def main():
    write("samples.jsonl", samples())
    write("chosen.profile", profile())
    for name, lines in (("all_reduce-2.0.txt", v2_0()), ("all_gather-2.0.txt", v2_0_all_gather()),
                        ("all_reduce-2.13.txt", v2_13()), ("nccl-tests-2.17.txt", v2_17()),
                        ("nccl-tests-2.19.txt", v2_19()), ("job.log", job_log())):
        write(name, "\n".join(line.rstrip() for line in lines) + "\n")
    for version in (1, 3):
        write(f"nccl-tests-v{version}.json", json.dumps(json_file(version)) + "\n")


if __name__ == "__main__":
    main()
