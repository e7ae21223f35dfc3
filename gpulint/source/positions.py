"""Where the nodes of a libcst tree stand in the text, and what encloses them.

libcst keeps no positions; they come from generating the code again. Only files with findings ask for them,
and then for a handful of nodes, so both the walk for parents and the generation go one top-level statement at
a time: the text of a statement that occurs once in the file tells where it stands. Only when it does not is
the whole file generated.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import cached_property
from itertools import accumulate
from typing import Any

import libcst as cst
from libcst._nodes.internal import CodegenState

from gpulint.findings import Position
from gpulint.source.edits import BOM, LineIndex

Range = tuple[int, int]

# Fields that hold only blanks, commas, parentheses and operators: no rule speaks of them, so no parent is
# kept.
_SKIPPED = frozenset(
    """
    lpar rpar lbracket rbracket lbrace rbrace comma semicolon colon equal dot operator indent newline
    leading_lines lines_after_decorators footer header trailing_whitespace leading_whitespace
    lines_after_colon asynchronous first_colon second_colon __slots__
    """.split()
)
_BLANKS = frozenset(" \t\x0c\r\n\\" + BOM)
# Template strings came to libcst after 1.8.0.
INTERPOLATED: tuple[type[cst.CSTNode], ...] = (
    cst.FormattedString,
    getattr(cst, "TemplatedString", cst.FormattedString),
)
_fields: dict[type, tuple[str, ...]] = {}


class _Recorder(CodegenState):
    """Code generation that notes, per node, the number of the first token and of the token after the last.

    Token numbers instead of rows and columns keep the work per token at nothing.
    """

    def __init__(self, module: cst.Module) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.outer: dict[int, Range] = {}
        self.inner: dict[int, Range] = {}
        self._stack: list[int] = []

    def before_codegen(self, node: cst.CSTNode) -> None:
        self._stack.append(len(self.tokens))

    def after_codegen(self, node: cst.CSTNode) -> None:
        self.outer[id(node)] = (self._stack.pop(), len(self.tokens))

    @contextmanager
    def record_syntactic_position(
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> Iterator[None]:
        """Start and end of a node without its surrounding blanks, as libcst's nodes announce them."""
        start = len(self.tokens)
        yield
        end = len(self.tokens) if end_node is None else self.range(end_node)[1]
        self.inner[id(node)] = (start if start_node is None else self.range(start_node)[0], end)

    def range(self, node: cst.CSTNode) -> Range:
        return self.inner.get(id(node)) or self.outer[id(node)]


class _Chunk:
    """One piece of generated code whose place in the text is known."""

    __slots__ = ("base", "inner", "offsets", "outer")

    def __init__(self, recorder: _Recorder) -> None:
        self.outer = recorder.outer
        self.inner = recorder.inner
        self.offsets = [0, *accumulate(map(len, recorder.tokens))]
        self.base: int | _Alignment = 0

    def place(self, span: Range) -> Range:
        last = len(self.offsets) - 1  # the file's last newline token is taken back where the file has none
        start, end = self.offsets[min(span[0], last)], self.offsets[min(span[1], last)]
        if isinstance(self.base, int):
            return start + self.base, end + self.base
        return self.base.start(start), self.base.end(end)


class _Alignment:
    """From offsets in generated code to offsets in the text, where libcst lost some blanks (`except E :`,
    ``\\f``)."""

    def __init__(self, code: str, text: str) -> None:
        self._before: list[int] = []
        self._after: list[int] = []
        place = 0
        for character in code:
            self._after.append(place)
            start = place
            while place < len(text) and text[place] != character and text[place] in _BLANKS:
                place += 1
            if place < len(text) and text[place] == character:
                self._before.append(place)
                place += 1
            elif character in _BLANKS:
                place = start
                self._before.append(start)
            else:
                raise PositionError("The syntax tree does not belong to this text.")
        self._after.append(place)
        self._before.append(place)

    def start(self, offset: int) -> int:
        return self._before[offset]

    def end(self, offset: int) -> int:
        return self._after[offset]


class PositionError(ValueError):
    """The node does not belong to the module, or the module not to the text."""


