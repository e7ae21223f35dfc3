"""Reads a pickle of plain data as a stream: nothing is imported, nothing is called, and nothing is kept that its reader does
not keep.

Python's own unpickler would hold every dictionary of the file in its memo until the end, and each is a thousand times as
large as what is wanted of it. Here whoever reads gets each dictionary and list once it is complete, and says what stands for
it from then on.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO, Final, Protocol

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
        self.open: dict[int, Any] = {}  # lists and dictionaries that nothing stands for

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

    def _extend_to(self, slot: int) -> None:
        if slot > len(self.numbers) + _MOST_AHEAD:
            raise NotPlainData(f"it numbers its values up to {slot} and has not so many")
        self.numbers.extend([0] * (slot + 1 - len(self.numbers)))


# Far more than a snapshot has, and together some hundreds of MiB.
_MOST_WAITING: Final = 1 << 20  # values that wait for their list or dictionary to be complete
_MOST_NUMBERED: Final = 1 << 28  # values that may be referred to again
_MOST_OPEN: Final = 1 << 20  # of these, lists and dictionaries that nothing stands for
_MOST_BYTES: Final = 1 << 29  # of texts, and of containers that nothing stands for
_MOST_TEXT: Final = 1 << 24  # bytes of one text
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

    def take_tuple(self, items: tuple[Any, ...]) -> None:
        if tuple in map(type, items):
            self._nested += 1  # Python ends in a crash where it compares or hashes what is nested too deep
            if self._nested > _MOST_NESTED:
                raise NotPlainData("it has tuples in one another, which a snapshot has not")
        self.take(64 + 8 * len(items))

    def hold(self, waiting: int, memo: Memo) -> None:
        """Asked for each piece of the file: `waiting` values are there."""
        if waiting > _MOST_WAITING:
            raise NotPlainData("it nests more values in one another than a snapshot does")
        if len(memo.numbers) > _MOST_NUMBERED or len(memo.open) > _MOST_OPEN:
            raise NotPlainData("it has more values in it than a snapshot has")


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
_PUTS: Final = {0x94: 1, 0x71: 2, 0x72: 5}  # bytes of the opcodes that number a value
_U1, _U2, _U4, _I4, _F8 = (struct.Struct(form) for form in ("<B", "<H", "<I", "<i", ">d"))


class Machine:
    """Runs the opcodes of one pickle. `load` gives what stands for the whole.

    Raises NotPlainData, also for a file that ends too early.
    """

    def __init__(self, source: BinaryIO, reading: Reading, tell: Callable[[int], None] | None = None) -> None:
        self._source = source
        self._reading = reading
        self._tell = tell
        self._data = b""
        self._before = 0  # bytes of the file before `_data`
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo = Memo()
        self._runs: dict[bytes, Any] = {}  # what a list of references alone stood for
        self._texts: dict[bytes, str] = {}  # torch writes some anew for each event
        self._limits = Limits()
        self._numbers: dict[tuple[int, ...], tuple[int, ...]] = {}  # of pools: each event has one of its own
        self._stopped = False
        self._handlers = self._table()

    def load(self) -> Any:
        """What stands for the value in the file."""
        self._refill(0)
        if self._data[:1] != b"\x80":
            raise NotPlainData("it does not begin as a pickle of protocol 2 or later does")
        at = 0
        handlers, push = self._handlers, self._stack.append
        memo, values, wide = self._memo.numbers, self._memo.values, _U4.unpack_from
        while not self._stopped:
            data = self._data
            last = len(data) - _LONGEST
            try:
                while at < last:
                    code = data[at]
                    if code == _GET4:  # every other opcode of a snapshot is this one
                        value = values[memo[wide(data, at + 1)[0]]]
                        if value is not OPEN:
                            push(value)
                            at += 5
                            continue
                    elif code == _GET1:
                        value = values[memo[data[at + 1]]]
                        if value is not OPEN:
                            push(value)
                            at += 2
                            continue
                    at = handlers[code](data, at + 1)
                    if data is not self._data:  # a long string has moved on in the file
                        break
                else:
                    at = self._refill_or_finish(at)
            except (IndexError, struct.error, UnicodeDecodeError) as error:
                raise NotPlainData(f"it is damaged at byte {self._before + at}") from error
        if len(self._stack) != 1:
            raise NotPlainData("it is damaged: values are left over at its end")
        return self._stack[0]

    # -- bytes -------------------------------------------------------------------------------------------------

    def _refill(self, at: int) -> bool:
        """Drop the bytes before `at` and read on; whether there was anything."""
        more = self._source.read(CHUNK)
        self._before += at
        self._data = self._data[at:] + more
        if self._tell is not None:
            self._tell(self._before)
        self._limits.hold(max(len(self._stack), len(self._marks)), self._memo)
        return bool(more)

    def _refill_or_finish(self, at: int) -> int:
        if self._refill(at):
            return 0
        data, at = self._data, 0
        padded = data + bytes(_LONGEST)  # the last opcodes have no others behind them
        while not self._stopped and at < len(data):
            at = self._handlers[padded[at]](padded, at + 1)
        if not self._stopped or at > len(data):
            raise NotPlainData(f"it ends in the middle, after {self._before + len(data)} bytes")
        return at

    def _bytes(self, data: bytes, at: int, length: int) -> tuple[bytes, int]:
        """The next `length` bytes, and where to go on."""
        end = at + length
        if length > _MOST_TEXT:
            raise NotPlainData(f"it has a text of {length} bytes")
        if end <= len(data):
            return data[at:end], end
        head = data[at:]
        rest = self._source.read(length - len(head))
        if len(head) + len(rest) < length:
            raise NotPlainData(f"it ends in the middle, after {self._before + len(data) + len(rest)} bytes")
        self._before += len(data) + len(rest)
        self._data = self._source.read(CHUNK)
        return head + rest, 0

    # -- opcodes -----------------------------------------------------------------------------------------------

    def _table(self) -> list[Callable[[bytes, int], int]]:
        push = self._stack.append
        table: list[Callable[[bytes, int], int]] = [self._unknown] * 256
        known: dict[bytes, Callable[[bytes, int], int]] = {
            b"\x80": self._protocol,
            b"\x95": lambda _, at: at + 8,
            b".": self._stop,
            b"(": self._mark,
            b"0": self._simply(self._stack.pop),
            b"1": self._simply(self._since_mark),
            b"2": self._simply(lambda: push(self._stack[-1])),
            b"K": self._number(_U1, push),
            b"M": self._number(_U2, push),
            b"J": self._number(_I4, push),
            b"\x8a": self._long,
            b"G": self._number(_F8, push),
            **{
                code: self._sized(width, self._text)
                for width, code in ((1, b"\x8c"), (4, b"X"), (8, b"\x8d"))
            },
            **{
                code: self._sized(width, self._binary) for width, code in ((1, b"C"), (4, b"B"), (8, b"\x8e"))
            },
            b"t": self._simply(lambda: self._push_tuple(tuple(self._since_mark()))),
            b"\x85": self._tuple_of(1),
            b"\x86": self._tuple_of(2),
            b"\x87": self._tuple_of(3),
            b"]": self._empty_list,
            b"a": self._simply(lambda: self._extend([self._stack.pop()])),
            b"e": self._simply(lambda: self._extend(self._since_mark())),
            b"}": self._simply(lambda: push(Dict())),
            b"s": self._simply(lambda: self._fill([self._stack.pop(-2), self._stack.pop()])),
            b"u": self._simply(lambda: self._fill(self._since_mark())),
            b"\x94": self._memoize,
            b"q": self._number(_U1, self._put),
            b"r": self._number(_U4, self._put),
            b"h": self._number(_U1, self._get),
            b"j": self._number(_U4, self._get),
            b"N": self._simply(partial(push, None)),
            b"\x88": self._simply(partial(push, True)),
            b"\x89": self._simply(partial(push, False)),
            b")": self._simply(partial(push, ())),
        }
        for code, handler in known.items():
            table[code[0]] = handler
        return table

    def _unknown(self, data: bytes, at: int) -> int:
        code, place = data[at - 1], self._before + at - 1
        raise NotPlainData(_REFUSED.get(code, f"opcode 0x{code:02x} at byte {place} does not belong in one"))

    def _protocol(self, data: bytes, at: int) -> int:
        if not 2 <= data[at] <= 5:
            raise NotPlainData(f"it is written in protocol {data[at]} of pickle, which is not known")
        return at + 1

    def _stop(self, data: bytes, at: int) -> int:
        self._stopped = True
        self._data = data[at:]
        return at

    def _mark(self, data: bytes, at: int) -> int:
        self._marks.append(len(self._stack))
        return at

    def _long(self, data: bytes, at: int) -> int:
        end = at + 1 + data[at]
        if end - at > _LONGEST:
            raise NotPlainData("it has a number of more than 60 bytes")
        self._stack.append(int.from_bytes(data[at + 1 : end], "little", signed=True))
        return end

    def _number(self, form: struct.Struct, use: Callable[[Any], None]) -> Callable[[bytes, int], int]:
        size, unpack = form.size, form.unpack_from

        def read(data: bytes, at: int) -> int:
            use(unpack(data, at)[0])
            return at + size

        return read

    def _simply(self, action: Callable[[], Any]) -> Callable[[bytes, int], int]:
        """What an opcode without an argument does."""

        def run(data: bytes, at: int) -> int:
            action()
            return at

        return run

    def _sized(self, width: int, use: Callable[[bytes], None]) -> Callable[[bytes, int], int]:
        """What an opcode does with the bytes that follow their length, a number of `width` bytes."""

        def read(data: bytes, at: int) -> int:
            length = int.from_bytes(data[at : at + width], "little")
            raw, at = self._bytes(data, at + width, length)
            use(raw)
            return at

        return read

    def _text(self, raw: bytes) -> None:
        text = self._texts.get(raw)
        if text is None:
            text = raw.decode("utf-8", "surrogatepass")
            self._limits.take(64 + len(raw))
            if len(raw) <= _LONGEST_KNOWN:
                if len(self._texts) >= _MOST_KNOWN:
                    self._texts.clear()
                self._texts[raw] = text
        self._stack.append(text)

    def _binary(self, raw: bytes) -> None:
        self._limits.take(64 + len(raw))
        self._stack.append(raw)

    # -- containers --------------------------------------------------------------------------------------------

    def _since_mark(self) -> list[Any]:
        mark = self._marks.pop()
        items = self._stack[mark:]
        del self._stack[mark:]
        return items

    def _tuple_of(self, number: int) -> Callable[[bytes, int], int]:
        def push(data: bytes, at: int) -> int:
            items = tuple(self._stack[-number:])
            if len(items) < number:
                raise IndexError(at)
            del self._stack[-number:]
            if all(type(one) is int for one in items):
                if len(self._numbers) >= _MOST_KNOWN:
                    self._numbers.clear()
                self._stack.append(self._numbers.setdefault(items, items))
            else:
                self._push_tuple(items)
            return at

        return push

    def _push_tuple(self, items: tuple[Any, ...]) -> None:
        self._limits.take_tuple(items)
        self._stack.append(items)

    def _empty_list(self, data: bytes, at: int) -> int:
        made = List()
        self._stack.append(made)
        width = _PUTS.get(data[at])
        run = _GETS.match(data, at + width) if width is not None else None
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
            self._limits.take(len(whole))
        self._stack[-1] = known
        self._handlers[data[at]](data, at + 1)  # into the memo
        return run.end()

    def _extend(self, added: list[Any]) -> None:
        target = self._stack[-1]
        stands = self._reading.extended(target, added)
        if stands is None:
            if not isinstance(target, List):
                raise NotPlainData("it appends to something that is no list")
            target.extend(added)
            self._limits.take(40 * len(added))
        elif stands is not target:
            self._replace(target, stands)

    def _fill(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, Dict):
            raise NotPlainData("it sets items of something that is no dictionary")
        stands = self._reading.dictionary(items) if not target else None
        if stands is None:
            self._limits.take(64 * len(items))
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

    # -- the memo ----------------------------------------------------------------------------------------------

    def _memoize(self, data: bytes, at: int) -> int:
        self._memo.append(self._stack[-1])
        return at

    def _put(self, slot: int) -> None:
        if slot < len(self._memo.numbers):
            self._runs.clear()
        self._memo.put(slot, self._stack[-1])

    def _get(self, slot: int) -> None:
        self._stack.append(self._memo.get(slot))


def _references(run: bytes) -> list[int]:
    """The numbers in the memo that a run of GET opcodes names."""
    return [
        short[0] if short else int.from_bytes(long, "little")
        for short, long in _GET.findall(run, 1 if run[:1] == b"(" else 0)
    ]
