# SPDX-License-Identifier: Apache-2.0
"""scripts/forecast: its numbers, its messages, and forecasts of published figures that were committed before these were looked
up. No network."""
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "scripts"), os.path.join(ROOT, "tests/lib")]

from tap import Skip  # noqa: E402
from training import forecast_errors, forecasts, reshape  # noqa: E402

# The simulation gives the same to the last digit; committed values have four places.
ROUNDED = 1e-3


def needs_simulator():
    if not os.path.exists(f"{ROOT}/build/tests/scale"):
        raise Skip("needs build/tests/scale")


def run(*arguments, status=0):
    done = subprocess.run([f"{ROOT}/scripts/forecast", *arguments], capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == status, f"{arguments}: {done.returncode}: {done.stdout}{done.stderr}"
    return done


def layers(*rows):
    return {"format": "stratus-workload", "version": 1, "name": "x", "source": "invented", "batch": 1, "gradient_type": "float32",
            "optimizer_us": 10, "layers": [{"name": f"l{i}", "parameters": parameters, "forward_us": us, "backward_us": 2 * us}
                                           for i, (parameters, us) in enumerate(rows)]}


def test_another_step_keeps_shares():
    changed = reshape.with_step(layers(([4], 10), ([8], 30)), 250)
    assert reshape.step_us(changed) == 250
    assert [layer["forward_us"] for layer in changed["layers"]] == [20, 60]


def test_fusion_is_horovods():
    """Forward 40 us. In cycles of 50 us the last layer is ready at 100, the first at 120 and sent at 150; a buffer has 8 elements."""
    events = reshape.fused(layers(([4, 3], 10), ([8], 30)), 50, 32)["events"]
    sent = [event["elements"] for event in events if "collective" in event]
    assert sent == [8, 7], events
    computed, at = 0, []
    for event in events:
        computed += event.get("compute_us", 0)
        at += [computed] if "collective" in event else []
    assert at == [150, 150], at
    assert [event["wait"] for event in events if "wait" in event] == [1, 2]


def test_wrong_inputs_are_told_with_their_place():
    good = {"name": "a", "quantity": "bus_gbs", "hosts": 2, "nic_gbps": 32, "all_reduce_mib": 1}
    for changes, text in (({"hosts": 0}, "cases[0].hosts: 0, expected a whole number from 1 to 1024"), ({"rings": 2}, "cases[0].rings: unknown key"),
                          ({"transport": "tcp"}, "cases[0].transport"), ({"quantity": "scaling"}, "cases[0]: workload is missing"),
                          ({"cycle_ms": 5}, "belong together"), ({"between": {"hosts": [2]}}, "cases[0].between.hosts")):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"format": "stratus-forecast-inputs", "version": 1, "cases": [{**good, **changes}]}, file)
            file.flush()
            said = run("--inputs", file.name, status=2).stderr
        assert text in said, f"{changes}: {said}"
    assert "neither one of" in run("--workload", "no_model", "--hosts", "2", "--nic-gbps", "1", status=1).stderr
    assert "nic_gbps is missing" in run("--workload", "vgg16", "--hosts", "2", status=2).stderr
    assert "takes no other option" in run("--published", "--hosts", "2", status=2).stderr
    assert "one of them says" in run("--hosts", "2", "--nic-gbps", "1", status=2).stderr


def test_a_forecast_has_inputs_interval_and_commit():
    needs_simulator()
    said = run("--workload", "resnet18", "--hosts", "2", "--nic-gbps", "32", "--flow-gbps", "4", "--between", "flow-gbps=2,8").stdout
    assert "flow_gbps 4.0" in said and "the model is of commit" in said, said
    found, = json.loads(run("--all-reduce-mib", "256", "--hosts", "2", "--nic-gbps", "32", "--transport", "ideal", "--json").stdout)["forecasts"]
    assert found["low"] <= found["value"] <= found["high"] and abs(found["value"] - 7.5) < 0.1, found  # a tree passes each byte once each way: 2 x 15 / 16 of 32 Gb/s


def test_blind_forecasts_are_what_the_model_gives():
    """Those with a published figure but for 128 servers, whose blind simulations take a minute. Where a correction of the model
    changes one, published.json gets what it gives `now`, docs/forecast.md says so, and blind.json stays."""
    needs_simulator()
    for row, blind, _, _ in forecast_errors.rows():
        if "128 servers" in row["name"]:
            continue
        value = forecast_errors.recomputed(row["name"])
        wanted = row.get("now", blind["value"])
        assert abs(value / wanted - 1) < ROUNDED, f"{row['name']}: {value}, committed {wanted}"


def test_forecasts_after_the_look_are_what_the_model_gives():
    needs_simulator()
    for row, _, _, changed in forecast_errors.rows():
        if changed is not None:
            value = forecast_errors.recomputed(row["name"], forecast_errors.changes_of(row))
            assert abs(value / row["after"]["value"] - 1) < ROUNDED, f"{row['name']}: {value}, committed {row['after']['value']}"


def test_errors_are_those_of_the_documents():
    last = forecast_errors.table().splitlines()[-1]
    with open(f"{ROOT}/docs/forecast.md", encoding="utf-8") as file:
        assert last in file.read(), last
    names = {case["name"] for case in forecasts.read_cases(f"{forecast_errors.DIRECTORY}/inputs.json")}
    assert names == {row["name"] for row in forecast_errors.read("blind")["forecasts"]}
