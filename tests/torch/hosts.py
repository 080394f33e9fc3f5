# SPDX-License-Identifier: Apache-2.0
"""Hosts of tests/netns/cluster that have build/torch/root for their file system, and jobs on them: a process on each, which is a rank or
torchrun."""
import os
import re
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.join(ROOT, "tests/torch")
CLUSTER = os.path.join(ROOT, "tests/netns/cluster")
SYSTEM = os.path.join(ROOT, "build/torch/root")
TRANSPORTS = {"socket": {"NCCL_NET_PLUGIN": "none"},
              "stratus": {"NCCL_NET_PLUGIN": "stratus", "NCCL_TUNER_PLUGIN": "libnccl-tuner-stratus.so"},
              "alone": {},  # NCCL's choice
              "": {}}  # what stratus run sets
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a time limit: with statements are left


class Unexpected(Exception):
    """What is not as it should be, and in `output` what the ranks have said last."""

    def __init__(self, text, output=""):
        super().__init__(text)
        self.output = output


class Hosts:
    """In a with statement. Options are those of `cluster up`."""

    def __init__(self, count=2, *options):
        self.count, self.options, self.name = count, options, ""

    def __enter__(self):
        self.name = subprocess.run([CLUSTER, "up", "--hosts", str(self.count), *self.options], capture_output=True, text=True,
                                   check=True).stdout.strip()
        return self

    def __exit__(self, *_):
        subprocess.run([CLUSTER, "down", self.name], check=False)

    def fault(self, *words):
        subprocess.run([CLUSTER, "fault", self.name, *map(str, words)], check=True, capture_output=True, text=True)

    def start(self, host, command, variables, log):
        """The process of the command itself: all that is between becomes it."""
        inside = [os.path.join(ROOT, "tests/package/chroot"), "run", SYSTEM, "--bind", f"{ROOT}:{ROOT}", *command]
        return subprocess.Popen(
            ["ip", "netns", "exec", f"{self.name}-h{host}", "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', f"host{host}",
             *inside], env={**os.environ, **variables}, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd="/",
            start_new_session=True)


def variables_of(hosts, host, transport, suite):
    emulated = os.path.join(ROOT, "build/fake_cuda/lib")
    libraries = [os.path.join(ROOT, "build/lib"), f"{emulated}/{suite}", emulated, os.path.join(ROOT, "build/torch/lib")]
    return {"LD_LIBRARY_PATH": ":".join(libraries), "PYTHONPATH": os.path.join(HERE, "site"), "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1", "NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "eth0", "GLOO_SOCKET_IFNAME": "eth0",
            "NCCL_DEBUG": "INFO", "NCCL_HOSTID": f"{hosts.name}-{host}",
            "FAKE_CUDA_WAIT_FOR_PROXY": "1" if transport in ("socket", "alone") else "0", **TRANSPORTS[transport]}


class Job:
    """`command` on each host, in a with statement, which ends it. What it prints is in files of the directory."""

    def __init__(self, hosts, command, transport="stratus", directory=".", suite="sid", **variables):
        self.processes, self.logs = [], []
        for host in range(hosts.count):
            ranks = {"RANK": str(host), "WORLD_SIZE": str(hosts.count), "LOCAL_RANK": "0", "MASTER_ADDR": "10.77.0.1",
                     "MASTER_PORT": "29500"}
            self.logs.append(os.path.join(directory, f"{hosts.name}.{host}"))
            with open(self.logs[-1], "w", encoding="utf-8") as log:
                words = [word.replace("{host}", str(host)) for word in command]
                self.processes.append(hosts.start(host, words, {**variables_of(hosts, host, transport, suite), **ranks,
                                                                **variables}, log))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def said(self, host=None):
        text = ""
        for log in self.logs if host is None else [self.logs[host]]:
            with open(log, encoding="utf-8", errors="replace") as file:
                text += file.read()
        return text

    def unexpected(self, text):
        lines = [line for line in self.said().splitlines() if " NCCL INFO " not in line]
        return Unexpected(text, "\n".join(lines[-25:]))

    def until(self, pattern, seconds=90, host=0):
        """A host has said so."""
        deadline = time.monotonic() + seconds
        while True:
            is_over = time.monotonic() > deadline or self.processes[host].poll() is not None
            if re.search(pattern, self.said(host)):
                return
            if is_over:
                raise self.unexpected(f"host {host} has not said '{pattern}'")
            time.sleep(0.02)

    def ends(self, seconds=150, hosts=None):
        """When each of the hosts' processes (all) has ended, in seconds of the monotonic clock, and their statuses."""
        hosts = range(len(self.processes)) if hosts is None else hosts
        deadline, ended = time.monotonic() + seconds, {}
        while len(ended) < len(hosts):
            for host in hosts:
                if host not in ended and self.processes[host].poll() is not None:
                    ended[host] = time.monotonic()
            if time.monotonic() > deadline:
                raise self.unexpected(f"not over within {seconds} s: hosts {[host for host in hosts if host not in ended]}")
            time.sleep(0.01)
        return [ended[host] for host in hosts], [self.processes[host].returncode for host in hosts]

    def succeeds(self, seconds=150):
        """All ranks end, and none has seen anything wrong."""
        statuses = self.ends(seconds)[1]
        if any(statuses) or "WRONG" in self.said():
            raise self.unexpected(f"statuses {statuses}")

    def has_said(self, *patterns):
        for pattern in patterns:
            if not re.search(pattern, self.said()):
                raise self.unexpected(f"nothing says '{pattern}'")

    def used(self, network):
        """Each of the ranks' communicators."""
        networks = set(re.findall(r"Using network (\S+)", self.said()))
        if networks != {network}:
            raise self.unexpected(f"NCCL used {sorted(networks)}, not {network}")
