"""What the emulation asks of tensors."""

from __future__ import annotations

from typing import TypeGuard

import torch
from torch._subclasses.fake_tensor import FakeTensor


def on_card(value: object) -> TypeGuard[FakeTensor]:
    return isinstance(value, FakeTensor) and value.fake_device.type == "cuda"


def size_of(tensor: torch.Tensor) -> int:
    """Bytes of the elements."""
    return tensor.numel() * tensor.element_size()


def is_half(tensor: torch.Tensor) -> bool:
    return tensor.dtype in (torch.float16, torch.bfloat16)
