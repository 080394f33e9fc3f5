# SPDX-License-Identifier: Apache-2.0
"""What stratus gains over NCCL's Socket in AIACC-Training's published cases, by simulation."""
import dataclasses
import statistics
import tempfile

from training import workload
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


GUESSED = {"speech_transformer", "pytorch_unet"}  # times of a step
CASES = (
    Case("chip maker", "image classification", "MXNet", 256, 1.0, "resnet50"),
    Case("chip maker", "face recognition", "MXNet", 256, 2.0, "insightface_r50"),
    Case("car maker", "FaceNet", "PyTorch", 32, 1.0, "inception_v3"),
    Case("phone maker", "BERT", "TensorFlow", 32, 0.3, "bert_large_ddp"),
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

FEATURE = 512  # elements that InsightFace's backbone gives for an image


def with_classes_split(lines, ranks):
    """Classes are split over all GPUs: after the forward pass, a third of what is computed, features are gathered, maxima and sums
    of the softmax are reduced, and the features' gradients come back by ReduceScatter; the backbone's go as DDP sends them."""
    images = next(int(words[1]) for words in lines if words[0] == "batch") * ranks
    *passes_us, _ = workload.computes(lines)  # the last is the optimizer's
    forward_us = left_us = sum(passes_us) / 3
    found = [words for words in lines if words[0] in workload.HEAD] + [["compute", forward_us]]
    for name, elements in (("all_gather", images * FEATURE), ("all_reduce", images), ("all_reduce", images), ("reduce_scatter", images * FEATURE)):
        found += [[name, elements], ["wait"]]
    for words in lines:
        if words[0] in workload.HEAD:
            continue
        if words[0] == "compute":
            skipped_us = min(float(words[1]), left_us)
            left_us -= skipped_us
            words = ["compute", float(words[1]) - skipped_us]
        found.append(words)
    return found


def workload_of(case, scratch):
    """(name or file, us of its step on one GPU alone)."""
    lines = workload.read(case.workload)
    step_us = sum(workload.computes(lines))
    if case.workload != "insightface_r50":
        return case.workload, step_us
    path = f"{scratch}/{case.workload}.txt"
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(" ".join(map(str, words)) + "\n" for words in with_classes_split(lines, case.gpus))
    return path, step_us


# ---- simulation ----

def steps_of(paths, hosts):
    """{transport: [us of each workload's step]}, medians of three draws of paths."""
    found = {}
    for transport in (SOCKET, SOCKET_2X8, STRATUS, IDEAL):
        options = [*STEPS, "--gpus", str(GPUS), "--nic-gbps", str(NIC_GBPS), "--flow-gbps", str(FLOW_GBPS), "--algorithm", "auto",
                   *(FREE if transport == IDEAL else [])]
        draws = [simulate(transport, paths, [hosts], [*options, "--seed", str(seed)]) for seed in SEEDS]
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
