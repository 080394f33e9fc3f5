# SPDX-License-Identifier: Apache-2.0
"""What scripts/demo measured: its JSON file, and what can be said of it in words.

  {"version": 1, "hosts": N, "limit": {"nic_gbps": R, "flow_gbps": R}, "congestion_control": NAME,
   "rounds": N, "is_quick": BOOL, "date": "YYYY-MM-DD", "stratus": TEXT, "commit": HASH or null, "has_changes": BOOL,
   "nccl": TEXT, "gpu": TEXT, "cpu": TEXT, "cpus": N, "kernel": TEXT,
   "runs": [{"net": NET, "op": "all_reduce", "bytes": N, "time_us": X, "algbw_gbs": X, "busbw_gbs": X, "wrong": N}]}

`has_changes`: of what is measured, beyond the commit."""
import dataclasses
import json
import os
import platform
import statistics
import time

from benchmark import machine
from benchmark.case import size_text

TRANSPORTS = ("socket", "socket-aws", "stratus")
LABELS = {"socket": "Socket", "socket-aws": "Socket as on AWS", "stratus": "stratus"}
CONTROLS = {"cubic": "CUBIC", "reno": "Reno", "bbr": "BBR"}
# What it measures, and with what: paths, for git.
MEASURED = ("Makefile", "common", "net_plugin", "tuner_plugin", "tests/fake_cuda", "tests/netns/cluster", "scripts/demo")
# "About as fast": launches of one transport differ from each other by as much on two CPUs.
NEAR = 0.03


class BadFile(Exception):
    """No file of scripts/demo --json; the text says what is wrong with it."""


@dataclasses.dataclass
class Size:
    """All transports at one size."""
    bytes: int
    cells: dict  # by net

    def __getitem__(self, net):
        return self.cells[net]

    @property
    def better(self):
        """The faster one of both Socket settings."""
        return min(TRANSPORTS[:2], key=lambda net: self.cells[net]["time_us"])

    def against(self, net):
        """How many times as fast stratus is."""
        return self.cells[net]["time_us"] / self.cells["stratus"]["time_us"]

    @property
    def ratio(self):
        return self.against(self.better)


def sizes_of(runs):
    by_size = {}
    for run in runs:
        by_size.setdefault(run["bytes"], {})[run["net"]] = run
    for size, cells in by_size.items():
        missing = [net for net in TRANSPORTS if net not in cells]
        if missing:
            raise BadFile(f"{size_text(size)}: no {', '.join(missing)}")
    return [Size(size, by_size[size]) for size in sorted(by_size)]


def best_and_worst(sizes):
    return tuple(choose(sizes, key=lambda size: size.ratio) for choose in (max, min))


def wrong(document):
    return sum(run["wrong"] for run in document["runs"])


# ---- the file ----

def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        if document["version"] != 1:
            raise BadFile("another version")
        sizes_of(document["runs"])
        text(document)  # all that is said of it is there
        return document
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from None
    except (BadFile, ValueError, KeyError, TypeError, IndexError) as error:
        raise BadFile(f"{path}: not what scripts/demo --json writes: {error}") from None


def significant(value):
    return float(f"{value:.5g}")


def runs_of(measured, hosts):
    """A row for each transport and size, the median over all rounds, out of place and in place, in the field's terms:
    algbw = bytes / time, busbw what a link carried. `measured`: [(transport, what coll wrote)]."""
    found = {}
    for net, document in measured:
        for row in document["results"]:
            places = found.setdefault((net, row["size"]), [])
            places += [row["out_of_place"], row["in_place"]]
    rows = []
    for net, size in sorted(found, key=lambda key: (TRANSPORTS.index(key[0]), key[1])):
        time_us = statistics.median(place["time"] for place in found[net, size])
        algbw_gbs = size / time_us / 1e3
        rows.append({"net": net, "op": "all_reduce", "bytes": size, "time_us": round(time_us, 2), "algbw_gbs": significant(algbw_gbs),
                     "busbw_gbs": significant(algbw_gbs * 2 * (hosts - 1) / hosts), "wrong": sum(place["nwrong"] for place in found[net, size])})
    return rows


def changes():
    return machine.output("git", "status", "--porcelain", "--untracked-files=no", "--", *MEASURED)


def document(options, measured):
    return {
        "version": 1, "hosts": int(options.hosts), "limit": {"nic_gbps": float(options.nic_gbps), "flow_gbps": float(options.flow_gbps)},
        "congestion_control": options.congestion, "rounds": int(options.rounds), "is_quick": options.quick, "date": time.strftime("%Y-%m-%d"),
        "stratus": machine.output("build/bin/stratus", "--version").split("\n")[0],
        "commit": machine.output("git", "rev-parse", "--short", "HEAD") or None, "has_changes": changes() != "",
        "nccl": measured[0][1]["nccl"], "gpu": measured[0][1]["gpu"], "cpu": machine.cpu_model(), "cpus": len(os.sched_getaffinity(0)),
        "kernel": f"{platform.system()} {platform.release()}", "runs": runs_of(measured, int(options.hosts))}


