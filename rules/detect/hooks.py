"""Module hooks that hold: a forward hook that piles up what it sees, a hook registered once more in every step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.rules.detect.collectors import cuts_up, takes_away

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.flow.peaks import loop_names
from gpulint.analysis.torch.methods import ADDING
from gpulint.analysis.torch.names import KEEPS_GRAPH, REDUCTIONS
from gpulint.analysis.values.values import Grad, Kind

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import FunctionFacts, Loop
    from gpulint.analysis.file.program import FileAnalysis

_FORWARD = frozenset({"register_forward_hook", "register_forward_pre_hook"})
_REGISTER = _FORWARD | {
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_backward_hook",
}
_EMPTYING = frozenset({"clear", "pop", "popleft", "popitem", "remove", "reset"})
_KEEPING = KEEPS_GRAPH | REDUCTIONS


@dataclass(slots=True)
class HookHold:
    """A forward hook that adds what a module gives to a container that nothing empties: with its autograd graph, or
    without one (`graph` false) but on the device.

    `stmt` is the statement that adds, `value` what it adds; both may stand in another file, `filename`.
    """

    registration: ir.Call
    hook: ir.Function
    stmt: ir.Stmt
    value: ir.Expr
    holder: str
    filename: str | None
    row: int
    graph: bool
    trained: bool  # some function that reads the container, or the hook's own, runs a backward
    removed: (
        bool  # the function that registers the hook removes it, and the container ends with that function
    )


@dataclass(slots=True)
class RepeatedHook:
    """A hook registered in every step on a module that lives on, and never removed. `why` is "loop", "call" or
    "forward"."""

    registration: ir.Call
    why: str


@dataclass(slots=True)
class _Registration:
    function: ir.Function
    stmt: ir.Stmt
    call: ir.Call
    loops: tuple[ir.For | ir.While, ...]
    guarded: bool


def registrations(file: FileAnalysis) -> list[_Registration]:
    """The module hooks that the file registers. Hooks of tensors go with their tensor and are left out."""
    found: list[_Registration] = []
    for function in file.module.functions:
        if file.evidence[function].called & _REGISTER:
            found += _registered(function, function.body, (), False)
    return found


def _registered(
    function: ir.Function, block: list[ir.Stmt], loops: tuple[ir.For | ir.While, ...], guarded: bool
) -> Iterator[_Registration]:
    for statement in block:
        for expr in ir.own_parts(statement):
            if isinstance(expr, ir.Call) and expr.method in _REGISTER and expr.args:
                if isinstance(expr.func, ir.Attr):
                    yield _Registration(function, statement, expr, loops, guarded)
        inner = (*loops, statement) if isinstance(statement, (ir.For, ir.While)) else loops
        below = guarded or isinstance(statement, (ir.If, ir.Match))
        for nested in statement.blocks():
            yield from _registered(function, nested, inner, below)


# --- what a hook holds ---------------------------------------------------------------------------------------------


def hook_holds(file: FileAnalysis) -> list[HookHold]:
    """Forward hooks that add outputs to a container, over the batches of a loop, without end."""
    functions = file.function_facts
    found: list[HookHold] = []
    seen: set[int] = set()
    for registration in registrations(file):
        if registration.call.method not in _FORWARD:
            continue
        modes = _modes_over_batches(file, functions, registration)
        if len(modes) != 1 or Grad.UNKNOWN in modes:
            continue
        hook = _hook(file, registration)
        if hook is None or id(hook) in seen:
            continue
        seen.add(id(hook))
        home: FileAnalysis = hook.home
        for stmt, holder, value, graph in _additions(hook, Grad.ENABLED in modes):
            removed = not graph and takes_away(file, registration.function, registration.stmt, hook, holder)
            if removed and cuts_up(functions, registration.function):
                continue
            if not _is_emptied(file, hook, holder) and (home is file or not _is_emptied(home, hook, holder)):
                foreign = home is not file
                filename = home.filename if foreign else None
                row = stmt.row if foreign else 1
                trained = _trains_with(file, holder)
                found.append(
                    HookHold(
                        registration.call, hook, stmt, value, holder, filename, row, graph, trained, removed
                    )
                )
    return found


def _hook(file: FileAnalysis, registration: _Registration) -> ir.Function | None:
    """The function that is registered: named, a lambda, a method, or what a maker returns."""
    given = registration.call.args[0]
    if isinstance(given, ir.LambdaExpr):
        return given.function
    if isinstance(given, ir.Call):
        if given.method == "partial" and given.args:
            return _function(file, registration.function, given.args[0])
        maker = _function(file, registration.function, given.func)
        return None if maker is None else _made_by(maker)
    return _function(file, registration.function, given)


def _function(file: FileAnalysis, scope: ir.Function, expr: ir.Expr) -> ir.Function | None:
    if isinstance(expr, ir.LambdaExpr):
        return expr.function
    if isinstance(expr, ir.Name):
        current: ir.Function | None = scope
        while current is not None:
            for function in file.module.functions:
                if function.name == expr.id and function.cls is None and function.parent is current:
                    return function
            current = current.parent
        value = file.free_name(scope, expr.id)
        return value.ref if value.kind is Kind.FUNCTION else None
    if isinstance(expr, ir.Attr) and isinstance(expr.base, ir.Name):
        owner = file.class_of(scope)
        if owner is not None and scope.params and expr.base.id == "self":
            return owner.method(expr.attr)
        state = file.states.get(scope)
        known = state.vars.get(expr.base.id) if state is not None else None
        if known is None:
            known = file.free_name(scope, expr.base.id)
        if known.kind is Kind.INSTANCE:
            method: ir.Function | None = known.ref.method(expr.attr)
            return method
    return None


def _made_by(maker: ir.Function) -> ir.Function | None:
    """The nested function or lambda that a maker returns."""
    home: FileAnalysis = maker.home
    for statement in ir.statements(maker.body):
        if isinstance(statement, ir.Return) and statement.value is not None:
            if isinstance(statement.value, ir.LambdaExpr):
                return statement.value.function
            if isinstance(statement.value, ir.Name):
                for function in home.module.functions:
                    if function.parent is maker and function.name == statement.value.id:
                        return function
    return None


def _additions(hook: ir.Function, recorded: bool) -> Iterator[tuple[ir.Stmt, str, ir.Expr, bool]]:
    """Where a hook adds a module's input or output to something older than itself, and whether with its graph, where
    autograd recorded one."""
    names = [param.name for param in hook.params if param.kind == "normal"]
    if len(names) < 2:
        return
    graphs = set(names[-2:])
    tensors = set(names[-2:])
    own: set[str | None] = {
        t.path for s in ir.statements(hook.body) for t in targets(s) if isinstance(t, ir.Name)
    }
    for statement in _unbounded(hook.body):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            for target in targets(statement):
                if isinstance(target, ir.Name):
                    (graphs.add if keeps_graph(statement.value, graphs) else graphs.discard)(target.id)
                    (tensors.add if keeps_storage(statement.value, tensors) else tensors.discard)(target.id)
        for holder, value in _added(statement):
            root = holder.partition(".")[0].partition("[")[0]
            if root in own or (root in names and root != "self"):
                continue
            if recorded and keeps_graph(value, graphs):
                yield statement, holder, value, True
            elif keeps_storage(value, tensors):
                yield statement, holder, value, False


def _unbounded(block: list[ir.Stmt]) -> Iterator[ir.Stmt]:
    """The statements of a hook, without those under a test of how much there is already."""
    for statement in block:
        yield statement
        if isinstance(statement, (ir.If, ir.While)) and any(
            isinstance(part, ir.Call) and part.method == "len" for part in ir.walk(statement.test)
        ):
            continue
        for inner in statement.blocks():
            yield from _unbounded(inner)


def _added(statement: ir.Stmt) -> Iterator[tuple[str, ir.Expr]]:
    if isinstance(statement, ir.AugAssign) and statement.op == "+" and statement.target.path is not None:
        if isinstance(statement.value, ir.Seq):
            yield statement.target.path, statement.value
    value = statement.value if isinstance(statement, (ir.ExprStmt, ir.Return)) else None
    if (
        isinstance(value, ir.Call)
        and isinstance(value.func, ir.Attr)
        and value.method in ADDING
        and value.args
    ):
        base = value.func.base
        if isinstance(base, ir.Call) and base.method == "setdefault" and isinstance(base.func, ir.Attr):
            base = base.func.base
        if isinstance(base, ir.Sub):
            base = base.base
        if base.path is not None:
            yield base.path, value.args[-1]


def keeps_graph(expr: ir.Expr, graphs: set[str]) -> bool:
    """Whether the expression still has the graph of one of the names: `.cpu()`, `.clone()` and indexing keep it."""
    if isinstance(expr, ir.Name):
        return expr.id in graphs
    if isinstance(expr, ir.Sub):
        return keeps_graph(expr.base, graphs)
    if isinstance(expr, ir.Attr):
        return expr.attr in ("T", "mT", "last_hidden_state") and keeps_graph(expr.base, graphs)
    if isinstance(expr, (ir.Seq, ir.Op)):
        if isinstance(expr, ir.Op) and expr.op not in ("+", "-", "*", "/", "@", "**", "neg"):
            return False
        return any(keeps_graph(part, graphs) for part in expr.children())
    if isinstance(expr, ir.Call) and expr.method in _KEEPING and isinstance(expr.func, ir.Attr):
        return keeps_graph(expr.func.base, graphs) or any(keeps_graph(arg, graphs) for arg in expr.args[:1])
    return False


def keeps_storage(expr: ir.Expr, tensors: set[str]) -> bool:
    """Whether the expression is one of the tensors where it is, as large as it is: detached, cloned, indexed or not."""
    if isinstance(expr, ir.Name):
        return expr.id in tensors
    if isinstance(expr, ir.Sub):
        return keeps_storage(expr.base, tensors)
    if isinstance(expr, ir.Attr):
        return expr.attr in ("data", "last_hidden_state") and keeps_storage(expr.base, tensors)
    if isinstance(expr, ir.Call) and expr.method in _IN_PLACE and isinstance(expr.func, ir.Attr):
        return keeps_storage(expr.func.base, tensors)
    return False


_IN_PLACE = frozenset(
    "detach clone contiguous float squeeze unsqueeze flatten view reshape permute transpose".split()
)


def _is_emptied(file: FileAnalysis, hook: ir.Function, holder: str) -> bool:
    """Whether anything in the file empties the container or starts it afresh, its birth aside."""
    last = holder.rpartition(".")[2].partition("[")[0]
    births = 0
    owner = _owner_of(file, hook, holder)
    for function in _sharing(file, owner):
        for statement in ir.statements(function.body):
            joins = function is owner and statement in function.body and _reworks(statement, holder)
            for target in () if joins else targets(statement):
                if isinstance(target, ir.Sub) and isinstance(target.index, ir.Slice):
                    target = target.base
                births += _denotes(target, holder)
            if isinstance(statement, ir.Delete) and any(_names(t, last) for t in statement.targets):
                return True
            for part in ir.own_parts(statement):
                if isinstance(part, ir.Call) and part.method in _EMPTYING and isinstance(part.func, ir.Attr):
                    if _names(part.func.base, last):
                        return True
        for loop in (s for s in ir.statements(function.body) if isinstance(s, (ir.For, ir.While))):
            if any(_denotes(target, holder) for s in loop.body for target in targets(s)):
                return True
    return births > 1


def _denotes(target: ir.Expr, holder: str) -> bool:
    """Whether a target can be the container: the same attribute, of whatever object, or the same plain name."""
    path = target.path
    if path is None or ("." in path) != ("." in holder):
        return False
    return path.rpartition(".")[2] == holder.rpartition(".")[2].partition("[")[0]


def _reworks(statement: ir.Stmt, holder: str) -> bool:
    """`acts = {name: torch.cat(outs) for name, outs in acts.items()}`: what was gathered, joined when all of it is there."""
    return (
        isinstance(statement, ir.Assign)
        and isinstance(statement.value, ir.Comp)
        and any(part.path == holder for part in ir.walk(statement.value.clauses[0][1]))
    )


def _owner_of(file: FileAnalysis, hook: ir.Function, holder: str) -> ir.Function:
    """The function that a container is a local variable of, else the file's own body."""
    owner = hook.parent
    while owner is not None and owner is not file.module.body:
        if holder in file.evidence[owner].assigned:
            return owner
        owner = owner.parent
    return file.module.body


