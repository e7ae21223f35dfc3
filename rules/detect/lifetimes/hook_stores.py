"""What hooks keep of a forward: outputs with their graph in a slot, or one more at every call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gpulint.rules.detect.lifetimes.hooked import Store, emptying, stores
from gpulint.rules.detect.lifetimes.reaching_back import own_name, scope
from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.code.uses import COMPARISONS
from gpulint.analysis.values.values import Grad
from gpulint.answers import Answer, Question, left_open, proven, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_CUTS = frozenset({"detach", "item", "numpy", "tolist"})
# What gives its arguments back, one by one or all together.
_JOINS = frozenset("cat concat stack dict list tuple zip enumerate sorted reversed".split())


def hook_stores(file: FileAnalysis) -> list[Suspicion]:
    """Stores of hooks that keep a graph, or add to what is there, where something speaks for a mistake."""
    found = [store for store in stores(file) if not store.registration.backward]
    if found and _modes(file) == {Grad.DISABLED}:
        found = [replace(store, kept=store.kept.but(graph=False)) for store in found]
    return [_suspicion(file, store) for store in found if _worth(file, store)]


def _modes(file: FileAnalysis) -> set[Grad]:
    """The grad modes of the forwards in sight."""
    return {
        forward.mode.grad
        for facts in file.function_facts
        if not facts.role.is_test
        for forward in facts.forwards
    }


def _worth(file: FileAnalysis, store: Store) -> bool:
    """A slot is worth a word where its author moves the value and does not cut it, or where every layer has one and nobody
    can remove the hook; a list where it keeps the tensor itself or its graph."""
    kept, registration = store.kept, store.registration
    if store.adds:
        return kept.graph or (kept.device and not kept.reduced)
    if not kept.graph:
        return False
    loops = ir.loops_around(registration.function.body, registration.stmt)
    return kept.moved or (registration.dropped and (bool(loops) or _is_of_each_layer(file, store)))


def _is_of_each_layer(file: FileAnalysis, store: Store) -> bool:
    """Whether a network's constructor hooks the network itself, which keeps its own outputs: so does each of its kind."""
    registration = store.registration
    info = file.class_of(registration.function)
    func = registration.call.func
    own = own_name(registration.function)
    hooks_itself = isinstance(func, ir.Attr) and func.base.path == own and bool(own)
    first = store.hook.params[0].name if store.hook.params else ""
    return hooks_itself and info is not None and info.is_module and store.place.startswith(f"{first}.")


def _suspicion(file: FileAnalysis, store: Store) -> Suspicion:
    graph = store.kept.graph
    how = "together with its autograd graph" if graph else "and leaves it on the device"
    verb = "adds what it sees to" if store.adds else "keeps what it sees in"
    moved = " (moving a tensor does not cut it from the graph)" if store.kept.moved and graph else ""
    return Suspicion(
        store.value,
        store.place,
        f"the hook {verb} `{store.place}` at every forward, {how}{moved}",
        "the graph behind an activation keeps those of the layers before it"
        if graph
        else "nothing moves it to the host",
        "the activations of the layers before it, until the place is filled anew"
        if graph
        else "the activation's own bytes, for every call that nobody clears away",
        tuple(_answers(file, store, graph)),
    )


def _answers(file: FileAnalysis, store: Store, graph: bool) -> Iterator[Answer]:
    around = scope(file, store.hook)
    if not store.kept.sure:
        yield left_open(Question.TENSOR, "what the call gives that its output goes through is not in sight")
    if graph:
        yield _graph(file, store)
        yield _backward(file, store, around)
    emptied = emptying(file, store)
    if not store.adds:
        yield (
            proven(Question.OUTLIVES, "it stays until the next forward fills the same place")
            if store.kept.moved
            else left_open(
                Question.OUTLIVES, "how long it is until the next forward fills the place anew is not shown"
            )
        )
    elif emptied and graph and store.kept.moved:
        yield proven(
            Question.OUTLIVES, f"`{emptied[0].name}` empties it, and until then it stays", emptied[0]
        )
    elif emptied:
        yield refuted(Question.OUTLIVES, f"`{emptied[0].name}` empties it", emptied[0])
    else:
        yield proven(Question.OUTLIVES, "nothing in this file empties it")
        yield _repeats(file)


