"""Changes to a program that a second forecast tries, without touching its text."""

from __future__ import annotations

import sys
from typing import Any

import torch


def change(name: str) -> None:
    """Make the change of this name in this process; "" is none."""
    if name:
        _CHANGES[name]()


def _no_grad_in_evaluation() -> None:
    original = torch.nn.Module.__call__

    def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
        if module.training or not torch.is_grad_enabled():
            return original(module, *args, **kwargs)
        with torch.no_grad():
            return original(module, *args, **kwargs)

    torch.nn.Module.__call__ = __call__


def _set_to_none() -> None:
    for kind in (torch.optim.Optimizer, torch.nn.Module):
        original = kind.zero_grad

        def zero_grad(self: Any, *args: Any, _original: Any = original, **kwargs: Any) -> None:
            _original(self, set_to_none=True)

        kind.zero_grad = zero_grad


def _without_foreach() -> None:
    """Each parameter is updated by itself, where the optimizer leaves it open or takes them together."""
    hooks: Any = sys.modules["torch.optim.optimizer"]  # torch.optim hides the name
    hooks.register_optimizer_step_pre_hook(_one_by_one)


def _one_by_one(optimizer: Any, *_: Any) -> None:
    for group in optimizer.param_groups:
        if "foreach" in group and not group.get("fused"):
            group["foreach"] = False


def _bf16() -> None:
    original = torch.nn.Module.__call__

    def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.is_autocast_enabled("cuda"):
            return original(module, *args, **kwargs)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return original(module, *args, **kwargs)

    torch.nn.Module.__call__ = __call__


def _checkpointing() -> None:
    """The blocks of a model that come several times run under `torch.utils.checkpoint`."""
    original = torch.nn.Module.__call__
    prepared: set[int] = set()

    def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
        if id(module) not in prepared:
            prepared.update(id(one) for one in module.modules())
            for block in _repeated(module):
                _checkpoint(block)
        return original(module, *args, **kwargs)

    torch.nn.Module.__call__ = __call__


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
