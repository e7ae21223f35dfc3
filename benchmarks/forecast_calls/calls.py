"""What a call is, and how most are made: a function or module, its inputs, forward and backward."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

Phases = Iterator[str]  # yielded at the end of a phase: its name, or "" for one that is not looked at
F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
KINDS = (F32, BF16)


@dataclass(frozen=True, slots=True)
class Call:
    """A call by name; `phases` makes what it needs anew and runs it."""

    name: str
    phases: Callable[[], Phases]


def call(name: str) -> Callable[[Callable[[], Phases]], Call]:
    """The call of this name, in the place of its phases."""
    return lambda phases: Call(name, phases)


def said(kind: torch.dtype) -> str:
    return {F32: "f32", F16: "f16", BF16: "bf16"}.get(kind, str(kind)[6:])


def floats(*shape: int, kind: torch.dtype = F32, grad: bool = True) -> torch.Tensor:
    return torch.randn(*shape, device="cuda").to(kind).requires_grad_(grad)


def ones(*shape: int, kind: torch.dtype = F32) -> torch.Tensor:
    return torch.ones(shape, device="cuda", dtype=kind)


def whole(most: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, most, shape, device="cuda")


def last(tensor: torch.Tensor) -> torch.Tensor:
    """The same in the channels-last layout."""
    layout = torch.channels_last if tensor.dim() == 4 else torch.channels_last_3d
    return tensor.detach().contiguous(memory_format=layout).requires_grad_(tensor.requires_grad)


def on_card(
    module: nn.Module, kind: torch.dtype = F32, layout: torch.memory_format | None = None
) -> nn.Module:
    module = module.cuda().to(kind)
    return module.to(memory_format=layout) if layout is not None else module  # type: ignore[call-overload]


Made = tuple[Callable[..., Any], tuple[Any, ...]]


def trained(name: str, make: Callable[[], Made], autocast: torch.dtype | None = None) -> Call:
    """Forward and backward of what `make` returns with its inputs."""

    def phases() -> Phases:
        run, inputs = make()
        yield ""
        with casting(autocast):
            out = run(*inputs)
        yield "forward"
        outs = [one for one in flat(out) if one.requires_grad]
        seeds = [torch.ones_like(one) for one in outs]
        yield ""
        if outs:
            torch.autograd.backward(outs, seeds)
            yield "backward"

    return Call(name, phases)


def plain(name: str, make: Callable[[], Made], grad: bool = True) -> Call:
    """A call whose result is looked at without a backward."""

    def phases() -> Phases:
        run, inputs = make()
        yield ""
        with torch.set_grad_enabled(grad):
            out = run(*inputs)
        yield "call"
        del out
        yield ""

    return Call(name, phases)


def casting(kind: torch.dtype | None) -> contextlib.AbstractContextManager[Any]:
    return contextlib.nullcontext() if kind is None else torch.autocast("cuda", dtype=kind)


def flat(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [one for part in value for one in flat(part)] if isinstance(value, (list, tuple)) else []


def of(name: str, make: Callable[[torch.dtype], Made], kinds: tuple[torch.dtype, ...] = KINDS) -> list[Call]:
    """A call for each of the types, with which its name ends."""
    return [trained(f"{name} {said(kind)}", partial(make, kind)) for kind in kinds]


def by(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def each(
    name: str, run: Callable[..., Any], *shapes: tuple[int, ...], kinds: tuple[torch.dtype, ...] = KINDS
) -> list[Call]:
    """The function on one input of each of the shapes and types."""

    def made(shape: tuple[int, ...], kind: torch.dtype) -> Made:
        return run, (floats(*shape, kind=kind),)

    return [call for shape in shapes for call in of(f"{name} {by(shape)}", partial(made, shape), kinds)]


def modules(
    name: str, make: Callable[[], nn.Module], *shapes: tuple[int, ...], kinds: tuple[torch.dtype, ...] = KINDS,
    amp: bool = False,
) -> list[Call]:  # fmt: skip
    """The module on one input of each of the shapes and types; with `amp`, in mixed precision too."""

    def made(shape: tuple[int, ...], kind: torch.dtype = F32) -> Made:
        return on_card(make(), kind), (floats(*shape, kind=kind),)

    found = [call for shape in shapes for call in of(f"{name} {by(shape)}", partial(made, shape), kinds)]
    return found + [trained(f"{name} {by(one)} amp", partial(made, one), F16) for one in shapes if amp]
