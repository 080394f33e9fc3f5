# SPDX-License-Identifier: Apache-2.0
"""What `stratus-net probe --json` prints: for each NIC a matrix of hosts, how the rate depends on flows and chunk, and
what stands out."""
import dataclasses

import redact

HOSTS_MAX = 512
DEVICES_MAX = 16
# Key, title, unit, is more better.
QUANTITIES = (("gbps", "All flows together", "Gb/s", True), ("flow_gbps", "One flow (median)", "Gb/s", True),
              ("rtt_us", "Round trip", "us", False))


@dataclasses.dataclass
class Probe:
    hosts: list
    devices: list                # names of the NICs of the first host
    values: dict                 # (device, quantity): {(from, to): number}
    sweep: list                  # (flows, bytes of a chunk, Gb/s)
    findings: list               # texts
    net: dict                    # what it would put into a profile


def is_probe(value):
    return isinstance(value, dict) and "pairs" in value and "hosts" in value


def read_probe(source, document):
    root = document.root
    source.kind = "probe"
    hosts, devices = [], []
    for host in root.get("hosts").each():
        hosts.append(redact.text(host.get("name").text(256)))
        names = [redact.text(each.get("name").text(256)) for each in host.get("devices").each()]
        devices = devices or names[:DEVICES_MAX]
    if not 2 <= len(hosts) <= HOSTS_MAX:
        root.get("hosts").fail(f"must be 2 to {HOSTS_MAX} hosts")
    probe = Probe(hosts, devices, {}, [], [], {})
    for pair in root.get("pairs").each():
        take_pair(probe, pair)
    for each in root.get("sweep").each() if root.has("sweep") else ():
        probe.sweep.append((each.get("flows").integer(1, 4096), each.get("chunk_bytes").integer(), each.get("gbps").number(0, 1e6)))
    for each in root.get("findings").each() if root.has("findings") else ():
        probe.findings.append(redact.text(each.get("text").text()))
    for key in ("flows", "chunk_bytes", "speed_mbps", "latency_us"):
        if root.has("net") and root.get("net").has(key):
            probe.net[key] = root.get("net").get(key).integer()
    source.facts["hosts"] = str(len(hosts))
    source.probe = probe


def take_pair(probe, node):
    device = node.get("device").integer(0, max(0, len(probe.devices) - 1))
    start, end = (node.get(key).integer(0, len(probe.hosts) - 1) for key in ("from", "to"))
    if node.has("error"):
        probe.findings.append(f"{probe.hosts[start]} -> {probe.hosts[end]}: {redact.text(node.get('error').text())}")
        return
    flow = node.get("flow_gbps")
    for key, number in (("gbps", node.get("gbps")), ("flow_gbps", flow.get("median")), ("rtt_us", node.get("rtt_us"))):
        probe.values.setdefault((device, key), {})[start, end] = number.number(0, 1e9)
