# SPDX-License-Identifier: Apache-2.0
"""Workloads (tests/workloads/README.md) as lists of words."""
from benchmark.run import ROOT

HEAD = ("batch", "type", "stages")


def read(name):
    """The lines of a file in tests/workloads, without remarks."""
    with open(f"{ROOT}/tests/workloads/{name}.txt", encoding="utf-8") as file:
        lines = [line.split() for line in file]
    return [words for words in lines if words and not words[0].startswith("#")]


def computes(lines):
    """Microseconds of each line that computes, of all stages."""
    return [float(words[-1]) for words in lines if "compute" in words[:2]]
