"""The reader of pickles: the same values as Python's for plain data, and nothing else is read, let alone run."""

import collections
import contextlib
import io
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from gpulint.snapshot import opcodes
from gpulint.snapshot.opcodes import NotPlainData, PlainUnpickler


def load(data: bytes) -> Any:
    return PlainUnpickler(io.BytesIO(data)).load()


PLAIN = some.recursive(
    some.none()
    | some.booleans()
    | some.integers(-(1 << 62), 1 << 64)
    | some.floats(allow_nan=False)
    | some.text(),
    lambda inner: some.lists(inner)
    | some.dictionaries(some.text(), inner)
    | some.tuples(inner, inner)
    | some.tuples(inner, inner, inner, inner),
)


@pytest.mark.parametrize("protocol", [4, 5])
@given(value=PLAIN, chunk=some.sampled_from([80, 131, 1 << 20]))
@settings(max_examples=30, deadline=None)
def test_plain_data_reads_as_python_reads_it(protocol: int, value: Any, chunk: int) -> None:
    before, opcodes.CHUNK = opcodes.CHUNK, chunk  # type: ignore[misc]
    try:
        assert load(pickle.dumps(value, protocol)) == value
    finally:
        opcodes.CHUNK = before  # type: ignore[misc]


@pytest.mark.parametrize("protocol", [4, 5])
def test_values_that_are_shared_stay_shared(protocol: int) -> None:
    frame = {"line": 1}
    stack = [frame, frame]
    read = load(
        pickle.dumps({"one": stack, "other": stack, "long": [stack] * 3000, "text": "é" * 5000}, protocol)
    )
    assert read["one"] is read["other"] is read["long"][2999]
    assert read["one"][0] is read["one"][1]
    assert read["text"] == "é" * 5000


class _Runs:
    ran = False

    def __reduce__(self) -> Any:
        return (setattr, (_Runs, "ran", True))


@pytest.mark.parametrize("protocol", [4, 5])
@pytest.mark.parametrize(
    ("value", "why"),
    [
        (_Runs(), "a class or a function"),
        ({"segments": [_Runs()]}, "a class or a function"),
        (collections.OrderedDict(), "a class or a function"),
        (len, "a class or a function"),
    ],
)
def test_what_would_run_is_refused(value: Any, why: str, protocol: int) -> None:
    with pytest.raises(NotPlainData, match=why):
        load(pickle.dumps(value, protocol))
    assert not _Runs.ran


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x80\x04cos\nsystem\n(S'true'\ntR.", "a class or a function"),
        (b"\x80\x04(Vfoo\nios\nsystem\n.", "does not belong"),
        (b"\x80\x04K\x01Q.", "outside itself"),
        (b"\x80\x04\x82\x01.", "extensions"),
        (b"\x80\x06N.", "protocol 6"),
        (b"\x80\x02N.", "protocol 2"),
        (b"(dp0\n.", "protocol 4"),
        (b"hello", "protocol 4"),
        (b"\x80\x04.", "ends in the middle"),
        (b"\x80\x04NN.", "left over"),
        (b"\x80\x04e.", "damaged"),
        (b"\x80\x04h\x05.", "damaged"),
        (b"\x80\x04}](\x8c\x01aue.", "damaged|dictionary"),
        (b"\x80\x04K\x01K\x02a.", "no list"),
        (b"\x80\x04]\x94(K\x01u.", "no dictionary"),
    ],
)
def test_what_is_no_plain_pickle_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(NotPlainData, match=why):
        load(data)


_TEXT = b"X\x00\x00\x10\x00" + bytes(1 << 20)  # 1 MiB


@pytest.mark.parametrize(
    ("start", "again", "most"),
    [
        (b"", b"N" * 1000, 200),
        (b"", b"(" * 1000, 200),
        (b"", b"(" + b"N" * 999, 200),
        (b"", b"]" * 1000, 200),
        (b"]", b"(" + b"]\x94" * 500 + b"e", 200),  # lists that are numbered
        (b")", b"\x85" * 1000, 1),  # tuples in one another: Python crashes where it hashes them
        (b"]", b"(" + b"(NNt" * 250 + b"e", 1250),
        (b"(", _TEXT, 64),
        (b"", b"X\xff\xff\xff\x7f", 1),
    ],
    ids=["values", "marks", "both", "lists", "numbered", "nested", "tuples", "texts", "text"],
)
def test_what_would_fill_the_memory_is_refused(
    monkeypatch: pytest.MonkeyPatch, start: bytes, again: bytes, most: int
) -> None:
    """Without taking much of it. A sixteenth of what may be taken does here."""
    for name, limit in (("_MOST_BYTES", 1 << 29), ("_MOST_WAITING", 1 << 20), ("_MOST_OPEN", 1 << 20)):
        assert getattr(opcodes, name) == limit
        monkeypatch.setattr(opcodes, name, limit >> 4)
    file = _Endless(b"\x80\x04" + start, again)
    with pytest.raises(NotPlainData, match=r"snapshot|text of"):
        PlainUnpickler(file).load()
    assert file.given < most * len(again) + 4 * opcodes.CHUNK


class _Endless(io.RawIOBase):
    """A file that goes on and on."""

    def __init__(self, start: bytes, again: bytes) -> None:
        self._start, self._again = start, again
        self.given = 0

    def read(self, size: int = -1) -> bytes:
        data = self._start
        while len(data) < size:
            data += self._again * (1 + (size - len(data)) // len(self._again))
        self._start = data[size:]
        self.given += size
        return data[:size]


def test_texts_and_numbers_that_are_written_anew_are_not_kept() -> None:
    def many() -> Any:
        return [(number, number) for number in range(200_000)]

    machine = PlainUnpickler(io.BytesIO(pickle.dumps(many(), 4)))
    assert machine.load() == many()
    assert len(machine._known) <= 1 << 16


@given(data=some.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_noise_is_refused_or_read_and_never_anything_else(data: bytes) -> None:
    with contextlib.suppress(NotPlainData):
        load(b"\x80\x04" + data)
