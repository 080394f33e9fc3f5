# SPDX-License-Identifier: Apache-2.0
"""One rank of a job: torch.distributed as anybody uses it, without a word about stratus or the emulated GPU.

usage: rank.py MODE...     each in a process group of its own, one after the other in this process

MODE: collectives; a way to train (WAYS), whose losses have to be those of one CPU; absent, where the first rank leaves a collective
out; abort, where all give a collective up in which it is missing, and begin anew, three times.
EAGER=1: communicators at once. STEPS: of training (5). DIE=1: the last rank kills itself within the third, unless it was restarted.
WRONG lines and the exit status tell what is not right."""
import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

RANK, WORLD, LOCAL = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(os.environ.get("LOCAL_RANK", "0"))
STEPS = int(os.environ.get("STEPS", "5"))
GPU = torch.device("cuda", LOCAL)
TIMEOUT_S = float(os.environ.get("PG_TIMEOUT", "60"))
PORT = int(os.environ["MASTER_PORT"])
ROWS = 4  # of a rank in a step
wrong = 0  # pylint: disable=invalid-name


def say(text):
    print(f"[{RANK}] {text}", flush=True)


def expect(is_right, what):
    global wrong  # pylint: disable=global-statement
    if not is_right:
        wrong += 1
        say(f"WRONG {what}")


# ---- collectives, of values that every order sums to the same ----

def filled(rank, count, dtype=torch.float32):
    return (torch.arange(count) % 61 + rank + 1).to(dtype)


def on_gpu(tensor):
    return tensor.to(GPU)


def same(got, wanted, what):
    expect(torch.equal(got.cpu(), wanted), f"{what} of {wanted.numel()}: {got.flatten()[:4].tolist()} for {wanted.flatten()[:4].tolist()}")


def reductions(count):
    everyone = [filled(rank, count) for rank in range(WORLD)]
    mine, total, part = everyone[RANK], sum(everyone), slice(RANK * (count // WORLD), (RANK + 1) * (count // WORLD))
    for op, wanted in ((dist.ReduceOp.SUM, total), (dist.ReduceOp.MAX, everyone[-1]), (dist.ReduceOp.AVG, total / WORLD)):
        tensor = on_gpu(mine)
        dist.all_reduce(tensor, op=op)
        same(tensor, wanted, f"all_reduce {op}")
    tensor = on_gpu(filled(RANK, count, torch.bfloat16))
    dist.all_reduce(tensor)
    same(tensor, sum(filled(rank, count, torch.bfloat16) for rank in range(WORLD)), "all_reduce of bfloat16")
    tensor = on_gpu(mine)
    dist.reduce(tensor, 0)
    if RANK == 0:
        same(tensor, total, "reduce")
    out = torch.empty(count // WORLD, device=GPU)
    dist.reduce_scatter_tensor(out, on_gpu(mine[:count // WORLD * WORLD]))
    same(out, total[part], "reduce_scatter_tensor")
    with dist._coalescing_manager(device=GPU, async_ops=True) as manager:  # pylint: disable=protected-access
        first, second = on_gpu(mine), on_gpu(mine)
        dist.all_reduce(first)
        dist.all_reduce(second)
    manager.wait()
    same(first, total, "coalesced all_reduce")
    same(second, total, "coalesced all_reduce")


def exchanges(count):
    everyone = [filled(rank, count) for rank in range(WORLD)]
    share = count // WORLD
    tensor = on_gpu(everyone[RANK])
    dist.broadcast(tensor, WORLD - 1)
    same(tensor, everyone[-1], "broadcast")
    out = torch.empty(WORLD * count, device=GPU)
    dist.all_gather_into_tensor(out, on_gpu(everyone[RANK]))
    same(out, torch.cat(everyone), "all_gather_into_tensor")
    outs = [torch.empty(count, device=GPU) for _ in range(WORLD)]
    dist.all_gather(outs, on_gpu(everyone[RANK]))
    same(torch.cat(outs), torch.cat(everyone), "all_gather")
    out = torch.empty(share * WORLD, device=GPU)
    dist.all_to_all_single(out, on_gpu(everyone[RANK][:share * WORLD]))
    same(out, torch.cat([each[RANK * share:(RANK + 1) * share] for each in everyone]), "all_to_all_single")
    mine, theirs = on_gpu(everyone[RANK]), torch.empty(count, device=GPU)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, (RANK + 1) % WORLD),
                                        dist.P2POp(dist.irecv, theirs, (RANK - 1) % WORLD)]):
        work.wait()
    same(theirs, everyone[RANK - 1], "batch_isend_irecv")
    if RANK == 0:
        dist.send(mine, 1)
    elif RANK == 1:
        dist.recv(theirs, 0)
        same(theirs, everyone[0], "send and recv")


def collectives():
    for count in (1000, 1 << 20):
        reductions(count)
        exchanges(count)
    objects = [None] * WORLD
    dist.all_gather_object(objects, {"rank": RANK})
    expect([each["rank"] for each in objects] == list(range(WORLD)), f"all_gather_object: {objects}")
    halves = [[rank for rank in range(WORLD) if rank % 2 == half] for half in range(2)]
    groups = [dist.new_group(half) for half in halves]
    tensor = on_gpu(filled(RANK, 1000))
    dist.all_reduce(tensor, group=groups[RANK % 2])
    same(tensor, sum(filled(rank, 1000) for rank in halves[RANK % 2]), "all_reduce of half the ranks")
    dist.barrier()


# ---- training ----

def new_model():
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(32, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 8))


def batch(step):
    """Of all ranks."""
    numbers = torch.Generator().manual_seed(step)
    return torch.randn(WORLD * ROWS, 32, generator=numbers), torch.randn(WORLD * ROWS, 8, generator=numbers)


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)


def step_of(model, optimizer, rows, goals):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(rows), goals)
    loss.backward()
    optimizer.step()
    return loss.detach()


