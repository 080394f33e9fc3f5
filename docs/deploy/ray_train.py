# SPDX-License-Identifier: Apache-2.0
"""A training job of Ray through stratus. Ray starts its workers from daemons that have not seen the driver's variables, so
these go into the runtime environment. stratus is at the same place on all nodes; what the user has set stays."""

import os
import subprocess

PREFIX = os.environ.get("STRATUS_PREFIX", "/opt/stratus")


def stratus_variables():
    """{name: value} of what makes NCCL use stratus."""
    lines = subprocess.run([f"{PREFIX}/bin/stratus", "env", "--for", "env-file"], check=True, stdout=subprocess.PIPE,
                           text=True).stdout
    return dict(line.split("=", 1) for line in lines.splitlines())


def train_loop():
    import ray.train.torch  # pylint: disable=import-outside-toplevel
    import torch  # pylint: disable=import-outside-toplevel

    device = ray.train.torch.get_device()
    gradients = torch.ones(1 << 20, device=device)
    torch.distributed.all_reduce(gradients)
    ray.train.report({"sum": gradients[0].item()})


def main():
    import ray  # pylint: disable=import-outside-toplevel
    from ray.train import ScalingConfig  # pylint: disable=import-outside-toplevel
    from ray.train.torch import TorchTrainer  # pylint: disable=import-outside-toplevel

    ray.init(runtime_env={"env_vars": stratus_variables()})
    print(TorchTrainer(train_loop, scaling_config=ScalingConfig(num_workers=16, use_gpu=True)).fit())


if __name__ == "__main__":
    main()
