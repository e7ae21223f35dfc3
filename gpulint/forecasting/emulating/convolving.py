"""Convolutions: cuDNN's workspaces.

Its tensor-core kernels work on channels-last data. For others it copies input, output and weight into that layout, the channels
padded to whole vectors of 16 bytes; that copy is the workspace. For the gradient of the weight, parts that are summed at the end
come on top of it. Recorded of 96 convolutions (24 shapes, two types, two layouts); they are transient, and count where a network is
small beside them.
"""

from __future__ import annotations

import math
from typing import Any, Final

import torch

from gpulint.forecasting.emulating._tensors import is_half, on_card
from gpulint.forecasting.emulating.reducing import buffer_bytes, reduction_shape

_aten: Final = torch.ops.aten
_MIB: Final = 1 << 20
_PARTS: Final = 14  # partial sums of a weight's gradient, for weights so small that they do not fill the card
_MOST_PARTS: Final = 4 * _MIB
_MOST_PARTS_HALF: Final = 2 * _MIB
_MOST_PARTS_ONE: Final = 16 * _MIB  # of a kernel of one element, with parts for each of the batch
_FEW: Final = 8  # channels of a group, below which kernels do not work on vectors of them


def _padded(tensor: torch.Tensor, channels: tuple[int, ...], vector: int) -> int:
    """Bytes of a copy whose `channels` dimensions are whole vectors."""
    shape = [
        -(-size // vector) * vector if place in channels else size for place, size in enumerate(tensor.shape)
    ]
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


def _bias_sum(tape: Any, gradient: torch.Tensor, to_bias: Any) -> None:
    """The gradient of the bias is a sum of its own."""
    tape.see(to_bias)
    shape = reduction_shape(gradient, [0, *range(2, gradient.dim())])
    if shape is not None:
        tape.temporary(buffer_bytes(shape, tape.card.processors))


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
        _bias_sum(tape, gradient, to_bias)
    return to_data, to_weight, to_bias


HOOKS: Final = {
    _aten.convolution.default: _forward,
    _aten.convolution_backward.default: _backward,
}
