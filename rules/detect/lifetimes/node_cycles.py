"""A hook of a tensor or of a graph's node that holds an object which holds tensors: a circle that no collector can see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.rules.detect.lifetimes.hooked import Registration, registered
from gpulint.rules.detect.lifetimes.reaching_back import own_name, owner_of
from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.answers import Question, left_open, proven

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


def node_cycles(file: FileAnalysis) -> list[Suspicion]:
    """Closures over the object, registered on a node of the graph, of a class whose methods keep tensors on the object."""
    found: list[Suspicion] = []
    weak = any(full.startswith("weakref") for full in file.module.imports.values())
    for registration in registered(file):
        if registration.of_tensor and not weak and _is_of_node(registration):
            suspicion = _suspicion(registration)
            if suspicion is not None:
                found.append(suspicion)
    return found


def _is_of_node(registration: Registration) -> bool:
    """`y.grad_fn.register_hook(…)`."""
    func = registration.call.func
    return isinstance(func, ir.Attr) and any(
        isinstance(part, ir.Attr) and part.attr == "grad_fn" for part in ir.walk(func.base)
    )


def _suspicion(registration: Registration) -> Suspicion | None:
    own, owner = own_name(registration.function), owner_of(registration.function)
    held = _where_held(registration, own) if own else None
    if held is None or owner is None:
        return None
    kept = _kept_tensor(owner)
    if kept is None:
        return None
    return Suspicion(
        held,
        own,
        f"a hook on a node of the graph holds `{own}`, and `{own}` holds tensors of that graph",
        "the node belongs to autograd, where Python's collector does not look: use a weak reference to the object",
        "the graph and what it has saved, for every forward whose circle nobody breaks",
        (
            proven(Question.OUTLIVES, "nothing in the file removes the hook or refers weakly to the object"),
            left_open(
                Question.GRAPH, "whether what the object keeps leads back to that node is not shown", kept
            ),
        ),
    )


def _where_held(registration: Registration, own: str) -> ir.Part | None:
    """The place at which the hook speaks of the object."""
    for part in ir.walk(registration.call.args[0]):
        if part.path == own:
            return part
    hook = registration.hook
    if hook is None or hook.cls is not None:
        return None
    for statement in ir.statements(hook.body):
        for part in ir.own_parts(statement):
            if isinstance(part, ir.Name) and part.id == own:
                return part
    return None


def _kept_tensor(owner: ir.Class) -> ir.Stmt | None:
    """A statement that stores on the object what a hook method was given, as it is: its input, output or gradient."""
    for method in owner.methods.values():
        own = own_name(method)
        given = {param.name for param in method.params} - {own}
        if method.name == "__init__" or len(given) < 2:
            continue
        for statement in ir.statements(method.body):
            if isinstance(statement, ir.Assign) and isinstance(statement.value, (ir.Name, ir.Sub)):
                value = statement.value.base if isinstance(statement.value, ir.Sub) else statement.value
                if value.path in given and any(
                    (t.path or "").startswith(f"{own}.") for t in targets(statement)
                ):
                    return statement
    return None
