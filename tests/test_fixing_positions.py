from __future__ import annotations

import ast
import asyncio.base_events
import configparser
import re
import textwrap
import webbrowser
from pathlib import Path
from types import ModuleType

import libcst as cst
import pytest
from fixing_support import Tree
from libcst.metadata import MetadataWrapper, PositionProvider

from gpulint.findings import Position
from gpulint.source.edits import BOM, LineIndex
from gpulint.source.positions import PositionError, Spans, child_nodes

SAMPLE = [ast, textwrap, configparser, webbrowser, asyncio.base_events, re]

# Node classes that the two libraries delimit alike (ast counts the parentheses of tuples, libcst not).
ALIKE: dict[type[cst.CSTNode], type[ast.AST] | tuple[type[ast.AST], ...]] = {
    cst.FunctionDef: (ast.FunctionDef, ast.AsyncFunctionDef),
    cst.ClassDef: ast.ClassDef,
    cst.For: (ast.For, ast.AsyncFor),
    cst.While: ast.While,
    cst.Call: ast.Call,
    cst.Attribute: ast.Attribute,
    cst.Subscript: ast.Subscript,
    cst.Comparison: ast.Compare,
    cst.Assign: ast.Assign,
    cst.AugAssign: ast.AugAssign,
    cst.Return: ast.Return,
    cst.Raise: ast.Raise,
    cst.Del: ast.Delete,
    cst.Lambda: ast.Lambda,
    cst.IfExp: ast.IfExp,
    cst.Dict: ast.Dict,
    cst.ListComp: ast.ListComp,
    cst.BinaryOperation: ast.BinOp,
    cst.Import: ast.Import,
    cst.ImportFrom: ast.ImportFrom,
}


def walk(module: cst.Module, f_strings: bool = True) -> list[cst.CSTNode]:
    found: list[cst.CSTNode] = []
    stack: list[cst.CSTNode] = list(module.body)
    while stack:
        node = stack.pop()
        found.append(node)
        if f_strings or not isinstance(node, cst.FormattedString):
            stack.extend(child_nodes(node))
    return found


def ast_nodes(tree: ast.AST) -> list[ast.AST]:
    """All nodes but those inside f-strings, whose places older Pythons do not know."""
    found: list[ast.AST] = []
    stack = [tree]
    while stack:
        node = stack.pop()
        found.append(node)
        if not isinstance(node, ast.JoinedStr):
            stack.extend(ast.iter_child_nodes(node))
    return found


@pytest.mark.parametrize("module", SAMPLE, ids=lambda module: module.__name__)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_positions_are_those_of_ast(module: ModuleType, newline: str) -> None:
    assert module.__file__
    text = Path(module.__file__).read_bytes().decode().replace("\r\n", "\n").replace("\n", newline)
    tree = cst.parse_module(text)
    spans = Spans(tree, text)
    rows = text.encode().split(b"\n")
    total = 0
    found_nodes = walk(tree, f_strings=False)
    nodes = ast_nodes(ast.parse(text))
    for ours, theirs in ALIKE.items():
        expected = set()
        for node in nodes:
            if not isinstance(node, theirs):
                continue
            first, last = rows[node.lineno - 1], rows[node.end_lineno - 1]  # type: ignore[attr-defined]
            start = len(first[: node.col_offset].decode()) + 1  # type: ignore[attr-defined]
            end = len(last[: node.end_col_offset].decode()) + 1  # type: ignore[attr-defined]
            expected.add((Position(node.lineno, start), Position(node.end_lineno, end)))  # type: ignore[attr-defined]
        found = set()
        for other in found_nodes:
            if type(other) is ours:
                found.add(spans.of(other))
        total += len(found)
        if ours is not cst.Attribute:  # decorators and imported names are attributes to libcst only
            assert found == expected, ours
        else:
            assert found >= expected
    assert total > 100


def test_positions_are_those_of_libcst() -> None:
    text = Path(textwrap.__file__).read_text()
    module = cst.parse_module(text)
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    ranges = wrapper.resolve(PositionProvider)
    spans = Spans(module, text)
    checked = 0
    for node in walk(module):
        start, end = spans.of(node)
        expected = ranges[node]
        assert (start.row, start.column - 1) == (expected.start.line, expected.start.column)
        assert (end.row, end.column - 1) == (expected.end.line, expected.end.column)
        checked += 1
    assert checked > 1000


@pytest.mark.parametrize(
    ("text", "code", "start", "end"),
    [
        (f"{BOM}x = a\n", "a", (1, 5), (1, 6)),
        ("x = 'é𝄞'; a\n", "a", (1, 11), (1, 12)),
        ("x = '\u2028\x85\x0b'\na\n", "a", (2, 1), (2, 2)),
        ("x\n\x0c\na\n", "a", (3, 1), (3, 2)),
        ("x\n\x0ca\n", "a", (2, 2), (2, 3)),
        ("x\ra\r", "a", (2, 1), (2, 2)),
        ("x\r\ny\ra\n", "a", (3, 1), (3, 2)),
        ("x\na", "a", (2, 1), (2, 2)),
        ("try:\n  x\nexcept (A, B) :\n  a\n", "a", (4, 3), (4, 4)),
        ("try:\n  x\nexcept (A, B) : a\n", "a", (3, 17), (3, 18)),
        ("a; x; a\n", "a", (1, 1), (1, 2)),
        ("(  # why\n a)\n", "a", (2, 2), (2, 3)),
    ],
)
def test_positions_in_odd_texts(text: str, code: str, start: tuple[int, int], end: tuple[int, int]) -> None:
    tree = Tree(text)
    node = tree.find(code)
    assert tree.spans.of(node) == (Position(*start), Position(*end))


def test_equal_statements_are_told_apart() -> None:
    text = "f()\n" * 3
    tree = Tree(text)
    assert [tree.spans.of(line)[0].row for line in tree.module.body] == [1, 2, 3]


def test_parents() -> None:
    tree = Tree("def f():\n    x = g(a)\n")
    chain = [type(node).__name__ for node in tree.spans.ancestors(tree.find("a"))]
    assert chain == ["Arg", "Call", "Assign", "SimpleStatementLine", "IndentedBlock", "FunctionDef", "Module"]
    assert tree.spans.parent(tree.module) is None


def test_a_text_of_another_tree_is_refused() -> None:
    module = cst.parse_module("x = 1\n")
    with pytest.raises(PositionError, match="does not belong"):
        Spans(module, "y = 1\n").of(module.body[0])


def test_offsets_and_positions_are_inverse() -> None:
    text = f"{BOM}a\r\nbc\rd\n\x0c\u2028\ne"
    index = LineIndex(text)
    for offset in range(1, len(text) + 1):
        assert index.offset(index.position(offset)) == offset
    assert index.position(0) == Position(1, 1)
    for outside in (Position(0, 1), Position(1, 0), Position(9, 1), Position(6, 3), Position(1, 9)):
        with pytest.raises(ValueError, match="There is no row"):
            index.offset(outside)
