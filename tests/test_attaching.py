"""Each statement and expression of Python's own tree finds its place in libcst's."""

import ast
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import libcst as cst
import pytest

from gpulint.lint import trees
from gpulint.lint.attaching import attach_all
from gpulint.lint.trees import Trees
from gpulint.source.positions import Spans
from gpulint.source.syntax import SourceError

ROOT = Path(__file__).parent.parent
STDLIB = Path(sysconfig.get_paths()["stdlib"])

# Whose spans differ: libcst leaves out a tuple's or a generator's own parentheses, and counts the block of a compound
# statement otherwise. The pieces of `a and b and c` have no place of their own in Python's tree.
# libcst counts the space behind a slice's last colon to it.
_OTHER_SPANS = (
    ast.Tuple,
    ast.GeneratorExp,
    ast.Starred,
    ast.Module,
    ast.BoolOp,
    ast.ExceptHandler,
    ast.Slice,
)
_BLOCKS = (
    ast.If, ast.For, ast.While, ast.With, ast.Try, ast.FunctionDef, ast.ClassDef, ast.Match, ast.AsyncFor,
    ast.AsyncWith, ast.AsyncFunctionDef, getattr(ast, "TryStar", ast.Try),
)  # fmt: skip


def parts(tree: ast.Module) -> Iterator[ast.AST]:
    """Every statement and expression that was given a node."""
    return (
        node for node in ast.walk(tree) if isinstance(node, (ast.stmt, ast.expr)) and _node(node) is not None
    )


def _node(part: ast.AST) -> cst.CSTNode | None:
    return getattr(part, "node_of_libcst", None)


def attached(text: str) -> tuple[ast.Module, cst.Module]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    module = cst.parse_module(text)
    attach_all(tree, module)
    return tree, module


def misplaced(text: str) -> list[str]:
    """The pieces of a text whose node in libcst's tree is another, or stands elsewhere."""
    tree, module = attached(text)
    places = _Places(text)
    spans = Spans(module, text)
    inside = _in_formatted(tree)
    lost = [
        f"{node.lineno}: no node for {ast.dump(node)[:80]}"
        for node in ast.walk(tree)
        if isinstance(node, (ast.stmt, ast.Call, ast.Attribute, ast.Subscript)) and not _node(node)
        if not _is_of_a_pattern(node, tree)
    ]
    return lost + [
        f"{getattr(part, 'lineno', 1)}: {ast.dump(part)[:80]}"
        for part in parts(tree)
        if not _is_same(part) or (id(part) not in inside and not _stands_there(part, spans, places))
    ]


def _is_of_a_pattern(node: ast.AST, tree: ast.Module) -> bool:
    """`case module.NAME:`, whose pieces no rule asks for."""
    return any(node in ast.walk(one) for one in ast.walk(tree) if isinstance(one, ast.pattern))


def _is_same(part: ast.AST) -> bool:
    """Whether the node says what the piece says."""
    node = _node(part)
    if isinstance(part, ast.Name):
        return isinstance(node, cst.Name) and node.value == part.id
    if isinstance(part, ast.Attribute):
        return isinstance(node, cst.Attribute) and node.attr.value == part.attr
    if isinstance(part, ast.Call):
        return isinstance(node, cst.Call) and len(node.args) == len(part.args) + len(part.keywords)
    if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return isinstance(node, (cst.FunctionDef, cst.ClassDef)) and node.name.value == part.name
    if isinstance(part, ast.stmt):
        whole = getattr(part, "line_of_libcst", node) if isinstance(node, cst.BaseSmallStatement) else node
        return isinstance(
            whole, (cst.SimpleStatementLine, cst.SimpleStatementSuite, cst.BaseCompoundStatement)
        )
    return isinstance(node, cst.CSTNode)


def _stands_there(part: Any, spans: Spans, places: "_Places") -> bool:
    node = _node(part)
    if isinstance(part, _OTHER_SPANS) or (isinstance(part, ast.Tuple) and isinstance(node, cst.Subscript)):
        return True
    start, end = spans.offsets(node)
    if start != places.at(part.lineno, part.col_offset):
        return False
    return isinstance(part, _BLOCKS) or end == places.at(part.end_lineno, part.end_col_offset)


