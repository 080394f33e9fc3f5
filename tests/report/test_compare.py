# SPDX-License-Identifier: Apache-2.0
"""Verdicts of compare, and its exit status."""
import json

from tool import data, run, run_json, write


def coll(name, factor=1.0, noise=0.0, wrong=0, sizes=(1024, 1 << 20), time_us=100.0):
    """A file of stratus-coll whose calls take time_us * factor and deviate by that part; None: not timed singly."""
    times = None if noise is None else [time_us * factor * (1 + noise * place) for place in (-1, -1, 0, 1, 1)]
    results = [{"op": "all_reduce", "bytes": size, "count": size // 4, "type": "float", "redop": "sum", "root": None,
                "out_of_place": {"time_us": time_us * factor, "algbw_gbs": 1.0, "busbw_gbs": 1.0, "iterations": 5,
                                 "wrong": wrong, "times_us": times}, "in_place": None} for size in sizes]
    return write(name, json.dumps({"version": 1, "label": None, "nccl": "2.29.7", "gpu": "x", "ranks": 4, "hosts": 2,
                                   "results": results, "out_of_bounds": wrong, "avg_busbw_gbs": 1.0}))


def verdicts(*files, status=0):
    return [point["verdict"] for point in run_json("compare", *files, status=status)["points"]]


def test_a_file_is_the_same_as_itself():
    assert set(verdicts(data("coll-none.1.json"), data("coll-none.1.json"))) == {"same"}


def test_the_limit_is_3_percent_without_noise():
    a = coll("a.json")
    assert verdicts(a, coll("b.json", 1.029)) == ["same", "same"]
    assert verdicts(a, coll("b.json", 1.031), status=1) == ["slower", "slower"]
    assert verdicts(a, coll("b.json", 0.98)) == ["same", "same"]
    assert verdicts(a, coll("b.json", 0.96)) == ["faster", "faster"]


def test_the_limit_is_twice_the_noise_of_both():
    # Each side deviates by 4 %: the noise is 5.66 %, the limit 11.3 %.
    a = coll("a.json", noise=0.04)
    points = run_json("compare", a, coll("b.json", 1.11, 0.04))["points"]
    assert all(abs(point["noise"] - 0.04 * 2 ** 0.5) < 1e-9 and point["verdict"] == "same" for point in points), points
    assert verdicts(a, coll("b.json", 1.12, 0.04), status=1) == ["slower", "slower"]


def test_wrong_values_are_a_regression_however_fast():
    assert verdicts(coll("a.json"), coll("b.json", 0.5, wrong=3), status=1) == ["wrong values", "wrong values"]
    _, errors = run("compare", coll("a.json"), coll("b.json", 0.5, wrong=3), status=1)
    assert "WRONG VALUES at 2 points" in errors


def test_pairs_of_runs_give_the_median_ratio_and_the_noise_between_runs():
    files = []
    for number, (a, b) in enumerate(((1.0, 1.1), (1.3, 1.43), (1.02, 1.122))):  # each pair 10 % slower
        files += [coll(f"a{number}.json", a), coll(f"b{number}.json", b)]
    points = run_json("compare", *files, status=1)["points"]
    assert all(abs(point["ratio"] - 1.1) < 1e-9 and point["pairs"] == 3 for point in points), points
    # A: 1.0 1.02 1.3, so 0.02 of 1.02; B the same.
    assert all(abs(point["noise"] - 2 ** 0.5 * 0.02 / 1.02) < 1e-6 for point in points), points


def test_unknown_noise_is_said():
    text, _ = run("compare", coll("a.json", noise=None), coll("b.json", noise=None))
    assert "noise of some points is not known" in text and "-I 1 -J" in text
    text, _ = run("compare", coll("a.json"), coll("b.json"))
    assert "not known" not in text


def test_what_only_one_side_has_is_listed():
    found = run_json("compare", coll("a.json", sizes=(1024, 2048)), coll("b.json", sizes=(2048, 4096)))
    assert [point["bytes"] for point in found["points"]] == [2048] and (found["only_a"], found["only_b"]) == (1, 1)
    text, _ = run("compare", coll("a.json", sizes=(1024, 2048)), coll("b.json", sizes=(2048, 4096)))
    assert "MEASURED ON ONE SIDE ONLY" in text


def test_nothing_in_common_is_an_error_that_tells_what_there_is():
    _, errors = run("compare", data("all_gather-2.0.txt"), data("all_reduce-2.0.txt"), status=1)
    assert "nothing in common: A has allgather on 2 nodes x 4 ranks, 8 to 256M, B has allreduce" in errors, errors


def test_text_of_one_release_and_json_of_another_compare():
    found = run_json("compare", data("nccl-tests-2.17.txt"), data("nccl-tests-v3.json"))
    assert {point["bytes"] for point in found["points"]} == {8, 65536, 1 << 24}, found


def test_samples_compare_cell_by_cell_and_with_runs_by_default():
    found = run_json("compare", data("samples.jsonl"), data("samples.jsonl"))
    assert found["same"] == len(found["points"]) > 200 and found["geomean_ratio"] == 1.0
    lines = [json.loads(line) for line in open(data("samples.jsonl"), encoding="utf-8")]
    for line in lines:
        if line["coll"] == "allreduce" and line["nodes"] == 2 and line["default"]:
            line["median_us"] *= 1.5
    slow = write("slow.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    found = run_json("compare", data("samples.jsonl"), slow, status=1)
    assert found["slower"] == 10 and found["faster"] == 0, (found["slower"], found["faster"])


def test_an_odd_number_of_files_is_wrong_use():
    _, errors = run("compare", data("coll-none.1.json"), data("coll-none.2.json"), data("coll-none.3.json"), status=2)
    assert "pairs of files" in errors
    run("compare", data("coll-none.1.json"), status=2)
