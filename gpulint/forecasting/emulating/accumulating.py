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


def _is_last(tensor: torch.Tensor) -> bool:
    """Whether the engine holds the last reference to a tensor and to its storage."""
    storage = tensor.untyped_storage()._cdata
    return (
        tensor._use_count() <= _HELD_BY_THE_ENGINE  # type: ignore[attr-defined]
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


HOOKS: Final = {_aten.add.Tensor: _add}
