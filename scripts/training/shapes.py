# SPDX-License-Identifier: Apache-2.0
"""Layers of a torch model: the parameters that each owns, and what its forward pass costs.

A layer is a module that owns parameters itself, in the order in which the model registered them: the order that
PyTorch's DistributedDataParallel reverses. Work of modules that own none is added to the layer that ran before them.
Work is counted while one sample passes through the model, of which only the shapes are real: nothing is computed."""
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from training.models import Product

# A V100 has 15.7 TFLOP/s (float32) and 900 GB/s (NVIDIA's data sheet): 17.4 operations in the time of a byte. What
# works element by element waits for memory: it reads and writes 4 bytes, which is the time of 140 operations.
OPERATIONS_PER_ELEMENT = 140


def operations(module, inputs, output):
    """Of one call, a multiplication and an addition being two."""
    if isinstance(module, nn.Conv2d):
        return 2 * output.numel() * module.weight[0].numel()
    if isinstance(module, nn.Linear):
        return 2 * output.numel() * module.in_features
    if isinstance(module, nn.LSTM):
        return 2 * inputs[0].shape[:2].numel() * (module.weight_ih_l0.numel() + module.weight_hh_l0.numel())
    if isinstance(module, Product):
        return product_operations(inputs[0], inputs[1], module.heads)
    if isinstance(module, nn.MultiheadAttention):  # torchvision's, to itself; nothing in it is called as a module
        return 2 * output.numel() * 4 * module.embed_dim + product_operations(output, output, module.num_heads)
    if isinstance(module, nn.Flatten):
        return 0  # a view
    return output.numel() * OPERATIONS_PER_ELEMENT


def product_operations(query, key, heads):
    batch, length, width = query.shape
    elements = batch * heads * length * key.shape[1]  # of the matrix of weights, which softmax reads and writes
    return 2 * 2 * batch * length * key.shape[1] * width + elements * OPERATIONS_PER_ELEMENT


def layers_of(build, inputs):
    """[(name, [elements of each parameter], operations forward)] of the model that `build` makes, in the order of
    registration. `inputs` are shapes; of two dimensions they are tokens."""
    with FakeTensorMode():
        samples = [torch.zeros(shape, dtype=torch.long if len(shape) == 2 else torch.float32) for shape in inputs]
        return count_layers(build(), samples)


def count_layers(model, samples):
    owners, seen = [], set()
    for name, module in model.named_modules():
        own = [p for p in module.parameters(recurse=False) if id(p) not in seen]
        seen.update(id(p) for p in own)
        if own:
            owners.append((name or "(model)", module, [p.numel() for p in own]))
    place = {id(module): index for index, (_, module, _) in enumerate(owners)}
    work = [0] * len(owners)
    last = [0]

    def count(module, given, output):
        last[0] = place.get(id(module), last[0])
        work[last[0]] += operations(module, given, output[0] if isinstance(output, tuple) else output)

    hooks = [module.register_forward_hook(count) for module in model.modules()
             if isinstance(module, nn.MultiheadAttention) or not list(module.children())]
    model(*samples)
    for hook in hooks:
        hook.remove()
    return [(name, elements, work[index]) for index, (name, _, elements) in enumerate(owners)]
