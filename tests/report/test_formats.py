# SPDX-License-Identifier: Apache-2.0
"""Each format is read into the figures that it holds."""
import json

from tool import data, run, run_json, scratch, write


def shape_of(*files, options=()):
    """The only shape of these inputs, and the points of its first line by size."""
    shapes = run_json("report", *map(data, files), *options)["shapes"]
    assert len(shapes) == 1, shapes
    return shapes[0], {point["bytes"]: point for point in shapes[0]["lines"][0]["points"]}


def expect(shape, coll, nodes, ppn):
    assert (shape["coll"], shape["nodes"], shape["ppn"]) == (coll, nodes, ppn), shape


def close(value, wanted, part=0.02):
    assert value is not None and abs(value - wanted) <= part * wanted, (value, wanted)


def table_times(name, column):
    """{size: time} as the file itself has it, by column from 0."""
    with open(data(name), encoding="utf-8") as file:
        rows = [line.split() for line in file if not line.startswith("#")]
    return {int(row[0]): float(row[column]) for row in rows}


def test_nccl_tests_2_0_has_an_error_column():
    shape, points = shape_of("all_reduce-2.0.txt")
    expect(shape, "allreduce", 2, 4)
    assert {size: point["time_us"] for size, point in points.items()} == table_times("all_reduce-2.0.txt", 4)
    assert all(point["wrong"] is None for point in points.values()), "a difference is no count"
    close(points[1 << 28]["busbw_gbs"], (1 << 28) / points[1 << 28]["time_us"] / 1e3 * 1.75, 1e-9)


def test_nccl_tests_2_0_all_gather_has_no_redop():
    shape, points = shape_of("all_gather-2.0.txt")
    expect(shape, "allgather", 2, 4)
    assert {size: point["time_us"] for size, point in points.items()} == table_times("all_gather-2.0.txt", 3)


def test_nccl_tests_2_13_counts_wrong_elements():
    shape, points = shape_of("all_reduce-2.13.txt")
    expect(shape, "allreduce", 2, 4)
    assert all(point["wrong"] == 0 for point in points.values()), points


def test_nccl_tests_2_17_names_itself_and_has_timestamps():
    shape, points = shape_of("nccl-tests-2.17.txt")
    expect(shape, "allreduce", 2, 4)
    assert {size: point["time_us"] for size, point in points.items()} == table_times("nccl-tests-2.17.txt", 5)


def test_nccl_tests_2_19_tells_the_spread_of_calls():
    shape, points = shape_of("nccl-tests-2.19.txt")
    expect(shape, "allreduce", 2, 4)
    for point in points.values():
        close(point["noise"], 0.031 * 0.6745, 1e-6)
    _, inside = shape_of("nccl-tests-2.19.txt", options=["--in-place"])
    assert {size: point["time_us"] for size, point in inside.items()} == table_times("nccl-tests-2.19.txt", 13)


def test_a_job_log_holds_two_programs_and_broken_rows():
    shapes = run_json("report", data("job.log"))["shapes"]
    assert [shape["coll"] for shape in shapes] == ["allreduce", "allgather"], shapes
    alone, _ = shape_of("all_reduce-2.13.txt")
    assert shapes[0]["lines"][0]["points"] == alone["lines"][0]["points"]


def test_rows_without_out_of_place_are_in_place():
    text = ("# nThread 1 nGpus 1\n#  Rank  0 Group  0 Pid 1 on a device  0 [0x10] X\n"
            "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
            "  1024  256  float  sum  -1                                  20.00  0.05  0.05  0\n")
    shapes = run_json("report", write("all_reduce_blank.txt", text), "--in-place")["shapes"]
    assert shapes[0]["lines"][0]["points"][0]["time_us"] == 20.0, shapes


def test_json_of_nccl_tests_1_and_3():
    for version in (1, 3):
        shape, points = shape_of(f"nccl-tests-v{version}.json")
        expect(shape, "allreduce", 2, 4)
        with open(data(f"nccl-tests-v{version}.json"), encoding="utf-8") as file:
            results = json.load(file)["results"]
        for result in results:
            point = points[result["size"]]
            if version == 1:
                assert point["time_us"] == result["out_of_place"]["time"] and point["noise"] is None
            else:
                times = sorted(result["out_of_place_per_iter"]["times_us"])
                close(point["time_us"], (times[9] + times[10]) / 2, 1e-9)
                assert 0 < point["noise"] < 0.1, point


def test_stratus_coll_text_and_json_agree():
    shape, text = shape_of("coll-stratus.txt")
    expect(shape, "allreduce", 2, 1)
    _, values = shape_of("coll-stratus.3.json")
    assert text.keys() == values.keys()
    # The text has the mean, to two decimals; the JSON's median is within what calls deviate.
    with open(data("coll-stratus.3.json"), encoding="utf-8") as file:
        means = {row["bytes"]: row["out_of_place"]["time_us"] for row in json.load(file)["results"]}
    for size, point in text.items():
        close(point["time_us"], means[size], 0.001)