def ddp(model):
    return nn.parallel.DistributedDataParallel(model, device_ids=[LOCAL], bucket_cap_mb=0.1)


def ddp_bf16(model):
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook  # pylint: disable=import-outside-toplevel
    model = ddp(model)
    model.register_comm_hook(None, bf16_compress_hook)
    return model


def fsdp(model):
    from torch.distributed.fsdp import FullyShardedDataParallel, wrap  # pylint: disable=import-outside-toplevel
    return FullyShardedDataParallel(model, auto_wrap_policy=wrap.ModuleWrapPolicy({nn.Linear}), device_id=LOCAL, use_orig_params=True)


def fully_shard(model):
    from torch.distributed.fsdp import fully_shard as shard  # pylint: disable=import-outside-toplevel
    for layer in model:
        if isinstance(layer, nn.Linear):
            shard(layer)
    return shard(model)


def tensor_parallel(model):
    from torch.distributed.device_mesh import init_device_mesh  # pylint: disable=import-outside-toplevel
    from torch.distributed.tensor import Replicate, parallel  # pylint: disable=import-outside-toplevel
    return parallel.parallelize_module(model, init_device_mesh("cuda", (WORLD,)), {
        "0": parallel.ColwiseParallel(output_layouts=Replicate()), "3": parallel.ColwiseParallel(), "5": parallel.RowwiseParallel()})


WAYS = {"ddp": ddp, "ddp_bf16": ddp_bf16, "zero": ddp, "fsdp": fsdp, "fully_shard": fully_shard, "tensor_parallel": tensor_parallel}


def train(way):
    model = WAYS[way](new_model().to(GPU))
    if way == "zero":
        from torch.distributed.optim import ZeroRedundancyOptimizer  # pylint: disable=import-outside-toplevel
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    else:
        optimizer = sgd(model)
    part = slice(None) if way == "tensor_parallel" else slice(RANK * ROWS, (RANK + 1) * ROWS)
    losses, began = [], time.monotonic()
    for step in range(STEPS):
        if os.environ.get("DIE") and step == 2 and RANK == WORLD - 1 and os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        rows, goals = batch(step)
        loss = step_of(model, optimizer, on_gpu(rows[part]), on_gpu(goals[part]))
        dist.all_reduce(loss, op=dist.ReduceOp.AVG)
        losses.append(loss.item())
        if step % 10 == 9:
            say(f"step {step + 1}")
    rate = STEPS / (time.monotonic() - began)
    # The same on one CPU.
    model = new_model()
    optimizer, tolerance = sgd(model), 1e-2 if way == "ddp_bf16" else 1e-4
    for step, loss in enumerate(losses):
        wanted = step_of(model, optimizer, *batch(step)).item()
        expect(abs(loss - wanted) <= tolerance * wanted, f"{way}: loss {loss} for {wanted} in step {step}")
    say(f"{way}: {STEPS} steps, {rate:.2f} steps/s, last loss {losses[-1]:.6f}")


# ---- ends ----

def absent():
    dist.all_reduce(torch.ones(1000, device=GPU))
    if RANK == 0:
        time.sleep(600)
    dist.all_reduce(torch.ones(1000, device=GPU))
    torch.cuda.synchronize()


def abort():
    for life in range(3):
        tensor = on_gpu(filled(RANK, 1000))
        dist.all_reduce(tensor)
        same(tensor, sum(filled(rank, 1000) for rank in range(WORLD)), "all_reduce")
        if RANK != WORLD - 1:
            dist.all_reduce(tensor, async_op=True)
        time.sleep(1)
        # The group by its name: without it, PyTorch 2.6 leaves the default group registered.
        dist.distributed_c10d._abort_process_group(dist.group.WORLD)  # pylint: disable=protected-access
        begin(100 + life)


def begin(life):
    os.environ["MASTER_PORT"] = str(PORT + life)
    is_eager = os.environ.get("EAGER") == "1"
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=TIMEOUT_S), device_id=GPU if is_eager else None)


def main():
    torch.cuda.set_device(GPU)
    for life, mode in enumerate(sys.argv[1:]):
        begin(life)
        if mode in WAYS:
            train(mode)
        else:
            {"collectives": collectives, "absent": absent, "abort": abort}[mode]()
        dist.destroy_process_group()
        say(f"{mode}: done")
    sys.exit(wrong > 0)


main()
