"""What a dispatch mode needs to run an operator as it would have run without one, and to see what its tensors are made of."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

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
    numbers = [
        is_tensor and isinstance(value, (bool, int, float, complex))
        for is_tensor, value in zip(declared, args, strict=False)
    ]
    if not any(numbers):
        return None
    return [
        torch.tensor(value, dtype=_DTYPES[type(value)]) if is_number else value
        for is_number, value in zip(numbers, args, strict=False)
    ]


def parts_of(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The tensors that one without a storage of its own is made of."""
    if is_traceable_wrapper_subclass(tensor):
        names, _ = tensor.__tensor_flatten__()
        parts = [getattr(tensor, name) for name in names]
        return [part for part in parts if isinstance(part, torch.Tensor)]  # a DTensor names its mesh as well
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    return []
