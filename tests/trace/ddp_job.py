# SPDX-License-Identifier: Apache-2.0
"""A data-parallel job of two processes over gloo on loopback, which records itself with PyTorch 1.13's
ExecutionGraphObserver and its profiler. Debian's Python runs it.

usage: ddp_job.py DIRECTORY     leaves files of each RANK: profile.RANK.json; graph.RANK.json, of the same steps;
                                one.RANK.json, of one step alone; buckets.RANK.json, what DDP says of its buckets"""
import json
import os
import sys

import torch
import torch.distributed
import torch.multiprocessing
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ExecutionGraphObserver, ProfilerActivity, profile, schedule

RANKS, STEPS, BEFORE = 2, 4, 2  # before: DDP arranges its buckets anew after the first step


def work(rank, directory):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.distributed.init_process_group("gloo", init_method=f"file://{directory}/store", rank=rank, world_size=RANKS)
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(300, 700), torch.nn.ReLU(), torch.nn.Linear(700, 501), torch.nn.ReLU(),
                                torch.nn.Linear(501, 10))
    parallel = DistributedDataParallel(model, bucket_cap_mb=1)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad()
        parallel(torch.randn(16, 300)).sum().backward()
        optimizer.step()
    for _ in range(BEFORE):
        step()
    observer = ExecutionGraphObserver()
    observer.register_callback(f"{directory}/graph.{rank}.json")
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, schedule=schedule(wait=0, warmup=1, active=STEPS - 1),
                 on_trace_ready=lambda found: found.export_chrome_trace(f"{directory}/profile.{rank}.json")) as profiler:
        for number in range(STEPS):
            if number == 1:
                observer.start()  # with the first step that the profiler keeps
            step()
            if number == STEPS - 1:
                torch.distributed.all_reduce(torch.ones(3, dtype=torch.int64))  # a job counts something, too
                observer.stop()
            profiler.step()
    observer.unregister_callback()
    observer.register_callback(f"{directory}/one.{rank}.json")
    observer.start()
    step()
    torch.distributed.broadcast(torch.ones(7, dtype=torch.float64), 1)
    observer.stop()
    observer.unregister_callback()
    with open(f"{directory}/buckets.{rank}.json", "w", encoding="utf-8") as file:
        json.dump(parallel._get_ddp_logging_data()["rebuilt_bucket_sizes"], file)  # pylint: disable=protected-access
    torch.distributed.barrier()


if __name__ == "__main__":
    torch.multiprocessing.spawn(work, (sys.argv[1],), RANKS)
