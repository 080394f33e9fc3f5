# SPDX-License-Identifier: Apache-2.0
"""Workloads of today's jobs: sharded language models, tensors and stages, experts, and large vision models.

Shapes follow from the published configuration of each model, by the formulas here; no torch is needed. The time of a
step is a published throughput, whose source, GPU and precision are in the workload. It is divided over the layers by
their operations: two for each parameter of a matrix and token, and those of attention; backward takes twice as long as
forward. Where the published figure is of a job on several GPUs, the time has what that job could not hide of its own
communication."""
import dataclasses
import functools

DIVIDED = "Divided over layers by operations, one third forward, two thirds backward (scripts/workloads)"
# An optimizer's bytes for each parameter, float32 values read and written: as in scripts/workloads.
ADAM, SGD = 28, 20


@dataclasses.dataclass
class Layer:
    """What a module owns, and the operations of its forward pass for one sample."""
    name: str
    parameters: list
    operations: float


def linear(name, inputs, outputs, tokens, has_bias=True):
    return Layer(name, [inputs * outputs] + [outputs] * has_bias, 2 * inputs * outputs * tokens)


def attention_operations(tokens, width, is_causal):
    """Of q k' and of its product with v."""
    return 4 * tokens * tokens * width / (2 if is_causal else 1)


def gelu_block(name, width, tokens, is_causal, inner=0):
    """A block of GPT-2, BERT or ViT: attention of one matrix for query, key and value, and two feed-forward layers."""
    inner = inner or 4 * width
    product = attention_operations(tokens, width, is_causal)
    project = linear(f"{name}.attention.project", width, width, tokens)
    project.operations += product
    return [Layer(f"{name}.norm1", [width, width], 0), linear(f"{name}.attention.qkv", width, 3 * width, tokens), project,
            Layer(f"{name}.norm2", [width, width], 0), linear(f"{name}.inner", width, inner, tokens),
            linear(f"{name}.outer", inner, width, tokens)]


def llama(layers, width, inner, words, tokens):
    """Each block is one unit of FSDP, as fms-fsdp wraps them; embedding and head are units of their own."""
    block = [width * width] * 4 + [width * inner] * 3 + [width, width]
    work = 2 * sum(block[:7]) * tokens + attention_operations(tokens, width, True)
    return [Layer("embedding", [words * width], 0), *(Layer(f"blocks.{i}", block, work) for i in range(layers)),
            Layer("norm", [width], 0), linear("head", width, words, tokens, has_bias=False)]


def gpt2(layers, width, words, tokens):
    """The embedding's matrix also predicts, so its operations are at the end and its gradient comes last."""
    blocks = [layer for i in range(layers) for layer in gelu_block(f"blocks.{i}", width, tokens, True)]
    return [Layer("words", [words * width], 0), Layer("positions", [tokens * width], 0), *blocks,
            Layer("norm", [width, width], 2 * words * width * tokens)]


def bert(layers, width, words, tokens):
    blocks = [layer for i in range(layers) for layer in gelu_block(f"blocks.{i}", width, tokens, False)]
    return [Layer("embeddings", [words * width, 512 * width, 2 * width], 0), Layer("norm", [width, width], 0), *blocks,
            linear("pooler", width, width, 1), linear("head.dense", width, width, tokens),
            Layer("head.norm", [width, width], 0), Layer("head.bias", [words], 2 * words * width * tokens),
            linear("head.next_sentence", width, 2, 1)]


def mae_large():
    """mae_vit_large_patch16: ViT-L/16 on a quarter of 196 patches, a decoder of 8 blocks of width 512 on all."""
    seen, patches, width, narrow, patch = 49 + 1, 196 + 1, 1024, 512, 16 * 16 * 3
    encoder = [layer for i in range(24) for layer in gelu_block(f"encoder.{i}", width, seen, False)]
    decoder = [layer for i in range(8) for layer in gelu_block(f"decoder.{i}", narrow, patches, False)]
    return [Layer("class_token", [width], 0), linear("patches", patch, width, 196), *encoder,
            Layer("encoder.norm", [width, width], 0), Layer("mask_token", [narrow], 0),
            linear("decoder.embed", width, narrow, seen), *decoder, Layer("decoder.norm", [narrow, narrow], 0),
            linear("decoder.predict", narrow, patch, patches)]


