"""Looks at the user's objects without running a line of theirs: only what the base types themselves do.

A class may define `values`, `__len__`, `__getattribute__`, `__class__` or a property that imports a thousand modules, asks a server, or
raises. Nothing here calls any of them: types are asked with `type`, attributes are read from the dict or the slot that holds
them, containers by the methods of `dict`, `list` and so on.
"""

from __future__ import annotations

import gc
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

_OF_TYPES: dict[str, Any] = dict(vars(type))
_TYPE_DICT, _TYPE_MRO = _OF_TYPES["__dict__"], _OF_TYPES["__mro__"]
_TYPE_MODULE, _TYPE_QUALNAME = _OF_TYPES["__module__"], _OF_TYPES["__qualname__"]
_SEQUENCES: tuple[Any, ...] = (list, tuple, deque, set, frozenset)


def live_tensors() -> list[Any]:
    """Every tensor that the garbage collector knows."""
    import torch

    return [one for one in gc.get_objects() if issubclass(type(one), torch.Tensor)]


def namespace_of(kind: type) -> types.MappingProxyType[str, Any]:
    """What a class defines, whatever its metaclass says."""
    found: types.MappingProxyType[str, Any] = _TYPE_DICT.__get__(kind)
    return found


def bases_of(kind: type) -> tuple[type, ...]:
    """A class and those that it inherits from, in the order of look-up."""
    return tuple(_TYPE_MRO.__get__(kind))


def module_of(kind: type) -> str:
    """The name of the module that defines a class; empty where it says something else."""
    try:
        name = _TYPE_MODULE.__get__(kind)
    except AttributeError:
        return ""
    return name if type(name) is str else ""


def name_of(kind: type) -> str:
    """A class's qualified name."""
    return str(_TYPE_QUALNAME.__get__(kind))


def is_one(value: Any, *kinds: type) -> bool:
    """`isinstance` by the type alone: a proxy is not asked for the class it pretends to have."""
    return any(kind in kinds for kind in bases_of(type(value)))


def attributes_of(value: Any) -> dict[str, Any] | None:
    """The dict of an instance or a module, itself and not a copy; None where it has none, or hides it."""
    for kind in bases_of(type(value)):
        found: Any = namespace_of(kind).get("__dict__")
        if type(found) in (types.GetSetDescriptorType, types.MemberDescriptorType):
            attributes = found.__get__(value)
            return attributes if type(attributes) is dict else None
    return None


def attribute(value: Any, name: str, otherwise: Any = None) -> Any:
    """An attribute that stands in the instance's own dict."""
    attributes = attributes_of(value)
    return otherwise if attributes is None else attributes.get(name, otherwise)


def slots_of(value: Any) -> Iterator[tuple[str, Any]]:
    """The slots that a class of Python's declared, with what is in them."""
    for kind in bases_of(type(value)):
        for name, found in namespace_of(kind).items():
            if type(found) is types.MemberDescriptorType and name != "__dict__":
                try:
                    yield name, found.__get__(value)
                except AttributeError:  # not set
                    continue


def items_of(mapping: Any) -> list[tuple[Any, Any]]:
    """The entries of a dict, whatever its class makes of them."""
    return list(dict.items(mapping))


def length_of(container: Any) -> int | None:
    """How many entries a container of Python's has; None for anything else."""
    for kind in (dict, *_SEQUENCES):
        if is_one(container, kind):
            return int(kind.__len__(container))
    return None


def elements_of(container: Any) -> Iterator[Any]:
    """The entries of a list, tuple, deque or set, or the values of a dict; nothing of anything else."""
    if is_one(container, dict):
        yield from list(dict.values(container))
    for kind in _SEQUENCES:
        if is_one(container, kind):
            yield from list(kind.__iter__(container))
            return


def modules_within(module: Any) -> Iterator[dict[str, Any]]:
    """The attributes of a `torch.nn.Module` and of those that it is made of, each once."""
    pending, seen = [module], set()
    while pending:
        one = pending.pop()
        attributes = attributes_of(one)
        if attributes is not None and id(one) not in seen:
            seen.add(id(one))
            yield attributes
            pending += list(elements_of(attributes.get("_modules")))[::-1]


def has_parameters(module: Any) -> bool:
    """Whether a `torch.nn.Module` has weights anywhere. A scripted one keeps them out of sight, and is taken to have some."""
    for one in modules_within(module):
        weights = one.get("_parameters")
        if not is_one(weights, dict) or any(weight is not None for weight in elements_of(weights)):
            return True
    return False
