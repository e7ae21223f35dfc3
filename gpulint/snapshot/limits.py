"""How much of a pickle may be there at once: a file can be made to fill the memory of whoever reads it."""

from __future__ import annotations

from typing import Any, Final

from gpulint.snapshot.memo import Memo, NotPlainData

# Far more than a snapshot has, and together some hundreds of MiB.
_MOST_WAITING: Final = 1 << 20  # values that wait for their list or dictionary to be complete
_MOST_NUMBERED: Final = 1 << 28  # values that may be referred to again
_MOST_OPEN: Final = 1 << 20  # of these, lists and dictionaries that nothing stands for
_MOST_BYTES: Final = 1 << 29  # of texts, and of containers that nothing stands for
_MOST_TEXT: Final = 1 << 24  # bytes of one text
_MOST_ITEMS: Final = 4_000_000  # in one list of other things than events
_MOST_NESTED: Final = 100  # tuples in tuples
_MOST_KNOWN: Final = 1 << 16  # values that are known again where they are written again


class Limits:
    """What was taken so far. Every method raises NotPlainData where it is more than a snapshot takes."""

    def __init__(self) -> None:
        self._bytes = 0
        self._nested = 0

    def take(self, nbytes: int) -> None:
        """Count what may stay until the end of the file."""
        self._bytes += nbytes
        if self._bytes > _MOST_BYTES:
            raise NotPlainData("it has more in it, besides events, than a snapshot has")

    def take_text(self, nbytes: int) -> None:
        """Before it is read."""
        if nbytes > _MOST_TEXT:
            raise NotPlainData(f"it has a text of {nbytes} bytes")

    def take_tuple(self, items: tuple[Any, ...]) -> None:
        if tuple in map(type, items):
            self._nested += 1  # Python ends in a crash where it compares or hashes what is nested too deep
            if self._nested > _MOST_NESTED:
                raise NotPlainData("it has tuples in one another, which a snapshot has not")
        self.take(64 + 8 * len(items))

    def take_list(self, items: list[Any], added: int) -> None:
        if len(items) > _MOST_ITEMS:
            raise NotPlainData("it has a list of other things than a snapshot's")
        self.take(8 * added)

    def hold(self, waiting: int, memo: Memo) -> None:
        """Asked for each piece of the file: `waiting` values are there."""
        if waiting > _MOST_WAITING:
            raise NotPlainData("it nests more values in one another than a snapshot does")
        if len(memo.numbers) > _MOST_NUMBERED or memo.opened > _MOST_OPEN:
            raise NotPlainData("it has more values in it than a snapshot has")


def forget(known: dict[Any, Any]) -> None:
    """Begin anew with what is written again and again where it has become too much."""
    if len(known) >= _MOST_KNOWN:
        known.clear()
