"""Python's own unpickler of plain data alone (protocols 4 and 5, as Python has written it since 3.8): nothing is imported, nothing is
called, and nothing is kept that its reader does not keep.

As it is it would hold every dictionary of the file in its memo until the end, and each is a thousand times as large as what is wanted
of it. Here whoever reads gets each dictionary and list once it is complete, and says what stands for it from then on.
"""

from __future__ import annotations

import io
import pickle
import re
import struct
from collections.abc import Callable, Sequence
from functools import partialmethod
from typing import Any, BinaryIO, Final


class NotPlainData(ValueError):
    """The bytes are no pickle of dictionaries, lists, numbers and strings; the text says why in one clause."""


class List(list[Any]):
    """A list that is being read; `slot` is its number in the memo, once it has one."""

    slot = -1


class Dict(dict[Any, Any]):
    """A dictionary that is being read; `slot` as of a list."""

    slot = -1


# Far more than a snapshot has, and together some hundreds of MiB.
_MOST_WAITING: Final = 1 << 20  # values that wait for their list or dictionary to be complete
_MOST_NUMBERED: Final = 1 << 27  # values that may be referred to again
_MOST_OPEN: Final = 1 << 20  # of these, lists and dictionaries that nothing stands for
_MOST_BYTES: Final = 1 << 29  # of texts, and of containers that nothing stands for
_MOST_TEXT: Final = 1 << 24  # bytes of one text
_MOST_NESTED: Final = 100  # tuples in tuples
_MOST_KNOWN: Final = 1 << 16  # values that are known again where they are written again

CHUNK: Final = 1 << 14  # bytes that are read at once, and looked ahead
_LONGEST_KNOWN: Final = 1 << 12  # bytes of a text that is known where it is written again


_REFUSED: Final = {
    **dict.fromkeys(b"ci\x93", "it names a class or a function"),
    **dict.fromkeys(b"Rbo\x81\x92", "it would call something"),
    **dict.fromkeys(b"PQ", "it refers to data outside itself, as torch.save does"),
    **dict.fromkeys(b"\x82\x83\x84", "it uses pickle's registry of extensions"),
}
_GETS: Final = re.compile(rb"\x94(\((?:h.|j.{4})+e|(?:h.|j.{4})a)", re.DOTALL)
_GET: Final = re.compile(rb"h(.)|j(.{4})", re.DOTALL)


class _Input(io.RawIOBase):
    """The file, with somebody who looks after each piece of it."""

    def __init__(self, source: BinaryIO, look: Callable[[int], None]) -> None:
        self._source, self._look, self.given = source, look, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._look(self.given)
        data = self._source.read(len(buffer))
        buffer[: len(data)] = data
        self.given += len(data)
        return len(data)


_python: Any = pickle  # of which the unpickler that is written in Python is no official part


