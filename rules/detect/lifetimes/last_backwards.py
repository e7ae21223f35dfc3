"""`backward(retain_graph=True)` as the last backward of its function: a second one could only come from somewhere else."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.callers import CallSite, call_sites, means, where
from gpulint.rules.detect.lifetimes.reaching_back import own_name, owner_of
from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.lookup import with_words
from gpulint.analysis.torch.methods import GIVES_ITSELF
from gpulint.analysis.torch.names import TO_DEVICE, TO_HOST
from gpulint.analysis.torch.roles import RUNS_NOT
from gpulint.analysis.values.arguments import bind_sources
from gpulint.answers import Answer, Question, left_open, proven, refuted
from gpulint.rule import Cost

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_DATA = frozenset(
    "len range list dict tuple set int float next iter load get randn rand print item parameters sample".split()
)
_GRADIENTS = frozenset({"backward", "grad", "manual_backward", "hessian", "jacobian", "vjp"})


def last_backwards(file: FileAnalysis) -> list[Suspicion]:
    """The last backwards of functions that keep their graph by a constant argument."""
    found: list[Suspicion] = []
    for function in with_words(file, frozenset({"backward", "manual_backward"})):
        if function is file.module.body:
            continue
        calls = [(s, c) for s, c in ir.calls(function.body) if c.method in _GRADIENTS]
        for number, (statement, call) in enumerate(calls):
            if not _keeps(call) or _grows(call):
                continue
            if all(_is_made_after(function, statement, *later) for later in calls[number + 1 :]):
                found.append(_suspicion(file, function, statement, call))
    return found


def _is_made_after(function: ir.Function, statement: ir.Stmt, later: ir.Stmt, other: ir.Call) -> bool:
    """Whether what another backward goes through is made between the two, of nothing that could have a graph from before."""
    function.home.effort.draw(ir.size(function))
    own, root = own_name(function), _root(other)
    between = [one for one in ir.statements(function.body) if statement.row < one.row < later.row]
    seen: set[str] = set()
    queue = [root]
    while queue:
        for part in _values(queue.pop()):
            if isinstance(part, ir.Attr) and own and (part.path or "").startswith(f"{own}."):
                return False
            if not isinstance(part, ir.Name) or part.id in seen:
                continue
            seen.add(part.id)
            made = [value for one in between if (value := _bound(one, part.id)) is not None]
            if not made and (part is root or _may_be_of_a_graph(function, part.id)):
                return False
            queue += made
    return isinstance(root, ir.Name)


def _may_be_of_a_graph(function: ir.Function, name: str) -> bool:
    """Whether a name is bound to what something computes or collects, and not to data that is fetched."""
    function.home.effort.draw(ir.size(function))
    values = [
        statement.value
        for statement in ir.statements(function.body)
        if isinstance(statement, ir.Assign) and _bound(statement, name) is not None
    ]
    parts = [part for value in values if value is not None for part in ir.walk(value)]
    return any(
        isinstance(part, (ir.DictDisplay, ir.Comp))
        or (isinstance(part, ir.Seq) and part.kind == "list")
        or (isinstance(part, ir.Call) and _may_have_graph(part) and not RUNS_NOT.search(part.method))
        for part in parts
    )


def _keeps(call: ir.Call) -> bool:
    value = call.keyword("retain_graph")
    is_backward = call.method in ("backward", "manual_backward")
    return is_backward and isinstance(value, ir.Const) and value.value is True


def _grows(call: ir.Call) -> bool:
    return call.keyword("create_graph") is not None


def _suspicion(file: FileAnalysis, function: ir.Function, statement: ir.Stmt, call: ir.Call) -> Suspicion:
    root = _root(call)
    return Suspicion(
        call,
        call.func.path or call.method,
        f"the last backward of `{function.name}` keeps its whole graph, and nothing after it here goes through that",
        "the saved tensors stay until the last value of the graph is gone",
        Cost(
            "all that the graph has saved, after the backward as before it",
            "1.58 GiB against 698 MiB allocated after the backward of a 4-layer language model; H200, torch 2.11",
        ),
        tuple(_answers(file, function, statement, root)),
    )


def _root(call: ir.Call) -> ir.Expr:
    """What the backward goes through: `loss` of `loss.backward()`, of `self.manual_backward(loss)`."""
    if call.method != "backward" or not isinstance(call.func, ir.Attr):
        return call.args[0] if call.args else call.func
    given = call.args[0] if call.args and call.func.base.path in ("accelerator", "self.accelerator") else None
    return given if given is not None else call.func.base


def _answers(
    file: FileAnalysis, function: ir.Function, statement: ir.Stmt, root: ir.Expr
) -> Iterator[Answer]:
    origins = _Origins(function, root)
    loops = ir.loops_around(function.body, statement) or ()
    if loops and (not origins.made_in(loops[-1]) or origins.older_than(loops[-1])):
        yield refuted(
            Question.BACKWARD, "each round of the loop goes through a graph older than it", loops[-1]
        )
    if origins.fetched:
        yield refuted(
            Question.BACKWARD, "it stands in an object, where others of the same graph may stand too"
        )
    trainer = next((caller for caller in _callers(file, function) if file.evidence[caller].backward), None)
    if trainer is not None:
        yield refuted(Question.BACKWARD, f"`{trainer.name}`, which calls this, goes backward too", trainer)
    owner = owner_of(function)
    all_keep = owner is not None and _all_keep(owner)
    leaks = _outliving(function, statement, root, origins)
    if all_keep:
        yield proven(
            Question.BACKWARD, "every backward of the class keeps its graph: that of the last is for nobody"
        )
    elif origins.given:
        yield left_open(
            Question.BACKWARD,
            f"whether a caller goes backward through `{sorted(origins.given)[0]}` once more is not shown",
        )
    elif leaks == "returned":
        yield left_open(
            Question.BACKWARD, "whether a caller goes backward through what is returned is not shown"
        )
    else:
        yield left_open(
            Question.BACKWARD, "whether a network or a helper keeps some of it for the next call is not shown"
        )
    if leaks:
        yield proven(Question.OUTLIVES, f"the graph is {leaks}, and lives on after the call")
    elif loops:
        yield proven(Question.OUTLIVES, "the graph lives until the next round has made its own", loops[-1])
    elif origins.given:
        yield _held_by_callers(file, function, origins.given)
    else:
        yield refuted(Question.OUTLIVES, "the function ends, and the graph with it")


def _held_by_callers(file: FileAnalysis, function: ir.Function, given: Set[str]) -> Answer:
    """Whether a caller still has what it has handed over when the next round of its loop makes another."""
    for site in call_sites(file, function):
        sources = bind_sources(function, site.call, function.cls is not None)
        for name in sorted(given & sources.keys()):
            loop = _bound_through(site, sources[name])
            if loop is not None and means(site, function) and not _backward_behind(file, site, loop):
                clause = f"`{site.function.name}` keeps `{sources[name].path}` until the next round has made its own"
                return proven(Question.OUTLIVES, clause, *where(file, site))
    return left_open(Question.OUTLIVES, "how long the caller keeps what it has handed over is not shown")


def _backward_behind(file: FileAnalysis, site: CallSite, loop: ir.For | ir.While) -> bool:
    """Whether the loop's round goes backward once more after a call: by itself, or by a function of this file, by its name."""
    backwards = {function.name for function, evidence in file.evidence.items() if evidence.backward}
    return any(
        call.method in _GRADIENTS or call.method in backwards
        for statement, call in ir.calls(loop.body)
        if statement.row > site.stmt.row
    )