def _repeats(file: FileAnalysis) -> Answer:
    """Whether batches are seen to run through the module."""
    for facts in file.function_facts:
        for forward in facts.forwards:
            if any(loop.over_data for loop in forward.loops):
                return proven(Question.REPEATS, "batches run through a network in a loop", forward.stmt)
    return left_open(Question.REPEATS, "how many forwards run while the hook is there is not shown")


def _graph(file: FileAnalysis, store: Store) -> Answer:
    modes = _modes(file)
    if Grad.ENABLED in modes and Grad.DISABLED not in modes:
        return proven(
            Question.GRAPH, "grad is on where the network runs, and nothing here detaches it", store.stmt
        )
    return left_open(Question.GRAPH, "whether grad is on while the hooked module runs is not shown")


def _backward(file: FileAnalysis, store: Store, around: list[ir.Function]) -> Answer:
    """Whether somebody wants a gradient through what is kept."""
    for function in (*around, *file.module.functions):
        evidence = file.evidence[function]
        if store.word in evidence.words and function is not store.hook:
            if evidence.backward or evidence.called & {"grad", "backward", "vjp", "jacobian"}:
                return refuted(Question.BACKWARD, "a gradient is taken where it is read", function)
            info = file.class_of(function)
            if function.name == "forward" and info is not None and info.is_module:
                return refuted(
                    Question.BACKWARD, "the forward that reads it makes its result of it", function
                )
    readers = [
        f for f in file.module.functions if f is not store.hook and store.word in file.evidence[f].words
    ]
    if any(_cuts_it(function, store.word) for function in readers):
        return proven(Question.BACKWARD, "who reads it detaches it")
    return left_open(Question.BACKWARD, "whether somebody takes a gradient through it is not shown")


def _cuts_it(function: ir.Function, word: str) -> bool:
    """Whether a function cuts what it reads by a name, or a part of it, from its graph: of what else it makes of it, as a loss,
    a number says nothing."""
    names = {word}
    for statement in ir.statements(function.body):
        bound = [one for part in ir.own_parts(statement) for one in _clauses(part)]
        given = statement.iterable if isinstance(statement, ir.For) else None
        given = statement.value if isinstance(statement, ir.Assign) else given
        bound += [(target, given) for target in targets(statement) if given is not None]
        names |= {
            one.id
            for target, value in bound
            if _is_part(value, names)
            for one in ir.walk(target)
            if isinstance(one, ir.Name)
        }
    cuts = [call for _, call in ir.calls(function.body) if call.method in _CUTS]
    return any(isinstance(call.func, ir.Attr) and _is_part(call.func.base, names) for call in cuts)


def _clauses(part: ir.Expr) -> list[tuple[ir.Expr, ir.Expr]]:
    """What a comprehension binds, with what it goes through."""
    return [(target, iterable) for target, iterable, _ in part.clauses] if isinstance(part, ir.Comp) else []


def _is_part(expr: ir.Expr, names: set[str]) -> bool:
    """Whether an expression is what goes by one of the names, a part of it, or several of these together."""
    if expr.path in names or (isinstance(expr, ir.Attr) and expr.attr in names):
        return True
    if isinstance(expr, (ir.Attr, ir.Sub)):
        return _is_part(expr.base, names)
    if isinstance(expr, ir.Call):
        owner = (expr.func.base,) if isinstance(expr.func, ir.Attr) else ()
        return any(_is_part(one, names) for one in (*owner, *(expr.args if expr.method in _JOINS else ())))
    compared = isinstance(expr, ir.Op) and expr.op in COMPARISONS
    together = compared or isinstance(expr, (ir.Seq, ir.Comp, ir.Wrapper, ir.Starred))
    return together and any(_is_part(one, names) for one in expr.children())
