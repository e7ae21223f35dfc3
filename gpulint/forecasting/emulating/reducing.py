"""Reductions and convolutions.

Reductions: where many blocks share one output, they meet in a buffer.

The launch is chosen as ATen does (`aten/src/ATen/native/cuda/Reduce.cuh`, `setReduceConfig`), for the number of multiprocessors of
the card. The gradient of a bias is such a sum, and its buffer is larger than all else in a small network's backward.

Convolutions: cuDNN's workspaces. Its tensor-core kernels work on channels-last data. For others it copies input, output and weight
into that layout, the channels padded to whole vectors of 16 bytes; that copy is the workspace. For the gradient of the weight, parts
that are summed at the end come on top of it. Recorded of 96 convolutions (24 shapes, two types, two layouts); they are transient,
and count where a network is small beside them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import torch

from gpulint.forecasting.emulating._tensors import after, is_half, on_card, size_of, taking

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
    fewest = _divided(values, _MOST_VALUES)
    blocks = max(min(_divided(target, grid), _divided(values, _FEWEST_VALUES)), fewest)
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


def _reduction(tape: Any, func: Any, out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    source = args[0]
    copied = _converted(func, source, out)
    place = _PLACE.get(func, 1)
    given = kwargs.get("dim", args[place] if len(args) > place else None)
    if given is not None and not isinstance(given, (list, tuple)):
        given = None if isinstance(given, bool) else (given,)
    with tape.holding(*filter(None, (copied,))):
        tape.temporary(_buffer(tape, source, given, _element(func, source, out)))


def _buffer(tape: Any, source: torch.Tensor, dims: Any, element: int) -> int:
    shape = reduction_shape(source, dims)
    return 0 if shape is None else buffer_bytes(shape, tape.card.processors, element)


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


def _exponentials(tape: Any, func: Any, out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """`logsumexp`: the largest, and the exponentials of what they are more than the rest."""
    source, element = args[0], args[0].element_size()
    buffer = _buffer(tape, source, args[1], element)
    tape.temporary(buffer)
    with tape.holding(size_of(source)):
        tape.temporary(buffer * max(4, element) // element)


def _scan(out: torch.Tensor, source: torch.Tensor, *_: Any, **__: Any) -> int:
    return _converted(_aten.cumsum.default, source, out)


# -- convolutions ----------------------------------------------------------------------------------------------------

_MIB: Final = 1 << 20
_PARTS: Final = 14  # partial sums of a weight's gradient, for weights so small that they do not fill the card
_MOST_PARTS: Final = 4 * _MIB
_MOST_PARTS_HALF: Final = 2 * _MIB
_MOST_PARTS_ONE: Final = 16 * _MIB  # of a kernel of one element, with parts for each of the batch
_FEW: Final = 8  # channels of a group, below which kernels do not work on vectors of them


def _padded(tensor: torch.Tensor, channels: tuple[int, ...], vector: int) -> int:
    """Bytes of a copy whose `channels` dimensions are whole vectors."""
    shape = [-(-size // vector) * vector if at in channels else size for at, size in enumerate(tensor.shape)]
    return math.prod(shape) * tensor.element_size()


def _is_channels_last(tensor: torch.Tensor) -> bool:
    if tensor.dim() == 4:
        return tensor.is_contiguous(memory_format=torch.channels_last) and not tensor.is_contiguous()
    if tensor.dim() == 5:
        return tensor.is_contiguous(memory_format=torch.channels_last_3d) and not tensor.is_contiguous()
    return False


def _copies(x: torch.Tensor, weight: torch.Tensor, y: torch.Tensor, groups: int) -> int:
    """Bytes of the copies into the layout of the kernels."""
    if x.element_size() == 8 or (groups > 1 and weight.shape[1] < _FEW):
        return 0
    vector = 16 // x.element_size()
    if x.shape[1] < vector:
        vector = 4
    if not (_is_channels_last(x) or _is_channels_last(weight)):
        if all(size == 1 for size in weight.shape[2:]):
            return 0  # a matrix product
        return _padded(x, (1,), vector) + _padded(weight, (0, 1), vector) + _padded(y, (1,), vector)
    total = 0
    if x.shape[1] % vector:
        total += _padded(x, (1,), vector) + _padded(weight, (0, 1), vector)
    if y.shape[1] % vector:
        total += _padded(y, (1,), vector)
    return total


def _parts(x: torch.Tensor, weight: torch.Tensor, groups: int) -> int:
    """Bytes of the partial sums of the weight's gradient, which are in single precision."""
    whole = weight.numel() * 4
    if groups > 1:
        return 0
    if all(size == 1 for size in weight.shape[2:]):
        most = _MOST_PARTS if is_half(x) and _is_channels_last(x) else _MOST_PARTS_ONE
        return min(x.shape[0] * whole, most) if whole <= most else 0
    if whole > (_MOST_PARTS_HALF // 4 if is_half(x) else 2 * _MOST_PARTS):  # enough of them to fill the card
        return 0
    return min(_PARTS * whole, _MOST_PARTS_HALF if is_half(x) else _MOST_PARTS)


def _laid_out(tape: Any, tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The tensor in the layout of cuDNN's result, which a fake convolution of a CPU build does not choose."""
    if not _is_channels_last(like) or _is_channels_last(tensor):
        return tensor
    layout = torch.channels_last if tensor.dim() == 4 else torch.channels_last_3d
    made: torch.Tensor = tape.made(
        lambda: torch.empty(tensor.shape, dtype=tensor.dtype, device="cuda", memory_format=layout)
    )
    return made


def _image(x: torch.Tensor, weight: torch.Tensor) -> bool:
    """A first convolution of few channels with a small window, in single precision: it has a kernel that takes images as they are
    and pads their channels."""
    few = x.shape[1] < 16 // x.element_size()
    return few and x.element_size() == 4 and max(weight.shape[2:]) <= 3 and not _is_channels_last(x)


def _as_it_is(x: torch.Tensor, weight: torch.Tensor) -> bool:
    """A first convolution of few channels whose kernel takes the data without a copy: of sequences and volumes, of images through
    small windows in half precision, and through patches in single precision."""
    if x.shape[1] >= 16 // x.element_size():
        return False
    if x.dim() != 4:
        return True
    window = max(weight.shape[2:])
    return not _is_channels_last(x) and (window <= 3 if is_half(x) else window > 8)


def _forward(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    out = tape.execute(func, args, kwargs)
    x, weight = args[0], args[1]
    if on_card(out):
        out = _laid_out(tape, out, x if _is_channels_last(x) else weight)
        tape.see(out)
        if _image(x, weight):
            tape.temporary(_padded(x, (1,), 4) + _padded(weight, (1,), 4))
        elif not _as_it_is(x, weight):
            tape.temporary(_copies(x, weight, out, args[8]))
    return out


def _backward(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    gradient, x, weight, groups, wanted = args[0], args[1], args[2], args[9], args[10]
    out = tape.execute(func, args, kwargs)
    if not on_card(gradient):
        return out
    to_data, to_weight, to_bias = out
    copies = _copies(x, weight, gradient, groups)
    if wanted[0]:
        to_data = _laid_out(tape, to_data, x if _is_channels_last(x) else weight)
        tape.see(to_data)
        tape.temporary(copies)
    if wanted[1]:
        to_weight = _laid_out(tape, to_weight, weight)
        tape.see(to_weight)
        tape.temporary(0 if _image(x, weight) else copies + _parts(x, weight, groups))
    if wanted[2]:
        tape.see(to_bias)  # a sum of its own
        tape.temporary(_buffer(tape, gradient, [0, *range(2, gradient.dim())], 4))
    return to_data, to_weight, to_bias


HOOKS: Final = {
    **dict.fromkeys(
        (
            _aten.sum.default, _aten.sum.dim_IntList, _aten.mean.default, _aten.mean.dim, _aten.prod.default, _aten.prod.dim_int,
            _aten.any.default, _aten.all.default, _aten.linalg_vector_norm.default, *_EXTREMES, *_PAIRS,
        ),
        after(_reduction),
    ),
    _aten.cumsum.default: taking(_scan),
    _aten.count_nonzero.default: taking(_counted),
    _aten.count_nonzero.dim_IntList: taking(_counted),
    _aten.logsumexp.default: after(_exponentials),
    _aten.convolution.default: _forward,
    _aten.convolution_backward.default: _backward,
}  # fmt: skip
