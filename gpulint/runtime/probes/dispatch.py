"""What a dispatch mode needs to run an operator as it would have run without one, and to see what its tensors are made of; and one
mode, which follows what storages operators touch for a while: of forward, backward (autograd's threads take along the modes of the
thread that calls them) and optimizer alike."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.utils import _python_dispatch as modes

# of the tensors that stand for Python's numbers
_DTYPES = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}


def called(func: Any, args: Any, kwargs: Any) -> Any:
    """What the operator gives. Raises what it raises."""
    try:
        return func(*args, **kwargs) if kwargs else func(*args)
    except RuntimeError:
        tensors = _numbers_as_tensors(func, args)
        if tensors is None:
            raise
        return func(*tensors, **(kwargs or {}))


def _numbers_as_tensors(func: Any, args: Any) -> Any:
    """The arguments, where one is a number in a tensor's place; or else None. A scripted or traced program's own numbers come to a
    mode so, and operators that know no numbers refuse them: without the mode they are tensors."""
    if not hasattr(func, "_schema"):  # an operator of higher order
        return None
    declared = [str(argument.type) == "Tensor" for argument in func._schema.arguments]
    numbers = [wanted and type(value) in _DTYPES for wanted, value in zip(declared, args, strict=False)]
    if not any(numbers):
        return None
    given = zip(numbers, args, strict=False)
    return [torch.tensor(value, dtype=_DTYPES[type(value)]) if number else value for number, value in given]


def parts_of(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The tensors that one without a storage of its own is made of."""
    if modes.is_traceable_wrapper_subclass(tensor):
        names, _ = tensor.__tensor_flatten__()
        parts = [getattr(tensor, name) for name in names]
        return [part for part in parts if isinstance(part, torch.Tensor)]  # a DTensor names its mesh as well
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    return []


def tensors_in(value: Any, depth: int = 4) -> Iterator[torch.Tensor]:
    """The tensors in lists, tuples and the values of dicts, of which so many lie in one another at most."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth and isinstance(value, (list, tuple, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(one, depth - 1)


class Trace(modes.TorchDispatchMode):  # type: ignore[no-untyped-call]
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
        stack = modes._get_current_dispatch_mode_stack()
        if any(not type(mode).__module__.startswith("gpulint.") for mode in stack):
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
            while (mode := modes._pop_mode()) is not self:
                above.append(mode)
            modes._push_mode(self)
            self.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            for mode in reversed(above):
                modes._push_mode(mode)
        self._thread = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = called(func, args, kwargs)
        if self._thread:
            self._note(tensors_in((args, kwargs, result), 5))
        return result

    def _note(self, tensors: Iterable[torch.Tensor]) -> None:
        for tensor in tensors:
            address = _address(tensor)
            if address is not None:
                self._touched.add(address)
            else:
                self._note(parts_of(tensor))


def _address(tensor: Any) -> int | None:
    """Where its storage is; None for one that has none, or an empty one."""
    try:
        return torch.Tensor.untyped_storage(tensor).data_ptr() or None
    except (NotImplementedError, RuntimeError, ValueError):
        return None
