"""What some habits of training code cost on this machine's GPU: peak and growth of memory, time a step.

    python benchmarks/habits_cost.py [--steps 20]

Covers gradients kept by `zero_grad`, gradients with a graph left on the parameters, cached outputs, running statistics
under grad, networks run for a detached result, and a discriminator step that goes through the generator. Each habit
runs against its remedy, in one process, in turn.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

MIB = 2**20
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class LanguageModel(nn.Module):
    """Four layers, width 512, vocabulary 32,000."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(32_000, 512)
        layer = nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear(512, 32_000)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.embed(tokens)))  # type: ignore[no-any-return]


def mlp(width: int = 1024, layers: int = 8) -> nn.Sequential:
    parts: list[nn.Module] = []
    for _ in range(layers):
        parts += [nn.Linear(width, width), nn.Tanh()]
    return nn.Sequential(*parts).to(DEVICE)


def measure(name: str, make: Callable[[], Callable[[int], None]], steps: int) -> None:
    """Run the step that `make` gives; print peak, growth a step after warm-up, time a step."""
    torch.manual_seed(0)
    gc.collect()
    torch.cuda.empty_cache()
    base = torch.cuda.memory_allocated()
    step = make()
    for index in range(4):
        step(index)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    start = time.perf_counter()
    for index in range(4, 4 + steps):
        step(index)
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - start) / steps
    after, peak = torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()
    print(
        f"{name:52} peak {(peak - base) / MIB:8.1f} MiB  held {(after - base) / MIB:8.1f} MiB  "
        f"growth {(after - before) / steps / MIB:8.3f} MiB/step  {seconds * 1e3:7.2f} ms",
        flush=True,
    )


# --- zero_grad -----------------------------------------------------------------------------------------------------


def zeroing(set_to_none: bool, late: bool) -> Callable[[int], None]:
    model = LanguageModel().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(0, 32_000, (16, 256), device=DEVICE)

    def step(index: int) -> None:
        if not late:
            optimizer.zero_grad(set_to_none=set_to_none)
        loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        if late:
            optimizer.zero_grad(set_to_none=set_to_none)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


# --- gradients with a graph ----------------------------------------------------------------------------------------


def second_order(how: str) -> Callable[[int], None]:
    """A step that reads the gradients of a first backward, as second-order optimizers and penalties do."""
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    inputs = torch.randn(512, 1024, device=DEVICE)
    parameters = list(model.parameters())

    def step(index: int) -> None:
        loss = model(inputs).pow(2).mean()
        if how.startswith("autograd.grad"):
            grads = torch.autograd.grad(loss, parameters, create_graph=True)
            if how.endswith("and penalty"):
                optimizer.zero_grad()
                (loss + sum(g.pow(2).sum() for g in grads)).backward()
            else:
                for p, g in zip(parameters, grads, strict=True):
                    p.grad = g.detach()
        else:
            if how.startswith("zero_grad before"):
                optimizer.zero_grad()
            loss.backward(create_graph=True)
            if how.endswith("and penalty"):
                torch.stack([p.grad.pow(2).sum() for p in parameters if p.grad is not None]).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if how.startswith("zero_grad after"):
            optimizer.zero_grad()

    return step


def forgotten(create_graph: bool) -> Callable[[int], None]:
    """A model of its own in every step, dropped with its gradients; the garbage collector is off."""

    def step(index: int) -> None:
        gc.disable()
        model = mlp()
        model(torch.randn(512, 1024, device=DEVICE)).pow(2).mean().backward(create_graph=create_graph)

    return step


# --- caches --------------------------------------------------------------------------------------------------------


def caching(grad: bool, host: bool) -> Callable[[int], None]:
    model = mlp()
    inputs = torch.randn(512, 1024, device=DEVICE)
    cache: dict[int, torch.Tensor] = {}

    def step(index: int) -> None:
        with torch.set_grad_enabled(grad):
            out = model(inputs)
        cache[index] = out.cpu() if host else out

    return step


# --- running statistics --------------------------------------------------------------------------------------------


def averaging(detach: bool) -> Callable[[int], None]:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    inputs = torch.randn(512, 1024, device=DEVICE)
    shadow = {k: p.detach().clone() for k, p in model.named_parameters()}

    def step(index: int) -> None:
        optimizer.zero_grad()
        model(inputs).pow(2).mean().backward()
        optimizer.step()
        for k, p in model.named_parameters():
            shadow[k] = 0.9 * shadow[k] + 0.1 * (p.detach() if detach else p)

    return step


# --- results only detached, discriminators -------------------------------------------------------------------------


def teaching(no_grad: bool) -> Callable[[int], None]:
    teacher, student = mlp(), mlp()
    optimizer = torch.optim.SGD(student.parameters(), 1e-3)
    inputs = torch.randn(512, 1024, device=DEVICE)

    def step(index: int) -> None:
        out = student(inputs)
        with torch.set_grad_enabled(not no_grad):
            target = teacher(inputs)
        optimizer.zero_grad()
        F.mse_loss(out, target.detach()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


def discriminating(how: str) -> Callable[[int], None]:
    generator, discriminator = mlp(), mlp()
    optimizer = torch.optim.SGD(discriminator.parameters(), 1e-3)
    real, noise = (torch.randn(512, 1024, device=DEVICE) for _ in range(2))

    def step(index: int) -> None:
        generator.zero_grad()
        with torch.set_grad_enabled(how != "fake under no_grad"):
            fake = generator(noise)
        loss = F.softplus(-discriminator(real)).mean()
        loss = loss + F.softplus(discriminator(fake.detach() if how == "fake.detach()" else fake)).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=20)
    steps = parser.parse_args().steps
    print(torch.__version__, torch.cuda.get_device_name())
    for late in (False, True):
        where = "before backward" if late else "before forward"
        for none in (True, False):
            measure(f"zero_grad(set_to_none={none}) {where}", lambda n=none, w=late: zeroing(n, w), steps)  # type: ignore[misc]
    for how in (
        "autograd.grad", "zero_grad after the step", "zero_grad before backward", "no zero_grad",
        "autograd.grad and penalty", "zero_grad after the step and penalty", "zero_grad before backward and penalty",
    ):  # fmt: skip
        measure(f"create_graph: {how}", lambda h=how: second_order(h), steps)  # type: ignore[misc]
    for create in (False, True):
        measure(f"model dropped: create_graph={create}", lambda c=create: forgotten(c), steps)  # type: ignore[misc]
        gc.enable()
    for grad, host in ((True, False), (True, True), (False, False), (False, True)):
        measure(f"cache: grad={grad} .cpu()={host}", lambda g=grad, h=host: caching(g, h), steps)  # type: ignore[misc]
    for detach in (False, True):
        measure(f"average of weights: detach={detach}", lambda d=detach: averaging(d), steps)  # type: ignore[misc]
    for no_grad in (False, True):
        measure(f"teacher: no_grad={no_grad}", lambda n=no_grad: teaching(n), steps)  # type: ignore[misc]
    for how in ("not detached", "fake.detach()", "fake under no_grad"):
        measure(f"discriminator: {how}", lambda h=how: discriminating(h), steps)  # type: ignore[misc]


if __name__ == "__main__":
    main()
