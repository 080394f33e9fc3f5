# SPDX-License-Identifier: Apache-2.0
"""victim: a cluster of network namespaces, and a job on it whose progress is watched while something
breaks. What the test scripts faults, soak and strangers share.

The job is tests/coll, with --soak: every element of every result is checked, and rank 0 writes a line when
an operation completes. Times are CLOCK_MONOTONIC's, as Python's time.monotonic()."""

import glob
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLUSTER = os.path.join(ROOT, "tests/netns/cluster")
# The plugin listens here; NCCL's own ports are left alone. The kernel takes none of these for the end that dials
# (ip_local_port_range), so they tell who connected.
PORTS = range(20000, 21000)
COMPLETION = re.compile(r'\{"at_ns": (\d+), "op": "(\w+)", "bytes": (\d+), "us": ([\d.]+), "wrong": (\d+)\}\n')
ROUND = 16  # operations, after which all ranks wait for one another (tests/coll/stress/soak.c)


class Unexpected(Exception):
    """The job, or the machine, did not do what the test counts on."""


def until(what, seconds, condition):
    """Polls; the condition's value once it is true."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Unexpected(f"still not after {seconds:g} s: {what}")
        time.sleep(0.02)


def congestion_control():
    """Of TCP, on the hosts of a cluster."""
    return subprocess.run([CLUSTER, "congestion"], capture_output=True, text=True, check=True).stdout.strip()


class Flow:
    """A TCP connection of the plugin, as the host sees it that opened it: the one that sends data."""

    def __init__(self, line):
        words = line.split()
        self.local_port, self.remote_port = (int(word.rsplit(":", 1)[1]) for word in words[2:4])
        acked = re.search(r"\bbytes_acked:(\d+)", line)
        self.bytes = int(acked[1]) if acked else 0


class Cluster:
    """Use it in a with statement."""

    def __init__(self, **options):
        self.hosts = options.get("hosts", 2)
        self.arguments = [[f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)])
                          for name, value in options.items()]

    def __enter__(self):
        self.name = ""
        self.name = self.call("up", *sum(self.arguments, [])).strip()
        return self

    def __exit__(self, *_):
        if self.name:
            subprocess.run([CLUSTER, "down", self.name], check=False)

    def call(self, *words):
        result = subprocess.run([CLUSTER, *map(str, words)], capture_output=True, text=True)
        if result.returncode:
            raise Unexpected(f"cluster {' '.join(map(str, words))}: {result.stderr.strip()}")
        return result.stdout

    def fault(self, fault, *words, for_s=None):
        """With for_s, one that heal ends: over by itself after so long, and healed all the same."""
        self.call("fault", *(["--for", int(1000 * for_s)] if for_s else []), self.name, fault, *words)

    def may_fault(self, fault, *words):
        """As fault, where nothing to break is no error."""
        command = [CLUSTER, "fault", self.name, fault, *map(str, words)]
        return subprocess.run(command, capture_output=True).returncode == 0

    def black_out(self, host):
        """Nothing comes in and nothing goes out there, ARP included, as where a hypervisor has stopped the machine."""
        chain = "chain {0} {{ type filter hook {0} priority 0; policy drop; }};"
        both = chain.format("input") + chain.format("output")
        rules = f"table inet dark {{ {both} }}; table arp dark {{ {both} }};"
        subprocess.run(self.on(host, "nft", rules), check=True, capture_output=True)

    def light_up(self, host):
        for family in ("inet", "arp"):
            subprocess.run(self.on(host, "nft", "delete", "table", family, "dark"), check=True, capture_output=True)

    def namespace(self, host):
        return f"{self.name}-h{host}"

    def on(self, host, *command):
        return ["nsenter", f"--net=/run/netns/{self.namespace(host)}", *command]

    def flows(self, host):
        """Those that this host has opened, the busiest first."""
        command = self.on(host, "ss", "-HtinO", "state", "established",
                          f"dport >= :{PORTS[0]} and dport <= :{PORTS[-1]}")
        listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return sorted(map(Flow, listing.splitlines()), key=lambda flow: -flow.bytes)

    def count_flows(self, host):
        """Those of this host, whichever end opened them."""
        ports = " or ".join(f"( {end} >= :{PORTS[0]} and {end} <= :{PORTS[-1]} )" for end in ("sport", "dport"))
        command = self.on(host, "ss", "-Htn", "state", "established", ports)
        return len(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines())

    def bucket(self, host, flow):
        """Its flow bucket, and so its path's rate."""
        for line in self.call("flows", self.name, host).splitlines():
            _, _, port, _, remote_port, bucket = line.split()
            if (int(port), int(remote_port)) == (flow.local_port, flow.remote_port):
                return bucket
        raise Unexpected(f"flow from port {flow.local_port} is gone")

    def ports(self, host):
        """On which the plugin listens there."""
        command = self.on(host, "ss", "-Hltn", f"sport >= :{PORTS[0]} and sport <= :{PORTS[-1]}")
        listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return sorted({int(line.split()[3].rsplit(":", 1)[1]) for line in listing.splitlines()})