def _sharing(file: FileAnalysis, owner: ir.Function) -> list[ir.Function]:
    """The functions that can reach a container of this owner."""
    if owner is file.module.body:
        return file.module.functions
    return [function for function in file.module.functions if function.is_within(owner)]


def _names(expr: ir.Expr, last: str) -> bool:
    while isinstance(expr, ir.Sub):
        expr = expr.base
    return expr.path is not None and expr.path.rpartition(".")[2].partition("[")[0] == last


def _trains_with(file: FileAnalysis, holder: str) -> bool:
    last = holder.rpartition(".")[2]
    return any(evidence.backward and last in evidence.words for evidence in file.evidence.values())


# --- over which batches --------------------------------------------------------------------------------------------


def _modes_over_batches(
    file: FileAnalysis, functions: list[FunctionFacts], registration: _Registration
) -> set[Grad]:
    """Under which grad modes forwards run in a loop over batches after the registration."""
    near = _after(file, registration)
    modes = _modes(functions, near)
    if not modes and registration.function is file.module.body:
        modes = _modes(functions, {facts.function for facts in functions})
    return modes


def _modes(functions: list[FunctionFacts], chosen: set[ir.Function]) -> set[Grad]:
    return {
        forward.mode.grad
        for facts in functions
        if facts.function in chosen and not facts.role.is_test
        for forward in facts.forwards
        if any(loop.over_data for loop in forward.loops)
    }


