"""Kernels with temporaries or workspaces of their own, as recorded on an H200 with torch 2.11."""

from __future__ import annotations

import threading
from typing import Any, Final

import torch

from gpulint.forecasting.emulating._tensors import Hook, is_half, on_card, size_of, taking

_aten: Final = torch.ops.aten


def _like_first(out: Any, first: torch.Tensor, *_: Any, **__: Any) -> int:
    """The gradient times the result of a softmax is formed first."""
    return size_of(first)


def _masked_rows(out: torch.Tensor, *_: Any, **__: Any) -> int:
    """Rows of which everything is masked are looked for."""
    return out.numel()


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


def _product(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """cuBLAS takes a workspace from torch's allocator with the first product of each thread, and keeps it."""
    out = tape.execute(func, args, kwargs)
    if on_card(out) and out.numel():
        tape.see(out)
        # The autograd engine has a thread of its own for the card, and so a second handle.
        thread = threading.get_ident()
        tape.permanent(tape.card.cublas_workspace, f"cuBLAS workspace {thread}")
        if func is _aten.addmm.default and args[0].dim() == 1:  # the bias is added by cublasLt
            tape.permanent(tape.card.cublaslt_workspace, f"cublasLt workspace {thread}")
    return out


_PRODUCTS: Final = "mm bmm addmm baddbmm addbmm mv addmv dot"
_NORMS: Final = "native_batch_norm native_batch_norm_backward cudnn_batch_norm cudnn_batch_norm_backward"


def _each(names: str, hook: Hook) -> dict[Any, Hook]:
    return {getattr(_aten, name).default: hook for name in names.split()}


HOOKS: Final = {
    **_each(_PRODUCTS, _product),
    **_each(_NORMS, taking(_sums)),
    **_each("_fused_sgd_ _fused_adagrad_", _fused_step),
    **_each("_fft_c2r abs angle", taking(_complex_input)),
    _aten._fused_sgd_.tensor_lr: _fused_step,
    _aten.native_dropout.default: _dropout,
    _aten._softmax_backward_data.default: taking(_like_first),
    _aten._safe_softmax.default: taking(_masked_rows),
}
