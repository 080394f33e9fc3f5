# SPDX-License-Identifier: Apache-2.0
"""What is printed, drawn and written into README.md of invented figures."""
import argparse
import os
import subprocess
import tempfile
import xml.etree.ElementTree

from benchmark import demo
from benchmark.run import ROOT, Failure

# bytes: time in us of Socket, of Socket as on AWS, of stratus. Worst at 64 B, best at 64 MiB.
TIMES = {64: (90.0, 120.0, 100.0), 128: (100.0, 150.0, 102.0), 1 << 20: (8000.0, 4000.0, 4000.0), 64 << 20: (600000.0, 300000.0, 150000.0)}


def options(**changes):
    return argparse.Namespace(**{"hosts": 2, "nic_gbps": 4, "flow_gbps": 0.5, "congestion": "reno", "quick": False, "plot": None, "commit": "abc1234", **changes})


def measured(factors=(1,)):
    """A launch of each transport for each factor of the times."""
    return [(net, {"nccl": "2.29.7", "wrong": 0, "rows": {
        size: {"time_us": factor * times[place], "busbw_gbs": size / times[place] / factor / 1e3} for size, times in TIMES.items()}})
            for factor in factors for place, net in enumerate(demo.TRANSPORTS)]


def test_the_table():
    lines = demo.table(options(), measured())
    assert lines[0].startswith("AllReduce by stock NCCL 2.29.7, 2 hosts, NICs of 4 Gb/s, 0.5 Gb/s for a flow, congestion control Reno;"), lines
    assert "commit abc1234):" in lines[1], lines
    rows = [line.replace("|", " ").split() for line in lines]
    assert ["64", "B", "90.0", "us", "120.0", "us", "100.0", "us", "0.90"] in rows, rows
    assert ["1", "MiB", "0.131", "GB/s", "0.262", "GB/s", "0.262", "GB/s", "1.00"] in rows, rows
    assert ["64", "MiB", "0.112", "GB/s", "0.224", "GB/s", "0.447", "GB/s", "2.00"] in rows, rows
    assert lines[-1] == "Across 4 sizes: 0.90 times (64 B) to 2.00 times (64 MiB) as fast as the better Socket.", lines
    assert len({len(line) for line in lines[3:-2]}) == 1, lines


def test_the_table_is_of_medians():
    assert demo.table(options(), measured((1, 2, 1)))[3:] == demo.table(options(), measured())[3:]
    assert demo.sizes_of(measured((1, 2)))[0].cells["stratus"]["time_us"] == 150


def test_the_network_without_limits():
    text = demo.network_text(options(nic_gbps=0, flow_gbps=0, congestion="bbr"))
    assert text == "2 hosts, NICs without limit, flows without limit, congestion control BBR", text


def test_readme_shows_some_sizes_the_best_and_the_worst():
    lines = demo.table(options(), measured(), (1 << 20,))
    assert [line[2:8].strip() for line in lines[5:-2]] == ["64 B", "1 MiB", "64 MiB"], lines


def test_readme_takes_the_table_between_its_markers():
    with open(os.path.join(ROOT, demo.README), encoding="utf-8") as file:
        readme = file.read()
    changed = demo.with_table(readme, ["one", "two"])
    assert f"{demo.BEGIN}\none\ntwo\n{demo.END}\n" in changed and changed.split(demo.END)[1] == readme.split(demo.END)[1]
    for text in ("", demo.BEGIN, f"{demo.END}\n{demo.BEGIN}", f"{demo.BEGIN}\n{demo.BEGIN}\n{demo.END}"):
        try:
            demo.with_table(text, [])
        except Failure as failure:
            assert "needs one line" in str(failure)
        else:
            assert False, f"{text!r} was taken"


def test_the_picture_is_small_and_says_what_it_is():
    with tempfile.NamedTemporaryFile(suffix=".svg") as file:
        demo.draw(options(plot=file.name), measured())
        text = file.read().decode()
    xml.etree.ElementTree.fromstring(text)
    for wanted in ("AllReduce: 2 hosts", "scripts/demo, 20", "abc1234", "Socket as NCCL sets it on AWS", "NIC", "one flow", "64 MiB"):
        assert wanted in text, wanted
    assert len(text) < 60000, len(text)


def test_wrong_use_of_the_demo_ends_before_anything_is_built():
    for words, text in ((["--plot", "x.png"], "ends in .svg"), (["--readme", "--quick"], "--readme is about the defaults"),
                        (["--rounds", "0"], "--rounds: '0': 1 to 99"), (["--hosts", "9"], "argument --hosts: '9': 2 to 8"), (["--congestion"], "expected one argument")):
        done = subprocess.run(["scripts/demo", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and text in done.stderr and "installing" not in done.stderr, (words, done.stderr)
