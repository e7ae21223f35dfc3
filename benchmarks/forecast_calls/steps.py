"""Whole training steps of small networks of many kinds, three each; the phases of the third are looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from forecast_calls import networks
from forecast_calls.calls import BF16, F16, Call, Phases, casting, floats, on_card


def training(
    name: str, make: Callable[[], tuple[nn.Module, networks.Loss]], optimizer: Callable[[Any], Any] = torch.optim.AdamW,
    autocast: torch.dtype | None = None, pieces: int = 1,
) -> Call:  # fmt: skip
    def phases() -> Phases:
        model, loss_of = make()
        chosen = optimizer(model.parameters())
        scaler = torch.amp.GradScaler("cuda", enabled=autocast is F16)
        for step in range(3):
            seen = step == 2
            yield ""
            for piece in range(pieces):
                with casting(autocast):
                    loss = loss_of(model)
                yield f"forward {piece}" if seen else ""
                scaler.scale(loss / pieces).backward()
                yield f"backward {piece}" if seen else ""
            scaler.step(chosen)
            scaler.update()
            yield "step" if seen else ""
            chosen.zero_grad()
            yield "zero_grad" if seen else ""

    return Call(f"training {name}", phases)


def generating(kind: torch.dtype | None) -> Call:
    """A decoder that keeps keys and values, without gradients."""

    def phases() -> Phases:
        layers = [on_card(nn.Linear(512, 1536, bias=False)) for _ in range(2)]
        x = floats(8, 64, 512, grad=False)
        yield ""
        caches: list[Any] = [None, None]
        with torch.no_grad(), casting(kind):
            for step in range(6):
                hidden = x if step == 0 else x[:, -1:]
                for place, layer in enumerate(layers):
                    q, k, v = layer(hidden).view(8, -1, 3, 8, 64).permute(2, 0, 3, 1, 4)
                    if caches[place] is not None:
                        k, v = torch.cat([caches[place][0], k], 2), torch.cat([caches[place][1], v], 2)
                    caches[place] = k, v
                    hidden = (
                        F.scaled_dot_product_attention(q, k, v, is_causal=step == 0)
                        .transpose(1, 2)
                        .flatten(2)
                    )
                yield f"token {step}"
        del caches, hidden, q, k, v
        yield ""

    return Call(f"generating {'f32' if kind is None else 'amp'}", phases)


def adversarial() -> Call:
    entropy = F.binary_cross_entropy_with_logits

    def phases() -> Phases:
        maker = on_card(
            nn.Sequential(
                nn.ConvTranspose2d(100, 256, 4, 1, 0, bias=False), nn.BatchNorm2d(256), nn.ReLU(True),
                nn.ConvTranspose2d(256, 128, 4, 2, 1, bias=False), nn.BatchNorm2d(128), nn.ReLU(True),
                nn.ConvTranspose2d(128, 3, 4, 2, 1, bias=False), nn.Tanh(),
            ),
        )  # fmt: skip
        critic = on_card(
            nn.Sequential(
                nn.Conv2d(3, 64, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
                nn.Conv2d(64, 128, 4, 2, 1, bias=False), nn.BatchNorm2d(128), nn.LeakyReLU(0.2, inplace=True),
                nn.Conv2d(128, 1, 4), nn.Flatten(),
            ),
        )  # fmt: skip
        optimizers = torch.optim.Adam(maker.parameters()), torch.optim.Adam(critic.parameters())
        real = floats(128, 3, 16, 16, grad=False)
        for step in range(3):
            seen = step == 2
            yield ""
            noise = torch.randn(128, 100, 1, 1, device="cuda")
            fake = maker(noise)
            yield "made" if seen else ""
            optimizers[1].zero_grad()
            entropy(critic(real), torch.ones(128, 1, device="cuda")).backward()
            entropy(critic(fake.detach()), torch.zeros(128, 1, device="cuda")).backward()
            optimizers[1].step()
            yield "critic" if seen else ""
            optimizers[0].zero_grad()
            entropy(critic(fake), torch.ones(128, 1, device="cuda")).backward()
            optimizers[0].step()
            yield "maker" if seen else ""

    return Call("training adversarial", phases)


def momentum(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-4)


CALLS = [
    training("classifier", networks.classifier, momentum),
    training("classifier amp", networks.classifier, momentum, F16),
    training("classifier bf16", networks.classifier, momentum, BF16),
    training("classifier nhwc amp", lambda: networks.classifier(torch.channels_last), momentum, F16),
    training("classifier accumulated", networks.classifier, momentum, None, 2),
    training("depthwise", networks.depthwise, torch.optim.RMSprop),
    training("depthwise amp", networks.depthwise, torch.optim.RMSprop, F16),
    training("segmenter transposed", lambda: networks.segmenter("transposed")),
    training("segmenter upsampling", lambda: networks.segmenter("bilinear")),
    training("segmenter amp", lambda: networks.segmenter("bilinear"), autocast=F16),
    training("volumes", networks.volumes, momentum), training("volumes amp", networks.volumes, momentum, F16),
    training("video", networks.video, momentum), training("video amp", networks.video, momentum, F16),
    training("waves", networks.waves), training("waves amp", networks.waves, autocast=F16),
    training("speech", networks.speech),
    training("graph", networks.graph, torch.optim.Adam),
    training("recommender", lambda: networks.recommender(False), torch.optim.Adagrad),
    training("recommender sparse", lambda: networks.recommender(True), lambda p: torch.optim.SGD(p, lr=0.1)),
    training("language", networks.language), training("language amp", networks.language, autocast=BF16),
    training("language accumulated", networks.language, pieces=2),
    training("words", networks.words), training("actor", networks.actor),
    training("variational", networks.variational), generating(None), generating(BF16), adversarial(),
]  # fmt: skip
