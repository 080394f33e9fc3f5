# SPDX-License-Identifier: Apache-2.0
"""Workloads (tests/workloads/README.md) as lists of words, with other times and bytes."""
from benchmark.run import ROOT, Failure

HEAD = ("batch", "type", "stages")


def read(name):
    """The lines of a file in tests/workloads, or of a path, without remarks."""
    path = name if "/" in name else f"{ROOT}/tests/workloads/{name}.txt"
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.split() for line in file]
    except FileNotFoundError:
        raise Failure(f"workload {name}: neither one of tests/workloads nor a file") from None
    return [words for words in lines if words and not words[0].startswith("#")]


def write(lines, directory, name):
    """The path, for coll --replay and the simulation."""
    path = f"{directory}/{name}.txt"
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(" ".join(map(str, words)) + "\n" for words in lines)
    return path


def head(lines, key):
    return next((words[1] for words in lines if words[0] == key), None)


def number_at(words, kind):
    """Where the number is in a line of this kind, behind a stage as well; None in others."""
    place = 1 if words[0].endswith(":") else 0
    return place + 1 if words[0] not in HEAD and words[place] == kind else None


def computes(lines):
    """Microseconds of each line that computes, of all stages."""
    return [float(words[number_at(words, "compute")]) for words in lines if number_at(words, "compute")]


def with_step(lines, step_us):
    """The same in a step of this time without communication."""
    factor = step_us / sum(computes(lines))
    found = []
    for words in lines:
        place = number_at(words, "compute")
        found.append(words if place is None else [*words[:place], f"{float(words[place]) * factor:.9g}"])
    return found


def scaled_counts(word, part):
    """Of one word: a number, or sends=N,N,..."""
    name, equals, counts = word.rpartition("=")
    return name + equals + ",".join(str(int(count) and max(1, round(int(count) * part))) for count in counts.split(","))


def scaled(lines, part):
    """The same step with this part of its times and bytes, as coll's --compute-scale and --bytes-scale make it."""
    found = []
    for words in with_step(lines, sum(computes(lines)) * part) if computes(lines) else lines:
        words = list(words)
        place = 1 if words[0].endswith(":") else 0
        if words[place] == "exchange":
            words[place + 2:] = [scaled_counts(word, part) for word in words[place + 2:]]
        elif words[0] not in HEAD and words[place] not in ("compute", "wait"):
            words[place + 1] = scaled_counts(words[place + 1], part)
        found.append(words)
    return found
