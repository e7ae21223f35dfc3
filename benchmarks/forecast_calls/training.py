"""Optimizers, clipping, averaging, scaling, checkpointing, and gradients of gradients."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from forecast_calls.calls import (
    BF16,
    F16,
    F32,
    Call,
    Made,
    Phases,
    call,
    casting,
    floats,
    on_card,
    plain,
    trained,
)

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.1}, "SGD momentum": {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4}, "SGD nesterov": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    "Adam": {}, "Adam decayed": {"weight_decay": 1e-2}, "Adam amsgrad": {"amsgrad": True}, "AdamW": {}, "AdamW amsgrad": {"amsgrad": True},
    "RMSprop": {}, "RMSprop centered": {"centered": True, "momentum": 0.9}, "Adagrad": {}, "Adadelta": {}, "Adamax": {}, "NAdam": {},
    "RAdam": {}, "ASGD": {}, "Rprop": {}, "Adafactor": {},
}  # fmt: skip
HOWS: dict[str, dict[str, Any]] = {
    "": {}, "for loop": {"foreach": False}, "fused": {"fused": True}, "capturable": {"capturable": True},
}  # fmt: skip
FUSED = ("SGD", "Adam", "AdamW", "Adagrad")


def network() -> nn.Module:
    parts = [nn.Linear(512, 512) for _ in range(6)]
    return on_card(nn.Sequential(*parts, nn.Linear(512, 2000), nn.Linear(2000, 8)))


def with_gradients(module: nn.Module) -> list[nn.Parameter]:
    found = list(module.parameters())
    for one in found:
        one.grad = torch.ones_like(one)
    return found


def stepped(name: str, how: str = "", kind: torch.dtype = F32) -> Call:
    """Two steps of an optimizer, updated in one of the ways in which it may be."""

    def phases() -> Phases:
        module = network().to(kind)
        options = {**OPTIMIZERS[name], **HOWS[how]}
        optimizer = getattr(torch.optim, name.split()[0])(module.parameters(), **options)
        with_gradients(module)
        yield ""
        for step in ("first step", "second step"):
            optimizer.step()
            yield step
        optimizer.zero_grad()
        yield "zero_grad"

    return Call(f"step of {name}{how and f' {how}'}{' bf16' if kind is BF16 else ''}", phases)


def _has(name: str, how: str) -> bool:
    """Whether an optimizer knows this way."""
    plain = name.split()[0]
    if how == "capturable":
        return plain not in ("SGD", "Adagrad", "Adafactor")
    return how != "fused" or plain in FUSED


def optimizers() -> list[Call]:
    return [
        *(stepped(name, how) for name in OPTIMIZERS for how in HOWS if _has(name, how)),
        *(stepped(name, kind=BF16) for name in ("SGD momentum", "AdamW")),
        lbfgs,
        sparse_adam,
        scaled("AdamW", {}),
        scaled("AdamW fused", {"fused": True}),
        scaled("SGD", {"lr": 0.1}),
    ]


@call("step of LBFGS")
def lbfgs() -> Phases:
    module, x = network(), floats(64, 512, grad=False)
    optimizer = torch.optim.LBFGS(module.parameters(), history_size=5, max_iter=4)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = module(x).square().mean()
        loss.backward()
        return loss

    yield ""
    optimizer.step(closure)
    yield "first step"
    optimizer.step(closure)
    yield "second step"


@call("step of SparseAdam")
def sparse_adam() -> Phases:
    module = on_card(nn.Embedding(50_000, 64, sparse=True))
    optimizer = torch.optim.SparseAdam(module.parameters())
    tokens = torch.randint(0, 50_000, (4096,), device="cuda")
    yield ""
    for number in ("first", "second"):
        module(tokens).sum().backward()
        yield f"{number} backward"
        optimizer.step()
        yield f"{number} step"
        optimizer.zero_grad()
        yield "zero_grad"


def scaled(name: str, options: dict[str, Any]) -> Call:
    """Mixed precision with a scaler and clipping."""

    def phases() -> Phases:
        module, x = network(), floats(256, 512, grad=False)
        optimizer = getattr(torch.optim, name.split()[0])(module.parameters(), **options)
        scaler = torch.amp.GradScaler("cuda")
        yield ""
        for number in ("first", "second"):
            with casting(F16):
                loss = module(x).square().mean()
            yield f"{number} forward"
            scaler.scale(loss).backward()
            yield f"{number} backward"
            scaler.unscale_(optimizer)
            yield f"{number} unscale"
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            yield f"{number} clip"
            scaler.step(optimizer)
            scaler.update()
            yield f"{number} step"
            optimizer.zero_grad()
            del loss
            yield ""

    return Call(f"scaled {name}", phases)


ON_GRADIENTS: dict[str, Callable[[list[Any]], Any]] = {
    "clip_grad_norm_": lambda p: nn.utils.clip_grad_norm_(p, 1.0),
    "clip_grad_norm_ for loop": lambda p: nn.utils.clip_grad_norm_(p, 1.0, foreach=False),
    "clip_grad_norm_ inf": lambda p: nn.utils.clip_grad_norm_(p, 1.0, norm_type=float("inf")),
    "clip_grad_value_": lambda p: nn.utils.clip_grad_value_(p, 1.0),
    "clip_grad_value_ for loop": lambda p: nn.utils.clip_grad_value_(p, 1.0, foreach=False),
    "norm of gradients by hand": lambda p: sum(one.grad.data.norm(2) ** 2 for one in p) ** 0.5,
    "norm of stacked norms": lambda p: torch.norm(
        torch.stack([torch.norm(one.grad.detach(), 2) for one in p]), 2
    ),
    "parameters_to_vector": nn.utils.parameters_to_vector,
    "weight penalty": lambda p: sum(one.pow(2).sum() for one in p),
    "weights to host": lambda p: [one.detach().cpu() for one in p],
    "weights cloned": lambda p: [one.detach().clone() for one in p],
}


def clipping() -> list[Call]:
    def made(action: Callable[[list[Any]], Any]) -> Made:
        return action, (with_gradients(network()),)

    return [plain(name, partial(made, action)) for name, action in ON_GRADIENTS.items()]


def averaging() -> list[Call]:
    def phases(make: Callable[[nn.Module], Any]) -> Callable[[], Phases]:
        def run() -> Phases:
            module = network()
            yield ""
            averaged, update = make(module)
            yield "made"
            update()
            yield "first update"
            update()
            yield "second update"
            del averaged, update
            yield ""

        return run

    def library(options: dict[str, Any]) -> Callable[[nn.Module], Any]:
        def make(module: nn.Module) -> Any:
            averaged = torch.optim.swa_utils.AveragedModel(module, **options)
            return averaged, lambda: averaged.update_parameters(module)

        return make

    def by_hand(update: Callable[[nn.Parameter, nn.Parameter], Any]) -> Callable[[nn.Module], Any]:
        def make(module: nn.Module) -> Any:
            averaged = copy.deepcopy(module).requires_grad_(False)

            def step() -> None:
                with torch.no_grad():
                    for mean, one in zip(averaged.parameters(), module.parameters(), strict=True):
                        update(mean, one)

            return averaged, step

        return make

    average = torch.optim.swa_utils.get_ema_multi_avg_fn(0.99)
    return [
        Call("AveragedModel", phases(library({}))),
        Call("AveragedModel ema", phases(library({"multi_avg_fn": average}))),
        Call(
            "AveragedModel ema by function",
            phases(library({"avg_fn": lambda mean, one, _: 0.9 * mean + 0.1 * one})),
        ),
        Call("ema mul_ add_", phases(by_hand(lambda mean, one: mean.mul_(0.99).add_(one, alpha=0.01)))),
        Call("ema lerp_", phases(by_hand(lambda mean, one: mean.lerp_(one, 0.01)))),
        Call("ema copy_", phases(by_hand(lambda mean, one: mean.copy_(mean * 0.99 + one * 0.01)))),
    ]


def blocks(count: int, width: int) -> nn.Sequential:
    parts = [
        nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * width, width))
        for _ in range(count)
    ]
    return nn.Sequential(*parts).cuda()


def stepping(
    name: str, run: Callable[[nn.Module, torch.Tensor], torch.Tensor], autocast: torch.dtype | None = None
) -> Call:
    return trained(name, lambda: (run, (blocks(4, 512), floats(2048, 512))), autocast)


def checkpointing() -> list[Call]:
    def each(reentrant: bool) -> Callable[[Any, torch.Tensor], torch.Tensor]:
        def run(module: Any, x: torch.Tensor) -> torch.Tensor:
            for block in module:
                x = checkpoint(block, x, use_reentrant=reentrant)
            return x

        return run

    def split(module: Any, x: torch.Tensor) -> torch.Tensor:
        return checkpoint_sequential(module, 2, x, use_reentrant=False)

    return [
        stepping("blocks", lambda module, x: module(x)),
        stepping("blocks amp", lambda module, x: module(x), F16),
        stepping("checkpoint", each(False)),
        stepping("checkpoint amp", each(False), F16),
        stepping("checkpoint reentrant", each(True)),
        stepping("checkpoint reentrant amp", each(True), BF16),
        stepping("checkpoint_sequential", split),
        stepping("residual", lambda module, x: residual(module, x)),
        stepping("residual inplace", lambda module, x: residual(module, x, True)),
    ]


def residual(module: Any, x: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    for block in module:
        out = block(x)
        if inplace:
            out += x
            x = out
        else:
            x = x + out
    return x


def twice() -> list[Call]:
    """Gradients of gradients: penalties of GANs, learning to learn, hessian products, per-sample gradients."""

    def penalty(module: nn.Module, x: torch.Tensor) -> Callable[[], Phases]:
        def phases() -> Phases:
            net, real = on_card(copy.deepcopy(module)), x.cuda()
            fake = torch.randn_like(real)
            yield ""
            share = torch.rand(real.shape[0], *[1] * (real.dim() - 1), device="cuda")
            mixed = (share * real + (1 - share) * fake).requires_grad_()
            score = net(mixed)
            yield "forward"
            (gradient,) = torch.autograd.grad(score, mixed, torch.ones_like(score), create_graph=True)
            yield "gradient"
            loss = ((gradient.flatten(1).norm(2, dim=1) - 1) ** 2).mean()
            loss.backward()
            yield "backward"

        return phases

    @call("hessian product")
    def hessian() -> Phases:
        net, x = on_card(nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 1))), floats(512, 256)
        yield ""
        loss = net(x).square().mean()
        gradients = torch.autograd.grad(loss, list(net.parameters()), create_graph=True)
        yield "gradient"
        product = sum((one * torch.ones_like(one)).sum() for one in gradients)
        product.backward()
        yield "backward"

    @call("inner steps")
    def inner() -> Phases:
        weight, x = floats(512, 512), floats(256, 512, grad=False)
        yield ""
        fast = weight
        for _ in range(3):
            loss = F.linear(x, fast).tanh().square().mean()
            (gradient,) = torch.autograd.grad(loss, fast, create_graph=True)
            fast = fast - 0.1 * gradient
        yield "inner"
        F.linear(x, fast).square().mean().backward()
        yield "backward"

    def per_sample() -> Made:
        gradient = torch.func.grad(lambda w, one: (w @ one).square().sum())
        return torch.func.vmap(gradient, (None, 0)), (
            floats(64, 256, grad=False),
            floats(512, 256, grad=False),
        )

    def jacobian() -> Made:
        net = nn.Sequential(nn.Linear(128, 256), nn.Tanh(), nn.Linear(256, 64))
        return torch.autograd.functional.jacobian, (on_card(net), floats(128))

    flat = nn.Sequential(
        nn.Linear(784, 512), nn.LeakyReLU(0.2), nn.Linear(512, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1)
    )
    image = nn.Sequential(
        nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(64, 128, 4, 2, 1),
        nn.InstanceNorm2d(128, affine=True), nn.LeakyReLU(0.2), nn.Conv2d(128, 1, 4),
    )  # fmt: skip
    silu = nn.Sequential(
        nn.Linear(256, 512), nn.SiLU(), nn.LayerNorm(512), nn.Linear(512, 512), nn.Softplus(),
        nn.Linear(512, 1),
    )  # fmt: skip
    grouped = nn.Sequential(
        nn.Conv2d(3, 64, 3, 1, 1), nn.GroupNorm(8, 64), nn.SiLU(), nn.AvgPool2d(2), nn.Conv2d(64, 1, 3)
    )
    batch = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1), nn.BatchNorm2d(64), nn.GELU(), nn.Conv2d(64, 1, 3))
    return [
        Call("gradient penalty flat", penalty(flat, torch.randn(256, 784))),
        Call("gradient penalty images", penalty(image, torch.randn(32, 3, 64, 64))),
        Call("gradient penalty silu", penalty(silu, torch.randn(512, 256))),
        Call("gradient penalty group norm", penalty(grouped, torch.randn(16, 3, 64, 64))),
        Call("gradient penalty batch norm", penalty(batch, torch.randn(16, 3, 64, 64))),
        hessian,
        inner,
        plain("per-sample gradients", per_sample),
        plain("jacobian", jacobian),
    ]  # fmt: skip


CALLS = [*optimizers(), *clipping(), *averaging(), *checkpointing(), *twice()]
