# SPDX-License-Identifier: Apache-2.0
"""Profiles, through `stratus-tune show --json`: what the plugins accept is told in one place only."""
import json
import subprocess

import redact
from problem import Problem


def looks_like_profile(text):
    """The first line that is no comment says the schema."""
    first = next((line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")), "")
    return first.split("=")[0].strip() == "schema"


def read_profile(source, tool):
    source.kind = "profile"
    if not tool:
        raise Problem("is a profile, which only stratus-tune can read: run stratus-tune report", source.path)
    shown = subprocess.run([tool, "show", "--json", "--", source.path], capture_output=True, text=True, check=False,
                           timeout=30)
    if shown.returncode:
        raise Problem(shown.stderr.strip().removeprefix("stratus-tune: "))
    source.profile = json.loads(shown.stdout)
    meta = source.profile["meta"]
    source.label = source.label or redact.text(meta["id"])
    for key in ("id", "created", "source"):
        if meta.get(key):
            source.facts[key] = redact.text(meta[key])
    source.facts["hash"] = source.profile["hash"]


LEAST_GAIN = 0.03


def is_worth(row):
    """As guard_is_worth of the plugin: a measured row gains 3 % and twice its noise."""
    return row["default_us"] >= row["choice_us"] * (1 + max(LEAST_GAIN, 2 * row["noise_pct"] / 100))


def row_for(profile, operation, nodes, ppn, size, default):
    """The row that holds for a call, or None: NCCL's own choice. For exactly these nodes and ranks; `default` is the
    cell that NCCL would choose, which measured rows must have been measured against."""
    for table in profile["tables"]:
        if (table["collective"], table["nodes"], table["ppn"]) == (operation, nodes, ppn):
            for row in table["rows"]:
                if row["bytes_lo"] <= size and (row["bytes_hi"] is None or size < row["bytes_hi"]):
                    if "over_algo" not in row:
                        return row
                    is_same = default is None or (row["over_algo"], row["over_proto"]) == (default.algo, default.proto)
                    return row if is_same and is_worth(row) else None
    return None


def has_table(profile, operation, nodes, ppn):
    return any((table["collective"], table["nodes"], table["ppn"]) == (operation, nodes, ppn)
               for table in profile["tables"])