# ---- in words ----

def network_text(document):
    """ "2 hosts, NICs of 4 Gb/s, 0.5 Gb/s for a flow, congestion control Reno" """
    nic, flow = (document["limit"][key] for key in ("nic_gbps", "flow_gbps"))
    control = document["congestion_control"]
    return (f"{document['hosts']} hosts, {f'NICs of {nic:g} Gb/s' if nic else 'NICs without limit'}, "
            f"{f'{flow:g} Gb/s for a flow' if flow else 'flows without limit'}, "
            f"congestion control {CONTROLS.get(control, control)}")


def made_text(document):
    """What it was measured with."""
    commit = document["commit"] or "unknown"
    rounds = document["rounds"]
    return (f"NCCL {document['nccl']} on {'emulated GPUs' if document['gpu'] == 'emulated' else document['gpu']}; "
            f"{document['stratus']}, commit {commit}{' with changes' if document['has_changes'] else ''}; "
            f"{document['cpu']}, {document['cpus']} CPU{'s' if document['cpus'] != 1 else ''}, {document['kernel']}; "
            f"{rounds} round{'s' if rounds != 1 else ''}{', shortened (--quick)' if document['is_quick'] else ''}; "
            f"{document['date']}")


def rate_text(size, net):
    """Small messages are a matter of time, large ones of bandwidth."""
    cell = size[net]
    return f"{cell['time_us']:.1f} us" if size.bytes < 1 << 20 else f"{cell['busbw_gbs']:.3f} GB/s"


def line_of(size, name):
    return (f"  {name + ', ' + size_text(size.bytes):23}{size.ratio:.2f} times as fast: {rate_text(size, 'stratus')}, "
            f"{LABELS[size.better]} {rate_text(size, size.better)}")


def words(document):
    """The last lines of the demo: what it shows, against the better of both Socket settings at each size."""
    sizes = sizes_of(document["runs"])
    largest, nic_gbs = sizes[-1], document["limit"]["nic_gbps"] / 8
    lines = [f"What this shows: AllReduce, {network_text(document)}.",
             "stratus against the better of both Socket settings, size by size:", line_of(largest, "largest size")]
    if nic_gbs:
        part = (largest[net]["busbw_gbs"] / nic_gbs for net in ("stratus", largest.better))
        lines[-1] += "; {:.2f} and {:.2f} of the NIC".format(*part)
    lines += [line_of(best_and_worst(sizes)[0], "best size"), line_of(best_and_worst(sizes)[1], "worst size")]
    counts = (sum(size.ratio > 1 + NEAR for size in sizes), sum(abs(size.ratio - 1) <= NEAR for size in sizes),
              sum(size.ratio < 1 - NEAR for size in sizes))
    lines.append("  all {} sizes: median {:.2f}; {} faster, {} the same within {:.0f} %, {} slower".format(
        len(sizes), statistics.median(size.ratio for size in sizes), *counts[:2], 100 * NEAR, counts[2]))
    return lines


def table(document):
    limit_gbs = document["limit"]["nic_gbps"] / 8
    lines = [f"{'':>8}  {'Socket':>17}  {'Socket as on AWS':>17}  {'stratus':>17}  {'stratus is, times as fast as':>30}  of NIC",
             f"{'size':>8}  {'us':>9} {'GB/s':>7}  {'us':>9} {'GB/s':>7}  {'us':>9} {'GB/s':>7}"
             f"  {'Socket':>10} {'as on AWS':>10} {'better':>8}  {'limit':>6}"]
    for size in sizes_of(document["runs"]):
        line = f"{size_text(size.bytes):>8}"
        for net in TRANSPORTS:
            line += f"  {size[net]['time_us']:>9.1f} {size[net]['busbw_gbs']:>7.4f}"
        line += f"  {size.against('socket'):>10.2f} {size.against('socket-aws'):>10.2f} {size.ratio:>8.2f}"
        line += f"  {size['stratus']['busbw_gbs'] / limit_gbs:>6.2f}" if limit_gbs else f"  {'-':>6}"
        bad = sum(size[net]["wrong"] for net in TRANSPORTS)
        lines.append(line + (f"  {bad} WRONG" if bad else ""))
    return lines


def text(document):
    """All that the demo prints."""
    return "\n".join([f"AllReduce: {network_text(document)}; {made_text(document)}", "", *table(document), "", *words(document),
                      f"  wrong values: {wrong(document)}", ""])
