"""Sees the calls of outermost modules: they mark steps, and what they leave allocated are saved
activations."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from gpulint.runtime.frames import Frames
from gpulint.runtime.result import ForwardFigures


class _State(threading.local):
    depth = 0
    training = False  # the outermost module's mode


class Forwards:
    """Wraps `torch.nn.Module.__call__`. Global module hooks would do the same at twice the cost, and
    torch.compile warns of them.

    `on_root(module)` is called before each outermost forward; `allocated()` reads the probe.
    """

    def __init__(self, frames: Frames, on_root: Callable[[Any], None], allocated: Callable[[], int]) -> None:
        self.active = True
        self.resting = False  # only evaluations are of interest now
        self._frames = frames
        self._on_root = on_root
        self.allocated = allocated
        self._state = _State()
        self._cells: dict[tuple[int, str, bool, bool], list[float]] = {}
        self._original: Any = None

    def start(self) -> None:
        self._original = original = torch.nn.Module.__call__
        state, watch = self._state, self._watch
        is_compiling = torch.compiler.is_compiling

        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(module, *args, **kwargs)
            if (state.depth or self.resting) and (module.training or (state.depth and not state.training)):
                return original(module, *args, **kwargs)
            return watch(module, args, kwargs)

        torch.nn.Module.__call__ = __call__  # type: ignore[method-assign]

    def stop(self) -> None:
        """Put the original back."""
        self.active = False
        if self._original is not None:
            torch.nn.Module.__call__ = self._original  # type: ignore[method-assign]

    def _watch(self, module: Any, args: Any, kwargs: Any) -> Any:
        if not self.active:
            return self._original(module, *args, **kwargs)
        state = self._state
        outermost = state.depth == 0
        if outermost:
            self._on_root(module)
        outer_training, state.training = state.training, bool(module.training)
        state.depth += 1
        before, begin = self.allocated(), time.perf_counter()
        try:
            out = self._original(module, *args, **kwargs)
        finally:
            state.depth -= 1
            state.training = outer_training
        took = time.perf_counter() - begin
        self._note(module, out, self.allocated() - before, took, args)
        return out

    def _note(self, module: Any, out: Any, rise: int, took: float, args: Any) -> None:
        tensors = list(_tensors(out))
        grad = any(tensor.grad_fn is not None for tensor in tensors)
        key = (self._frames.index(sys._getframe(2)), type(module).__name__, bool(module.training), grad)
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = [0, 0, 0, 0.0]
        cell[0] += 1
        cell[3] += took
        output = _storage_bytes(tensors, _tensors(args))
        # The first call may have made cuBLAS workspaces, which are no activations; a second one replaces it.
        if rise - output > cell[1] or cell[0] <= 2:
            cell[1], cell[2] = max(0, rise - output), output

    def figures(self) -> list[ForwardFigures]:
        """What was seen from the user's code, the largest first."""
        found = [
            ForwardFigures(
                self._frames.sites[site], module, training, grad, int(count), int(kept), int(output), seconds
            )
            for (site, module, training, grad), (count, kept, output, seconds) in self._cells.items()
            if site
        ]
        return sorted(found, key=lambda forward: (-(forward.kept or 0), forward.site.line))


def _tensors(out: Any, depth: int = 3) -> Iterator[Any]:
    if isinstance(out, torch.Tensor):
        yield out
    elif depth and isinstance(out, dict):
        for item in out.values():
            yield from _tensors(item, depth - 1)
    elif depth and isinstance(out, (tuple, list)):
        for item in out:
            yield from _tensors(item, depth - 1)
    elif depth and hasattr(out, "__dataclass_fields__"):
        for name in out.__dataclass_fields__:
            yield from _tensors(getattr(out, name, None), depth - 1)


def _storage_bytes(tensors: list[Any], inputs: Iterator[Any]) -> int:
    """The tensors' storages, each once and in whole 512-byte blocks, without those that were passed in."""
    sizes: dict[int, int] = {}
    try:
        for tensor in tensors:
            storage = tensor.untyped_storage()
            sizes[storage._cdata] = (storage.nbytes() + 511) // 512 * 512
        for tensor in inputs:
            sizes.pop(tensor.untyped_storage()._cdata, None)
    except (NotImplementedError, RuntimeError):
        return 0
    return sum(sizes.values())
