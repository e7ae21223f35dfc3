"""Cases of outputs of which only a part is wanted: logits of all positions, log-probabilities of all words, a cache, hidden states
and attention maps that nobody reads."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from evidence_cases.setup import Case, Setup, Size, Step, variant


@dataclass(frozen=True)
class Asked:
    """What a forward is asked for besides the logits of all positions; `last`: the logits of the last position alone."""

    cache: bool = False
    hidden: bool = False
    attentions: bool = False
    last: bool = False


@dataclass
class Output:
    """What a forward gives: lists of a tensor a layer, empty where they were not asked for."""

    logits: Tensor
    cache: list[tuple[Tensor, Tensor]]
    hidden: list[Tensor]
    attentions: list[Tensor]


class _Layer(nn.Module):
    """A decoder's layer. Its attention is a fused kernel, unless its maps are asked for."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor, asked: Asked, output: Output) -> Tensor:
        batch, length, width = x.shape
        parts = self.project(self.first(x)).view(batch, length, 3, self.heads, -1)
        # positions are turned into keys in most decoders, so the cache has tensors of its own
        query, key, value = (part.transpose(1, 2).contiguous() for part in parts.unbind(2))
        if asked.cache:
            output.cache.append((key, value))
        if asked.attentions:
            scores = query @ key.transpose(2, 3) * (width // self.heads) ** -0.5
            later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            maps = scores.masked_fill(later, float("-inf")).softmax(-1)
            output.attentions.append(maps)
            seen = maps @ value
        else:
            seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        out: Tensor = x + self.feed(self.second(x))
        return out


class _Decoder(nn.Module):
    """A language model that gives what transformers' do."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size.vocabulary, size.width)
        self.layers = nn.ModuleList(_Layer(size.width, size.heads) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        self.head = nn.Linear(size.width, size.vocabulary, bias=False)

    def forward(self, tokens: Tensor, asked: Asked) -> Output:
        x = self.embedding(tokens)
        output = Output(x, [], [], [])
        for layer in self.layers:
            if asked.hidden:
                output.hidden.append(x)
            x = layer(x, asked, output)
        x = self.norm(x)
        if asked.hidden:
            output.hidden.append(x)
        output.logits = self.head(x[:, -1:] if asked.last else x)
        return output


def _deep(size: Size) -> Size:
    """24 layers that are 1,024 wide, on twice as many positions: more in the layers, less in the logits."""
    return dataclasses.replace(
        size, layers=6 * size.layers, width=2 * size.width, heads=2 * size.heads, length=2 * size.length
    )


def _stepped(
    setup: Setup,
    size: Size,
    trains: bool,
    dtype: torch.dtype,
    run: Callable[[_Decoder, Tensor], Tensor],
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
        logits = model(tokens, Asked(last=last)).logits
        return logits[:, -1, 7].float().sigmoid().mean()

    return _stepped(setup, setup.size, trains, torch.float32, run)


def _log_softmax(logits: Tensor, words: Tensor) -> Tensor:
    return logits.log_softmax(-1).gather(-1, words.unsqueeze(-1)).squeeze(-1)


def _cross_entropy(logits: Tensor, words: Tensor) -> Tensor:
    return -F.cross_entropy(logits.flatten(0, 1), words.flatten(), reduction="none").view_as(words)


def _logsumexp(logits: Tensor, words: Tensor) -> Tensor:
    return logits.gather(-1, words.unsqueeze(-1)).squeeze(-1) - logits.logsumexp(-1)


def _by_sample(logits: Tensor, words: Tensor) -> Tensor:
    chosen = logits.gather(-1, words.unsqueeze(-1)).squeeze(-1)
    return chosen - torch.stack([one.logsumexp(-1) for one in logits])


PROBABILITIES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "log_softmax, gather": _log_softmax,
    "cross_entropy": _cross_entropy,
    "gather - logsumexp": _logsumexp,
    "gather - logsumexp of each sample": _by_sample,
}


@variant
def _probabilities(setup: Setup, trains: bool, dtype: torch.dtype, how: str, upcast: bool) -> Step:
    """The log-probability of each next word, as losses of preferences and policies read it."""

    def run(model: _Decoder, tokens: Tensor) -> Tensor:
        logits = model(tokens, Asked()).logits[:, :-1]
        logits = logits.float() if upcast else logits
        return -PROBABILITIES[how](logits, tokens[:, 1:]).sum(-1).mean()

    return _stepped(setup, setup.size, trains, dtype, run)


@variant
def _besides(setup: Setup, trains: bool, asked: Asked, held: bool = False) -> Step:
    """A loss of all positions; what the forward gives besides is read by nothing. `held`: the output's name stays bound."""

    size = _deep(setup.size)
    memory: dict[str, Any] = {}

    def run(model: _Decoder, tokens: Tensor) -> Tensor:
        out = model(tokens, asked)
        if held:
            memory["out"] = out
        return F.cross_entropy(out.logits.flatten(0, 1), tokens.flatten())

    return _stepped(setup, size, trains, torch.bfloat16, run)


@variant
def _embedded(setup: Setup, how: str) -> Step:
    """The last hidden state as an embedding, from a model with a head and without it."""

    model = _Decoder(_deep(setup.size)).to(setup.device, torch.bfloat16).eval()

    @torch.no_grad()
    def step() -> None:
        asked = Asked(hidden=how == "all hidden states")
        if how == "the last one, with the head":
            kept: list[Tensor] = []
            handle = model.norm.register_forward_hook(lambda module, given, out: kept.append(out))
            model(setup.tokens(2 * setup.size.length), asked)
            handle.remove()
        elif how == "all hidden states":
            kept = model(setup.tokens(2 * setup.size.length), asked).hidden
        else:
            x, none = model.embedding(setup.tokens(2 * setup.size.length)), Asked()
            for layer in model.layers:
                x = layer(x, none, Output(x, [], [], []))
            kept = [model.norm(x)]
        kept[-1][:, -1].float().sum().item()

    return step


@variant
def _collected(setup: Setup, what: str) -> Step:
    """The scores at the last position of every batch, read when all batches are through."""

    model = setup.language_model().eval()
    kept: list[Tensor] = []

    @torch.no_grad()
    def step() -> None:
        out = model(setup.tokens())
        kept.append({"out": out, "out[:, -1]": out[:, -1]}[what] if what != "clone" else out[:, -1].clone())

    return step


MODES = ((False, "an evaluation"), (True, "a training"))
NONE = Asked()
CASES = [
    Case("GPU102", "outputs kept of which the last position is read", {
        "append(out)": _collected("out"), "append(out[:, -1])": _collected("out[:, -1]"),
        "append(out[:, -1].clone())": _collected("clone"),
    }),
    *(
        Case("GPU409", f"logits of all positions, {title} that reads the last", {
            "all": _position(trains, False), "the last": _position(trains, True),
        })
        for trains, title in MODES
    ),
    *(
        Case(
            "GPU409",
            f"log-probabilities of the next words, {title}, {kind}",
            {how: _probabilities(trains, dtype, how, upcast) for how in PROBABILITIES},
        )
        for trains, title in MODES
        for kind, dtype, upcast in (
            ("fp32", torch.float32, False),
            ("bf16", torch.bfloat16, False),
            ("bf16 made fp32", torch.bfloat16, True),
        )
    ),
    *(
        Case("GPU409", f"a cache that nothing reads, {title}", {
            "use_cache, the output's name stays bound": _besides(trains, Asked(cache=True), True),
            "use_cache": _besides(trains, Asked(cache=True)),
            "no cache, the output's name stays bound": _besides(trains, NONE, True),
            "no cache": _besides(trains, NONE),
        })
        for trains, title in MODES
    ),
    *(
        Case("GPU409", f"hidden states that nothing reads, {title}", {
            "asked for": _besides(trains, Asked(hidden=True)), "not": _besides(trains, NONE),
        })
        for trains, title in MODES
    ),
    *(
        Case("GPU409", f"attention maps that nothing reads, {title}", {
            "asked for": _besides(trains, Asked(attentions=True)), "not": _besides(trains, NONE),
        })
        for trains, title in MODES
    ),
    Case(
        "GPU409",
        "the last hidden state as an embedding",
        {
            how: _embedded(how)
            for how in ("all hidden states", "the last one, with the head", "the last one, without the head")
        },
    ),
]  # fmt: skip
