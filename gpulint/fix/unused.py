"""Imports that fixes have left unused: `from copy import deepcopy`, once nothing is copied any more."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence, Set

import libcst as cst

_WORD = re.compile(r"\w+")


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
