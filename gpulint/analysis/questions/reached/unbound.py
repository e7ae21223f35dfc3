"""What raises whenever it runs, so that what stands behind it never does: names that nothing in a file binds, imports of what is
not there, and more or fewer values taken from a call than it ever gives."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.bindings import bound_names
from gpulint.analysis.code.following import passed_before
from gpulint.analysis.file.lookup import called_in_project
from gpulint.analysis.questions.reached.dispatch import places

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

# What Python puts into every module, and what Python 2 and notebooks have besides.
_GIVEN = frozenset(dir(builtins)) | frozenset(
    "__file__ __path__ __annotations__ WindowsError unicode xrange raw_input long basestring unichr reduce reload file "
    "execfile cmp buffer intern apply get_ipython display In Out _ __ exit quit reveal_type __class__ __module__ __qualname__ "
    "profile snakemake spark dbutils get_config".split()  # and some who run files
)
# What runs a file among names of its own, or gives names to every file.
_INJECTS = re.compile(rb"\b(?:exec|execfile)\(|\brunpy\b|\bbuiltins\b")
_MOST_MISSING = 2  # a text with more of them is a fragment


class Unbound:
    """The names of one file that are bound nowhere in it, however deep."""

    def __init__(self, file: FileAnalysis) -> None:
        self._file = file

    def before(self, function: ir.Function, statement: ir.Stmt) -> str | None:
        """A name that nothing binds and that is read right before a statement, in the same block; None where there is none.
        Further away somebody who has run the program will have mended it, or binds it where nobody sees."""
        if self._bound is None or function is self._file.module.body:
            return None  # what stands in no function may be a fragment, which is run among names that are bound elsewhere
        before = _right_before(function.body, statement)
        return next((name for one in before for name in _read_at_once(one) if name not in self._bound), None)

    def halts(self, function: ir.Function, statement: ir.Stmt) -> str | None:
        """Why the file, imported or started, comes to an end before it gets to a statement: at its top it imports what is not
        there, or reads a name that nothing binds. None where it does not for all that is known."""
        own = {one.name for one in self._file.module.functions} | {*self._file.module.classes}
        for before in self._file.module.body.body:
            if any(inner is statement for inner in ir.statements([before])):
                return None
            if before in self._halts:
                return self._halts[before]
            if function is not self._file.module.body and _is_work(before) and _read_in(before) & own:
                return None  # it may have run by then
        return None

    def stops(self, function: ir.Function, statement: ir.Stmt) -> str | None:
        """Why a function, or the file's own body, raises before it gets to a statement: on each way there something does."""
        clauses = (self._raises(function, one) for one in passed_before(function.body, statement))
        clause = next(filter(None, clauses), None)
        by = "the file" if function is self._file.module.body else f"`{function.name}`"
        return f"{by} raises at {clause}" if clause is not None else None

    def _raises(self, function: ir.Function, statement: ir.Stmt) -> str | None:
        """Why a statement of a function raises whatever happens: it is an import of what is not there, takes more or fewer values
        than there are, or each of its branches does so, or leaves the function."""
        if isinstance(statement, ir.Import):
            clause = self._lacking(statement) if function is not self._file.module.body else None
            return f"an import before: {clause}" if clause is not None else None
        if isinstance(statement, ir.Assign):
            return self._misfit(function, statement)
        if isinstance(statement, ir.With):
            return next(filter(None, (self._raises(function, one) for one in statement.body)), None)
        if not isinstance(statement, ir.If):
            return None
        found: list[str | None] = []
        for branch in (statement.body, statement.orelse):
            clause = next(filter(None, (self._raises(function, one) for one in branch)), None)
            if clause is None and not any(isinstance(one, (ir.Return, ir.Jump)) for one in branch):
                return None
            found.append(clause)
        return next(filter(None, found), None)

    def _misfit(self, function: ir.Function, statement: ir.Assign) -> str | None:
        """`a, b = f()` of a function that always gives three, in words."""
        call = statement.value
        if not isinstance(call, ir.Call) or self._file.filename.endswith(".ipynb"):
            return None
        taken = places(statement, call)
        callee = called_in_project(function, call) if taken is not None else None
        if callee is None or callee.cls is not None or callee.decorators or callee.is_generator:
            return None  # whoever derives from the class, or the decorator, may give something else
        given = {_given_by(one.value) for one in ir.statements(callee.body) if isinstance(one, ir.Return)}
        if not given or None in given or taken in given:
            return None
        counts = " or ".join(str(count) for count in sorted(filter(None, given)))
        return f"row {statement.row}: it takes {taken} values of `{callee.name}`, which gives {counts}"

    def _lacking(self, statement: ir.Import) -> str | None:
        """What an import asks for that is not there, in words."""
        project = self._file.project
        if project is None or self._file.filename.endswith(".ipynb"):
            return None
        lacking = (project.lacks(self._file.filename, full) for _, full in statement.bindings)
        return next(filter(None, lacking), None)

    @cached_property
    def _halts(self) -> dict[ir.Stmt, str]:
        """The statements at the top of the file that raise, and why."""
        project, found = self._file.project, dict[ir.Stmt, str]()
        if project is None or self._file.filename.endswith(".ipynb"):
            return found
        missing = self._missing_at_top
        for statement in self._file.module.body.body:
            if isinstance(statement, ir.Import):
                if (clause := self._lacking(statement)) is not None:
                    found[statement] = f"the file cannot be imported: {clause}"
            elif name := next((one for one in _read_at_once(statement) if one in missing), ""):
                found[statement] = f"the file comes to an end before: nothing binds `{name}`"
        return found

    @cached_property
    def _missing_at_top(self) -> frozenset[str]:
        """The names that the file's own body reads and nothing binds; none where it is a fragment, or others may bind them."""
        file, project, bound = self._file, self._file.project, self._bound
        body = file.module.body.body
        if (
            bound is None
            or project is None
            or not file.module.imports
            or not project.is_bounded(file.filename)
        ):
            return frozenset()
        read = {name for statement in ir.statements(body) for name in _read_at_once(statement)}
        missing = frozenset(read - bound)
        if not missing or len(missing) > _MOST_MISSING or project.contains(file.filename, _INJECTS):
            return frozenset()
        # `# key = ...`: whoever runs it puts his own there.
        filled_in = rb"^[ \t]*#[^\n]*\b(?:%s)[ \t]*=" % b"|".join(sorted(name.encode() for name in missing))
        return frozenset() if project.contains(file.filename, re.compile(filled_in, re.M)) else missing

    @cached_property
    def _bound(self) -> frozenset[str] | None:
        """All names that the file binds in any scope; None where it may bind more than its text shows."""
        tree = self._file.module.body.origin
        if not isinstance(tree, ast.Module) or self._file.filename.endswith(".ipynb"):
            return None
        found = bound_names(tree)
        return found | _GIVEN if found is not None else None


