# SPDX-License-Identifier: Apache-2.0
"""What scripts/demo measured: its JSON file, and what can be said of it in words.

  {"version": 1, "hosts": N, "limit": {"nic_gbps": R, "flow_gbps": R}, "congestion_control": NAME,
   "rounds": N, "is_quick": BOOL, "date": "YYYY-MM-DD", "stratus": TEXT, "commit": HASH or null, "has_changes": BOOL,
   "nccl": TEXT, "gpu": TEXT, "cpu": TEXT, "cpus": N, "kernel": TEXT,
   "runs": [{"net": NET, "op": "all_reduce", "bytes": N, "time_us": X, "algbw_gbs": X, "busbw_gbs": X, "wrong": N}]}

`has_changes`: of what is measured, beyond the commit."""
import dataclasses
import json
import statistics

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


KEYS = {"hosts": int, "limit": dict, "congestion_control": str, "rounds": int, "is_quick": bool, "date": str, "stratus": str,
        "has_changes": bool, "nccl": str, "gpu": str, "cpu": str, "cpus": int, "kernel": str, "runs": list}
RUN_KEYS = {"net": str, "bytes": int, "time_us": (int, float), "busbw_gbs": (int, float), "wrong": int}


def check(document):
    """Raises BadFile unless all is there that is said of a measurement."""
    if not isinstance(document, dict) or document.get("version") != 1:
        raise BadFile("not what scripts/demo --json writes")
    for key, kind in KEYS.items():
        if not isinstance(document.get(key), kind):
            raise BadFile(f"lacks {key}; measure again")
    if not isinstance(document.get("commit"), (str, type(None))):
        raise BadFile("commit is no text")
    if not all(isinstance(document["limit"].get(key), (int, float)) for key in ("nic_gbps", "flow_gbps")):
        raise BadFile("limit lacks nic_gbps or flow_gbps")
    if not document["runs"]:
        raise BadFile("no runs")
    for number, run in enumerate(document["runs"]):
        for key, kind in RUN_KEYS.items():
            if not isinstance(run, dict) or not isinstance(run.get(key), kind):
                raise BadFile(f"runs[{number}] lacks {key}")
        if run["time_us"] <= 0 or run["bytes"] <= 0:
            raise BadFile(f"runs[{number}]: bytes and time_us are more than 0")


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        check(document)
        sizes_of(document["runs"])
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from None
    except (BadFile, ValueError) as error:
        raise BadFile(f"{path}: {error}") from None
    return document


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
