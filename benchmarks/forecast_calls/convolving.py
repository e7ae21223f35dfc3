"""Convolutions of one, two and three dimensions and their transposes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import nn

from forecast_calls.calls import (
    BF16,
    F16,
    F32,
    Call,
    Made,
    Phases,
    floats,
    last,
    modules,
    of,
    on_card,
    said,
    trained,
)  # fmt: skip

HALF = (F32, F16)
Build = Callable[[tuple[int, ...]], tuple[nn.Module, tuple[int, ...]]]

# batch, channels in and out, size, kernel, stride, groups
FLAT = [
    (16, 64, 64, 56, 3, 1, 1), (16, 128, 256, 28, 3, 2, 1), (16, 3, 64, 128, 7, 2, 1), (64, 3, 64, 32, 3, 1, 1), (16, 256, 64, 56, 1, 1, 1),
    (16, 512, 512, 16, 3, 1, 1), (8, 64, 128, 64, 4, 2, 1), (2, 32, 32, 256, 3, 1, 1), (8, 512, 1, 30, 4, 1, 1), (16, 192, 192, 28, 7, 1, 192),
    (16, 144, 144, 56, 3, 2, 144), (32, 1, 32, 28, 3, 1, 1), (16, 64, 64, 56, 5, 1, 1), (4, 256, 256, 64, 3, 1, 32),
]  # fmt: skip
ROWS = [
    # batch, channels in and out, length, kernel, stride, groups, dilation
    (16, 64, 128, 4000, 7, 1, 1, 1), (16, 1, 64, 16000, 80, 4, 1, 1), (8, 256, 256, 1000, 3, 1, 1, 2), (8, 512, 512, 500, 31, 1, 512, 1),
    (4, 128, 128, 8000, 11, 1, 1, 5), (16, 80, 512, 800, 5, 1, 1, 1), (16, 512, 512, 1000, 1, 1, 1, 1), (4, 1, 512, 64000, 10, 5, 1, 1),
]  # fmt: skip
VOLUMES = [(2, 32, 32, 32, 3, 1), (2, 1, 16, 64, 3, 1), (1, 64, 128, 32, 3, 2), (2, 3, 45, 48, 3, 1), (1, 16, 16, 64, 3, 1), (2, 64, 32, 16, 1, 1)]  # fmt: skip
# channels in and out, size, kernel, stride, padding
GROWING = [(16, 256, 128, 16, 4, 2, 1), (16, 128, 64, 32, 2, 2, 0), (64, 100, 512, 1, 4, 1, 0), (16, 64, 3, 32, 4, 2, 1), (8, 512, 256, 32, 2, 2, 0)]  # fmt: skip


def made(module: nn.Module, shape: tuple[int, ...], kind: torch.dtype, layout: str) -> Made:
    memory = {"nchw": None, "nhwc": torch.channels_last, "ndhwc": torch.channels_last_3d}[layout]
    x = floats(*shape, kind=kind)
    return on_card(module, kind, memory), (last(x) if memory is not None else x,)


def image(case: tuple[int, ...]) -> tuple[nn.Module, tuple[int, ...]]:
    batch, inputs, outputs, size, kernel, stride, groups = case
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups), (batch, inputs, size, size)


def row(case: tuple[int, ...]) -> tuple[nn.Module, tuple[int, ...]]:
    batch, inputs, outputs, length, kernel, stride, groups, dilation = case
    module = nn.Conv1d(
        inputs, outputs, kernel, stride, dilation * (kernel // 2), groups=groups, dilation=dilation
    )
    return module, (batch, inputs, length)


def volume(case: tuple[int, ...]) -> tuple[nn.Module, tuple[int, ...]]:
    batch, inputs, outputs, size, kernel, stride = case
    return nn.Conv3d(inputs, outputs, kernel, stride, kernel // 2), (batch, inputs, size, size, size)


def growing(case: tuple[int, ...]) -> tuple[nn.Module, tuple[int, ...]]:
    batch, inputs, outputs, size, kernel, stride, padding = case
    return nn.ConvTranspose2d(inputs, outputs, kernel, stride, padding), (batch, inputs, size, size)


def all_of() -> list[Call]:
    found: list[Call] = []
    both = ("nchw", "nhwc")
    for what, table, build in (("Conv2d", FLAT, image), ("ConvTranspose2d", GROWING, growing)):
        for case in table:
            found += [
                *kinds_of(f"{what} {case}", build, case, itertools.product((F32, F16, BF16), both)),
                trained(f"{what} {case} amp", partial(built, build, case, F32, "nchw"), F16),
                trained(f"{what} {case} nhwc amp", partial(built, build, case, F32, "nhwc"), BF16),
            ]
    for case in ROWS:
        found += of(f"Conv1d {case}", partial(built, row, case), (F32, F16, BF16))
    for case in VOLUMES:
        ways = ((F32, "nchw"), (F16, "nchw"), (BF16, "nchw"), (F32, "ndhwc"), (F16, "ndhwc"))
        found += kinds_of(f"Conv3d {case}", volume, case, ways)
    return found


def built(build: Build, case: tuple[int, ...], kind: torch.dtype, layout: str = "nchw") -> Made:
    return made(*build(case), kind, layout)


def kinds_of(
    name: str, build: Build, case: tuple[int, ...], ways: Iterable[tuple[torch.dtype, str]]
) -> list[Call]:
    """A call for each type and layout."""
    return [
        trained(f"{name} {layout} {said(kind)}", partial(built, build, case, kind, layout))
        for kind, layout in ways
    ]


def benchmarked(case: tuple[int, ...], kind: torch.dtype) -> Call:
    """With `cudnn.benchmark`, which tries algorithms in the first call: what it takes there is in "first"."""

    name = f"Conv2d benchmark {case} {said(kind)}"
    usual = trained(name, partial(built, image, case, F32), None if kind is F32 else kind)

    def phases() -> Phases:
        torch.backends.cudnn.benchmark = True
        try:
            yield from usual.phases()
        finally:
            torch.backends.cudnn.benchmark = False

    return Call(name, phases)


CALLS = [
    *all_of(),
    *modules("ConvTranspose1d", lambda: nn.ConvTranspose1d(256, 128, 16, 8, 4), (8, 256, 400), kinds=HALF),
    *modules("ConvTranspose3d", lambda: nn.ConvTranspose3d(64, 32, 2, 2), (2, 64, 16, 16, 16), kinds=HALF, amp=True),
    *modules("Conv2d dilated", lambda: nn.Conv2d(128, 128, 3, padding=6, dilation=6), (4, 128, 64, 64), kinds=HALF),
    *modules("Conv2d frozen", lambda: nn.Conv2d(64, 64, 3, padding=1).requires_grad_(False), (16, 64, 56, 56), kinds=HALF),
    *modules("Conv2d patches", lambda: nn.Conv2d(3, 768, 16, 16), (16, 3, 224, 224), amp=True),
    *[benchmarked(case, kind) for case in FLAT[:6] for kind in HALF],
]  # fmt: skip