def _bound_through(site: CallSite, given: ir.Expr) -> ir.For | ir.While | None:
    """The loop whose rounds each make what a caller hands over by a name that nothing else is bound to after the call."""
    loops = ir.loops_around(site.function.body, site.stmt)
    if not isinstance(given, ir.Name) or not loops:
        return None
    binding = [s for s in ir.statements(loops[-1].body) if _bound(s, given.id) is not None]
    deleted = any(
        isinstance(s, ir.Delete) and any(target.path == given.id for target in s.targets)
        for s in ir.statements(loops[-1].body)
    )
    behind = [s for s in binding if s.row > site.stmt.row]
    made = any(ir.own_calls(s) for s in binding)
    return loops[-1] if made and not deleted and not behind else None


def _outliving(function: ir.Function, backward: ir.Stmt, root: ir.Expr, origins: _Origins) -> str:
    """How the graph gets out of the function: returned, or kept on the object."""
    names = origins.names | ({root.path} if root.path is not None else set())
    own = own_name(function)
    if root.path is not None and own and root.path.startswith(f"{own}."):
        return "kept on the object"
    behind = False
    for statement in ir.statements(function.body):
        behind |= statement is backward
        if behind and isinstance(statement, (ir.Assign, ir.AugAssign)):
            names -= {
                target.path for target in targets(statement) if target.path is not None
            }  # another value by now
        if isinstance(statement, ir.Return) and statement.value is not None:
            value = statement.value
            items = value.items if isinstance(value, ir.Seq) else (value,)
            if any(isinstance(item, ir.Name) and item.id in names for item in items):
                return "returned"
    return ""


