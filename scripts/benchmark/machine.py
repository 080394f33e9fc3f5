# SPDX-License-Identifier: Apache-2.0
"""What a result was measured on and with: the head of the table."""
import os
import platform
import re
import subprocess
import time

from benchmark.run import CLUSTER, ROOT, Failure


def output(*argv):
    """Of a program, or nothing where there is none."""
    try:
        return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        match = re.search(r"^model name\s*:\s*(.*)$", file.read(), re.MULTILINE)
    return match.group(1) if match else platform.machine()


def nccl_release():
    """As the library says itself."""
    with open(os.path.join(ROOT, "build/fake_cuda/lib/sid/libnccl.so.2"), "rb") as file:
        match = re.search(rb"NCCL version (\d+\.\d+\.\d+)", file.read())
    return match.group(1).decode() if match else "unknown"


def has_changes():
    return output("git", "status", "--porcelain", "--untracked-files=no") != ""


def commit():
    return f"{output('git', 'rev-parse', '--short', 'HEAD') or 'unknown'}{' with changes' if has_changes() else ''}"


def stratus_version():
    return f"{output('build/bin/stratus', '--version') or 'stratus'}, commit {commit()}"


def cpu_times():
    """(ticks of all CPUs that were wanted, those of them that the machine's host gave to others), since it was booted."""
    with open("/proc/stat", encoding="utf-8") as file:
        times = list(map(int, file.readline().split()[1:9]))
    return sum(times) - sum(times[3:5]), times[7]  # without idle and iowait; steal


def stolen_since(before):
    """How much of it was missing since `before`, a cpu_times(): a virtual machine may be slower than an hour ago."""
    wanted, stolen = (now - then for now, then in zip(cpu_times(), before))
    return f"{100 * stolen / max(1, wanted):.0f} % of the CPU time that was wanted (steal)"


def congestion_control():
    """Of TCP, on emulated hosts. A Failure where there is none as it is wanted (NETNS_CONGESTION)."""
    done = subprocess.run([CLUSTER, "congestion"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(done.stderr.strip())
    return done.stdout.strip()


def facts(rounds, is_quick):
    cpus = len(os.sched_getaffinity(0))
    return {
        "stratus": stratus_version(),
        "NCCL": f"{nccl_release()}, Debian's unmodified objects, its own Socket transport as the baseline",
        "GPU": "emulated: device memory is host memory and kernels are CPU threads, so ratios count, not GB/s",
        "hosts": "network namespaces on one machine; caps of flow and NIC by HTB",
        "congestion control": congestion_control(),
        "CPU": f"{cpu_model()}, {cpus} core{'s' if cpus != 1 else ''}, shared out evenly to two hosts",
        "kernel": f"{platform.system()} {platform.release()}",
        "load before": f"{os.getloadavg()[0]:.2f} (average of a minute: what else the machine did)",
        "rounds": f"{rounds}, the transports in turn{', shortened (--quick)' if is_quick else ''}",
        "date": time.strftime("%Y-%m-%d %H:%M"),
    }
