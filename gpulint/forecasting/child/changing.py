"""Changes to a program that a second forecast tries, without touching its text."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from gpulint.runtime.probes import hooks


def change(name: str) -> None:
    """Make the change of this name in this process; "" is none."""
    if name:
        _CHANGES[name]()


def _run_within(context: Callable[[Any], AbstractContextManager[Any]]) -> None:
    """Each module runs in the context that is made for it."""

    def made(original: Any) -> Any:
        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
            with context(module):
                return original(module, *args, **kwargs)

        return __call__

    hooks.wrap(torch.nn.Module, "__call__", made)


def _no_grad_in_evaluation() -> None:
    _run_within(lambda module: nullcontext() if module.training else torch.no_grad())


def _set_to_none() -> None:
    def made(original: Any) -> Any:
        return lambda self, *_, **__: original(self, set_to_none=True)

    for kind in (torch.optim.Optimizer, torch.nn.Module):
        hooks.wrap(kind, "zero_grad", made)


def _without_foreach() -> None:
    """Each parameter is updated by itself, where the optimizer leaves it open or takes them together."""
    hooks.optimizers(steps=_one_by_one)


def _one_by_one(optimizer: Any) -> None:
    for group in optimizer.param_groups:
        if "foreach" in group and not group.get("fused"):
            group["foreach"] = False


def _bf16() -> None:
    def context(_: Any) -> AbstractContextManager[Any]:
        return nullcontext() if torch.is_autocast_enabled("cuda") else torch.autocast("cuda", torch.bfloat16)

    _run_within(context)


def _checkpointing() -> None:
    """The blocks of a model that come several times run under `torch.utils.checkpoint`."""
    prepared: set[int] = set()

    def before(module: Any, *_: Any, **__: Any) -> None:
        if id(module) not in prepared:
            prepared.update(id(one) for one in module.modules())
            for block in _repeated(module):
                _checkpoint(block)

    hooks.around(torch.nn.Module, "__call__", before)


def _repeated(model: Any) -> list[Any]:
    """The members of the lists of modules in which at least three are of one class, outermost first."""
    found: list[Any] = []
    inside: set[int] = set()
    for module in model.modules():
        if not isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)) or id(module) in inside:
            continue
        classes = [type(one) for one in module if any(one.children())]
        blocks = [one for one in module if classes.count(type(one)) >= 3]
        found += blocks
        inside.update(id(part) for one in blocks for part in one.modules())
    return found


def _checkpoint(block: Any) -> None:
    from torch.utils.checkpoint import checkpoint

    forward = block.forward

    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        if not (block.training and torch.is_grad_enabled()):
            return forward(*args, **kwargs)
        return checkpoint(forward, *args, use_reentrant=False, **kwargs)

    block.forward = checkpointed


_CHANGES = {
    "no_grad": _no_grad_in_evaluation,
    "set_to_none": _set_to_none,
    "foreach": _without_foreach,
    "bf16": _bf16,
    "checkpointing": _checkpointing,
}
