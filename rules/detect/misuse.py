"""Calls that do not do what they look like: grad modes entered by nothing, graphs kept by `backward`, gradients kept by
`zero_grad`. Read off the statements alone; no value is followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import is_periodic, targets
from gpulint.analysis.questions.grad.weights import weights_in_doubt
from gpulint.analysis.torch.backward import runs_backward
from gpulint.analysis.torch.names import ENABLE_GRAD, NO_GRAD
from gpulint.analysis.values.values import Grad
from gpulint.answers import Question, doubts_of, left_open

if TYPE_CHECKING:
    import libcst as cst

    from gpulint.analysis.file.facts import FunctionFacts
    from gpulint.analysis.file.program import FileAnalysis

_MODES = NO_GRAD | ENABLE_GRAD
_MODE_WORDS = frozenset(name.rsplit(".", 1)[-1] for name in _MODES)
# A captured graph replays into the same gradient tensors: there they must stay where they are.
_CAPTURING = re.compile(r"cuda_?graph|graphed|capture_begin", re.IGNORECASE)


@dataclass(slots=True)
class GradModeMisuse:
    """A grad mode without effect. `what` is "bare", "uncalled", "and", "class", "async" or "volatile".

    `rest` are the statements after a bare one in its block, where a `with` could hold them; of "volatile" those from
    its own to the end of the function or of the loop's body. `guarded`: something catches what an "uncalled" one raises.
    """

    what: str
    at: ir.Expr
    name: str
    stmt: ir.Stmt | None = None
    rest: tuple[ir.Stmt, ...] = ()
    call: ir.Call | None = None
    guarded: bool = False
    entries: tuple[ir.Function, ...] = ()  # where other files come in, if grad may be off by them
    also: tuple[ir.Call, ...] = ()  # more inputs of the same forwards that say it
    doubts: tuple[str, ...] = ()


@dataclass(slots=True)
class CreateGraph:
    """`backward(create_graph=True)`, where nothing lets go of the gradients before the iteration ends."""

    function: ir.Function
    call: ir.Call
    again: bool  # a later backward of the same iteration can free the graph
    in_loop: bool


@dataclass(slots=True)
class KeptGradients:
    """`zero_grad(set_to_none=False)`."""

    function: ir.Function
    call: ir.Call

    @property
    def argument(self) -> cst.CSTNode | None:
        """The argument that says so."""
        for argument in self.call.node.args:
            if argument.keyword is None or argument.keyword.value == "set_to_none":
                return argument  # type: ignore[no-any-return]
        return None


# --- grad modes ----------------------------------------------------------------------------------------------------


def grad_mode_misuses(file: FileAnalysis) -> list[GradModeMisuse]:
    """Every grad mode of the file that changes nothing."""
    found: list[GradModeMisuse] = []
    for function in file.module.functions:
        evidence = file.evidence[function]
        if evidence.words & _MODE_WORDS and file.grad_at_entry(function) is not Grad.DISABLED:
            found += _in_block(file, function, function.body, False)
        if "Variable" in evidence.called:
            found += _volatile(file, function)
        if function.is_async and not function.is_generator and _runs_network(file, function):
            found += [
                GradModeMisuse("async", item, function.name)
                for item in function.decorators
                if _mode(file, item) in NO_GRAD
            ]
    for cls in file.module.classes.values():
        marked = [item for item in cls.decorators if _mode(file, item) in NO_GRAD]
        if marked and not _guards_each_forward(file, cls):
            found += [GradModeMisuse("class", item, cls.name) for item in marked]
    return found


def _guards_each_forward(file: FileAnalysis, cls: ir.Class) -> bool:
    """Whether whatever the methods of a class run of networks, and that is something, they run with grad switched off."""
    methods = [file.facts.get(method) for method in cls.methods.values()]
    forwards = [forward for facts in methods if facts is not None for forward in facts.forwards]
    return bool(forwards) and all(forward.mode.grad is Grad.DISABLED for forward in forwards)


def _in_block(
    file: FileAnalysis, function: ir.Function, block: list[ir.Stmt], guarded: bool
) -> Iterator[GradModeMisuse]:
    for position, statement in enumerate(block):
        if isinstance(statement, ir.ExprStmt) and _is_bare(file, statement.value):
            rest = () if function is file.module.body else tuple(block[position + 1 :])
            name = _path(statement.value)
            yield GradModeMisuse("bare", statement.value, name, statement, rest)
        elif isinstance(statement, ir.With):
            for expr, _ in statement.items:
                if not isinstance(expr, ir.Call) and _mode(file, expr) in _MODES:
                    yield GradModeMisuse("uncalled", expr, _path(expr), statement, guarded=guarded)
                elif isinstance(expr, ir.Op) and expr.op in ("and", "or"):
                    dropped = expr.operands[0] if expr.op == "and" else expr.operands[1]
                    if isinstance(dropped, ir.Call) and _mode(file, dropped) in _MODES and _is_object(expr):
                        yield GradModeMisuse("and", dropped, _path(dropped), statement)
        for inner in statement.blocks():
            caught = isinstance(statement, ir.Try) and bool(statement.handlers)
            yield from _in_block(file, function, inner, guarded or caught)


def _is_object(expr: ir.Op) -> bool:
    """Whether both operands are calls: two contexts, of which `and` and `or` choose one."""
    return all(isinstance(operand, ir.Call) for operand in expr.operands)


def _is_bare(file: FileAnalysis, expr: ir.Expr) -> bool:
    if isinstance(expr, ir.Call) and (
        expr.keywords or not all(isinstance(arg, ir.Const) for arg in expr.args)
    ):
        return False
    return (
        _mode(file, expr) in NO_GRAD
    )  # a dropped enable_grad() costs nothing: where it is wanted, backward says so


def _mode(file: FileAnalysis, expr: ir.Expr) -> str:
    path = _path(expr)
    return (file.names.qualify(path) if path else None) or ""


def _path(expr: ir.Expr) -> str:
    return (expr.func.path if isinstance(expr, ir.Call) else expr.path) or ""


def _runs_network(file: FileAnalysis, function: ir.Function) -> bool:
    """Whether grad matters in a function: weights that are only sent around have no graph."""
    facts = file.facts.get(function)
    return facts is not None and bool(facts.forwards)


def _volatile(file: FileAnalysis, function: ir.Function) -> Iterator[GradModeMisuse]:
    facts = file.facts.get(function)
    if file.guards_itself(function) or (facts is not None and facts.grad_at_entry is Grad.DISABLED):
        return  # dead text: what it was meant for is done
    if facts is not None and facts.forwards and all(forward.module.frozen for forward in facts.forwards):
        return  # nothing that it goes through has a graph
    entries = facts.role.entries if facts is not None else (function,)
    forwards = facts.forwards if facts is not None else []
    given = [(one, {part.path for part in ir.walk(one.call) if part.path is not None}) for one in forwards]
    found: list[tuple[ir.Stmt, ir.Call]] = []
    for statement, call in ir.calls(function.body):
        value = call.keyword("volatile") if call.method == "Variable" else None
        bound = {target.path for target in targets(statement)}
        trains = facts is not None and facts.has_backward
        fed = [forward for forward, paths in given if bound & paths]
        if bound and not fed and (trains or function.name == "__init__"):
            continue  # a target or a constant: no network keeps activations for it
        if fed and all(forward.result.freed for forward in fed):
            continue  # a backward goes through what it is part of, which never was to be without grad
        if isinstance(value, ir.Const) and value.value is True and _mode(file, call).startswith("torch."):
            found.append((statement, call))
    doubts = _trained_doubts(file, facts) if found and facts is not None else ()
    for (statement, call), *others in _of_one_forward(function, found, {id(one.stmt) for one in forwards}):
        rest = () if function.is_generator else _from_here_on(file, function, statement)
        also = tuple(other for _, other in others)
        yield GradModeMisuse(
            "volatile", call, _path(call), statement, rest, call, entries=entries, also=also, doubts=doubts
        )


def _of_one_forward(
    function: ir.Function, found: list[tuple[ir.Stmt, ir.Call]], forwards: set[int]
) -> Iterator[list[tuple[ir.Stmt, ir.Call]]]:
    """The volatile inputs that stand side by side in a block, with no forward in between: one mistake, told once."""
    for block in ir.every_block(function.body):
        together: list[tuple[ir.Stmt, ir.Call]] = []
        for statement in block:
            together += [one for one in found if one[0] is statement]
            if together and any(id(inner) in forwards for inner in ir.statements([statement])):
                yield together
                together = []
        if together:
            yield together


def _trained_doubts(file: FileAnalysis, facts: FunctionFacts) -> tuple[str, ...]:
    """Why no network that a function runs may have weights that require grad; empty where one is not in doubt."""
    found = [weights_in_doubt(file, forward.module.network) for forward in facts.forwards]
    return doubts_of(left_open(Question.TRAINED, why) for why in dict.fromkeys(found)) if all(found) else ()


def _from_here_on(file: FileAnalysis, function: ir.Function, statement: ir.Stmt) -> tuple[ir.Stmt, ...]:
    """The statements from this one to the end of the function or of the loop's body that it stands in directly: under an
    `if`, the input is volatile in one phase only, and what follows serves the other as well."""
    blocks = [] if function is file.module.body else [function.body]
    blocks += [inner.body for inner in ir.statements(function.body) if isinstance(inner, (ir.For, ir.While))]
    for block in blocks:
        if statement in block:
            return tuple(block[block.index(statement) :])
    return ()


# --- graphs of gradients -------------------------------------------------------------------------------------------


def create_graphs(file: FileAnalysis) -> list[CreateGraph]:
    """Backwards that make gradients with a graph, which then stay on the parameters."""
    functions = file.function_facts
    forwards = [forward for facts in functions for forward in facts.forwards]
    found: list[CreateGraph] = []
    for function in file.module.functions:
        if not any(runs_backward(name) for name in file.evidence[function].called):
            continue
        for number, region in enumerate(_regions(function.body)):
            for position, statement in enumerate(region):
                calls = [call for call in _own_calls(statement) if _creates_graph(call)]
                later = region[position + 1 :] if calls else []
                starts_clean = calls and _starts_clean(region[:position], {f.stmt for f in forwards})
                if calls and not starts_clean and not any(_lets_go(item) for item in later):
                    again = any(runs_backward(call.method) for _, call in ir.calls(later))
                    found += [CreateGraph(function, call, again, number > 0) for call in calls]
    return found


def _starts_clean(before: list[ir.Stmt], forwards: set[ir.Stmt]) -> bool:
    """Whether the iteration resets the gradients before its first forward: no two graphs are ever alive."""
    for statement in before:
        if statement in forwards:
            return False
        if _lets_go(statement):
            return any(later in forwards for later in before)
    return False


def _regions(block: list[ir.Stmt]) -> Iterator[list[ir.Stmt]]:
    """The statements of a function by innermost loop, in source order: what runs in one iteration."""
    own: list[ir.Stmt] = []
    stack = list(reversed(block))
    loops: list[list[ir.Stmt]] = []
    while stack:
        statement = stack.pop()
        own.append(statement)
        if isinstance(statement, (ir.For, ir.While)):
            loops.append(statement.body)
            stack.extend(reversed(statement.orelse))
        else:
            for inner in reversed(statement.blocks()):
                stack.extend(reversed(inner))
    yield own
    for body in loops:
        yield from _regions(body)


def _own_calls(statement: ir.Stmt) -> Iterator[ir.Call]:
    for expr in ir.own_parts(statement):
        if isinstance(expr, ir.Call):
            yield expr


def _creates_graph(call: ir.Call) -> bool:
    value = call.keyword("create_graph")
    return runs_backward(call.method) and isinstance(value, ir.Const) and value.value is True


def _lets_go(statement: ir.Stmt) -> bool:
    """`optimizer.zero_grad()`, `p.grad = None`, `del p.grad`, also in a loop over the parameters."""
    for inner in ir.statements([statement]):
        if isinstance(inner, ir.Assign) and isinstance(inner.value, ir.Const) and inner.value.value is None:
            if any(isinstance(target, ir.Attr) and target.attr == "grad" for target in inner.targets):
                return True
        if isinstance(inner, ir.Delete):
            if any(isinstance(target, ir.Attr) and target.attr == "grad" for target in inner.targets):
                return True
        if any(call.method == "zero_grad" and not _keeps(call) for call in _own_calls(inner)):
            return True
    return False


# --- zeroed gradients ----------------------------------------------------------------------------------------------


def kept_gradients(file: FileAnalysis) -> list[KeptGradients]:
    """Calls that fill gradients with zeros where letting them go would do."""
    if not any("zero_grad" in evidence.called for evidence in file.evidence.values()):
        return []
    if any(_CAPTURING.search(word) for evidence in file.evidence.values() for word in evidence.words):
        return []
    if any("zero_grad" in cls.methods for cls in file.module.classes.values()):
        return []
    found: list[KeptGradients] = []
    for function in file.module.functions:
        if "zero_grad" in file.evidence[function].called and not _adds_by_hand(function):
            rare = _rare(function.body, False)
            for statement, call in ir.calls(function.body):
                if call.method == "zero_grad" and isinstance(call.func, ir.Attr) and _keeps(call):
                    if id(statement) not in rare:
                        found.append(KeptGradients(function, call))
    return found


def _adds_by_hand(function: ir.Function) -> bool:
    """`master.grad.add_(p.grad.float())`, `p.grad += …`: who writes into gradients wants them to be there."""
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.AugAssign) and _is_gradient(statement.target):
            return True
        for call in _own_calls(statement):
            if call.method in ("add_", "copy_", "sub_") and isinstance(call.func, ir.Attr):
                if _is_gradient(call.func.base):
                    return True
    return False


def _is_gradient(expr: ir.Expr) -> bool:
    if isinstance(expr, ir.Attr) and expr.attr == "data":
        expr = expr.base
    return isinstance(expr, ir.Attr) and expr.attr == "grad"


def _rare(block: list[ir.Stmt], guarded: bool) -> set[int]:
    """The statements under an `if`, every k-th step aside: gradients found to be invalid are meant to become zeros."""
    found: set[int] = set()
    for statement in block:
        if guarded:
            found.add(id(statement))
        inside = guarded or (isinstance(statement, ir.If) and not is_periodic(statement.test))
        for inner in statement.blocks():
            found |= _rare(inner, inside)
    return found


def _keeps(call: ir.Call) -> bool:
    value = call.argument(0, "set_to_none")
    return isinstance(value, ir.Const) and value.value is False and len(call.args) + len(call.keywords) == 1
