"""Write the labelled programs in another way that means the same, and count where the rules then tell something else.

    python benchmarks/rewrites.py                       all rewritings of all programs
    python benchmarks/rewrites.py 200 --only alias      of 200 at random, one of them
    python benchmarks/rewrites.py --out results/rewrites-DATE.json

What is told is compared by rule and confidence, with what is told of the same program as `ast.unparse` writes it. No rewriting changes
what a program does; one that gives a part of an expression a name lets go of it later, which GPU401 may tell.
"""

from __future__ import annotations

import ast
import copy
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from _measure import about, documented, write  # noqa: E402
from test_cases import Case, all_cases, laid_out, rule_set  # noqa: E402

from gpulint.lint.linter import lint_text  # noqa: E402

Told = Counter[str]  # by code, with `?` where it is told with low confidence


class _Named(ast.NodeTransformer):
    """Gives a part of a statement a name in the statement before: `part` finds it, with what puts another node in its place."""

    def __init__(self, part: Callable[[ast.stmt], tuple[ast.expr, Callable[[ast.expr], Any]] | None]) -> None:
        self.part, self.names = part, 0

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            several = getattr(node, field, None)
            if isinstance(several, list) and not isinstance(node, ast.ClassDef):
                setattr(node, field, [each for one in several for each in self._of(one)])
        return node

    def _of(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        found = self.part(statement)
        if found is not None:
            self.names += 1
            name, (value, put) = f"_part{self.names}", found
            put(ast.Name(name, ast.Load()))
            yield ast.Assign([ast.Name(name, ast.Store())], value)
        yield statement


def _argument(statement: ast.stmt) -> tuple[ast.expr, Callable[[ast.expr], Any]] | None:
    """The first argument of a call, or the left side of an operation: `x = f(g(y))`."""
    is_usual = isinstance(statement, (ast.Assign, ast.Expr, ast.Return))
    if any(isinstance(one, (ast.Await, ast.Yield, ast.NamedExpr)) for one in ast.walk(statement)):
        return None
    match statement.value if is_usual else None:
        case ast.BinOp(left=ast.Call() | ast.BinOp() as left) as whole:
            return left, partial(setattr, whole, "left")
        case ast.Call(func, [ast.Call() | ast.BinOp() as first, *_]) as whole:
            is_plain = not any(isinstance(one, ast.Call) for one in ast.walk(func))
            return (first, partial(whole.args.__setitem__, 0)) if is_plain else None
    return None


def _iterated(statement: ast.stmt) -> tuple[ast.expr, Callable[[ast.expr], Any]] | None:
    """What a loop runs through."""
    is_named = isinstance(statement, ast.For) and not isinstance(statement.iter, ast.Name)
    return (statement.iter, partial(setattr, statement, "iter")) if is_named else None


def _returned(statement: ast.stmt) -> tuple[ast.expr, Callable[[ast.expr], Any]] | None:
    """What a function gives back."""
    value = statement.value if isinstance(statement, ast.Return) else None
    plain = value is None or isinstance(value, (ast.Name, ast.Constant))
    return None if plain else (value, partial(setattr, statement, "value"))


def _called_on(statement: ast.stmt) -> tuple[ast.expr, Callable[[ast.expr], Any]] | None:
    """What a method is called on: `self.losses.append(loss)`."""
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Attribute() | ast.Subscript() as part) as func)):
            return part, partial(setattr, func, "value")
    return None


def _entered(statement: ast.stmt) -> tuple[ast.expr, Callable[[ast.expr], Any]] | None:
    """The context manager of a `with`."""
    match statement:
        case ast.With([ast.withitem(ast.Call() as call, None) as item]):
            return call, partial(setattr, item, "context_expr")
    return None


def _renamed(tree: ast.Module) -> ast.Module:
    """All names that a function gives to something, but its parameters, become `q0`, `q1`, …"""
    for function in [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]:
        inside = [*ast.walk(function)]
        kept = {one.arg for one in inside if isinstance(one, ast.arg)}
        kept |= {each for one in inside if isinstance(one, (ast.Global, ast.Nonlocal)) for each in one.names}
        kept |= {one.name for one in inside if isinstance(one, (ast.FunctionDef, ast.ClassDef))}
        names = [one for one in inside if isinstance(one, ast.Name)]
        given = {one.id for one in names if isinstance(one.ctx, ast.Store)} - kept
        _rename(names, {name: f"q{at}" for at, name in enumerate(sorted(given))})
    return tree


