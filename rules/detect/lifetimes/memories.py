"""Replay memories that are handed a tensor of priorities: they take it apart, and keep a view of the batch for each sample."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.lookup import with_words
from gpulint.analysis.questions.reached.dispatch import class_of, runs
from gpulint.analysis.torch.holders import PRIORITY_METHODS
from gpulint.analysis.values.arguments import bind_sources
from gpulint.answers import Answer, Question, left_open, proven, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_COPIES = frozenset({"clone", "cpu", "numpy", "tolist", "item", "cuda", "contiguous", "float"})
_CONVERTS = frozenset({"numpy", "item", "tolist", "cpu", "asarray", "array", "float", "clone"})
_DEPTH = 3


def kept_priorities(file: FileAnalysis) -> list[Suspicion]:
    """`memory.update_priorities(indices, loss.detach())`: the memory takes a tensor apart and keeps the parts."""
    found: list[Suspicion] = []
    for function in with_words(file, PRIORITY_METHODS):
        for statement, call in ir.calls(function.body):
            if call.method in PRIORITY_METHODS and isinstance(call.func, ir.Attr):
                given = next((arg for arg in call.args if _is_detached(function, arg)), None)
                if given is not None:
                    found.append(_prioritised(file, function, statement, call, given))
    return found


def _is_detached(function: ir.Function, expr: ir.Expr, depth: int = 2) -> bool:
    """`loss.detach()`, `td.abs().data`, or a name of such a thing: a tensor on its device."""
    if isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr):
        if expr.method in _COPIES:
            return False
        return expr.method == "detach" or _is_detached(function, expr.func.base, depth)
    if isinstance(expr, ir.Attr) and expr.attr == "data":
        return True
    if isinstance(expr, ir.Op):
        return any(_is_detached(function, part, depth) for part in expr.operands)
    if isinstance(expr, ir.Name) and depth:
        values = [
            s.value
            for s in ir.statements(function.body)
            if isinstance(s, ir.Assign) and any(t.path == expr.id for t in s.targets)
        ]
        return bool(values) and values[-1] is not None and _is_detached(function, values[-1], depth - 1)
    return False


def _prioritised(
    file: FileAnalysis, function: ir.Function, stmt: ir.Stmt, call: ir.Call, given: ir.Expr
) -> Suspicion:
    return Suspicion(
        given,
        call.func.path or call.method,
        f"`{call.func.path or call.method}` is handed a tensor, and keeps one view of it for each sample",
        "each view holds the storage of its whole batch on the GPU: hand over `.cpu().numpy()` or `.tolist()`",
        "a tensor object for each sample of the memory, and one small allocation for every batch that one of them is of",
        (
            proven(Question.TENSOR, "it is detached right there, and not copied"),
            _memory(file, function, stmt, call, given),
        ),
    )


def _memory(
    file: FileAnalysis, function: ir.Function, stmt: ir.Stmt, call: ir.Call, given: ir.Expr
) -> Answer:
    """What the memory does with it, where its class is in sight."""
    project = file.project
    others = project.files_defining(file.filename, call.method, b"self") if project is not None else []
    for other in (file, *others):
        for method in other.module.functions:
            if method.name != call.method or method.cls is None:
                continue
            place = (method, "" if other is file else other.filename)
            if other.evidence[method].called & _CONVERTS:
                return refuted(Question.READS, "the memory takes numbers of it", *place)
            param = next((n for n, value in bind_sources(method, call, True).items() if value is given), "")
            if _writes_whole(method, {param}):
                return refuted(
                    Question.READS, "the memory copies it into something of its own at once", *place
                )
            if runs(function, stmt, call, method) and _keeps_elements(method, {param}, frozenset()):
                clause = f"`{method.qualname}` keeps what it takes out of it, as it is"
                return proven(Question.READS, clause, *place)
    return left_open(Question.READS, "whether the memory takes numbers of it is not shown")


def _keeps_elements(
    method: ir.Function, whole: set[str], single: frozenset[str], depth: int = _DEPTH
) -> bool:
    """Whether a method puts an element of what it is given (`whole`), or one that it is given (`single`), into something of its
    object, itself or by a method of something that the object has."""
    elements = set(single)
    for statement in ir.statements(method.body):
        if isinstance(statement, ir.For):
            elements |= set(_taken(statement.target, statement.iterable, whole))
        for part in ir.own_parts(statement):
            for target, iterable, _ in part.clauses if isinstance(part, ir.Comp) else ():
                elements |= set(_taken(target, iterable, whole))
        if isinstance(statement, ir.Assign) and statement.value is not None:
            if isinstance(statement.value, (ir.Name, ir.Sub)) and _is_of(statement.value, whole, elements):
                if any(isinstance(t, ir.Sub) and _is_own(method, t.base) for t in statement.targets):
                    return True
            if _computes(statement.value, whole):
                whole |= {target.path for target in targets(statement) if target.path is not None}
    return any(_is_put(method, call, elements, depth) for _, call in ir.calls(method.body))


def _writes_whole(method: ir.Function, whole: set[str]) -> bool:
    """`self.priorities[indices] = priorities`: into places of a tensor or an array, all at once."""
    for statement in ir.statements(method.body):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            value = statement.value
            of_it = isinstance(value, (ir.Name, ir.Op, ir.Call)) and any(
                part.path in whole for part in ir.walk(value) if part.path is not None
            )
            if of_it and any(isinstance(t, ir.Sub) and _is_own(method, t.base) for t in statement.targets):
                return True
            if of_it:
                whole |= {target.path for target in targets(statement) if target.path is not None}
    return False


def _taken(target: ir.Expr, iterable: ir.Expr, whole: set[str]) -> Iterator[str]:
    """The names that a loop binds to elements of the whole: `p` of `for i, p in zip(indices, priorities)`."""
    pairs = [(target, iterable)]
    if isinstance(iterable, ir.Call) and isinstance(target, ir.Seq):
        if iterable.method == "zip" and len(iterable.args) == len(target.items):
            pairs = list(zip(target.items, iterable.args, strict=True))
        elif iterable.method == "enumerate" and iterable.args and len(target.items) == 2:
            pairs = [(target.items[1], iterable.args[0])]
    for one, source in pairs:
        if source.path in whole and one.path is not None:
            yield one.path


def _is_of(value: ir.Expr, whole: set[str], elements: set[str]) -> bool:
    if isinstance(value, ir.Sub):
        return value.base.path in whole
    return value.path in elements


def _computes(value: ir.Expr, whole: set[str]) -> bool:
    """`priorities ** alpha`, `torch.pow(priorities, alpha)`, `priorities + eps`: a tensor of as many, on the same device."""
    if isinstance(value, ir.Op):
        return any(part.path in whole or _computes(part, whole) for part in value.operands)
    if isinstance(value, ir.Call) and value.method in (
        "pow",
        "abs",
        "clamp",
        "add",
        "squeeze",
        "view",
        "flatten",
    ):
        base = value.func.base if isinstance(value.func, ir.Attr) else None
        return any(part.path in whole for part in (*value.args, *((base,) if base is not None else ())))
    return False


def _is_put(method: ir.Function, call: ir.Call, elements: set[str], depth: int) -> bool:
    """`self.tree.append(p)`, or `self.tree.update(i, p)` of a class that keeps it."""
    base = call.func.base if isinstance(call.func, ir.Attr) else None
    given = [arg for arg in call.args if arg.path in elements]
    if base is None or not given or not depth or not _is_own(method, base):
        return False
    if call.method in ("append", "appendleft"):
        return True
    owner = class_of(method.home, method, base)
    inner = owner.method(call.method) if owner is not None else None
    if inner is None:
        return False
    names = {name for name, value in bind_sources(inner, call, True).items() if value in given}
    return _keeps_elements(inner, set(), frozenset(names), depth - 1)


def _is_own(method: ir.Function, expr: ir.Expr) -> bool:
    return bool(method.params) and (expr.path or "").startswith(f"{method.params[0].name}.")