class Completion:
    """One operation that is done."""

    def __init__(self, match):
        self.at = int(match[1]) / 1e9
        self.operation = match[2]
        self.bytes = int(match[3])
        self.seconds = float(match[4]) / 1e6
        self.wrong = int(match[5])


class Job:
    """A job on all hosts of a cluster, one rank on each. Use it in a with statement."""

    def __init__(self, cluster, arguments, env=(), limit_s=120, nccl="sid"):
        self.cluster, self.nccl = cluster, nccl
        self.limit_s, self.arguments = limit_s, ["-T", f"{limit_s + 30}s", *map(str, arguments)]
        self.env = {"NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "eth", "NCCL_NET_PLUGIN": "stratus",
                    "STRATUS_PORT_RANGE": f"{PORTS[0]}-{PORTS[-1]}", "NCCL_DEBUG": "INFO", **dict(env)}

    def __enter__(self):
        self.scratch = tempfile.mkdtemp(prefix="victim-")
        library = os.path.join(ROOT, "build/fake_cuda/lib")
        env = {**os.environ, **self.env,
               "LD_LIBRARY_PATH": f"{ROOT}/build/lib:{library}/{self.nccl}:{library}",
               "NCCL_DEBUG_FILE": f"{self.scratch}/nccl.%p"}
        self.output = open(f"{self.scratch}/output", "w", encoding="utf-8")
        self.started = time.monotonic()
        self.process = subprocess.Popen([*self.command(), *self.arguments], env=env, stdin=subprocess.DEVNULL, stdout=self.output,
                                        stderr=subprocess.STDOUT, preexec_fn=be_patient)
        return self

    def command(self):
        return [f"{ROOT}/build/tests/coll/coll", "--hosts", self.cluster.call("hosts", self.cluster.name).strip(),
                "--soak", f"{self.limit_s}s", "--log", f"{self.scratch}/log"]

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            for host in range(self.cluster.hosts):  # a stopped rank does not hear that it is to end
                for pid in self.pids(host):
                    os.kill(pid, signal.SIGKILL)
            self.process.kill()
            self.process.wait()
        self.output.close()
        if kind:
            print(f"# the logs of its ranks: {self.scratch}", flush=True)
        else:
            shutil.rmtree(self.scratch)

    # ---- what it does ----

    def completions(self):
        try:
            with open(f"{self.scratch}/log", encoding="utf-8") as log:
                return [Completion(match) for match in COMPLETION.finditer(log.read())]
        except FileNotFoundError:
            return []

    def run_for(self, seconds):
        """Lets it run; an error if it ends meanwhile."""
        end = time.monotonic() + seconds
        while True:
            if self.process.poll() is not None:
                raise Unexpected(f"the job has ended: {self.last_words()}")
            if time.monotonic() >= end:
                break
            time.sleep(0.02)

    def until_running(self, operations=3, seconds=40):
        def is_running():
            self.run_for(0)
            return len(self.completions()) >= operations
        until("the job runs", seconds, is_running)

    def pids(self, host):
        listing = subprocess.run(["ip", "netns", "pids", self.cluster.namespace(host)],
                                 capture_output=True, text=True).stdout
        return [int(pid) for pid in listing.split() if is_rank(int(pid))]

    def pid(self, host):
        pids = self.pids(host)
        if len(pids) != 1:
            raise Unexpected(f"host {host} has ranks {pids}")
        return pids[0]

    # ---- how it ends ----

    def end(self, seconds=40):
        """Tells it to end; the exit status."""
        os.kill(self.pid(0), signal.SIGUSR1)
        return self.wait(seconds)

    def wait(self, seconds):
        """Waits until it ends by itself; the exit status."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Unexpected(f"the job hangs: it did not end within {seconds:g} s; "
                             f"{self.last_words()}") from None

    def said(self, pattern, pid=None):
        """Lines of NCCL's log, of one rank or of all, that match."""
        lines = []
        for path in glob.glob(f"{self.scratch}/nccl.{pid or '*'}"):
            with open(path, encoding="utf-8", errors="replace") as log:
                lines += [line.rstrip("\n") for line in log if re.search(pattern, line)]
        return lines

    def has_ended_between_operations(self):
        """A rank saw another one go before NCCL, and so stratus, had anything to report."""
        return " has gone" in self.printed()

    def printed(self):
        with open(f"{self.scratch}/output", encoding="utf-8", errors="replace") as output:
            return output.read()

    def last_words(self):
        text = [line for line in self.printed().splitlines() if line and not line.startswith("#")]
        warnings = [re.sub(r"^.*? NCCL WARN ", "", line) for line in self.said("WARN NET/stratus")]
        status = [f"exit status {self.process.returncode}"] if self.process.poll() is not None else []
        return " | ".join(status + text[:2] + text[2:][-4:] + warnings[-6:]) or "(it said nothing)"

    def sum_up(self):
        """(operations, wrong elements) of a job that has ended well."""
        match = re.search(r"^# (\d+) operations, .*: (\d+) wrong$", self.printed(), re.M)
        if not match:
            raise Unexpected(f"the job did not end well: {self.last_words()}")
        return int(match[1]), int(match[2])


