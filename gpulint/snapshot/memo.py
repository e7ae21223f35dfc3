"""What a pickle may refer to again."""

from __future__ import annotations

from array import array
from typing import Any, Final

OPEN: Final = object()  # stands for containers that nothing stands for yet
_MOST_AHEAD: Final = 1 << 20  # numbers that may be left out


class NotPlainData(ValueError):
    """The bytes are no pickle of dictionaries, lists, numbers and strings; the text says why in one clause."""


class List(list[Any]):
    """A list that is being read; `slot` is its number in the memo, once it has one."""

    __slots__ = ("slot",)
    slot: int


class Dict(dict[Any, Any]):
    """A dictionary that is being read; `slot` as of a list."""

    __slots__ = ("slot",)
    slot: int


class Memo:
    """What a pickle may refer to again, by its number there: four bytes each, because it numbers each event and each stack. What
    stands for many of these is one value."""

    def __init__(self) -> None:
        self.numbers = array("I")
        self.values: list[Any] = [OPEN]
        self._of_value: dict[int, int] = {}  # by the id of a value, which stays as long as `values` holds it
        self._open: dict[int, Any] = {}

    @property
    def opened(self) -> int:
        """How many lists and dictionaries there are that nothing stands for."""
        return len(self._open)

    def append(self, value: Any) -> None:
        """Number a value as the next."""
        number = self._of_value.get(id(value))
        if number is not None:
            self.numbers.append(number)
        else:
            self.put(len(self.numbers), value)

    def put(self, slot: int, value: Any) -> None:
        if slot >= len(self.numbers):
            self._extend_to(slot)
        if isinstance(value, (List, Dict)):
            value.slot = slot
            self._open[slot] = value
            self.numbers[slot] = 0
            return
        self._open.pop(slot, None)
        number = self._of_value.get(id(value))
        if number is None:
            number = self._of_value[id(value)] = len(self.values)
            self.values.append(value)
        self.numbers[slot] = number

    def get(self, slot: int) -> Any:
        value = self.values[self.numbers[slot]]
        return self._open.get(slot) if value is OPEN else value

    def last(self, value: Any) -> int:
        """Where something stands that already is in place of a list: of one that goes on, which pickle writes by the thousand items; -1
        where it does not."""
        number = self._of_value.get(id(value))
        return next(
            (slot for slot in range(len(self.numbers) - 1, -1, -1) if self.numbers[slot] == number), -1
        )

    def _extend_to(self, slot: int) -> None:
        if slot > len(self.numbers) + _MOST_AHEAD:
            raise NotPlainData(f"it numbers its values up to {slot} and has not so many")
        self.numbers.extend([0] * (slot + 1 - len(self.numbers)))
