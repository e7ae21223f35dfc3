"""Kernels with temporaries of their own, as recorded on an H200 with torch 2.11."""

from __future__ import annotations

from typing import Any, Final

import torch

from gpulint.forecasting.emulating._tensors import is_half, on_card, size_of

_aten: Final = torch.ops.aten


def _softmax_backward(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The gradient times the result is formed first."""
    out = tape.execute(func, args, kwargs)
    if on_card(out):
        tape.see(out)
        tape.temporary(size_of(args[0]))
    return out


def _embedding_backward(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The tokens are sorted, and the rows of equal tokens summed in single precision before they are written."""
    out = tape.execute(func, args, kwargs)
    if on_card(out):
        indices = args[1]
        sorting = tape.hold(8 * indices.numel() * 4)
        tape.see(out)
        tape.temporary(int(1.1 * indices.numel()) * out.shape[-1] * 4)
        tape.release(sorting)
    return out


def _sort(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A flat sort goes through buffers for keys and places; rows are sorted in place."""
    out = tape.execute(func, args, kwargs)
    if on_card(args[0]) and args[0].dim() == 1:
        tape.see(out)
        tape.temporary(size_of(args[0]) + 8 * args[0].numel())
    return out


def _batch_norm(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """cuDNN's batch normalization of channels-last data, which sums in parts."""
    out = tape.execute(func, args, kwargs)
    data = args[0]
    if on_card(data) and data.dim() == 4 and data.is_contiguous(memory_format=torch.channels_last):
        tape.see(out)
        tape.temporary(data.numel() // 20 if is_half(data) else data.numel() // 8)
    return out


def _dropout(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The mask is allocated before the result, and returned after it."""
    out = tape.execute(func, args, kwargs)
    tape.see(out[1])
    return out


HOOKS: Final = {
    _aten.native_dropout.default: _dropout,
    _aten.native_batch_norm.default: _batch_norm,
    _aten.native_batch_norm_backward.default: _batch_norm,
    _aten.cudnn_batch_norm.default: _batch_norm,
    _aten.cudnn_batch_norm_backward.default: _batch_norm,
    _aten._softmax_backward_data.default: _softmax_backward,
    _aten.embedding_dense_backward.default: _embedding_backward,
    _aten.sort.default: _sort,
    _aten.sort.stable: _sort,
}
