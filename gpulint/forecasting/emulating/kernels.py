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


def _safe_softmax(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Rows of which everything is masked are looked for."""
    out = tape.execute(func, args, kwargs)
    if on_card(out):
        tape.see(out)
        tape.temporary(out.numel())
    return out


def _complex_input(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Works on a copy of a complex input: cuFFT destroys it, and `abs` has complex results first."""
    out = tape.execute(func, args, kwargs)
    if on_card(args[0]) and args[0].is_complex():
        tape.see(out)
        tape.temporary(size_of(args[0]))
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


def _fused_step(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """In place, without anything of its own."""


HOOKS: Final = {
    _aten._fused_sgd_.default: _fused_step,
    _aten._fused_sgd_.tensor_lr: _fused_step,
    _aten._fused_adagrad_.default: _fused_step,
    _aten.native_dropout.default: _dropout,
    _aten.native_batch_norm.default: _batch_norm,
    _aten.native_batch_norm_backward.default: _batch_norm,
    _aten.cudnn_batch_norm.default: _batch_norm,
    _aten.cudnn_batch_norm_backward.default: _batch_norm,
    _aten._softmax_backward_data.default: _softmax_backward,
    _aten._safe_softmax.default: _safe_softmax,
    _aten._fft_c2r.default: _complex_input,
    _aten.abs.default: _complex_input,
    _aten.angle.default: _complex_input,
}
