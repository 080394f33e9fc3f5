#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows what stratus does: NCCL's AllReduce over a small cloud on this machine.

Installs what is missing and builds first; makes a cluster of network namespaces with the limits of a cloud and runs
AllReduce, 8 B to 64 MiB, with NCCL's Socket transport as it comes, with Socket as NCCL sets it on AWS (2 threads x 8
sockets), and with both plugins of stratus, in alternating rounds. Prints the median of each size as a Markdown table;
progress goes to stderr. The exit status is 1 if a value was wrong or a run failed."""
import argparse
import os
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmark import machine  # noqa: E402
from benchmark.run import CLUSTER, ROOT, Failure, Runner, build, build_nccl, install, number_in, say  # noqa: E402
from benchmark.tools import Bench, size_text  # noqa: E402

EXAMPLES = """examples:
  scripts/demo --quick --nic-gbps 2 --flow-gbps 0.25
  scripts/demo --hosts 4 --rounds 5 --plot out.svg"""

# Sizes with the iterations they need: small ones are over in a moment and scatter.
#   first, last, factor, iterations, warm-ups
RANGES = ((8, 64 << 10, 2, 200, 20), (128 << 10, 4 << 20, 2, 50, 10), (8 << 20, 64 << 20, 2, 3, 1))
QUICK_RANGES = ((8, 8 << 10, 32, 200, 20), (64 << 10, 64 << 10, 2, 50, 5), (1 << 20, 64 << 20, 8, 2, 1))
# By the names of benchmark/tools.py, and what they set.
TRANSPORTS = {"Socket, its defaults": ("socket", {}), "Socket as NCCL sets it on AWS": ("socket-2x8", {}),
              "stratus": ("stratus", {"NCCL_TUNER_PLUGIN": "libnccl-tuner-stratus.so"})}
CONTROLS = {"cubic": "CUBIC", "reno": "Reno", "bbr": "BBR"}

README, PICTURE = "README.md", "docs/measured/demo.svg"
BEGIN = "<!-- The demo's table, by scripts/demo: begin -->"
END = "<!-- The demo's table: end -->"
SHOWN = (64, 4 << 10, 64 << 10, 256 << 10, 1 << 20, 8 << 20, 64 << 20)  # in the README, besides the best and the worst


# ---- options ----

def parse():
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    rate = number_in(0, 1000, float)
    parser.add_argument("--hosts", default=2, type=number_in(2, 8), metavar="N", help="hosts, 2 to 8, with one rank each (2)")
    parser.add_argument("--nic-gbps", default=4, type=rate, metavar="R", help="rate of a host's NIC, 0 = no limit (4)")
    parser.add_argument("--flow-gbps", default=0.5, type=rate, metavar="R", help="rate of one TCP flow, 0 = no limit (0.5)")
    parser.add_argument("--congestion", default="", metavar="C", help="congestion control of TCP, e.g. bbr (cubic where the kernel lets network "
                        "namespaces have it, else reno)")
    parser.add_argument("--rounds", type=number_in(1, 99), metavar="N", help="rounds of each transport (3)")
    parser.add_argument("--quick", action="store_true", help="few sizes, one round")
    parser.add_argument("--plot", metavar="FILE", help="the figures as a picture, FILE.svg")
    parser.add_argument("--readme", action="store_true", help="table and picture go to README.md and docs/measured")
    parser.add_argument("--nccl", metavar="SUITE", help="NCCL of Debian's sid or trixie (sid, else trixie)")
    options = parser.parse_args()
    if options.readme:
        if sys.argv[1:] != ["--readme"]:
            parser.error("--readme is about the defaults: leave the other options out")
        options.plot = os.path.join(ROOT, PICTURE)
    options.rounds = options.rounds or (1 if options.quick else 3)
    if options.plot and not options.plot.endswith(".svg"):
        parser.error(f"bad --plot '{options.plot}': a name that ends in .svg")
    return options


# ---- what is needed: packages, root, the plugins, an NCCL ----

def prepare(options):
    if options.readme and machine.has_changes():
        raise Failure("the table names a commit, and there are changes beyond it: git status shows them")
    if os.geteuid() != 0:
        raise Failure("needs root for network namespaces: sudo scripts/demo")
    if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode:
        raise Failure("root may not make network namespaces here. In a container: start it with all privileges (--privileged)")
    say("installing what is missing")
    install("build", "nccl", "hosts", *(["plot"] if options.plot else []))


# ---- the demonstration ----

def measure(runner, options):
    """[(transport, what coll has)]. Rounds alternate, and each starts with another transport: whatever else the
    machine does meanwhile hits all three alike. Hosts have CPUs of their own (--split-cpus): without that, where the scheduler
    puts the threads of both hosts decides about small messages more than the transport does. What is left of such chance is
    evened out by three times as many processes for small sizes; they are short."""
    cluster = runner.cluster_up(["--hosts", str(options.hosts), "--nic-gbps", f"{options.nic_gbps:g}", "--flow-gbps", f"{options.flow_gbps:g}",
                                 "--congestion", options.congestion])
    say("building stratus, and Debian's NCCL for the emulated GPU")
    build("coll")
    suite = build_nccl([options.nccl] if options.nccl else ["sid", "trixie"])
    libraries = f"{ROOT}/build/lib:{ROOT}/build/fake_cuda/lib/{suite}:{ROOT}/build/fake_cuda/lib"
    measured, names = [], list(TRANSPORTS)
    for first, last, factor, iterations, warm_ups in QUICK_RANGES if options.quick else RANGES:
        rounds = options.rounds * (3 if first == 8 else 1)
        arguments = ["--op", "all_reduce", "-b", str(first), "-e", str(last), "-f", str(factor), "-n", str(iterations), "-w",
                     str(warm_ups), "-c", "1", "-T", "300s"]
        for number in range(rounds):
            for name in names[number % 3:] + names[:number % 3]:
                say(f"{size_text(first)} to {size_text(last)}, round {number + 1} of {rounds}: {name}")
                transport, variables = TRANSPORTS[name]
                bench = Bench(runner, cluster, limit_s=310)
                measured.append((name, bench.coll(transport, arguments, {**variables, "LD_LIBRARY_PATH": libraries})))
    return measured


# ---- what it shows ----

class Size:
    """Medians of all rounds at one size; busbw, the field's term, is what a link carried."""

    def __init__(self, size, measured):
        self.bytes, self.cells = size, {}
        for name in TRANSPORTS:
            rows = [found["rows"][size] for net, found in measured if net == name and size in found["rows"]]
            self.cells[name] = {key: statistics.median(row[key] for row in rows) for key in ("time_us", "busbw_gbs")}

    @property
    def ratio(self):
        """How many times as fast as the faster one of both Socket settings stratus is."""
        *sockets, stratus = (cell["time_us"] for cell in self.cells.values())
        return min(sockets) / stratus

    def row(self):
        """Small messages are a matter of time, large ones of bandwidth."""
        cells = (f"{cell['time_us']:.1f} us" if self.bytes < 1 << 20 else f"{cell['busbw_gbs']:.3f} GB/s" for cell in self.cells.values())
        return [size_text(self.bytes), *cells, f"{self.ratio:.2f}"]


