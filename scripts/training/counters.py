# SPDX-License-Identifier: Apache-2.0
"""How busy CPUs and NICs were, at any time of a launch: their counters are read all the time by a thread."""
import bisect
import threading
import time

PERIOD_S = 0.02  # the shortest step; reading takes a fraction of a millisecond. Between, it is interpolated
READ_NS_MAX = 4_000_000  # a sample whose reading was interrupted for longer has no time: it is not taken


def cpu_ticks():
    """(busy, all) of all CPUs, in ticks. What the machine's host gave to others counts as busy: it was wanted."""
    with open("/proc/stat", encoding="utf-8") as file:
        values = [int(word) for word in file.readline().split()[1:9]]
    idle = values[3] + values[4]
    return sum(values) - idle, sum(values)


def sent_bytes(pid, nic):
    """Of a NIC in the network namespace of a process."""
    with open(f"/proc/{pid}/net/dev", encoding="utf-8") as file:
        for line in file:
            name, _, counters = line.partition(":")
            if name.strip() == nic:
                return int(counters.split()[8])
    return 0


class Counters:
    """`with Counters(runner, cluster, hosts) as counters:` while a launch runs, then counters.between()."""

    def __init__(self, runner, cluster, hosts, nic="eth0"):
        self.runner, self.nic = runner, nic
        # A process in each namespace, through which its counters can be read from here.
        self.holders = [runner.start(runner.on_host(cluster, host, ["sleep", "infinity"])) for host in range(hosts)]
        self.samples = []  # (time in ns of CLOCK_MONOTONIC, bytes of all hosts, busy ticks, all ticks)
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.is_over.wait(PERIOD_S):
            self.take()

    def take(self):
        """Whether there is a sample more."""
        began_ns = time.monotonic_ns()
        sample = sum(sent_bytes(each.pid, self.nic) for each in self.holders), *cpu_ticks()
        took_ns = time.monotonic_ns() - began_ns
        if took_ns > READ_NS_MAX:
            return False
        self.samples.append((began_ns + took_ns // 2, *sample))
        return True

    def take_surely(self):
        while not self.take():
            pass

    def __enter__(self):
        self.take_surely()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()
        self.take_surely()
        for each in self.holders:
            self.runner.kill(each)

    def between(self, from_ns, to_ns):
        """(bytes that all hosts sent, part of the CPUs' time that was used) between two times."""
        first, last = interpolated(self.samples, from_ns), interpolated(self.samples, to_ns)
        sent, busy, whole = (b - a for a, b in zip(first, last))
        return sent, min(1, busy / whole) if whole > 0 else None

    def cpu_busy(self):
        return self.between(self.samples[0][0], self.samples[-1][0])[1]


def interpolated(samples, at):
    """The counters at a time, of samples that begin with their times."""
    place = bisect.bisect_left(samples, (at,))
    if place in (0, len(samples)):
        return samples[min(place, len(samples) - 1)][1:]
    before, after = samples[place - 1], samples[place]
    part = (at - before[0]) / (after[0] - before[0])
    return tuple(a + part * (b - a) for a, b in zip(before[1:], after[1:]))
