# SPDX-License-Identifier: Apache-2.0
"""What `stratus-net probe --json` prints: one pair of hosts, or a matrix of them."""
import dataclasses

import redact

HOSTS_MAX = 512
# Key, title, unit, is more better, width of the numbers.
QUANTITIES = (("gbps", "All flows together", "Gb/s", True), ("flow_gbps", "One flow (median)", "Gb/s", True),
              ("rtt_us", "Round trip", "us", False))


@dataclasses.dataclass
class Probe:
    hosts: list
    values: dict  # quantity: {(from, to): number}


def is_probe(value):
    return isinstance(value, dict) and ("pairs" in value and "hosts" in value or {"gbps", "rtt_us"} <= set(value))


def read_probe(source, document):
    root = document.root
    source.kind = "probe"
    probe = Probe([], {key: {} for key, *_ in QUANTITIES})
    if root.has("pairs"):
        probe.hosts = [redact.text(name_of(each).text(256)) for each in root.get("hosts").each()]
        if not 2 <= len(probe.hosts) <= HOSTS_MAX:
            root.get("hosts").fail(f"must name 2 to {HOSTS_MAX} hosts")
        for pair in root.get("pairs").each():
            # The first NIC of each host; of a pair that could not be measured there are no numbers.
            if pair.has("error") or (pair.has("device") and pair.get("device").integer(0, 4096) > 0):
                continue
            take_pair(probe, pair, host_of(probe, pair.get("from")), host_of(probe, pair.get("to")))
    else:
        probe.hosts = ["here", "there"]
        take_pair(probe, root, 0, 1)
        if root.has("nic"):
            source.facts["NIC"] = redact.text(root.get("nic").text(256))
        if root.has("flows"):
            source.facts["flows"] = str(root.get("flows").integer(1, 4096))
    source.facts["hosts"] = str(len(probe.hosts))
    source.probe = probe


def name_of(host):
    return host.get("name") if isinstance(host.value, dict) else host


def host_of(probe, node):
    """A host by its place in the list, or by its name."""
    if isinstance(node.value, str):
        name = redact.text(node.value)
        return probe.hosts.index(name) if name in probe.hosts else node.fail("is not in the list of hosts")
    return node.integer(0, len(probe.hosts) - 1)


def take_pair(probe, node, start, end):
    for key, *_ in QUANTITIES:
        value = node.get(key)
        if isinstance(value.value, dict):  # of the slowest, the middle and the fastest flow
            value = value.get("median")
        if isinstance(value.value, list):  # of each flow, ascending
            flows = sorted(each.number(0, 1e6) for each in value.each())
            if flows:
                probe.values[key][start, end] = flows[len(flows) // 2]
        elif value.value is not None:
            probe.values[key][start, end] = value.number(0, 1e9)
