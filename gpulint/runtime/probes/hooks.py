"""Hooks into torch, for all that watch a program: the verifier, the forecast, the pytest plugin and the kit. Each returns what takes
it out again."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

Undo = Callable[[], None]


def wrap(owner: Any, name: str, made: Callable[[Any], Any]) -> Undo:
    """Put what `made` makes of an owner's function in its place. Where somebody has put something else there since, theirs is not
    ours to take away."""
    original, own = getattr(owner, name), name in vars(owner)
    wrapped = functools.wraps(original)(made(original))
    setattr(owner, name, wrapped)

    def undo() -> None:
        if getattr(owner, name) is not wrapped:
            return
        if own:
            setattr(owner, name, original)
        else:
            delattr(owner, name)

    return undo


def _nothing(*_: Any, **__: Any) -> None:
    """Is asked for."""


def around(
    owner: Any,
    name: str,
    before: Callable[..., object] = _nothing,
    after: Callable[..., object] = _nothing,
    ended: Callable[[], None] = _nothing,
) -> Undo:
    """Call `before` with what a function is called with, `ended` however it ended, and `after` with what it gave and was called with."""

    def made(original: Any) -> Any:
        def called(*args: Any, **kwargs: Any) -> Any:
            before(*args, **kwargs)
            try:
                found = original(*args, **kwargs)
            finally:
                ended()
            after(found, *args, **kwargs)
            return found

        return called

    return wrap(owner, name, made)


def together(*undos: Undo) -> Undo:
    """Takes all of these out, the last one first."""
    stack = ExitStack()
    for undo in undos:
        stack.callback(undo)
    return stack.close


def parameters_of(optimizer: Any) -> list[Any]:
    """All that an optimizer optimizes."""
    groups = getattr(optimizer, "param_groups", ())
    return [parameter for group in groups for parameter in group["params"]]


def optimizers(
    made: Callable[[Any], None] = _nothing,
    steps: Callable[[Any], None] = _nothing,
    stepped: Callable[[Any], None] = _nothing,
) -> Undo:
    """Call `made` with each new optimizer, `steps` before and `stepped` after each of its steps."""
    import torch.optim  # noqa: F401

    module: Any = sys.modules["torch.optim.optimizer"]  # torch.optim hides the name
    before = module.register_optimizer_step_pre_hook(lambda one, *_: steps(one))
    after = module.register_optimizer_step_post_hook(lambda one, *_: stepped(one))
    if made is _nothing:
        return together(before.remove, after.remove)
    wrapped = around(module.Optimizer, "__init__", after=lambda _, one, *__, **___: made(one))
    return together(before.remove, after.remove, wrapped)


def modules(before: Callable[[Any], None] = _nothing, after: Callable[[Any], None] = _nothing) -> Undo:
    """Call `before` and `after` with each module that runs, whatever runs it, `after` however that ended."""
    import torch

    module = torch.nn.modules.module
    return together(
        module.register_module_forward_pre_hook(lambda one, *_: before(one)).remove,
        module.register_module_forward_hook(lambda one, *_: after(one), always_call=True).remove,
    )


def skipped_steps(stepped: Callable[[Any], None]) -> Undo:
    """Call `stepped` for a step that GradScaler skips (infinite gradients), for which no optimizer's hook is called."""
    from torch.amp.grad_scaler import GradScaler

    def made(original: Any) -> Any:
        def _maybe_opt_step(self: Any, optimizer: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
            skipped = bool(sum(found.item() for found in state["found_inf_per_device"].values()))
            out = original(self, optimizer, state, *args, **kwargs)
            if skipped:
                stepped(optimizer)
            return out

        return _maybe_opt_step

    return wrap(GradScaler, "_maybe_opt_step", made)


def replays(replayed: Callable[[Any], None]) -> Undo:
    """Call `replayed` with each CUDA graph that has been replayed."""
    import torch

    return around(torch.cuda.CUDAGraph, "replay", after=lambda _, one: replayed(one))


def threads(begins: Callable[[], None]) -> Undo:
    """Call `begins` on each thread of Python's that starts, before all that it does."""
    return around(threading.Thread, "_bootstrap_inner", before=lambda _: begins())


def loaders(
    batch: Callable[[Any], bool], ended: Callable[[Any], None], loading: Callable[[int], None]
) -> Undo:
    """Call `batch` with the iterator before each batch of a DataLoader, `ended` where it has no more or begins anew, and
    `loading` with +1 and -1 around a batch's making. Where `batch` says True, the epoch ends instead."""
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    def made(original: Any) -> Any:
        def __next__(self: Any) -> Any:
            if batch(self):
                raise StopIteration
            loading(1)
            try:
                return original(self)
            except StopIteration:
                ended(self)
                raise
            finally:
                loading(-1)

        return __next__

    return together(
        wrap(_BaseDataLoaderIter, "__next__", made),
        around(_BaseDataLoaderIter, "_reset", before=lambda iterator, *_, **__: ended(iterator)),
    )
