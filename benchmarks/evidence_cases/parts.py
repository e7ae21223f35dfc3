"""Cases of outputs of which only a part is wanted: logits of all positions, hidden states and attention maps that nobody reads."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from evidence_cases.setup import Case, Setup, Size, Step, variant

HIDDEN, MAPS = "hidden states", "attention maps"  # what a forward is asked for besides the logits


class _Layer(nn.Module):
    """A decoder's layer. Its attention is a fused kernel, unless its maps are wanted."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor, maps: list[Tensor] | None) -> Tensor:
        batch, length, width = x.shape
        parts = self.project(self.first(x)).view(batch, length, 3, self.heads, -1)
        query, key, value = (part.transpose(1, 2).contiguous() for part in parts.unbind(2))
        if maps is None:
            seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            scores = query @ key.transpose(2, 3) * (width // self.heads) ** -0.5
            later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            maps.append(scores.masked_fill(later, float("-inf")).softmax(-1))
            seen = maps[-1] @ value
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        out: Tensor = x + self.feed(self.second(x))
        return out


class _Decoder(nn.Module):
    """A language model that gives logits, of all positions or the last, and what it is asked for besides, a tensor for each layer."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size.vocabulary, size.width)
        self.layers = nn.ModuleList(_Layer(size.width, size.heads) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        self.head = nn.Linear(size.width, size.vocabulary, bias=False)

    def forward(self, tokens: Tensor, asked: str = "", last: bool = False) -> tuple[Tensor, list[Tensor]]:
        besides: list[Tensor] = []
        x = self.embedding(tokens)
        for layer in self.layers:
            besides += [x] if asked == HIDDEN else []
            x = layer(x, besides if asked == MAPS else None)
        x = self.norm(x)
        return self.head(x[:, -1:] if last else x), besides


def _stepped(
    setup: Setup, size: Size, trains: bool, dtype: torch.dtype, run: Callable[[_Decoder, Tensor], Tensor]
) -> Step:
    """A step of training on the loss that `run` gives, or of an evaluation under no_grad that reads it."""
    model = _Decoder(size).to(setup.device, dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def step() -> None:
        tokens = setup.tokens(size.length)
        with contextlib.nullcontext() if trains else torch.no_grad():
            loss = run(model, tokens)
        if trains:
            setup.update(optimizer, loss)
        else:
            loss.item()

    return step


@variant
def _position(setup: Setup, trains: bool, last: bool) -> Step:
    """The score of a word at the last position, as a reranker or a reward reads it."""

    def run(model: _Decoder, tokens: Tensor) -> Tensor:
        logits, _ = model(tokens, last=last)
        return logits[:, -1, 7].float().sigmoid().mean()

    return _stepped(setup, setup.size, trains, torch.float32, run)


@variant
def _besides(setup: Setup, trains: bool, asked: str) -> Step:
    """A loss of all positions, through 24 layers that are 1,024 wide, on twice as many positions: more in the layers, less in the logits.
    What the forward gives besides is read by nothing."""
    size = setup.size
    size = dataclasses.replace(
        size, layers=6 * size.layers, width=2 * size.width, heads=2 * size.heads, length=2 * size.length
    )

    def run(model: _Decoder, tokens: Tensor) -> Tensor:
        out = model(tokens, asked)  # as mostly: its name holds all of it, as long as the loss is worked out
        return F.cross_entropy(out[0].flatten(0, 1), tokens.flatten())

    return _stepped(setup, size, trains, torch.bfloat16, run)


MODES = ((False, "an evaluation"), (True, "a training"))
CASES = [
    *(
        Case("GPU409", f"logits of all positions, {title} that reads the last", {
            "all": _position(trains, False), "the last": _position(trains, True),
        })
        for trains, title in MODES
    ),
    *(
        Case("GPU409", f"{what} that nothing reads, {title}", {
            "asked for": _besides(trains, what), "not": _besides(trains, ""),
        })
        for what in (HIDDEN, MAPS)
        for trains, title in MODES
    ),
]  # fmt: skip
