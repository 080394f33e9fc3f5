# SPDX-License-Identifier: Apache-2.0
"""Runs things: processes with a limit, clusters of network namespaces, CPUs for each host.

Whatever was started or made is ended and removed by close(), which the caller must reach."""
import argparse
import os
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLUSTER = "tests/netns/cluster"


class Failure(Exception):
    """A measurement that could not be made. The text goes into the row."""


def say(text):
    print(f"{os.path.basename(sys.argv[0]).removesuffix('.py')}: {text}", file=sys.stderr, flush=True)


def tail(text, lines=3):
    kept = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(kept[-lines:])[-400:]


def number_in(low, high, convert=int):
    """A type of argparse."""
    def parse_number(word):
        try:
            value = convert(word)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"'{word}': {low} to {high}")
        return value
    return parse_number


def install(*groups):
    if subprocess.run(["scripts/install-deps", *groups], cwd=ROOT, stdout=sys.stderr, check=False).returncode:
        raise Failure("packages are missing")


def build(*words):
    """By make."""
    done = subprocess.run(["make", "-s", f"-j{os.cpu_count()}", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"make {' '.join(words)} failed:\n{(done.stdout + done.stderr)[-3000:]}")


def build_nccl(suites=("sid", "trixie")):
    """The suite of Debian whose NCCL there is now, for the emulated GPU: the first that can be had."""
    for suite in suites:
        try:
            build("nccl", f"SUITE={suite}")
            return suite
        except Failure as failure:
            say(str(failure))
    raise Failure("no NCCL could be built; the output is above")


def cpus_of_host(host, hosts):
    """The CPUs that a host's processes are kept to, as --split-cpus of coll shares them out;
    with fewer CPUs than hosts all of them."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < hosts:
        return cpus
    share = len(cpus) // hosts
    return cpus[host * share:(host + 1) * share]


class Runner:
    """Starts processes and clusters, and knows which are left."""

    def __init__(self):
        self.processes = []
        self.clusters = []
        self.serial = 0
        self.retries = 0  # of measurements, which Bench.retrying counts

    # ---- processes ----

    def start(self, argv, environment=None, stderr=subprocess.PIPE):
        process = subprocess.Popen(
            argv, cwd=ROOT, env={**os.environ, **(environment or {})}, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=stderr, start_new_session=True)
        self.processes.append(process)
        return process

    def finish(self, process, limit_s):
        """(exit status, stdout, stderr); after `limit_s` it is ended: a Failure."""
        try:
            out, err = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            self.kill(process)
            out, err = process.communicate()
            raise Failure(f"no end after {limit_s:.0f} s: {tail(err or out)}") from None
        self.processes.remove(process)
        return process.returncode, out, err

    def kill(self, process):
        """Politely first: coll ends its ranks, and the tests remove their clusters."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(timeout=5)
                break
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
        if process in self.processes:
            self.processes.remove(process)

    def run(self, argv, limit_s=60, environment=None):
        status, out, err = self.finish(self.start(argv, environment), limit_s)
        if status != 0:
            raise Failure(f"{os.path.basename(argv[0])}: exit status {status}: {tail(err or out)}")
        return out

    # ---- clusters ----

    def cluster_up(self, options):
        self.serial += 1
        name = f"bench{os.getpid()}n{self.serial}"
        self.clusters.append(name)
        self.run([CLUSTER, "up", name, *options])
        return name

    def cluster_down(self, name):
        self.run([CLUSTER, "down", name])
        self.clusters.remove(name)

    def on_host(self, cluster, host, argv):
        """The words that run a command on a host of a cluster."""
        return ["ip", "netns", "exec", f"{cluster}-h{host}", *argv]

    def until(self, condition, limit_s, what):
        end = time.monotonic() + limit_s
        while not condition():
            if time.monotonic() > end:
                raise Failure(f"{what}: not within {limit_s} s")
            time.sleep(0.02)

    def close(self):
        for process in list(self.processes):
            self.kill(process)
        for name in list(self.clusters):
            subprocess.run([CLUSTER, "down", name], cwd=ROOT, check=False)
            self.clusters.remove(name)
