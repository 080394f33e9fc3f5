# SPDX-License-Identifier: Apache-2.0
"""What `scripts/demo --json` writes: AllReduce over three transports. Its times are medians over all rounds, out of
place and in place."""
import redact
from points import BYTES_MAX, TIME_US_MAX, Point, operation_of

LABELS = {"socket": "Socket", "socket-aws": "Socket as on AWS", "stratus": "stratus"}


def is_demo(value):
    return isinstance(value, dict) and "runs" in value and "limit" in value


def read_demo(source, document):
    root = document.root
    source.kind = "scripts/demo JSON"
    hosts = root.get("hosts").integer(1, 1_000_000) if root.has("hosts") else None  # older files do not have it
    for key, name in (("nic_gbps", "NIC"), ("flow_gbps", "flow")):
        rate = root.get("limit").get(key).number(0, 1e6)
        source.facts[name] = f"{rate:g} Gb/s" if rate else "no limit"
    for run in root.get("runs").each():
        take_run(source, run, hosts)


def take_run(source, run, hosts):
    name = redact.text(run.get("net").text(64))
    operation = operation_of(run.get("op").text(64))
    if not operation:
        run.get("op").fail("is not a known collective")
    size, time_us = run.get("bytes").integer(1, BYTES_MAX), run.get("time_us").number(0, TIME_US_MAX)
    if time_us == 0:
        run.get("time_us").fail("must be microseconds, more than 0")
    source.points.append(Point(
        source=source, line=0, operation=operation, bytes=size, time_us=time_us, nodes=hosts, ppn=1 if hosts else None,
        busbw=run.get("busbw_gbs").number(), wrong=run.get("wrong").integer(), variant=LABELS.get(name, name)))
