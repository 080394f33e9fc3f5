# SPDX-License-Identifier: Apache-2.0
"""What is wrong with an input is said with file and line, and nothing in an input breaks the reader."""
import json
import os
import random

import compare
import comparison
import page
import plain
import sections
from problem import Problem
from read import read_source
from tool import TUNE, data, mutate, read, run, write

HEAD = "# nThread 1\n#  Rank  0 Group  0 Pid 1 on a device  0 [0x10] X\n" \
       "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
GOOD = " 1024 256 float sum -1 20.0 0.05 0.05 0 20.0 0.05 0.05 0\n"


def says(name, content, *parts):
    """The one line of complaint names the file and has these parts."""
    path = write(name, content)
    try:
        read_source(path, None, TUNE)
    except Problem as problem:
        error = str(problem)
    else:
        raise AssertionError(f"{name} was taken")
    assert error.startswith(path) and "\n" not in error, error
    for part in parts:
        assert part in error, f"\"{part}\" is not in: {error}"


def test_tables_with_wrong_rows():
    cases = (
        (" 2048 512 float sum -1 20.0 0.05 0.05 0 20.0 0.05\n", ":4: a row of 11 columns under a heading of 13"),
        (" 1024 256 float sum -1 nan 0.05 0.05 0 20.0 0.05 0.05 0\n", ":4: time must be a number, not \"nan\""),
        (" 1024 256 float sum -1 1e400 0.05 0.05 0 20.0 0.05 0.05 0\n", ":4: time must be"),
        (" 1024 256 float sum -1 -5 0.05 0.05 0 20.0 0.05 0.05 0\n", ":4: time must be microseconds"),
        (" 99999999999999999999999 256 float sum -1 5 0.05 0.05 0 20.0 0.05 0.05 0\n", ":4: size must be a whole number"),
        (" 1024 256 float sum -1 20.0 x 0.05 0 20.0 0.05 0.05 0\n".replace(" x 0.05", " 0.05 x"), ":4: busbw must be"),
        ("", "a table without a row"),
        ("# size count busbw\n", ":4: a heading with 0 columns of times"),
    )
    for rows, *parts in cases:
        says("all_reduce.txt", HEAD + rows, *parts)
    says("all_reduce.txt", GOOD + HEAD, ":1: a row without the heading of its table")
    says("noname.txt", HEAD + GOOD, ":4: the collective of this table is unknown", "--coll")
    run("report", write("noname.txt", HEAD + GOOD), "--coll", "all_reduce")


def test_the_commands_print_the_complaint():
    path = write("all_reduce.txt", HEAD + " 8 2 float sum -1 x\n")
    for what in (("report", path), ("compare", path, path), ("report", path, "--json")):
        output, errors = run(*what, status=1)
        assert errors == f"stratus-tune: {path}:4: a row of 5 columns under a heading of 13\n" and not output, errors


