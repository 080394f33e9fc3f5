# SPDX-License-Identifier: Apache-2.0
"""The models of the built-in workloads that torchvision lacks, as torch modules.

Only what decides gradients and times: shapes, order and sharing of the parameters, and the operations between them.
Each is written from the configuration that its docstring names; nothing here can train well (no dropout, no masks,
no initial values)."""
import torch
from torch import nn


class Product(nn.Module):
    """Attention without its projections: softmax(q k') v, as a module so that its operations can be counted."""

    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def split(self, x):
        batch, length, width = x.shape
        return x.reshape(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, query, key, value):
        query, key, value = self.split(query), self.split(key), self.split(value)
        weights = torch.softmax(query @ key.transpose(2, 3), dim=-1)
        return (weights @ value).transpose(1, 2).flatten(2)


class Attention(nn.Module):
    """Projections of `width`, in the order in which `names` registers them; the last projects the result."""

    def __init__(self, width, heads, names):
        super().__init__()
        for name in names:
            self.add_module(name, nn.Linear(width, width))
        self.product = Product(heads)

    def forward(self, x, memory):
        project = dict(self.named_children())
        mixed = project["product"](project["query"](x), project["key"](memory), project["value"](memory))
        return project["out"](mixed)


class PostNorm(nn.Module):
    """One block of a transformer that normalizes after each residual: attention to itself, to the encoder's output
    where there is one, and the two feed-forward layers."""

    def __init__(self, width, inner, heads, names, is_decoder=False):
        super().__init__()
        self.attention = Attention(width, heads, names)
        self.attention_norm = nn.LayerNorm(width)
        self.cross = Attention(width, heads, names) if is_decoder else None
        self.cross_norm = nn.LayerNorm(width) if is_decoder else None
        self.inner = nn.Linear(width, inner)
        self.activation = nn.GELU()
        self.outer = nn.Linear(inner, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x, memory=None):
        x = self.attention_norm(x + self.attention(x, x))
        if self.cross is not None:
            x = self.cross_norm(x + self.cross(x, memory))
        return self.norm(x + self.outer(self.activation(self.inner(x))))


class BertHead(nn.Module):
    """Predicts the masked words: its matrix is the word embedding's, its bias is registered first."""

    def __init__(self, words):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(words.num_embeddings))
        self.dense = nn.Linear(words.embedding_dim, words.embedding_dim)
        self.activation = nn.GELU()
        self.norm = nn.LayerNorm(words.embedding_dim)
        self.decoder = nn.Linear(words.embedding_dim, words.num_embeddings, bias=False)
        self.decoder.weight = words.weight

    def forward(self, x):
        return self.decoder(self.norm(self.activation(self.dense(x)))) + self.bias


class Bert(nn.Module):
    """BERT-base with its masked language model head: 12 blocks, width 768, inner 3072, 12 heads, 30522 words,
    512 positions, 2 segments (the defaults of transformers' BertConfig; Devlin et al. 2018)."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(30522, 768)
        self.positions = nn.Embedding(512, 768)
        self.segments = nn.Embedding(2, 768)
        self.norm = nn.LayerNorm(768)
        names = ("query", "key", "value", "out")
        self.blocks = nn.ModuleList(PostNorm(768, 3072, 12, names) for _ in range(12))
        self.head = BertHead(self.words)

    def forward(self, tokens):
        place = torch.arange(tokens.shape[1]).unsqueeze(0)
        x = self.norm(self.words(tokens) + self.positions(place) + self.segments(torch.zeros_like(tokens)))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class BartHalf(nn.Module):
    """The encoder or the decoder of BART."""

    def __init__(self, words, is_decoder):
        super().__init__()
        self.words = words
        self.positions = nn.Embedding(1026, 768)  # 1024, and 2 that it reserves
        names = ("key", "value", "query", "out")
        self.blocks = nn.ModuleList(PostNorm(768, 3072, 12, names, is_decoder) for _ in range(6))
        self.norm = nn.LayerNorm(768)  # of the embedding, but registered here

    def forward(self, tokens, memory=None):
        place = torch.arange(tokens.shape[1]).unsqueeze(0)
        x = self.norm(self.words(tokens) + self.positions(place))
        for block in self.blocks:
            x = block(x, memory)
        return x


class Bart(nn.Module):
    """BART-base with its language model head: 6 + 6 blocks, width 768, inner 3072, 12 heads, 50265 words
    (config.json of facebook/bart-base; Lewis et al. 2019). One matrix embeds on both sides and predicts."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50265, 768)
        self.encoder = BartHalf(self.words, is_decoder=False)
        self.decoder = BartHalf(self.words, is_decoder=True)
        self.head = nn.Linear(768, 50265, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens, decoder_tokens):
        return self.head(self.decoder(decoder_tokens, self.encoder(tokens)))


