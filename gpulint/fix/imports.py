"""Adding an import to a file that lacks it, and taking out those that fixes have left unused: `from copy import deepcopy`, once nothing
is copied any more."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence, Set

import libcst as cst
from libcst.helpers import get_full_name_for_node

from gpulint.fix.canvas import AFTER, Canvas
from gpulint.rule import AddImport
from gpulint.source.magics import HIDDEN

_WORD = re.compile(r"\w+")


def add_import(canvas: Canvas, change: AddImport) -> None:
    """Import at the top of the file: after its docstring, its `__future__` imports and its first other
    imports."""
    if not any(_provides(statement, change) for statement in _imports(canvas.module.body)):
        _insert(canvas, _code(change))


def _code(change: AddImport) -> str:
    alias = f" as {change.alias}" if change.alias else ""
    if change.name is None:
        return f"import {change.module}{alias}"
    return f"from {change.module} import {change.name}{alias}"


def _imports(body: Sequence[cst.CSTNode]) -> Iterator[cst.Import | cst.ImportFrom]:
    """The imports that run when the file is loaded, those under a `try` included."""
    for statement in body:
        if isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                if isinstance(small, (cst.Import, cst.ImportFrom)):
                    yield small
        elif isinstance(statement, cst.Try):
            yield from _imports(statement.body.body)


def _provides(statement: cst.Import | cst.ImportFrom, change: AddImport) -> bool:
    if isinstance(statement, cst.Import):
        return change.name is None and any(_imports_module(item, change) for item in statement.names)
    if change.name is None or statement.relative or isinstance(statement.names, cst.ImportStar):
        return False
    wanted = (change.name, change.alias or change.name)
    bound = ((one.evaluated_name, one.evaluated_alias or one.evaluated_name) for one in statement.names)
    return get_full_name_for_node(statement.module or "") == change.module and wanted in bound


def _imports_module(item: cst.ImportAlias, change: AddImport) -> bool:
    """`import torch.nn` binds `torch` as well."""
    name, alias = item.evaluated_name, item.evaluated_alias
    within = change.alias is None and alias is None and f"{name}.".startswith(f"{change.module}.")
    return within or (name, alias) == (change.module, change.alias)


def _insert(canvas: Canvas, code: str) -> None:
    body = canvas.module.body
    if not body:
        place = len(canvas.text)
        canvas.put_line(place, code + canvas.module.default_newline, AFTER)
        return
    newline = canvas.newline(canvas.spans.offsets(body[0])[0])
    after = last_of_the_head(body)
    if after is None:
        canvas.put(canvas.first_line(body[0]), canvas.first_line(body[0]), code + newline + newline, AFTER)
        return
    # The statement before the import may be a docstring: set the import apart from it.
    apart = "" if _is_import(after) or _is_magic(after) else newline
    canvas.put_line(canvas.after(after), apart + code + newline, AFTER)


def last_of_the_head(
    body: Sequence[cst.SimpleStatementLine | cst.BaseCompoundStatement],
) -> cst.SimpleStatementLine | None:
    """The last statement of the docstring and the imports that begin the file; a notebook's magics stand among them."""
    last: cst.SimpleStatementLine | None = None
    hidden: cst.SimpleStatementLine | None = None
    for statement in body:
        if not isinstance(statement, cst.SimpleStatementLine):
            break
        if _is_magic(statement):
            hidden = statement
            continue
        if not (_is_import(statement) or (last is None and _is_docstring(statement))):
            break
        last = statement
    return last or hidden


def _is_import(statement: cst.SimpleStatementLine) -> bool:
    return isinstance(statement.body[0], (cst.Import, cst.ImportFrom))


def _is_magic(statement: cst.SimpleStatementLine) -> bool:
    comment = statement.trailing_whitespace.comment
    return comment is not None and comment.value.startswith(HIDDEN)


def _is_docstring(statement: cst.SimpleStatementLine) -> bool:
    first = statement.body[0]
    return isinstance(first, cst.Expr) and isinstance(first.value, (cst.SimpleString, cst.ConcatenatedString))


# Left unused


def names_left_unused(before: str, after: str) -> frozenset[str]:
    """The names that imports at the top of `after` bind, and that `before` reads somewhere and `after` nowhere. Texts
    count as reading, for `__all__` and quoted annotations. None where one of the two does not parse."""
    try:
        old, new = ast.parse(before), ast.parse(after)
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    bound = {
        (alias.asname or alias.name).partition(".")[0]
        for statement in new.body
        if isinstance(statement, (ast.Import, ast.ImportFrom))
        for alias in statement.names
    }
    return frozenset((bound & _read(old)) - _read(new))


def _read(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.update(_WORD.findall(node.value))
    return found


def without_imports(text: str, names: Set[str]) -> str:
    """The text without the imports of these names at its top. A line that shares its row or carries `noqa` stays."""
    if not names or text.startswith("\ufeff"):
        return text
    module = cst.parse_module(text)
    body: list[cst.CSTNode] = []
    comments: Sequence[cst.EmptyLine] = ()
    for statement in module.body:
        kept = _without(statement, names)
        if kept is None:
            lines = statement.leading_lines
            comments = (*comments, *lines) if any(line.comment for line in lines) else comments
            continue
        if comments:
            kept = kept.with_changes(leading_lines=(*comments, *kept.leading_lines))  # type: ignore[attr-defined]
            comments = ()
        body.append(kept)
    return text if comments else module.with_changes(body=body).code


def _without(statement: cst.CSTNode, names: Set[str]) -> cst.CSTNode | None:
    """A statement without the names, None where it imports nothing else."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return statement
    (small,) = statement.body
    comment = statement.trailing_whitespace.comment
    if not isinstance(small, (cst.Import, cst.ImportFrom)) or isinstance(small.names, cst.ImportStar):
        return statement
    if comment is not None and "noqa" in comment.value:
        return statement
    bound = {one: one.evaluated_alias or one.evaluated_name.partition(".")[0] for one in small.names}
    kept = [one for one in small.names if bound[one] not in names]
    if len(kept) == len(small.names):
        return statement
    if not kept:
        return None
    kept[-1] = kept[-1].with_changes(comma=small.names[-1].comma)
    return statement.with_changes(body=[small.with_changes(names=kept)])
