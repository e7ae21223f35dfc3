"""Calls of the functions that the user has named as steps or units: their bodies are compiled within a `with` statement, at the
same lines, so that the functions stay what they are."""

from __future__ import annotations

import ast
import builtins
import os
from collections.abc import Callable, Iterable

from gpulint.runtime.record.result import Named

_CALL = "__gpulint_call__"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


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