def swin(width, depths, heads, window, classes):
    """Stages of windows of 7 x 7; between two of them four neighbours become one of twice the width."""
    layers, side = [linear("patches", 4 * 4 * 3, width, 56 * 56), Layer("patches.norm", [width, width], 0)], 56
    for stage, depth in enumerate(depths):
        tokens = side * side
        for i in range(depth):
            norm1, qkv, project, *rest = gelu_block(f"stages.{stage}.{i}", width, tokens, False)
            project.operations += attention_operations(window * window, width, False) * tokens / window ** 2 \
                - attention_operations(tokens, width, False)
            qkv.parameters.insert(0, (2 * window - 1) ** 2 * heads[stage])  # biases by relative position
            layers += [norm1, qkv, project, *rest]
        if stage + 1 < len(depths):
            side //= 2
            layers += [Layer(f"stages.{stage}.merge.norm", [4 * width] * 2, 0),
                       linear(f"stages.{stage}.merge", 4 * width, 2 * width, side * side, has_bias=False)]
            width *= 2
    return [*layers, Layer("norm", [width, width], 0), linear("head", width, classes, 1)]


def head_of(name, source, batch, parallel, gradient_type):
    return {"format": "stratus-workload", "version": 1, "name": name, "source": source, "batch": batch,
            "parallel": parallel, "gradient_type": gradient_type}


def layered(name, source, batch, parallel, gradient_type, layers, step_us, optimizer_us=0.0):
    scale = (step_us - optimizer_us) / 3 / sum(layer.operations for layer in layers)
    times = [layer.operations * scale for layer in layers]
    return {**head_of(name, f"{source} {DIVIDED}", batch, parallel, gradient_type), "optimizer_us": round(optimizer_us, 1),
            "layers": [{"name": layer.name, "parameters": layer.parameters, "forward_us": round(us, 1),
                        "backward_us": round(2 * us, 1)} for layer, us in zip(layers, times)]}


def optimizer_us(layers, bytes_each, bytes_per_us):
    return sum(sum(layer.parameters) for layer in layers) * bytes_each / bytes_per_us


# ---- language models, sharded or not ----

FMS = "bfloat16, FSDP without activation checkpointing (foundation-model-stack/fms-fsdp, README.md). The optimizer is in it."


def llama2_7b():
    return layered("llama2_7b_fsdp", "Shapes of Llama-2-7B (arXiv 2307.09288; 32 layers, 4096, 11008, 32000 words), 2 x 4096 "
                   f"tokens. Step of 128 A100, 3760 tokens/s per GPU, {FMS}", 2, "fsdp", "bfloat16",
                   llama(32, 4096, 11008, 32000, 4096), 2 * 4096 / 3760 * 1e6)


def llama2_13b():
    return layered("llama2_13b_fsdp", "Shapes of Llama-2-13B (arXiv 2307.09288; 40 layers, 5120, 13824, 32000 words), 4096 "
                   f"tokens. Step of 128 A100, 1700 tokens/s per GPU, {FMS}", 1, "fsdp", "bfloat16",
                   llama(40, 5120, 13824, 32000, 4096), 4096 / 1700 * 1e6)


def gpt2_xl():
    """2.80 s for 2^20 tokens on 8 GPUs, 16 x 1024 of each at a time: 8 times."""
    return layered("gpt2_1.5b_ddp", "Shapes of GPT-2 1.5B (openai/gpt-2; 48 layers, 1600, 50257 words), 16 x 1024 tokens. Step as "
                   "one of 8 that llm.c accumulates on 8 H100, 2.80 s for 2^20 tokens, bfloat16 (karpathy/llm.c, "
                   "scripts/run_gpt2_1558M.sh). The optimizer is in it.", 16, "ddp", "bfloat16", gpt2(48, 1600, 50257, 1024),
                   2.80e6 / 8)


def bert_large():
    return layered("bert_large_zero2", "Shapes of BERT-Large (arXiv 1810.04805; 24 layers, 1024, 30522 words), 64 x 128 tokens. "
                   "Step of one V100, 272 samples/s, float16 (deepspeed.ai, Microsoft DeepSpeed achieves the fastest BERT "
                   "training time). A share of the optimizer is not in it.", 64, "zero2", "float16",
                   bert(24, 1024, 30522, 128), 64 / 272 * 1e6)


# ---- vision ----

def vit_large_mae():
    """800 epochs of ImageNet's 1281167 images in 42 h on 64 V100, 64 images each; memory as in scripts/workloads."""
    layers, step_us = mae_large(), 42 * 3600e6 / (800 * 1281167 / 4096)
    return layered("vit_large_mae", "Shapes of mae_vit_large_patch16 (arXiv 2111.06377), a quarter of the patches seen. Step of 64 "
                   "V100, 42 h for 800 epochs with 64 images per GPU, mixed precision (facebookresearch/mae, PRETRAIN.md).", 64,
                   "ddp", "float32", layers, step_us, optimizer_us(layers, ADAM, 800e3))