def test_json_with_wrong_values():
    good = json.loads(read(data("coll-none.1.json")))

    def changed(key, value):
        copy = json.loads(json.dumps(good))
        copy["results"][1]["out_of_place"][key] = value
        return json.dumps(copy, indent=1)
    text = json.dumps(good, indent=1)
    says("t.json", text[:len(text) // 2], "the file ends early", f":{text[:len(text) // 2].count(chr(10)) + 1}:")
    line = changed("time_us", "x").split("\n").index('    "time_us": "x",') + 1
    says("x.json", changed("time_us", "x"), f":{line}: results[1].out_of_place.time_us: must be a number")
    says("n.json", changed("time_us", float("nan")), f":{line}: NaN is no number that JSON knows")
    says("i.json", changed("time_us", float("inf")), f":{line}: Infinity is no number")
    says("m.json", changed("time_us", -1), f":{line}: results[1].out_of_place.time_us")
    says("e.json", changed("time_us", 7).replace('"time_us": 7,', '"time_us": 1e999,'), f":{line}: 1e999 is too large")
    says("d.json", changed("time_us", 7).replace('"time_us": 7,', f'"time_us": {"9" * 5000},'), f":{line}: a whole number")
    says("deep.json", "[" * 100_000, "deep.json")
    says("deep2.json", '{"results":' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply")
    says("kind.json", '{"a": 1}', ":1: JSON of an unknown kind. Accepted: ", "stratus-coll", "verify-ab")
    says("none.json", json.dumps({**good, "results": []}), "has no measurement")


def test_samples_with_wrong_lines():
    first, second = read(data("samples.jsonl")).split("\n")[:2]
    for old, new, part in (('"ring"', '"rong"', "algo: must be one of tree, ring"), ('"ppn":8', '"ppn":0', "ppn: must be a whole"),
                           ('"n":20', '"n":"20"', "n: must be"), ('"default":false', '"default":1', "default: must be true"),
                           ('"schema":1', '"schema":2', "schema: must be"), ('"median_us":', '"median_us":NaN,"x":', "NaN is no"),
                           ('"run":"a1"', '"run":"a b"', "run: must be a text of letters")):
        assert old in second
        says("s.jsonl", f"{first}\n{second.replace(old, new)}\n", ":2: ", part)
    says("s.jsonl", f"{first}\n{second[:50]}\n{second}\n", ":2:", "no good JSON")
    text, _ = run("report", write("cut.jsonl", f"{first}\n{second[:50]}"))
    assert "line 2 was not finished by its writer" in text


def test_files_that_are_none():
    says("empty.txt", "", "is empty")
    says("bytes.bin", bytes(range(256)), "is no text")
    says("prose.txt", "It was a dark and stormy night.\n", ":1: unknown format. Accepted: ", "samples.jsonl")
    says("bad.profile", "schema = 1\n[meta]\nid = x\n[net]\nflows = many\n", ":5:")
    for path, part in (("/nowhere/a.json", "No such file"), ("/tmp", "Is a directory")):
        _, errors = run("report", path, status=1)
        assert errors.startswith(f"stratus-tune: {path}: ") and part in errors, errors


def test_verifications_with_wrong_values():
    text = read(data("verify-ab.json"))
    for old, new, part in (('"verdict": ', '"verdict": 1, "x": ', "verdict: must be a text"),
                           ('"collective": "allreduce"', '"collective": "x"', "collective: is not a known collective"),
                           ('"ratio": ', '"ratio": "x", "y": ', "ratio: must be a number"),
                           ('"points": [', '"points": 1, "x": [', "points: must be a list")):
        assert old in text, old
        says("verify-ab.json", text.replace(old, new, 1), part)


def test_mutations_are_read_or_refused():
    """Every outcome but a document or a Problem that names the file is a fault of ours; the seed is printed."""
    seed = int(os.environ.get("SEED") or 1)
    chance = random.Random(seed)
    names = sorted(os.listdir(data("")))
    contents = {name: read(data(name)).encode() for name in names if not name.endswith(".profile")}
    contents["samples.jsonl"] = b"\n".join(contents["samples.jsonl"].split(b"\n")[::40]) + b"\n"
    for name in ("log/warn-in.log", "log/ompi4-ts.log", "log/cut-midrow.log", "results/killed-after-row.json", "results/rccl.csv"):
        contents[os.path.basename(name)] = read(f"tests/data/readers/{name}").encode()
    good = read_source(data("coll-none.1.json"))
    taken = refused = 0
    for round_number in range(25):
        for name, content in contents.items():
            path = write(f"mutant-{name}", mutate(chance, content))
            try:
                source = read_source(path, "allreduce", TUNE)
                plain.as_text(sections.build([good, source]))
                plain.as_markdown(comparison.build(compare.compare([good], [source])))
                taken += 1
            except Problem as problem:
                assert problem.path == path or "in common" in problem.text, f"seed {seed}, round {round_number}: {problem}"
                refused += 1
            except Exception as error:
                with open(path, "rb") as file:
                    raise AssertionError(f"SEED={seed}, round {round_number}, {name}: {error!r}: {file.read()[:2000]!r}") from error
    assert taken > 50 and refused > 50, (taken, refused)


def test_text_of_inputs_is_text_in_the_page():
    value = json.loads(read(data("coll-none.1.json")))
    value["label"] = '</title><script>alert(1)</script><img src=http://x/y onerror="alert(2)">'
    source = read_source(write("script.json", json.dumps(value)))
    html = page.as_html(sections.build([source], "<b>bold"), "x")
    assert "<script" not in html and "<img" not in html and "<b>" not in html and "&lt;script&gt;" in html
