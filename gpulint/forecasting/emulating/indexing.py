"""Writing through indices: what is added up at equal places is sorted by place first, and a mask is made into indices.

As in `aten/src/ATen/native/cuda/Indexing.cu` (`index_put_with_sort_kernel`) and `Nonzero.cu`.
"""

from __future__ import annotations

import math
from typing import Any, Final

import torch

from gpulint.forecasting.emulating._tensors import on_card, size_of
from gpulint.forecasting.emulating.accumulating import is_fresh
from gpulint.forecasting.emulating.sorting import INDEX, radix_bytes

_aten: Final = torch.ops.aten


def _put(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    target, indices = args[0], args[1]
    added = args[3] if len(args) > 3 else kwargs.get("accumulate", False)
    if not on_card(target):
        return tape.execute(func, args, kwargs)
    if len(indices) == 1 and args[2].numel() == 1 and not added and indices[0].dtype is torch.bool:
        return tape.execute(func, args, kwargs)  # a masked fill
    masks = [_mask_places(tape, one) for one in indices if one is not None and one.dtype is torch.bool]
    fresh = func is _aten.index_put.default and is_fresh(target, others=1)
    out = tape.execute(_aten.index_put_.default if fresh else func, args, kwargs)
    if not fresh:
        tape.see(out)
    count = _places(indices)
    if masks:
        tape.temporary(2 * INDEX * count)
    for one in masks:
        tape.release(one)
    if added:
        held = [tape.hold(INDEX * count) for _ in range(4)]
        tape.temporary(radix_bytes(count, INDEX))
        for one in held:
            tape.release(one)
    return _aten.alias.default(out) if fresh and torch.is_grad_enabled() else out


def _places(indices: Any) -> int:
    shapes = [(one.numel(),) if one.dtype is torch.bool else one.shape for one in indices if one is not None]
    try:
        return math.prod(torch.broadcast_shapes(*shapes))
    except RuntimeError:
        return max(math.prod(shape) for shape in shapes)


def _mask_places(tape: Any, mask: torch.Tensor) -> int:
    """The indices of what a mask chooses, while they are needed."""
    held: int = tape.hold(INDEX * mask.numel() * max(1, mask.dim()))
    return held


def _unfolded(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result is made as large as the input at first."""
    if not on_card(args[0]):
        return tape.execute(func, args, kwargs)
    first = tape.hold(size_of(args[0]))
    out = tape.execute(func, args, kwargs)
    tape.see(out)
    tape.release(first)
    return out


def _folded(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result is made as large as the input, which is larger, and keeps that storage."""
    out = tape.execute(func, args, kwargs)
    return tape.within(out, size_of(args[0])) if on_card(args[0]) else out


def _reduced(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A mean counts what goes to each place: ones like the source, and their sums."""
    out = tape.execute(func, args, kwargs)
    how = args[4] if len(args) > 4 else kwargs.get("reduce")
    if on_card(args[0]) and how == "mean":
        tape.see(out)
        tape.temporary(size_of(args[3]) + size_of(args[0]) + args[0].numel())
    return out


HOOKS: Final = {
    _aten.index_put.default: _put,
    _aten.index_put_.default: _put,
    _aten._index_put_impl_.default: _put,
    _aten.im2col.default: _unfolded,
    _aten.col2im.default: _folded,
    _aten.scatter_reduce.two: _reduced,
}
