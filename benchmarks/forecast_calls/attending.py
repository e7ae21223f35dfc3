"""Transformers' layers and attention."""

from __future__ import annotations

from collections.abc import Callable
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
    floats,
    modules,
    of,
    on_card,
    ones,
    plain,
    trained,
)


def transformers() -> list[Call]:
    layer = {"d_model": 512, "nhead": 8, "batch_first": True}
    encoder = nn.TransformerEncoderLayer
    found = [
        call
        for kind in KINDS
        for first in (True, False)
        for call in modules(f"TransformerEncoderLayer norm_first={first}", partial(encoder, **layer, norm_first=first), (16, 128, 512), kinds=(kind,))
    ]  # fmt: skip

    def evaluated() -> nn.Module:
        return nn.TransformerEncoder(encoder(**layer), 2).eval()

    return [
        *found,
        *modules("TransformerEncoderLayer gelu amp", lambda: nn.TransformerEncoderLayer(**layer, activation="gelu"), (16, 128, 512), kinds=(), amp=True),
        *modules("TransformerEncoder eval", evaluated, (16, 128, 512), kinds=(F32,)),
        trained("TransformerEncoderLayer masks", lambda: masked(nn.TransformerEncoderLayer(**layer))),
        trained("TransformerDecoderLayer", lambda: (on_card(nn.TransformerDecoderLayer(**layer)), (floats(16, 128, 512), floats(16, 100, 512)))),
        trained("TransformerDecoderLayer amp", lambda: (on_card(nn.TransformerDecoderLayer(**layer)), (floats(16, 128, 512), floats(16, 100, 512))), F16),
        trained("Transformer", lambda: (on_card(nn.Transformer(256, 4, 1, 1, 1024, batch_first=True)), (floats(16, 128, 256), floats(16, 100, 256)))),
        *of("MultiheadAttention weights=True", partial(to_itself, need_weights=True)),
        *of("MultiheadAttention weights=False", partial(to_itself, need_weights=False)),
        plain("TransformerEncoder fast path", lambda: (on_card(evaluated()), (floats(16, 128, 512),)), grad=False),
        plain("MultiheadAttention fast path", partial(to_itself, F32, dropout=0.0, trains=False), grad=False),
    ]  # fmt: skip


def masked(layer: nn.Module) -> Made:
    module = on_card(layer)
    causal = nn.Transformer.generate_square_subsequent_mask(128, device="cuda")
    padding = torch.zeros(16, 128, dtype=torch.bool, device="cuda")
    return lambda x: module(x, src_mask=causal, src_key_padding_mask=padding, is_causal=True), (
        floats(16, 128, 512),
    )


def to_itself(kind: torch.dtype, dropout: float = 0.1, trains: bool = True, **options: Any) -> Made:
    """An attention whose queries, keys and values are the same."""
    module = nn.MultiheadAttention(512, 8, batch_first=True, dropout=dropout).train(trains)
    module = on_card(module, kind)
    return lambda x: module(x, x, x, **options), (floats(16, 128, 512, kind=kind),)


def attention() -> list[Call]:
    def qkv(kind: torch.dtype, heads: int, length: int, width: int, keys: int = 0) -> tuple[Any, ...]:
        lengths = (length, keys or length, keys or length)
        return tuple(floats(4, heads, one, width, kind=kind) for one in lengths)

    sdpa = F.scaled_dot_product_attention
    causal = partial(sdpa, is_causal=True)

    def masked(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return sdpa(q, k, v, ones(4, 1, 500, 500, kind=torch.bool))

    def transposed(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return sdpa(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))

    def three(kind: torch.dtype, *shape: int) -> list[torch.Tensor]:
        return [floats(*shape, kind=kind) for _ in range(3)]

    cases: dict[str, Callable[[torch.dtype], Made]] = {
        "sdpa causal": lambda k: (causal, qkv(k, 8, 1024, 64)),
        "sdpa dropout": lambda k: (partial(sdpa, dropout_p=0.1), qkv(k, 8, 500, 64)),
        "sdpa cross": lambda k: (sdpa, qkv(k, 8, 512, 64, 77)),
        "sdpa boolean mask": lambda k: (masked, qkv(k, 8, 500, 64)),
        "sdpa float mask": lambda k: (
            sdpa,
            (*qkv(k, 8, 512, 64), floats(4, 1, 512, 512, kind=k, grad=False)),
        ),
        "sdpa learned bias": lambda k: (sdpa, (*qkv(k, 8, 512, 64), floats(1, 8, 512, 512, kind=k))),
        "sdpa grouped": lambda k: (
            partial(sdpa, enable_gqa=True),
            (floats(4, 16, 512, 64, kind=k), *(floats(4, 4, 512, 64, kind=k) for _ in range(2))),
        ),
        "sdpa transposed": lambda k: (transposed, three(k, 4, 512, 8, 64)),
        "sdpa of three dimensions": lambda k: (sdpa, three(k, 32, 512, 64)),
        "attention by hand": lambda k: (by_hand, qkv(k, 8, 512, 64)),
    }
    for width in (32, 64, 80, 128, 100, 256, 320):
        cases[f"sdpa width {width}"] = lambda k, w=width: (sdpa, qkv(k, 8, 512, w))  # type: ignore[misc]
    return [
        *(call for name, make in cases.items() for call in of(name, make, (F32, BF16, F16))),
        *of("sdpa long", lambda k: (causal, qkv(k, 16, 4096, 128)), (BF16, F16)),
        trained("sdpa amp", lambda: (sdpa, qkv(F32, 8, 512, 64)), F16),
        trained("sdpa boolean mask amp", lambda: (masked, qkv(F32, 8, 500, 64)), F16),
    ]


def by_hand(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    causal = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
    return F.dropout(scores.masked_fill(~causal, float("-inf")).softmax(-1), 0.1) @ v


CALLS = [*transformers(), *attention()]
