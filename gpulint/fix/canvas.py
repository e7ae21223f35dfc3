"""The page on which a repair is drawn: offsets, indentation, line ends, and the edits collected so far."""

from __future__ import annotations

import re
from dataclasses import dataclass

import libcst as cst
from libcst._nodes.internal import CodegenState

from gpulint.findings import Edit
from gpulint.source.edits import line_end
from gpulint.source.positions import Spans

Suite = cst.SimpleStatementLine | cst.SimpleStatementSuite
Block = cst.Module | cst.IndentedBlock
Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


class RenderError(ValueError):
    """A change that cannot be written as text: the message says which and why."""


@dataclass(frozen=True, slots=True)
class Piece:
    """An edit in offsets. Pieces at one place stand in the order of `rank`, then of their making.

    A `mark` is an empty edit that says where a block ends whose lines were indented: another fix's new line may
    belong to its last statement.
    """

    start: int
    end: int
    content: str
    rank: int
    indentation: bool = False
    whole_lines: bool = False
    mark: bool = False


@dataclass(frozen=True, slots=True)
class Region:
    """Lines, from statement `first` to statement `last`, that a new header has indented by `unit`."""

    start: int
    end: int
    indent: str
    unit: str
    first: cst.CSTNode
    last: cst.CSTNode

    def deepened(self, indent: str) -> str:
        """An indentation of these lines as it is now: the unit stands behind what they have in common."""
        if indent.startswith(self.indent):
            return self.indent + self.unit + indent[len(self.indent) :]
        return self.unit + indent


AFTER, CHANGE, BEFORE, HEADER, INDENTATION = range(5)


