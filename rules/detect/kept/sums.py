"""What the backwards of a function go through: the names of whole values and summands, and what such sums are taken from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.definitions import Definitions

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import additive_terms, unscaled
from gpulint.analysis.file.lookup import called_in_project
from gpulint.analysis.torch.names import REDUCTIONS
from gpulint.analysis.values.arguments import bind_sources

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


class Sums:
    """The sums of one function that go backward. `whole`: names that do; `parts`: containers and tuples that give terms."""

    def __init__(self, file: FileAnalysis, function: ir.Function, definitions: Definitions) -> None:
        self.file = file
        self.function = function
        self.definitions = definitions
        self._evidence = file.evidence[function]
        self.whole, self.parts = self._went_backward()

    def _went_backward(self) -> tuple[frozenset[str], frozenset[str]]:
        """The names that a backward of this function goes through as a whole or as a summand; and the containers and
        tuples that such a sum takes its terms from."""
        goes_back = any("backward" in name for name in self._evidence.called)
        elsewhere = self._by_own_method() | frozenset(self._handed_on())
        if not goes_back and not self._evidence.backward and not elsewhere:
            return frozenset(), frozenset()
        whole = set(self._evidence.backward | self._evidence.terms | elsewhere)
        parts: set[str] = set()
        wanted: list[tuple[str, ir.Stmt]] = []
        for statement in ir.statements(self.function.body):
            for call in ir.own_calls(statement):
                if "backward" in call.method:
                    terms: set[str] = set()
                    for given in (
                        *call.args[:1],
                        *((call.func.base,) if isinstance(call.func, ir.Attr) else ()),
                    ):
                        _summed(given, terms, parts)
                    whole |= {term for term in terms if call.method == "backward" and not call.args}
                    wanted += [(path, statement) for path in terms]
        seen: set[tuple[str, int]] = set()
        while wanted:
            path, statement = wanted.pop()
            if (path, id(statement)) not in seen and len(seen) < 60:
                seen.add((path, id(statement)))
                for term, at in self._terms(path, statement, parts):
                    whole.add(term)
                    wanted.append((term, at))
        return frozenset(whole), frozenset(parts)

    def _by_own_method(self) -> frozenset[str]:
        """`self.loss`, where the function calls a method of its object that goes backward through it."""
        info = self.file.class_of(self.function) if self.function.cls is not None else None
        if info is None or not info.backward:
            return frozenset()
        for name in self._evidence.called:
            method = info.method(name)
            if method is not None and method is not self.function:
                known = method.home.evidence[method].backward
                if any(path.startswith("self.") for path in known):
                    return frozenset(path for path in known if path.startswith("self."))
        return frozenset()

    def _handed_on(self) -> Iterator[str]:
        """The names given to a function in sight that goes backward through them: `self.update(network, optimizer, loss)`."""
        for _, call in ir.calls(self.function.body):
            named = [arg.path for arg in (*call.args, *(value for _, value in call.keywords))]
            callee = called_in_project(self.function, call) if any(named) else None
            if callee is None or callee is self.function:
                continue
            through = callee.home.evidence[callee].backward
            if through:
                for param, given in bind_sources(callee, call, callee.cls is not None).items():
                    if param in through and given.path is not None:
                        yield given.path

    def _terms(self, path: str, stmt: ir.Stmt, parts: set[str]) -> Iterator[tuple[str, ir.Stmt]]:
        """The summands of what a name has at a statement, where it is bound in one way only."""
        definitions, _ = self.definitions.reaching(path, stmt)
        if sum(definition.whole for definition in definitions) > 1:
            return
        for definition in definitions:
            if definition.element:
                iterable = definition.value
                if isinstance(iterable, ir.Call) and iterable.method in ("values", "items"):
                    iterable = iterable.func.base if isinstance(iterable.func, ir.Attr) else None
                if iterable is not None and iterable.path is not None:
                    parts.add(iterable.path)
            elif isinstance(definition.stmt, ir.AugAssign) and definition.stmt.op not in ("+", "-"):
                continue
            elif definition.value is not None and not definition.part:
                terms: set[str] = set()
                _summed(definition.value, terms, parts)
                yield from ((term, definition.stmt) for term in terms if term != path)


def _summed(value: ir.Expr, whole: set[str], parts: set[str]) -> None:
    """Note what a sum that goes backward is made of."""
    for term in additive_terms(value):
        term = unscaled(term)
        if term.path is not None:
            whole.add(term.path)
        elif isinstance(term, ir.Op) and term.op in ("if", "and", "or"):
            for branch in term.operands[term.op == "if" :]:
                _summed(branch, whole, parts)
        elif isinstance(term, ir.Call):
            _summed_by(term, whole, parts)
        if isinstance(term, ir.Sub) and term.base.path is not None:
            parts.add(term.base.path)


def _summed_by(call: ir.Call, whole: set[str], parts: set[str]) -> None:
    """`sum(losses)`, `torch.stack(losses).mean()`, `sum(losses.values())`, `sum(l for l in losses)`, `loss.mean()`."""
    if call.method in ("sum", "stack", "cat", "mean", "add", "fsum") and call.args:
        inner = call.args[0]
        if isinstance(inner, ir.Comp):
            inner = inner.clauses[0][1]
        if isinstance(inner, ir.Call) and inner.method in ("values", "items", "list") and not inner.args:
            inner = inner.func.base if isinstance(inner.func, ir.Attr) else inner
        if isinstance(inner, ir.Call) and inner.method == "list" and inner.args:
            inner = inner.args[0]
            if isinstance(inner, ir.Call) and isinstance(inner.func, ir.Attr) and inner.method == "values":
                inner = inner.func.base
        if inner.path is not None:
            parts.add(inner.path)
        elif isinstance(inner, ir.Seq):
            for item in inner.items:
                _summed(item, whole, parts)
        else:
            _summed(inner, whole, parts) if isinstance(inner, ir.Call) else None
    elif isinstance(call.func, ir.Attr) and call.method in REDUCTIONS | {
        "squeeze",
        "float",
        "to",
        "cuda",
        "view",
    }:
        _summed(call.func.base, whole, parts)
