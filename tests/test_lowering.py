"""The lowered form comes from Python's own tree, and each of its pieces finds its place in libcst's."""

from __future__ import annotations

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
from gpulint.analysis.code import ir
from gpulint.analysis.code.lower import lower

from gpulint.lint import trees
from gpulint.lint.attaching import attach_all
from gpulint.lint.trees import SourceError, Trees
from gpulint.source.positions import Spans
from gpulint.source.syntax import Flaw

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


def parts(module: ir.Module) -> Iterator[ir.Part]:
    """Every piece of a lowered file that has a place."""
    for function in module.functions:
        yield function
        yield from _in_function(function)
    for cls in module.classes.values():
        yield cls
        yield from _in_block(cls.body)
        for root in (*cls.bases, *cls.decorators):
            yield from ir.walk(root)


def _in_function(function: ir.Function) -> Iterator[ir.Part]:
    yield from _in_block(function.body)
    roots = [*function.decorators]
    for param in function.params:
        roots += [given for given in (param.annotation, param.default) if given is not None]
    for root in roots:
        yield from ir.walk(root)


def _in_block(block: list[ir.Stmt]) -> Iterator[ir.Part]:
    for statement in ir.statements(block):
        yield statement
        if isinstance(statement, ir.Try):
            yield from statement.handlers
        for root in statement.expressions():
            yield from ir.walk(root)
        if isinstance(statement, ir.Assign) and statement.annotation is not None:
            yield from ir.walk(statement.annotation)


def attached(text: str) -> tuple[ir.Module, cst.Module]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    lowered = lower(tree)
    module = cst.parse_module(text)
    attach_all(tree, module)
    return lowered, module


def misplaced(text: str) -> list[str]:
    """The pieces of a text whose node in libcst's tree is another, or stands elsewhere."""
    lowered, module = attached(text)
    places = _Places(text)
    spans = Spans(module, text)
    inside = _in_formatted(lowered)
    return [
        f"{part.row}: {type(part).__name__} {ast.dump(part.origin)[:80]}"
        for part in parts(lowered)
        if not _is_same(part) or (id(part.origin) not in inside and not _stands_there(part, spans, places))
    ]


def _is_same(part: ir.Part) -> bool:
    """Whether the node says what the piece says."""
    node = part.node
    if isinstance(part, ir.Name) and isinstance(part.origin, ast.Name):
        return isinstance(node, cst.Name) and node.value == part.id
    if isinstance(part, ir.Attr):
        return isinstance(node, cst.Attribute) and node.attr.value == part.attr
    if isinstance(part, ir.Call):
        return isinstance(node, cst.Call) and len(node.args) == len(part.args) + len(part.keywords)
    if isinstance(part, (ir.Function, ir.Class)) and part.name not in ("<module>", "<lambda>"):
        return isinstance(node, (cst.FunctionDef, cst.ClassDef)) and node.name.value == part.name
    if isinstance(part, ir.Stmt) and isinstance(part.origin, ast.stmt):
        whole = part.line if isinstance(node, cst.BaseSmallStatement) else node
        return isinstance(
            whole, (cst.SimpleStatementLine, cst.SimpleStatementSuite, cst.BaseCompoundStatement)
        )
    return isinstance(node, cst.CSTNode)


def _stands_there(part: ir.Part, spans: Spans, places: _Places) -> bool:
    origin = part.origin
    if isinstance(origin, _OTHER_SPANS) or (
        isinstance(part, ir.Seq) and isinstance(part.node, cst.Subscript)
    ):
        return True
    start, end = spans.offsets(part.node)
    if start != places.at(origin.lineno, origin.col_offset):
        return False
    return isinstance(origin, _BLOCKS) or end == places.at(origin.end_lineno, origin.end_col_offset)