def test_samples_have_default_choice_and_best():
    shapes = run_json("report", data("samples.jsonl"), data("chosen.profile"))["shapes"]
    assert len(shapes) == 5, [shape["coll"] for shape in shapes]
    four = next(shape for shape in shapes if (shape["coll"], shape["nodes"]) == ("allreduce", 4))
    roles = {line["role"]: {point["bytes"]: point for point in line["points"]} for line in four["lines"]}
    assert set(roles) == {"default", "chosen", "best"}
    for size, best in roles["best"].items():
        assert best["time_us"] <= roles["default"][size]["time_us"] * 1.0001
    assert roles["chosen"][1 << 18]["cell"] == "tree ll" and roles["default"][1 << 18]["cell"] == "tree ll128"
    assert roles["chosen"][1 << 10] == roles["default"][1 << 10], "no row: NCCL's own"


def test_a_profile_that_asks_for_what_nobody_measured_has_no_point():
    path = write("x.profile", "schema = 1\n[meta]\nid = x\n[table allreduce nodes=4 ppn=8]\n0 max pat simple 4\n")
    text, _ = run("report", data("samples.jsonl"), path, "--format", "text")
    assert "pat simple 4ch: not measured" in text


def test_a_measured_row_holds_only_against_what_it_was_measured_against():
    row = "0 max ring ll128 0 over={} default_us=100 choice_us={} noise_pct={}"
    for over, choice_us, noise, is_chosen in (("tree/ll128", 80, 2, True), ("ring/ll", 80, 2, False),
                                              ("tree/ll128", 98, 1, False), ("tree/ll128", 80, 15, False)):
        path = write("over.profile", "schema = 1\n[meta]\nid = x\n[table allreduce nodes=4 ppn=8]\n"
                     + row.format(over, choice_us, noise) + "\n")
        shapes = run_json("report", data("samples.jsonl"), path)["shapes"]
        four = next(shape for shape in shapes if (shape["coll"], shape["nodes"]) == ("allreduce", 4))
        chosen = next(line for line in four["lines"] if line["role"] == "chosen")["points"]
        cells = {point["bytes"]: point["cell"] for point in chosen}
        assert cells[1 << 18] == ("ring ll128" if is_chosen else "tree ll128"), (over, choice_us, cells)


def test_rows_that_a_model_carries_over_are_choices():
    """The same profile with a table for 4 nodes or, instead, one for 3 and models."""
    row = "0 max tree ll 0 over=tree/ll128 default_us=200 choice_us=100 noise_pct=1"
    models = "[model]\nallreduce tree ll 10 1 10 1000 2\nallreduce tree ll128 100 1 10 1000 2\n"
    for shape, text in (("nodes=4", ""), ("nodes=3", models), ("nodes=3", "")):
        path = write("carried.profile", f"schema = 1\n[meta]\nid = x\n[table allreduce {shape} ppn=8]\n{row}\n{text}")
        shapes = run_json("report", data("samples.jsonl"), path)["shapes"]
        four = next(shape for shape in shapes if (shape["coll"], shape["nodes"]) == ("allreduce", 4))
        chosen = next(line for line in four["lines"] if line["role"] == "chosen")["points"]
        cells = {point["bytes"]: point["cell"] for point in chosen}
        holds = shape == "nodes=4" or text
        assert cells[1 << 18] == ("tree ll" if holds else "tree ll128"), (shape, bool(text), cells)
        says = "its model extrapolates" in run("report", data("samples.jsonl"), path)[0]
        assert says == (shape == "nodes=3" and bool(text)), (shape, bool(text))


def tables_of(name):
    """The tables of a file that is shown as tables, by the beginning of their titles."""
    return run_json("report", data(name))["tables"]


def column(table, title):
    return [row[table["columns"].index(title)] for row in table["rows"]]


def load(name):
    with open(data(name), encoding="utf-8") as file:
        return json.load(file)


def test_a_verification_is_a_table_in_all_formats():
    table, = tables_of("verify-ab.json")
    assert column(table, "verdict") == [point["verdict"] for point in load("verify-ab.json")["points"]]
    assert "|---" in run("report", data("verify-ab.json"), "-f", "markdown")[0]
    assert "<table" in run("report", data("verify-ab.json"), "-f", "html")[0]
    _, errors = run("compare", data("verify-ab.json"), data("verify-ab.json"), status=1)
    assert "has no measurement of a collective" in errors, errors


def test_standard_input_is_a_file_called_minus():
    import subprocess
    from tool import TUNE
    with open(data("all_reduce-2.13.txt"), "rb") as file:
        done = subprocess.run([TUNE, "report", "-", "--coll", "all_reduce"], stdin=file, capture_output=True, text=True,
                              check=True, timeout=60)
    assert "AllReduce on 2 nodes x 4 ranks" in done.stdout


def test_labels_name_lines():
    shapes = run_json("report", f"before={data('coll-none.1.json')}", f"after={data('coll-stratus.1.json')}")["shapes"]
    assert [line["label"] for line in shapes[0]["lines"]] == ["before", "after"], shapes


def test_markdown_has_all_tables():
    path = scratch("r.md")
    run("report", data("samples.jsonl"), data("chosen.profile"), "-o", path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert text.startswith("# AllReduce, AllGather on 3 shapes") and text.count("|---") > 15, text[:300]
    assert "## Slowdown against best" in text and "## Profile invented" in text and "## Inputs" in text
