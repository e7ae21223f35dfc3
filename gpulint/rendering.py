"""A rule's repair, which is changes to syntax nodes, drawn as edits of the text."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from gpulint.canvas import AFTER, BEFORE, HEADER, INDENTATION, Canvas, Piece, Region, RenderError, Suite
from gpulint.findings import Fix
from gpulint.imports import add_import
from gpulint.positions import Spans, child_nodes
from gpulint.precedence import needs_parentheses
from gpulint.removal import remove
from gpulint.rule import AddImport, Decorate, Insert, Remove, Repair, Replace, Wrap

_STRINGS = (cst.SimpleString, cst.FormattedString, cst.TemplatedString)


def render(module: cst.Module, spans: Spans, repair: Repair) -> Fix:
    """Turn a repair of nodes of `module` into text edits, sorted and without overlap.

    Raises RenderError, one sentence, for a change that cannot be written, such as a backslash inside an
    f-string, and PositionError for a node that is not in the module.
    """
    if spans.module is not module:
        raise RenderError("The spans belong to another module.")
    canvas = Canvas(spans)
    # Headers first: what is drawn inside their lines must know how deep those now are.
    for change in repair.changes:
        if isinstance(change, Wrap):
            wrap(canvas, change)
    for change in repair.changes:
        if isinstance(change, Replace):
            replace(canvas, change)
        elif isinstance(change, Insert):
            insert(canvas, change)
        elif isinstance(change, Decorate):
            decorate(canvas, change)
        elif isinstance(change, AddImport):
            add_import(canvas, change)
    remove(canvas, [change.old for change in repair.changes if isinstance(change, Remove)])
    return Fix(repair.applicability, repair.message, canvas.edits())


# Replace


def replace(canvas: Canvas, change: Replace) -> None:
    old, new = change.old, change.new
    if isinstance(old, cst.BaseExpression) and isinstance(new, cst.BaseExpression):
        _replace_expression(canvas, old, new)
    elif isinstance(old, (cst.BaseSmallStatement, cst.BaseStatement)):
        _replace_statement(canvas, old, new)
    else:
        _replace_part(canvas, old, new)


def _replace_part(canvas: Canvas, old: cst.CSTNode, new: cst.CSTNode) -> None:
    """Arguments, with items, parameters and the like: what they own besides their commas."""
    if hasattr(new, "comma"):
        new = new.with_changes(comma=cst.MaybeSentinel.DEFAULT)
    start, end = canvas.spans.offsets(old)
    if isinstance(old, cst.WithItem):  # its own position takes in the comma
        end = canvas.spans.outer(old.asname or old.item)[1]
    canvas.put(start, end, canvas.code(new, canvas.prefix(start), canvas.newline(start)))


def _replace_expression(canvas: Canvas, old: cst.BaseExpression, new: cst.BaseExpression) -> None:
    spans, text = canvas.spans, canvas.text
    parent = spans.parent(old)
    assert parent is not None
    start, end = spans.outer(old)
    inner = spans.offsets(old)
    indent = canvas.prefix(start)
    newline = canvas.newline(start)
    if old.lpar and not new.lpar and "#" in text[start : inner[0]] + text[inner[1] : end]:
        # Comments stand inside the old parentheses: keep both.
        canvas.put(*inner, canvas.code(new, indent, newline))
        return
    code = canvas.code(new, indent, newline)
    if needs_parentheses(new, old, parent) or _breaks_line(new, code):
        code = f"({code})"
    code = _apart(text, start, code, end)
    _check_inside_string(canvas, old, text[start:end], code)
    canvas.put(start, end, code)


def _breaks_line(new: cst.BaseExpression, code: str) -> bool:
    """Whether the code has a line end that only parentheses around it make harmless."""
    if new.lpar or ("\n" not in code and "\r" not in code):
        return False
    try:
        cst.parse_expression(code)
    except cst.ParserSyntaxError:
        return True
    return False


def _apart(text: str, start: int, code: str, end: int) -> str:
    """Keep `return(x)` and `(x)if y` from growing together with a name."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if (before and _word(before) and (_word(code[0]) or code[0] in "\"'")) or (
        before == "{" and code[0] == "{"
    ):
        code = f" {code}"
    return f"{code} " if after and _word(after) and _word(code[-1]) else code


def _word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _check_inside_string(canvas: Canvas, old: cst.CSTNode, before: str, after: str) -> None:
    """Before Python 3.12 an f-string's expressions have no backslash, no comment and none of its own
    quotes."""
    for outer in canvas.spans.ancestors(old):
        if isinstance(outer, (cst.FormattedString, cst.TemplatedString)):
            for forbidden in (outer.end[0], "\\", "#", "\n"):
                if forbidden in after and forbidden not in before:
                    raise RenderError(f"An f-string cannot hold {forbidden!r} in its expressions.")


def _replace_statement(canvas: Canvas, old: cst.CSTNode, new: cst.CSTNode) -> None:
    statement = canvas.statement(old)
    if statement is not old:
        raise RenderError("An `elif` cannot be replaced without its `if`.")
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        statement = statement.body[0]
    smalls = _smalls(new)
    if isinstance(statement, cst.BaseSmallStatement):
        start, end = canvas.spans.offsets(statement)
        if smalls is not None:
            canvas.put(start, end, _joined(canvas, smalls, start))
        else:
            _replace_small(canvas, statement, new)
        return
    start = canvas.first_offset(statement)
    if isinstance(statement, cst.SimpleStatementLine):
        end = canvas.spans.offsets(statement)[1]
        end = _after_semicolon(canvas, statement, end)
        if smalls is not None:
            canvas.put(start, end, _joined(canvas, smalls, start))
            return
    canvas.put(start, canvas.last_line_end(statement), _block_code(canvas, statement, new, start))