class _Places:
    """From Python's rows and columns, which count bytes, to offsets."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(found.end() for found in re.finditer(r"\r\n|\r|\n", text))]

    def at(self, row: int, column: int) -> int:
        start = self.starts[row - 1]
        line = self.text[start : self.starts[row] if row < len(self.starts) else len(self.text)]
        return start + len(line.encode()[:column].decode())


def _in_formatted(lowered: ir.Module) -> set[int]:
    """What stands in f-strings: before 3.12, Python does not know where."""
    found: set[int] = set()
    for part in parts(lowered) if sys.version_info < (3, 12) else ():
        if isinstance(part, ir.Text):
            found |= {id(inner) for inner in ast.walk(part.origin)} - {id(part.origin)}
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


def _readable(path: Path) -> str | None:
    try:
        text = path.read_bytes().decode("utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    return text


def _sources() -> list[Path]:
    found = [
        path
        for folder in ("fixtures", "gpulint/analysis", "rules")
        for path in sorted((ROOT / folder).rglob("*.py"))
    ]
    return [*found[::8], *sorted((ROOT / "tests").glob("*.py"))[::12], *sorted(STDLIB.glob("*.py"))[::40]]


@pytest.mark.slow
def test_every_piece_of_many_files_finds_its_place() -> None:
    for path in _sources():
        text = _readable(path)
        if text is not None:
            assert misplaced(text) == [], path


@pytest.mark.slow
def test_torch_finds_its_place() -> None:
    torch = pytest.importorskip("torch")
    for path in sorted((Path(torch.__file__).parent / "optim").glob("*.py"))[::4]:
        assert misplaced(path.read_text(encoding="utf-8")) == [], path


# --- the lowered form ----------------------------------------------------------------------------------------------


def first(text: str) -> Any:
    """The first expression of a text."""
    (root, *_) = lower(ast.parse(text)).body.body[0].expressions()
    return root


def test_boolean_operators_lean_left_with_an_origin_each() -> None:
    whole = first("a and b and c")
    inner = whole.operands[0]
    assert (whole.op, inner.op) == ("and", "and")
    assert [part.id for part in (*inner.operands, whole.operands[1])] == ["a", "b", "c"]
    assert whole.origin is not inner.origin


def test_a_sum_of_many_terms_is_no_recursion() -> None:
    whole = first(" + ".join("a" * 900))
    assert sum(isinstance(part, ir.Name) for part in ir.walk(whole)) == 900


def test_arguments_keep_the_order_of_the_text() -> None:
    call = first("f(a, k=b, *c, **d)")
    assert [type(arg).__name__ for arg in call.args] == ["Name", "Starred"]
    assert [name for name, _ in call.keywords] == ["k", None]


def test_names_of_functions_and_classes() -> None:
    module = lower(ast.parse("class A:\n    def m(self):\n        def g(): pass\n        return lambda: 1\n"))
    names = {function.qualname for function in module.functions}
    assert names == {"<module>", "A.m", "A.m.<locals>.g", "A.m.<locals>.<lambda>"}
    assert list(module.classes["A"].methods) == ["m"]


def test_imports_by_the_names_they_bind() -> None:
    module = lower(ast.parse(SNIPPETS["imports"]))
    assert module.imports == {
        "a": "a", "b": "b", "f": "d.e", "g": ".g", "j": ".h.i", "m": "k.l.m", "n": "k.l.n", "*o": "o", "*..": "..",
    }  # fmt: skip


def test_strings_that_only_stand_there_are_no_statements() -> None:
    module = lower(ast.parse(SNIPPETS["docstrings"]))
    (function,) = [function for function in module.functions if function.name == "f"]
    assert [type(statement).__name__ for statement in function.body] == ["ExprStmt", "ExprStmt"]


def test_rows_are_those_of_the_text() -> None:
    module = lower(ast.parse("@a\n\ndef f():\n    b\n"))
    (function,) = [function for function in module.functions if function.name == "f"]
    assert (function.row, function.body[0].row) == (3, 4)


# --- the attachment ------------------------------------------------------------------------------------------------


def test_nodes_are_there_only_after_the_tree_was_asked_for() -> None:
    both = Trees("x = f(a)\n")
    statement = lower(both.tree).body.body[0]
    with pytest.raises(ir.Unattached, match="repair"):
        _ = statement.node
    assert both.module is both.module
    assert isinstance(statement.node, cst.Assign)
    assert isinstance(statement.line, cst.SimpleStatementLine)


def test_a_byte_order_mark_is_no_code() -> None:
    both = Trees("\ufeffx = 1\n")
    assert lower(both.tree).body.body[0].row == 1
    assert isinstance(both.module, cst.Module)


def test_trees_that_differ_give_the_statement() -> None:
    tree = ast.parse("x = f(a) + b\ny = c\n")
    lowered = lower(tree)
    module = cst.parse_module("x = 1\ny = c\n")
    attach_all(tree, module)
    one, other = lowered.body.body
    line = module.body[0]
    assert isinstance(line, cst.SimpleStatementLine)
    assert {id(part.node) for root in one.expressions()[1:] for part in ir.walk(root)} == {id(line.body[0])}
    assert isinstance(other.expressions()[1].node, cst.Name)


def test_code_for_another_python_is_refused_with_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    newer = Flaw("syntax error: expected '('", 2, 6)
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
