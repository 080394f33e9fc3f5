# SPDX-License-Identifier: Apache-2.0
"""Profiles, through `stratus-tune show --json`, so that the rules of what the plugins accept, and of which rows match a
number of nodes, extrapolated ones included, exist in one place only."""
import dataclasses
import json
import subprocess

import redact
from problem import Problem


def looks_like_profile(text):
    """The first line that is no comment is the schema."""
    first = next((line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")), "")
    return first.split("=")[0].strip() == "schema"


@dataclasses.dataclass
class Profile:
    """The output of `show`, and the rows for the requested shapes."""
    path: str
    tool: str
    shown: dict
    shapes: dict = dataclasses.field(default_factory=dict)  # (nodes, ppn): {collective: its table}

    def table(self, operation, nodes, ppn):
        """{"rows", "is_carried"} of a collective; {} where profiles say nothing, as of sendrecv."""
        if (nodes, ppn) not in self.shapes:
            shape = show(self.tool, self.path, "--nodes", str(nodes), "--ppn", str(ppn))["shape"]
            self.shapes[nodes, ppn] = {table["collective"]: table for table in shape["tables"]}
        return self.shapes[nodes, ppn].get(operation, {})

    def row_for(self, operation, nodes, ppn, size, default):
        """The row that matches a call, or None: NCCL's own choice. `default` is the cell that NCCL would choose, which
        measured rows must have been measured against."""
        for row in self.table(operation, nodes, ppn).get("rows", []):
            if row["bytes_lo"] <= size and (row["bytes_hi"] is None or size < row["bytes_hi"]):
                is_same = "over_algo" not in row or default is None or (
                    (row["over_algo"], row["over_proto"]) == (default.algo, default.proto))
                return row if is_same else None
        return None

    def is_carried(self, operation, nodes, ppn):
        """Are rows valid there that were measured on other numbers of nodes?"""
        return self.table(operation, nodes, ppn).get("is_carried", False)


def show(tool, path, *options):
    shown = subprocess.run([tool, "show", "--json", *options, "--", path], capture_output=True, text=True, check=False,
                           timeout=30)
    if shown.returncode:
        raise Problem(shown.stderr.strip().removeprefix("stratus-tune: "))
    return json.loads(shown.stdout)


def read_profile(source, tool):
    source.kind = "profile"
    if not tool:
        raise Problem("is a profile, which only stratus-tune can read: run stratus-tune report", source.path)
    source.profile = Profile(source.path, tool, show(tool, source.path))
    meta = source.profile.shown["meta"]
    source.label = source.label or redact.text(meta["id"])
    for key in ("id", "created", "source"):
        if meta.get(key):
            source.facts[key] = redact.text(meta[key])
    source.facts["hash"] = source.profile.shown["hash"]
