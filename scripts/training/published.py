# SPDX-License-Identifier: Apache-2.0
"""Measurements of training that others published, to which our method is compared."""
import dataclasses

GPUS = 8  # of each machine, in all of them


@dataclasses.dataclass(frozen=True)
class Series:
    """Images per second of all machines together, by batch and number of machines."""
    name: str
    gradient_type: str
    optimizer_us: float  # scripts/workloads: by the bytes that the optimizer moves
    images_per_second: dict

    def step_us(self, batch, machines):
        return GPUS * machines * batch / self.images_per_second[batch][machines] * 1e6

    def scaling(self, batch, machines):
        return self.images_per_second[batch][machines] / machines / self.images_per_second[batch][1]

    def points(self):
        return [(machines, batch) for machines in (2, 4) for batch in self.images_per_second]


# FleetX's VGG16: 8 V100 a machine, one 100 Gb/s InfiniBand NIC, NCCL 2.4.7; 20 steps skipped, mean of the next 100, median
# of 7 runs. PaddleFleetX, docs/source/paddle_fleet/fleet_benchmark_vgg16_cn.md. With AMP, Paddle sends gradients of 16
# bits (update_role_var_grad of its mixed precision optimizer: "gradients transferred across GPUs is FP16").
FLEETX_AMP = Series("AMP", "float16", 5880.2, {
    32: {1: 3332.17, 2: 5136.50, 4: 9544.81},
    64: {1: 3708.32, 2: 7112.45, 4: 14013.01},
    128: {1: 3892.58, 2: 7618.34, 4: 15219.57},
    256: {1: 3409.96, 2: 6779.20, 4: 13443.23}})
FLEETX_FP32 = Series("FP32", "float32", 3458.9, {
    32: {1: 1888.20, 2: 2873.18, 4: 5548.48},
    64: {1: 1980.04, 2: 3900.12, 4: 7617.47},
    128: {1: 2027.06, 2: 4028.78, 4: 7848.70}})

# AIACC-ACSpeed's ResNet-50 with AMP: batch 32, samples per second of one GPU on 1 and 2 machines.
RESNET50_BATCH = 32
RESNET50 = {"DDP": {1: 440, 2: 351}, "ACSpeed": {1: 597, 2: 449}}
