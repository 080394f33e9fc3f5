# SPDX-License-Identifier: Apache-2.0
"""An ordinary script of training: ResNet-50's layers, DistributedDataParallel, automatic mixed precision. Rank 0 prints the loss of each
step and how long it took.

usage: torchrun ... resnet50.py [STEPS]"""
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

IMAGES, PIXELS, CLASSES = 2, 32, 1000  # of a rank in a step; small, so that the computing is short


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
        self.shortcut = nn.Identity()
        if channels != 4 * width:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, images):
        return torch.relu(self.layers(images) + self.shortcut(images))


def resnet50():
    layers, channels = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            layers.append(Bottleneck(channels, width, 2 if stage and not block else 1))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    dist.init_process_group("nccl")
    rank, local = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    torch.manual_seed(1)
    model = nn.parallel.DistributedDataParallel(resnet50().cuda(), device_ids=[local])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")
    torch.manual_seed(2 + rank)
    for step in range(steps):
        images = torch.randn(IMAGES, 3, PIXELS, PIXELS).cuda()
        labels = torch.randint(CLASSES, (IMAGES,)).cuda()
        begin = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = nn.functional.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        torch.cuda.synchronize()
        if rank == 0:
            print(f"step {step}: {time.perf_counter() - begin:.4f} s, loss {loss.item():.6f}", flush=True)
    dist.destroy_process_group()


main()
