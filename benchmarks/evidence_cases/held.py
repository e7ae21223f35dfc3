"""Cases of the rules 1xx: what is kept from step to step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from evidence_cases.setup import Case, Setup, Step, variant


def _sum(memory: dict[str, Any], loss: Any) -> None:
    memory["total"] = memory.get("total", 0.0) + loss


def _append(memory: dict[str, Any], loss: Any) -> None:
    memory.setdefault("losses", []).append(loss)


def _log(memory: dict[str, Any], loss: Any) -> None:
    memory.setdefault("rows", []).append({"step": len(memory.get("rows", ())), "loss": loss})


def _itself(loss: Tensor) -> Tensor:
    return loss


@variant
def _training(
    setup: Setup,
    keep: Callable[[dict[str, Any], Any], None],
    what: Callable[[Tensor], Any] = _itself,
    retain: bool = False,
) -> Step:
    """A training step of the language model, after which `what` of the loss is kept in a memory as old as the loop."""

    model, optimizer = setup.language_model_in_training()
    memory: dict[str, Any] = {}

    def step() -> None:
        loss = setup.loss_of(model, setup.tokens())
        setup.update(optimizer, loss, retain)
        keep(memory, what(loss))

    return step


@variant
def _evaluation(setup: Setup, guarded: bool, scalar: bool) -> Step:
    model = setup.language_model().eval()
    totals: list[Any] = [0.0]

    def step() -> None:
        with torch.set_grad_enabled(not guarded):
            loss = setup.loss_of(model, setup.tokens())
        totals[0] = totals[0] + (loss.item() if scalar else loss)

    return step


@variant
def _outputs(setup: Setup, what: str) -> Step:
    model = setup.language_model().eval()
    outs: list[Tensor] = []

    def step() -> None:
        with torch.set_grad_enabled(what == "cpu, with grad"):
            out = model(setup.tokens())
            outs.append(
                {
                    "outputs": lambda: out,
                    "view": lambda: out[0],
                    "clone": lambda: out[0].clone(),
                    "cpu": lambda: out.argmax(-1).cpu(),
                    "cpu, with grad": lambda: out[:, -1].cpu(),
                }[what]()
            )

    return step


@variant
def _checkpointed(setup: Setup, reentrant: bool | None, input_grad: bool, held: bool) -> Step:
    """A held loss after backward, with the forward under checkpoint (None: without)."""

    model, optimizer = setup.mlp_in_training()
    losses: list[Any] = []

    def step() -> None:
        x = setup.features().requires_grad_(input_grad)
        middle = len(model) // 2
        if reentrant is None:
            out = model(x)
        else:
            out = checkpoint(model[:middle], x, use_reentrant=reentrant)
            out = checkpoint(model[middle:], out, use_reentrant=reentrant)
            if not out.requires_grad:  # reentrant needs an input that requires grad
                out = out + 0 * next(model.parameters()).sum()
        loss = out.pow(2).mean()
        setup.update(optimizer, loss)
        losses.append(loss if held else loss.item())

    return step


class _Remembering(torch.autograd.Function):
    """Keeps its input as an attribute of `ctx`, which backward does not free."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.x = x
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return grads[0] * 2


class _Saving(torch.autograd.Function):
    """The same, by `save_for_backward`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return grads[0] * 2 + 0 * ctx.saved_tensors[0]


class _Doubling(torch.autograd.Function):
    """Keeps its output: as an attribute of `ctx`, or saved."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, saved: bool) -> Tensor:
        ctx.saved, y = saved, x * 2
        if saved:
            ctx.save_for_backward(y)
        else:
            ctx.y = y
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        y = ctx.saved_tensors[0] if ctx.saved else ctx.y
        return grads[0] * 2 + 0 * y, None


@variant
def _output_kept(setup: Setup, saved: bool, train: bool) -> Step:
    model, optimizer = setup.mlp_in_training()

    def step() -> None:
        loss = _Doubling.apply(model(setup.features()), saved).pow(2).mean()
        if train:
            setup.update(optimizer, loss)

    return step


@variant
def _function(setup: Setup, kind: Any, held: bool) -> Step:
    model, optimizer = setup.mlp_in_training()
    losses: list[Any] = []

    def step() -> None:
        loss = kind.apply(model(setup.features())).pow(2).mean()
        setup.update(optimizer, loss)
        losses.append(loss if held else loss.item())

    return step


