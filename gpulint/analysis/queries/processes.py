"""Whether several processes run a place, each on a GPU of its own."""

from __future__ import annotations

import ast
from typing import Any, Final

from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import File, Function
from gpulint.analysis.queries.settings import VISIBLE, settings
from gpulint.analysis.syntax.nodes import last_name
from gpulint.answers import Answer, Question, left_open, proven

_DEEPEST: Final = 4


def by_every_process(evaluator: Evaluator, node: Any, frame: Frame) -> Answer | None:
    """What says that a place is run by each of several processes, or leaves it open; None where nothing says so."""
    by = _several(evaluator, frame.function, _DEEPEST, set())
    if by is None or _sees_its_own(evaluator, frame.function.file):
        return None
    for test, wanted in frame.flow.conditions(node):
        told = _one_only(evaluator, test, wanted, frame)
        if told == "surely":
            return None
        if told:
            clause = f"perhaps one process only runs it: `{ast.unparse(test)}`"
            return left_open(Question.REACHED, clause, test)
    return proven(Question.REACHED, "each of several processes runs it", by)


def _sees_its_own(evaluator: Evaluator, file: File) -> bool:
    """Whether each process lets itself see a GPU of its own: the one that it was saved from is that one then."""
    files = evaluator.program.searched(VISIBLE, file)
    several = (one for each in files for one in settings(evaluator, each) if one.variable == VISIBLE)
    return any(one.own and tells_processes_apart(evaluator, one.value, one.frame) for one in several)


def train_together(evaluator: Evaluator, file: File) -> bool:
    """Whether the program of a file calls, or imports, what trains one network by several processes."""
    kinds = (evaluator.table.knows(one) for one in ("torch.nn.parallel", "torch.distributed.fsdp"))
    names = {name for rows in kinds for name, row in rows.items() if row.does == "several processes"}
    files = {other for name in names for other in evaluator.program.searched(name, file)}
    bound = (one for other in files for one in other.body.flow.definitions_of("import"))
    imported = any(one.value.rpartition(".")[2] in names for one in bound)
    return imported or any(other.calls_named(name) for other in files for name in names)


def _several(evaluator: Evaluator, function: Function, depth: int, seen: set[Function]) -> Any:
    """The call in a function, in the constructor of its class, or in who calls it, that is for programs of several processes."""
    if function in seen or not depth:
        return None
    seen.add(function)
    init = evaluator.method(function.cls, "__init__") if function.cls is not None else None
    for one in (function, init):
        found = _of_several(evaluator, one) if one is not None else None
        if found is not None:
            return found
    for site in evaluator.callers(function):
        found = _several(evaluator, site.frame.function, depth - 1, seen)
        tests = site.frame.flow.conditions(site.call) if found is not None else ()
        if found is not None and not any(_one_only(evaluator, *one, site.frame) for one in tests):
            return found
    return None


def _of_several(evaluator: Evaluator, function: Function, deep: bool = True) -> Any:
    """The call in a function that is for programs of several processes, or makes an object of the project whose constructor has one."""
    table = evaluator.table
    frame = evaluator.root(function)
    known = {**table.knows("torch.distributed"), **table.knows("torch.nn.parallel")}
    names = {name for name, row in known.items() if row.does == "several processes"}
    bound = function.file.body.flow.definitions_of("import")
    names |= {one.key for one in bound if one.value.rpartition(".")[2] in names}
    for name, calls in function.flow.calls.items():
        if name not in names and not (deep and name[:1].isupper()):
            continue
        for call in calls:
            target = evaluator.value_of(call.func, frame)
            if evaluator.does(call, frame) == "several processes":
                return call
            init = evaluator.method(target.ref, "__init__") if target.kind == "class" else None
            if deep and init is not None and _of_several(evaluator, init, False) is not None:
                return call
    return None


def _one_only(evaluator: Evaluator, test: Any, wanted: bool, frame: Frame) -> str:
    """Whether a condition lets one process through, or the only one there is: `surely`, or by its names, `perhaps`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _one_only(evaluator, test.operand, not wanted, frame)
    if isinstance(test, ast.BoolOp):
        found = [_one_only(evaluator, one, wanted, frame) for one in test.values]
        return next((one for one in found if one), "")
    asked = test.left if isinstance(test, ast.Compare) else test
    told = tells_processes_apart(evaluator, asked, frame)
    if not told or not isinstance(test, ast.Compare):
        # `if distributed` has several, `if is_main_process()` one
        text, words = ast.unparse(test).lower(), evaluator.table.knows("named.processes")
        several = any(row.does == "several processes" and word in text for word, row in words.items())
        return told if told and several is not wanted else ""
    to_one = isinstance(test.ops[0], (ast.Eq, ast.Is, ast.Lt, ast.LtE))
    return told if to_one is wanted else ""


def tells_processes_apart(evaluator: Evaluator, asked: Any, frame: Frame) -> str:
    """Whether an expression tells processes apart."""
    perhaps = ""
    for one in ast.walk(asked):
        if isinstance(one, ast.Call) and one in frame.flow.parents:
            if evaluator.does(one, frame) == "several processes":
                return "surely"
        if any(word in last_name(one).lower() for word in evaluator.table.knows("named.processes")):
            perhaps = "perhaps"
    return perhaps
