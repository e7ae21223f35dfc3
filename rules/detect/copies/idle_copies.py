"""Copies of a network that are kept up to date, or only kept, and that nobody runs, saves or puts back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.checkpoints import uses_cuda
from gpulint.rules.detect.lifetimes.network_copies import is_copy_of_network
from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.code.loaded import parents_of
from gpulint.analysis.file.lookup import called_in_project, with_words
from gpulint.analysis.questions.device.placement import on_gpu
from gpulint.analysis.questions.outlives.through_steps import is_held_through_steps
from gpulint.analysis.questions.size.states import copy_doubts
from gpulint.answers import Answer, Question, left_open, proven

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_DEPTH = 3  # how far a copy is followed into what it is handed to
# What gives a network's own tensors, and what changes it where it is, or how it is used, and gives nothing else.
_TAKING = frozenset(
    "state_dict parameters named_parameters buffers named_buffers modules items values".split()
)
_SETTING = frozenset("eval train to cuda load_state_dict requires_grad_ half float".split())


def idle_copies(file: FileAnalysis) -> list[Suspicion]:
    """The copies of networks that a name keeps on the GPU while steps run, for nobody."""
    found: list[Suspicion] = []
    for function in with_words(file, frozenset({"deepcopy"})):
        for statement in ir.statements(function.body):
            value = statement.value if isinstance(statement, ir.Assign) else None
            if not isinstance(value, ir.Call) or not is_copy_of_network(file, function, value):
                continue
            names = [target for target in targets(statement) if isinstance(target, ir.Name)]
            if len(names) == 1 and is_held_through_steps(function, statement, names[0].id):
                if not _is_used(function, names[0].id, statement, _DEPTH):
                    found.append(_suspicion(file, function, value, names[0].id))
    return found


def _suspicion(file: FileAnalysis, function: ir.Function, copy: ir.Call, name: str) -> Suspicion:
    network = copy.args[0].path or ""
    return Suspicion(
        copy,
        name,
        f"`{name}` keeps a copy of all of `{network}` beside it, which is never run, saved or put back",
        "whatever keeps it up to date does so for nobody: leave it out, or keep it on the host",
        "the weights once more, on the GPU (173 MiB for a 4-layer language model)",
        tuple(_answers(file, function, network)),
    )


def _answers(file: FileAnalysis, function: ir.Function, network: str) -> Iterator[Answer]:
    yield proven(Question.READS, "no statement reads the copy but to change it")
    if on_gpu(file, function, network, uses_cuda(file)):
        yield proven(Question.DEVICE, "the network is moved to a GPU")
    else:
        yield left_open(Question.DEVICE, "whether the network is on a GPU is not shown")
    yield from copy_doubts(lambda question: question(file), function, network)


def _is_used(function: ir.Function, name: str, since: ir.Stmt | None, depth: int) -> bool:
    """Whether a function does anything with what a name holds but to change it where it is."""
    home: FileAnalysis = function.home
    within = (one for one in home.module.functions if one is not function and _sees(one, function))
    if not depth or any(name in home.evidence[one].words for one in within):
        return True
    names, taken = _parts(function, name)
    return any(
        isinstance(part, ir.Name)
        and part.id in names
        and not _is_idle(function, statement, part, names, depth)
        for statement in ir.statements(function.body)
        if statement is not since and id(statement) not in taken
        for part in ir.own_parts(statement)
    )


def _sees(function: ir.Function, outer: ir.Function) -> bool:
    """Whether a function may read the names of another one: it stands in it, or that is the script itself."""
    return outer.name == "<module>" or (function is not outer and function.is_within(outer))


def _parts(function: ir.Function, name: str) -> tuple[set[str], set[int]]:
    """The names of a network and of its tensors, and the statements that only bind them."""
    names, taken = {name}, set[int]()
    for statement in (*ir.statements(function.body), *ir.statements(function.body)):
        pairs: list[tuple[ir.Expr, ir.Expr]] = []
        if isinstance(statement, ir.Assign) and statement.value is not None and len(statement.targets) == 1:
            pairs = _pairs(statement.targets[0], statement.value)
        elif isinstance(statement, ir.For):
            pairs = _gone_through(statement)
        for target, value in pairs:
            if _is_part(value, names):
                bound = {part.id for part in ir.walk(target) if isinstance(part, ir.Name)}
                if isinstance(statement, ir.For) or isinstance(target, ir.Name):
                    names |= bound
                    taken.add(id(statement))
    return names, taken


def _pairs(target: ir.Expr, value: ir.Expr) -> list[tuple[ir.Expr, ir.Expr]]:
    """What is bound to what: `old, new = mean.state_dict(), net.state_dict()` are two."""
    if isinstance(target, ir.Seq) and isinstance(value, ir.Seq):
        return list(zip(target.items, value.items, strict=False))
    return [(target, value)]


def _gone_through(loop: ir.For) -> list[tuple[ir.Expr, ir.Expr]]:
    """What a loop's variables go through, those of a `zip` one by one."""
    iterable = loop.iterable
    zipped = isinstance(iterable, ir.Call) and iterable.func.path == "zip" and isinstance(loop.target, ir.Seq)
    if zipped and isinstance(iterable, ir.Call) and isinstance(loop.target, ir.Seq):
        return list(zip(loop.target.items, iterable.args, strict=False))
    return [(loop.target, iterable)]


def _is_part(value: ir.Expr, names: set[str]) -> bool:
    """`ema.state_dict()`, `ema.parameters()`, and `state.items()` of a name of one of these."""
    while isinstance(value, ir.Call) and isinstance(value.func, ir.Attr) and value.method in _TAKING:
        value = value.func.base
        if value.path in names:
            return True
    return False


def _changes(call: ir.Call) -> bool:
    """Whether a method changes what it is called on, and gives no more than that."""
    return call.method in _SETTING or (call.method.endswith("_") and not call.method.endswith("__"))


def _root(expr: ir.Expr) -> str | None:
    while isinstance(expr, (ir.Sub, ir.Attr, ir.Call)):
        if isinstance(expr, ir.Call):
            if not isinstance(expr.func, ir.Attr) or not (expr.method in _TAKING or _changes(expr)):
                return None
            expr = expr.func
        expr = expr.base
    return expr.path


def _is_idle(function: ir.Function, statement: ir.Stmt, read: ir.Name, names: set[str], depth: int) -> bool:
    """Whether a read of a copy's name only serves to change the copy: in place, by an assignment, or in what is called."""
    if isinstance(statement, ir.Assign) and all(_root(target) in names for target in targets(statement)):
        return True
    if isinstance(statement, ir.AugAssign):
        return _root(statement.target) in names
    if isinstance(statement, ir.ExprStmt) and isinstance(call := statement.value, ir.Call):
        if _changes(call) and isinstance(call.func, ir.Attr) and _root(call.func.base) in names:
            return True
    around = parents_of(statement).get(id(read))
    callee = called_in_project(function, around) if isinstance(around, ir.Call) else None
    if callee is None or callee.cls is not None or not isinstance(around, ir.Call):
        return False
    given = [param for param, arg in zip(callee.params, around.args, strict=False) if arg is read]
    given += [
        param
        for param in callee.params
        for name, arg in around.keywords
        if arg is read and name == param.name
    ]
    return len(given) == 1 and not _is_used(callee, given[0].name, None, depth - 1)