def _imported(tree: ast.Module) -> ast.Module:
    """`import torch as th`, where nothing of it is imported by another name."""
    imports = [each for one in ast.walk(tree) if isinstance(one, ast.Import) for each in one.names]
    if not any(one.name.startswith("torch.") for one in imports):
        for one in imports:
            one.asname = "th" if one.name == "torch" else one.asname
        _rename([*ast.walk(tree)], {"torch": "th"} if any(one.asname == "th" for one in imports) else {})
    return tree


def _rename(nodes: Iterable[ast.AST], names: dict[str, str]) -> None:
    for one in nodes:
        if isinstance(one, ast.Name):
            one.id = names.get(one.id, one.id)


def _handed_on(tree: ast.Module) -> ast.Module:
    """Each function of the module becomes one that calls another, which does what it did."""
    body: list[ast.stmt] = []
    for one in tree.body:
        taken = one.args if isinstance(one, ast.FunctionDef) and not one.decorator_list else None
        yields = any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(one))
        if taken is not None and not (taken.vararg or taken.kwarg or taken.kwonlyargs or yields):
            inner = copy.deepcopy(one)
            inner.name, inner.args.defaults = f"do_{one.name}", []
            given: list[ast.expr] = [ast.Name(each.arg, ast.Load()) for each in taken.args]
            one.body = [ast.Return(ast.Call(ast.Name(inner.name, ast.Load()), given, []))]
            body.append(inner)
        body.append(one)
    tree.body = body
    return tree


REWRITINGS: dict[str, Callable[[ast.Module], ast.AST]] = {
    "argument": lambda tree: _Named(_argument).visit(tree),
    "iterated": lambda tree: _Named(_iterated).visit(tree),
    "returned": lambda tree: _Named(_returned).visit(tree),
    "called on": lambda tree: _Named(_called_on).visit(tree),
    "entered": lambda tree: _Named(_entered).visit(tree),
    "renamed": _renamed,
    "imported": _imported,
    "handed on": _handed_on,
}


def rewritten(case: Case, how: str = "") -> Case:
    """A case as `ast.unparse` writes it, rewritten in one way; its labels are gone."""
    files = case.files or {"": case.text}
    texts = {}
    for name, text in files.items():
        tree = ast.parse(text)
        tree = REWRITINGS[how](tree) if how else tree
        texts[name] = ast.unparse(ast.fix_missing_locations(tree))
    text = "".join(f"# file: {name}\n{each}\n" if name else each for name, each in texts.items())
    return Case(case.path, text, (), frozenset(), frozenset(), frozenset(), {})


def told(case: Case) -> Told:
    """What is told of a case, counted."""
    found = (one for name, text in laid_out(case) for one in lint_text(text, name, rule_set()))
    return Counter(one.code + ("?" if one.doubts else "") for one in found)


def changes(number: int, ways: list[str]) -> list[tuple[str, str, Told | None]]:
    """For one of the cases and each way that changes its text: what is told more or less, none where that is the same."""
    case = all_cases()[number]
    if any(not name.endswith(".py") for name in case.files):
        return []
    plain, found = rewritten(case), []
    before = told(plain)
    for how in ways:
        other = rewritten(case, how)
        if other.text != plain.text:
            more = told(other)
            more.subtract(before)
            difference = Counter({code: number for code, number in more.items() if number})
            found.append((case.name, how, difference or None))
    return found


def main() -> None:
    parser = documented(__doc__)
    parser.add_argument("cases", type=int, nargs="?", help="how many, at random (default: all)")
    parser.add_argument("--only", choices=REWRITINGS, action="append")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    numbers = range(len(all_cases()))
    chosen = sorted(random.Random(1).sample(numbers, min(asked.cases or len(numbers), len(numbers))))
    with ProcessPoolExecutor(2) as pool:
        several = pool.map(partial(changes, ways=asked.only or [*REWRITINGS]), chosen, chunksize=10)
        found = [each for one in several for each in one]
    table = {how: [sum(1 for _, by, _ in found if by == how), 0] for how in REWRITINGS}
    for name, how, difference in found:
        if difference is not None:
            table[how][1] += 1
            print(
                f"{how:10} {name}: {', '.join(f'{code} {more:+}' for code, more in sorted(difference.items()))}"
            )
    for how, (all_, other) in table.items():
        print(f"{how:10} {all_:4} programs rewritten, {other:3} told otherwise")
    if asked.out is not None:
        rows = [{"case": name, "rewriting": how, "told": dict(more)} for name, how, more in found if more]
        record = {**about("cpu"), "rewritten, told otherwise": table, "differences": rows}
        write(asked.out, record)


if __name__ == "__main__":
    main()
