"""Both lowerings, from Python's own tree and from libcst's, must give the same form: the first decides for the second."""

from __future__ import annotations

import ast
import sysconfig
import warnings
from pathlib import Path
from typing import Any

import libcst as cst
import pytest

from gpulint.analysis.code import ir
from gpulint.analysis.code.lower import lower
from gpulint.analysis.code.lower_ast import lower_ast

ROOT = Path(__file__).parent.parent
STDLIB = Path(sysconfig.get_paths()["stdlib"])


def dump(part: Any) -> Any:
    """The lowered form as nested tuples, without nodes; functions and classes by name where they are only referred to."""
    if isinstance(part, (list, tuple)):
        return [dump(item) for item in part]
    if isinstance(part, ir.FunctionDef):
        return ("def", part.function.qualname)
    if isinstance(part, ir.LambdaExpr):
        return ("lambda", part.function.qualname)
    if isinstance(part, ir.ClassDef):
        return ("class", part.cls.qualname)
    if isinstance(part, ir.Function):
        owner = part.cls.qualname if part.cls else None
        parent = part.parent.qualname if part.parent else None
        kinds = (part.is_async, part.is_generator)
        own = [dump(getattr(part, name)) for name in ("name", "qualname", "params", "decorators", "body")]
        return ("function", owner, parent, kinds, own)
    if isinstance(part, ir.Class):
        methods = list(part.methods)
        own = [dump(getattr(part, name)) for name in ("name", "qualname", "bases", "decorators", "body")]
        return ("Class", methods, own)
    if isinstance(part, ir.Module):
        functions = [dump(function) for function in part.functions]
        return (functions, {name: dump(cls) for name, cls in part.classes.items()}, part.imports)
    if isinstance(part, (ir.Expr, ir.Stmt, ir.Param, ir.Handler)):
        names = [name for cls in type(part).__mro__ for name in getattr(cls, "__slots__", ())]
        fields = [
            (name, dump(getattr(part, name))) for name in sorted(set(names) - {"node", "line", "_calls"})
        ]
        return (type(part).__name__, fields)
    return (type(part).__name__, repr(part))


def assert_same(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
        quick = dump(lower_ast(tree))
        full = dump(lower(cst.parse_module(text)))
    if quick != full:
        assert _first_difference(quick, full) is None


def _first_difference(a: Any, b: Any) -> Any:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and len(a) == len(b):
        for x, y in zip(a, b, strict=True):
            if x != y:
                return _first_difference(x, y)
    if isinstance(a, dict) and isinstance(b, dict) and list(a) == list(b):
        return next(_first_difference(a[key], b[key]) for key in a if a[key] != b[key])
    return (a, b) if a != b else None


SNIPPETS = {
    "numbers and strings": "x = 1, -2, --3, +4, -True, 0x1f, 1_0, 2j, 1e3, 'a', b'b', r'\\d', 'a' 'b', b'a' b'b', ...",
    "formatted": "x = f'{a!r:{w}} {{}} {b=}', 'p' f'{f(c)}' 'q' f\"{d['k']}\", f''",
    "docstrings": "'''m'''\ndef f():\n    'a' 'b'\n    b'c'\n    ...\n    f'{x}'\n    1\n",
    "calls": "f(a, *b, c, k=1, **d, m=2)\nf(k=(lambda: 1), *[lambda: 2])\nf(x for x in y)\nf(*a, **b)(c)[d].e()\n",
    "subscripts": "x[1], x[1, 2], x[1,], x[(1, 2)], x[a:b], x[a:b:c, ..., None], x['k'].y, x[:], x[-1]\nx['a' 'b'] = 1\n",
    "operators": "a + b * c - d ** e // f % g @ h | i & j ^ k << l >> m\nnot a and b or c and (d and e) or f\n~a\n",
    "comparisons": "a < b, a < b < c, a is b, a is not b, a in b, a not in b, a == b, a != b, a == b == c\n",
    "displays": "[], (), [a, *b], (a,), {a, *b}, {}, {a: b, **c}, [[a], (b, c)]\n",
    "comprehensions": "[a for a, b in c if d if e for f in g], {a for a in b}, {a: b for a in c}, (a async for a in b)\n",
    "lambdas": "f = lambda a, *b, c=(lambda: 1), **d: lambda: a\n",
    "assignments": "a = b = c\na, (b, *c) = d\na: int\na: int = 1\na.b: 'x' = 2\na[0] += 1\na @= b\na >>= c\n(a := b)\n",
    "deletes": "del a\ndel a, b.c, d[0]\ndel (a, b)\ndel (a, b), c\n",
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
    "parentheses": "(a).b, ((a, b)), (a)(b), ((a) + (b)), (a and b) and c, -(-(1))\n",
}


@pytest.mark.parametrize("text", SNIPPETS.values(), ids=SNIPPETS)
def test_snippets_lower_alike(text: str) -> None:
    assert_same(text)


@pytest.mark.parametrize(
    "folder",
    ["fixtures", "rules", *(pytest.param(name, marks=pytest.mark.slow) for name in ("tests", "gpulint"))],
)
def test_project_lowers_alike(folder: str) -> None:
    for path in sorted((ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if _is_valid(text):
            assert_same(text)


@pytest.mark.parametrize(
    "name", ["argparse.py", "dataclasses.py", "typing.py", "ast.py", "inspect.py", "enum.py"]
)
def test_standard_library_lowers_alike(name: str) -> None:
    assert_same((STDLIB / name).read_text(encoding="utf-8"))


@pytest.mark.slow
def test_torch_lowers_alike() -> None:
    torch = pytest.importorskip("torch")
    optim = Path(torch.__file__).parent / "optim"
    for path in sorted(optim.glob("*.py")):
        assert_same(path.read_text(encoding="utf-8"))


def _is_valid(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True
