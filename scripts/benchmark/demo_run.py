#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows what stratus does: NCCL's AllReduce over a small cloud on this machine.

Installs what is missing and builds first; makes a cluster of network namespaces with the limits of a cloud and runs
AllReduce, 8 B to 64 MiB, with
  socket       NCCL's Socket transport as it comes
  socket-aws   the same as NCCL sets it on AWS: 2 threads x 8 sockets
  stratus      both plugins
in alternating rounds; prints the median of each size, and in words how the three compare. Progress goes to stderr, the
table to stdout. The exit status is 1 if a value was wrong or a run failed."""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys

SCRIPTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, SCRIPTS)

from benchmark import demo, machine, readme  # noqa: E402
from benchmark.case import size_text  # noqa: E402
from benchmark.run import CLUSTER, ROOT, Failure, Runner, python_with_matplotlib  # noqa: E402
from benchmark.tools import Bench  # noqa: E402

EXAMPLES = """examples:
  scripts/demo --json out.json
  scripts/demo --quick --nic-gbps 2 --flow-gbps 0.25
  scripts/demo --hosts 4 --rounds 5
  scripts/demo --from out.json --plot out.svg"""

# Sizes with the iterations they need: small ones are over in a moment and scatter.
#   first, last, factor, iterations, warm-ups
RANGES = ((8, 64 << 10, 2, 200, 20), (128 << 10, 4 << 20, 2, 50, 10), (8 << 20, 64 << 20, 2, 3, 1))
QUICK_RANGES = ((8, 8 << 10, 32, 200, 20), (64 << 10, 64 << 10, 2, 50, 5), (1 << 20, 64 << 20, 8, 2, 1))
# By the names of benchmark/tools.py, and what they set.
TRANSPORTS = {"socket": ("socket", {}), "socket-aws": ("socket-2x8", {}),
              "stratus": ("stratus", {"NCCL_TUNER_PLUGIN": "libnccl-tuner-stratus.so"})}
README_FILES = {"json": os.path.join(ROOT, readme.FIGURES), "plot": os.path.join(ROOT, readme.PICTURE)}


class Settings:
    """What a Bench wants."""
    limit_s = 310


def say(text):
    print(f"demo: {text}", file=sys.stderr, flush=True)


# ---- options ----

def parse():
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", default="2", metavar="N", help="hosts, 2 to 8, with one rank each (2)")
    parser.add_argument("--nic-gbps", default="4", metavar="R", help="rate of a host's NIC, 0 = no limit (4)")
    parser.add_argument("--flow-gbps", default="0.5", metavar="R", help="rate of one TCP flow, 0 = no limit (0.5)")
    parser.add_argument("--congestion", default="", metavar="C", help="congestion control of TCP, e.g. bbr (cubic where the kernel lets network "
                        "namespaces have it, else reno)")
    parser.add_argument("--rounds", metavar="N", help="rounds of each transport (3)")
    parser.add_argument("--quick", action="store_true", help="few sizes, one round")
    parser.add_argument("--json", metavar="FILE", help="the figures as JSON")
    parser.add_argument("--plot", metavar="FILE", help="the figures as a picture, FILE.svg")
    parser.add_argument("--readme", action="store_true", help="both, where README.md has them from, and its table")
    parser.add_argument("--nccl", metavar="SUITE", help="without a GPU: NCCL of Debian's sid or trixie (sid, else trixie)")
    parser.add_argument("--from", dest="read", metavar="FILE", help="measure nothing: show what --json wrote before")
    options = parser.parse_args()
    if options.readme:
        if sys.argv[1:] != ["--readme"]:
            parser.error("--readme is about the defaults: leave the other options out")
        options.json, options.plot = README_FILES["json"], README_FILES["plot"]
    options.rounds = options.rounds or ("1" if options.quick else "3")
    check(parser, options)
    return options


def check(parser, options):
    for name, pattern, accepted in (("hosts", "[2-8]", "2 to 8"), ("rounds", "[1-9][0-9]?", "1 to 99"),
                                    ("nic_gbps", r"\d+(\.\d+)?", "Gb/s as a decimal number, 0 for no limit"),
                                    ("flow_gbps", r"\d+(\.\d+)?", "Gb/s as a decimal number, 0 for no limit")):
        if not re.fullmatch(pattern, getattr(options, name)):
            parser.error(f"bad --{name.replace('_', '-')} '{getattr(options, name)}': {accepted}")
    if options.plot and not options.plot.endswith(".svg"):
        parser.error(f"bad --plot '{options.plot}': a name that ends in .svg")
    for path in filter(None, (options.json, options.plot)):  # before minutes have passed
        try:
            with open(path, "a", encoding="utf-8"):
                pass
        except OSError as error:
            parser.error(f"cannot write {path}: {error.strerror}")


# ---- what is needed: packages, root, the plugins, an NCCL ----

def call(*words):
    """Whether it succeeds; what it prints goes to stderr."""
    return subprocess.run(words, cwd=ROOT, stdout=sys.stderr, check=False).returncode == 0


def prepare(options):
    if options.readme and demo.changes():
        raise Failure(f"the table names a commit, and these files are not committed:\n{demo.changes()}")
    if not options.read:
        if os.geteuid() != 0:
            raise Failure("needs root for network namespaces: sudo scripts/demo")
        if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode:
            raise Failure("root may not make network namespaces here. In a container: start it with all privileges (--privileged)")
        say("installing what is missing")
        if not call("scripts/install-deps", "build", "nccl", "hosts", *(["plot"] if options.plot else [])):
            raise Failure("packages are missing")
    python = python_with_matplotlib()
    if options.plot and not python:
        raise Failure("--plot needs matplotlib: scripts/install-deps plot")
    if options.plot and python != sys.executable:
        os.execv(python, [python, "-B", *sys.argv])


def build(what, *targets):
    say(f"building {what}")
    os.makedirs(os.path.join(ROOT, "build/log"), exist_ok=True)
    log = os.path.join(ROOT, "build/log/demo-build.log")
    with open(log, "w", encoding="utf-8") as file:
        status = subprocess.run(["make", f"-j{os.cpu_count()}", *targets], cwd=ROOT, stdout=file, stderr=file, check=False).returncode
    if status:
        with open(log, encoding="utf-8") as file:
            print("".join(file.readlines()[-20:]), end="", file=sys.stderr)
    return status == 0


def has_gpu():
    return shutil.which("nvidia-smi") is not None and machine.output("nvidia-smi", "-L").startswith("GPU")


def nccl_of_gpu():
    """Its directory: the user's, the loader's, CUDA's."""
    home = os.environ.get("DEMO_NCCL_HOME", "")
    known = re.findall(r"^\s*libnccl\.so\.2 .* (\S+)/[^/\s]+$", machine.output("ldconfig", "-p"), re.MULTILINE)
    for directory in (*([f"{home}/lib", f"{home}/lib64"] if home else []), *known[:1], "/usr/local/cuda/lib64", "/usr/local/cuda/lib"):
        if os.path.exists(f"{directory}/libnccl.so.2"):
            return directory
    raise Failure("a GPU but no libnccl.so.2: set NCCL_HOME to where it is installed")


