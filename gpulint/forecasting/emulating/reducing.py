"""Reductions: where many blocks share one output, they meet in a buffer.

The launch is chosen as ATen does (`aten/src/ATen/native/cuda/Reduce.cuh`, `setReduceConfig`), for the number of multiprocessors of
the card. The gradient of a bias is such a sum, and its buffer is larger than all else in a small network's backward.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import torch

from gpulint.forecasting.emulating._tensors import is_half, on_card, size_of, taking

_aten: Final = torch.ops.aten
_WARP: Final = 32
_MOST_THREADS: Final = 512
_THREADS_OF_PROCESSOR: Final = 2048
_FEWEST_VALUES, _MOST_VALUES = 16, 256  # per thread


@dataclass(frozen=True, slots=True)
class _Shape:
    """A reduction: how many outputs of how many inputs each, whether the inputs of one lie side by side, and whether the
    fastest dimension is dense."""

    outputs: int
    inputs: int
    along_rows: bool
    dense: bool
    flat: bool


def _last_power(number: int) -> int:
    return 1 << (max(1, number).bit_length() - 1)


def _divided(number: int, by: int) -> int:
    return -(-number // by)


def buffer_bytes(shape: _Shape, processors: int, element: int = 4) -> int:
    """What the blocks of one reduction meet in, with the semaphores; 0 where each output has one block."""
    width_dim, height_dim = (
        (shape.inputs, shape.outputs) if shape.along_rows else (shape.outputs, shape.inputs)
    )
    vector = 1
    if shape.dense and shape.along_rows and width_dim > 128 and shape.flat:
        width_dim //= 4
    elif shape.dense and not shape.along_rows:
        vector = next(size for size in (4, 2, 1) if shape.outputs % size == 0)
        width_dim //= vector
    most = _MOST_THREADS // vector
    width_power = _last_power(width_dim) if width_dim < most else most
    height_power = _last_power(height_dim) if height_dim < most else most
    width = min(width_power, _WARP)
    height = min(height_power, most // width)
    width = min(width_power, most // height)
    step_in, step_out = (width, 1) if shape.along_rows else (1, width)
    shares = _divided(shape.inputs, step_in) >= min(height * 16, _MOST_VALUES)
    if shares:
        step_in *= height
    else:
        step_out *= height
    values = _divided(shape.inputs, step_in)
    grid = _divided(shape.outputs // vector, step_out)
    target = processors * (_THREADS_OF_PROCESSOR // (width * height))
    if not shares or values < _MOST_VALUES or grid > target:
        return 0
    blocks = max(
        min(_divided(target, grid), _divided(values, _FEWEST_VALUES)), _divided(values, _MOST_VALUES)
    )
    if blocks <= 1:
        return 0
    size = element * shape.outputs * blocks
    return size if shape.along_rows else size * width * vector


def reduction_shape(tensor: torch.Tensor, dims: Any) -> _Shape | None:
    """How a sum over these dimensions looks to a kernel; None where there is nothing to sum."""
    rank = tensor.dim()
    reduced = {dim % rank for dim in dims} if dims else set(range(rank))
    if not rank or not tensor.numel():
        return None
    sizes, strides = tensor.shape, tensor.stride()
    moving = [place for place in range(rank) if sizes[place] > 1]
    inner = [strides[place] for place in moving if place in reduced]
    outer = [strides[place] for place in moving if place not in reduced]
    inputs = math.prod(sizes[place] for place in reduced)
    if not inner:
        return None
    along_rows = not outer or min(inner) < min(outer)
    fastest = min(inner) if along_rows else min(outer)
    return _Shape(tensor.numel() // inputs, inputs, along_rows, fastest == 1, not outer)


def _reduction(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    out = tape.execute(func, args, kwargs)
    source = args[0]
    if on_card(source):
        tape.see(out)
        copied = _converted(func, source, out)
        shape = reduction_shape(source, _dims(func, args, kwargs))
        with tape.holding(*filter(None, (copied,))):
            if shape is not None:
                tape.temporary(buffer_bytes(shape, tape.card.processors, _element(func, source, out)))
    return out


def _dims(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = kwargs.get("dim", args[_PLACE.get(func, 1)] if len(args) > _PLACE.get(func, 1) else None)
    if isinstance(given, bool) or given is None:
        return None
    return given if isinstance(given, (list, tuple)) else (given,)


def _converted(func: Any, source: torch.Tensor, out: Any) -> int:
    """Bytes of a copy in the type of the result: sums of whole numbers and masks are made in 64 bits, and only from halves to
    single precision is there a kernel that converts (`ReduceOpsUtils.h`, `make_reduction`)."""
    if func not in _SUMS or not isinstance(out, torch.Tensor) or out.dtype == source.dtype:
        return 0
    return 0 if is_half(source) and out.dtype is torch.float32 else source.numel() * out.element_size()


def _element(func: Any, source: torch.Tensor, out: Any) -> int:
    """Bytes of what one thread hands to another."""
    if func in _PAIRS:
        return _PAIR
    if func in _EXTREMES:
        return source.element_size()
    return max(4, out.element_size() if isinstance(out, torch.Tensor) else 4)


_PAIR: Final = 16  # bytes: a value and its index; or mean, squares and counts
_SUMS: Final = {
    _aten.sum.default,
    _aten.sum.dim_IntList,
    _aten.prod.default,
    _aten.prod.dim_int,
    _aten.cumsum.default,
}
_EXTREMES: Final = {_aten.amax.default, _aten.amin.default, _aten.max.default, _aten.min.default}
_PAIRS: Final = {
    _aten.max.dim, _aten.min.dim, _aten.argmax.default, _aten.argmin.default, _aten.var.correction, _aten.std.correction,
    _aten.var_mean.correction, _aten.std_mean.correction,
}  # fmt: skip
_PLACE: Final = {_aten.linalg_vector_norm.default: 2}  # of the dimensions among the arguments


def _counted(out: torch.Tensor, source: torch.Tensor, *_: Any, **__: Any) -> int:
    """The elements that are not zero, as a sum of whole numbers."""
    return source.numel() * out.element_size()


def _exponentials(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`logsumexp`: the largest, and the exponentials of what they are more than the rest."""
    out = tape.execute(func, args, kwargs)
    source = args[0]
    if on_card(source):
        tape.see(out)
        shape = reduction_shape(source, args[1])
        buffer = 0 if shape is None else buffer_bytes(shape, tape.card.processors, source.element_size())
        tape.temporary(buffer)
        with tape.holding(size_of(source)):
            tape.temporary(buffer * max(4, source.element_size()) // source.element_size())
    return out


def _scan(out: torch.Tensor, source: torch.Tensor, *_: Any, **__: Any) -> int:
    return _converted(_aten.cumsum.default, source, out)


HOOKS: Final = {
    **dict.fromkeys(
        (
            _aten.sum.default, _aten.sum.dim_IntList, _aten.mean.default, _aten.mean.dim, _aten.prod.default, _aten.prod.dim_int,
            _aten.any.default, _aten.all.default, _aten.linalg_vector_norm.default, *_EXTREMES, *_PAIRS,
        ),
        _reduction,
    ),
    _aten.cumsum.default: taking(_scan),
    _aten.count_nonzero.default: taking(_counted),
    _aten.count_nonzero.dim_IntList: taking(_counted),
    _aten.logsumexp.default: _exponentials,
}  # fmt: skip
