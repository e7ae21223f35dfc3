"""Taking statements, call arguments and decorators out of the text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import libcst as cst

from gpulint.fix.canvas import CHANGE, Block, Canvas, RenderError, Statement, Suite

# Blanks and comments may stand before a comma.
_TO_COMMA = re.compile(r"(?:[^,#]|#[^\r\n]*)*?,")


# Comments that are not about the statement below them: settings of tools, and lines without a word.
_STAYS = re.compile(
    r"#\s*(?:(?:fmt|isort|yapf|autopep8|pylint|mypy|pyright|ruff|flake8|type|pragma)\s*:|(?:end)?region\b|\W*$)"
    r"|#\s*gpulint:\s*(?:enable|disable|ignore-file)|#\s?%%"
)


def remove(canvas: Canvas, nodes: Sequence[cst.CSTNode], with_comments: bool = False) -> None:
    """Remove all of `nodes` together, so that a block emptied by several removals gets one `pass`; `with_comments` those
    right above statements too, as nothing takes the statements' place."""
    calls: dict[int, cst.CSTNode] = {}
    holders: dict[int, Suite] = {}
    gone: set[int] = set()
    blocks: dict[int, Block] = {}
    for node in nodes:
        if isinstance(node, cst.Arg):
            owner = canvas.spans.parent(node)
            assert owner is not None
            calls[id(owner)] = owner
            gone.add(id(node))
        elif isinstance(node, cst.Decorator):
            _remove_decorator(canvas, node)
        else:
            statement = canvas.statement(node)
            gone.add(id(statement))
            if isinstance(statement, cst.BaseSmallStatement):
                holder = canvas.holder(statement)
                holders[id(holder)] = holder
            else:
                block = canvas.block(statement)
                blocks[id(block)] = block
    for holder in holders.values():
        if not all(id(small) in gone for small in holder.body):
            _remove_smalls(canvas, holder, gone)
        elif isinstance(holder, cst.SimpleStatementSuite):
            start, end = canvas.spans.offsets(holder.body[0])[0], canvas.spans.offsets(holder.body[-1])[1]
            canvas.put(start, end, "pass")
        else:
            gone.add(id(holder))
            block = canvas.block(holder)
            blocks[id(block)] = block
    for block in blocks.values():
        _remove_lines(canvas, block, gone, with_comments)
    for owner in calls.values():
        _remove_arguments(canvas, owner, gone)


def _remove_smalls(canvas: Canvas, holder: Suite, gone: set[int]) -> None:
    """Some of the statements of `a; b; c`: each goes with the semicolon after it, the last with the one
    before."""
    places = [canvas.spans.offsets(small) for small in holder.body]
    kept = [place for place, small in enumerate(holder.body) if id(small) not in gone]
    for place, small in enumerate(holder.body):
        if id(small) not in gone:
            continue
        if place < kept[-1]:
            canvas.put(places[place][0], places[place + 1][0], "")
        else:
            canvas.put(places[place - 1][1], places[place][1], "")


def _remove_lines(canvas: Canvas, block: Block, gone: set[int], with_comments: bool) -> None:
    body: Sequence[Statement] = block.body  # type: ignore[assignment]
    kept = [place for place, statement in enumerate(body) if id(statement) not in gone]
    emptied = not kept and not isinstance(block, cst.Module)
    for place, statement in enumerate(body):
        if id(statement) not in gone:
            continue
        comments = _comments(statement) if with_comments else 0
        start = canvas.first_line(statement)
        for _ in range(comments):
            start = canvas.index.line_start(start - 1)
        if emptied and place == 0:
            first = canvas.text.index("#", start) if comments else canvas.first_offset(statement)
            canvas.put(first, canvas.last_line_end(statement), "pass")
        elif emptied or (kept and place > kept[-1]):
            _remove_backwards(canvas, body[place - 1], statement, start)
        else:
            leading = statement.leading_lines[: len(statement.leading_lines) - comments]
            _remove_forwards(canvas, statement, start, leading, first=place == 0)


def _comments(statement: Statement) -> int:
    """How many comment lines right above a statement go with it."""
    lines = itertools.takewhile(
        lambda line: line.indent and line.comment is not None and not _STAYS.match(line.comment.value),
        reversed(statement.leading_lines),
    )
    return len(list(lines))


def _remove_forwards(
    canvas: Canvas, statement: Statement, start: int, leading: Sequence[cst.EmptyLine], first: bool
) -> None:
    """A statement's lines from `start` on, and the blank lines that would stand beside other blank lines: after it, or last
    in the lines `leading` to it."""
    end = canvas.after(statement)
    blank_after = _blank_lines_after(canvas, end)
    if blank_after > end and leading and leading[-1].comment is None:
        for line in reversed(leading):
            if line.comment is not None:
                break
            start = canvas.index.line_start(start - 1)
    elif first and not leading and canvas.spans.parent(statement) is not canvas.module:
        end = blank_after
    canvas.put(start, end, "", CHANGE, whole_lines=True)


