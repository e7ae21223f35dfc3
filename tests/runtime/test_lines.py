"""Counting lines: which statement answers for a line, and that the program stays as it was."""

import ast
import builtins
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpulint.runtime.observing.lines import LineCounter, Ticks
from gpulint.runtime.record.options import Lines
from gpulint.runtime.record.result import LineFigures

SOURCE = '''\
"""A module."""
from __future__ import annotations


def work(items):
    """A function."""
    total = 0
    for item in items:
        if item % 2:
            continue
        total += sum(
            [
                item,
            ]
        )
        try:
            int("x" if item == 4 else 1)
        except ValueError:
            total += 100
    while total > 50:
        total -= 60
    return total


class Thing:
    @property
    def value(self):
        return 5


result = work(range(6))
thing = Thing().value
'''


def counted(
    tmp_path: Path, lines: Lines | list[int], source: str = SOURCE, **names: Any
) -> tuple[list[LineFigures], dict]:
    """The figures of these lines, or places, of a module, and its variables; a `probe` among them counts."""
    path = tmp_path / "module.py"
    path.write_text(source, encoding="utf-8")
    places = (
        replace(lines, file=str(path))
        if isinstance(lines, Lines)
        else Lines(str(path), tuple((line, 0) for line in lines))
    )
    counter = LineCounter((places,), lambda value: len(value) if isinstance(value, bytes) else None)
    counter.probe = names.get("probe")
    counter.sampling = counter.probe is not None
    counter.start()
    namespace: dict = {"__name__": "module", **names}
    try:
        exec(counter.compile(source.encode(), str(path)), namespace)
    finally:
        counter.stop()
        for name in ("__gpulint_enter__", "__gpulint_leave__"):
            delattr(builtins, name)
    return counter.figures(), namespace


@pytest.mark.parametrize(
    ("line", "hits"),
    [
        (7, 1),  # a plain statement
        (8, 6),  # a loop's head: its iterations
        (9, 6),
        (10, 3),  # a jump
        (11, 3),  # the first line of a statement of several
        (13, 3),  # its middle
        (16, 3),  # try
        (17, 3),
        (18, 1),  # an except clause: how often it was entered
        (19, 1),
        (20, 1),  # while
        (22, 1),  # return
        (5, 1),  # def: its calls
        (6, 0),  # a docstring stays one
        (26, 1),  # a decorator: the calls of what it decorates
        (27, 1),
        (2, 0),  # a __future__ import must stay where it is
        (24, 0),  # nothing there
        (31, 1),
    ],
)
def test_hits_of_a_line(tmp_path, line, hits):
    (found,), namespace = counted(tmp_path, [line])
    assert (found.line, found.hits) == (line, hits)
    assert namespace["result"] == 46
    assert namespace["thing"] == 5
    assert namespace["work"].__doc__ == "A function."
    assert namespace["__doc__"] == "A module."


ONE_LINERS = """
kept, calls = [], []
for n in range(6):
    if n == 4: kept.append(n)
    n > 3 and kept.append(n)
    last = kept.pop() if n == 5 else None; é = "é" if n == 2 else calls.append(n)
keep = lambda value: kept.append(value)
keep(1); keep(2)
odd = [str(n) for n in range(6) if n % 2]
def stream():
    got = (yield 1) if kept else None
next(stream(), None)
"""


@pytest.mark.parametrize(
    ("text", "hits"),
    [
        ("if n == 4", 6),
        ("kept.append(n)\n    n > 3", 1),  # the body of an `if` on one line
        ("n > 3 and", 6),
        ("kept.append(n)\n    last", 2),  # what need not run with its statement
        ("kept.pop()", 1),
        ("calls.append(n)", 5),
        ("kept.append(value)", 2),  # a lambda's body, and not its making
        ("keep(2)", 1),
        ("str(n)", 3),
        ("yield 1", 1),
    ],
)
def test_hits_of_a_place_within_a_line(tmp_path, text, hits):
    at = ONE_LINERS.index(text)
    line, column = ONE_LINERS.count("\n", 0, at) + 1, at - ONE_LINERS.rfind("\n", 0, at)
    (found,), namespace = counted(tmp_path, Lines("", ((line, column),)), ONE_LINERS)
    assert (found.hits, found.column) == (hits, column)
    plain: dict = {}
    exec(compile(ONE_LINERS, "module.py", "exec"), plain)
    names = ("kept", "calls", "odd", "last")
    assert [namespace[name] for name in names] == [plain[name] for name in names]


def test_tracebacks_keep_their_line_numbers(tmp_path):
    source = "def fail():\n    value = [\n        1,\n    ]\n    raise KeyError(value)\nfail()\n"
    with pytest.raises(KeyError) as caught:
        counted(tmp_path, [2, 5, 6], source)
    assert [entry.lineno for entry in caught.traceback][-2:] == [5, 4] or caught.traceback[-1].lineno == 4


def test_a_file_without_lines_of_interest_is_compiled_as_it_is(tmp_path):
    counter = LineCounter((Lines("/elsewhere.py", ((1, 0),)),), lambda value: None)
    code = counter.compile(b"x = 1\n", str(tmp_path / "a.py"))
    assert code.co_names == ("x",)


def test_figures_of_a_line(tmp_path):
    class Probe:
        """Reports what the script sets."""

        now = 0

        def begin_peak(self, since: str) -> int:
            return self.now

        def allocated(self) -> int:
            return self.now

        def peak(self, since: str) -> int:
            return self.now + 50

    source = textwrap.dedent(
        """
        def step(size):
            scratch = b"12345"
            probe.now += size
        step(10)
        step(30)
        """
    )
    (figures,), _ = counted(tmp_path, [4], source, probe=Probe())
    assert (figures.hits, figures.growth, figures.peak, figures.tensors) == (2, 30, 80, {"scratch": 5})
    assert figures.seconds >= 0


def test_instrumented_trees_are_complete(tmp_path):
    """Every node has a position, or the compiler would refuse it: the source of this very file, all lines."""
    source = Path(__file__).read_bytes()
    places = tuple((line, 0) for line in range(1, source.count(b"\n") + 1))
    counter = LineCounter((Lines(__file__, places),), lambda value: None)
    assert counter.compile(source, __file__).co_filename == __file__
    assert ast.parse(source)


# -- how often lines ran at which loops begin ------------------------------------------------------------------


def rounds(number: int) -> int:
    total = 0
    for one in range(number):
        total += one
    return total


def others(number: int) -> int:
    total = 0
    while total < number:
        total += 1
    return total


def head(function: object) -> int:
    return function.__code__.co_firstlineno + 2  # type: ignore[attr-defined]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is of Python 3.12")
def test_a_loop_ticks_in_each_round_and_tells_nobody_afterwards() -> None:
    first, second = Ticks(), Ticks()
    first.follow(rounds.__code__, frozenset({head(rounds)}))
    rounds(3)
    counted = first.of(rounds.__code__, [head(rounds)])
    first.stop()
    second.follow(others.__code__, frozenset({head(others)}))
    rounds(3)  # nobody follows it any more
    others(2)
    assert first.of(rounds.__code__, [head(rounds)]) == counted
    assert counted[0] >= 3
    assert second.of(others.__code__, [head(others)])[0] >= 2
    second.stop()