class _Places:
    """From Python's rows and columns, which count bytes, to offsets."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(found.end() for found in re.finditer(r"\r\n|\r|\n", text))]

    def at(self, row: int, column: int) -> int:
        start = self.starts[row - 1]
        line = self.text[start : self.starts[row] if row < len(self.starts) else len(self.text)]
        return start + len(line.encode()[:column].decode())


def _in_formatted(tree: ast.Module) -> set[int]:
    """What stands in f-strings: before 3.12, Python does not know where."""
    found: set[int] = set()
    for part in ast.walk(tree) if sys.version_info < (3, 12) else ():
        if isinstance(part, ast.JoinedStr):
            found |= {id(inner) for inner in ast.walk(part)} - {id(part)}
    return found


SNIPPETS = {
    "numbers and strings": "x = 1, -2, --3, +4, -True, 0x1f, 1_0, 2j, 1e3, 'a', b'b', r'\\d', 'a' 'b', b'a' b'b', ...",
    "formatted": "x = f'{a!r:{w}} {{}} {b=}', 'p' f'{f(c)}' 'q' f\"{d['k']}\", f''",
    "docstrings": "'''m'''\ndef f():\n    'a' 'b'\n    b'c'\n    ...\n    f'{x}'\n    1\n",
    "calls": "f(a, *b, c, k=1, **d, m=2)\nf(k=(lambda: 1), *[lambda: 2])\nf(x for x in y)\nf(*a, **b)(c)[d].e()\n",
    "subscripts": "x[1], x[1, 2], x[1,], x[(1, 2)], x[a:b], x[a:b:c, ..., None], x['k'].y, x[:], x[-1]\nx['a' 'b'] = 1\nx[\n  a :\n]\n",
    "operators": "a + b * c - d ** e // f % g @ h | i & j ^ k << l >> m\nnot a and b or c and (d and e) or f\n~a\n",
    "comparisons": "a < b, a < b < c, a is b, a is not b, a in b, a not in b, a == b, a != b, a == b == c\n",
    "displays": "[], (), [a, *b], (a,), {a, *b}, {}, {a: b, **c}, [[a], (b, c)]\n",
    "comprehensions": "[a for a, b in c if d if e for f in g], {a for a in b}, {a: b for a in c}, (a async for a in b)\n",
    "lambdas": "f = lambda a, *b, c=(lambda: 1), **d: lambda: a\n",
    "assignments": "a = b = c\na, (b, *c) = d\na: int\na: int = 1\na.b: 'x' = 2\na[0] += 1\na @= b\na >>= c\n(a := b)\n",
    "deletes": "del a\ndel a, b.c, d[0]\ndel (a, b)\ndel (a, b), c\ndel a,\ndel (a)\n",
    "simple": "def f():\n    global a, b\n    def g():\n        nonlocal_ = 1\n    assert a, b\n    raise A(b) from c\n    raise\n    return\n",
    "imports": "import a, b.c, d.e as f\nfrom . import g\nfrom .h import i as j\nfrom k.l import (m, n)\nfrom o import *\nfrom .. import *\n",
    "branches": "if a:\n    def f(): pass\nelif b:\n    def g(): pass\nelse:\n    if c:\n        def h(): pass\n    else:\n        x = lambda: 1\n",
    "loops": "for a, b in c:\n    break\nelse:\n    d\nwhile a: continue\nelse: b\nfor x in *a, b: pass\n",
    "with": "with a as b, c as (d, e), f: pass\nwith (a as b, c): pass\nwith (a): pass\n",
    "try": "try:\n    a\nexcept (B, C) as d:\n    e\nexcept F: pass\nexcept: pass\nelse:\n    g\nfinally:\n    h\n",
    "match": "match a:\n    case [b, *c] if d: e\n    case {'k': f, **g}: h\n    case I(j, k=l) | M() as n: o\n    case _: p\n    case 1 | None: q\n",
    "functions": "@a.b(c)\n@d\nasync def f(a, /, b: int = 1, *c: str, d, e=2, **g) -> int:\n    await x\n    async with y as z: pass\n    async for u in v: yield u\n",
    "generators": "def f():\n    yield\n    x = yield a\n    yield b, c\n    yield from d\n    (yield)\n",
    "classes": "@a\nclass B(C, *D, metaclass=E, **F):\n    'doc'\n    x: int = 1\n    def m(self): pass\n    if x:\n        def n(self): pass\n    class Inner(B): pass\n",
    "one line": "if a: b; c = 1; d()\nclass A: x = 1; y = 2\n",
    "parentheses": "(a).b, ((a, b)), (a)(b), ((a) + (b)), (a and b) and c, -(-(1)), ((a)) or (b) or (c)\n",
    "letters of several bytes": "größe = 'ß' + maß.λ(ä, 'é')[ö]; ü = größe\n",
    "carriage returns": "if a:\r\n    b(c)\r\n    d = '''x\r\ny''' + e\r\n",
    "tabs and form feeds": "if a:\n\tb(c)\n\x0c\nd = e\x0c + f\nclass A:\n\x0c\tg = h\n",
    "continued lines": "a = b + \\\n    c(d,\n  e)\nassert (a\n  .b\n  .c())\n",
    "comments between": "x = (  # one\n    a  # two\n    .b  # three\n)  # four\n# five\ny = [  # six\n    c,\n]\n",
    "no last line end": "if a:\n    b\nelse: c(d)",
}


@pytest.mark.parametrize("text", SNIPPETS.values(), ids=SNIPPETS)
def test_snippets_find_their_place(text: str) -> None:
    assert misplaced(text) == []


# --- the attachment ------------------------------------------------------------------------------------------------


def test_nodes_are_there_only_after_the_tree_was_asked_for() -> None:
    both = Trees("x = f(a)\n")
    statement = both.tree.body[0]
    assert _node(statement) is None
    assert both.module is both.module
    assert isinstance(_node(statement), cst.Assign)
    assert isinstance(getattr(statement, "line_of_libcst", None), cst.SimpleStatementLine)
    both.release()
    assert _node(statement) is None


def test_a_byte_order_mark_is_no_code() -> None:
    both = Trees("\ufeffx = 1\n")
    assert both.tree.body[0].lineno == 1
    assert isinstance(both.module, cst.Module)


def test_trees_that_differ_give_the_statement() -> None:
    tree = ast.parse("x = f(a) + b\ny = c\n")
    module = cst.parse_module("x = 1\ny = c\n")
    attach_all(tree, module)
    one, other = tree.body
    line = module.body[0]
    assert {id(_node(part)) for part in ast.walk(one.value)} == {id(line.body[0])}
    assert isinstance(_node(other.value), cst.Name)


def test_code_for_another_python_is_refused_with_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    newer = SourceError("syntax error: expected '('", 2, 6)
    monkeypatch.setattr(trees, "_python_tree", lambda text: trees.refuse(text))
    monkeypatch.setattr(trees, "flaw", lambda text: newer)
    with pytest.raises(SourceError) as refused:
        Trees("import torch\ndef f[T](x): pass\n")
    assert refused.value.line == 2
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}" in refused.value.message


def test_code_for_no_python_is_refused_with_pythons_message() -> None:
    with pytest.raises(SourceError) as refused:
        Trees("import torch\nx = = 1\n")
    assert (refused.value.message, refused.value.line) == ("syntax error: invalid syntax", 2)


def test_what_only_libcst_refuses_is_told_when_there_is_something_to_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(text: str) -> cst.Module:
        raise cst.ParserSyntaxError("no such syntax", lines=[text], raw_line=3, raw_column=4)

    both = Trees("x = 1\n")
    monkeypatch.setattr(cst, "parse_module", refuse)
    with pytest.raises(SourceError) as refused:
        _ = both.module
    assert (refused.value.line, refused.value.column) == (3, 5)
