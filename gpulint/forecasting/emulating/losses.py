"""Losses that are several kernels on a card: what is between them, and what stays.

A loss that is reduced is first made element by element. Where the result was declared with the shape of the elements and shrunk to
a number (`aten/src/ATen/native/BinaryOps.cpp`), that number keeps their memory for as long as it lives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import torch

from gpulint.forecasting.emulating._tensors import on_card, size_of

_aten: Final = torch.ops.aten
_NONE: Final = 0  # no reduction


def _elements(first: torch.Tensor, second: torch.Tensor) -> int:
    """Bytes of the loss by element."""
    shape = torch.broadcast_shapes(first.shape, second.shape)
    return math.prod(shape) * torch.promote_types(first.dtype, second.dtype).itemsize


def _reduction(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    found: int = args[2] if len(args) > 2 else kwargs.get("reduction", 1)
    return found


def _shrunk(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result keeps the memory of the elements; a second time as many are there meanwhile."""
    out = tape.execute(func, args, kwargs)
    if not on_card(out) or _reduction(args, kwargs) == _NONE:
        return out
    size = _elements(args[0], args[1])
    out = tape.within(out, size)
    if func is not _aten.soft_margin_loss.default:
        tape.temporary(size)
    return out


def _between(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    out = tape.execute(func, args, kwargs)
    if on_card(out) and _reduction(args, kwargs) != _NONE:
        held = tape.hold(_elements(args[0], args[1]))
        tape.see(out)
        tape.release(held)
    return out


class _CrossEntropy(torch.autograd.Function):
    """`binary_cross_entropy_with_logits`: two tensors of elements in the forward, and a backward that works within its result."""

    @staticmethod
    def forward(
        ctx: Any, tape: Any, plain: Callable[..., Any], logits: Any, target: Any, weight: Any, positive: Any, reduction: int
    ) -> Any:  # fmt: skip
        ctx.save_for_backward(logits, target, weight, positive)
        size = size_of(logits)
        held = tape.hold(size)
        tape.temporary(size)
        tape.release(held)
        return tape.made(lambda: plain(logits, target, weight, positive, reduction))

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        logits = ctx.saved_tensors[0]
        return None, None, torch.empty_like(logits), None, None, None, None


def patches(tape: Any) -> list[tuple[Any, str, Callable[..., Any]]]:
    plain = torch.binary_cross_entropy_with_logits

    def binary_cross_entropy_with_logits(
        logits: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 1
    ) -> Any:
        simple = on_card(logits) and not getattr(target, "requires_grad", False) and torch.is_grad_enabled()
        if not simple or not logits.requires_grad or torch.is_autocast_enabled("cuda"):
            return plain(logits, target, weight, pos_weight, reduction)
        return _CrossEntropy.apply(tape, plain, logits, target, weight, pos_weight, reduction)

    return [(torch, "binary_cross_entropy_with_logits", binary_cross_entropy_with_logits)]


HOOKS: Final = {
    _aten.mse_loss.default: _shrunk,
    _aten.smooth_l1_loss.default: _shrunk,
    _aten.soft_margin_loss.default: _shrunk,
    _aten.huber_loss.default: _between,
}
