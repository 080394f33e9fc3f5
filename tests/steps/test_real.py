# SPDX-License-Identifier: Apache-2.0
"""The script as people run it: wrong use, and a short run of two models on two hosts. How fast anything is, is not looked at."""
import json
import os
import subprocess
import sys
import tempfile

from benchmark.tools import environment
from tap import Skip
from training import result
from training.plan import CAPPED, NO_NETWORK, SCALE, TODAY, Setting, data_file, launches_of
from training import workload

SCRIPT = "scripts/steps"
MODELS = ("resnet18", "tts_angular")  # those with the least to send
LIMIT_S = 150


def steps(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False, timeout=LIMIT_S)


def test_wrong_use_is_said():
    for arguments, wanted in ((["--hosts", "2,9"], "'2,9': numbers from 2 to 8"), (["--rounds", "0"], "'0': 1 to 99"),
                              (["--hosts", "2,2"], "each once"), (["--compute-scale", "nan"], "0.01 to 100"),
                              (["--caps", "some"], "invalid choice: 'some'"), (["--plot", "x.png"], "ends in .svg"), (["--nope"], "--nope")):
        done = steps(*arguments)
        assert done.returncode == 2 and wanted in done.stderr, (arguments, done.returncode, done.stderr)


def check_launch(launch):
    assert launch["error"] is None and [model["name"] for model in launch["models"]] == list(MODELS), launch
    for model in launch["models"]:
        assert model["wrong"] == (None if launch["hosts"] == 1 else 0) and len(model["step_us"]) == 2 and model["collectives"] > 0, model
        # Compute is slept, and a sleep never ends early: neither steps nor compute alone are shorter than the plan. (On a
        # busy machine either may be longer, compute alone longer than a step.)
        planned_us = sum(workload.computes(workload.read(model["name"])))
        assert 0 < planned_us <= min(model["compute_us"], *model["step_us"]), (planned_us, model)
        # With its cap a NIC gives what AllReduce on two hosts sends no faster.
        need_us = 8 * model["bytes_per_step"] / (SCALE.nic_gbps(launch["hosts"]) * 1e3) if launch["hosts"] > 1 else 0
        assert max(model["step_us"]) > 0.5 * need_us, (need_us, model)


def test_jobs_of_today_run_on_one_host_and_on_two():
    """A millisecond of each, with what they send."""
    with tempfile.TemporaryDirectory() as scratch:
        for hosts in (1, 2):
            for names, _, data in TODAY.replays(hosts):
                command = ["build/tests/coll/coll", "--hosts", f"local:{hosts}", "--replay", ",".join(names), "--data", data_file(data, scratch), "-c", "0",
                           "--replay-steps", "1", "--replay-skip", "0", "--compute-scale", "1e-3", "--bytes-scale", "1e-4"]
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S,
                                      env={**os.environ, **environment("socket", {"NCCL_SOCKET_IFNAME": "lo"})})
                assert done.returncode == 0, (names, hosts, done.stderr[-500:])


def test_a_short_run():
    if os.geteuid() != 0:
        raise Skip("network namespaces need root")
    with tempfile.TemporaryDirectory() as scratch:
        json_path, picture_path = (os.path.join(scratch, name) for name in ("r.json", "r.svg"))
        done = steps("--no-build", "--rounds", "1", "--caps", "capped", "--models", ",".join(MODELS), "--hosts", "2", "--json", json_path,
                     "--plot", picture_path)
        assert done.returncode == 0, done.stdout + done.stderr
        with open(json_path, encoding="utf-8") as file:
            found = json.load(file)
        assert found["machine"]["congestion control"] in ("cubic", "reno"), found["machine"]
        assert [(each["caps"], each["hosts"], each["variant"]) for each in found["launches"]] == [
            (setting.caps, setting.hosts, variant.key) for setting in (Setting(NO_NETWORK, 1), Setting(CAPPED, 2))
            for _, variant in launches_of(setting, 1)], found["launches"]
        for launch in found["launches"]:
            check_launch(launch)
        points = result.points(found["launches"])
        assert len(points) == 4 and all(point.acc_ratio["socket"] > 0 for point in points), points
        for text in ("acc_ratio against Socket 2x8", "2 hosts, capped", *MODELS):
            assert text in done.stdout, done.stdout
        with open(picture_path, encoding="utf-8") as file:
            picture = file.read()
        assert "dots-2" in picture and "scripts/steps, 20" in picture, picture
