# SPDX-License-Identifier: Apache-2.0
"""stratus-tune workload on files of a test, and what it makes of them."""
import json

import tool

DATA = "tests/data/trace"


def data(name):
    return f"{DATA}/{name}"


def imported(*arguments):
    """(the workload, what was said)."""
    output, said = tool.run("workload", *arguments)
    workload = json.loads(output)
    assert (workload["format"], workload["version"], workload["parallel"]) == ("stratus-workload", 1, "events")
    return workload, said


def events(*arguments):
    return imported(*arguments)[0]["events"]


def calls(found):
    """(collective, elements, type, group) of each collective."""
    return [(event["collective"], event["elements"], event["type"], event["group"]) for event in found if "collective" in event]


def compute_us(found):
    return [event["compute_us"] for event in found if "compute_us" in event]


def waits(found):
    return [event["wait"] for event in found if "wait" in event]


def refused(*arguments):
    """The complaint: one line, no workload."""
    output, said = tool.run("workload", *arguments, status=1)
    assert output == "" and said.count("\n") == 1 and said.startswith("stratus-tune: "), (output, said)
    return said
