"""The milestones of a plain loop, found by hooks of torch and two wrapped functions."""

from __future__ import annotations

import functools
import os
import weakref
from typing import Any

from gpulint.memory.device import torch_module
from gpulint.memory.phases.told import Told


class Hooks:
    """Watches outermost forwards, optimizer steps, loaders and `torch.save` for one Monitor."""

    def __init__(self, monitor: Told) -> None:
        self._monitor = monitor
        self._depth = 0
        self._trained = False
        self._stepping: weakref.ref[Any] | None = None
        self._validating = 0
        self._epochs = 0
        self._current_loader: weakref.ref[Any] | None = None
        self._training_loader: weakref.ref[Any] | None = None
        self._removers: list[Any] = []

    def count_steps(self) -> None:
        """Watch optimizer steps alone."""
        torch_module()
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self._removers.append(register_optimizer_step_post_hook(self._after_step).remove)

    def install(self) -> None:
        self.count_steps()
        torch = torch_module()
        module = torch.nn.modules.module
        self._removers += [
            module.register_module_forward_pre_hook(self._before_forward).remove,
            module.register_module_forward_hook(self._after_forward, always_call=True).remove,
            self._wrap(torch.utils.data.DataLoader, "__iter__", before=self._before_loader),
            self._wrap(torch, "save", before=self._before_save, after=self._after_save),
        ]

    def remove(self) -> None:
        self._end_validation()
        for remove in self._removers:
            remove()
        self._removers = []

    def _wrap(self, owner: Any, name: str, before: Any = None, after: Any = None) -> Any:
        original = getattr(owner, name)

        @functools.wraps(original)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if before is not None:
                before(*args, **kwargs)
            result = original(*args, **kwargs)
            if after is not None:
                after(*args, **kwargs)
            return result

        setattr(owner, name, wrapped)

        def undo() -> None:
            # Somebody may have wrapped it again since; taking theirs away is not ours to do.
            if getattr(owner, name) is wrapped:
                setattr(owner, name, original)

        return undo

    # -- events ----------------------------------------------------------------------------------------------

    def _before_forward(self, module: Any, _: Any) -> None:
        self._depth += 1
        # A criterion is a module too, and holds no parameters.
        if self._depth > 1 or next(module.parameters(), None) is None:
            return
        if not module.training:
            if self._trained:
                self._validating += 1
            return
        self._end_validation()
        if not self._trained:
            self._trained = True
            self._monitor.model(module)
            if self._current_loader is not None:
                self._monitor.epoch(self._epochs)
        self._training_loader = self._current_loader or self._training_loader

    def _after_forward(self, *_: Any) -> None:
        self._depth = max(0, self._depth - 1)

    def _after_step(self, optimizer: Any, *_: Any) -> None:
        self._depth = 0  # a forward that raised between its hooks must not hide all later ones
        if self._stepping is None:
            self._monitor.milestone("first optimizer step", type(optimizer).__name__)
        # Of several optimizers of one step the first counts; when it is gone, the next.
        if self._stepping is None or self._stepping() is None:
            self._stepping = weakref.ref(optimizer)
        if self._stepping() is optimizer:
            self._monitor.step()

    def _before_loader(self, loader: Any, *_: Any) -> None:
        training = self._training_loader() if self._training_loader is not None else None
        if training is loader:
            self._end_validation()
            self._epochs += 1
            if self._current_loader is not None:
                self._monitor.epoch(self._epochs)
        self._current_loader = weakref.ref(loader)

    def _before_save(self, *_: Any, **__: Any) -> None:
        self._end_validation()

    def _after_save(self, _: Any = None, target: Any = None, *__: Any, **named: Any) -> None:
        """An open file has its name too, and so has the one that `save_checkpoint` writes."""
        target = named.get("f", target)
        path = getattr(target, "name", target) if hasattr(target, "write") else target
        self._monitor.checkpoint(path if isinstance(path, (str, os.PathLike)) else None)

    def _end_validation(self) -> None:
        if self._validating:
            batches, self._validating = self._validating, 0
            self._monitor.validation(f"{batches} batches")
