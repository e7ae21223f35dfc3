"""Writing through indices: what is added up at equal places is sorted by place first, and a mask is made into indices.

As in `aten/src/ATen/native/cuda/Indexing.cu` (`index_put_with_sort_kernel`) and `Nonzero.cu`.

Gradients that meet: the autograd engine adds the second into the first. It does so in place where it holds the last reference to the
first and to its storage (`torch/csrc/autograd/input_buffer.cpp`), but never with tensors of a subclass, as fake ones are: they would
be added into new memory.
"""

from __future__ import annotations

import math
from typing import Any, Final

import torch

from gpulint.forecasting.emulating._tensors import on_card, size_of, taking
from gpulint.forecasting.emulating.sorting import INDEX, radix_bytes

_aten: Final = torch.ops.aten
_graph_task: Final = torch._C._current_graph_task_id
_HELD_BY_THE_ENGINE: Final = 4  # references to a fake tensor that only the engine and this call hold
_HELD_BY_ONE: Final = 2  # references to its storage: by the tensor, and by the one inside it


def _is_last(tensor: torch.Tensor, others: int = 0) -> bool:
    """Whether the engine holds the last reference to a tensor and to its storage, besides `others` on the way here."""
    storage = tensor.untyped_storage()._cdata
    return (
        tensor._use_count() <= _HELD_BY_THE_ENGINE + others  # type: ignore[attr-defined]
        and torch._C._storage_Use_Count(storage) <= _HELD_BY_ONE
    )


def _add(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    engine = _graph_task() != -1 and not torch.is_grad_enabled() and not kwargs
    if (
        engine
        and on_card(args[0])
        and on_card(args[1])
        and args[0].shape == args[1].shape
        and _is_last(args[0])
    ):
        return tape.execute(_aten.add_.Tensor, args, kwargs)
    return tape.execute(func, args, kwargs)


def _in_place(func: Any) -> Any:
    """Runs as `func`, which ends in an underscore, where the engine's own formula would: on zeros that it has just made. Formulas of
    the backward do so with plain tensors, and make a copy of subclasses (`areAnyTensorSubclassLike`)."""

    def run(tape: Any, plain: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not _is_fresh(args[0]):
            return tape.execute(plain, args, kwargs)
        out = tape.execute(func, args, kwargs)
        return _aten.alias.default(out) if torch.is_grad_enabled() else out

    return run


def _is_fresh(tensor: Any, others: int = 0) -> bool:
    """Whether a backward has just made a tensor, and nobody else knows it."""
    return _graph_task() != -1 and on_card(tensor) and _is_last(tensor, others)


def _put(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    target, indices = args[0], args[1]
    added = args[3] if len(args) > 3 else kwargs.get("accumulate", False)
    if not on_card(target):
        return tape.execute(func, args, kwargs)
    if len(indices) == 1 and args[2].numel() == 1 and not added and indices[0].dtype is torch.bool:
        return tape.execute(func, args, kwargs)  # a masked fill
    masks = [one for one in indices if one is not None and one.dtype is torch.bool]
    chosen = [tape.hold(INDEX * one.numel() * max(1, one.dim())) for one in masks]
    fresh = func is _aten.index_put.default and _is_fresh(target, others=1)
    out = tape.execute(_aten.index_put_.default if fresh else func, args, kwargs)
    if not fresh:
        tape.see(out)
    count = _places(indices)
    if masks:
        tape.temporary(2 * INDEX * count)
    for one in chosen:
        tape.release(one)
    if added:
        with tape.holding(*[INDEX * count] * 4):
            tape.temporary(radix_bytes(count, INDEX))
    return _aten.alias.default(out) if fresh and torch.is_grad_enabled() else out


def _places(indices: Any) -> int:
    shapes = [(one.numel(),) if one.dtype is torch.bool else one.shape for one in indices if one is not None]
    try:
        return math.prod(torch.broadcast_shapes(*shapes))
    except RuntimeError:
        return max(math.prod(shape) for shape in shapes)


def _unfolded(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result is made as large as the input at first."""
    if not on_card(args[0]):
        return tape.execute(func, args, kwargs)
    with tape.holding(size_of(args[0])):
        out = tape.execute(func, args, kwargs)
        tape.see(out)
    return out


def _folded(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result is made as large as the input, which is larger, and keeps that storage."""
    out = tape.execute(func, args, kwargs)
    return tape.within(out, size_of(args[0])) if on_card(args[0]) else out


def _reduced(
    out: Any, data: torch.Tensor, dim: int, index: Any, source: torch.Tensor, reduce: str, *_: Any, **__: Any
) -> int:
    """A mean counts what goes to each place: ones like the source, and their sums."""
    return size_of(source) + size_of(data) + data.numel() if reduce == "mean" else 0


HOOKS: Final = {
    _aten.index_put.default: _put,
    _aten.index_put_.default: _put,
    _aten._index_put_impl_.default: _put,
    _aten.im2col.default: _unfolded,
    _aten.col2im.default: _folded,
    _aten.scatter_reduce.two: taking(_reduced),
    _aten.add.Tensor: _add,
    _aten.index_add.default: _in_place(_aten.index_add_.default),
    _aten.scatter_add.default: _in_place(_aten.scatter_add_.default),
    _aten.scatter.src: _in_place(_aten.scatter_.src),
    _aten.scatter.value: _in_place(_aten.scatter_.value),
}
