"""Which storages are read or written for a while, by any operator.

A dispatch mode is handed the arguments of every operator below the dispatcher: of forward, backward (autograd's threads take the
modes of the thread that calls them along) and optimizer alike. It runs each operator as it would have run.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode_stack,
    _pop_mode,
    _push_mode,
)

from gpulint.runtime.probes.dispatch import called, parts_of

_DEEPEST = 4  # of lists in lists among an operator's arguments


class Trace(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows what operators touch from `begin` to `end`, on the thread that began and autograd's."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._touched: set[int] = set()
        self._thread = 0  # that it follows, 0 while it follows none

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Compiled code runs compiled."""
        return True

    @property
    def on(self) -> bool:
        """Whether operators are followed now."""
        return self._thread != 0

    def begin(self) -> bool:
        """Whether it could begin: not where modes of the script's own are under way, whose end must find them on top."""
        modes = _get_current_dispatch_mode_stack()
        if any(not type(mode).__module__.startswith("gpulint.") for mode in modes):
            return False
        self._touched.clear()
        self._thread = threading.get_ident()
        self.__enter__()  # type: ignore[no-untyped-call]
        return True

    def end(self, tensors: Sequence[Any]) -> list[bool] | None:
        """For each of these whether its storage was touched since; None where another thread has ended the step. A tensor
        without a storage counts as touched."""
        if self._thread != threading.get_ident():
            return None
        self.drop()
        addresses = map(_address, tensors)
        return [address is None or address in self._touched for address in addresses]

    def drop(self) -> None:
        """Follow no more. Modes that the script has begun meanwhile stay as they are; on another thread than the one that is followed
        nothing can be ended, and what is seen from then on counts for nothing."""
        if self._thread == threading.get_ident():
            above = []
            while (mode := _pop_mode()) is not self:
                above.append(mode)
            _push_mode(self)
            self.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            for mode in reversed(above):
                _push_mode(mode)
        self._thread = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = called(func, args, kwargs)
        if self._thread:
            self._note((args, (kwargs or {}).values(), result), _DEEPEST)
        return result

    def _note(self, values: Iterable[Any], depth: int) -> None:
        for value in values:
            if isinstance(value, torch.Tensor):
                address = _address(value)
                if address is not None:
                    self._touched.add(address)
                else:
                    self._note(parts_of(value), depth - 1)
            elif depth and isinstance(value, list | tuple | type({}.values())):
                self._note(value, depth - 1)


def _address(tensor: Any) -> int | None:
    """Where its storage is; None for one that has none, or an empty one."""
    try:
        return torch.Tensor.untyped_storage(tensor).data_ptr() or None
    except (NotImplementedError, RuntimeError, ValueError):
        return None
