"""The decisions of the analysis, and its modules compiled with a switch at each: `decisions.py` turns them."""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, ClassVar

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("gpulint/analysis", "rules")
INSTRUMENTED = ("gpulint.analysis", "gpulint.rules")  # the same, as packages
FALSE, DROPPED, FLIPPED = "condition false", "last term dropped", "answer flipped"


@dataclass(frozen=True, slots=True)
class Decision:
    """A place in a file, by bytes, what stands there and what shall stand there instead."""

    file: str
    line: int
    kind: str
    before: str
    after: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.kind}: {_short(self.before)} → {_short(self.after)}"

    def spoil(self, source: bytes) -> bytes:
        return source[: self.start] + self.after.encode() + source[self.end :]


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:59] + "…"


# -- decisions -------------------------------------------------------------------------------------------------


def decisions(root: Path, only: str = "") -> list[Decision]:
    """All decisions of the analysis, in the order of their files and lines."""
    found: list[Decision] = []
    for path in sources(root):
        name = path.relative_to(root).as_posix()
        if only in name:
            found += decisions_of(name, path.read_bytes())
    return found


def sources(root: Path) -> list[Path]:
    return [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))]


def decisions_of(name: str, source: bytes) -> list[Decision]:
    rows = [0, *itertools.accumulate(map(len, source.splitlines(keepends=True)))]
    found: list[Decision] = []
    for node, kind, after in _in_order(ast.parse(source)):
        first, column, last, end_column, _ = _place(node, kind)
        start, end = rows[first - 1] + column, rows[last - 1] + end_column
        found.append(Decision(name, first, kind, source[start:end].decode(), after, start, end))
    return found


def _in_order(tree: ast.AST) -> list[tuple[ast.expr, str, str]]:
    """(expression, kind, what shall stand in its place) for each decision, by their places."""
    return sorted(_spoilt(tree), key=lambda one: _place(one[0], one[1]))


def _place(node: ast.expr, kind: str) -> tuple[int, int, int, int, str]:
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0, kind


def _spoilt(tree: ast.AST) -> Iterator[tuple[ast.expr, str, str]]:
    for node in _walk(tree):
        if isinstance(node, (ast.If, ast.While, ast.IfExp)):
            if not _is_fixed(node.test):
                yield node.test, FALSE, "False"
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield test, FALSE, "False"
        elif isinstance(node, ast.BoolOp):
            yield node, DROPPED, f"({ast.unparse(_without_last(node))})"
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, bool):
                yield node.value, FLIPPED, str(not node.value.value)


def _walk(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those within f-strings, whose places Python did not know before 3.12."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.JoinedStr):
            yield from _walk(child)


def _is_fixed(test: ast.expr) -> bool:
    """`while True`, `if TYPE_CHECKING`: nothing is decided."""
    return isinstance(test, ast.Constant) or (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING")


def _without_last(node: ast.BoolOp) -> ast.expr:
    return node.values[0] if len(node.values) == 2 else ast.BoolOp(node.op, node.values[:-1])


# -- switches --------------------------------------------------------------------------------------------------


class Switches:
    """What the instrumented modules ask. `active` is the decision that is spoilt, by its number; `decisive` are those that
    would have gone another way."""

    def __init__(self) -> None:
        self.active: int | None = None
        self.decisive: set[int] = set()
        self._first: object = None

    def condition(self, number: int, value: object) -> object:
        if value:
            self.decisive.add(number)
            return number != self.active and value
        return value

    def first(self, value: object) -> object:
        self._first = value
        return value

    def drops(self, number: int) -> bool:
        return number == self.active

    def dropped(self, number: int) -> object:
        self.decisive.add(number)
        return self._first

    def last(self, number: int, value: object, neutral: bool) -> object:
        """The last term, which matters unless it is the neutral one: True of an `and`, False of an `or`."""
        if value is not neutral:
            self.decisive.add(number)
        return value

    def answer(self, number: int, value: bool) -> bool:
        self.decisive.add(number)
        return value is not (number == self.active)


SWITCHES = Switches()
_NAME = "__switches__"  # among the builtins, so that each module sees it


class _Instrumenting(ast.NodeTransformer):
    """Puts a switch at each decision of a module."""

    def __init__(self, numbers: dict[tuple[int, int, int, int, str], int]) -> None:
        self._numbers = numbers

    def _number(self, node: ast.expr, kind: str) -> ast.Constant:
        return ast.Constant(self._numbers[_place(node, kind)])

    def _test(self, test: ast.expr) -> ast.expr:
        if _is_fixed(test):
            return test
        number = self._number(test, FALSE)
        return _ask("condition", number, self.visit(test))

    def _branching(self, node: Any) -> Any:
        test, node.test = node.test, ast.Constant(True)
        self.generic_visit(node)
        node.test = self._test(test)
        return node

    visit_If = visit_While = visit_IfExp = _branching

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.JoinedStr:
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        ifs, node.ifs = node.ifs, []
        self.generic_visit(node)
        node.ifs = [_ask("condition", self._number(test, FALSE), self.visit(test)) for test in ifs]
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.BoolOp:
        number = self._number(node, DROPPED)
        self.generic_visit(node)
        last = _ask("last", number, node.values[-1], ast.Constant(isinstance(node.op, ast.And)))
        other = ast.IfExp(_ask("drops", number), _ask("dropped", number), last)
        return ast.BoolOp(node.op, [_ask("first", _without_last(node)), other])

    def visit_Return(self, node: ast.Return) -> ast.Return:
        value = node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            node.value = _ask("answer", self._number(value, FLIPPED), value)
        else:
            self.generic_visit(node)
        return node


def _ask(what: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(_NAME, ast.Load()), what, ast.Load()), list(args), [])


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles a module of the analysis with its switches. The bytecode is kept nowhere."""

    starts: ClassVar[dict[str, int]] = {}  # the number of a file's first decision

    def get_code(self, fullname: str) -> CodeType:
        path = Path(self.get_filename(fullname)).resolve()
        name = path.relative_to(ROOT).as_posix()
        tree = ast.parse(path.read_bytes())
        numbers = {
            _place(node, kind): at for at, (node, kind, _) in enumerate(_in_order(tree), self.starts[name])
        }
        spoilable = ast.fix_missing_locations(_Instrumenting(numbers).visit(tree))
        return compile(spoilable, str(path), "exec", dont_inherit=True)


class _Finder:
    """Has the analysis loaded by `_Loader`, wherever an installed gpulint says that it lies."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> Any:
        if not name.startswith(INSTRUMENTED):
            return None
        others = (one for one in sys.meta_path if one is not cls)
        spec = next(filter(None, (one.find_spec(name, path, target) for one in others)), None)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(name, spec.origin)
        return spec


def instrument(every: list[Decision]) -> None:
    """Have all modules of the analysis imported from now on ask `SWITCHES`."""
    for number, decision in enumerate(every):
        _Loader.starts.setdefault(decision.file, number)
    for path in sources(ROOT):
        _Loader.starts.setdefault(path.relative_to(ROOT).as_posix(), len(every))
    setattr(builtins, _NAME, SWITCHES)
    sys.meta_path.insert(0, _Finder)
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
