"""Counts how often lines of interest run, and what each does to memory.

Only files that have such a line are touched: they are compiled with a call before and after its statement, at
the same line numbers. So every other line costs nothing, debuggers and coverage tools are not disturbed, and
it works the same in every Python. Where a finding's place lies in a part of a statement that need not run with it
(`ready and keep.append(loss)`, a lambda's body), that part is counted and not the statement. The bodies of functions that the user
has named as steps or units are compiled within a `with` statement, at the same lines, so that they stay what they are.
"""

from __future__ import annotations

import ast
import bisect
import builtins
import importlib.machinery
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, TypeAlias

from gpulint.runtime.probes import hooks
from gpulint.runtime.probes.frames import frame_locals
from gpulint.runtime.record.options import Lines, Named
from gpulint.runtime.record.result import MEASURED_HITS, LineFigures

Place = tuple[int, int]  # line, column; column 0 is the whole line

FEWEST_HITS = 5  # sampled runs of a line after which more of them are not waited for
EARLY_HITS = 3  # of those before sampling begins, in which the program is set up
_ENTER, _LEAVE, _CALL = "__gpulint_enter__", "__gpulint_leave__", "__gpulint_call__"
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPOUND = (*_LOOPS, *_FUNCTIONS, ast.ClassDef, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.Match)
_MONITORING: Any = getattr(sys, "monitoring", None)  # from Python 3.12 on
_TOOLS = (4, 3)  # numbers that it has for tools without a name
_JUMPS = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_Spot: TypeAlias = "ast.stmt | ast.ExceptHandler | ast.expr"


@dataclass(slots=True, eq=False)
class _Line:
    """What the statement behind one or more lines of interest did so far."""

    measured: bool = True  # a part of an expression is only counted
    settled: bool = False  # more steps of this kind would tell nothing new
    # The steps of the present window in which it ran, as mark numbers
    marks: list[int] = field(default_factory=list)
    judged: int = 0
    hits: int = 0
    sampled: int = 0
    taken: int = 0
    seconds: float = 0.0
    # What `LineFigures` says of memory, by its names: as far as it is known
    memory: dict[str, Any] = field(default_factory=dict)

    def rise(self, **sizes: int) -> None:
        """Figures of which the highest counts."""
        self.memory.update((name, max(size, self.memory.get(name, size))) for name, size in sizes.items())


