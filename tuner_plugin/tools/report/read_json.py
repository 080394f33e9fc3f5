# SPDX-License-Identifier: Apache-2.0
"""The JSON files of nccl-tests (-J, file versions 1 to 3) and of stratus-coll (--json).

nccl-tests writes booleans as texts, "root" as a text with blanks, a time that is no number as "nan", and the
whole environment; versions 1 and 2 misspell some names that are not read here."""
import re

import redact
from points import BYTES_MAX, TIME_US_MAX, Point, median_and_noise, nccl_text, operation_of

VERSIONS = (1, 2, 3)


def is_nccl_tests(value):
    return isinstance(value, dict) and "results" in value and "nccl_version" in value


def is_coll(value):
    return isinstance(value, dict) and "results" in value and "ranks" in value and "hosts" in value


def times_of(node):
    """(median, noise) of a list of times, or None where there are none."""
    if node.value is None:
        return None
    times = [each.number(0, TIME_US_MAX) for each in node.each()]
    return median_and_noise(times) if times and min(times) > 0 else None


# ---- nccl-tests ----

def read_nccl_tests(source, document, operation):
    root = document.root
    source.kind = "nccl-tests JSON"
    root.get("version").integer(1, 1000)
    if root.value["version"] not in VERSIONS:
        source.notes.append(f"file version {root.value['version']}; known are {VERSIONS[0]} to {VERSIONS[-1]}")
    source.facts["NCCL"] = nccl_text(root.get("nccl_version").integer(0, 10_000_000))
    read_how(source, root)
    nodes, ppn = read_devices(source, root)
    said = operation_from(source.command) or operation
    for result in root.get("results").each():
        name = result.get("experiment_name")
        # The name is that of the test, as "AllReduce"; older files have the program's only.
        named = operation_of(name.text()) if name.value is not None else None
        if not (named or said):
            result.fail("the collective is unknown: give --coll")
        take_nccl_tests_result(source, result, named or said, nodes, ppn)
    read_verdict(source, root)


def operation_from(command):
    return next((found for found in map(operation_of, command[:1]) if found), None)


def read_how(source, root):
    if root.has("args"):
        source.command = redact.command([each.text(1 << 20) for each in root.get("args").each()])
    if root.has("env"):
        source.environment = redact.environment([each.text(1 << 20) for each in root.get("env").each()])
    if root.has("start_time"):
        source.facts["started"] = redact.text(root.get("start_time").text())


def read_devices(source, root):
    config = root.get("config")
    if config.value is None or not config.has("devices"):
        return None, None
    hosts, count = set(), 0
    for device in config.get("devices").each():
        hosts.add(device.get("hostname").text())
        count += 1
        if device.has("device_info"):
            source.facts["GPU"] = redact.text(device.get("device_info").text()).strip()
    # Each process tells its first GPU only.
    per_process = config.get("nthreads").integer(1, 4096) * config.get("ngpus").integer(1, 4096) \
        if config.has("nthreads") and config.has("ngpus") else 1
    ranks = count * per_process
    return (len(hosts), ranks // len(hosts)) if hosts and ranks % len(hosts) == 0 else (None, None)


def take_nccl_tests_result(source, result, operation, nodes, ppn):
    size = result.get("size").integer(0, BYTES_MAX)
    root_text = str(result.value.get("root", "")).strip()
    for key, in_place in (("out_of_place", False), ("in_place", True)):
        body = result.get(key)
        if body.value is None:
            continue
        time = body.get("time") if body.has("time") else body.get("cpu_time")
        if time.value in ("nan", "-nan"):
            source.notes.append(f"left out: line {time.line}: {time.name} is no number: the run failed here")
            continue
        mean = time.number(0, TIME_US_MAX)
        if size == 0 or mean == 0:
            continue
        per_iter = result.get(f"{key}_per_iter")
        calls = times_of(per_iter.get("times_us")) if per_iter.value is not None and per_iter.has("times_us") else None
        wrong = body.get("nwrong")
        bandwidth = body.get("bus_bw")
        source.points.append(Point(
            source=source, line=0, operation=operation, bytes=size,
            time_us=calls[0] if calls else mean, in_place=in_place, type=redact.text(result.get("type").text()),
            redop=redact.text(result.get("redop").text()) if result.has("redop") else None,
            root=int(root_text) if re.fullmatch(r"-?\d{1,9}", root_text) else None, nodes=nodes, ppn=ppn,
            noise=calls[1] if calls else None,
            busbw=bandwidth.number() if isinstance(bandwidth.value, (int, float)) else None,
            wrong=int(wrong.number()) if isinstance(wrong.value, (int, float)) else None))


def read_verdict(source, root):
    errors = root.get("errors")
    for error in errors.each() if errors.value else ():
        if error.text().strip() and error.value != "no error":
            source.notes.append(f"the run ended with an error: {redact.text(error.value)}")
    bounds = root.get("out_of_bounds")
    if bounds.value is None:
        source.notes.append("the run did not finish: its totals are missing")
    elif bounds.get("count").integer() > 0:
        source.notes.append(f"the run reported {bounds.value['count']} values out of bounds: FAILED")


# ---- stratus-coll ----

def read_coll(source, document):
    root = document.root
    source.kind = "stratus-coll JSON"
    root.get("version").integer(1, 1)
    ranks, hosts = root.get("ranks").integer(1, 1_000_000), root.get("hosts").integer(1, 1_000_000)
    nodes, ppn = (hosts, ranks // hosts) if ranks % hosts == 0 else (None, None)
    source.facts["NCCL"] = redact.text(root.get("nccl").text())
    source.facts["GPU"] = redact.text(root.get("gpu").text())
    if root.has("label") and not source.label:
        source.label = redact.text(root.get("label").text())
    for result in root.get("results").each():
        name = result.get("op")
        operation = operation_of(name.text())
        if not operation:
            name.fail("is not a known collective")
        for key, in_place in (("out_of_place", False), ("in_place", True)):
            if result.get(key).value is not None:
                take_coll_point(source, result, result.get(key), operation, in_place, nodes, ppn)
    if root.get("out_of_bounds").integer() > 0:
        source.notes.append(f"the run reported {root.value['out_of_bounds']} values out of bounds: FAILED")


def take_coll_point(source, result, body, operation, in_place, nodes, ppn):
    size, mean = result.get("bytes").integer(0, BYTES_MAX), body.get("time_us").number(0, TIME_US_MAX)
    if size == 0 or mean == 0:
        return
    calls = times_of(body.get("times_us"))
    source.points.append(Point(
        source=source, line=0, operation=operation, bytes=size, time_us=calls[0] if calls else mean,
        in_place=in_place, type=redact.text(result.get("type").text()),
        redop=redact.text(result.get("redop").text()) if result.has("redop") else None,
        root=result.get("root").integer() if result.has("root") else None, nodes=nodes, ppn=ppn,
        n=body.get("iterations").integer(1), noise=calls[1] if calls else None, busbw=body.get("busbw_gbs").number(),
        wrong=body.get("wrong").integer() if body.has("wrong") else None))
