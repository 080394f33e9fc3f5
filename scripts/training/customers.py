# SPDX-License-Identifier: Apache-2.0
"""Workloads of the models that AIACC-Training's customers trained and that have no other built-in workload: shapes by formulas
from published configurations, times from published throughput on V100, as in today.py."""
from training.today import Layer, attention_operations, gpt2, layered, linear


def convolution(name, inputs, outputs, size, pixels, extra=(), is_trained=True):
    """`pixels` of the output; `extra`: parameters beside the matrix."""
    parameters = [inputs * outputs * size * size, *extra] if is_trained else []
    return Layer(name, parameters, 2 * inputs * outputs * size * size * pixels)


def iresnet50():
    """IResNet-50 of InsightFace: 3, 4, 14 and 3 blocks of two convolutions on 112 x 112 pixels, each with normalization before,
    between and after, and PReLU; a feature of 512."""
    layers, inputs, side = [convolution("conv1", 3, 64, 3, 112 * 112, (64, 64, 64))], 64, 112
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 14), (512, 3))):
        for block in range(blocks):
            name, before = f"layer{stage + 1}.{block}", side
            side = side // 2 if block == 0 else side
            layers += [Layer(f"{name}.bn1", [inputs, inputs], 0),
                       convolution(f"{name}.conv1", inputs, width, 3, before * before, (width, width, width)),
                       convolution(f"{name}.conv2", width, width, 3, side * side, (width, width))]
            if block == 0:
                layers.append(convolution(f"{name}.downsample", inputs, width, 1, side * side, (width, width)))
            inputs = width
    return [*layers, Layer("bn2", [512, 512], 0), linear("fc", 512 * 7 * 7, 512, 1), Layer("features", [512, 512], 0)]


def insightface():
    """5300 samples/s of 8 GPUs. The step has the classifier's time, which is one of 300 thousand classes there, and what it
    communicates within the machine."""
    return layered("insightface_r50", "Shapes of IResNet-50 (InsightFace, recognition/arcface_torch), 112 x 112 pixels. Step of 8 V100 "
                   "with Partial FC, a tenth of 3 million classes, 128 images per GPU, 5300 images/s, mixed precision "
                   "(deepinsight/insightface, recognition/arcface_torch/docs/speed_benchmark.md). The optimizer is in it.", 128,
                   "ddp", "float32", iresnet50(), 8 * 128 / 5300 * 1e6)


PIXELS = 800 * 1216  # of an image of COCO, by the short side of 800 and the mean shape, rounded to multiples of 32
PROPOSALS = 512  # that the box head sees of an image


def resnet50_trunk():
    """The first convolution and stage are frozen, as are all normalizations."""
    layers, inputs = [convolution("stem", 3, 64, 7, PIXELS // 4, is_trained=False)], 64
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        pixels, trained = PIXELS // (16 << 2 * stage), stage > 0
        for block in range(blocks):
            name = f"res{stage + 2}.{block}"
            if block == 0:
                layers.append(convolution(f"{name}.shortcut", inputs, 4 * width, 1, pixels, is_trained=trained))
            layers += [convolution(f"{name}.conv1", inputs, width, 1, pixels, is_trained=trained),
                       convolution(f"{name}.conv2", width, width, 3, pixels, is_trained=trained),
                       convolution(f"{name}.conv3", width, 4 * width, 1, pixels, is_trained=trained)]
            inputs = 4 * width
    return layers


def faster_rcnn_layers():
    layers = resnet50_trunk()
    for level in range(4):
        pixels = PIXELS // (16 << 2 * level)
        layers += [convolution(f"fpn.lateral{level + 2}", 256 << level, 256, 1, pixels, (256,)),
                   convolution(f"fpn.output{level + 2}", 256, 256, 3, pixels, (256,))]
    pixels = sum(PIXELS // (16 << 2 * level) for level in range(5))
    layers += [convolution("rpn.conv", 256, 256, 3, pixels, (256,)), convolution("rpn.logits", 256, 3, 1, pixels, (3,)),
               convolution("rpn.deltas", 256, 12, 1, pixels, (12,))]
    return [*layers, linear("box.fc1", 256 * 7 * 7, 1024, PROPOSALS), linear("box.fc2", 1024, 1024, PROPOSALS),
            linear("box.classes", 1024, 81, PROPOSALS), linear("box.deltas", 1024, 320, PROPOSALS)]


def faster_rcnn():
    return layered("faster_rcnn_r50_fpn", "Shapes of Faster R-CNN R50-FPN (facebookresearch/detectron2), 800 x 1216 pixels; the first "
                   "convolution, the first stage and all normalizations are frozen. Step of 8 V100, 2 images per GPU, 0.210 s, float32 "
                   "(its MODEL_ZOO.md, 1x). The optimizer is in it.", 2, "ddp", "float32", faster_rcnn_layers(), 210e3)


GPT2_LAYERS, GPT2_WIDTH, GPT2_WORDS, GPT2_TOKENS, GPT2_BATCH = 40, 1536, 51200, 1024, 8
GPT2_FLOPS = 39e12


def gpt2_megatron():
    """Operations as Megatron-LM counts them: forward, again forward, and twice as many backward."""
    block = 24 * GPT2_TOKENS * GPT2_WIDTH ** 2 + 2 * attention_operations(GPT2_TOKENS, GPT2_WIDTH, True)
    head = 2 * GPT2_TOKENS * GPT2_WIDTH * GPT2_WORDS
    step_us = GPT2_BATCH * (4 * GPT2_LAYERS * block + 3 * head) / GPT2_FLOPS * 1e6
    return layered("gpt2_1.2b_megatron", "Shapes of Megatron-LM's GPT-2 of 1.2 billion parameters (arXiv 1909.08053; 40 layers, 1536, 51200 "
                   "words), 8 x 1024 tokens, activations computed anew. Step of one V100 at 39 TFLOP/s, float16 (the same paper).",
                   GPT2_BATCH, "ddp", "float16", gpt2(GPT2_LAYERS, GPT2_WIDTH, GPT2_WORDS, GPT2_TOKENS), step_us)


WORKLOADS = {"insightface_r50": insightface, "faster_rcnn_r50_fpn": faster_rcnn, "gpt2_1.2b_megatron": gpt2_megatron}
