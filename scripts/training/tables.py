# SPDX-License-Identifier: Apache-2.0
"""What stratus gains over NCCL's Socket in AIACC-Training's published cases, by simulation."""
import dataclasses
import os
import statistics
import subprocess
import tempfile

from benchmark.run import ROOT
from training.reshape import read_workload, step_us, with_step, write_workload
from training.simulator import FREE, simulate

GPUS = 8  # of a host
# Instances of AIACC's days: 8 V100, up to 32 Gb/s of a VPC (gn6v, gn6e of Alibaba Cloud); a flow at an eighth is assumed.
NIC_GBPS, FLOW_GBPS = 32, 4
SOCKET, SOCKET_2X8, STRATUS, IDEAL = "socket", "socket-2x8", "stratus", "ideal"
SEEDS = (1, 2, 3)  # of the paths that flows draw
# Steps that are measured after one: with hosts all alike they differ by the draws of services alone. Bursts of 128 KiB are those of
# the emulated cloud.
STEPS = ["--steps", "3", "--skip", "1", "--variants", "4", "--burst", "128K"]
# A step that is so much longer than without a limit is held by that limit.
HELD = 1.05


@dataclasses.dataclass(frozen=True)
class Case:
    """One of AIACC-Training's: who, what, with which framework, GPUs, how much faster it says; our workload, None without one."""
    customer: str
    model: str
    framework: str
    gpus: int
    gain: float
    workload: str
    images_per_s: float = 0
    parallel: str = ""


GUESSED = {"speech_transformer", "pytorch_unet"}  # times of a step
INCEPTION = 602.27  # images/s of one RTX 3090 with AMP (huggingface/pytorch-image-models, the file that swin_large names)
CASES = (
    Case("chip maker", "image classification", "MXNet", 256, 1.0, "resnet50"),
    Case("chip maker", "face recognition", "MXNet", 256, 2.0, "insightface_r50"),
    Case("car maker", "FaceNet", "PyTorch", 32, 1.0, "inception_v3", INCEPTION),
    Case("phone maker", "BERT", "TensorFlow", 32, 0.3, "bert_large_zero2", parallel="ddp"),
    Case("phone maker", "GPT-2", "PyTorch", 32, 0.3, "gpt2_1.2b_megatron"),
    Case("AI company", "Faster-RCNN", "MXNet, Horovod, BytePS", 128, 0.3, "faster_rcnn_r50_fpn"),
    Case("AI company", "InsightFace", "MXNet, Horovod, BytePS", 128, 2.0, "insightface_r50"),
    Case("education", "ESPnet", "PyTorch DP", 16, 0.3, "speech_transformer"),
    Case("education", "ESPnet2", "PyTorch DDP", 16, 0.3, "speech_transformer"),
    Case("education", "CTR", "PyTorch", 32, 0.8, ""),
    Case("education", "OCR", "PyTorch", 32, 0.3, ""),
    Case("phone maker", "image classification", "PyTorch", 128, 0.25, "resnet50"),
    Case("phone maker", "MAE", "PyTorch", 32, 0.3, "vit_large_mae"),
    Case("research institute", "GPT-2", "PyTorch, Megatron", 32, 0.3, "gpt2_1.2b_megatron"),
    Case("social media", "MMDetection2", "PyTorch", 32, 0.3, "faster_rcnn_r50_fpn"),
    Case("finance", "InsightFace", "PyTorch", 32, 0.5, "insightface_r50"),
    Case("phone maker", "Detectron2", "PyTorch", 64, 0.25, "faster_rcnn_r50_fpn"),
    Case("vision team", "InsightFace", "MXNet", 64, 0.5, "insightface_r50"),
    Case("games", "ResNet", "PyTorch", 32, 0.3, "resnet50"),
    Case("city", "InsightFace", "MXNet", 16, 0.42, "insightface_r50"),
    Case("pharmacy", "autoencoder", "PyTorch", 32, 0.3, "pytorch_unet"),
    Case("driving", "Swin Transformer", "PyTorch", 32, 0.7, "swin_large"),
)


# ---- workloads ----

