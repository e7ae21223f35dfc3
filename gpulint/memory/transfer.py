"""Copies of nested objects on the host."""

from __future__ import annotations

import copy
import dataclasses
import operator
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from gpulint.memory.device import torch_module
from gpulint.memory.live import storage_key

T = TypeVar("T")


def to_cpu(obj: T) -> T:
    """`obj` with every tensor in it detached and on the CPU; containers are rebuilt, the rest is the same object.

    Goes through dicts, lists, tuples, named tuples, sets, deques, dataclasses, mappings such as model outputs,
    and objects of this form inside each other, also with cycles. Tensors are copied one at a time. Tensors that
    share memory share it in the copy too (tied weights stay tied); a view that stands alone is copied without
    the rest of its base. Tensors that are on the CPU already are detached and not copied.
    """
    copied: T = Copier(_shared_storages(obj)).copy(obj)
    return copied


def _children(obj: Any) -> list[Any]:
    """What lies directly in a container; nothing for other objects."""
    if isinstance(obj, Mapping):
        return list(obj.values())
    if isinstance(obj, (list, tuple, set, frozenset, deque)):
        return list(obj)
    if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
        return [part for _, part in _fields(obj)]
    return []


def _fields(obj: Any) -> list[tuple[str, Any]]:
    """Those of a dataclass that have been set."""
    names = [field.name for field in dataclasses.fields(obj)]
    return [(name, getattr(obj, name)) for name in names if hasattr(obj, name)]


def tensors_in(obj: Any) -> list[Any]:
    """Every tensor in `obj`, each object once."""
    torch = torch_module()
    seen: set[int] = set()
    found: list[Any] = []
    waiting = [obj]
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, torch.Tensor):
            found.append(current)
        else:
            waiting.extend(reversed(_children(current)))
    return found


def _shared_storages(obj: Any) -> set[tuple[str, int]]:
    """Storages that tensors of `obj` look at in more than one way."""
    seen: dict[tuple[str, int], Any] = {}
    shared: set[tuple[str, int]] = set()
    for tensor in tensors_in(obj):
        key = storage_key(tensor)
        if key is None or tensor.device.type == "cpu" or not _plain(tensor):
            continue
        view = (tensor.dtype, tensor.storage_offset(), tuple(tensor.size()), tuple(tensor.stride()))
        if seen.setdefault(key, view) != view:
            shared.add(key)
    return shared


def _plain(tensor: Any) -> bool:
    torch = torch_module()
    kinds = (torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.Tensor))
    return type(tensor) in kinds and tensor.layout is torch.strided


class Copier:
    def __init__(self, shared: set[tuple[str, int]]) -> None:
        self.torch = torch_module()
        self.shared = shared
        self.storages: dict[tuple[str, int], Any] = {}
        self.tensors: dict[tuple[Any, ...], Any] = {}
        # The originals are kept with their copies, so that no id is used twice while this runs.
        self.done: dict[int, tuple[Any, Any]] = {}

    def copy(self, obj: Any) -> Any:
        known = self.done.get(id(obj))
        if known is not None:
            return known[1]
        made = self.tensor(obj) if isinstance(obj, self.torch.Tensor) else self._container(obj)
        self.done[id(obj)] = (obj, made)
        return made

    def tensor(self, tensor: Any) -> Any:
        key = storage_key(tensor)
        if tensor.device.type == "cpu" or key is None or not _plain(tensor):
            return tensor.detach().cpu()
        view = (key, tensor.dtype, tensor.storage_offset(), tuple(tensor.size()), tuple(tensor.stride()))
        if view not in self.tensors:
            self.tensors[view] = self._view(tensor, key) if key in self.shared else tensor.detach().cpu()
        return self.tensors[view]

    def _view(self, tensor: Any, key: tuple[str, int]) -> Any:
        if key not in self.storages:
            self.storages[key] = tensor.untyped_storage().cpu()
        made = self.torch.empty(0, dtype=tensor.dtype)
        return made.set_(self.storages[key], tensor.storage_offset(), tensor.size(), tensor.stride())

    def _container(self, obj: Any) -> Any:
        if isinstance(obj, (tuple, set, frozenset)):
            parts = [self.copy(part) for part in obj]
            if all(a is b for a, b in zip(parts, obj, strict=True)):
                return obj
            return type(obj)(*parts) if hasattr(obj, "_fields") else type(obj)(parts)
        if isinstance(obj, (list, deque)):
            return self._filled(obj, enumerate(obj), operator.setitem)
        if isinstance(obj, dict):
            return self._filled(obj, list(obj.items()), operator.setitem)
        if isinstance(obj, Mapping):
            kind: Any = type(obj)
            return kind({key: self.copy(part) for key, part in obj.items()})
        if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
            return self._filled(obj, _fields(obj), object.__setattr__)
        return obj

    def _filled(
        self, obj: Any, parts: Iterable[tuple[Any, Any]], put: Callable[[Any, Any, Any], None]
    ) -> Any:
        made = copy.copy(obj)
        self.done[id(obj)] = (obj, made)  # before its parts: a list may contain itself
        for place, part in parts:
            put(made, place, self.copy(part))
        return made
