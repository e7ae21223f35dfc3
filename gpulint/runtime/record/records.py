"""Frozen dataclasses that cross the process boundary as JSON. Standard library only."""

from __future__ import annotations

import functools
import types
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T", bound="Record")


def _encode(value: Any) -> Any:
    if isinstance(value, Record):  # by its own way, which may say more
        return value.to_json()
    if isinstance(value, (tuple, list)):
        return [_encode(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _encode(item) for key, item in value.items()}
    return value


def _decode(hint: Any, value: Any) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return None if value is None else _decode(next(a for a in arguments if a is not type(None)), value)
    if origin is Literal:
        if value not in arguments:
            raise ValueError(f"{value!r} is none of {', '.join(map(repr, arguments))}")
        return value
    if origin is tuple:
        if not isinstance(value, list):
            raise TypeError(f"expected a list, got {type(value).__name__}")
        return tuple(_decode(arguments[0], item) for item in value)
    if origin is dict:
        return {key: _decode(arguments[1], item) for key, item in value.items()}
    if issubclass(hint, Record):
        return hint.from_json(value)
    if issubclass(hint, Enum):
        return hint(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint):
        raise TypeError(f"expected {hint.__name__}, got {type(value).__name__}")
    return value


@functools.cache
def _hints(record: Any) -> dict[str, Any]:
    return get_type_hints(record)


class Record:
    """Base of everything below: `to_json` gives plain dicts and lists, `from_json` is its inverse."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        return {name: _encode(value) for name, value in self.by_name().items()}

    def by_name(self) -> dict[str, Any]:
        """What its fields hold, other records as they are."""
        return {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_json(cls: type[T], data: dict[str, Any]) -> T:
        """Read what `to_json` wrote. Fields that are missing take their default, unknown ones are ignored.

        Raises TypeError or ValueError where the data has another form.
        """
        if not isinstance(data, dict):
            raise TypeError(f"expected an object for {cls.__name__}, got {type(data).__name__}")
        return cls(**{name: _decode(hint, data[name]) for name, hint in _hints(cls).items() if name in data})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Site(Record):
    """A place in the user's code. `file` is absolute; `line` 0 and `file` "" stand for "no Python frame"."""

    file: str
    line: int
    function: str