@variant
def _recurrent(setup: Setup, detach: bool) -> Step:
    width = setup.size.width
    lstm = nn.LSTM(width, width, batch_first=True).to(device=setup.device)
    optimizer = torch.optim.SGD(lstm.parameters(), lr=1e-4)
    state: list[Any] = [None]

    def step() -> None:
        x = torch.randn(setup.size.batch, 32, width, device=setup.device)
        out, state[0] = lstm(x, state[0])
        loss = out.pow(2).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=not detach)
        # The weights must not change in place while older graphs still need them.
        if detach:
            state[0] = tuple(part.detach() for part in state[0])
            optimizer.step()

    return step


def _hook_activations(model: nn.Sequential, what: Callable[[Tensor], Any]) -> None:
    """Forward hooks that keep `what` of each activation's output."""
    kept: list[Any] = []

    def hook(module: nn.Module, inputs: Any, output: Tensor) -> None:
        kept.append(what(output))

    for layer in model:
        if isinstance(layer, nn.GELU):
            layer.register_forward_hook(hook)


@variant
def _hooked(setup: Setup, what: Callable[[Tensor], Any]) -> Step:
    model, optimizer = setup.mlp_in_training()
    _hook_activations(model, what)
    return setup.training_step(optimizer, lambda: model(setup.features()).pow(2).mean())


@variant
def _cached(setup: Setup, bound: int | None) -> Step:
    lengths = iter(range(8, 1_000_000))

    @functools.lru_cache(maxsize=bound)
    def mask(length: int) -> Tensor:
        side = setup.size.length + length
        return torch.ones(side, side, device=setup.device).tril()

    return lambda: mask(next(lengths)).sum() and None


@variant
def _ema(setup: Setup, guarded: bool) -> Step:
    model, optimizer = setup.mlp_in_training()
    average = [p.detach().clone() for p in model.parameters()]

    def step() -> None:
        loss = model(setup.features()).pow(2).mean()
        setup.update(optimizer, loss)
        with torch.set_grad_enabled(not guarded):
            for number, parameter in enumerate(model.parameters()):
                average[number] = 0.9 * average[number] + 0.1 * parameter

    return step


@variant
def _features(setup: Setup, what: str) -> Step:
    """Features of an MLP without a graph, kept batch after batch."""

    model = setup.mlp().eval()
    kept: list[Tensor] = []

    @torch.no_grad()
    def step() -> None:
        out = model(setup.features())
        kept.append({"out": out, "out[0]": out[0]}[what] if what in ("out", "out[0]") else out.cpu())

    return step


@variant
def _hooked_forward(setup: Setup, grad: bool) -> Step:
    """Hooks that keep outputs while batches run through and no backward follows."""

    model = setup.mlp().eval()
    _hook_activations(model, _itself)

    def step() -> None:
        with torch.set_grad_enabled(grad):
            model(setup.features())

    return step


def _looking(held: Tensor | None) -> Any:
    """A hook that does nothing and holds what it was given."""

    def hook(module: nn.Module, inputs: Any, output: Tensor) -> None:
        _ = held

    return hook


@variant
def _registered(setup: Setup, when: str) -> Step:
    """A hook registered in every step, once, or in every step with a batch in its closure."""

    model, optimizer = setup.mlp_in_training()

    def register(held: Tensor | None) -> None:
        model[0].register_forward_hook(_looking(held))

    if when == "once":
        register(None)

    def step() -> None:
        x = setup.features()
        if when != "once":
            register(x if when == "every step, holding the batch" else None)
        loss = model(x).pow(2).mean()
        setup.update(optimizer, loss)

    return step


@variant
def _cached_outputs(setup: Setup, grad: bool, host: bool) -> Step:
    """A network's output for every new key, in a dict that nothing empties."""

    model = setup.mlp()
    cache: dict[int, Tensor] = {}

    def step() -> None:
        with torch.set_grad_enabled(grad):
            out = model(setup.features())
        cache[len(cache)] = out.cpu() if host else out

    return step


@variant
def _running_mean(setup: Setup, detach: bool, backward: bool) -> Step:
    """A running mean of activations, with a training step around it or without one."""

    model, optimizer = setup.mlp_in_training()
    mean = [torch.zeros(setup.size.mlp_width, device=setup.device)]

    def step() -> None:
        out = model(setup.features())
        mean[0] = 0.9 * mean[0] + 0.1 * (out.detach() if detach else out).mean(0)
        if backward:
            optimizer.zero_grad()
            out.pow(2).mean().backward()
            optimizer.step()

    return step


