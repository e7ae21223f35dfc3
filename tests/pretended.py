"""A card that is not there: tensors that a program moves to it are marked, and stay where they are.

What is computed of marked tensors is marked. To compute with both kinds raises, as it does on a GPU, and so does an array of
a marked one: a program that ran before a fix and mixes them after it is told.
"""

from __future__ import annotations

from typing import Any

import torch
from recording import tensors_in
from torch import nn
from torch.overrides import TorchFunctionMode

_MARK = "_on_the_card"
_INDEXING = frozenset({"__getitem__", "__setitem__", "copy_", "index_put_"})
_ELSEWHERE = frozenset(
    "__repr__ __format__ __set__ __deepcopy__ backward save _has_compatible_shallow_copy_type".split()
)


def is_device(value: Any, kind: str = "cuda") -> bool:
    """Whether a value names a device of that kind."""
    text = value.type if isinstance(value, torch.device) else value
    return isinstance(text, str) and text.partition(":")[0] == kind


def is_marked(tensor: torch.Tensor) -> bool:
    return bool(getattr(tensor, _MARK, False))


def mark(module: nn.Module) -> nn.Module:
    """Put a network on the card."""
    for tensor in (*module.parameters(), *module.buffers()):
        setattr(tensor, _MARK, True)
    return module


class PretendedCard(TorchFunctionMode):
    """Everything asked for on a GPU is made on the CPU, and marked."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if func is torch.Tensor.cuda or (func is torch.Tensor.to and _goes_to_card(args, kwargs)):
            kwargs.pop("device", None)
            rest = tuple("cpu" if is_device(value) else value for value in args[1:])
            moved = args[0] if is_marked(args[0]) else args[0].clone()
            return _marked(torch.Tensor.to(moved, *rest, **kwargs) if func is torch.Tensor.to else moved)
        if func is torch.Tensor.cpu or (func is torch.Tensor.to and any(is_device(v, "cpu") for v in args)):
            return _marked(args[0].clone(), False)
        given = [tensor for tensor in tensors_in((args, kwargs)) if name not in _ELSEWHERE]
        on_card = any(map(is_marked, given))
        if name == "numpy" and on_card:
            raise TypeError("can't convert cuda:0 device type tensor to numpy.")
        if on_card and name not in _INDEXING and any(one.dim() and not is_marked(one) for one in given):
            raise RuntimeError(f"Expected all tensors to be on the same device: {name}.")
        asked = is_device(kwargs.get("device"))
        if "device" in kwargs:
            kwargs["device"] = "cpu"
        made = func(*args, **kwargs)
        if name == "__get__" and isinstance(made, torch.device):
            return torch.device("cuda") if on_card else made
        if name == "is_cuda" or (name == "__get__" and made is False and "is_cuda" in str(func)):
            return on_card
        for tensor in tensors_in(made):
            if asked or (on_card and not is_marked(tensor)):
                setattr(tensor, _MARK, True)
        return made


def _goes_to_card(args: Any, kwargs: Any) -> bool:
    places = (*args[1:], kwargs.get("device"))
    return any(map(is_device, places)) or any(
        isinstance(one, torch.Tensor) and is_marked(one) for one in places
    )


def _marked(tensor: torch.Tensor, on: bool = True) -> torch.Tensor:
    setattr(tensor, _MARK, on)
    return tensor