class Spans:
    """Positions and parents of the nodes of `module`, which was parsed from `text`.

    Without `text` the module's own code is taken. Nodes are told apart by identity, so the tree must be the
    one that `libcst.parse_module` returned. Methods raise PositionError for a node that is not in the tree.
    """

    def __init__(self, module: cst.Module, text: str | None = None) -> None:
        self.module = module
        self.text = module.code if text is None else text
        self._parents: dict[int, cst.CSTNode] = {}
        self._walk = self._walk_statements()
        self._chunks: dict[int, _Chunk] = {}
        self._whole: _Chunk | None = None

    @cached_property
    def index(self) -> LineIndex:
        return LineIndex(self.text)

    def of(self, node: cst.CSTNode) -> tuple[Position, Position]:
        """Start and exclusive end of a node, without parentheses, comments and blanks around it."""
        start, end = self.offsets(node)
        return self.index.position(start), self.index.position(end)

    def offsets(self, node: cst.CSTNode) -> Range:
        """`of` as offsets into the text."""
        return self._placed(node, inner=True)

    def outer(self, node: cst.CSTNode) -> Range:
        """Offsets with everything the node owns: parentheses, leading lines, trailing comment and line
        end."""
        return self._placed(node, inner=False)

    def _placed(self, node: cst.CSTNode, inner: bool) -> Range:
        chunk = self._chunk(node)
        span = (inner and chunk.inner.get(id(node))) or chunk.outer.get(id(node))
        if span is None:
            raise PositionError(f"This {type(node).__name__} does not stand in the file's tree.")
        return chunk.place(span)

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The enclosing node; None for the module."""
        if node is self.module:
            return None
        found = self._parents.get(id(node))
        while found is None:
            if not next(self._walk, False):
                raise PositionError(f"This {type(node).__name__} does not stand in the file's tree.")
            found = self._parents.get(id(node))
        return found

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The enclosing nodes from the inside out, the module last."""
        parent = self.parent(node)
        while parent is not None:
            yield parent
            parent = self.parent(parent)

    def _walk_statements(self) -> Iterator[bool]:
        """Note the parents, one top-level statement a step."""
        parents = self._parents
        for statement in self.module.body:
            parents[id(statement)] = self.module
            stack: list[cst.CSTNode] = [statement]
            while stack:
                node = stack.pop()
                for child in child_nodes(node):
                    parents[id(child)] = node
                    stack.append(child)
            yield True

    def _chunk(self, node: cst.CSTNode) -> _Chunk:
        if self._whole is not None:
            return self._whole
        top = node
        if node is self.module:
            return self._generate_all()
        try:
            while (parent := self.parent(top)) is not self.module:
                assert parent is not None
                top = parent
        except PositionError:
            return self._generate_all()  # a comment, a comma, a blank
        return self._chunks.get(id(top)) or self._generate(top)

    def _generate(self, statement: cst.CSTNode) -> _Chunk:
        recorder = _Recorder(self.module)
        statement._codegen(recorder)
        if (
            statement is self.module.body[-1]
            and not self.module.footer
            and not self.module.has_trailing_newline
        ):
            recorder.pop_trailing_newline()
        code = "".join(recorder.tokens)
        place = self.text.find(code)
        if place < 0 or self.text.find(code, place + 1) >= 0:
            return self._generate_all()
        chunk = self._chunks[id(statement)] = _Chunk(recorder)
        chunk.base = place
        return chunk

    def _generate_all(self) -> _Chunk:
        recorder = _Recorder(self.module)
        self.module._codegen(recorder)
        code = "".join(recorder.tokens)
        chunk = _Chunk(recorder)
        if code != self.text:
            chunk.base = _Alignment(code, self.text)
        self._whole = chunk
        return chunk


def child_nodes(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The children that carry meaning: no blanks, commas, parentheses."""
    kind = type(node)
    names = _fields.get(kind)
    if names is None:
        names = tuple(
            field.name
            for field in fields(node)
            if field.name not in _SKIPPED
            and field.type is not str
            and not field.name.startswith("whitespace")
        )
        _fields[kind] = names
    for name in names:
        value: Any = getattr(node, name)
        if isinstance(value, (tuple, list)):
            yield from value
        elif isinstance(value, cst.CSTNode):
            yield value


def nodes_below(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """All that is beneath a node and carries meaning."""
    for child in child_nodes(node):
        yield child
        yield from nodes_below(child)
