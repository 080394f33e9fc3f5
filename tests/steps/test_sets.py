# SPDX-License-Identifier: Apache-2.0
"""Sets of models: what they send is of their type, and as much as is published."""
import math
import os
import struct
import tempfile

from benchmark.run import ROOT
from training import plan, workload
from training.plan import DATA, FLOAT16, LOSS_SCALE, SETS, TODAY

ACSPEED = SETS["acspeed"]


# Parameters in millions: torchvision's documentation, timm's results (vovnet39a, vit_small_patch16_224), Hugging Face's model cards, TorchBench's
# models as counted by others, the checkpoints of Llama-2, BERT, MAE and Swin.
PUBLISHED_MILLIONS = {
    "llama2_7b_fsdp": 6738.4, "bert_large_zero2": 336, "bert_large_ddp": 336, "vit_large_mae": 329.5, "swin_large": 196.5, "inception_v3": 23.8,
    "insightface_r50": 43.6, "faster_rcnn_r50_fpn": 41.8, "gpt2_1.2b_megatron": 1200, "alexnet": 61.1, "resnet18": 11.7, "resnet50": 25.6,
    "vgg16": 138.4, "timm_vovnet": 22.6, "timm_vision_transformer": 22.1, "pytorch_unet": 17.3, "hf_Bart": 139.4, "hf_Bert": 109.5,
    "speech_transformer": 46.5, "tts_angular": 9.4, "vgg16_fleetx_32": 138.4, "vgg16_fleetx_64": 138.4, "vgg16_fleetx_128": 138.4,
    "vgg16_fleetx_256": 138.4}


def sent(lines, *kinds):
    return sum(int(words[1]) for words in lines if words[0] in kinds)


def test_gradients_are_of_the_published_parameters():
    names = {name[:-4] for name in os.listdir(os.path.join(ROOT, "tests/workloads")) if name.endswith(".txt")}
    assert names == {*PUBLISHED_MILLIONS, "mixtral_8x7b_ep", "gpt_7b_tp8_pp2_hosts"}, names
    for name, millions in PUBLISHED_MILLIONS.items():
        count = sent(workload.read(name), "all_reduce", "reduce_scatter")
        assert abs(count / 1e6 / millions - 1) < 0.02, (name, count)
    # Experts are 32 layers of 8 with three matrices each; Mistral's 46.7 G parameters. The embedding of GPT is on both stages.
    dense = sent(workload.read("mixtral_8x7b_ep"), "all_reduce")
    assert abs((dense + 32 * 8 * 3 * 4096 * 14336) / 46.7e9 - 1) < 0.002, dense
    gradients = int(next(words[1] for words in workload.read("gpt_7b_tp8_pp2_hosts") if words[-1] == "copies"))
    assert abs(gradients * 2 / (7.5e9 + 51200 * 4096) - 1) < 0.01, gradients


def test_runs_of_a_launch():
    """Models with the same part and data are one run; of a model with two stages none has one host."""
    assert ACSPEED.replays(1) == [([model.name for model in ACSPEED.models], 1, "")]
    runs = TODAY.replays(2)
    assert sorted(name for names, _, _ in runs for name in names) == sorted(model.name for model in TODAY.models), runs
    assert all((model.part, model.data) == (part, data) for names, part, data in runs for model in TODAY.models if model.name in names), runs
    alone = [name for names, _, _ in TODAY.replays(1) for name in names]
    assert alone == [model.name for model in TODAY.models if model.ranks == 1], alone


def test_float16_are_the_gradients_of_float32():
    with tempfile.TemporaryDirectory() as scratch:
        with open(plan.data_file(FLOAT16, scratch), "rb") as file:
            halves = [value for value, in struct.iter_unpack("<e", file.read())]
        with open(os.path.join(plan.SAMPLES, DATA[FLOAT16]), "rb") as file:
            floats = [value for value, in struct.iter_unpack("<f", file.read())]
    assert len(halves) == len(floats) > 10000 and all(map(math.isfinite, halves)), len(halves)
    normal = [(half, value) for half, value in zip(halves, floats) if abs(half) > 2**-14]
    assert len(normal) > 0.9 * len(floats), len(normal)
    assert all(abs(half / LOSS_SCALE / value - 1) < 2**-10 for half, value in normal)


def test_some_models_of_a_set():
    assert ACSPEED.of(["vgg16", "./mine.json"]).models == (plan.Model("vgg16"), plan.Model("./mine.json"))
    assert [model.part for model in TODAY.of(["llama2_7b_fsdp"]).models] == [0.25]
    try:
        TODAY.of(["llama2_7b_fsdp", "vgg16"])
        assert False, "vgg16 was taken, whose data nobody knows"
    except ValueError as error:
        assert str(error).startswith("vgg16: not in the set; it has llama2_7b_fsdp,"), error