def swin_large():
    """Memory of an RTX 3090: 936 GB/s in NVIDIA's data sheet, of which a kernel reaches 0.9."""
    layers = swin(192, (2, 2, 18, 2), (6, 12, 24, 48), 7, 1000)
    return layered("swin_large", "Shapes of swin_large_patch4_window7_224 (arXiv 2103.14030). Step of one RTX 3090, 414.255 ms for "
                   "64 images, mixed precision (huggingface/pytorch-image-models, "
                   "results/benchmark-train-amp-nchw-pt112-cu113-rtx3090.csv).", 64, "ddp", "float32", layers, 414255,
                   optimizer_us(layers, SGD, 0.9 * 936e3))


# ---- tensors and stages ----

class Events:
    """A list of events; `only` is that of all that follow."""

    def __init__(self):
        self.list, self.ids, self.only = [], 0, None

    def add(self, event):
        self.list.append({**event, "only": self.only} if self.only else event)

    def compute(self, us):
        self.add({"compute_us": round(us, 1)})

    def wait(self):
        self.add({"wait": self.ids})

    def collective(self, name, has_wait=True, **rest):
        self.ids += has_wait
        self.add({"collective": name, **rest, **({"id": self.ids} if has_wait else {})})
        if has_wait:
            self.wait()

    def exchange(self, parts, has_wait):
        self.ids += has_wait
        self.add({"exchange": parts, "group": "pp", **({"id": self.ids} if has_wait else {})})
        if has_wait:
            self.wait()


TENSORS, STAGES, MICROBATCHES = 8, 2, 2
GPT7 = {"layers": 36, "width": 4096, "words": 51200, "tokens": 2048}
GPT7_FLOPS = 142e12  # of a GPU