class Canvas:
    """Geometry of one module's text, and the pieces of one fix."""

    def __init__(self, spans: Spans) -> None:
        self.spans = spans
        self.module = spans.module
        self.text = spans.text
        self.index = spans.index
        self.pieces: list[Piece] = []
        self.regions: list[Region] = []
        self._unfolded: set[int] = set()

    # What stands where

    def statement(self, node: cst.CSTNode) -> cst.BaseSmallStatement | Statement:
        """The statement that `node` is or is part of."""
        found: cst.CSTNode | None = node
        while found is not None:
            parent = self.spans.parent(found)
            if isinstance(found, cst.If) and isinstance(parent, cst.If) and parent.orelse is found:
                found = parent
                continue
            if isinstance(
                found, (cst.BaseSmallStatement, cst.SimpleStatementLine, cst.BaseCompoundStatement)
            ):
                return found
            found = parent
        raise RenderError(f"A {type(node).__name__} is no part of a statement.")

    def holder(self, small: cst.BaseSmallStatement) -> Suite:
        """The line or one-line suite that a small statement stands on."""
        parent = self.spans.parent(small)
        assert isinstance(parent, (cst.SimpleStatementLine, cst.SimpleStatementSuite))
        return parent

    def block(self, statement: Statement) -> Block:
        """The block that a statement with its own line stands in."""
        parent = self.spans.parent(statement)
        assert isinstance(parent, (cst.Module, cst.IndentedBlock))
        return parent

    def first_offset(self, statement: cst.CSTNode) -> int:
        """Where a statement begins, decorators included."""
        start = self.spans.offsets(statement)[0]
        decorators = getattr(statement, "decorators", ())
        if decorators:
            place = self.spans.offsets(decorators[0].decorator)[0]
            start = self.text.rindex("@", 0, place)
        return start

    def first_line(self, statement: cst.CSTNode) -> int:
        """The start of the line on which a statement begins, decorators included."""
        return self.index.line_start(self.first_offset(statement))

    def comment_lines(self, statement: cst.CSTNode) -> int:
        """How many comment lines stand directly above a statement."""
        count = 0
        for line in reversed(getattr(statement, "leading_lines", ())):
            if line.comment is None:
                break
            count += 1
        return count

    def after(self, statement: Statement) -> int:
        """The offset after a statement's last line with its line end, comments deeper than it included."""
        return self.spans.outer(statement)[1]

    def last_line_end(self, statement: Statement) -> int:
        """The offset before the line end of a statement's last line."""
        end = self.after(statement)
        text = self.text
        if text[end - 1 : end] == "\n":
            end -= 1
        if text[end - 1 : end] == "\r":
            end -= 1
        return end

    def prefix(self, offset: int) -> str:
        """The indentation of the line that `offset` is on."""
        start = self.index.line_start(offset)
        blank = re.compile(r"[ \t\x0c\ufeff]*").match(self.text, start, offset)
        assert blank is not None
        return re.split("[\x0c\ufeff]", blank.group())[-1]

    def unit(self, node: cst.CSTNode) -> str:
        """One step of indentation, as the block around `node` has it."""
        for outer in (node, *self.spans.ancestors(node)):
            if isinstance(outer, cst.IndentedBlock) and outer.indent is not None:
                return outer.indent
        return self.module.default_indent

    def indentation(self, statement: cst.CSTNode) -> str:
        """What stands before a statement on its own line; for a one-line suite, what will."""
        if isinstance(statement, cst.BaseSmallStatement):
            statement = self.holder(statement)
        if isinstance(statement, cst.SimpleStatementSuite):
            owner = self.spans.parent(statement)
            assert owner is not None
            return self.prefix(self.spans.offsets(owner)[0]) + self.unit(owner)
        return self.prefix(self.first_offset(statement))

    def block_indentation(self, node: cst.CSTNode) -> str:
        """What the blocks around a node indent by: what code generation puts before its continuation lines."""
        blocks = [outer for outer in self.spans.ancestors(node) if isinstance(outer, cst.IndentedBlock)]
        default = self.module.default_indent
        return "".join(default if block.indent is None else block.indent for block in reversed(blocks))

    def newline(self, offset: int) -> str:
        """The line end to use near `offset`: its own line's, else the file's."""
        line = self.text[self.index.line_start(offset) : self.index.next_line(offset)]
        for end in ("\r\n", "\n", "\r"):
            if line.endswith(end):
                return end
        return self.module.default_newline

    def code(self, node: cst.CSTNode, indent: str = "", newline: str = "\n") -> str:
        """The text of a node at an indentation. The first line of an expression is not indented."""
        state = CodegenState(default_indent=self.module.default_indent, default_newline=newline)
        if indent:
            state.increase_indent(indent)
        node._codegen(state)
        return "".join(state.tokens)

    # Drawing

    def put(self, start: int, end: int, content: str, rank: int = CHANGE, whole_lines: bool = False) -> None:
        self.pieces.append(Piece(start, end, content, rank, whole_lines=whole_lines))

    def put_line(self, offset: int, content: str, rank: int) -> None:
        """Insert whole lines at a line start, or after a last line that has no line end."""
        if offset and offset == len(self.text) and not self.text.endswith(("\n", "\r")):
            end = line_end(content, len(content.rstrip("\r\n")))
            content = (end or self.module.default_newline) + content[: len(content) - len(end)]
        self.put(offset, offset, content, rank)

    def deepened(self, indent: str, offset: int) -> str:
        """An indentation, made deeper where new headers stand above the line at `offset`."""
        for region in self.regions:
            if region.start <= offset < region.end:
                indent = region.deepened(indent)
        return indent

    def deepened_beside(self, indent: str, anchor: cst.CSTNode, after: bool) -> str:
        """`deepened` for a line beside a statement: outside where that is the outermost wrapped one."""
        offset = self.spans.offsets(anchor)[0]
        for region in self.regions:
            edge = region.last if after else region.first
            if region.start <= offset < region.end and anchor is not edge:
                indent = region.deepened(indent)
        return indent

    def unfold(self, suite: cst.SimpleStatementSuite) -> None:
        """Turn `if x: a` into a block, once."""
        if id(suite) in self._unfolded:
            return
        self._unfolded.add(id(suite))
        first = self.spans.offsets(suite.body[0])[0]
        outer = self.spans.outer(suite)[0]
        indent = self.deepened(self.indentation(suite), first)
        self.put(outer, first, self.newline(first) + indent, BEFORE)

    def edits(self) -> tuple[Edit, ...]:
        """The pieces as a fix's edits: sorted, merged, without overlap. Raises RenderError where they
        overlap."""
        merged: list[Piece] = []
        for piece in self._ordered():
            last = merged[-1] if merged else None
            if last is None or last.end < piece.start:
                merged.append(piece)
            elif last.end > piece.start and (last.content or piece.content):
                raise RenderError("Two changes of one fix touch the same text.")
            elif last.end > piece.start or last.start == piece.start or not (last.content or piece.content):
                end = max(last.end, piece.end)
                mark = last.mark or piece.mark
                merged[-1] = Piece(last.start, end, last.content + piece.content, last.rank, mark=mark)
            else:
                merged.append(piece)
        position = self.index.position
        return tuple(
            Edit(position(piece.start), position(piece.end), piece.content)
            for piece in merged
            if self.text[piece.start : piece.end] != piece.content or piece.mark
        )

    def _ordered(self) -> list[Piece]:
        changes = [piece for piece in self.pieces if not piece.indentation and piece.end > piece.start]
        kept = [
            piece
            for piece in self.pieces
            if not piece.indentation
            or not any(
                other.start < piece.start < other.end or (other.whole_lines and other.start == piece.start)
                for other in changes
            )
        ]
        # At one place: insertions, then what replaces the text that begins there.
        return sorted(kept, key=lambda piece: (piece.start, piece.end > piece.start, piece.rank))