def _callers(file: FileAnalysis, function: ir.Function) -> Iterator[ir.Function]:
    """The functions of the file that call this one, by its name."""
    for caller, evidence in file.evidence.items():
        if caller is not function and function.name in evidence.called:
            yield caller


def _all_keep(owner: ir.Class) -> bool:
    calls = [
        call
        for method in owner.methods.values()
        for _, call in ir.calls(method.body)
        if call.method in ("backward", "manual_backward")
    ]
    return len(calls) > 1 and all(map(_keeps, calls))


class _Origins:
    """What a value is made of, through the assignments of its function: `names` are the local ones, `given` the parameters;
    `fetched`: it comes out of a container of the object, or of an object that was given."""

    def __init__(self, function: ir.Function, root: ir.Expr) -> None:
        self.names: set[str] = set()
        self.given: set[str] = set()
        self.fetched = False
        self._bindings: list[ir.Stmt] = []
        own = own_name(function)
        params = {param.name for param in function.params if param.name != own and not _is_number(param)}
        queue = [root]
        while queue:
            for part in _values(queue.pop()):
                self.fetched |= _is_fetched(part, own)
                if isinstance(part, ir.Name) and part.id in params and part.id not in self.names:
                    self.given.add(part.id)
                if isinstance(part, ir.Name) and part.id not in self.names and part.id != own:
                    self.names.add(part.id)
                    for statement in ir.statements(function.body):
                        value = _bound(statement, part.id)
                        if isinstance(statement, ir.For) and value is not None:
                            self.fetched |= _runs_through_an_object(function, value, params)
                            continue
                        if value is not None:
                            self._bindings.append(statement)
                            queue.append(value)

    def made_in(self, loop: ir.For | ir.While) -> bool:
        """Whether some call that the value is made of runs in the loop's body."""
        inside = {id(statement) for statement in ir.statements(loop.body)}
        return any(id(statement) in inside and ir.own_calls(statement) for statement in self._bindings)

    def older_than(self, loop: ir.For | ir.While) -> bool:
        """Whether part of it is made before the loop by a call that may have a graph, or is added to in each round and never
        begun anew in it."""
        inside = {id(statement) for statement in ir.statements(loop.body)}
        begun = {
            path
            for statement in self._bindings
            if id(statement) in inside and isinstance(statement, ir.Assign)
            for path in _paths(statement)
            if not _mentions(statement.value, path)
        }
        begun |= {target.path or "" for target in targets(loop)} if isinstance(loop, ir.For) else set()
        for statement in self._bindings:
            if id(statement) in inside:
                carried = isinstance(statement, ir.AugAssign) or (
                    isinstance(statement, ir.Assign)
                    and any(_mentions(statement.value, p) for p in _paths(statement))
                )
                if carried and not set(_paths(statement)) & begun:
                    return True
            elif any(_may_have_graph(call) for call in ir.own_calls(statement)):
                return True
        return False