def _after(file: FileAnalysis, registration: _Registration) -> set[ir.Function]:
    """The functions that can run the hooked module: the registering one, who called that, and what they call later."""
    found: set[ir.Function] = set()
    starts: list[tuple[ir.Function, ir.Stmt | None]] = [(registration.function, registration.stmt)]
    makers = {registration.function.name}
    if registration.function.cls is not None and registration.function.name == "__init__":
        makers = {registration.function.cls.name}
    for function in file.module.functions:
        if function is not registration.function and file.evidence[function].called & makers:
            starts += [(function, stmt) for stmt, call in ir.calls(function.body) if call.method in makers][
                :1
            ]
    for function, stmt in starts:
        found.add(function)
        called = _called_after(function, stmt)
        for _ in range(2):
            more = {f for f in file.module.functions if f.name in called and f not in found}
            found |= more
            called = {name for f in more for name in file.evidence[f].called}
    return found


def _called_after(function: ir.Function, stmt: ir.Stmt | None) -> set[str]:
    names: set[str] = set()
    reached = stmt is None
    for statement in ir.statements(function.body):
        reached = reached or statement is stmt
        if reached:
            for root in statement.expressions():
                names |= {part.method for part in ir.walk(root) if isinstance(part, ir.Call)}
    return names


# --- registered again and again ------------------------------------------------------------------------------------


