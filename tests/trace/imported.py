# SPDX-License-Identifier: Apache-2.0
"""stratus-tune workload on files of a test, and what it makes of them."""
import contextlib
import functools
import importlib.util
import io
import json
import os

import tool

DATA = "tests/data/trace"


@functools.lru_cache(maxsize=None)
def program():
    spec = importlib.util.spec_from_file_location("trace_main", os.path.join(tool.ROOT, "tuner_plugin/tools/trace/__main__.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_inside(*arguments, status=0):
    """As tool.run of `workload` without options of the tool's own, in this process: for tests with many files."""
    output, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(said):
        ended = program().status_of(lambda: program().run(program().parse(list(arguments))))
    assert ended == status, f"{arguments}: status {ended}, not {status}\n{output.getvalue()}\n{said.getvalue()}"
    return output.getvalue(), said.getvalue()


def data(name):
    return f"{DATA}/{name}"


def imported(*arguments, run=tool.run):
    """(the workload, what was said)."""
    output, said = run("workload", *arguments)
    workload = json.loads(output)
    assert (workload["format"], workload["version"], workload["parallel"]) == ("stratus-workload", 1, "events")
    return workload, said


def events(*arguments):
    return imported(*arguments)[0]["events"]


def calls(found):
    """(collective, elements, type, group) of each collective."""
    return [(event["collective"], event["elements"], event["type"], event["group"]) for event in found if "collective" in event]


def of_rank(found, rank):
    """What a rank of a merged file does."""
    return [{key: value for key, value in event.items() if key != "only"} for event in found
            if event["only"] == {"group": "world", "rank": rank}]


def exchanges(found):
    """(type, group, parts) of each, a part being (word, peer, elements)."""
    return [(event["type"], event["group"], [(word, part[word], part["elements"]) for part in event["exchange"] for word in
                                             ("send", "recv") if word in part]) for event in found if "exchange" in event]


def compute_us(found):
    return [event["compute_us"] for event in found if "compute_us" in event]


def waits(found):
    return [event["wait"] for event in found if "wait" in event]


def refused(*arguments, run=tool.run):
    """The complaint: one line, no workload."""
    output, said = run("workload", *arguments, status=1)
    assert output == "" and said.count("\n") == 1 and said.startswith("stratus-tune: "), (output, said)
    return said