def be_prompt():
    """The job computes without pause, on all processors, and what breaks it has to be on time. Both must
    be in one session: Linux weighs sessions against each other, whatever the nice values within them."""
    os.nice(-10)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that clusters are removed


def be_patient():
    os.nice(10)


def is_rank(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as comm:
            return comm.read().strip() == "coll"
    except OSError:
        return False


def threads(pid):
    """What each thread of it does: its name, its state, and where in the kernel it waits."""
    found = []
    for task in glob.glob(f"/proc/{pid}/task/*"):
        try:
            with open(f"{task}/stat", encoding="utf-8") as stat, open(f"{task}/wchan", encoding="utf-8") as wchan:
                name, state = re.search(r"\((.*)\) (\w)", stat.read()).groups()
                found.append(f"{name} {state} {wchan.read()}")
        except OSError:
            pass  # it has ended
    return found


def memory_mib(pid):
    """What the process has resident that is its own: not its libraries, nor what GPUs share."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return int(re.search(r"^RssAnon:\s+(\d+) kB", status.read(), re.M)[1]) / 1024


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


# ---- figures ----

def bandwidth(completions, begin, end):
    """GB/s of what completed in that time, while it was in progress; None if nothing did."""
    done = [c for c in completions if begin <= c.at - c.seconds and c.at <= end]
    seconds = sum(c.seconds for c in done)
    return sum(c.bytes for c in done) / seconds / 1e9 if seconds else None


def goodput(completions, begin, end):
    """GB/s by the clock on the wall: what was in the middle of something counts as nothing."""
    return sum(c.bytes for c in completions if begin <= c.at <= end) / (end - begin) / 1e9


def stall(completions, begin, end):
    """Seconds of the longest time without a completion that begins before `end` and ends after `begin`,
    less what is normal."""
    gaps = [(b.at - a.at, a.at, b.at) for a, b in zip(completions, completions[1:])]
    normal = statistics.median([gap for gap, _, after in gaps if after < begin] or [0])
    within = [gap for gap, before, after in gaps if after > begin and before < end]
    return max(0.0, max(within, default=0.0) - normal)


def recovery(completions, begin, wanted_gbs, window_s=0.5):
    """Seconds from `begin` until the bandwidth of the operations in a window is as wanted; None if never."""
    after = [c for c in completions if c.at > begin]
    for c in after:
        if c.at + window_s > after[-1].at:
            return None
        rate = bandwidth(after, c.at - c.seconds, c.at + window_s)
        if rate and rate >= wanted_gbs:
            return max(0.0, c.at - c.seconds - begin)
    return None