def repeated_hooks(file: FileAnalysis) -> list[RepeatedHook]:
    """Hooks registered in every step on a module that outlives the step, with nothing that removes them."""
    words = {word for evidence in file.evidence.values() for word in evidence.words}
    if words & {"_forward_hooks", "_backward_hooks", "_forward_pre_hooks"}:
        return []
    found: list[RepeatedHook] = []
    for registration in registrations(file):
        dropped = isinstance(registration.stmt, ir.ExprStmt) and registration.stmt.value is registration.call
        if not dropped and "remove" in words:
            continue
        why = _why_repeated(file, registration)
        if why is not None:
            found.append(RepeatedHook(registration.call, why))
    return found


def _why_repeated(file: FileAnalysis, registration: _Registration) -> str | None:
    function, target = registration.function, registration.call.func
    assert isinstance(target, ir.Attr)
    for loop in registration.loops:
        facts = file.loops.get(id(loop))
        if facts is not None and _is_step(facts):
            return None if registration.guarded or _bound_in(target.base, loop) else "loop"
    if registration.guarded or not _lives_on(function, target.base):
        return None
    owner = file.class_of(function)
    if function.name == "forward" and owner is not None and owner.is_module:
        return "forward"
    return "call" if _called_every_batch(file, registration, target.base) else None