def _blank_lines_after(canvas: Canvas, offset: int) -> int:
    """The offset after the blank lines that begin at `offset`."""
    text, index = canvas.text, canvas.index
    while offset < len(text):
        following = index.next_line(offset)
        if text[offset:following].strip():
            break
        offset = following
    return offset


def _remove_backwards(canvas: Canvas, previous: Statement, statement: Statement, first_line: int) -> None:
    """The last statement of a block goes, from its `first_line` on, with the line end before it, not the one after it.

    So its removal overlaps the removal of its neighbour by another fix: were each of them to think that the
    other stays, the block would be left empty.
    """
    start = canvas.last_line_end(previous)
    end = canvas.last_line_end(statement)
    inserted = (piece for piece in canvas.pieces if piece.start == piece.end)
    if any(start < piece.start <= end and not piece.indentation and not piece.mark for piece in inserted):
        # Lines that this fix puts in between keep the block from being empty.
        canvas.put(first_line, canvas.after(statement), "", CHANGE, whole_lines=True)
        return
    between = canvas.text[start:first_line]
    comments = between.rstrip(" \t\x0c\r\n") if between.strip() else ""
    canvas.put(start, end, comments, CHANGE, whole_lines=True)


def _remove_decorator(canvas: Canvas, decorator: cst.Decorator) -> None:
    start, end = canvas.spans.offsets(decorator.decorator)
    canvas.put(canvas.index.line_start(start), canvas.index.next_line(end), "", CHANGE, whole_lines=True)


# Arguments


def _remove_arguments(canvas: Canvas, owner: cst.CSTNode, gone: set[int]) -> None:
    if not isinstance(owner, cst.Call):
        raise RenderError(f"Arguments of a {type(owner).__name__} cannot be removed.")
    args = owner.args
    if all(id(arg) in gone for arg in args):
        _remove_all(canvas, owner)
        return
    for is_gone, run in itertools.groupby(range(len(args)), lambda place: id(args[place]) in gone):
        if is_gone:
            places = list(run)
            _remove_run(canvas, args, places[0], places[-1])


def _comma_end(canvas: Canvas, arg: cst.Arg) -> int:
    """The offset after an argument and its comma, if it has one."""
    end = canvas.spans.offsets(arg)[1]
    if not isinstance(arg.comma, cst.Comma):
        return end
    comma = _TO_COMMA.match(canvas.text, end)
    assert comma is not None
    return comma.end()


def _remove_all(canvas: Canvas, call: cst.Call) -> None:
    """Every argument, and the blanks around them; comments on lines of their own stay."""
    start, end = canvas.spans.offsets(call.args[0])[0], canvas.spans.offsets(call)[1] - 1
    opening = canvas.text.index("(", canvas.spans.outer(call.func)[1]) + 1
    comma_end = _comma_end(canvas, call.args[-1])
    if not canvas.text[opening:start].strip() and not canvas.text[comma_end:end].strip():
        canvas.put(opening, end, "")
    elif _alone(canvas, start, comma_end):
        line_start, line_end = canvas.index.line_start(start), canvas.index.next_line(comma_end)
        canvas.put(line_start, line_end, "", CHANGE, whole_lines=True)
    else:
        canvas.put(start, comma_end, "")


def _alone(canvas: Canvas, start: int, end: int) -> bool:
    """Whether nothing but blanks and a trailing comment shares the lines of this text."""
    rest = canvas.text[end : canvas.index.next_line(end)].strip()
    before = canvas.text[canvas.index.line_start(start) : start].strip()
    return not before and (not rest or rest.startswith("#"))


def _remove_run(canvas: Canvas, args: Sequence[cst.Arg], first: int, last: int) -> None:
    """Neighbouring arguments: on lines of their own they go with the lines, else with the comma beside
    them."""
    text, index = canvas.text, canvas.index
    start, end = canvas.spans.offsets(args[first])[0], canvas.spans.offsets(args[last])[1]
    comma_end = _comma_end(canvas, args[last])
    line_start, line_end = index.line_start(start), index.next_line(comma_end)
    alone = _alone(canvas, start, comma_end)
    if last == len(args) - 1:
        previous = canvas.spans.offsets(args[first - 1])[1]
        between = text[previous:start]
        if alone:
            if not isinstance(args[last].comma, cst.Comma):
                _drop_comma(canvas, args[first - 1])
            canvas.put(line_start, line_end, "", CHANGE, whole_lines=True)
        elif "#" in between:
            _drop_comma(canvas, args[first - 1])
            canvas.put(start, end, "")
        else:
            canvas.put(previous, end, "")
        return
    following = canvas.spans.offsets(args[last + 1])[0]
    if alone:
        canvas.put(line_start, line_end, "", CHANGE, whole_lines=True)
    elif "#" in text[comma_end:following]:
        canvas.put(start, comma_end, "")
    else:
        canvas.put(start, following, "")


def _drop_comma(canvas: Canvas, arg: cst.Arg) -> None:
    end = _comma_end(canvas, arg)
    canvas.put(end - 1, end, "")