def plan_of(workload, ranks):
    """coll's own plan of a workload (a name or a path): [("compute", us), ("collective", bytes) or ("wait", number)]."""
    argv = [os.path.join(ROOT, "build/tests/coll/coll"), "--replay", workload, "--replay-list", str(ranks)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")
    values = {"compute": lambda fields: float(fields[0]), "collective": lambda fields: int(fields[7]),
              "wait": lambda fields: int(fields[0])}
    lines = (line.split() for line in done.stdout.splitlines())
    return [(kind, values[kind](fields)) for kind, *fields in lines if kind in values]


FEATURE = 512  # elements that InsightFace's backbone gives for an image


def with_classes_split(workload, path, ranks):
    """Classes are split over all GPUs: after the forward pass features are gathered, maxima and sums of the softmax are reduced,
    and the features' gradients come back by ReduceScatter; the backbone's go as DDP sends them."""
    batch, events = workload["batch"], [{"compute_us": sum(layer["forward_us"] for layer in workload["layers"])}]
    for name, elements in (("all_gather", batch * FEATURE), ("all_reduce", batch * ranks), ("all_reduce", batch * ranks),
                           ("reduce_scatter", batch * FEATURE)):
        number = len(events) // 2 + 1
        events += [{"collective": name, "elements": elements, "id": number}, {"wait": number}]
    before, passed_us = 4, events[0]["compute_us"]
    for kind, value in plan_of(path, ranks):
        if kind == "compute":
            skipped_us = min(value, passed_us)
            passed_us -= skipped_us
            events.append({"compute_us": value - skipped_us})
        elif kind == "collective":
            before += 1
            events.append({"collective": "all_reduce", "elements": value // 4, "id": before})
        else:
            events.append({"wait": value + 4})
    return {**{key: workload[key] for key in ("format", "version", "name", "source", "batch", "gradient_type")}, "parallel": "events",
            "events": [event for event in events if event.get("compute_us") != 0]}


def workload_of(case, scratch):
    """(file, us of its step on one GPU alone)."""
    workload = read_workload(case.workload)
    if case.images_per_s:
        workload = with_step(workload, workload["batch"] / case.images_per_s * 1e6)
    if case.parallel:
        workload = {**{key: value for key, value in workload.items() if key != "bucket_bytes"}, "parallel": case.parallel,
                    "gradient_type": "float32"}
    path = write_workload(workload, scratch, case.workload)
    if case.workload == "insightface_r50":
        write_workload(with_classes_split(workload, path, case.gpus), scratch, case.workload)
    return path, step_us(workload)


# ---- simulation ----

def steps_of(paths, hosts):
    """{transport: [us of each workload's step]}, medians of three draws of paths."""
    found = {}
    for transport in (SOCKET, SOCKET_2X8, STRATUS, IDEAL):
        options = [*STEPS, "--gpus", str(GPUS), "--nic-gbps", str(NIC_GBPS), "--flow-gbps", str(FLOW_GBPS), "--algorithm", "auto",
                   *(FREE if transport == IDEAL else [])]
        draws = [simulate(transport, paths, [hosts], [*options, "--seed", str(seed)])["results"] for seed in SEEDS]
        found[transport] = [statistics.median(draw[i]["step_us"] for draw in draws) for i in range(len(paths))]
    return found


def bound(steps, alone_us):
    """What holds stratus: its own way on the network, the NIC's rate, or nothing but computing."""
    if steps[IDEAL] > HELD * alone_us:
        return "NIC"
    return "compute" if steps[STRATUS] < HELD * alone_us else "transport"


def simulate_cases(cases):
    """{(workload, GPUs): (steps by transport, us alone)}."""
    found = {}
    for gpus in sorted({case.gpus for case in cases}):
        these = list({case.workload: case for case in cases if case.gpus == gpus and case.workload}.values())
        with tempfile.TemporaryDirectory() as scratch:
            files = [workload_of(case, scratch) for case in these]
            steps = steps_of([path for path, _ in files], gpus // GPUS)
        for i, case in enumerate(these):
            found[case.workload, gpus] = {transport: each[i] for transport, each in steps.items()}, files[i][1]
    return found


# ---- tables ----

def aiacc():
    """A row for each case; gains are of throughput, 0.5 for half as much again. Without a workload there is none."""
    found, rows = simulate_cases(CASES), []
    for case in CASES:
        row = {**dataclasses.asdict(case), "over_socket": None}
        if case.workload:
            steps, alone_us = found[case.workload, case.gpus]
            row.update(over_socket=steps[SOCKET] / steps[STRATUS] - 1, over_2x8=steps[SOCKET_2X8] / steps[STRATUS] - 1,
                       at_most=steps[SOCKET] / steps[IDEAL] - 1, bound=bound(steps, alone_us))
        rows.append(row)
    return rows


def as_text(rows):
    lines = ["| customer, model | framework | GPUs | workload | AIACC | over Socket | over 2x8 | at most | bound | AIACC's beyond any transport |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        head = f"| {row['customer']}, {row['model']} | {row['framework']} | {row['gpus']} |"
        if row["over_socket"] is None:
            lines.append(f"{head} none | {row['gain']:+.0%} | | | | | |")
            continue
        beyond = f"{(1 + row['gain']) / (1 + row['at_most']):.2f} times" if row["gain"] > row["at_most"] else ""
        lines.append(f"{head} {row['workload']}{'*' * (row['workload'] in GUESSED)} | {row['gain']:+.0%} | {row['over_socket']:+.0%} | "
                     f"{row['over_2x8']:+.0%} | {row['at_most']:+.0%} | {row['bound']} | {beyond} |")
    simulated = [row for row in rows if row["over_socket"] is not None]
    reached = sum(row["over_socket"] >= row["gain"] for row in simulated)
    return "\n".join([*lines, f"\n{reached} of {len(rows)} are reached; {len(simulated)} have a workload"])
