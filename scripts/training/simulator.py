# SPDX-License-Identifier: Apache-2.0
"""Runs build/tests/scale, the simulation of many hosts (tests/scale/README.md)."""
import json
import os
import subprocess

from benchmark.run import ROOT, Failure

SIMULATOR = os.path.join(ROOT, "build/tests/scale")
# An ideal transport has no cost at all: only the rate of the NIC bounds it.
FREE = ["--hop", "0", "--launch", "0", "--inside", "0", "--copy-ps", "0"]


def simulate(transport, workloads, hosts, options):
    """The results that it writes. Workloads: names, or files."""
    argv = [SIMULATOR, "--transport", transport, "--workloads", ",".join(workloads),
            "--hosts", ",".join(str(each) for each in hosts), *options]
    try:
        result = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Failure("build/tests/scale is missing: make tests-scale") from None
    if result.returncode != 0:
        raise Failure(f"{' '.join(argv)}: {result.stderr.strip()}")
    return json.loads(result.stdout)["results"]
