# SPDX-License-Identifier: Apache-2.0
"""What is printed and drawn of figures."""
import json
import os
import subprocess
import sys
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


def table(scratch, *more):
    return run(sys.executable, "scripts/demo-table", "--hosts", "2", "--nic-gbps", "4", "--flow-gbps", "0.5", "--congestion", "reno",
               "--rounds", "2", "--json", os.path.join(scratch, "out"), *more, scratch)


def test_the_table_is_of_medians():
    with tempfile.TemporaryDirectory() as scratch:
        for net, first, second in (("socket", 400.0, 800.0), ("socket-aws", 200.0, 400.0), ("stratus", 100.0, 200.0)):
            write(f"{scratch}/{net}.0.8.json", launch(first, first, 1 << 20))
            write(f"{scratch}/{net}.1.8.json", launch(second, second, 1 << 20))
        done = table(scratch)
        assert done.returncode == 0, done.stderr
        assert "congestion control Reno" in done.stdout.split("\n")[0], done.stdout
        row, = (line for line in done.stdout.split("\n") if line.startswith("   1 MiB"))
        assert row.split() == ["1", "MiB", "600.0", "1.7476", "300.0", "3.4953", "150.0", "6.9905", "4.00", "2.00", "2.00", "13.98"], row
        assert "wrong values: 0" in done.stdout, done.stdout
        document = demo.read(f"{scratch}/out")
        assert (document["congestion_control"], document["nccl"], document["rounds"]) == ("reno", "2.29.7", 2), document
        write(f"{scratch}/stratus.1.8.json", launch(100.0, 100.0, 1 << 20, wrong=3))
        done = table(scratch)
        assert done.returncode == 1 and "6 WRONG" in done.stdout and "wrong values: 6" in done.stdout, done.stdout


def test_files_that_are_none_are_said():
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/d.json"
        for value, text in (([], "not what scripts/demo --json writes"), ({"version": 1, "hosts": 2, "limit": {}}, "lacks congestion_control"),
                            (invent.document(runs=invent.document()["runs"][:-1]), "64 MiB: no stratus"),
                            (invent.document(limit={"nic_gbps": "4"}), "limit lacks"), (invent.document(runs=[]), "no runs")):
            write(path, value)
            done = run(sys.executable, "scripts/demo-plot", path, f"{scratch}/d.svg")
            assert done.returncode == 1 and f"{path}: " in done.stderr and text in done.stderr, (text, done.stderr)
            assert not os.path.exists(f"{scratch}/d.svg")
        done = run(sys.executable, "scripts/demo-plot", path, f"{scratch}/d.png")
        assert done.returncode == 2 and "FILE.svg" in done.stderr, done.stderr


def test_the_picture_is_small_and_says_what_it_is():
    with tempfile.TemporaryDirectory() as scratch:
        write(f"{scratch}/d.json", invent.document())
        done = run(sys.executable, "scripts/demo-plot", f"{scratch}/d.json", f"{scratch}/d.svg")
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
                        (["--congestion"], "needs a value")):
        done = run("scripts/demo", *words)
        assert done.returncode == 2 and text in done.stderr and "installing" not in done.stderr, (words, done.stderr)