def find_nccl(suites):
    """What LD_LIBRARY_PATH has. Without a GPU: Debian's NCCL on the emulated one, the newest that can be had."""
    if has_gpu():
        directory = nccl_of_gpu()
        say(f"GPU found; NCCL of {directory}")
        return f"{ROOT}/build/lib:{directory}"
    for suite in suites:
        if build(f"NCCL of Debian {suite} and the emulated GPU", "nccl", f"SUITE={suite}"):
            return f"{ROOT}/build/lib:{ROOT}/build/fake_cuda/lib/{suite}:{ROOT}/build/fake_cuda/lib"
    raise Failure("no NCCL could be built; the output is in build/log/demo-build.log")


# ---- the demonstration ----

def measure(runner, options):
    """What coll wrote: [(transport, document)]. Rounds alternate, and each starts with another transport: whatever else the
    machine does meanwhile hits all three alike. Hosts have CPUs of their own (--split-cpus): without that, where the scheduler
    puts the threads of both hosts decides about small messages more than the transport does. What is left of such chance is
    evened out by three times as many processes for small sizes; they are short."""
    cluster = runner.cluster_up(["--hosts", options.hosts, "--nic-gbps", options.nic_gbps, "--flow-gbps", options.flow_gbps,
                                 "--congestion", options.congestion])
    if not build("stratus", "coll"):
        raise Failure("stratus could not be built; the output is above")
    libraries = find_nccl([options.nccl] if options.nccl else ["sid", "trixie"])
    documents, names = [], list(TRANSPORTS)
    for first, last, factor, iterations, warm_ups in QUICK_RANGES if options.quick else RANGES:
        rounds = int(options.rounds) * (3 if first == 8 else 1)
        arguments = ["--op", "all_reduce", "-b", str(first), "-e", str(last), "-f", str(factor), "-n", str(iterations), "-w",
                     str(warm_ups), "-c", "1", "-T", "300s"]
        for number in range(rounds):
            for name in names[number % 3:] + names[:number % 3]:
                say(f"{size_text(first)} to {size_text(last)}, round {number + 1} of {rounds}: {name}")
                transport, variables = TRANSPORTS[name]
                bench = Bench(runner, Settings, cluster)
                text = bench.retrying(lambda: bench.coll_json(transport, arguments, {**variables, "LD_LIBRARY_PATH": libraries}))
                documents.append((name, json.loads(text)))
    return documents


def run(options):
    runner = Runner()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    try:
        # What a machine refuses, it refuses here.
        options.congestion = runner.run([CLUSTER, "congestion", *filter(None, [options.congestion])]).strip()
        say(f"cluster: {options.hosts} hosts, NIC {options.nic_gbps} Gb/s, flow {options.flow_gbps} Gb/s, congestion control {options.congestion}")
        return demo.document(options, measure(runner, options))
    finally:
        runner.close()


def main():
    options = parse()
    try:
        prepare(options)
        document = demo.read(options.read) if options.read else run(options)
        print(demo.text(document), end="")
        if options.json and not options.read:
            with open(options.json, "w", encoding="utf-8") as file:
                file.write(json.dumps(document, indent=1) + "\n")
        if options.plot:
            from benchmark import demo_picture  # pylint: disable=import-outside-toplevel
            with open(options.plot, "w", encoding="utf-8") as file:
                file.write(demo_picture.as_svg(document))
        if options.readme:
            readme.write(document)
    except (Failure, demo.BadFile, OSError) as failure:
        say(str(failure))
        return 1
    except KeyboardInterrupt:
        return 130
    return 1 if demo.wrong(document) else 0


if __name__ == "__main__":
    sys.exit(main())
