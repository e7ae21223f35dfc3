"""Kernels with temporaries or workspaces of their own, as recorded on an H200 with torch 2.11.

Losses that are several kernels on a card: what is between them, and what stays.

A loss that is reduced is first made element by element. Where the result was declared with the shape of the elements and shrunk to
a number (`aten/src/ATen/native/BinaryOps.cpp`), that number keeps their memory for as long as it lives.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, Final

import torch

from gpulint.forecasting.emulating._tensors import (
    Hook,
    after,
    is_half,
    on_card,
    size_of,
    taking,
    taking_first,
)

_aten: Final = torch.ops.aten
_NONE: Final = 0  # no reduction


def _complex_input(out: Any, data: torch.Tensor, *_: Any, **__: Any) -> int:
    """Works on a copy of a complex input: cuFFT destroys it, and `abs` has complex results first."""
    return size_of(data) if data.is_complex() else 0


def _sums(out: Any, data: torch.Tensor, *_: Any, **__: Any) -> int:
    """cuDNN's batch normalization of channels-last data, which sums in parts."""
    if data.dim() != 4 or not data.is_contiguous(memory_format=torch.channels_last):
        return 0
    return data.numel() // (20 if is_half(data) else 8)


def _dropout(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The mask is allocated before the result, and returned after it."""
    out = tape.execute(func, args, kwargs)
    tape.see(out[1])
    return out


def _fused_step(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """In place, without anything of its own."""


def _product(tape: Any, func: Any, out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """cuBLAS takes a workspace from torch's allocator with the first product of each thread, and keeps it."""
    if out.numel():
        # The autograd engine has a thread of its own for the card, and so a second handle.
        thread = threading.get_ident()
        tape.permanent(tape.card.cublas_workspace, f"cuBLAS workspace {thread}")
        if func is _aten.addmm.default and args[0].dim() == 1:  # the bias is added by cublasLt
            tape.permanent(tape.card.cublaslt_workspace, f"cublasLt workspace {thread}")


_PRODUCTS: Final = "mm bmm addmm baddbmm addbmm mv addmv dot"
_NORMS: Final = "native_batch_norm native_batch_norm_backward cudnn_batch_norm cudnn_batch_norm_backward"


def _each(names: str, hook: Hook) -> dict[Any, Hook]:
    return {getattr(_aten, name).default: hook for name in names.split()}


# -- losses ---------------------------------------------------------------------------------------------------------


def _elements(
    out: Any, first: torch.Tensor, second: torch.Tensor, reduction: int = 1, *_: Any, **__: Any
) -> int:
    """Bytes of the loss by element, before it is reduced."""
    if reduction == _NONE:
        return 0
    shape = torch.broadcast_shapes(first.shape, second.shape)
    return math.prod(shape) * torch.promote_types(first.dtype, second.dtype).itemsize


def _shrunk(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result keeps the memory of the elements; a second time as many are there meanwhile."""
    out = tape.execute(func, args, kwargs)
    size = _elements(out, *args, **kwargs)
    if on_card(out) and size:
        out = tape.within(out, size)
        if func is not _aten.soft_margin_loss.default:
            tape.temporary(size)
    return out


def _ctc(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The loss of each sequence, and the probabilities of each place in it (`aten/src/ATen/native/cuda/LossCTC.cu`)."""
    steps, targets = args[0], args[1]
    batch = steps.shape[1] if steps.dim() == 3 else 1
    longest = targets.shape[1] if targets.dim() == 2 else -(-targets.numel() // batch)
    return steps.new_empty((batch,)), steps.new_empty((batch, steps.shape[0], 2 * longest + 1))


def _ctc_backward(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The probabilities from the other end, and both of the targets together."""
    with tape.holding(size_of(args[6])):
        out = torch.empty_like(args[1])
        tape.see(out)
        tape.temporary(size_of(args[6]) // 2)
    return out


class _CrossEntropy(torch.autograd.Function):
    """`binary_cross_entropy_with_logits`: two tensors of elements in the forward, and a backward that works within its result."""

    @staticmethod
    def forward(
        ctx: Any, tape: Any, plain: Callable[..., Any], logits: Any, target: Any, weight: Any, positive: Any, reduction: int
    ) -> Any:  # fmt: skip
        ctx.save_for_backward(logits, target, weight, positive)
        with tape.holding(size_of(logits)):
            tape.temporary(size_of(logits))
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

    ctc = torch.ctc_loss

    def ctc_loss(steps: Any, targets: Any, lengths: Any, target_lengths: Any, *rest: Any) -> Any:
        longest = targets.shape[-1]
        return ctc(
            steps, targets, _numbers(tape, lengths, steps.shape[0]), _numbers(tape, target_lengths, longest), *rest
        )  # fmt: skip

    return [
        (torch, "binary_cross_entropy_with_logits", binary_cross_entropy_with_logits),
        (torch, "ctc_loss", ctc_loss),
    ]


def _numbers(tape: Any, lengths: Any, most: int) -> Any:
    """Lengths as numbers, which torch makes of them, except of subclasses; the most where nobody knows them."""
    if not isinstance(lengths, torch.Tensor):
        return lengths
    known = tape.deciding.values(lengths) if on_card(lengths) else lengths
    return [most] * lengths.numel() if known is None else known.tolist()


HOOKS: Final = {
    **_each(_PRODUCTS, after(_product)),
    **_each(_NORMS, taking(_sums)),
    **_each("_fused_sgd_ _fused_adagrad_", _fused_step),
    **_each("_fft_c2r abs angle", taking(_complex_input)),
    _aten._fused_sgd_.tensor_lr: _fused_step,
    _aten.native_dropout.default: _dropout,
    # The gradient times the result is formed first
    _aten._softmax_backward_data.default: taking(lambda out, first, *_, **__: size_of(first)),
    # Rows of which everything is masked are looked for
    _aten._safe_softmax.default: taking(lambda out, *_, **__: out.numel()),
    _aten._ctc_loss.default: _ctc,
    _aten._ctc_loss.Tensor: _ctc,
    _aten._ctc_loss_backward.default: _ctc_backward,
    _aten._ctc_loss_backward.Tensor: _ctc_backward,
    _aten.mse_loss.default: _shrunk,
    _aten.smooth_l1_loss.default: _shrunk,
    _aten.soft_margin_loss.default: _shrunk,
    _aten.huber_loss.default: taking_first(_elements),
}
