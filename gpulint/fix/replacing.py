"""Writing one expression or statement where another stands."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from gpulint.fix.canvas import Canvas, RenderError
from gpulint.fix.precedence import reading
from gpulint.rule import Replace
from gpulint.source.positions import INTERPOLATED, nodes_below


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
    canvas.put(start, end, canvas.code(new, canvas.block_indentation(old), canvas.newline(start)))


def _replace_expression(canvas: Canvas, old: cst.BaseExpression, new: cst.BaseExpression) -> None:
    spans, text = canvas.spans, canvas.text
    start, end = spans.outer(old)
    inner = spans.offsets(old)
    indent = canvas.block_indentation(old)
    newline = canvas.newline(start)
    comments = "#" in text[start : inner[0]] + text[inner[1] : end]
    if old.lpar and not new.lpar and comments and all(node is not old for node in (new, *nodes_below(new))):
        # Comments stand inside the old parentheses: keep both.
        canvas.put(*inner, canvas.code(new, indent, newline))
        return
    code = canvas.code(new, indent, newline)
    code, wrapped = (_apart(text, start, one, end) for one in (code, f"({code})"))
    bare = _reading(canvas, old, code)
    # A name that is no expression, as in `a.name`, takes none.
    if _reading(canvas, old, wrapped) not in (None, bare):
        code = wrapped
    _check_inside_string(canvas, old, text[start:end], code)
    canvas.put(start, end, code)


def _reading(canvas: Canvas, old: cst.BaseExpression, code: str) -> str | None:
    """What Python reads in the statement around an expression with this in its place."""
    statement = canvas.statement(old)
    first, (start, end) = canvas.first_offset(statement), canvas.spans.outer(old)
    last = canvas.spans.offsets(statement)[1]
    indent = "" if isinstance(statement, cst.BaseSmallStatement) else canvas.prefix(first)
    head, tail = canvas.text[first:start], canvas.text[end:last]
    if isinstance(canvas.spans.parent(old), cst.FormattedStringExpression):
        tail = tail.lstrip().removeprefix("=")  # of `{x=}`, which shows the text as well
    lead = f"if 1:\n{indent}" if indent else ""
    return reading(f"{lead}{head}{code}{tail}")


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
        if isinstance(outer, INTERPOLATED):
            quote = canvas.spans.text[canvas.spans.offsets(outer)[1] - 1]
            for forbidden in (quote, "\\", "#", "\n"):
                if forbidden in after and forbidden not in before:
                    raise RenderError(f"An f-string cannot hold {forbidden!r} in its expressions.")


def _replace_statement(canvas: Canvas, old: cst.CSTNode, new: cst.CSTNode) -> None:
    statement = canvas.statement(old)
    if statement is not old:
        raise RenderError("An `elif` cannot be replaced without its `if`.")
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        statement = statement.body[0]
    smalls = smalls_of(new)
    if isinstance(statement, cst.BaseSmallStatement):
        start, end = canvas.spans.offsets(statement)
        if smalls is not None:
            canvas.put(start, end, joined(canvas, smalls, statement))
        else:
            _replace_small(canvas, statement, new)
        return
    start = canvas.first_offset(statement)
    if isinstance(statement, cst.SimpleStatementLine):
        end = canvas.spans.offsets(statement)[1]
        end = _after_semicolon(canvas, statement, end)
        if smalls is not None:
            canvas.put(start, end, joined(canvas, smalls, statement))
            return
    canvas.put(start, canvas.last_line_end(statement), _block_code(canvas, statement, new, start))


def smalls_of(node: cst.CSTNode) -> Sequence[cst.BaseSmallStatement] | None:
    if isinstance(node, cst.BaseSmallStatement):
        return (node,)
    return node.body if isinstance(node, cst.SimpleStatementLine) else None


def joined(canvas: Canvas, smalls: Sequence[cst.BaseSmallStatement], beside: cst.CSTNode) -> str:
    """Small statements on one line, to stand in place of or beside another."""
    indent, newline = canvas.block_indentation(beside), canvas.newline(canvas.spans.offsets(beside)[0])
    bare = [small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT) for small in smalls]
    return "; ".join(canvas.code(small, indent, newline) for small in bare)


def _block_code(canvas: Canvas, old: cst.CSTNode, new: cst.CSTNode, start: int) -> str:
    """A statement's code from its first character on, without the last line end and the comments above it."""
    indent = canvas.deepened(canvas.indentation(old), canvas.index.line_start(start))
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
    gap = newline + canvas.deepened(canvas.indentation(small), start)
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
