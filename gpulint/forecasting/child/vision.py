"""torchvision's own operators, where its library does not load: one that was built for CUDA does not, into a torch without.

They are then declared here, with what autograd needs of them; their shapes are torchvision's own (`_meta_registrations.py`), which
it registers where it finds the operators.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
from typing import Any, Final

import torch

_ROIS: Final = "Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_SIZES: Final = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_DEFORMED: Final = (
    "Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, "
    "SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask"
)
_OPERATORS: Final = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"qroi_align(Tensor input, {_ROIS}, int sampling_ratio, bool aligned) -> Tensor",
    f"roi_align(Tensor input, {_ROIS}, int sampling_ratio, bool aligned) -> Tensor",
    f"_roi_align_backward(Tensor grad, {_ROIS}, {_SIZES}, int sampling_ratio, bool aligned) -> Tensor",
    f"roi_pool(Tensor input, {_ROIS}) -> (Tensor, Tensor)",
    f"_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    f"{_SIZES}) -> Tensor",
    f"ps_roi_align(Tensor input, {_ROIS}, int sampling_ratio) -> (Tensor, Tensor)",
    f"ps_roi_pool(Tensor input, {_ROIS}) -> (Tensor, Tensor)",
    f"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor mapping, float spatial_scale, SymInt pooled_height, "
    f"SymInt pooled_width, int sampling_ratio, {_SIZES}) -> Tensor",
    f"_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor mapping, float spatial_scale, SymInt pooled_height, "
    f"SymInt pooled_width, {_SIZES}) -> Tensor",
    f"deform_conv2d(Tensor input, {_DEFORMED}) -> Tensor",
    f"_deform_conv2d_backward(Tensor grad, Tensor input, {_DEFORMED}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    "_cuda_version() -> int",
)
_kept: list[Any] = []


def adapt() -> None:
    """Let torchvision be imported, and its operators be called with fakes."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None or not spec.submodule_search_locations:
        return
    library = os.path.join(spec.submodule_search_locations[0], "_C.so")
    try:
        torch.ops.load_library(library)
        return
    except OSError:
        pass
    with contextlib.suppress(RuntimeError):
        _declare()
    original = torch.ops.load_library

    def load_library(path: Any) -> None:
        if os.path.realpath(path) != os.path.realpath(library):
            original(path)

    torch.ops.load_library = load_library


def _declare() -> None:
    fragment = torch.library.Library("torchvision", "FRAGMENT")
    for operator in _OPERATORS:
        fragment.define(operator)
    fragment.impl("_cuda_version", lambda: -1, "CompositeImplicitAutograd")
    _kept.append(fragment)
    torch.library.register_autograd("torchvision::roi_align", _align_backward, setup_context=_align)
    torch.library.register_autograd("torchvision::roi_pool", _pool_backward, setup_context=_pool)
    torch.library.register_autograd("torchvision::deform_conv2d", _deform_backward, setup_context=_deform)


def _align(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[1])
    ctx.shape, ctx.given = inputs[0].shape, inputs[2:]


def _align_backward(ctx: Any, gradient: Any) -> Any:
    (rois,) = ctx.saved_tensors
    scale, height, width, ratio, aligned = ctx.given
    found = torch.ops.torchvision._roi_align_backward(
        gradient, rois, scale, height, width, *ctx.shape, ratio, aligned
    )
    return found, *[None] * 6


def _pool(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[1], output[1])
    ctx.shape, ctx.given = inputs[0].shape, inputs[2:]


def _pool_backward(ctx: Any, gradient: Any, _: Any) -> Any:
    rois, chosen = ctx.saved_tensors
    found = torch.ops.torchvision._roi_pool_backward(gradient, rois, chosen, *ctx.given, *ctx.shape)
    return found, *[None] * 4


def _deform(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:5])
    ctx.given = inputs[5:]


def _deform_backward(ctx: Any, gradient: Any) -> Any:
    found = torch.ops.torchvision._deform_conv2d_backward(gradient, *ctx.saved_tensors, *ctx.given)
    return *found, *[None] * len(ctx.given)