def _smalls(node: cst.CSTNode) -> Sequence[cst.BaseSmallStatement] | None:
    if isinstance(node, cst.BaseSmallStatement):
        return (node,)
    return node.body if isinstance(node, cst.SimpleStatementLine) else None


def _joined(canvas: Canvas, smalls: Sequence[cst.BaseSmallStatement], start: int) -> str:
    indent, newline = canvas.prefix(start), canvas.newline(start)
    bare = [small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT) for small in smalls]
    return "; ".join(canvas.code(small, indent, newline) for small in bare)


def _block_code(canvas: Canvas, old: cst.CSTNode, new: cst.CSTNode, start: int) -> str:
    """A statement's code from its first character on, without the last line end and the comments above it."""
    indent = canvas.indentation(old) + canvas.deeper(canvas.index.line_start(start), inclusive=True)
    if hasattr(new, "leading_lines"):
        new = new.with_changes(leading_lines=())
    if isinstance(new, cst.BaseSmallStatement):
        new = cst.SimpleStatementLine([new])
    return canvas.code(new, indent, canvas.newline(start)).removeprefix(indent).rstrip("\r\n")


def _replace_small(canvas: Canvas, small: cst.BaseSmallStatement, new: cst.CSTNode) -> None:
    """A small statement becomes a compound one: those beside it move to lines of their own."""
    holder = canvas.holder(small)
    if isinstance(holder, cst.SimpleStatementSuite):
        canvas.unfold(holder)
    start, end = canvas.spans.offsets(small)
    newline = canvas.newline(start)
    gap = newline + canvas.indentation(small) + canvas.deeper(start, inclusive=True)
    place = next(place for place, other in enumerate(holder.body) if other is small)
    content = _block_code(canvas, small, new, start)
    if place:
        start = canvas.spans.offsets(holder.body[place - 1])[1]
        content = gap + content
    if place + 1 < len(holder.body):
        end = canvas.spans.offsets(holder.body[place + 1])[0]
        content += gap
    else:
        comment = holder.trailing_whitespace.comment
        line_end = canvas.last_line_end(holder) if isinstance(holder, cst.SimpleStatementLine) else end
        if isinstance(holder, cst.SimpleStatementSuite):
            line_end = canvas.index.next_line(end) - len(_tail(canvas, end))
        if comment is not None:
            content = f"{comment.value}{gap}{content}" if not place else f"{gap}{comment.value}{content}"
        end = line_end
    canvas.put(start, end, content)


def _tail(canvas: Canvas, offset: int) -> str:
    """The line end of the line that `offset` is on, or nothing."""
    line = canvas.text[offset : canvas.index.next_line(offset)]
    return line[len(line.rstrip("\r\n")) :]


def _after_semicolon(canvas: Canvas, line: cst.SimpleStatementLine, end: int) -> int:
    if isinstance(line.body[-1].semicolon, cst.Semicolon):
        return canvas.text.index(";", end) + 1
    return end


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
    indent = canvas.indentation(anchor)
    if change.after:
        place, rank = canvas.after(anchor), AFTER
    else:
        place, rank = _above_comments(canvas, anchor), BEFORE
    indent += canvas.deeper(place, inclusive=False)
    canvas.put_line(place, _line_code(canvas, change.new, indent, newline), rank)


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
    indent = canvas.indentation(suite)
    start = canvas.spans.offsets(suite.body[0])[0]
    indent += canvas.deeper(start, inclusive=False)
    code = _line_code(canvas, change.new, indent, canvas.newline(start))
    if change.after:
        end = canvas.spans.offsets(suite.body[-1])[1]
        canvas.put_line(canvas.index.next_line(end), code, AFTER)
    else:
        canvas.put(start, start, code.removeprefix(indent) + indent, BEFORE)


def _insert_between(canvas: Canvas, anchor: cst.BaseSmallStatement, holder: Suite, change: Insert) -> None:
    place = next(place for place, other in enumerate(holder.body) if other is anchor)
    left = holder.body[place if change.after else place - 1]
    right = holder.body[place + 1 if change.after else place]
    start, end = canvas.spans.offsets(left)[1], canvas.spans.offsets(right)[0]
    smalls = _smalls(change.new)
    if smalls is not None:
        code = _joined(canvas, smalls, start)
        if change.after:
            canvas.put(start, start, f"; {code}", AFTER)
        else:
            canvas.put(end, end, f"{code}; ", BEFORE)
        return
    if isinstance(holder, cst.SimpleStatementSuite):
        canvas.unfold(holder)
    indent = canvas.indentation(anchor) + canvas.deeper(start, inclusive=False)
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
    outer = canvas.deeper(start, inclusive=True)
    canvas.put(start, start, header_code(canvas, header, indent + outer, newline) + newline, HEADER)
    _indent_lines(canvas, start, end, indent, unit, _strings(canvas, lines))
    canvas.regions.append(Region(start, end, unit))


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
    indent, unit = canvas.indentation(holder), canvas.unit(holder)
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
    indent += canvas.deeper(line, inclusive=True)
    canvas.put(line, line, canvas.code(plain, indent, newline), HEADER)
