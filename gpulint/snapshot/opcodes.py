"""Reads a pickle of plain data as a stream, as Python has written it since 3.8 (protocols 4 and 5): nothing is imported, nothing is
called, and nothing is kept that its reader does not keep.

Python's own unpickler would hold every dictionary of the file in its memo until the end, and each is a thousand times as
large as what is wanted of it. Here whoever reads gets each dictionary and list once it is complete, and says what stands for
it from then on.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, Final, Protocol

OPEN: Final = object()  # stands for containers that nothing stands for yet


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
        self.open: dict[int, Any] = {}  # lists and dictionaries that nothing stands for

    def append(self, value: Any) -> None:
        """Number a value as the next."""
        number = self._of_value.get(id(value))
        if number is not None:
            self.numbers.append(number)
        else:
            self.numbers.append(0)
            self.put(len(self.numbers) - 1, value)

    def put(self, slot: int, value: Any) -> None:
        """Let a value stand at a number that has been given out."""
        if isinstance(value, (List, Dict)):
            value.slot = slot
            self.open[slot] = value
            self.numbers[slot] = 0
            return
        self.open.pop(slot, None)
        number = self._of_value.get(id(value))
        if number is None:
            number = self._of_value[id(value)] = len(self.values)
            self.values.append(value)
        self.numbers[slot] = number

    def get(self, slot: int) -> Any:
        value = self.values[self.numbers[slot]]
        return self.open.get(slot) if value is OPEN else value

    def last(self, value: Any) -> int:
        """Where something stands that already is in place of a list: of one that goes on, which pickle writes by the thousand items; -1
        where it does not."""
        number, slots = self._of_value.get(id(value)), range(len(self.numbers) - 1, -1, -1)
        return next((slot for slot in slots if self.numbers[slot] == number), -1)


# Far more than a snapshot has, and together some hundreds of MiB.
_MOST_WAITING: Final = 1 << 20  # values that wait for their list or dictionary to be complete
_MOST_NUMBERED: Final = 1 << 28  # values that may be referred to again
_MOST_OPEN: Final = 1 << 20  # of these, lists and dictionaries that nothing stands for
_MOST_BYTES: Final = 1 << 29  # of texts, and of containers that nothing stands for
_MOST_TEXT: Final = 1 << 24  # bytes of one text
_MOST_NESTED: Final = 100  # tuples in tuples
_MOST_KNOWN: Final = 1 << 16  # values that are known again where they are written again

CHUNK: Final = 1 << 20
_LONGEST: Final = 64  # bytes of an opcode with its argument, strings and runs apart
_LONGEST_KNOWN: Final = 1 << 12  # bytes of a text that is known where it is written again


class Reading(Protocol):
    """What becomes of the containers of a pickle as they become complete."""

    def dictionary(self, items: list[Any]) -> Any:
        """What stands for a dictionary; `items` are keys and values in turn."""

    def extended(self, items: list[Any], added: list[Any]) -> Any:
        """What stands for a list, or None where it is the list of its items as before."""


_REFUSED: Final = {
    **dict.fromkeys(b"ci\x93", "it names a class or a function"),
    **dict.fromkeys(b"Rbo\x81\x92", "it would call something"),
    **dict.fromkeys(b"PQ", "it refers to data outside itself, as torch.save does"),
    **dict.fromkeys(b"\x82\x83\x84", "it uses pickle's registry of extensions"),
}
_GETS: Final = re.compile(rb"\((?:h.|j.{4})+e|(?:h.|j.{4})a", re.DOTALL)
_GET: Final = re.compile(rb"h(.)|j(.{4})", re.DOTALL)
_GET1, _GET4 = ord("h"), ord("j")
_MEMOIZE: Final = 0x94
_WIDTHS: Final = {0x8C: 1, 0x58: 4, 0x8D: 8}  # bytes of a text's length
_CONSTANTS: Final[dict[int, Any]] = {0x4E: None, 0x88: True, 0x89: False, 0x29: ()}
_U2, _U4, _I4, _F8 = (struct.Struct(form).unpack_from for form in ("<H", "<I", "<i", ">d"))


class Machine:
    """Runs the opcodes of one pickle. `load` gives what stands for the whole.

    Raises NotPlainData, also for a file that ends too early, and where it is more than a snapshot takes.
    """

    def __init__(self, source: BinaryIO, reading: Reading, tell: Callable[[int], None] | None = None) -> None:
        self._source = source
        self._reading = reading
        self._tell = tell
        self._data = b""
        self._before = 0  # bytes of the file before `_data`
        self._last = 0  # place in `_data` before which every opcode has its arguments there
        self._ends = False  # whether `_last` is the end of the file; what is behind it there is nothing
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo = Memo()
        self._runs: dict[bytes, Any] = {}  # what a list of references alone stood for
        self._texts: dict[bytes, str] = {}  # torch writes some anew for each event
        self._numbers: dict[tuple[int, ...], tuple[int, ...]] = {}  # of pools: each event has one of its own
        self._bytes_kept = self._nested = 0

    def load(self) -> Any:
        """What stands for the value in the file."""
        self._refill(0)
        if self._data[:1] != b"\x80":
            raise NotPlainData("it does not begin as a pickle of protocol 4 or later does")
        stack, marks, memo, push = self._stack, self._marks, self._memo, self._stack.append
        numbers, values = memo.numbers, memo.values
        data, last, at = self._data, self._last, 0
        try:
            while True:
                if at >= last:
                    self._refill(at)
                    data, last, at = self._data, self._last, 0
                    continue
                code = data[at]
                if code == _GET4:  # every other opcode of a snapshot is this one
                    value = values[numbers[_U4(data, at + 1)[0]]]
                    if value is not OPEN:
                        push(value)
                        at += 5
                        continue
                elif code == _GET1:
                    value = values[numbers[data[at + 1]]]
                    if value is not OPEN:
                        push(value)
                        at += 2
                        continue
                at += 1
                match code:  # the most frequent first
                    case 0x94:  # MEMOIZE
                        memo.append(stack[-1])
                    case 0x28:  # MARK
                        marks.append(len(stack))
                    case 0x4B:  # BININT1
                        push(data[at])
                        at += 1
                    case 0x8A:  # LONG1
                        end = at + 1 + data[at]
                        if end - at > _LONGEST:
                            raise NotPlainData("it has a number of more than 60 bytes")
                        push(int.from_bytes(data[at + 1 : end], "little", signed=True))
                        at = end
                    case 0x4A:  # BININT
                        push(_I4(data, at)[0])
                        at += 4
                    case 0x7D:  # EMPTY_DICT
                        push(Dict())
                    case 0x75:  # SETITEMS
                        self._fill(self._since_mark())
                    case 0x5D:  # EMPTY_LIST
                        at = self._list(data, at)
                    case 0x85 | 0x86 | 0x87:  # TUPLE1, TUPLE2, TUPLE3
                        self._tuple_of(code - 0x84)
                    case 0x65:  # APPENDS
                        self._extend(self._since_mark())
                    case 0x61:  # APPEND
                        self._extend([stack.pop()])
                    case 0x4D:  # BININT2
                        push(_U2(data, at)[0])
                        at += 2
                    case 0x8C | 0x58 | 0x8D:  # texts
                        width = _WIDTHS[code]
                        length = int.from_bytes(data[at : at + width], "little")
                        raw, at = self._bytes(at + width, length)
                        data, last = self._data, self._last
                        push(self._text(raw))
                    case 0x4E | 0x88 | 0x89 | 0x29:  # NONE, NEWTRUE, NEWFALSE, EMPTY_TUPLE
                        push(_CONSTANTS[code])
                    case 0x73:  # SETITEM
                        self._fill([stack.pop(-2), stack.pop()])
                    case 0x47:  # BINFLOAT
                        push(_F8(data, at)[0])
                        at += 8
                    case 0x74:  # TUPLE
                        push(self._tuple(self._since_mark()))
                    case 0x68:  # BINGET, of what is open
                        push(memo.get(data[at]))
                        at += 1
                    case 0x6A:  # LONG_BINGET
                        push(memo.get(_U4(data, at)[0]))
                        at += 4
                    case 0x95:  # FRAME
                        at += 8
                    case 0x80:  # PROTO
                        if data[at] not in (4, 5):
                            raise NotPlainData(
                                f"it is written in protocol {data[at]} of pickle, which is not known"
                            )
                        at += 1
                    case 0x2E:  # STOP
                        break
                    case _:
                        place = self._before + at - 1
                        unknown = f"opcode 0x{code:02x} at byte {place} does not belong in one"
                        raise NotPlainData(_REFUSED.get(code, unknown))
        except (IndexError, struct.error, UnicodeDecodeError) as error:
            raise NotPlainData(f"it is damaged at byte {self._before + at}") from error
        if at > self._last and self._ends:
            self._refill(at)
        if len(stack) != 1:
            raise NotPlainData("it is damaged: values are left over at its end")
        return stack[0]

    # -- bytes -------------------------------------------------------------------------------------------------

    def _refill(self, at: int) -> None:
        """Drop the bytes before `at` and read on."""
        if self._ends:
            raise NotPlainData(f"it ends in the middle, after {self._before + self._last} bytes")
        more = self._source.read(CHUNK)
        self._before += at
        self._data = self._data[at:] + more
        self._last, self._ends = len(self._data) - _LONGEST, not more
        if self._ends:  # the last opcodes have no others behind them
            self._last, self._data = len(self._data), self._data + bytes(_LONGEST)
        if self._tell is not None:
            self._tell(self._before)
        if max(len(self._stack), len(self._marks)) > _MOST_WAITING:
            raise NotPlainData("it nests more values in one another than a snapshot does")
        if len(self._memo.numbers) > _MOST_NUMBERED or len(self._memo.open) > _MOST_OPEN:
            raise NotPlainData("it has more values in it than a snapshot has")

    def _bytes(self, at: int, length: int) -> tuple[bytes, int]:
        """The next `length` bytes, and where to go on."""
        data, end = self._data, at + length
        if length > _MOST_TEXT:
            raise NotPlainData(f"it has a text of {length} bytes")
        if end <= len(data):
            return data[at:end], end
        head = data[at:]
        rest = self._source.read(length - len(head))
        self._before += len(data) + len(rest)
        if len(head) + len(rest) < length:
            raise NotPlainData(f"it ends in the middle, after {self._before} bytes")
        self._data, self._last = b"", 0
        return head + rest, 0

    def _take(self, nbytes: int) -> None:
        """Count what may stay until the end of the file."""
        self._bytes_kept += nbytes
        if self._bytes_kept > _MOST_BYTES:
            raise NotPlainData("it has more in it, besides events, than a snapshot has")

    def _text(self, raw: bytes) -> str:
        text = self._texts.get(raw)
        if text is None:
            self._take(64 + len(raw))
            text = raw.decode("utf-8", "surrogatepass")
            if len(raw) <= _LONGEST_KNOWN:
                if len(self._texts) >= _MOST_KNOWN:
                    self._texts.clear()
                self._texts[raw] = text
        return text

    # -- containers --------------------------------------------------------------------------------------------

    def _since_mark(self) -> list[Any]:
        mark = self._marks.pop()
        items = self._stack[mark:]
        del self._stack[mark:]
        return items

    def _tuple_of(self, number: int) -> None:
        """Put a tuple in the place of the last values; of numbers one that is known."""
        items = tuple(self._stack[-number:])
        if len(items) < number:
            raise IndexError(number)
        del self._stack[-number:]
        if all(type(one) is int for one in items):
            if len(self._numbers) >= _MOST_KNOWN:
                self._numbers.clear()
            self._stack.append(self._numbers.setdefault(items, items))
        else:
            self._stack.append(self._tuple(items))

    def _tuple(self, items: Sequence[Any]) -> tuple[Any, ...]:
        if tuple in map(type, items):
            self._nested += 1  # Python ends in a crash where it compares or hashes what is nested too deep
            if self._nested > _MOST_NESTED:
                raise NotPlainData("it has tuples in one another, which a snapshot has not")
        self._take(64 + 8 * len(items))
        return tuple(items)

    def _list(self, data: bytes, at: int) -> int:
        """A list, with the references that follow where it has nothing else; where to go on."""
        made = List()
        self._stack.append(made)
        run = _GETS.match(data, at + 1) if data[at] == _MEMOIZE else None
        if run is None:
            return at
        whole = run[0]
        known = self._runs.get(whole)
        if known is None:
            added = [self._memo.get(one) for one in _references(whole)]
            known = self._reading.extended(made, added)
            if known is None:
                return at
            self._runs[whole] = known
            self._take(len(whole))
        self._stack[-1] = known
        self._memo.append(known)
        return run.end()

    def _extend(self, added: list[Any]) -> None:
        target = self._stack[-1]
        stands = self._reading.extended(target, added)
        if stands is None:
            if not isinstance(target, List):
                raise NotPlainData("it appends to something that is no list")
            target.extend(added)
            self._take(40 * len(added))
        elif stands is not target:
            self._replace(target, stands)

    def _fill(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, Dict):
            raise NotPlainData("it sets items of something that is no dictionary")
        stands = self._reading.dictionary(items) if not target else None
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
            if type(value) is List and not value and (slot := getattr(value, "slot", -1)) >= 0:
                self._memo.put(slot, ())

    def _replace(self, target: Any, stands: Any) -> None:
        self._stack[-1] = stands
        slot = getattr(target, "slot", -1) if isinstance(target, (List, Dict)) else self._memo.last(target)
        if slot >= 0:
            self._memo.put(slot, stands)


def _references(run: bytes) -> list[int]:
    """The numbers in the memo that a run of GET opcodes names."""
    return [
        short[0] if short else int.from_bytes(long, "little")
        for short, long in _GET.findall(run, 1 if run[:1] == b"(" else 0)
    ]