def sizes_of(measured):
    return [Size(size, measured) for size in sorted({size for _, found in measured for size in found["rows"]})]


def wrong(measured):
    return sum(found["wrong"] for _, found in measured)


def network_text(options):
    """ "2 hosts, NICs of 4 Gb/s, 0.5 Gb/s for a flow, congestion control Reno" """
    nic, flow = options.nic_gbps, options.flow_gbps
    return (f"{options.hosts} hosts, {f'NICs of {nic:g} Gb/s' if nic else 'NICs without limit'}, "
            f"{f'{flow:g} Gb/s for a flow' if flow else 'flows without limit'}, "
            f"congestion control {CONTROLS.get(options.congestion, options.congestion)}")


def table(options, measured, shown=None):
    """The lines in Markdown; with `shown`, of these sizes, the best and the worst."""
    sizes, cpus = sizes_of(measured), len(os.sched_getaffinity(0))
    worst, best = (choose(sizes, key=lambda size: size.ratio) for choose in (min, max))
    rows = [["size", *TRANSPORTS, "against the better Socket"]]
    rows += [size.row() for size in sizes if not shown or size.bytes in shown or size in (worst, best)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = [f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths))} |" for row in rows]
    return [f"AllReduce by stock NCCL {measured[0][1]['nccl']}, {network_text(options)}; hosts and GPUs are emulated",
            f"(`sudo scripts/demo{' --quick' if options.quick else ''}`, {cpus} CPU{'s' if cpus != 1 else ''}, {time.strftime('%Y-%m-%d')}, "
            f"commit {options.commit}):", "", lines[0], f"|{'|'.join('-' * (width + 2) for width in widths)}|", *lines[1:], "",
            f"Across {len(sizes)} sizes: {worst.ratio:.2f} times ({size_text(worst.bytes)}) to "
            f"{best.ratio:.2f} times ({size_text(best.bytes)}) as fast as the better Socket."]