CASES = [
    Case("GPU101", "loss summed after backward", {
        "total += loss": _training(_sum), "total += loss.item()": _training(_sum, Tensor.item),
    }),
    Case("GPU101", "loss appended after backward", {
        "append(loss)": _training(_append), "append(loss.detach())": _training(_append, Tensor.detach),
        "append(loss.item())": _training(_append, Tensor.item),
    }),
    Case("GPU101", "loss appended after backward(retain_graph=True)", {
        "append(loss)": _training(_append, retain=True),
        "append(loss.item())": _training(_append, Tensor.item, retain=True),
    }),
    Case("GPU101", "loss summed in an evaluation with grad", {
        "total += loss": _evaluation(False, False), "total += loss.item()": _evaluation(False, True),
        "no_grad, item": _evaluation(True, True),
    }),
    Case("GPU101", "outputs moved to the host with their graph", {
        "append(out[:, -1].cpu())": _outputs("cpu, with grad"), "no_grad": _outputs("cpu"),
    }),
    Case("GPU101", "loss appended after backward, forward under checkpoint", {
        "non-reentrant": _checkpointed(False, False, True),
        "non-reentrant, input requires grad": _checkpointed(False, True, True),
        "reentrant": _checkpointed(True, False, True),
        "reentrant, input requires grad": _checkpointed(True, True, True),
        "no checkpoint": _checkpointed(None, False, True),
        "no checkpoint, input requires grad": _checkpointed(None, True, True),
        "non-reentrant, item": _checkpointed(False, False, False),
    }),
    Case("GPU101", "loss appended after backward, custom Function", {
        "ctx.x = x": _function(_Remembering, True), "save_for_backward": _function(_Saving, True),
        "ctx.x = x, item": _function(_Remembering, False),
    }),
    Case("GPU102", "outputs kept under no_grad", {
        "append(out)": _outputs("outputs"), "argmax, cpu": _outputs("cpu"),
    }),
    Case("GPU102", "view of an output kept", {"append(out[0])": _outputs("view"), "clone": _outputs("clone")}),
    Case("GPU102", "features of an MLP kept under no_grad", {
        "append(out)": _features("out"), "append(out[0])": _features("out[0]"), "cpu": _features("cpu"),
    }),
    Case("GPU103", "LSTM state carried", {"carried": _recurrent(False), "detach": _recurrent(True)}),
    Case("GPU104", "loss in a log's rows", {"loss": _training(_log), "loss.item()": _training(_log, Tensor.item)}),
    Case("GPU105", "forward hooks that keep outputs", {
        "output": _hooked(_itself), "a number": _hooked(lambda output: output.detach().abs().mean().item()),
    }),
    Case("GPU105", "forward hooks that keep outputs, no backward", {
        "with grad": _hooked_forward(True), "no_grad": _hooked_forward(False),
    }),
    Case(
        "GPU105",
        "a hook registered in every step",
        {when: _registered(when) for when in ("every step", "every step, holding the batch", "once")},
    ),
    Case("GPU106", "a network's outputs in a dict", {
        "net(x) with grad": _cached_outputs(True, False), "net(x).cpu() with grad": _cached_outputs(True, True),
        "net(x) under no_grad": _cached_outputs(False, False),
        "net(x).cpu() under no_grad": _cached_outputs(False, True),
    }),
    Case("GPU106", "masks in lru_cache", {"unbounded": _cached(None), "maxsize=4": _cached(4)}),
    Case("GPU107", "moving average of weights", {"with grad": _ema(False), "no_grad": _ema(True)}),
    Case("GPU107", "running mean of activations", {
        "with grad": _running_mean(False, True), "detach": _running_mean(True, True),
    }),
    Case("GPU107", "running mean of activations, no backward", {
        "with grad": _running_mean(False, False), "detach": _running_mean(True, False),
    }),
    Case("GPU109", "an operation's output on ctx", {
        "ctx.y = y": _output_kept(False, True), "save_for_backward": _output_kept(True, True),
    }),
    Case("GPU109", "an operation's output on ctx, no backward", {
        "ctx.y = y": _output_kept(False, False), "save_for_backward": _output_kept(True, False),
    }),
]  # fmt: skip