class PlainUnpickler(_python._Unpickler):  # type: ignore[misc]
    """Reads one pickle. `load` gives what stands for the whole; it raises NotPlainData, also for a file that ends too early, and where
    it is more than a snapshot takes. What becomes of containers as they become complete say `dictionary` and `extended`.
    """

    def __init__(self, source: BinaryIO, tell: Callable[[int], None] | None = None) -> None:
        self._input = _Input(source, self._look)
        self._ahead = io.BufferedReader(self._input, CHUNK)
        super().__init__(self._ahead)
        self._tell = tell
        self.memo: Any = []
        self.stack: list[Any] = []
        self.metastack: list[list[Any]] = []
        self.append = self.stack.append
        self.read = self._ahead.read
        self._runs: dict[bytes, Any] = {}  # what a list of references alone stood for
        self._known: dict[Any, Any] = {}  # texts and numbers of pools, which torch writes anew for each event
        self._bytes_kept = self._nested = self._open = 0

    def dictionary(self, items: list[Any]) -> Any:
        """What stands for a dictionary; `items` are keys and values in turn. None where it is to be what it is."""
        return None

    def extended(self, items: list[Any], added: list[Any]) -> Any:
        """What stands for a list, or None where it is the list of its items as before."""
        return None

    def load(self) -> Any:
        """What stands for the value in the file."""
        if self._ahead.peek(1)[:1] != pickle.PROTO:
            raise NotPlainData("it does not begin as a pickle of protocol 4 or later does")
        read, dispatch = self.read, self.dispatch
        try:
            while True:
                code = read(1)[0]
                if code not in dispatch:
                    unknown = f"opcode 0x{code:02x} at byte {self._place - 1} does not belong in one"
                    raise NotPlainData(_REFUSED.get(code, unknown))
                dispatch[code](self)
        except _python._Stop as stop:
            if self.stack or self.metastack:
                raise NotPlainData("it is damaged: values are left over at its end") from None
            return stop.value
        except (IndexError, struct.error, UnicodeDecodeError) as error:
            if not self._ahead.peek(1):
                raise NotPlainData(f"it ends in the middle, after {self._input.given} bytes") from error
            raise NotPlainData(f"it is damaged at byte {self._place}") from error

    @property
    def _place(self) -> int:
        return self._input.given - len(self._ahead.peek(1))

    def _look(self, read: int) -> None:
        """Look whether it is still something that a snapshot may be."""
        if self._tell is not None:
            self._tell(read)
        if len(self.metastack) + sum(map(len, (self.stack, *self.metastack))) > _MOST_WAITING:
            raise NotPlainData("it nests more values in one another than a snapshot does")
        if len(self.memo) > _MOST_NUMBERED or self._open > _MOST_OPEN:
            raise NotPlainData("it has more values in it than a snapshot has")

    def _take(self, nbytes: int) -> None:
        """Count what may stay until the end of the file."""
        self._bytes_kept += nbytes
        if self._bytes_kept > _MOST_BYTES:
            raise NotPlainData("it has more in it, besides events, than a snapshot has")

    # -- opcodes -----------------------------------------------------------------------------------------------

    def load_proto(self) -> None:
        version = self.read(1)[0]
        if version not in (4, 5):
            raise NotPlainData(f"it is written in protocol {version} of pickle, which is not known")

    def load_frame(self) -> None:
        self.read(8)

    def load_memoize(self) -> None:
        value = self.stack[-1]
        if isinstance(value, (List, Dict)):
            value.slot = len(self.memo)
            self._open += 1
        self.memo.append(value)

    def _text(self, width: int) -> None:
        length = int.from_bytes(self.read(width), "little")
        if length > _MOST_TEXT:
            raise NotPlainData(f"it has a text of {length} bytes")
        raw = self.read(length)
        if len(raw) < length:
            raise IndexError(length)
        text = self._known.get(raw)
        if text is None:
            self._take(64 + len(raw))
            text = raw.decode("utf-8", "surrogatepass")
            if len(raw) <= _LONGEST_KNOWN:
                self._know(raw, text)
        self.append(text)

    def _know(self, written: Any, value: Any) -> Any:
        """What stands for something that is written anew again and again."""
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        return self._known.setdefault(written, value)

    load_short_binunicode = partialmethod(_text, 1)
    load_binunicode = partialmethod(_text, 4)
    load_binunicode8 = partialmethod(_text, 8)

    def _few(self, number: int) -> None:
        """Put a tuple in the place of the last values; of numbers one that is known."""
        items = tuple(self.stack[-number:])
        if len(items) < number:
            raise IndexError(number)
        del self.stack[-number:]
        numbers = all(type(one) is int for one in items)
        self.append(self._know(items, items) if numbers else self._tuple(items))

    load_tuple1 = partialmethod(_few, 1)
    load_tuple2 = partialmethod(_few, 2)
    load_tuple3 = partialmethod(_few, 3)

    def load_tuple(self) -> None:
        items = self.pop_mark()
        self.append(self._tuple(items))

    def _tuple(self, items: Sequence[Any]) -> tuple[Any, ...]:
        if tuple in map(type, items):
            self._nested += 1  # Python ends in a crash where it compares or hashes what is nested too deep
            if self._nested > _MOST_NESTED:
                raise NotPlainData("it has tuples in one another, which a snapshot has not")
        self._take(64 + 8 * len(items))
        return tuple(items)

    def load_empty_dictionary(self) -> None:
        self.append(Dict())

    def load_empty_list(self) -> None:
        """A list, with the references that follow where it has nothing else."""
        made = List()
        self.append(made)
        run = _GETS.match(self._ahead.peek(1))
        if run is None:
            return
        whole = run[1]
        known = self._runs.get(whole)
        if known is None:
            added = [self.memo[one] for one in _references(whole)]
            known = self.extended(made, added)
            if known is None:
                return
            self._runs[whole] = known
            self._take(len(whole))
        self.read(run.end())
        self.stack[-1] = known
        self.memo.append(known)

    def load_append(self) -> None:
        self._extend([self.stack.pop()])

    def load_appends(self) -> None:
        self._extend(self.pop_mark())

    def _extend(self, added: list[Any]) -> None:
        target = self.stack[-1]
        stands = self.extended(target, added)
        if stands is None:
            if not isinstance(target, List):
                raise NotPlainData("it appends to something that is no list")
            target.extend(added)
            self._take(40 * len(added))
        elif stands is not target:
            self._replace(target, stands)

    def load_setitem(self) -> None:
        self._fill([self.stack.pop(-2), self.stack.pop()])

    def load_setitems(self) -> None:
        self._fill(self.pop_mark())

    def _fill(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, Dict):
            raise NotPlainData("it sets items of something that is no dictionary")
        stands = self.dictionary(items) if not target else None
        if stands is None:
            self._take(64 * len(items))
            try:
                target.update(zip(items[::2], items[1::2], strict=True))
            except (TypeError, ValueError) as error:
                raise NotPlainData(f"it has a dictionary that cannot be one: {error}") from error
        else:
            self._replace(target, stands)
            if List in map(type, items):
                self._close(items)

    def _close(self, items: list[Any]) -> None:
        """Lists that are still empty when what they stand in is complete stay so: let one stand for all, of which there are millions."""
        for value in items:
            if type(value) is List and not value and value.slot >= 0:
                self._number(value.slot, ())

    def _replace(self, target: Any, stands: Any) -> None:
        """Let something stand where `target` does. What stands for a list already is that of one that goes on, which pickle writes by the
        thousand items: it is the last of its like in the memo."""
        self.stack[-1] = stands
        if isinstance(target, (List, Dict)):
            self._number(target.slot, stands)
        else:
            slots = range(len(self.memo) - 1, -1, -1)
            self._number(next((slot for slot in slots if self.memo[slot] is target), -1), stands)

    def _number(self, slot: int, value: Any) -> None:
        if slot >= 0:
            self._open -= isinstance(self.memo[slot], (List, Dict))
            self.memo[slot] = value


def _references(run: bytes) -> list[int]:
    """The numbers in the memo that a run of GET opcodes names."""
    return [
        short[0] if short else int.from_bytes(long, "little")
        for short, long in _GET.findall(run, 1 if run[:1] == b"(" else 0)
    ]


# Whatever is none of these is refused.
PlainUnpickler.dispatch = {
    code: getattr(PlainUnpickler, load.__name__)
    for code, load in _python._Unpickler.dispatch.items()
    if code in b"N\x88\x89JKM\x8aG)t\x85\x86\x87}su]ae(hj\x94\x8cX\x8d\x80\x95."
}
