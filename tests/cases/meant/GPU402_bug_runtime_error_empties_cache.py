"""Nothing says "out of memory" but what the handler does, or a shorter word."""

import torch
from torch import nn


def assign(assigner: nn.Module, scores, boxes):
    try:
        return assigner(scores, boxes)
    except RuntimeError:
        torch.cuda.empty_cache()  # expect: GPU402
        return assigner(scores[:1], boxes[:1])


def assign_with_word(assigner: nn.Module, scores, boxes):
    try:
        return assigner(scores, boxes)
    except RuntimeError as error:
        print("OOM while assigning, once more for the first only", error)
        return assigner(scores[:1], boxes[:1])  # expect: GPU402
