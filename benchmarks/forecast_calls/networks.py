"""Small networks of many kinds, each with its data: a model, and the loss of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from forecast_calls.calls import floats, last, on_card, whole

Loss = Callable[[Any], torch.Tensor]


def block(inputs: int, outputs: int, kernel: int = 3, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.one = block(width, width)
        self.two = nn.Sequential(nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(x + self.two(self.one(x)))


def classifier(layout: Any = None) -> tuple[nn.Module, Loss]:
    model = nn.Sequential(
        block(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1), Residual(64), Residual(64), block(64, 128, 3, 2),
        Residual(128), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 1000),
    )  # fmt: skip
    x, y = floats(32, 3, 128, 128, grad=False), whole(1000, 32)
    return on_card(model, layout=layout), lambda net: F.cross_entropy(net(last(x) if layout else x), y)


def depthwise() -> tuple[nn.Module, Loss]:
    def mobile(width: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width), nn.SiLU(),
            nn.Conv2d(4 * width, 4 * width, 3, 1, 1, groups=4 * width, bias=False), nn.BatchNorm2d(4 * width),
            nn.Hardswish(), nn.Conv2d(4 * width, width, 1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip

    model = nn.Sequential(
        block(3, 32, 3, 2), mobile(32), mobile(32), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2),
        nn.Linear(32, 100),
    )  # fmt: skip
    x, y = floats(32, 3, 128, 128, grad=False), whole(100, 32)
    return on_card(model), lambda net: F.cross_entropy(net(x), y)


class Segmenter(nn.Module):
    def __init__(self, grow: str) -> None:
        super().__init__()
        self.a, self.b, self.c = block(3, 32), block(32, 64), block(64, 128)
        self.up = nn.ConvTranspose2d(128, 64, 2, 2) if grow == "transposed" else nn.Conv2d(128, 64, 1)
        self.d, self.head, self.grow = block(128, 64), nn.Conv2d(64, 21, 1), grow

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        c = self.c(F.max_pool2d(b, 2))
        c = (
            self.up(c)
            if self.grow == "transposed"
            else F.interpolate(self.up(c), size=b.shape[2:], mode="bilinear", align_corners=False)
        )
        out = self.head(self.d(torch.cat([b, c], 1)))
        return F.interpolate(out, size=x.shape[2:], mode="bilinear", align_corners=False)


def segmenter(grow: str) -> tuple[nn.Module, Loss]:
    x, y = floats(8, 3, 128, 128, grad=False), whole(21, 8, 128, 128)
    return on_card(Segmenter(grow)), lambda net: F.cross_entropy(net(x), y, ignore_index=255)


def volumes() -> tuple[nn.Module, Loss]:
    def part(inputs: int, outputs: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv3d(inputs, outputs, 3, padding=1),
            nn.InstanceNorm3d(outputs, affine=True),
            nn.LeakyReLU(0.01, inplace=True),
        )

    model = nn.Sequential(
        part(1, 16), part(16, 16), nn.MaxPool3d(2), part(16, 32), nn.ConvTranspose3d(32, 16, 2, 2),
        part(16, 16), nn.Conv3d(16, 3, 1),
    )  # fmt: skip
    x, y = floats(2, 1, 48, 48, 48, grad=False), whole(3, 2, 48, 48, 48)
    return on_card(model), lambda net: F.cross_entropy(net(x), y)


def video() -> tuple[nn.Module, Loss]:
    model = nn.Sequential(
        nn.Conv3d(3, 32, (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False), nn.BatchNorm3d(32),
        nn.ReLU(inplace=True), nn.MaxPool3d(2), nn.Conv3d(32, 64, 3, padding=1), nn.BatchNorm3d(64),
        nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(64, 400),
    )  # fmt: skip
    x, y = floats(4, 3, 8, 112, 112, grad=False), whole(400, 4)
    return on_card(model), lambda net: F.cross_entropy(net(x), y)


def waves() -> tuple[nn.Module, Loss]:
    model = nn.Sequential(
        nn.Conv1d(1, 64, 80, 4), nn.BatchNorm1d(64), nn.ReLU(), nn.MaxPool1d(4),
        nn.Conv1d(64, 64, 3, padding=1), nn.BatchNorm1d(64), nn.ReLU(), nn.MaxPool1d(4),
        nn.Conv1d(64, 128, 3, padding=1), nn.GroupNorm(8, 128), nn.GELU(), nn.AdaptiveAvgPool1d(1),
        nn.Flatten(), nn.Linear(128, 35),
    )  # fmt: skip
    x, y = floats(64, 1, 16000, grad=False), whole(35, 64)
    return on_card(model), lambda net: F.cross_entropy(net(x), y)


class Speech(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv2d(1, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 32, 3, 2, 1), nn.ReLU()
        )
        self.network = nn.LSTM(640, 256, 2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(512, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.front(x[:, None]).permute(0, 3, 1, 2).flatten(2)
        return self.head(self.network(out)[0]).log_softmax(-1).transpose(0, 1)


def speech() -> tuple[nn.Module, Loss]:
    x, y = floats(8, 80, 400, grad=False), whole(31, 8, 20) + 1
    lengths = torch.full((8,), 100), torch.full((8,), 20)
    return on_card(Speech()), lambda net: F.ctc_loss(net(x), y, *lengths)


class Graph(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(128, 256), nn.Linear(256, 40)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        for layer in (self.one, self.two):
            sent = layer(x)
            x = F.relu(torch.zeros_like(sent).index_add_(0, edges[1], sent[edges[0]]) + sent)
            x = F.dropout(x, 0.5, self.training)
        return x


def graph() -> tuple[nn.Module, Loss]:
    x, edges, y = floats(20_000, 128, grad=False), whole(20_000, 2, 200_000), whole(40, 20_000)
    known = torch.rand(20_000, device="cuda") > -1
    return on_card(Graph()), lambda net: F.cross_entropy(net(x, edges)[known], y[known])


class Recommender(nn.Module):
    def __init__(self, sparse: bool) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(50_000, 32, sparse=sparse, mode="sum") for _ in range(8))
        self.dense = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, 32))
        self.top = nn.Sequential(nn.Linear(68, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, dense: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        out = self.dense(dense)
        stacked = torch.stack([out, *(table(tokens[:, i]) for i, table in enumerate(self.tables))], 1)
        pairs = torch.bmm(stacked, stacked.transpose(1, 2))
        i, j = torch.triu_indices(9, 9, 1, device=out.device)
        return self.top(torch.cat([out, pairs[:, i, j]], 1)).squeeze(1)


def recommender(sparse: bool) -> tuple[nn.Module, Loss]:
    dense, tokens = floats(2048, 13, grad=False), whole(50_000, 2048, 8, 4)
    y = torch.ones(2048, device="cuda")
    return on_card(Recommender(sparse)), lambda net: F.binary_cross_entropy_with_logits(net(dense, tokens), y)


class Language(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(8000, 256), nn.Embedding(256, 256)
        layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, norm_first=True, activation="gelu")
        self.blocks = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(256)
        self.head = nn.Linear(256, 8000, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        return self.head(self.norm(self.blocks(x, mask, is_causal=True)))


def language() -> tuple[nn.Module, Loss]:
    tokens = whole(8000, 16, 256)
    return on_card(Language()), lambda net: F.cross_entropy(
        net(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()
    )


def words() -> tuple[nn.Module, Loss]:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(10_000, 256)
            self.network = nn.GRU(256, 512, 2, batch_first=True, dropout=0.2)
            self.head = nn.Linear(512, 10_000)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.network(self.words(x))[0])

    tokens = whole(10_000, 20, 50)
    return on_card(Model()), lambda net: F.cross_entropy(net(tokens).flatten(0, 1), tokens.flatten())


def actor() -> tuple[nn.Module, Loss]:
    model = nn.ModuleDict(
        {
            "body": nn.Sequential(
                nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3),
                nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(),
            ),
            "policy": nn.Linear(512, 6), "value": nn.Linear(512, 1),
        },
    )  # fmt: skip
    x = torch.randint(0, 255, (256, 4, 84, 84), device="cuda", dtype=torch.uint8)
    actions, gain, old = whole(6, 256), floats(256, grad=False), floats(256, grad=False)

    def loss(net: Any) -> torch.Tensor:
        hidden = net["body"](x.float() / 255)
        chosen = torch.distributions.Categorical(logits=net["policy"](hidden))
        ratio = (chosen.log_prob(actions) - old).exp()
        policy = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
        return (
            policy + 0.5 * F.mse_loss(net["value"](hidden).squeeze(-1), gain) - 0.01 * chosen.entropy().mean()
        )

    return on_card(model), loss


def variational() -> tuple[nn.Module, Loss]:
    model = nn.ModuleDict(
        {
            "down": nn.Sequential(
                nn.Conv2d(3, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 4, 2, 1), nn.ReLU(), nn.Flatten(),
                nn.Linear(4096, 256),
            ),
            "up": nn.Sequential(
                nn.Linear(128, 4096), nn.Unflatten(1, (64, 8, 8)), nn.ConvTranspose2d(64, 32, 4, 2, 1),
                nn.ReLU(), nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Sigmoid(),
            ),
        },
    )  # fmt: skip
    x = torch.rand(128, 3, 32, 32, device="cuda")

    def loss(net: Any) -> torch.Tensor:
        mean, log = net["down"](x).chunk(2, 1)
        out = net["up"](mean + torch.randn_like(mean) * (0.5 * log).exp())
        return (
            F.binary_cross_entropy(out, x, reduction="sum") - 0.5 * (1 + log - mean.pow(2) - log.exp()).sum()
        )

    return on_card(model), loss
