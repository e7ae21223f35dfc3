"""What a program does with its numbers, written down as it runs: each backward with its losses, each optimizer's step with
the gradients it got and the parameters it left.

A tensor is written as its shape and three sums, which differ where two tensors do.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

_DEPTH = 4
ENOUGH = 300  # events of one trace: what differs does so long before


def fingerprint(tensor: torch.Tensor) -> list[Any]:
    """The shape of a tensor and its sum, its sum of squares and a sum that depends on the order."""
    with torch.no_grad(), torch._C.DisableTorchFunction():
        flat = (
            tensor.detach().to(torch.float64).flatten()
            if not tensor.is_sparse
            else tensor.to_dense().flatten()
        )
        weights = torch.arange(1, len(flat) + 1, dtype=torch.float64).cos()
        sums = torch.stack([flat.sum(), flat.square().sum(), flat @ weights]).tolist()
    return [list(tensor.shape), *sums]


def written(value: Any, depth: int = _DEPTH) -> Any:
    """A value as JSON holds it; of what is no number, text or collection, the name of its type."""
    if isinstance(value, torch.Tensor):
        return {"tensor": fingerprint(value)}
    if isinstance(value, nn.Module):
        return {"module": [written(part) for part in value.state_dict().values()]}
    if isinstance(value, (list, tuple)) and depth:
        return [written(part, depth - 1) for part in value]
    if isinstance(value, dict) and depth:
        return {str(key): written(part, depth - 1) for key, part in value.items()}
    return value if isinstance(value, (int, float, str, bool, type(None))) else type(value).__name__


def tensors_in(value: Any, depth: int = _DEPTH) -> Iterator[torch.Tensor]:
    """The tensors of a value, also of one in another."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)) and depth:
        for part in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(part, depth - 1)


class Enough(BaseException):
    """Ends a program that has told what it does, however long it would go on."""


class Recorder:
    """Writes events down between `begin` and `end`."""

    def __init__(self) -> None:
        self.events: list[Any] | None = None

    def begin(self) -> None:
        self.events = []

    def end(self) -> list[Any]:
        events, self.events = self.events or [], None
        return events

    def note(self, kind: str, *what: Any) -> None:
        if self.events is None:
            return
        self.events.append([kind, *what])
        if len(self.events) >= ENOUGH:
            raise Enough

    def before_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self.note("gradients", [written(p.grad) for p in _parameters(optimizer)])

    def after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self.note("parameters", [written(p) for p in _parameters(optimizer)])

    def backward(self, run: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(run)
        def recorded(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            self.note("backward", [written(t) for t in tensors_in(tensors)])
            return run(tensors, *args, **kwargs)

        return recorded

    def grad(self, run: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(run)
        def recorded(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            self.note("grad of", [written(t) for t in tensors_in(outputs)])
            found = run(outputs, *args, **kwargs)
            self.note("grad is", [written(t) for t in tensors_in(found)])
            return found

        return recorded


def _parameters(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]


@contextmanager
def recording() -> Iterator[Recorder]:
    """A recorder that sees every backward and every optimizer's step of the process. `Tensor.backward` goes through
    `torch.autograd.backward`."""
    recorder = Recorder()
    hooks = [
        register_optimizer_step_pre_hook(recorder.before_step),
        register_optimizer_step_post_hook(recorder.after_step),
    ]
    plain = torch.autograd.backward, torch.autograd.grad
    torch.autograd.backward = recorder.backward(plain[0])
    torch.autograd.grad = recorder.grad(plain[1])
    try:
        yield recorder
    finally:
        torch.autograd.backward, torch.autograd.grad = plain
        for hook in hooks:
            hook.remove()