class LineCounter:
    """Watches the lines in `wanted`, in files compiled after `start`. `probe` may be set later, when the
    script imports torch; `sampling` is set once warm-up is over. Not `measuring`: hits are counted and nothing else."""

    def __init__(
        self,
        wanted: tuple[Lines, ...],
        tensor_bytes: Callable[[Any], int | None],
        measuring: bool = True,
        named: NamedCalls | None = None,
    ) -> None:
        self.sampling = False
        self._measuring = measuring
        self.active = True
        self.mark = 0  # number of the mark that was taken last
        self.probe: Any = None
        self.is_compiling: Callable[[], bool] = lambda: False
        self._tensor_bytes = tensor_bytes
        self._wanted = {os.path.realpath(entry.file): entry for entry in wanted}
        self._order = [(entry.file, *place) for entry in wanted for place in entry.places]
        self._figures: dict[tuple[str, int, int], _Line] = {}
        self._lines: list[_Line] = []
        self._touched: set[int] = set()  # ran while steps were sampled, since the last `settle` or `forget`
        # (frame, line) -> allocated, clock (None before sampling begins)
        self._inside: dict[tuple[int, int], tuple[int, float | None]] = {}
        self._undo: hooks.Undo = lambda: None
        self._named = named or NamedCalls((), lambda named, begins: None)

    def start(self) -> None:
        """Have modules of interest compiled with the calls in them when they are imported."""
        self._named.start()
        if not self._wanted and not self._named.files:
            return
        setattr(builtins, _ENTER, _make_hook(self, self._enter))
        setattr(builtins, _LEAVE, _make_hook(self, self._leave))

        def made(original: Any) -> Any:
            def get_code(this: Any, fullname: str) -> CodeType | None:
                path = this.get_filename(fullname)
                if self.is_wanted(path):  # past the bytecode cache, which has the file as it is
                    return self.compile(this.get_data(path), path)
                code: CodeType | None = original(this, fullname)
                return code

            return get_code

        self._undo = hooks.wrap(importlib.machinery.SourceFileLoader, "get_code", made)

    def adopt(self, other: LineCounter) -> None:
        """Count anew in the code that another one has compiled, in whose stead this one is started then."""
        anew = {id(line): _Line(line.measured) for line in other._lines}
        self._lines = [anew[id(line)] for line in other._lines]
        self._figures = {place: anew[id(line)] for place, line in other._figures.items()}

    def stop(self) -> None:
        """Count no more."""
        self.active = False
        self._undo()

    def is_wanted(self, path: str) -> bool:
        """Whether the file has lines of interest, or functions that were named."""
        if not self._wanted and not self._named.files:
            return False
        real = os.path.realpath(path)
        return real in self._wanted or real in self._named.files

    def compile(self, source: bytes, path: str) -> CodeType:
        """The file's code object, watched if it has lines of interest. Raises what `compile` raises."""
        if not self.is_wanted(path):
            return compile(source, path, "exec", dont_inherit=True)
        tree = ast.parse(source, path)
        entry = self._wanted.get(os.path.realpath(path), Lines(path, ()))
        counted: dict[int, int] = {}  # id of a node -> index of its line
        for node, places in _spots(tree, entry.places, source):
            counted[id(node)] = len(self._lines)
            line = _Line(measured=self._measuring and not isinstance(node, ast.expr))
            self._lines.append(line)
            self._figures.update(((entry.file, *place), line) for place in places)
        _instrument(tree, counted)
        self._named.enclose(tree, os.path.realpath(path))
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)

    def missing(self, lines: tuple[Lines, ...]) -> bool:
        """Whether more steps could tell about one of the places, which must be of interest."""
        found = (self._figures.get((entry.file, *place)) for entry in lines for place in entry.places)
        return any(one is None or not (one.settled or one.sampled >= FEWEST_HITS) for one in found)

    def ran(self, file: str, line: int) -> bool:
        """Whether the statement of a line of interest has run."""
        one = self._figures.get((file, line, 0))
        return one is not None and one.hits > 0

    def settle(self) -> None:
        """What has run since the last call was sampled as far as it goes: its loop is over."""
        for index in self._touched:
            self._lines[index].settled = True
        self._touched.clear()

    def forget(self) -> None:
        """What has run since the last call does not count as sampled: the steps that matter are yet to come."""
        self._touched.clear()

    def judge(self, boundaries: Sequence[int], end: int) -> None:
        """The steps between `boundaries` that ended by mark `end` were judged: note in how many of them each line ran."""
        for one in self._lines:
            ran = {bisect.bisect_right(boundaries, mark) for mark in one.marks if mark < end}
            one.judged = max(one.judged, len(ran - {0}))

    def figures(self) -> list[LineFigures]:
        """One entry per place asked for, in order; a place whose file was never loaded ran 0 times."""
        found = []
        for file, line, column in self._order:
            one = self._figures.get((file, line, column)) or _Line()
            seconds = one.seconds if one.taken else None
            more = {**one.memory, "column": column, "judged_hits": one.judged}
            found.append(LineFigures(file, line, one.hits, one.sampled, seconds, **more))
        return found

    def _enter(self, index: int, frame: FrameType) -> None:
        one = self._lines[index]
        one.hits += 1
        if not self.sampling:
            if one.measured and one.hits <= EARLY_HITS and self.probe is not None:
                self._inside[(id(frame), index)] = (self.probe.begin_peak("line"), None)
            return
        one.sampled += 1
        self._touched.add(index)
        if not one.marks or one.marks[-1] != self.mark:
            one.marks.append(self.mark)
        if one.measured and one.taken < MEASURED_HITS and self.probe is not None:
            if "tensors" not in one.memory:
                one.memory["tensors"] = self._locals(frame)
            now = self.probe.begin_peak("line")
            one.rise(level=now)
            self._inside[(id(frame), index)] = (now, time.perf_counter())

    def _leave(self, index: int, frame: FrameType) -> None:
        begin = self._inside.pop((id(frame), index), None)
        if begin is None:
            return
        one = self._lines[index]
        before, clock = begin
        top = self.probe.peak("line")
        if clock is None:
            if top - before > one.memory.get("early", -1):
                one.memory.update(early=top - before, left=self.probe.allocated() - before)
            return
        one.taken += 1
        one.seconds += time.perf_counter() - clock
        one.rise(level=top, growth=self.probe.allocated() - before, peak=top - before)

    def _locals(self, frame: FrameType) -> dict[str, int]:
        sizes = ((name, self._tensor_bytes(value)) for name, value in frame_locals(frame).items())
        return {name: size for name, size in sizes if size is not None}


