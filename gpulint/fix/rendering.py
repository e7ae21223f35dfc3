"""A rule's repair, which is changes to syntax nodes, drawn as edits of the text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import libcst as cst

from gpulint.findings import Fix
from gpulint.fix.canvas import AFTER, BEFORE, HEADER, INDENTATION, Canvas, Piece, Region, RenderError, Suite
from gpulint.fix.imports import add_import
from gpulint.fix.removal import remove
from gpulint.fix.replacing import joined, replace, smalls_of
from gpulint.rule import AddImport, Decorate, Insert, Remove, Repair, Replace, Wrap
from gpulint.source.positions import INTERPOLATED, Spans, child_nodes

_STRINGS: tuple[type[cst.CSTNode], ...] = (cst.SimpleString, *INTERPOLATED)


def render(module: cst.Module, spans: Spans, repair: Repair) -> Fix:
    """Turn a repair of nodes of `module` into text edits, sorted and without overlap.

    Raises RenderError, one sentence, for a change that cannot be written, such as a backslash inside an
    f-string, and PositionError for a node that is not in the module.
    """
    if spans.module is not module:
        raise RenderError("The spans belong to another module.")
    canvas = Canvas(spans)
    # Headers first: what is drawn inside their lines must know how deep those now are.
    for change in sorted(repair.changes, key=lambda change: not isinstance(change, Wrap)):
        if not isinstance(change, Remove):
            _DRAWN[type(change)](canvas, change)
    removed = [change.old for change in repair.changes if isinstance(change, Remove)]
    remove(canvas, removed, with_comments=len(removed) == len(repair.changes))
    return Fix(repair.applicability, repair.message, canvas.edits(), repair.unsafe_because)


# Insert


def insert(canvas: Canvas, change: Insert) -> None:
    anchor = canvas.statement(change.anchor)
    if isinstance(anchor, cst.SimpleStatementLine) and len(anchor.body) == 1:
        anchor = anchor.body[0]
    if isinstance(anchor, cst.BaseSmallStatement):
        holder = canvas.holder(anchor)
        edge = holder.body[-1] if change.after else holder.body[0]
        if anchor is not edge:
            _insert_between(canvas, anchor, holder, change)
            return
        if isinstance(holder, cst.SimpleStatementSuite):
            _insert_in_suite(canvas, holder, change)
            return
        anchor = holder
    newline = canvas.newline(canvas.spans.offsets(anchor)[0])
    indent = canvas.deepened_beside(canvas.indentation(anchor), anchor, change.after)
    code = _line_code(canvas, change.new, indent, newline)
    if change.after:
        # Where an inner and an outer block end together, what follows the inner statement comes first.
        canvas.put_line(canvas.after(anchor), code, AFTER - len(indent))
    else:
        canvas.put_line(_above_comments(canvas, anchor), code, BEFORE)


def _line_code(canvas: Canvas, new: cst.CSTNode, indent: str, newline: str) -> str:
    if isinstance(new, cst.BaseSmallStatement):
        new = cst.SimpleStatementLine([new])
    return canvas.code(new, indent, newline)


def _above_comments(canvas: Canvas, anchor: cst.BaseStatement) -> int:
    """The line start above the comments right above a statement; below those that head the file."""
    place = canvas.first_line(anchor)
    if anchor is canvas.module.body[0]:
        return place
    for _ in range(canvas.comment_lines(anchor)):
        place = canvas.index.line_start(place - 1)
    return place


def _insert_in_suite(canvas: Canvas, suite: cst.SimpleStatementSuite, change: Insert) -> None:
    canvas.unfold(suite)
    start = canvas.spans.offsets(suite.body[0])[0]
    indent = canvas.deepened(canvas.indentation(suite), start)
    code = _line_code(canvas, change.new, indent, canvas.newline(start))
    if change.after:
        end = canvas.spans.offsets(suite.body[-1])[1]
        canvas.put_line(canvas.index.next_line(end), code, AFTER - len(indent))
    else:
        canvas.put(start, start, code.removeprefix(indent) + indent, BEFORE)


def _insert_between(canvas: Canvas, anchor: cst.BaseSmallStatement, holder: Suite, change: Insert) -> None:
    place = next(place for place, other in enumerate(holder.body) if other is anchor)
    left = holder.body[place if change.after else place - 1]
    right = holder.body[place + 1 if change.after else place]
    start, end = canvas.spans.offsets(left)[1], canvas.spans.offsets(right)[0]
    smalls = smalls_of(change.new)
    if smalls is not None:
        code = joined(canvas, smalls, anchor)
        if change.after:
            canvas.put(start, start, f"; {code}", AFTER)
        else:
            canvas.put(end, end, f"{code}; ", BEFORE)
        return
    if isinstance(holder, cst.SimpleStatementSuite):
        canvas.unfold(holder)
    indent = canvas.deepened(canvas.indentation(anchor), start)
    newline = canvas.newline(start)
    canvas.put(start, end, newline + _line_code(canvas, change.new, indent, newline) + indent)


# Wrap


def wrap(canvas: Canvas, change: Wrap) -> None:
    statements = [canvas.statement(node) for node in change.statements]
    if not statements:
        raise RenderError("There is nothing to wrap.")
    smalls = [node for node in statements if isinstance(node, cst.BaseSmallStatement)]
    lines: list[cst.BaseStatement] = []
    for statement in statements:
        holder: cst.CSTNode = statement
        if isinstance(statement, cst.BaseSmallStatement):
            holder = canvas.holder(statement)
            whole = all(any(small is other for other in smalls) for small in holder.body)
            if isinstance(holder, cst.SimpleStatementSuite) or not whole:
                if len(smalls) != len(statements) or any(
                    canvas.holder(small) is not holder for small in smalls
                ):
                    raise RenderError("Part of a line cannot be wrapped together with other lines.")
                _wrap_smalls(canvas, holder, smalls, change.header)
                return
        assert isinstance(holder, cst.BaseStatement)
        if not lines or lines[-1] is not holder:
            lines.append(holder)
    _wrap_lines(canvas, lines, change.header)


def header_code(canvas: Canvas, header: cst.With, indent: str, newline: str) -> str:
    """A `with` up to its colon, without its body."""
    suite = cst.SimpleStatementSuite([cst.Pass()], leading_whitespace=cst.SimpleWhitespace(" "))
    code = canvas.code(header.with_changes(body=suite, leading_lines=()), indent, newline)
    return code.rstrip("\r\n").removesuffix(" pass")


def _wrap_lines(canvas: Canvas, lines: Sequence[cst.BaseStatement], header: cst.With) -> None:
    block = canvas.spans.parent(lines[0])
    body: Sequence[cst.CSTNode] = getattr(block, "body", ())
    first = next(place for place, other in enumerate(body) if other is lines[0])
    if any(left is not right for left, right in zip(lines, body[first:], strict=False)):
        raise RenderError("Only statements that follow one another in one block can be wrapped.")
    unit, indent = canvas.unit(lines[0]), canvas.indentation(lines[0])
    start = canvas.first_line(lines[0])
    last = lines[-1]
    assert isinstance(last, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    end = canvas.after(last)
    newline = canvas.newline(start)
    canvas.put(
        start, start, header_code(canvas, header, canvas.deepened(indent, start), newline) + newline, HEADER
    )
    _indent_lines(canvas, start, end, indent, unit, _strings(canvas, lines))
    canvas.pieces.append(Piece(end, end, "", AFTER, mark=True))
    canvas.regions.append(Region(start, end, indent, unit, lines[0], last))


def _indent_lines(
    canvas: Canvas, start: int, end: int, indent: str, unit: str, strings: Sequence[tuple[int, int]]
) -> None:
    text = canvas.text
    even = len(set(indent + unit)) == 1
    for line in canvas.index.starts_between(start, end):
        content = text[line : canvas.index.next_line(line)]
        if not content.strip() or any(first < line < last for first, last in strings):
            continue
        blank = content[: len(content) - len(content.lstrip(" \t\x0c\ufeff"))]
        # A form feed sets the column back to zero, and mixed indentation compares only if it grows at one
        # place.
        place = line + max(blank.rfind("\x0c"), blank.rfind("\ufeff")) + 1
        if not even and text.startswith(indent, place):
            place += len(indent)
        canvas.pieces.append(Piece(place, place, unit, INDENTATION, indentation=True))


def _strings(canvas: Canvas, nodes: Sequence[cst.CSTNode]) -> list[tuple[int, int]]:
    """The places of strings that go over several lines: their lines are content, not layout."""
    found: list[tuple[int, int]] = []
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, _STRINGS):
            start, end = canvas.spans.offsets(node)
            if "\n" in canvas.text[start:end] or "\r" in canvas.text[start:end]:
                found.append((start, end))
        else:
            stack.extend(child_nodes(node))
    return found


def _wrap_smalls(
    canvas: Canvas, holder: Suite, smalls: Sequence[cst.BaseSmallStatement], header: cst.With
) -> None:
    if isinstance(holder, cst.SimpleStatementSuite):
        canvas.unfold(holder)
    unit = canvas.unit(holder)
    indent = canvas.deepened(canvas.indentation(holder), canvas.spans.offsets(smalls[0])[0])
    first = next(place for place, other in enumerate(holder.body) if other is smalls[0])
    last = first + len(smalls) - 1
    if any(left is not right for left, right in zip(smalls, holder.body[first : last + 1], strict=True)):
        raise RenderError("Only statements that follow one another in one block can be wrapped.")
    start = canvas.spans.offsets(smalls[0])[0]
    newline = canvas.newline(start)
    content = header_code(canvas, header, indent, newline).removeprefix(indent) + newline + indent + unit
    if first:
        canvas.put(canvas.spans.offsets(holder.body[first - 1])[1], start, newline + indent + content)
    else:
        canvas.put(start, start, content, HEADER)
    if last + 1 < len(holder.body):
        end = canvas.spans.offsets(smalls[-1])[1]
        canvas.put(end, canvas.spans.offsets(holder.body[last + 1])[0], newline + indent)


# Decorate


def decorate(canvas: Canvas, change: Decorate) -> None:
    start = canvas.spans.offsets(change.function)[0]
    indent, newline = canvas.prefix(start), canvas.newline(start)
    plain = change.decorator.with_changes(
        leading_lines=(), trailing_whitespace=cst.TrailingWhitespace(newline=cst.Newline())
    )
    line = canvas.index.line_start(start)
    indent = canvas.deepened(indent, line)
    canvas.put(line, line, canvas.code(plain, indent, newline), HEADER)


_DRAWN: Mapping[type, Callable[[Canvas, Any], None]] = {
    Wrap: wrap,
    Replace: replace,
    Insert: insert,
    Decorate: decorate,
    AddImport: add_import,
}
