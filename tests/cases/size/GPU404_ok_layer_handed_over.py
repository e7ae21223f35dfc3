import copy

import torch
from torch import nn

from .layers import Packed


def pack(root):
    for name, child in root.named_children():
        if isinstance(child, nn.Linear):
            width = child.in_features
            weights = copy.deepcopy(child.state_dict())
            setattr(root, name, nn.Identity())
            del child
            torch.cuda.empty_cache()
            packed = Packed(width).to("cuda")
            packed.load_state_dict(weights, strict=False)
            setattr(root, name, packed)
        else:
            pack(child)


def rescale(layer, inputs, ratios, quantise):
    start = copy.deepcopy(layer.state_dict())
    wanted = layer(inputs.cuda())
    errors = []
    for ratio in ratios:
        layer.weight.data = quantise(layer.weight.data, ratio)
        errors.append((layer(inputs.cuda()) - wanted).pow(2).mean().item())
        layer.load_state_dict(start)
    return errors