class Stage:
    """What the ranks of one stage do in a step: one forward, one backward in turn. `tensors`: ranks that share a layer."""

    def __init__(self, events, rank, layer_us, tensors):
        self.events, self.peer, self.layer_us, self.tensors = events, 1 - rank, layer_us, tensors
        self.only = {"group": "pp", "rank": rank}
        self.activations = GPT7["tokens"] * GPT7["width"]

    def layers(self):
        """In one direction: tensor parallelism sums activations, or their gradients, twice in each layer."""
        if self.tensors == 1:
            self.events.compute(self.layer_us * GPT7["layers"] // STAGES)
            return
        for _ in range(2 * GPT7["layers"] // STAGES):
            self.events.compute(self.layer_us / 2)
            self.events.collective("all_reduce", elements=self.activations, group="tp")

    def forward(self):
        self.events.only = self.only
        self.layers()

    def backward(self):
        """Layers are computed anew before their gradients are, which take twice as long."""
        self.layers()
        self.layer_us *= 2
        self.layers()
        self.layer_us /= 2

    def hand_over(self, sends, receives):
        """Each rank sends its part of the activations to the same rank of the other stage, which gathers them."""
        part = self.activations // self.tensors
        self.events.only = self.only
        self.events.exchange([{"send": self.peer, "elements": part}] * sends + [{"recv": self.peer, "elements": part}] * receives,
                             receives)
        if receives and self.tensors > 1:
            self.events.collective("all_gather", elements=part, group="tp")


def first_stage(stage):
    stage.forward()
    stage.hand_over(1, 0)
    for _ in range(1, MICROBATCHES):
        stage.forward()
        stage.hand_over(1, 1)
        stage.backward()
    stage.hand_over(0, 1)
    stage.backward()


def last_stage(stage):
    stage.hand_over(0, 1)
    for number in range(MICROBATCHES):
        stage.forward()
        stage.backward()
        stage.hand_over(1, number + 1 < MICROBATCHES)


def gpt_7b(name, tensors):
    """Megatron-LM's count of operations, which has the forward pass that is computed anew (arXiv 2104.04473, section 5.1)."""
    layers, width, words, tokens = GPT7.values()
    operations = 96 * tokens * layers * width ** 2 * (1 + tokens / (6 * width) + words / (16 * layers * width))
    layer_us = operations / (TENSORS * STAGES) / GPT7_FLOPS * 1e6 / 4 / (layers // STAGES)
    events = Events()
    first_stage(Stage(events, 0, layer_us, tensors))
    last_stage(Stage(events, 1, layer_us, tensors))
    events.only = None
    embedding = words * width // tensors
    gradients = layers // STAGES * 12 * width ** 2 // tensors + embedding
    events.collective("all_reduce", False, elements=gradients, type="float32", group="dp")
    events.collective("all_reduce", False, elements=embedding, type="float32", group="pp")
    who = "neighbours share tensors, the next 8 ranks are the other stage" if tensors > 1 else \
          "a rank stands for the 8 GPUs of a host, which share tensors, the next rank is the other stage"
    source = f"Shapes of Megatron-LM's GPT of 7.5 billion parameters (arXiv 2104.04473, table 1), {MICROBATCHES} microbatches of " \
             f"2048 tokens; {who}, the rest is data parallel; gradients float32. Times of A100 at 142 TFLOP/s, float16, measured for this model with 4 x 1, so that they have " \
             "what tensor parallelism cost there (the same table). Matrices alone count. Divided over layers evenly; " \
             "forward, forward again and twice as long backward (scripts/workloads)"
    groups = [{"name": "tp", "size": tensors, "stride": 1}] if tensors > 1 else []
    groups += [{"name": "pp", "size": STAGES, "stride": tensors}, {"name": "dp", "stride": tensors * STAGES}]
    return {**head_of(name, source, MICROBATCHES, "events", "bfloat16"), "groups": groups, "events": events.list}


# ---- experts ----

MIXTRAL = {"layers": 32, "width": 4096, "inner": 14336, "words": 32000, "keys": 1024, "tokens": 4096}
EXPERTS, CHOSEN = 8, 2
MIXTRAL_FLOPS = 468e12  # of a GPU
# Mixtral's own shares are published as a picture only (arXiv 2401.04088, figure 7), so these are assumed: the busiest expert gets
# half as much again as the mean, the others evenly less.
BUSIEST = 1.5


def shares(layer):
    """Elements for each expert of what one rank sends; each layer has another busiest one."""
    mean = MIXTRAL["tokens"] * CHOSEN / EXPERTS
    tokens = [round(mean * (BUSIEST - (2 * BUSIEST - 2) * i / (EXPERTS - 1))) for i in range(EXPERTS)]
    tokens[-1] += round(mean * EXPERTS) - sum(tokens)
    return [tokens[(i - layer) % EXPERTS] * MIXTRAL["width"] for i in range(EXPERTS)]


def expert_layer(events, layer, dense_us, expert_us):
    """Tokens go to their experts and come back; in the backward pass their gradients do."""
    events.collective("alltoall", sends=shares(layer))
    events.compute(expert_us)
    events.collective("alltoall", receives=shares(layer))
    events.compute(dense_us)


def mixtral():
    _, width, inner, words, keys, tokens = MIXTRAL.values()
    dense = 2 * width * width + 2 * width * keys + width * EXPERTS + 2 * width
    dense_work = 2 * dense * tokens + attention_operations(tokens, width, True)
    expert_work = 2 * CHOSEN * 3 * width * inner * tokens
    dense_us, expert_us, head_us = (work / MIXTRAL_FLOPS * 1e6 for work in (dense_work, expert_work, 2 * width * words * tokens))
    events = Events()
    events.compute(dense_us)
    for layer in range(MIXTRAL["layers"]):
        expert_layer(events, layer, dense_us if layer + 1 < MIXTRAL["layers"] else head_us, expert_us)
    events.compute(2 * head_us)
    events.collective("all_reduce", False, elements=words * width + width, type="float32")
    for layer in reversed(range(MIXTRAL["layers"])):
        expert_layer(events, layer, 2 * dense_us, 2 * expert_us)
        events.collective("all_reduce", False, elements=dense, type="float32")
    events.collective("all_reduce", False, elements=words * width, type="float32")
    source = "Shapes of Mixtral-8x7B (arXiv 2401.04088; 32 layers, 4096, 14336, 8 experts of which 2 are chosen), 4096 tokens; 8 " \
             "experts over all ranks, everything else data parallel with float32 gradients, all layers on each rank. Times of H100 at " \
             "468 TFLOP/s, bfloat16 (NVIDIA/Megatron-LM, megatron/core/transformer/moe/README.md). How many tokens each " \
             "expert gets is assumed: the busiest 1.5 times the mean (scripts/training/today.py). Divided over layers by operations, " \
             "one third forward, two thirds backward (scripts/workloads)"
    return {**head_of("mixtral_8x7b_ep", source, 1, "events", "bfloat16"), "events": events.list}


WORKLOADS = {"llama2_7b_fsdp": llama2_7b, "llama2_13b_fsdp": llama2_13b, "gpt2_1.5b_ddp": gpt2_xl, "gpt_7b_tp8_pp2": functools.partial(gpt_7b, "gpt_7b_tp8_pp2", TENSORS),
             "gpt_7b_tp8_pp2_hosts": functools.partial(gpt_7b, "gpt_7b_tp8_pp2_hosts", 1), "mixtral_8x7b_ep": mixtral, "vit_large_mae": vit_large_mae, "swin_large": swin_large, "bert_large_zero2": bert_large}
