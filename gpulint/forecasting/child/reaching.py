"""Which of the phases that the program's text shows have run, and which are still to come from where it stands."""

from __future__ import annotations

import ast
import operator
import os
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from gpulint.forecasting.phases import Outline, Phase, Scope, Way
from gpulint.runtime.observing.lines import LineCounter
from gpulint.runtime.probes.plain import attributes_of
from gpulint.runtime.record.result import join_lines


class Reaching:
    """Counts the lines that begin phases, in files compiled after `start`."""

    def __init__(self, outline: Outline) -> None:
        self._phases = outline.phases
        self._hosted = {number for number, one in enumerate(outline.phases) if one.hosted}
        self._scopes: dict[str, list[Scope]] = {}
        for scope in outline.scopes:
            self._scopes.setdefault(os.path.realpath(scope.file), []).append(scope)
        self._real: dict[str, str] = {}
        self._cut: set[int] = set()
        places = [(one.file, one.line) for one in outline.phases]
        self.counter = LineCounter(join_lines(places), lambda _: None, measuring=False)

    def start(self) -> None:
        self.counter.start()

    def left(self) -> list[Phase]:
        """What has not run and may yet: from where the program's main thread stands, and in loops that were cut short."""
        ident = threading.main_thread().ident
        frame = sys._current_frames().get(ident) if ident is not None else None
        numbers = sorted(one for one in self._cut | self.ahead(frame) if not self._ran(one))
        return [self._phases[one] for one in numbers]

    def ahead(self, frame: FrameType | None) -> set[int]:
        """The phases that have not run and that lie after the lines on the stack, or in a loop around them."""
        found: set[int] = set()
        standing = False
        for own, scope in self._own(frame):
            standing = True
            loops = [loop for loop in scope.loops if loop[0] <= own.f_lineno <= loop[1]]
            for way in scope.ways:
                again = any(first <= way.line <= last for first, last in loops)
                if again or way.line > own.f_lineno:
                    found |= self._open(way, own)
        if standing:
            found |= self._hosted
        return {one for one in found if not self._ran(one)}

    def inside(self, frame: FrameType | None) -> set[int]:
        """Those in the body of the innermost loop in which the program stands."""
        for own, scope in self._own(frame):
            loops = [loop for loop in scope.loops if loop[0] <= own.f_lineno <= loop[1]]
            if not loops:
                return set()
            first, last = max(loops)
            ways = (way for way in scope.ways if first <= way.line <= last)
            return {one for way in ways for one in self._open(way, own) if not self._ran(one)}
        return set()

    def cut_short(self, frame: FrameType | None) -> None:
        """A loop ends early."""
        self._cut |= self.inside(frame)

    def _own(self, frame: FrameType | None) -> Iterator[tuple[FrameType, Scope]]:
        """The frames of the program's own files, the innermost first, each with its scope."""
        while frame is not None:
            name = frame.f_code.co_filename
            if name not in self._real:
                self._real[name] = os.path.realpath(name)
            scopes = self._scopes.get(self._real[name], ())
            around = [one for one in scopes if one.first <= frame.f_lineno <= one.last]
            if around:
                scope = max(around, key=lambda one: one.first)
                is_module = frame.f_code.co_name == "<module>"
                if is_module == (scope.first == 0):
                    yield frame, scope
            frame = frame.f_back

    def _open(self, way: Way, frame: FrameType) -> set[int]:
        """The phases of a way, unless a condition that is the same each time keeps from it."""
        closed = any(decided(guard, frame) is False for guard in way.guards)
        return set() if closed else set(way.phases)

    def _ran(self, number: int) -> bool:
        phase = self._phases[number]
        return self.counter.ran(phase.file, phase.line)


def decided(guard: str, frame: FrameType) -> bool | None:
    """What a condition of names, attributes and constants is now; None where that is not known. Nothing of the program's runs for
    it."""
    return _truth(ast.parse(guard, mode="eval").body, frame)


_PLAIN = (bool, int, float, str, type(None))
_UNKNOWN = object()
_IDENTITY: dict[type[ast.cmpop], Any] = {ast.Is: operator.is_, ast.IsNot: operator.is_not}
_COMPARED: dict[type[ast.cmpop], Any] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    **_IDENTITY,
}


def _truth(node: ast.expr, frame: FrameType) -> bool | None:
    if isinstance(node, ast.BoolOp):  # decided as soon as one decides it
        both = isinstance(node.op, ast.And)
        every = [_truth(one, frame) for one in node.values]
        return (not both) if (not both) in every else None if None in every else both
    if isinstance(node, ast.UnaryOp):
        inner = _truth(node.operand, frame)
        return None if inner is None else not inner
    if isinstance(node, ast.Compare):
        return _compared(node, frame)
    value = _value(node, frame)
    return bool(value) if isinstance(value, _PLAIN) else None


def _compared(node: ast.Compare, frame: FrameType) -> bool | None:
    one, other = _value(node.left, frame), _value(node.comparators[0], frame)
    compare = _COMPARED.get(type(node.ops[0]))
    if compare is None or len(node.ops) > 1 or one is _UNKNOWN or other is _UNKNOWN:
        return None
    plain = isinstance(one, _PLAIN) and isinstance(other, _PLAIN)
    try:
        return bool(compare(one, other)) if plain or type(node.ops[0]) in _IDENTITY else None
    except TypeError:
        return None


def _value(node: ast.expr, frame: FrameType) -> Any:
    """The object that an expression names, as far as it can be known without running code of the program's."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id, _UNKNOWN))
    if isinstance(node, ast.Attribute):
        return (attributes_of(_value(node.value, frame)) or {}).get(node.attr, _UNKNOWN)
    return _UNKNOWN
