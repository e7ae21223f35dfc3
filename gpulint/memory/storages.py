"""The memory under tensors: how large it is, and which tensors share it."""

from __future__ import annotations

from typing import Any


def storage_key(tensor: Any) -> tuple[str, int] | None:
    """What identifies the memory of a strided tensor; None for tensors without a storage of their own kind."""
    try:
        pointer = tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return None  # sparse, functional and some subclass tensors
    return (str(tensor.device), pointer) if pointer else None


def storage_bytes(tensor: Any) -> int:
    """Bytes of a tensor's whole storage: a view keeps all of its base. Of a sparse tensor, its values and indices; of
    a DTensor and other wrappers, what is really here: their own storage is only as large as it would be."""
    if hasattr(tensor, "__tensor_flatten__"):
        return sum(storage_bytes(part) for part in _wrapped(tensor))
    try:
        return int(tensor.untyped_storage().nbytes())
    except (NotImplementedError, RuntimeError):
        return sum(int(part.numel() * part.element_size()) for part in _parts(tensor))


def _parts(tensor: Any) -> list[Any]:
    if str(tensor.layout) == "torch.sparse_coo":
        return [tensor._values(), tensor._indices()]
    return [tensor]


def _wrapped(tensor: Any) -> list[Any]:
    names, _ = tensor.__tensor_flatten__()
    parts = [getattr(tensor, name) for name in names]
    return [part for part in parts if hasattr(part, "untyped_storage")]
