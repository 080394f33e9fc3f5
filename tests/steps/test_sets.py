# SPDX-License-Identifier: Apache-2.0
"""Sets of models: a part of a model is what coll makes of it, and what is sent is of its type."""
import math
import os
import struct
import subprocess
import tempfile

from training import sets
from training.sets import ACSPEED, DATA, FLOAT16, LOSS_SCALE, SETS, TODAY

RANKS = 8
COLL = "build/tests/coll/coll"


def plan(workload, *options):
    return subprocess.run([COLL, "--replay", workload, "--replay-list", str(RANKS), *options], check=True, capture_output=True, text=True,
                          env={**os.environ, "NCCL_HOME": "/nonexistent"}).stdout.splitlines()


def same(one, other):
    """The words of two lines are equal, times as nearly as they are written."""
    pairs = list(zip(one.split(), other.split()))
    return len(one.split()) == len(other.split()) and all(
        a == b or (one.startswith("compute ") and abs(float(a) - float(b)) <= 0.002) for a, b in pairs)


def test_a_part_is_what_stratus_coll_makes_of_it():
    with tempfile.TemporaryDirectory() as scratch:
        for model in TODAY.models:
            ours = plan(sets.workload_file(model, scratch))
            theirs = plan(model.name, "--compute-scale", str(model.part), "--bytes-scale", str(model.part))
            assert len(ours) == len(theirs) > 2, (model, len(ours), len(theirs))
            for one, other in zip(ours, theirs):
                assert same(one, other), (model, one, other)


def test_runs_of_a_launch():
    with tempfile.TemporaryDirectory() as scratch:
        (models, options), = ACSPEED.replays(1, scratch)
        assert models == [model.name for model in ACSPEED.models] and options == [], (models, options)
        assert os.listdir(scratch) == []
        runs = TODAY.replays(2, scratch)
        assert sum(len(models) for models, _ in runs) == len(TODAY.models) and len(runs) == len(DATA), runs
        assert all(option == "--data" and os.path.getsize(path) > 0 for _, (option, path) in runs), runs
        alone = [os.path.basename(path) for models, _ in TODAY.replays(1, scratch) for path in models]
        assert sorted(alone) == sorted(f"{model.name}.json" for model in TODAY.models if model.ranks == 1), alone


def test_float16_are_the_gradients_of_float32():
    with tempfile.TemporaryDirectory() as scratch:
        with open(sets.data_file(FLOAT16, scratch), "rb") as file:
            halves = [value for value, in struct.iter_unpack("<e", file.read())]
        with open(os.path.join(sets.SAMPLES, DATA[FLOAT16]), "rb") as file:
            floats = [value for value, in struct.iter_unpack("<f", file.read())]
    assert len(halves) == len(floats) > 10000 and all(map(math.isfinite, halves)), len(halves)
    normal = [(half, value) for half, value in zip(halves, floats) if abs(half) > 2**-14]
    assert len(normal) > 0.9 * len(floats), len(normal)
    assert all(abs(half / LOSS_SCALE / value - 1) < 2**-10 for half, value in normal)


def test_some_models_of_a_set():
    assert ACSPEED.of(["vgg16", "./mine.json"]).models == (sets.Model("vgg16"), sets.Model("./mine.json"))
    assert [model.part for model in TODAY.of(["swin_large"]).models] == [0.5]
    try:
        TODAY.of(["swin_large", "vgg16"])
        assert False, "vgg16 was taken, whose data nobody knows"
    except ValueError as error:
        assert str(error).startswith("vgg16: not in the set; it has gpt2_1.5b_ddp,"), error


def test_every_set_says_what_it_is():
    for chosen in SETS.values():
        assert len({model.name for model in chosen.models}) == len(chosen.models), chosen
    assert ACSPEED.text == "" and "x 0.25: llama2_7b_fsdp, llama2_13b_fsdp" in TODAY.text, TODAY.text
