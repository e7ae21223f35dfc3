"""Reductions: where many blocks share one output, they meet in a buffer.

The launch is chosen as ATen does (`aten/src/ATen/native/cuda/Reduce.cuh`, `setReduceConfig`), for the number of multiprocessors of
the card. The gradient of a bias is such a sum, and its buffer is larger than all else in a small network's backward.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import torch

from gpulint.forecasting.emulating._tensors import on_card

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


def _shape(tensor: torch.Tensor, dims: Any) -> _Shape | None:
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
        dims = args[1] if len(args) > 1 and isinstance(args[1], (list, tuple)) else None
        shape = _shape(source, dims)
        if shape is not None:
            tape.temporary(buffer_bytes(shape, tape.card.processors, max(4, source.element_size())))
    return out


HOOKS: Final = dict.fromkeys(
    (
        _aten.sum.default,
        _aten.sum.dim_IntList,
        _aten.mean.default,
        _aten.mean.dim,
        _aten.amax.default,
        _aten.amin.default,
        _aten.max.default,
        _aten.min.default,
        _aten.prod.default,
        _aten.any.default,
        _aten.all.default,
    ),
    _reduction,
)
