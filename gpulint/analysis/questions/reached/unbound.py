"""Names that nothing in a file binds: what uses one raises, and what stands behind it never runs."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

# What Python puts into every module, and what Python 2 and notebooks have besides.
_GIVEN = frozenset(dir(builtins)) | frozenset(
    "__file__ __path__ __annotations__ WindowsError unicode xrange raw_input long basestring unichr reduce reload file "
    "execfile cmp buffer intern apply get_ipython display In Out _ __ exit quit reveal_type __class__ __module__ __qualname__".split()
)
_BINDING_UNSEEN = frozenset({"exec", "globals", "execfile", "vars", "locals"})


class Unbound:
    """The names of one file that are bound nowhere in it, however deep."""

    def __init__(self, file: FileAnalysis) -> None:
        self._file = file

    def before(self, function: ir.Function, statement: ir.Stmt) -> str | None:
        """A name that nothing binds and that is read before a statement whenever that is reached; None where there is none, or
        something catches what it raises."""
        if self._bound is None or function is self._file.module.body:
            return None  # what stands in no function may be a fragment, which is run among names that are bound elsewhere
        for expr in _on_the_way(function.body, statement) or ():
            for name in _evaluated(expr):
                if name not in self._bound:
                    return name
        return None

    @cached_property
    def _bound(self) -> frozenset[str] | None:
        """All names that the file binds in any scope; None where it may bind more than its text shows."""
        tree = self._file.module.body.origin
        if not isinstance(tree, ast.Module) or self._file.filename.endswith(".ipynb"):
            return None
        if any(evidence.called & _BINDING_UNSEEN for evidence in self._file.evidence.values()):
            return None
        found: set[str] = set(_GIVEN)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
                return None
            found.update(_binds(node))
        return frozenset(found)


def _binds(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.alias):
        yield node.asname or node.name.partition(".")[0]
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        yield from node.names
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        yield node.name or ""
    elif isinstance(node, ast.MatchMapping):
        yield node.rest or ""


def _on_the_way(block: list[ir.Stmt], wanted: ir.Stmt) -> list[ir.Expr] | None:
    """What has been evaluated for certain when a statement of a block is reached; None where it is not in the block."""
    found: list[ir.Expr] = []
    for statement in block:
        if statement is wanted:
            return found
        for inner in statement.blocks():
            below = _on_the_way(inner, wanted)
            if below is not None:
                caught = isinstance(statement, ir.Try) and bool(statement.handlers)
                return found if caught else [*found, *statement.expressions(), *below]
        if not isinstance(statement, (ir.Check, ir.Jump, ir.Try)):  # an assertion's message is seldom read
            found += statement.expressions()
    return None


def _evaluated(root: ir.Expr) -> Iterator[str]:
    """The plain names that an expression reads whatever its parts come to."""
    stack = [root]
    while stack:
        part = stack.pop()
        if isinstance(part, ir.Name):
            yield part.id
        elif isinstance(part, ir.Op) and part.op in ("and", "or", "if"):
            stack.append(part.operands[0])
        elif isinstance(part, ir.Comp):
            stack += [part.clauses[0][1]] if part.clauses else []
        elif not isinstance(part, ir.LambdaExpr):
            stack += part.children()