def _make_hook(counter: LineCounter, action: Callable[[int, FrameType], None]) -> Callable[[int], None]:
    def hook(index: int) -> None:
        if counter.is_compiling() or not counter.active:  # torch.compile folds this away
            return
        action(index, sys._getframe(1))

    return hook


# -- where to put the calls ----------------------------------------------------------------------------------


def _spots(tree: ast.Module, places: tuple[Place, ...], source: bytes) -> list[tuple[_Spot, list[Place]]]:
    """What to count for each place (line, column): a statement, or the part of it that need not run with it; with its places.
    Places that nothing owns are left out."""
    found: dict[int, tuple[_Spot, list[Place]]] = {}
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.stmt, ast.ExceptHandler))]
    parts, rows = list(_optional_parts(tree)), source.splitlines()
    for place in places:
        spot = _spot(nodes, parts, place[0], _byte_column(rows, place))
        if spot is not None:
            found.setdefault(id(spot), (spot, []))[1].append(place)
    return list(found.values())


def _byte_column(rows: list[bytes], place: Place) -> int | None:
    """A finding's column, which counts characters from 1, as the syntax tree counts it: bytes from 0. None where the
    whole line is meant."""
    line, column = place
    if not column or line > len(rows):
        return None
    return len(rows[line - 1].decode("utf-8", "replace")[: column - 1].encode())


def _spot(nodes: Sequence[_Spot], parts: list[ast.expr], line: int, column: int | None) -> _Spot | None:
    around = [node for node in nodes if _first(node) <= line <= (node.end_lineno or node.lineno)]
    if column is not None:
        within = [node for node in around if _holds(node, line, column)]
        if within:
            optional = (part for part in parts if _holds(part, line, column))
            return max(optional, key=_inner, default=None) or max(within, key=_inner)
    return min(around, key=lambda node: ((node.end_lineno or 0) - _first(node), -node.lineno), default=None)


def _holds(node: Any, line: int, column: int) -> bool:
    begin, end = (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)
    return begin <= (line, column) < end


def _inner(node: Any) -> tuple[int, int, int, int]:
    """Larger for what lies within another."""
    return node.lineno, node.col_offset, -(node.end_lineno or 0), -(node.end_col_offset or 0)


_OPTIONAL: dict[type[ast.AST], tuple[str, ...]] = {
    ast.IfExp: ("body", "orelse"),
    ast.Lambda: ("body",),
    ast.ListComp: ("elt",),
    ast.SetComp: ("elt",),
    ast.GeneratorExp: ("elt",),
    ast.DictComp: ("key", "value"),
}


def _optional_parts(tree: ast.Module) -> Iterator[ast.expr]:
    """The expressions that need not run when their statements do."""
    for parent in ast.walk(tree):
        yield from (getattr(parent, name) for name in _OPTIONAL.get(type(parent), ()))
        if isinstance(parent, ast.BoolOp):
            yield from parent.values[1:]


def _first(node: _Spot) -> int:
    decorators = getattr(node, "decorator_list", [])
    lines: list[int] = [node.lineno, *(decorator.lineno for decorator in decorators)]
    return min(lines)


def _instrument(tree: ast.Module, counted: dict[int, int]) -> None:
    """Put calls around these nodes, which are given by their ids, with the index of each."""
    for parent in list(ast.walk(tree)):
        for name, value in ast.iter_fields(parent):
            if isinstance(value, list):
                value[:] = [new for one in value for new in _with_calls(one, counted.get(id(one)))]
            elif id(value) in counted:
                setattr(parent, name, _with_calls(value, counted[id(value)])[0])


def _with_calls(node: Any, index: int | None) -> list[Any]:
    """What stands in a node's place, so that it is counted where it runs: a loop per iteration, a function per call, any other
    statement before it, and of an expression `(enter(index), expression)[1]`."""
    if index is None or _must_stay(node):
        return [node]
    if isinstance(node, ast.expr):
        call = ast.Call(ast.Name(_ENTER, ast.Load()), [ast.Constant(index)], [])
        pair = ast.Subscript(ast.Tuple([call, node], ast.Load()), ast.Constant(1), ast.Load())
        return [ast.copy_location(pair, node)]
    enter = _call(_ENTER, index, node)
    if isinstance(node, (*_LOOPS, *_FUNCTIONS, ast.ExceptHandler)):
        documented = isinstance(node, _FUNCTIONS) and ast.get_docstring(node, clean=False)
        node.body.insert(1 if documented else 0, enter)
        return [node]
    leave = [] if isinstance(node, (*_COMPOUND, *_JUMPS)) else [_call(_LEAVE, index, node)]
    return [enter, node, *leave]


