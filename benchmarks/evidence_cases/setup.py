"""What the cases are made of: sizes, models, data; and what a case is."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Concatenate, ParamSpec

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Step = Callable[[], None]


@dataclass(frozen=True)
class Size:
    """Dimensions of the models and their batches."""

    width: int
    heads: int
    layers: int
    vocabulary: int
    batch: int
    length: int
    mlp_width: int
    mlp_layers: int
    mlp_batch: int


FULL = Size(512, 8, 4, 32_000, 16, 256, 1024, 8, 512)
QUICK = Size(32, 2, 2, 200, 2, 16, 64, 4, 32)


class LanguageModel(nn.Module):
    """A small transformer language model."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size.vocabulary, size.width)
        layer = nn.TransformerEncoderLayer(
            size.width, size.heads, 4 * size.width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, size.layers, enable_nested_tensor=False)
        self.head = nn.Linear(size.width, size.vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        out: Tensor = self.head(self.body(self.embedding(tokens)))
        return out


@dataclass
class Setup:
    """One run of one variant: sizes, device, and what it wants to note beside the usual figures."""

    size: Size
    device: str
    allocated: Callable[[], int]
    notes: dict[str, list[float]] = field(default_factory=dict)

    def note(self, name: str, value: float) -> None:
        """Keep a figure of this step; the median is reported. Bytes, unless the name ends in another unit: "step, ms"."""
        self.notes.setdefault(name, []).append(value)

    def language_model(self) -> LanguageModel:
        return LanguageModel(self.size).to(device=self.device)

    def mlp(self, layers: int | None = None) -> nn.Sequential:
        width = self.size.mlp_width
        parts = [
            p for _ in range(layers or self.size.mlp_layers) for p in (nn.Linear(width, width), nn.GELU())
        ]
        return nn.Sequential(*parts).to(device=self.device)

    def tokens(self, length: int | None = None, batch: int | None = None) -> Tensor:
        shape = (batch or self.size.batch, length or self.size.length)
        return torch.randint(0, self.size.vocabulary, shape, device=self.device)

    def features(self, batch: int | None = None) -> Tensor:
        return torch.randn(batch or self.size.mlp_batch, self.size.mlp_width, device=self.device)

    def loss_of(self, model: nn.Module, tokens: Tensor) -> Tensor:
        logits = model(tokens)
        return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())

    def adamw(self, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.AdamW(model.parameters(), lr=1e-4)

    def language_model_in_training(self) -> tuple[LanguageModel, torch.optim.Optimizer]:
        model = self.language_model()
        return model, self.adamw(model)

    def mlp_in_training(
        self, layers: int | None = None, rate: float = 1e-4
    ) -> tuple[nn.Sequential, torch.optim.Optimizer]:
        model = self.mlp(layers)
        return model, torch.optim.SGD(model.parameters(), lr=rate)

    def wait(self) -> None:
        """Until the GPU has done what it was given."""
        if self.device == "cuda":
            torch.cuda.synchronize()

    def empty_cache(self) -> None:
        if self.device == "cuda":
            torch.cuda.empty_cache()

    @staticmethod
    def work(milliseconds: float) -> None:
        """Keep the host busy."""
        end = time.perf_counter() + milliseconds / 1000
        while time.perf_counter() < end:
            pass

    @staticmethod
    def update(optimizer: torch.optim.Optimizer, loss: Tensor, retain: bool = False) -> None:
        """What most training steps end with."""
        optimizer.zero_grad()
        loss.backward(retain_graph=retain)
        optimizer.step()

    def training_step(self, optimizer: torch.optim.Optimizer, loss_of: Callable[[], Tensor]) -> Step:
        """A step that trains on what `loss_of` gives, and does nothing besides."""
        return lambda: self.update(optimizer, loss_of())


Maker = Callable[[Setup], Step]
Options = ParamSpec("Options")


def variant(make: Callable[Concatenate[Setup, Options], Step]) -> Callable[Options, Maker]:
    """A variant's set-up and step as a function of its options: what they are, the tables say."""

    @functools.wraps(make)
    def with_options(*args: Options.args, **kwargs: Options.kwargs) -> Maker:
        return lambda setup: make(setup, *args, **kwargs)

    return with_options


@dataclass(frozen=True)
class Case:
    """What a rule finds, and what it advises: named variants, the bad one first. `warmup` steps go before what is measured."""

    code: str
    title: str
    variants: Mapping[str, Maker]
    warmup: int = 4
