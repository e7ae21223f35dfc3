"""Layers: norms, pooling, activations, upsampling, embeddings, attention, linear."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from forecast_calls.calls import (
    BF16,
    F16,
    F32,
    KINDS,
    Call,
    Made,
    by,
    each,
    floats,
    last,
    modules,
    of,
    on_card,
    said,
    trained,
    whole,
)  # fmt: skip

ACTIVATIONS = (
    "ReLU LeakyReLU ELU SELU CELU GELU SiLU Mish Sigmoid Tanh Softplus Softsign Hardtanh Hardswish Hardsigmoid ReLU6 LogSigmoid "
    "Tanhshrink Softshrink Hardshrink PReLU RReLU"
).split()


def norms() -> list[Call]:
    image, large = (16, 256, 32, 32), (32, 64, 112, 112)
    return [
        *modules("LayerNorm", lambda: nn.LayerNorm(768), (4096, 768), (64, 768), amp=True),
        *modules("LayerNorm no affine", lambda: nn.LayerNorm(768, elementwise_affine=False), (4096, 768)),
        *modules("LayerNorm wide", lambda: nn.LayerNorm(8192), (1024, 8192)),
        *modules("RMSNorm", lambda: nn.RMSNorm(2048), (4096, 2048), amp=True),
        *modules("GroupNorm", lambda: nn.GroupNorm(32, 256), image, amp=True),
        *modules("GroupNorm 1", lambda: nn.GroupNorm(1, 64), (8, 64, 4000)),
        *modules("InstanceNorm2d", lambda: nn.InstanceNorm2d(256), image),
        *modules("InstanceNorm2d affine", lambda: nn.InstanceNorm2d(256, affine=True), image),
        *modules("InstanceNorm3d", lambda: nn.InstanceNorm3d(32, affine=True), (2, 32, 32, 32, 32)),
        *modules("BatchNorm2d", lambda: nn.BatchNorm2d(256), image, amp=True),
        *modules("BatchNorm2d large", lambda: nn.BatchNorm2d(64), large, amp=True),
        *modules("BatchNorm1d", lambda: nn.BatchNorm1d(512), (256, 512), (64, 512, 128)),
        *modules("BatchNorm3d", lambda: nn.BatchNorm3d(32), (2, 32, 32, 32, 32)),
        *modules("BatchNorm2d eval", lambda: nn.BatchNorm2d(256).eval(), image),
        *[
            trained(f"BatchNorm2d nhwc {size} {said(kind)}", lambda s=shape, k=kind, w=wide: (on_card(nn.BatchNorm2d(w), F32 if w else k), (last(floats(*s, kind=k)),)))
            for size, shape, wide in (("small", image, 256), ("large", large, 64), ("7x7", (64, 512, 7, 7), 512))
            for kind in (F32, F16, BF16)
        ],
        *of("GroupNorm nhwc", lambda k: (on_card(nn.GroupNorm(32, 256), k), (last(floats(*image, kind=k)),))),
        trained("BatchNorm3d channels_last_3d", lambda: (on_card(nn.BatchNorm3d(32)), (last(floats(2, 32, 32, 32, 32)),))),
        *each("F.normalize", lambda x: F.normalize(x, dim=-1), (4096, 768)),
        *modules("LocalResponseNorm", lambda: nn.LocalResponseNorm(5), (16, 64, 32, 32)),
        *modules("spectral norm Linear", lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(512, 512)), (256, 512), kinds=(F32,)),
        *modules("spectral norm Conv2d", lambda: nn.utils.parametrizations.spectral_norm(nn.Conv2d(64, 128, 4, 2, 1)), (16, 64, 32, 32), kinds=(F32,)),
        *modules("old spectral norm Conv2d", lambda: nn.utils.spectral_norm(nn.Conv2d(64, 128, 4, 2, 1)), (16, 64, 32, 32), kinds=(F32,)),
        *modules("weight norm Conv1d", lambda: nn.utils.parametrizations.weight_norm(nn.Conv1d(128, 128, 7, padding=3)), (8, 128, 4000), kinds=(F32,)),
        *modules("old weight norm Conv1d", lambda: nn.utils.weight_norm(nn.Conv1d(128, 128, 7, padding=3)), (8, 128, 4000), kinds=(F32,)),
    ]  # fmt: skip


def activations() -> list[Call]:
    found: list[Call] = []
    for name in ACTIVATIONS:
        found += modules(name, lambda n=name: getattr(nn, n)(), (512, 4096))
    for inplace in ("ReLU", "SiLU", "LeakyReLU"):
        found += each(
            f"{inplace} inplace", lambda x, n=inplace: getattr(nn, n)(inplace=True)(x * 2), (512, 4096)
        )
    return [
        *found,
        *each("gelu tanh", lambda x: F.gelu(x, approximate="tanh"), (4096, 3072)),
        *each("glu", F.glu, (4096, 3072)),
        *each("softmax", lambda x: x.softmax(-1), (4096, 1024), (16, 12, 512, 512)),
        *each("softmax over channels", lambda x: x.softmax(1), (8, 21, 128, 128)),
        *each("log_softmax", lambda x: x.log_softmax(-1), (4096, 32000), (256, 10)),
        *each("softmax in float", lambda x: F.softmax(x, -1, dtype=F32).to(x.dtype), (4096, 1024)),
        *each("gumbel_softmax", lambda x: F.gumbel_softmax(x, hard=True), (4096, 512)),
        *each("dropout", lambda x: F.dropout(x, 0.1), (4096, 3072)),
        *each("dropout2d", lambda x: F.dropout2d(x, 0.1), (16, 64, 64, 64)),
        *each("alpha_dropout", lambda x: F.alpha_dropout(x, 0.1, training=True), (4096, 3072)),
        *each("dropout eval", lambda x: F.dropout(x, 0.1, False), (4096, 3072)),
    ]


def pooling() -> list[Call]:
    image, volume, row = (16, 64, 112, 112), (2, 32, 32, 32, 32), (16, 128, 4000)
    kinds = {
        "MaxPool2d": lambda: nn.MaxPool2d(3, 2, 1), "AvgPool2d": lambda: nn.AvgPool2d(2),
        "AdaptiveAvgPool2d 1": lambda: nn.AdaptiveAvgPool2d(1), "AdaptiveAvgPool2d 7": lambda: nn.AdaptiveAvgPool2d(7),
    }  # fmt: skip
    layouts = [
        trained(f"{name} nhwc {said(kind)}", lambda m=make, k=kind: (m(), (last(floats(*image, kind=k)),)))
        for name, make in kinds.items()
        for kind in KINDS
    ]
    return [
        *layouts,
        *modules("MaxPool2d", lambda: nn.MaxPool2d(3, 2, 1), image, amp=True),
        *modules("MaxPool2d 2", lambda: nn.MaxPool2d(2), image),
        *modules("MaxPool1d", lambda: nn.MaxPool1d(2), row),
        *modules("MaxPool3d", lambda: nn.MaxPool3d(2), volume),
        *modules("AvgPool1d", lambda: nn.AvgPool1d(4), row),
        *modules("AvgPool2d", lambda: nn.AvgPool2d(2), image),
        *modules("AvgPool3d", lambda: nn.AvgPool3d(2), volume),
        *modules("AdaptiveAvgPool1d", lambda: nn.AdaptiveAvgPool1d(1), row),
        *modules("AdaptiveAvgPool2d 1", lambda: nn.AdaptiveAvgPool2d(1), image),
        *modules("AdaptiveAvgPool2d 7", lambda: nn.AdaptiveAvgPool2d(7), image),
        *modules("AdaptiveAvgPool3d", lambda: nn.AdaptiveAvgPool3d(1), volume),
        *modules("AdaptiveMaxPool1d", lambda: nn.AdaptiveMaxPool1d(1), row),
        *modules("AdaptiveMaxPool2d", lambda: nn.AdaptiveMaxPool2d(1), image),
        *modules("LPPool2d", lambda: nn.LPPool2d(2, 2), image),
        *each("mean over pixels", lambda x: x.mean((2, 3)), image),
        *each("max over points", lambda x: x.max(-1)[0], (16, 1024, 1024)),
        *modules("PixelShuffle", lambda: nn.PixelShuffle(2), (16, 64, 32, 32)),
        *modules("PixelUnshuffle", lambda: nn.PixelUnshuffle(2), (16, 64, 32, 32)),
        *modules("Unfold", lambda: nn.Unfold(3, padding=1), (8, 64, 32, 32)),
        *modules("Fold", lambda: nn.Fold((32, 32), 3, padding=1), (8, 576, 1024)),
        *modules("MaxUnpool", lambda: Unpooled(), (8, 64, 32, 32), kinds=(F32,)),
        *modules("ReflectionPad2d", lambda: nn.ReflectionPad2d(3), (8, 64, 64, 64)),
        *modules("ReplicationPad2d", lambda: nn.ReplicationPad2d(1), (8, 64, 64, 64)),
        *modules("ZeroPad2d", lambda: nn.ZeroPad2d(1), (8, 64, 64, 64)),
        *modules("CircularPad2d", lambda: nn.CircularPad2d(1), (8, 64, 64, 64)),
        *each("pad reflect 1d", lambda x: F.pad(x, (200, 200), mode="reflect"), (16, 1, 16000)),
    ]  # fmt: skip


class Unpooled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled, places = F.max_pool2d(x, 2, return_indices=True)
        return F.max_unpool2d(pooled, places, 2)


def upsampling() -> list[Call]:
    found: list[Call] = []
    for mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        corners = False if mode in ("bilinear", "bicubic") else None
        found += each(
            f"interpolate {mode}",
            lambda x, m=mode, c=corners: F.interpolate(x, scale_factor=2.0, mode=m, align_corners=c),
            (8, 64, 64, 64),
        )
    for mode in ("nearest", "bilinear"):
        grown = partial(F.interpolate, scale_factor=2.0, mode=mode)
        found += of(
            f"interpolate {mode} nhwc", lambda k, g=grown: (g, (last(floats(8, 64, 64, 64, kind=k)),))
        )
    return [
        *found,
        *each("interpolate bilinear size", lambda x: F.interpolate(x, size=(513, 513), mode="bilinear", align_corners=True), (4, 21, 65, 65)),
        *each("interpolate bilinear antialias", lambda x: F.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True), (8, 64, 64, 64)),
        *each("interpolate area", lambda x: F.interpolate(x, scale_factor=0.5, mode="area"), (8, 64, 64, 64)),
        *each("interpolate linear", lambda x: F.interpolate(x, scale_factor=2.0, mode="linear"), (8, 64, 4000)),
        *each("interpolate nearest 1d", lambda x: F.interpolate(x, scale_factor=2.0), (8, 64, 4000)),
        *each("interpolate trilinear", lambda x: F.interpolate(x, scale_factor=2.0, mode="trilinear"), (2, 32, 16, 16, 16)),
        *each("interpolate nearest 3d", lambda x: F.interpolate(x, scale_factor=2.0), (2, 32, 16, 16, 16)),
        *[trained(f"grid_sample {said(k)}", lambda k=k: (lambda x, g: F.grid_sample(x, g, align_corners=False), (floats(8, 64, 64, 64, kind=k), floats(8, 64, 64, 2, kind=k)))) for k in KINDS],
        trained("grid_sample image only", lambda: (lambda x, g: F.grid_sample(x, g, align_corners=False), (floats(8, 64, 64, 64), floats(8, 64, 64, 2, grad=False)))),
        trained("grid_sample 3d", lambda: (lambda x, g: F.grid_sample(x, g, align_corners=False), (floats(2, 16, 32, 32, 32), floats(2, 32, 32, 32, 3)))),
        trained("affine_grid", lambda: (lambda t: F.affine_grid(t, [8, 3, 64, 64], align_corners=False), (floats(8, 2, 3),))),
    ]  # fmt: skip


def embeddings() -> list[Call]:
    def made(module: nn.Module, kind: torch.dtype, *inputs: Any) -> Made:
        return on_card(module, kind), inputs

    def embedding(rows: int, width: int, tokens: tuple[int, ...], kind: torch.dtype, **options: Any) -> Made:
        return made(nn.Embedding(rows, width, **options), kind, whole(rows, *tokens))

    found: list[Call] = []
    for rows, width, tokens in (
        (30000, 768, (16, 256)), (1000, 64, (4096,)), (100_000, 32, (8192, 8)), (50257, 768, (2, 100)), (50257, 768, (32, 1024)),
    ):  # fmt: skip
        name = f"Embedding {rows}x{width} of {by(tokens)}"
        found += of(name, partial(embedding, rows, width, tokens), (*KINDS, F16))
    usual = partial(embedding, 30000, 256, (32, 128), F32)
    found += [
        trained("Embedding padding_idx", partial(usual, padding_idx=0)),
        trained("Embedding max_norm", partial(usual, max_norm=1.0)),
        trained("Embedding scale_grad", partial(usual, scale_grad_by_freq=True)),
        trained("Embedding amp", usual, F16),
        trained("Embedding positions", lambda: made(nn.Embedding(1024, 768), F32, torch.arange(1024, device="cuda")[None])),
        trained("one_hot", lambda: (lambda x: F.one_hot(x, 1000).float(), (whole(1000, 4096),))),
        *[trained(f"Embedding sparse of {one}", partial(embedding, 30000, 64, one, F32, sparse=True)) for one in ((16, 256), (8192,))],
    ]  # fmt: skip

    def bag(**options: Any) -> Made:
        return made(nn.EmbeddingBag(100_000, 64, **options), F32, whole(100_000, 4096, 20))

    for mode, sparse in (("sum", False), ("sum", True), ("mean", False), ("mean", True), ("max", False)):
        found.append(
            trained(f"EmbeddingBag {mode}{' sparse' * sparse}", partial(bag, mode=mode, sparse=sparse))
        )
    found += [
        trained("EmbeddingBag offsets", lambda: made(nn.EmbeddingBag(100_000, 64), F32, whole(100_000, 65536), torch.arange(0, 65536, 16, device="cuda"))),
        trained("EmbeddingBag weighted", lambda: (lambda w, x, s: F.embedding_bag(x, w, per_sample_weights=s, mode="sum"), (floats(100_000, 64), whole(100_000, 4096, 20), floats(4096, 20)))),
        trained("EmbeddingBag bf16", lambda: made(nn.EmbeddingBag(100_000, 64), BF16, whole(100_000, 4096, 20))),
    ]  # fmt: skip
    return found


def linears() -> list[Call]:
    return [
        *modules("Linear", lambda: nn.Linear(1024, 4096), (4096, 1024), (8, 512, 1024), (16, 1024), amp=True),
        *modules("Linear no bias", lambda: nn.Linear(1024, 4096, bias=False), (4096, 1024), (8, 512, 1024), amp=True),
        *modules("Linear to classes", lambda: nn.Linear(512, 10), (256, 512), amp=True),
        *modules("Linear to vocabulary", lambda: nn.Linear(768, 32000, bias=False), (2048, 768), amp=True),
        trained("Bilinear", lambda: (on_card(nn.Bilinear(64, 64, 128)), (floats(512, 64), floats(512, 64)))),
        *modules("frozen Linear", lambda: nn.Linear(1024, 4096).requires_grad_(False), (4096, 1024), amp=True),
    ]  # fmt: skip


CALLS = [*norms(), *activations(), *pooling(), *upsampling(), *embeddings(), *linears()]