def _must_stay(statement: ast.AST) -> bool:
    """Whether nothing may come before it: docstrings and imports from __future__ only count as such at the
    top."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _call(name: str, index: int, at: Any) -> ast.stmt:
    call = ast.Call(ast.Name(name, ast.Load()), [ast.Constant(index)], [])
    located: ast.stmt = ast.copy_location(ast.Expr(call), at)
    if name == _LEAVE:  # the call after a statement is still on its last line
        located.lineno = located.end_lineno = at.end_lineno or at.lineno
    return located


# -- heads of loops ------------------------------------------------------------------------------------------


class Ticks:
    """How often lines ran at which loops begin, in code that is followed: `sys.monitoring` says so, from Python 3.12 on. No other line
    of it costs anything, nor does other code."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[int, int]] = Counter()
        self._heads: dict[int, tuple[CodeType, frozenset[int]]] = {}  # by the code's id: its hash takes long
        self._tool: int | None = None

    def follow(self, code: CodeType, heads: frozenset[int]) -> None:
        """From now on count these lines of it."""
        if _MONITORING is None or id(code) in self._heads or not heads:
            return
        if self._tool is None:
            self._tool = next((tool for tool in _TOOLS if _MONITORING.get_tool(tool) is None), None)
            if self._tool is None:
                return
            _MONITORING.use_tool_id(self._tool, "gpulint")
            _MONITORING.register_callback(self._tool, _MONITORING.events.LINE, self._ran)
        self._heads[id(code)] = code, heads
        _MONITORING.set_local_events(self._tool, code, _MONITORING.events.LINE)

    def _ran(self, code: CodeType, line: int) -> Any:
        _, heads = self._heads.get(id(code), (None, ()))
        if line not in heads:
            return _MONITORING.DISABLE
        self._counts[id(code), line] += 1
        return None

    def of(self, code: CodeType, lines: Iterable[int]) -> list[int]:
        """How often each of them has run; 0 where it is not followed."""
        return [self._counts[id(code), line] for line in lines]

    def stop(self) -> None:
        """Count no more."""
        if self._tool is not None:
            for code, _ in self._heads.values():  # else whoever has the number next is told of them
                _MONITORING.set_local_events(self._tool, code, 0)
            _MONITORING.register_callback(self._tool, _MONITORING.events.LINE, None)
            _MONITORING.free_tool_id(self._tool)
            self._tool = None


# -- functions that were named -------------------------------------------------------------------------------

Told = Callable[[Named, bool], None]


class NamedCalls:
    """Tells `told` of each call of one of these functions, with True where it begins and False where it ends; of a function that
    calls itself the outermost."""

    def __init__(self, named: Iterable[Named], told: Told) -> None:
        self._named = [(os.path.realpath(one.file), one) for one in named]
        self.files = frozenset(file for file, _ in self._named)
        self._calls = [_Call(one, told) for _, one in self._named]

    def start(self) -> None:
        """Be there for the code that is compiled from here on."""
        if self._named:
            setattr(builtins, _CALL, self._calls.__getitem__)

    def enclose(self, tree: ast.Module, path: str) -> None:
        """Put the bodies of those that the file at this real path defines into `with` statements."""
        for node in ast.walk(tree):
            if isinstance(node, _FUNCTIONS):
                for index, (file, one) in enumerate(self._named):
                    if (file, one.line) == (path, node.lineno):
                        _enclose(node, index)


class _Call:
    """Entered and left with each call of a function."""

    def __init__(self, named: Named, told: Told) -> None:
        self._named = named
        self._told = told
        self._depth = 0

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth == 1:
            self._told(self._named, True)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0 and (kind is None or issubclass(kind, Exception)):
            self._told(self._named, False)


def _enclose(function: ast.FunctionDef | ast.AsyncFunctionDef, index: int) -> None:
    documented = int(ast.get_docstring(function, clean=False) is not None)
    body = function.body[documented:]
    if not body:
        return
    call = ast.Call(ast.Name(_CALL, ast.Load()), [ast.Constant(index)], [])
    around = ast.With(items=[ast.withitem(call)], body=body)
    function.body[documented:] = [ast.copy_location(around, body[0])]
