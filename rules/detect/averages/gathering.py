"""Running averages updated with grad enabled: weights (EMA, target networks), statistics of activations, baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.rules.detect.averages.graphs import keeps_graph
from gpulint.rules.detect.averages.statistics import is_module_forward, of_statistics
from gpulint.rules.detect.averages.updates import Average, same
from gpulint.rules.detect.averages.values import of_values
from gpulint.rules.detect.averages.weights import PARAMETERS, of_weights

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import pairs
from gpulint.analysis.questions.backward.cutting import cuts_graph
from gpulint.analysis.values.values import Grad

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


def averages(file: FileAnalysis) -> list[Average]:
    """Every running average of the file that takes a graph in with each update."""
    functions = file.function_facts
    found: list[Average] = []
    known = {facts.function: facts for facts in functions}
    for function in file.module.functions:
        evidence = file.evidence[function]
        facts = known.get(function)
        if facts is not None and facts.role.is_test:
            continue
        if evidence.called & PARAMETERS and file.grad_at_entry(function) is Grad.ENABLED:
            elsewhere = (function,) if facts is None else facts.only_called_elsewhere
            for average in of_weights(file, function):
                average.only_called_elsewhere = elsewhere
                found.append(average)
        if is_module_forward(file, function) and file.grad_at_entry(function) is Grad.ENABLED:
            found += of_statistics(file, functions, function)
        if facts is not None:
            found += of_values(file, facts)
    for item in found:
        item.starts = _starts(item)
        if _is_given_on(item):
            item.against = "what it gives is computed from the average, and a backward may go through that"
    seen: set[int] = set()
    return [item for item in found if id(item.stmt) not in seen and not seen.add(id(item.stmt))]  # type: ignore[func-returns-value]


def _starts(average: Average) -> tuple[ir.Expr, ...]:
    """What else the function binds the average to with the same graph: `self.mean = mu` for the first batch."""
    names = {part.path for leaf in average.leaves for part in ir.walk(leaf) if isinstance(part, ir.Name)}
    found: list[ir.Expr] = []
    for statement in ir.statements(average.function.body):
        if statement is average.stmt or not isinstance(statement, ir.Assign):
            continue
        for target, value in pairs(statement):
            if same(target, average.target) and keeps_graph(
                value, {name for name in names if name is not None}
            ):
                found.append(value)
    return tuple(found)


def _is_given_on(average: Average) -> bool:
    """Whether what the function returns after the update was computed from the average."""
    carried: set[str] = set()
    for statement in _after(average.function.body, average.stmt):
        if isinstance(statement, ir.Return):
            if statement.value is not None and _reads(statement.value, average.target, carried):
                return True
        elif isinstance(statement, ir.AugAssign):
            if statement.target.path is not None and _reads(statement.value, average.target, carried):
                carried.add(statement.target.path)
        elif isinstance(statement, ir.Assign) and not same(statement.targets[0], average.target):
            for target, value in pairs(statement):
                if target.path is not None and _reads(value, average.target, carried):
                    carried.add(target.path)
    return False


def _reads(value: ir.Expr, target: ir.Expr, carried: set[str]) -> bool:
    """Whether an expression has the average, or what was computed from it, with its graph."""
    if same(value, target) or (value.path is not None and value.path in carried):
        return True
    if cuts_graph(value):
        return False
    return any(_reads(part, target, carried) for part in value.children())


def _after(block: list[ir.Stmt], origin: ir.Stmt) -> list[ir.Stmt]:
    """The statements that may run after `origin`, other branches left out."""
    for position, statement in enumerate(block):
        rest = [inner for later in block[position + 1 :] for inner in (later, *_inside(later))]
        if statement is origin:
            return rest
        for branch in statement.blocks():
            if any(inner is origin for inner in ir.statements(branch)):
                return _after(branch, origin) + rest
    return []


def _inside(statement: ir.Stmt) -> list[ir.Stmt]:
    return [inner for block in statement.blocks() for inner in ir.statements(block)]