def _is_step(loop: Loop) -> bool:
    return loop.over_data and loop.is_step_loop


def _bound_in(expr: ir.Expr, loop: ir.For | ir.While) -> bool:
    """Whether the hooked module depends on what the loop binds: then it is another one each time."""
    bound = loop_names(loop)
    for statement in ir.statements(loop.body):
        if isinstance(statement, ir.For) and _over_modules(statement.iterable, bound):
            continue
        bound |= {target.path for target in targets(statement) if target.path is not None}
    return any(part.path in bound for part in ir.walk(expr) if part.path is not None)


def _over_modules(iterable: ir.Expr, bound: set[str]) -> bool:
    """`for m in model.modules():` of a model that the outer loop does not bind."""
    methods = ("modules", "named_modules", "children", "named_children")
    return any(
        isinstance(part, ir.Call) and part.method in methods for part in ir.walk(iterable)
    ) and not any(part.path in bound for part in ir.walk(iterable) if part.path is not None)


def _lives_on(function: ir.Function, expr: ir.Expr) -> bool:
    """Whether the hooked module comes from outside the function: a parameter, an attribute, a global."""
    bound: set[str] = set()
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.For) and _over_modules(statement.iterable, bound):
            continue
        bound |= {target.id for target in targets(statement) if isinstance(target, ir.Name)}
    return not any(part.path in bound for part in ir.walk(expr) if isinstance(part, ir.Name))


def _called_every_batch(file: FileAnalysis, registration: _Registration, base: ir.Expr) -> bool:
    """Whether the function runs in a loop over batches, with a module that the loop does not bind."""
    function = registration.function
    if function not in file.called_in_data_loop or file.evidence[function].called & {"yield"}:
        return False
    root = base
    while isinstance(root, (ir.Attr, ir.Sub, ir.Call)):
        root = root.func if isinstance(root, ir.Call) else root.base
    names = [param.name for param in function.params]
    if not isinstance(root, ir.Name) or (root.id in names and root.id == "self"):
        return False
    summary = file.summaries.get(function)
    runs = summary is not None and summary.forwards > 0
    for caller in file.called_from.get(function, ()):
        for loop in (s for s in ir.statements(caller.body) if isinstance(s, (ir.For, ir.While))):
            facts = file.loops.get(id(loop))
            if facts is None or not facts.over_data or not (runs or facts.is_step_loop):
                continue
            for _, call in ir.calls(loop.body):
                if call.method == function.name and not _argument_bound(call, names, root.id, loop):
                    return True
    return False


def _argument_bound(call: ir.Call, names: list[str], name: str, loop: ir.For | ir.While) -> bool:
    if name not in names:
        return False
    skip = 1 if names[:1] == ["self"] else 0
    given = call.argument(names.index(name) - skip, name)
    return given is None or _bound_in(given, loop)
