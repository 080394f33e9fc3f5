# SPDX-License-Identifier: Apache-2.0
"""Tests the benchmark: sums on invented rounds, and a run of two cases whose output is looked at.
Nothing here depends on how fast anything is."""
import json
import os
import subprocess
import sys
import tempfile

from benchmark import report, tools
from benchmark.cases import Case, Row, Variant, all_cases
from benchmark.run import ROOT

sys.path.append(os.path.join(ROOT, "tests/lib"))
import tap  # noqa: E402

CASE = Case("c", "title", [], [Variant(key, key.upper(), None) for key in "abs"], [])


def summary(rounds, *row):
    """`rounds`: of each the values of some variants."""
    return report.summarize(CASE, Row("gbps", *row), [{key: {"gbps": value} for key, value in each.items()} for each in rounds])


def test_ratio_is_the_median_of_each_rounds():
    row = summary([{"a": 4.0, "b": 2.0}, {"a": 9.0, "b": 3.0}, {"a": 10.0, "b": 1.0}], "a", "b", (">=", 3))
    assert (row["ratio"], row["is_met"], row["what"], row["measured"]["A"]) == (3.0, True, "rate: A / B", 9.0), row
    assert report.ratio_text(row) == "3.00 (2.00..10.00)" and report.measured_text(row) == "A 9.00 Gb/s, B 2.00 Gb/s", row
    row = summary([{"a": 4.0}], "a", 8)
    assert (row["ratio"], row["is_met"], row["what"]) == (0.5, None, "rate: A / 8 Gb/s"), row


def test_failed_rounds_count_neither_way():
    row = summary([{"a": 4.0}, {"b": 2.0}, {"a": 1.0, "b": 2.0}], "a", "b", ("<=", 0.4))
    assert (row["ratio"], row["is_met"]) == (0.5, False), row
    row = summary([{"a": 4.0}], "b", 1, ("<=", 1))
    assert (row["ratio"], row["is_met"], report.ratio_text(row)) == (None, None, "-"), row


def test_the_best_is_chosen_over_all_rounds():
    row = summary([{"s": 6.0, "a": 1.0, "b": 2.0}, {"s": 6.0, "a": 9.0, "b": 3.0}, {"s": 6.0, "a": 1.0, "b": 2.0}], "s", ("a", "b"))
    assert row["ratios"] == [3.0, 2.0, 3.0] and row["what"] == "rate: S / A or B", row


def test_every_row_is_of_a_metric_and_of_variants_that_there_are():
    for case in all_cases():
        for row in case.rows:
            assert report.summarize(case, row, [])["ratio"] is None, case.name
            against = row.against if isinstance(row.against, tuple) else [row.against] if isinstance(row.against, str) else []
            assert {row.subject, *against} <= {variant.key for variant in case.variants}, (case.name, row)


def test_an_error_of_iperf3_is_told():
    """Its status is 0 with -J (3.12)."""
    try:
        tools.iperf3_metrics({"start": {}, "end": {}, "error": "unable to connect to server"})
    except tools.Failure as failure:
        assert str(failure) == "iperf3: unable to connect to server"
    else:
        raise AssertionError("no failure")
    assert tools.iperf3_metrics({"end": {"sum_received": {"bits_per_second": 5e9}}}) == {"gbps": 5}


def check_result(result, table):
    """What a run of `latency` and `allreduce` must have left."""
    assert [case["name"] for case in result["cases"]] == ["latency", "allreduce"], result["cases"]
    assert result["wrong"] == 0 and "emulated" in result["machine"]["GPU"], result["machine"]
    assert result["machine"]["congestion control"] in ("cubic", "reno"), result["machine"]
    assert "| congestion control | " in table, table
    for case in result["cases"]:
        assert case["errors"] == [] and len(case["rounds"]) == 1 and case["rows"] and f"**{case['name']}**" in table, case
        for row in case["rows"]:
            assert row["ratio"] > 0 and len(row["ratios"]) == 1 and len(row["measured"]) == 3, row
            assert all(value > 0 for value in row["measured"].values()), row
            assert row["target"] == "" or row["is_met"] in (True, False), row


def test_a_short_run():
    with tempfile.TemporaryDirectory() as scratch:
        argv = [sys.executable, os.path.join(ROOT, "scripts/bench"), "--quick", "--seconds", "0.1", "--check", "--json", f"{scratch}/r.json",
                "latency", "allreduce"]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        printed, said = process.communicate()
        assert process.returncode == 0, said[-2000:] + printed[-2000:]
        with open(f"{scratch}/r.json", encoding="utf-8") as file:
            check_result(json.load(file), printed)
    left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    assert f"bench{process.pid}n" not in left, left


def run():
    """The exit status."""
    if os.geteuid() != 0:
        return tap.skip_all("network namespaces need root")
    return tap.run([sys.modules[__name__]], [], "sudo scripts/bench --self-test")
