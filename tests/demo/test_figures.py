# SPDX-License-Identifier: Apache-2.0
"""What is printed and drawn of figures."""
import argparse
import json
import os
import subprocess
import tempfile
import xml.etree.ElementTree

from benchmark import demo
import invent


def run(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def write(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)


def test_words_take_the_better_socket_of_each_size():
    words = demo.words(invent.document())
    for text in ("2 hosts, NICs of 4 Gb/s, 0.5 Gb/s for a flow, congestion control CUBIC.",
                 "largest size, 64 MiB   2.00 times as fast: 0.447 GB/s, Socket as on AWS 0.224 GB/s; 0.89 and 0.45 of the NIC",
                 "best size, 64 MiB ", "worst size, 64 B       0.90 times as fast: 100.0 us, Socket 90.0 us",
                 "all 4 sizes: median 0.99; 1 faster, 2 the same within 3 %, 1 slower"):
        assert any(text in line for line in words), (text, words)
    assert max(map(len, words)) <= 120, words


def test_words_without_limits():
    words = "\n".join(demo.words(invent.document(limit={"nic_gbps": 0, "flow_gbps": 0}, congestion_control="bbr")))
    assert "NICs without limit, flows without limit, congestion control BBR" in words and "of the NIC" not in words, words


def launch(out_of_place, in_place, size, wrong=0):
    places = [{"time": time_us, "nwrong": wrong} for time_us in (out_of_place, in_place)]
    return {"nccl": "2.29.7", "gpu": "emulated", "results": [{"size": size, "out_of_place": places[0], "in_place": places[1]}]}


def test_the_table_is_of_medians():
    options = argparse.Namespace(hosts="2", nic_gbps="4", flow_gbps="0.5", congestion="reno", rounds="2", quick=False)
    measured = [(net, launch(time_us, time_us, 1 << 20)) for net, times in (
        ("stratus", (100.0, 200.0)), ("socket", (400.0, 800.0)), ("socket-aws", (200.0, 400.0))) for time_us in times]
    text = demo.text(demo.document(options, measured))
    assert "congestion control Reno" in text.split("\n")[0], text
    row, = (line for line in text.split("\n") if line.startswith("   1 MiB"))
    assert row.split() == ["1", "MiB", "600.0", "1.7476", "300.0", "3.4953", "150.0", "6.9905", "4.00", "2.00", "2.00", "13.98"], row
    assert "wrong values: 0" in text and "NCCL 2.29.7 on emulated GPUs" in text and "; 2 rounds; " in text, text
    text = demo.text(demo.document(options, [*measured, ("stratus", launch(100.0, 100.0, 1 << 20, wrong=3))]))
    assert "6 WRONG" in text and "wrong values: 6" in text, text


def test_files_that_are_none_are_said():
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/d.json"
        for value, text in (([], "not what scripts/demo --json writes"), ({"version": 1, "hosts": 2, "limit": {}}, "'runs'"),
                            (invent.document(runs=invent.document()["runs"][:-1]), "64 MiB: no stratus"),
                            (invent.document(limit={"nic_gbps": "4"}), "not what"), (invent.document(runs=[]), "not what")):
            write(path, value)
            done = run("scripts/demo", "--from", path, "--plot", f"{scratch}/d.svg")
            assert done.returncode == 1 and f"{path}: " in done.stderr and text in done.stderr, (text, done.stderr)
            assert os.path.getsize(f"{scratch}/d.svg") == 0


def test_the_picture_is_small_and_says_what_it_is():
    with tempfile.TemporaryDirectory() as scratch:
        write(f"{scratch}/d.json", invent.document())
        done = run("scripts/demo", "--from", f"{scratch}/d.json", "--plot", f"{scratch}/d.svg")
        assert done.returncode == 0, done.stderr
        with open(f"{scratch}/d.svg", encoding="utf-8") as file:
            text = file.read()
    root = xml.etree.ElementTree.fromstring(text)
    said = " ".join("".join(each.itertext()) for each in root.iter() if each.tag.endswith(("desc", "text")))
    for wanted in ("scripts/demo, 2026-11-26, abc1234.", "0.90 times as fast at 64 B, 2.00 at 64 MiB", "Socket as on AWS", "NIC", "one flow"):
        assert wanted in said, (wanted, said)
    assert "var(--" not in text and "#0a0b" not in text and len(text) < 60000, len(text)


def test_wrong_use_of_the_demo_ends_before_anything_is_built():
    for words, text in ((["--plot", "x.png"], "ends in .svg"), (["--json", "/nonesuch/x"], "cannot write /nonesuch/x"),
                        (["--readme", "--quick"], "--readme is about the defaults"), (["--rounds", "0"], "bad --rounds"),
                        (["--congestion"], "expected one argument")):
        done = run("scripts/demo", *words)
        assert done.returncode == 2 and text in done.stderr and "installing" not in done.stderr, (words, done.stderr)
