# SPDX-License-Identifier: Apache-2.0
"""One rank of a job: torch.distributed as anybody uses it, without a word about stratus. RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT are torchrun's.

usage: train.py BACKEND OUT MODE...    BACKEND nccl or gloo; MODE of ddp, fsdp, bandwidth. Writes what it found to OUT, as JSON:
                                       of ddp and fsdp the losses and steps per second, of bandwidth GB/s and wrong values"""
import json
import os
import sys
import time

import torch
import torch.distributed
from torch import nn

STEPS_COMPARED = 5  # losses of the first steps are told, all others only timed
SECONDS = {"nccl": 5.0, "gloo": 0.5}  # a measurement, and at least STEPS_LEAST
STEPS_LEAST, STEPS_MOST = 3, 400
# MLP blocks of a transformer, and rows of a batch: 75 MB of gradients in float32, that one GPU computes within milliseconds.
SHAPES = {"nccl": {"width": 768, "blocks": 4, "rows": 256}, "gloo": {"width": 64, "blocks": 2, "rows": 8}}
BANDWIDTH_ELEMENTS = {"nccl": 8 << 20, "gloo": 1 << 20}  # of 4 bytes


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Rank:
    def __init__(self, backend):
        self.backend = backend
        self.number, self.ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.device = torch.device("cuda", 0) if backend == "nccl" else torch.device("cpu")
        if backend == "nccl":
            torch.cuda.set_device(self.device)
        torch.distributed.init_process_group(backend)

    def finish(self):
        if self.backend == "nccl":
            torch.cuda.synchronize()

    def agree(self, value):
        """Rank 0's value."""
        told = torch.tensor([float(value)], device=self.device)
        torch.distributed.broadcast(told, 0)
        return told.item()

    def timed(self, step):
        """How often step() runs in a second: as many times as rank 0 says, so that no rank waits for another."""
        self.finish()
        begin = time.perf_counter()
        step()
        self.finish()
        guess = time.perf_counter() - begin
        count = int(self.agree(min(STEPS_MOST, max(STEPS_LEAST, SECONDS[self.backend] / guess))))
        self.finish()
        begin = time.perf_counter()
        for _ in range(count):
            step()
        self.finish()
        return count / (time.perf_counter() - begin)

    def model(self):
        torch.manual_seed(1)
        shape = SHAPES[self.backend]
        return nn.Sequential(*(Block(shape["width"]) for _ in range(shape["blocks"]))).to(self.device)

    def ddp(self):
        device_ids = [0] if self.backend == "nccl" else None
        return nn.parallel.DistributedDataParallel(self.model(), device_ids=device_ids)

    def fsdp(self):
        """Of PyTorch 2.6 and later the second one, of earlier ones the first."""
        import torch.distributed.fsdp as fsdp  # pylint: disable=import-outside-toplevel
        model = self.model()
        if hasattr(fsdp, "fully_shard"):
            for block in model:
                fsdp.fully_shard(block)
            fsdp.fully_shard(model)
            return model
        blocks = [fsdp.FullyShardedDataParallel(block, device_id=self.device.index) for block in model]
        return fsdp.FullyShardedDataParallel(nn.Sequential(*blocks), device_id=self.device.index)

    def train(self, model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        torch.manual_seed(100 + self.number)
        shape = SHAPES[self.backend]
        rows = torch.randn(shape["rows"], shape["width"], device=self.device)
        losses = []

        def step():
            optimizer.zero_grad(set_to_none=True)
            loss = (model(rows) - rows.flip(1)).square().mean()
            loss.backward()
            optimizer.step()
            if len(losses) < STEPS_COMPARED:
                told = loss.detach().clone()
                torch.distributed.all_reduce(told)
                losses.append(told.item() / self.ranks)
        for _ in range(STEPS_COMPARED):
            step()
        return {"losses": losses, "steps_per_second": self.timed(step)}

    def bandwidth(self):
        """Of AllReduce, as nccl-tests counts its bus bandwidth. Sums of whole numbers, which are right in any order; timed are
        maxima of random ones, which stay what they are, and which nothing compresses."""
        ones = torch.arange(BANDWIDTH_ELEMENTS[self.backend], device=self.device, dtype=torch.float32).remainder_(1000)
        expected = ones * (self.ranks * (self.ranks + 1) // 2)
        tensor = ones * (self.number + 1)
        torch.distributed.all_reduce(tensor)
        wrong = int((tensor != expected).sum().item())
        torch.manual_seed(1)
        tensor = torch.randint(-(1 << 31), 1 << 31, tensor.shape, dtype=torch.int64).to(torch.int32).to(self.device)
        rate = self.timed(lambda: torch.distributed.all_reduce(tensor, torch.distributed.ReduceOp.MAX))
        bytes_ = 2 * (self.ranks - 1) / self.ranks * tensor.numel() * 4
        return {"gbps": rate * bytes_ / 1e9, "wrong_values": wrong}

    def run(self, mode):
        if mode == "bandwidth":
            return self.bandwidth()
        try:
            model = self.ddp() if mode == "ddp" else self.fsdp()
        except (ImportError, ValueError) as error:  # this PyTorch has none
            return {"skipped": f"{type(error).__name__}: {error}"}
        return self.train(model)


def main():
    backend, out, *modes = sys.argv[1:]
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    rank = Rank(backend)
    found = {"rank": rank.number, "torch": torch.__version__}
    if backend == "nccl":
        found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
        found["gpu"] = torch.cuda.get_device_name(0)
    for mode in modes:
        found[mode] = rank.run(mode)
    rank.finish()
    with open(out, "w", encoding="utf-8") as file:
        json.dump(found, file)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
