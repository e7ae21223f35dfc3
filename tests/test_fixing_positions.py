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
from gpulint.source.positions import PositionError, Spans

SAMPLE = [textwrap, webbrowser, re]


@pytest.mark.parametrize("module", SAMPLE, ids=lambda module: module.__name__)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_positions_are_those_of_libcst(module: ModuleType, newline: str) -> None:
    assert module.__file__
    text = Path(module.__file__).read_bytes().decode().replace("\r\n", "\n").replace("\n", newline)
    tree = Tree(text)
    ranges = MetadataWrapper(tree.module, unsafe_skip_copy=True).resolve(PositionProvider)
    nodes = list(tree.nodes())
    assert len(nodes) > 100
    for node in nodes:
        start, end = tree.spans.of(node)
        expected = ranges[node]
        assert (start.row, start.column - 1) == (expected.start.line, expected.start.column)
        assert (end.row, end.column - 1) == (expected.end.line, expected.end.column)


@pytest.mark.parametrize(
    ("text", "code", "start", "end"),
    [
        (f"{BOM}x = a\n", "a", (1, 5), (1, 6)),
        ("x = 'é𝄞'; a\n", "a", (1, 11), (1, 12)),
        ("x = '\u2028\x85\x0b'\na\n", "a", (2, 1), (2, 2)),
        ("x\n\x0ca\n", "a", (2, 2), (2, 3)),
        ("x\ra\r", "a", (2, 1), (2, 2)),
        ("x\r\ny\ra\n", "a", (3, 1), (3, 2)),
        ("try:\n  x\nexcept (A, B) :\n  a\n", "a", (4, 3), (4, 4)),
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
