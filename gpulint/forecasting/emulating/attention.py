"""Scaled dot-product attention as a GPU does it: flash, memory-efficient, or by hand.

Without a card torch falls back to the composite, which keeps the square of scores; on a GPU the fused kernels keep the output and one
number a row. The choice follows `aten/src/ATen/native/transformers/cuda/sdp_utils.cpp` for cards from compute capability 8.0 on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import torch
import torch.nn.functional as F

from gpulint.forecasting.emulating._tensors import is_half, on_card, size_of, taking

_aten: Final = torch.ops.aten
_ALIGNED: Final = 16  # elements to which the rows of a mask are padded


def _cast(tensor: torch.Tensor) -> torch.Tensor:
    """Autocast casts the operator's inputs."""
    if torch.is_autocast_enabled("cuda") and tensor.is_floating_point() and tensor.dtype != torch.float64:
        return tensor.to(torch.get_autocast_dtype("cuda"))
    return tensor


def _flash(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Any) -> bool:
    return (
        torch.backends.cuda.flash_sdp_enabled()
        and mask is None
        and is_half(q)
        and q.dim() == k.dim() == v.dim() == 4
        and all(one.stride(-1) == 1 for one in (q, k, v))
        and q.shape[-1] <= 256
        and q.shape[-1] == k.shape[-1] == v.shape[-1]
    )


def _efficient(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Any, grouped: bool) -> bool:
    vector = 8 if is_half(q) else 4
    return (
        torch.backends.cuda.mem_efficient_sdp_enabled()
        and all(one.stride(-1) == 1 for one in (q, k, v, *(() if mask is None else (mask,))))
        and (is_half(q) or q.dtype is torch.float32)
        and q.dim() == k.dim() == v.dim() == 4
        and q.shape[-1] % vector == v.shape[-1] % vector == 0
        and not (grouped and q.shape[1] != k.shape[1])
    )


def _bias(mask: torch.Tensor, q: torch.Tensor, keys: int) -> torch.Tensor:
    """A mask as the kernel takes it: numbers to add, each row starting at an aligned address."""
    if mask.dtype is torch.bool:
        none = torch.zeros((), dtype=q.dtype, device=mask.device)
        mask = torch.where(mask, none, torch.full((), float("-inf"), dtype=q.dtype, device=mask.device))
    if mask.shape[-1] % _ALIGNED and mask.shape[-1] > 1:
        mask = F.pad(mask, (0, _ALIGNED - mask.shape[-1] % _ALIGNED))[..., : mask.shape[-1]]
    return mask.expand(q.shape[0], q.shape[1], q.shape[2], keys)


def replacement(original: Callable[..., Any]) -> Callable[..., Any]:
    """`scaled_dot_product_attention`, with the kernels of a GPU for tensors that are on one."""

    def scaled_dot_product_attention(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        if not on_card(query):
            return original(
                query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
            )
        q, k, v = _cast(query), _cast(key), _cast(value)
        with torch.autocast("cuda", enabled=False):
            if _flash(q, k, v, attn_mask):
                return _run_flash(q, k, v, dropout_p, is_causal, scale)
            if _efficient(q, k, v, attn_mask, enable_gqa):
                bias = None if attn_mask is None else _bias(attn_mask, q, k.shape[-2])
                learns = torch.is_grad_enabled() and any(one.requires_grad for one in (q, k, v))
                return _aten._scaled_dot_product_efficient_attention(
                    q, k, v, bias, learns, dropout_p, is_causal, scale=scale
                )[0]
            return original(q, k, v, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)

    return scaled_dot_product_attention


def _run_flash(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dropout: float, causal: bool, scale: float | None
) -> torch.Tensor:
    width = q.shape[-1]
    missing = -width % 8
    if missing:
        q, k, v = (F.pad(one, (0, missing)) for one in (q, k, v))
    out: torch.Tensor = _aten._scaled_dot_product_flash_attention(
        q, k, v, dropout, causal, False, scale=scale if scale is not None else width**-0.5
    )[0]
    return out[..., :width] if missing else out


def _row_bytes(q: torch.Tensor) -> int:
    """One number in single precision for each row of scores."""
    return q.numel() // q.shape[-1] * 4


def _sum_bytes(q: torch.Tensor, width: int, rows: int) -> int:
    """The gradient of the queries in single precision, as kernels lay it out: in whole `width` columns and whole `rows`."""
    whole = [-(-size // by) * by for size, by in ((q.shape[-1], width), (q.shape[-2], rows))]
    return math.prod(q.shape[:-2]) * math.prod(whole) * 4


def _flash_backward(out: Any, gradient: Any, q: torch.Tensor, k: torch.Tensor, *_: Any, **__: Any) -> int:
    """The gradient of the queries is summed in single precision; heads that share keys have gradients of their own first."""
    shared = 2 * size_of(q) if k.shape[1] != q.shape[1] else 0
    return _sum_bytes(q, 32, 128) + _row_bytes(q) + shared


def _efficient_backward(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The gradient, copied where it has not the kernels' layout; times the output, summed by rows; then the gradient of the queries
    in single precision."""
    out = tape.execute(func, args, kwargs)
    gradient, q = args[0], args[1]
    if on_card(gradient):
        copied = not gradient.transpose(1, 2).is_contiguous()
        with tape.holding(size_of(gradient) if copied else 1):
            tape.see(out)
            product, rows = tape.hold(size_of(gradient)), tape.hold(_row_bytes(q))
            tape.release(product)
            tape.temporary(_sum_bytes(q, 64, 1) + _row_bytes(q) // 16)
            tape.release(rows)
    return out


HOOKS: Final = {
    _aten._scaled_dot_product_flash_attention_backward.default: taking(_flash_backward),
    _aten._scaled_dot_product_efficient_attention_backward.default: _efficient_backward,
}


def patches() -> list[tuple[Any, str, Callable[..., Any]]]:
    new = replacement(F.scaled_dot_product_attention)
    return [(F, "scaled_dot_product_attention", new), (torch._C._nn, "scaled_dot_product_attention", new)]
