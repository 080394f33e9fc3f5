# SPDX-License-Identifier: Apache-2.0
"""Tests the benchmark: sums on invented rounds, and a run of two cases whose output is looked at.
Nothing here depends on how fast anything is."""
import json
import os
import subprocess
import sys
import tempfile

from benchmark import report, tools
from benchmark.case import Row, at_least, at_most, of, of_best, sweep_row, value
from benchmark.run import ROOT

sys.path.append(os.path.join(ROOT, "tests/lib"))
import tap  # noqa: E402


def test_ratio_is_the_median_of_each_rounds():
    rounds = [{"a": {"x": a}, "b": {"x": b}} for a, b in ((4.0, 2.0), (9.0, 3.0), (10.0, 1.0))]
    shown = [("A", "a", "x", "GB/s")]
    row = report.summarize_row(Row("r", "a / b", of("x", "a", "b"), at_least(3), shown), rounds, "c")
    assert (row["ratio"], row["min"], row["max"], row["is_met"]) == (3.0, 2.0, 10.0, True), row
    assert row["measured"] == [{"label": "A", "value": 9.0, "unit": "GB/s"}], row
    assert report.ratio_text(row) == "3.00 (2.00..10.00)", row


def test_an_error_of_iperf3_is_told():
    """Its status is 0 with -J (3.12)."""
    try:
        tools.iperf3_metrics({"start": {}, "end": {}, "error": "unable to connect to server"})
    except tools.Failure as failure:
        assert str(failure) == "iperf3: unable to connect to server"
    else:
        raise AssertionError("no failure")
    assert tools.iperf3_metrics({"end": {"sum_received": {"bits_per_second": 5e9}}}) == {"gbps": 5}


def test_failed_rounds_count_neither_way():
    rounds = [{"a": {"x": 4.0}}, {"b": {"x": 2.0}}, {"a": {"x": 1.0}, "b": {"x": 2.0}}]
    row = report.summarize_row(Row("r", "a / b", of("x", "a", "b"), at_most(0.4)), rounds, "c")
    assert (row["ratio"], row["is_met"]) == (0.5, False), row
    row = report.summarize_row(Row("r", "a", value("x", "c"), at_most(1)), rounds, "c")
    assert (row["ratio"], row["is_met"]) == (None, None), row


def test_the_best_is_chosen_over_all_rounds():
    rounds = [{"s": {"x": 6.0}, "a": {"x": 1.0}, "b": {"x": 2.0}}, {"s": {"x": 6.0}, "a": {"x": 9.0}, "b": {"x": 3.0}},
              {"s": {"x": 6.0}, "a": {"x": 1.0}, "b": {"x": 2.0}}]
    assert of_best("x", "s", ["a", "b"])(rounds) == [3.0, 2.0, 3.0]


def test_a_sweep_finds_its_worst_size():
    def rows(small, large):
        return {"rows": {8: {"time_us": small}, 64: {"time_us": large}}}
    rounds = [{"s": rows(10, 200), "a": rows(20, 100), "b": rows(20, 100)}] * 3
    sweep = sweep_row(("s", "a", "b"), at_least(0.97))
    row = report.summarize_row(sweep, rounds, "c")
    assert (row["ratio"], row["is_met"]) == (0.5, False) and "worst at 64 B; " in row["note"] and "8 B 2.00" in row["note"], row
    noisy = [{"s": rows(10, 200), "a": rows(20, 100), "b": rows(20, 300)}] * 3  # nobody can tell
    assert report.summarize_row(sweep, noisy, "c")["is_met"] is True and report.summarize_row(
        sweep, [{**noisy[0], "s": rows(10, 210)}], "c")["is_met"] is None
    assert report.summarize_row(sweep, [{"s": rows(1, 1)}], "c")["is_met"] is None


def check_result(result, table):
    """What a run of `latency` and `allreduce` must have left."""
    assert [case["name"] for case in result["cases"]] == ["latency", "allreduce"], result["cases"]
    assert result["wrong"] == 0 and "emulated" in result["machine"]["GPU"], result["machine"]
    assert result["machine"]["congestion control"] in ("cubic", "reno"), result["machine"]
    assert "| congestion control | " in table, table
    for case in result["cases"]:
        assert case["error"] is None and case["rows"] and f"**{case['name']}**" in table, case
        for variant in case["variants"]:
            assert len(variant["rounds"]) == 1 and "error" not in variant["rounds"][0], variant
            assert variant["rounds"][0].get("wrong", 0) == 0 and variant["command"], variant
        for row in case["rows"]:
            assert row["ratio"] > 0 and row["min"] <= row["ratio"] <= row["max"], row
            assert all(each["value"] is not None and each["value"] > 0 for each in row["measured"]), row
            assert row["target"] == "" or row["is_met"] in (True, False), row


def test_a_short_run(script):
    with tempfile.TemporaryDirectory() as scratch:
        argv = [sys.executable, script, "--rounds", "1", "--quick", "--seconds", "0.1", "--check",
                "--json", f"{scratch}/r.json", "latency", "allreduce"]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        printed, said = process.communicate()
        assert process.returncode == 0, said[-2000:] + printed[-2000:]
        with open(f"{scratch}/r.json", encoding="utf-8") as file:
            check_result(json.load(file), printed)
    left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    assert f"bench{process.pid}n" not in left, left


def run(script):
    """The exit status."""
    if os.geteuid() != 0:
        return tap.skip_all("network namespaces need root")
    for test in [test for name, test in globals().items() if name.startswith("test_")]:
        try:
            test(script) if test is test_a_short_run else test()
            tap.ok(test.__name__)
        except AssertionError as error:
            tap.not_ok(test.__name__, str(error), "sudo scripts/bench --self-test")
    return tap.end()
