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
        """A name that nothing binds and that is read right before a statement, in the same block; None where there is none.
        Further away somebody who has run the program will have mended it, or binds it where nobody sees."""
        if self._bound is None or function is self._file.module.body:
            return None  # what stands in no function may be a fragment, which is run among names that are bound elsewhere
        for expr in _right_before(function.body, statement):
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


def _right_before(block: list[ir.Stmt], wanted: ir.Stmt) -> list[ir.Expr]:
    """What is evaluated for certain before a statement in its own block."""
    for inner in ir.every_block(block):
        if wanted in inner:
            before = inner[: inner.index(wanted)]
            # An assertion's message is seldom read, and what a `try` holds is caught.
            return [
                expr
                for statement in before
                if not isinstance(statement, (ir.Check, ir.Jump, ir.Try))
                for expr in statement.expressions()
            ]
    return []


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
