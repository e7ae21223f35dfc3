"""Gradients that meet: the autograd engine adds the second into the first.

It does so in place where it holds the last reference to the first and to its storage (`torch/csrc/autograd/input_buffer.cpp`), but
never with tensors of a subclass, as fake ones are: they would be added into new memory.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from gpulint.forecasting.emulating._tensors import on_card

_aten: Final = torch.ops.aten
_graph_task: Final = torch._C._current_graph_task_id
_HELD_BY_THE_ENGINE: Final = 4  # references to a fake tensor that only the engine and this call hold
_HELD_BY_ONE: Final = 2  # references to its storage: by the tensor, and by the one inside it


def _is_last(tensor: torch.Tensor, others: int = 0) -> bool:
    """Whether the engine holds the last reference to a tensor and to its storage, besides `others` on the way here."""
    storage = tensor.untyped_storage()._cdata
    return (
        tensor._use_count() <= _HELD_BY_THE_ENGINE + others  # type: ignore[attr-defined]
        and torch._C._storage_Use_Count(storage) <= _HELD_BY_ONE
    )


def _add(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    engine = _graph_task() != -1 and not torch.is_grad_enabled() and not kwargs
    if (
        engine
        and on_card(args[0])
        and on_card(args[1])
        and args[0].shape == args[1].shape
        and _is_last(args[0])
    ):
        return tape.execute(_aten.add_.Tensor, args, kwargs)
    return tape.execute(func, args, kwargs)


def _in_place(func: Any) -> Any:
    """Runs as `func`, which ends in an underscore, where the engine's own formula would: on zeros that it has just made. Formulas of
    the backward do so with plain tensors, and make a copy of subclasses (`areAnyTensorSubclassLike`)."""

    def run(tape: Any, plain: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not is_fresh(args[0]):
            return tape.execute(plain, args, kwargs)
        out = tape.execute(func, args, kwargs)
        return _aten.alias.default(out) if torch.is_grad_enabled() else out

    return run


def is_fresh(tensor: Any, others: int = 0) -> bool:
    """Whether a backward has just made a tensor, and nobody else knows it."""
    return _graph_task() != -1 and on_card(tensor) and _is_last(tensor, others)


HOOKS: Final = {
    _aten.add.Tensor: _add,
    _aten.index_add.default: _in_place(_aten.index_add_.default),
    _aten.scatter_add.default: _in_place(_aten.scatter_add_.default),
    _aten.scatter.src: _in_place(_aten.scatter_.src),
    _aten.scatter.value: _in_place(_aten.scatter_.value),
}