class SpeechTransformer(nn.Module):
    """Speech-Transformer of TorchBench: 6 + 6 blocks, width 512, inner 2048, 8 heads, 4 frames of 80 mel values as
    input (TorchBench's speech_transformer/config.py; Dong et al. 2018). 4233 characters, those of all of AISHELL;
    TorchBench's own data is a part of it with fewer. One matrix embeds and predicts characters."""

    def __init__(self):
        super().__init__()
        names = ("query", "key", "value", "out")
        self.input = nn.Linear(4 * 80, 512)
        self.input_norm = nn.LayerNorm(512)
        self.encoder = nn.ModuleList(PostNorm(512, 2048, 8, names) for _ in range(6))
        self.characters = nn.Embedding(4233, 512)
        self.decoder = nn.ModuleList(PostNorm(512, 2048, 8, names, is_decoder=True) for _ in range(6))
        self.head = nn.Linear(512, 4233, bias=False)
        self.head.weight = self.characters.weight

    def forward(self, frames, tokens):
        memory = self.input_norm(self.input(frames))
        for block in self.encoder:
            memory = block(memory)
        x = self.characters(tokens)
        for block in self.decoder:
            x = block(x, memory)
        return self.head(x)


class SpeakerEncoder(nn.Module):
    """tts_angular of TorchBench: 3 LSTMs of 768 units on 40 mel values, each projected to 256 without bias
    (TorchBench's angular_tts_main.py; GE2E, Wan et al. 2018)."""

    def __init__(self):
        super().__init__()
        layers = []
        for width in (40, 256, 256):
            layers += [nn.LSTM(width, 768, batch_first=True), nn.Linear(768, 256, bias=False)]
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)[0] if isinstance(layer, nn.LSTM) else layer(x)
        return x[:, -1]


def convolution(inputs, outputs, size=3, stride=1, bias=False):
    """A convolution that keeps the size (but for its stride), its normalization and its activation."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=bias), nn.BatchNorm2d(outputs),
                         nn.ReLU())


class Aggregation(nn.Module):
    """VoVNet's one-shot aggregation: five convolutions in a row, all their results and the input joined by a last."""

    def __init__(self, inputs, middle, outputs):
        super().__init__()
        self.chain = nn.ModuleList(convolution(inputs if i == 0 else middle, middle) for i in range(5))
        self.join = convolution(inputs + 5 * middle, outputs, size=1)

    def forward(self, x):
        parts = [x]
        for each in self.chain:
            parts.append(each(parts[-1]))
        return self.join(torch.cat(parts, dim=1))


def vovnet39a():
    """VoVNet-39: a stem of 64, 64, 128 channels, stages of 1, 1, 2, 2 aggregations with 128, 160, 192, 224 channels
    inside and 256, 512, 768, 1024 outside (Lee et al. 2019; vovnet39a of timm, no attention, no residuals)."""
    layers = [convolution(3, 64, stride=2), convolution(64, 64), convolution(64, 128, stride=2)]
    inputs = 128
    for stage, (count, middle, outputs) in enumerate([(1, 128, 256), (1, 160, 512), (2, 192, 768), (2, 224, 1024)]):
        if stage > 0:
            layers.append(nn.MaxPool2d(3, 2, ceil_mode=True))
        for _ in range(count):
            layers.append(Aggregation(inputs, middle, outputs))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, 1000))


class UNet(nn.Module):
    """U-Net of TorchBench: 64 to 512 channels over five sizes, bilinear instead of transposed convolutions, two
    classes (TorchBench's pytorch_unet; Ronneberger et al. 2015)."""

    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool2d(2)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        widths = [(3, 64), (64, 128), (128, 256), (256, 512), (512, 512)]
        self.down_steps = nn.ModuleList(self.pair(inputs, outputs, outputs) for inputs, outputs in widths)
        widths = [(1024, 256), (512, 128), (256, 64), (128, 64)]
        self.up_steps = nn.ModuleList(self.pair(inputs, inputs // 2, outputs) for inputs, outputs in widths)
        self.head = nn.Conv2d(64, 2, 1)

    @staticmethod
    def pair(inputs, middle, outputs):
        return nn.Sequential(convolution(inputs, middle, bias=True), convolution(middle, outputs, bias=True))

    def forward(self, x):
        levels = []
        for step in self.down_steps:
            x = step(self.pool(x) if levels else x)
            levels.append(x)
        levels.pop()
        for step in self.up_steps:
            across = levels.pop()
            x = self.up(x)
            missing = [across.shape[3] - x.shape[3], across.shape[2] - x.shape[2]]
            x = nn.functional.pad(x, [0, missing[0], 0, missing[1]])
            x = step(torch.cat([across, x], dim=1))
        return self.head(x)
