"""Transformers' layers and attention."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from forecast_calls.calls import BF16, F16, F32, KINDS, Call, Made, floats, modules, on_card, said, trained


def transformers() -> list[Call]:
    layer = {"d_model": 512, "nhead": 8, "batch_first": True}
    found: list[Call] = []
    for kind in (F32, BF16):
        for first in (True, False):
            found += modules(
                f"TransformerEncoderLayer norm_first={first}",
                lambda n=first: nn.TransformerEncoderLayer(**layer, norm_first=n),
                (16, 128, 512),
                kinds=(kind,),
            )
    return [
        *found,
        *modules("TransformerEncoderLayer gelu amp", lambda: nn.TransformerEncoderLayer(**layer, activation="gelu"), (16, 128, 512), kinds=(), amp=True),
        *modules("TransformerEncoder eval", lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(**layer), 2).eval(), (16, 128, 512), kinds=(F32,)),
        trained("TransformerEncoderLayer masks", lambda: masked(nn.TransformerEncoderLayer(**layer))),
        trained("TransformerDecoderLayer", lambda: (on_card(nn.TransformerDecoderLayer(**layer)), (floats(16, 128, 512), floats(16, 100, 512)))),
        trained("TransformerDecoderLayer amp", lambda: (on_card(nn.TransformerDecoderLayer(**layer)), (floats(16, 128, 512), floats(16, 100, 512))), F16),
        trained("Transformer", lambda: (on_card(nn.Transformer(256, 4, 1, 1, 1024, batch_first=True)), (floats(16, 128, 256), floats(16, 100, 256)))),
        *[
            trained(f"MultiheadAttention weights={need} {said(kind)}", lambda n=need, k=kind: (lambda m: (lambda x: m(x, x, x, need_weights=n), (floats(16, 128, 512, kind=k),)))(on_card(nn.MultiheadAttention(512, 8, batch_first=True, dropout=0.1), k)))
            for need in (True, False)
            for kind in KINDS
        ],
        plain_eval("TransformerEncoder fast path", lambda: (on_card(nn.TransformerEncoder(nn.TransformerEncoderLayer(**layer), 2).eval()), (floats(16, 128, 512),))),
        plain_eval("MultiheadAttention fast path", lambda: (lambda m: (lambda x: m(x, x, x), (floats(16, 128, 512),)))(on_card(nn.MultiheadAttention(512, 8, batch_first=True).eval()))),
    ]  # fmt: skip


def masked(layer: nn.Module) -> Made:
    module = on_card(layer)
    causal = nn.Transformer.generate_square_subsequent_mask(128, device="cuda")
    padding = torch.zeros(16, 128, dtype=torch.bool, device="cuda")
    return lambda x: module(x, src_mask=causal, src_key_padding_mask=padding, is_causal=True), (
        floats(16, 128, 512),
    )


def plain_eval(name: str, make: Any) -> Call:
    def phases() -> Any:
        run, inputs = make()
        yield ""
        with torch.no_grad():
            out = run(*inputs)
        yield "call"
        del out
        yield ""

    return Call(name, phases)


def attention() -> list[Call]:
    def qkv(
        kind: torch.dtype, heads: int, length: int, width: int, keys: int = 0
    ) -> tuple[torch.Tensor, ...]:
        return (
            floats(4, heads, length, width, kind=kind),
            *(floats(4, heads, keys or length, width, kind=kind) for _ in range(2)),
        )

    found: list[Call] = []
    sdpa = F.scaled_dot_product_attention
    for kind in (F32, BF16, F16):
        for width in (32, 64, 80, 128, 100, 256, 320):
            found.append(
                trained(f"sdpa width {width} {said(kind)}", lambda k=kind, w=width: (sdpa, qkv(k, 8, 512, w)))
            )
        found += [
            trained(
                f"sdpa causal {said(kind)}",
                lambda k=kind: (lambda q, x, v: sdpa(q, x, v, is_causal=True), qkv(k, 8, 1024, 64)),
            ),
            trained(
                f"sdpa dropout {said(kind)}",
                lambda k=kind: (lambda q, x, v: sdpa(q, x, v, dropout_p=0.1), qkv(k, 8, 500, 64)),
            ),
            trained(f"sdpa cross {said(kind)}", lambda k=kind: (sdpa, qkv(k, 8, 512, 64, 77))),
            trained(
                f"sdpa boolean mask {said(kind)}",
                lambda k=kind: (
                    lambda q, x, v: sdpa(
                        q, x, v, torch.ones(4, 1, 500, 500, device="cuda", dtype=torch.bool)
                    ),
                    qkv(k, 8, 500, 64),
                ),
            ),
            trained(
                f"sdpa float mask {said(kind)}",
                lambda k=kind: (
                    lambda q, x, v, m: sdpa(q, x, v, m),
                    (*qkv(k, 8, 512, 64), floats(4, 1, 512, 512, kind=k, grad=False)),
                ),
            ),
            trained(
                f"sdpa learned bias {said(kind)}",
                lambda k=kind: (
                    lambda q, x, v, m: sdpa(q, x, v, m),
                    (*qkv(k, 8, 512, 64), floats(1, 8, 512, 512, kind=k)),
                ),
            ),
            trained(
                f"sdpa grouped {said(kind)}",
                lambda k=kind: (
                    lambda q, x, v: sdpa(q, x, v, enable_gqa=True),
                    (
                        floats(4, 16, 512, 64, kind=k),
                        floats(4, 4, 512, 64, kind=k),
                        floats(4, 4, 512, 64, kind=k),
                    ),
                ),
            ),
            trained(
                f"sdpa transposed {said(kind)}",
                lambda k=kind: (
                    lambda q, x, v: sdpa(q.transpose(1, 2), x.transpose(1, 2), v.transpose(1, 2)),
                    (
                        floats(4, 512, 8, 64, kind=k),
                        floats(4, 512, 8, 64, kind=k),
                        floats(4, 512, 8, 64, kind=k),
                    ),
                ),
            ),
            trained(
                f"sdpa of three dimensions {said(kind)}",
                lambda k=kind: (
                    sdpa,
                    (floats(32, 512, 64, kind=k), floats(32, 512, 64, kind=k), floats(32, 512, 64, kind=k)),
                ),
            ),
            trained(f"attention by hand {said(kind)}", lambda k=kind: (by_hand, qkv(k, 8, 512, 64))),
        ]
        if kind is not F32:
            found.append(
                trained(
                    f"sdpa long {said(kind)}",
                    lambda k=kind: (lambda q, x, v: sdpa(q, x, v, is_causal=True), qkv(k, 16, 4096, 128)),
                )
            )
    found.append(trained("sdpa amp", lambda: (sdpa, qkv(F32, 8, 512, 64)), F16))
    found.append(
        trained(
            "sdpa boolean mask amp",
            lambda: (
                lambda q, x, v: sdpa(q, x, v, torch.ones(4, 1, 500, 500, device="cuda", dtype=torch.bool)),
                qkv(F32, 8, 500, 64),
            ),
            F16,
        )
    )
    return found  # fmt: skip


def by_hand(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    causal = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
    return F.dropout(scores.masked_fill(~causal, float("-inf")).softmax(-1), 0.1) @ v


CALLS = [*transformers(), *attention()]