def _paths(statement: ir.Stmt) -> list[str]:
    if isinstance(statement, ir.AugAssign):
        return [statement.target.path] if statement.target.path is not None else []
    return [target.path for target in targets(statement) if target.path is not None]


def _mentions(value: ir.Expr | None, path: str) -> bool:
    return value is not None and any(part.path == path for part in ir.walk(value))


def _may_have_graph(call: ir.Call) -> bool:
    """Whether what is called can give a tensor with a graph: no constructor of a module or of data, no move."""
    if call.method in TO_DEVICE or call.method in TO_HOST or call.method in GIVES_ITSELF:
        return False
    own = (call.func.path or "").startswith("self.") or len(call.method) == 1  # `self.D(z)`, `G(z)`: networks
    makes = call.method[:1].isupper() and not own
    return call.method not in _DATA and not makes


def _is_fetched(part: ir.Expr, own: str) -> bool:
    """`self.losses.pop(key)`, `self.losses[key]`."""
    base = part.base if isinstance(part, ir.Sub) else None
    if isinstance(part, ir.Call) and part.method in ("pop", "get") and isinstance(part.func, ir.Attr):
        base = part.func.base
    return base is not None and bool(own) and (base.path or "").startswith(f"{own}.")


def _runs_through_an_object(function: ir.Function, iterable: ir.Expr, params: set[str]) -> bool:
    """Whether a loop runs over what an object that was given holds, `given.codes`, by that name or another."""
    parts = list(ir.walk(iterable))
    for part in list(parts):
        if isinstance(part, ir.Name):
            values = (_bound(s, part.id) for s in ir.statements(function.body) if isinstance(s, ir.Assign))
            parts += [inner for value in values if value is not None for inner in ir.walk(value)]
    return any(
        isinstance(part, ir.Attr)
        and isinstance(part.base, ir.Name)
        and part.base.id in params
        and part.attr != "loader"
        for part in parts
    )


def _is_number(param: ir.Param) -> bool:
    """Whether a parameter is a setting by its annotation or its default."""
    if param.annotation is not None and param.annotation.path in ("int", "float", "bool", "str"):
        return True
    return isinstance(param.default, ir.Const) and isinstance(param.default.value, (int, float, str))


def _bound(statement: ir.Stmt, name: str) -> ir.Expr | None:
    if isinstance(statement, ir.Assign) and any(target.path == name for target in targets(statement)):
        return statement.value
    if isinstance(statement, ir.AugAssign) and statement.target.path == name:
        return statement.value
    if isinstance(statement, ir.For) and any(target.path == name for target in targets(statement)):
        return statement.iterable
    return None


# Methods whose result is of the same graph as what they are asked of.
_REDUCED = frozenset("mean sum view reshape squeeze".split())


def _values(expr: ir.Expr) -> Iterator[ir.Expr]:
    """The parts of an expression that its graph may be of: without what is called by its name, indices, and what is made of
    numbers."""
    stack = [expr]
    while stack:
        part = stack.pop()
        yield part
        if isinstance(part, ir.Call):
            stack += _given_to(part)
        elif isinstance(part, ir.Sub):
            stack.append(part.base)
        elif not (isinstance(part, ir.Attr) and part.attr in ("shape", "device", "dtype")):
            stack += part.children()


def _given_to(call: ir.Call) -> Iterator[ir.Expr]:
    """What the graph of a call's result may be of: its arguments, and what a method of a tensor is asked of."""
    if call.method in TO_DEVICE or call.method in TO_HOST:
        return
    yield from call.args
    yield from (value for _, value in call.keywords)
    if isinstance(call.func, ir.Attr):
        if not isinstance(call.func.base, (ir.Name, ir.Attr)) or call.method in _REDUCED:
            yield call.func.base
