"""What the emulation asks of tensors, and the hook that most operators need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

import torch
from torch._subclasses.fake_tensor import FakeTensor

Hook = Callable[[Any, Any, tuple[Any, ...], dict[str, Any]], Any]


def on_card(value: object) -> TypeGuard[FakeTensor]:
    return isinstance(value, FakeTensor) and value.fake_device.type == "cuda"


def size_of(tensor: torch.Tensor) -> int:
    """Bytes of the elements."""
    return tensor.numel() * tensor.element_size()


def is_half(tensor: torch.Tensor) -> bool:
    return tensor.dtype in (torch.float16, torch.bfloat16)


def after(then: Callable[[Any, Any, Any, tuple[Any, ...], dict[str, Any]], None]) -> Hook:
    """Runs an operator and, where it is one on the card, what its kernel does then: `then(tape, func, out, args, kwargs)`."""

    def run(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        out = tape.execute(func, args, kwargs)
        if on_card(args[0]):
            tape.see(out)
            then(tape, func, out, args, kwargs)
        return out

    return run


def taking(size: Callable[..., int]) -> Hook:
    """Runs an operator whose kernel takes so many bytes beside its result and gives them back: `size(out, *args, **kwargs)`."""
    return after(lambda tape, _, out, args, kwargs: tape.temporary(size(out, *args, **kwargs)))


def taking_first(size: Callable[..., int]) -> Hook:
    """The same, taken before the result is made."""

    def run(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        out = tape.execute(func, args, kwargs)
        if on_card(args[0]):
            with tape.holding(*filter(None, (size(out, *args, **kwargs),))):
                tape.see(out)
        return out

    return run
