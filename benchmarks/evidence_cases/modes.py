"""Cases of the rules 2xx and 3xx: gradient mode, backward, gradients."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from evidence_cases.setup import Case, Setup, Step, variant


@variant
def _evaluate(setup: Setup, mode: str) -> Step:
    model = setup.language_model().eval()

    def step() -> None:
        if mode == "bare":
            torch.no_grad()  # creates a context and throws it away
        guard = {"no_grad": torch.no_grad, "inference_mode": torch.inference_mode}.get(mode)
        with guard() if guard else contextlib.nullcontext():
            setup.loss_of(model, setup.tokens()).item()

    return step


@variant
def _teacher(setup: Setup, guarded: bool) -> Step:
    student, teacher = setup.language_model(), setup.language_model().eval()
    optimizer = setup.adamw(student)

    def step() -> None:
        tokens = setup.tokens()
        with torch.set_grad_enabled(not guarded):
            target = teacher(tokens)
        setup.update(optimizer, F.mse_loss(student(tokens), target.detach()))

    return step


@variant
def _discriminator(setup: Setup, how: str) -> Step:
    generator, discriminator = setup.mlp(), setup.mlp()
    optimizer = torch.optim.SGD(discriminator.parameters(), lr=1e-4)

    def step() -> None:
        with torch.set_grad_enabled(how != "no_grad"):
            fake = generator(setup.features())
        if how == "detach":
            fake = fake.detach()
        loss = F.relu(1 + discriminator(fake)).mean() + F.relu(1 - discriminator(setup.features())).mean()
        generator.zero_grad()
        setup.update(optimizer, loss)

    return step


@variant
def _mlp_teacher(setup: Setup, guarded: bool) -> Step:
    student, teacher = setup.mlp(), setup.mlp().eval()
    optimizer = torch.optim.SGD(student.parameters(), lr=1e-4)

    def step() -> None:
        x = setup.features()
        out = student(x)
        with torch.set_grad_enabled(not guarded):
            target = teacher(x)
        optimizer.zero_grad()
        F.mse_loss(out, target.detach()).backward()
        optimizer.step()

    return step


@variant
def _real_branch(setup: Setup, guarded: bool) -> Step:
    """A generator's step that compares features: those of what is real are only the goal."""

    generator, discriminator = setup.mlp(), setup.mlp()
    optimizer = torch.optim.SGD(generator.parameters(), lr=1e-4)

    def step() -> None:
        with torch.set_grad_enabled(not guarded):
            wanted = discriminator(setup.features())
        setup.update(optimizer, F.mse_loss(discriminator(generator(setup.features())), wanted))
        discriminator.zero_grad()

    return step


@variant
def _bound_sample(setup: Setup, how: str) -> Step:
    """A discriminator step in which the sample's own name lives on, for the generator's step that follows."""

    generator, discriminator = setup.mlp(), setup.mlp()
    optimizer = torch.optim.SGD(discriminator.parameters(), lr=1e-4)

    def step() -> None:
        with torch.set_grad_enabled(how != "no_grad"):
            fake = generator(setup.features())
        judged = discriminator(fake.detach() if how == "detach" else fake)
        loss = F.relu(1 + judged).mean() + F.relu(1 - discriminator(setup.features())).mean()
        generator.zero_grad()
        setup.update(optimizer, loss)

    return step


@variant
def _retained(setup: Setup, retain: bool) -> Step:
    model, optimizer = setup.language_model_in_training()

    def step() -> None:
        loss = setup.loss_of(model, setup.tokens())
        optimizer.zero_grad()
        loss.backward(retain_graph=retain)
        setup.note("allocated after backward", setup.allocated())
        optimizer.step()

    return step


@variant
def _penalty(setup: Setup, by_backward: bool) -> Step:
    model, optimizer = setup.mlp_in_training(2, 1e-5)

    def step() -> None:
        x = setup.features().requires_grad_()
        loss = model(x).pow(2).mean()
        parameters = list(model.parameters())
        if by_backward:
            optimizer.zero_grad()
            loss.backward(create_graph=True)
            penalty = sum(p.grad.pow(2).sum() for p in parameters if p.grad is not None)
        else:
            grads = torch.autograd.grad(loss, parameters, create_graph=True)
            penalty = loss + sum(g.pow(2).sum() for g in grads)
            optimizer.zero_grad()
        torch.as_tensor(penalty).backward()
        optimizer.step()

    return step


def _trained_through(setup: Setup, optimizer: torch.optim.Optimizer, forward: Callable[[], Tensor]) -> Step:
    """A training step of what the forward gives, with what stays allocated after it."""

    def step() -> None:
        setup.update(optimizer, forward().pow(2).mean())
        setup.note("allocated after the step", setup.allocated())

    return step


def _freeze(net: torch.nn.Module, really: bool) -> None:
    if really:
        net.requires_grad_(False)
    else:
        net.requires_grad = False  # an attribute that nothing reads


@variant
def _head(setup: Setup, frozen: bool) -> Step:
    """A head that is trained on an encoder, of which all parameters go to the optimizer."""

    encoder = setup.mlp()
    head = torch.nn.Linear(setup.size.mlp_width, 10, device=setup.device)
    _freeze(encoder, frozen)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-4)

    return _trained_through(setup, optimizer, lambda: head(encoder(setup.features())))


@variant
def _judge(setup: Setup, frozen: bool) -> Step:
    """A network that is trained through another, which the optimizer does not have."""

    net, judge = setup.mlp(), setup.mlp().eval()
    _freeze(judge, frozen)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)

    return _trained_through(setup, optimizer, lambda: judge(net(setup.features())))