def _given_by(value: ir.Expr | None) -> int | None:
    """How many values a `return` gives, where its text says so."""
    if not isinstance(value, ir.Seq) or any(
        isinstance(item, (ir.Starred, ir.Wrapper)) for item in value.items
    ):
        return None
    return len(value.items)


def _is_work(statement: ir.Stmt) -> bool:
    """Whether a statement at the top of a file does more than define and import."""
    return not isinstance(statement, (ir.Import, ir.FunctionDef, ir.ClassDef))


def _read_at_once(statement: ir.Stmt) -> list[str]:
    """The names that a statement reads for certain before anything in its blocks runs."""
    # An assertion's message is seldom read, and what a `try` holds is caught.
    if isinstance(statement, (ir.Check, ir.Jump, ir.Try)):
        return []
    return [name for expr in statement.expressions() for name in _evaluated(expr)]


def _read_in(statement: ir.Stmt) -> set[str]:
    """All names in a statement and its blocks."""
    return {
        part.id
        for inner in ir.statements([statement])
        for part in ir.own_parts(inner)
        if isinstance(part, ir.Name)
    }


def _right_before(block: list[ir.Stmt], wanted: ir.Stmt) -> list[ir.Stmt]:
    """What runs for certain before a statement in its own block."""
    for inner in ir.every_block(block):
        if wanted in inner:
            return inner[: inner.index(wanted)]
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
