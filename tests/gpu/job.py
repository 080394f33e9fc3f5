# SPDX-License-Identifier: Apache-2.0
"""Starts the ranks of one job, each a host to NCCL (NCCL_HOSTID), so that several can share a GPU and talk by the network."""
import json
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CLUSTER = os.path.join(ROOT, "tests/netns/cluster")
PORT = 29560
LOG_LINES = 12  # of a rank that failed


class Failed(Exception):
    """What a job or a cluster says of why it ended."""


class Cluster:
    """Emulated hosts with caps, one for each rank. Use it in a with statement."""

    def __init__(self, hosts, nic_gbps, flow_gbps):
        self.shape = ["--hosts", str(hosts), "--nic-gbps", str(nic_gbps), "--flow-gbps", str(flow_gbps)]
        self.name = ""

    def __enter__(self):
        made = subprocess.run([CLUSTER, "up", *self.shape], capture_output=True, text=True, check=False)
        if made.returncode:
            raise Failed(f"no emulated hosts: {made.stderr.strip().splitlines()[-1:]}")
        self.name = made.stdout.strip()
        return self

    def __exit__(self, *_):
        subprocess.run([CLUSTER, "down", self.name], check=False)

    address = "10.77.0.1"
    interface = "eth0"

    def on(self, host, command):
        return [CLUSTER, "exec", self.name, str(host), *command]


class Here:
    """No emulated hosts: all ranks talk over loopback, and nothing is capped."""
    address = "127.0.0.1"
    interface = "lo"

    def on(self, _host, command):
        return list(command)


def rank_environment(place, rank, ranks, more):
    environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": "0", "MASTER_ADDR": place.address,
                   "MASTER_PORT": str(PORT), "NCCL_HOSTID": f"emulated-{rank}", "NCCL_IB_DISABLE": "1",
                   "NCCL_SOCKET_IFNAME": f"={place.interface}", "GLOO_SOCKET_IFNAME": place.interface, "NCCL_DEBUG": "INFO",
                   "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV", "CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0],
                   "PYTHONDONTWRITEBYTECODE": "1"}
    libraries = os.path.join(ROOT, "build/lib")
    environment["LD_LIBRARY_PATH"] = ":".join(filter(None, [libraries, os.environ.get("LD_LIBRARY_PATH", "")]))
    environment.update(more)
    return environment


def end(process):
    """With all that it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(processes, limit_s):
    """None, or what went wrong. A rank that fails leaves the others waiting, so all end then."""
    deadline = time.monotonic() + limit_s
    while any(process.poll() is None for process in processes):
        bad = [rank for rank, process in enumerate(processes) if process.poll()]
        if bad:
            return f"rank {bad[0]} ended with status {processes[bad[0]].returncode}"
        if time.monotonic() > deadline:
            return f"not over within {limit_s:.0f} s"
        time.sleep(0.05)
    bad = [rank for rank, process in enumerate(processes) if process.returncode]
    return f"rank {bad[0]} ended with status {processes[bad[0]].returncode}" if bad else None


def tail(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return "".join(file.readlines()[-LOG_LINES:])


def run(place, ranks, backend, modes, variables, directory, limit_s, program=os.path.join(HERE, "train.py")):
    """(what each rank found, the text of all logs). Failed says why, with the end of a log."""
    os.makedirs(directory, exist_ok=True)
    processes, logs = [], [os.path.join(directory, f"{rank}.log") for rank in range(ranks)]
    outs = [os.path.join(directory, f"{rank}.json") for rank in range(ranks)]
    try:
        for rank in range(ranks):
            command = place.on(rank, [sys.executable, "-u", program, backend, outs[rank], *modes])
            with open(logs[rank], "w", encoding="utf-8") as log:
                processes.append(subprocess.Popen(command, env=rank_environment(place, rank, ranks, variables), stdout=log,
                                                  stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True))
        problem = wait_for(processes, limit_s)
    finally:
        for process in processes:
            end(process)
    if problem:
        bad = next((rank for rank, process in enumerate(processes) if process.returncode > 0), 0)
        raise Failed(f"{problem}; its log ends:\n{tail(logs[bad])}")
    found = []
    for out in outs:
        with open(out, encoding="utf-8") as file:
            found.append(json.load(file))
    said = []
    for log in logs:
        with open(log, encoding="utf-8", errors="replace") as file:
            said.append(file.read())
    return found, said