def draw(options, measured):
    from benchmark import picture  # pylint: disable=import-outside-toplevel
    sizes = sizes_of(measured)
    figure, (left, right) = picture.pyplot.subplots(1, 2, figsize=(8.6, 3.3), layout="constrained")
    for name, marker in zip(TRANSPORTS, "o^s"):
        left.plot([size.bytes for size in sizes], [size.cells[name]["busbw_gbs"] for size in sizes], label=name, marker=marker)
    for limit, text in ((options.nic_gbps / 8, "NIC"), (options.flow_gbps / 8, "one flow")):
        if limit:
            left.axhline(limit, color="gray", linewidth=1)
            left.annotate(text, (sizes[0].bytes, limit), (0, -3), textcoords="offset points", va="top")
    left.set_ylabel("AllReduce, bus bandwidth (GB/s)")
    left.legend(loc="center left")
    right.axhline(1, color="gray", linewidth=1)
    right.plot([size.bytes for size in sizes], [size.ratio for size in sizes], marker="s", color="C2")
    right.set_ylabel("stratus, times as fast as the better Socket")
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xticks([size.bytes for size in sizes[::-4]], [size_text(size.bytes) for size in sizes[::-4]])
    picture.save(figure, options.plot, f"AllReduce: {network_text(options)}", f"scripts/demo, {time.strftime('%Y-%m-%d')}, {options.commit}")


def with_table(text, lines):
    """README.md with these lines between its markers."""
    parts = text.split("\n")
    if [line for line in parts if line in (BEGIN, END)] != [BEGIN, END]:
        raise Failure(f"{README} needs one line '{BEGIN}', and one line '{END}' below it")
    return "\n".join([*parts[:parts.index(BEGIN) + 1], *lines, *parts[parts.index(END):]])


def write_readme(options, measured):
    path = os.path.join(ROOT, README)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    lines = [*table(options, measured, SHOWN), "", f"![Bandwidth of AllReduce over sizes, and how many times as fast stratus is]({PICTURE})"]
    with open(path, "w", encoding="utf-8") as file:
        file.write(with_table(text, lines))


def main():
    options = parse()
    runner = Runner()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    try:
        prepare(options)
        options.commit = machine.commit()  # before README.md differs from it
        # What a machine refuses, it refuses here.
        options.congestion = runner.run([CLUSTER, "congestion", *filter(None, [options.congestion])]).strip()
        say(f"cluster: {network_text(options)}")
        measured = measure(runner, options)
        print("\n".join(table(options, measured)))
        if wrong(measured):
            raise Failure(f"{wrong(measured)} values were wrong")
        if options.plot:
            draw(options, measured)
        if options.readme:
            write_readme(options, measured)
    except (Failure, OSError) as failure:
        say(str(failure))
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        runner.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