@variant
def _attacked(setup: Setup, frozen: bool) -> Step:
    """A patch that is optimised through a network which nobody steps."""

    net = setup.mlp().eval().requires_grad_(not frozen)
    patch = torch.zeros_like(setup.features()[:1]).requires_grad_()
    optimizer = torch.optim.SGD([patch], lr=1e-4)

    return _trained_through(setup, optimizer, lambda: net(setup.features() + patch))


def _judge_of_pictures(setup: Setup) -> torch.nn.Module:
    """A discriminator of five strided convolutions."""
    width = max(8, setup.size.mlp_width // 16)
    layers: list[torch.nn.Module] = []
    for before, after in ((3, width), *((width << at, width << at + 1) for at in range(4))):
        layers += [torch.nn.Conv2d(before, after, 4, 2, 1), torch.nn.LeakyReLU(0.2)]
    return torch.nn.Sequential(*layers).to(setup.device)


@variant
def _through_judge(setup: Setup, frozen: bool) -> Step:
    """Both steps of a GAN on pictures; the discriminator's weights want gradients in the generator's, or are frozen for it."""

    judge = _judge_of_pictures(setup)
    generator = torch.nn.ConvTranspose2d(16, 3, 4, 4).to(setup.device)
    own = torch.optim.SGD(judge.parameters(), lr=1e-6)
    optimizer = torch.optim.SGD(generator.parameters(), lr=1e-6)
    side = 32 if setup.size.mlp_width < 512 else 256
    noise = torch.randn(max(4, setup.size.mlp_batch // 16), 16, side // 4, side // 4, device=setup.device)

    def step() -> None:
        setup.update(own, judge(generator(noise).detach()).pow(2).mean())
        began = time.perf_counter()
        judge.requires_grad_(not frozen)
        loss = judge(generator(noise)).pow(2).mean()
        setup.note("allocated after the generator's forward", setup.allocated())
        setup.update(optimizer, loss)
        judge.requires_grad_(True)
        setup.wait()
        setup.note("the generator's step, ms", 1000 * (time.perf_counter() - began))

    return step


@variant
def _micro_batches(setup: Setup, deferred: bool) -> Step:
    model, optimizer = setup.language_model_in_training()
    number = 4

    def step() -> None:
        optimizer.zero_grad()
        total: Any = 0.0
        for _ in range(number):
            loss = setup.loss_of(model, setup.tokens(batch=max(1, setup.size.batch // number))) / number
            if deferred:
                total = total + loss
            else:
                loss.backward()
        if deferred:
            total.backward()
        optimizer.step()

    return step


@variant
def _zero_grad(setup: Setup, to_none: bool) -> Step:
    model, optimizer = setup.language_model_in_training()

    def step() -> None:
        optimizer.zero_grad(set_to_none=to_none)
        setup.note("allocated after zero_grad", setup.allocated())
        setup.loss_of(model, setup.tokens()).backward()
        optimizer.step()

    return step


CASES = [
    Case("GPU201", "evaluation, nothing held", {
        "with grad": _evaluate("grad"), "no_grad": _evaluate("no_grad"),
        "inference_mode": _evaluate("inference_mode"),
    }),
    Case("GPU202", "teacher in the train step", {"with grad": _teacher(False), "no_grad": _teacher(True)}),
    Case("GPU203", "discriminator step", {
        "fake": _discriminator("fake"), "fake.detach()": _discriminator("detach"),
        "no_grad": _discriminator("no_grad"),
    }),
    Case("GPU202", "teacher in the train step, 8-layer MLPs", {
        "with grad": _mlp_teacher(False), "no_grad": _mlp_teacher(True),
    }),
    Case("GPU202", "attacked network that nobody steps", {
        "its weights want gradients": _attacked(False), "net.requires_grad_(False)": _attacked(True),
    }),
    Case("GPU202", "generator step, what is real through the discriminator", {
        "with grad": _real_branch(False), "no_grad": _real_branch(True),
    }),
    Case("GPU202", "generator step through the discriminator", {
        "its weights want gradients": _through_judge(False), "judge.requires_grad_(False)": _through_judge(True),
    }),
    Case("GPU203", "discriminator step, the sample stays bound", {
        "fake": _bound_sample("fake"), "fake.detach()": _bound_sample("detach"),
        "no_grad": _bound_sample("no_grad"),
    }),
    Case("GPU204", "no_grad() as a statement", {"statement": _evaluate("bare"), "with": _evaluate("no_grad")}),
    Case("GPU204", "head on an encoder that is frozen in name only", {
        "net.requires_grad = False": _head(False), "net.requires_grad_(False)": _head(True),
    }),
    Case("GPU204", "judge that is frozen in name only", {
        "net.requires_grad = False": _judge(False), "net.requires_grad_(False)": _judge(True),
    }),
    Case("GPU301", "retain_graph without a second backward", {
        "retain": _retained(True), "default": _retained(False),
    }),
    Case("GPU302", "create_graph", {
        "backward(create_graph=True)": _penalty(True), "autograd.grad": _penalty(False),
    }),
    Case("GPU303", "four micro-batches", {
        "one backward": _micro_batches(True), "one each": _micro_batches(False),
    }),
    Case("GPU304", "zero_grad", {"set_to_none=False": _zero_grad(False), "set_to_none=True": _zero_grad(True)}),
]  # fmt: skip
