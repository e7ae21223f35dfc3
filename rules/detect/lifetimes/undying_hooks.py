"""Hooks on a module from outside whose handle nobody keeps: they live as long as the module, and what they hold with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.lifetimes.hooked import Registration, Store, registered, stores
from gpulint.rules.detect.lifetimes.reaching_back import comes_from_outside, own_name, owner_of
from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.answers import Answer, Question, left_open, proven, refuted
from gpulint.rule import RelatedNode

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_TAKING_AWAY = frozenset({"_forward_hooks", "_backward_hooks", "_forward_pre_hooks"})


def undying_hooks(file: FileAnalysis) -> list[Suspicion]:
    """Hooks that a method registers on a module which the object was given, and drops the handle of."""
    dropped = [one for one in registered(file) if one.dropped and not one.of_tensor and _by_an_object(one)]
    if not dropped or any(evidence.words & _TAKING_AWAY for evidence in file.evidence.values()):
        return []
    kept = {id(store.hook): store for store in stores(file)}
    groups: dict[int, list[Registration]] = {}
    for one in dropped:
        groups.setdefault(id(one.function), []).append(one)
    return [_suspicion(file, group, kept) for group in groups.values()]


def _by_an_object(registration: Registration) -> bool:
    """Whether a method registers it, other than a forward, on a module that comes from outside."""
    function = registration.function
    owner = owner_of(function)
    if owner is None or function.name in ("forward", "__call__") or not own_name(function):
        return False
    assert isinstance(registration.call.func, ir.Attr)
    return comes_from_outside(function, registration.call.func.base)


def _suspicion(file: FileAnalysis, group: list[Registration], kept: dict[int, Store]) -> Suspicion:
    """One claim for all the hooks that a method registers, at the first of them."""
    registration = group[0]
    store = next((kept[id(one.hook)] for one in group if id(one.hook) in kept), None)
    owner = owner_of(registration.function)
    assert owner is not None
    answers = [
        *_part_of_its_work(file, owner, store),
        proven(
            Question.OUTLIVES,
            "the module comes from outside, and nobody has the handle that would remove the hook",
        ),
        _made_again(file, owner),
    ]
    if store is not None:
        what = f"`{store.place}` among it" if store.place.startswith("self.") else f"`{store.place}` too"
        answers.append(proven(Question.SIZE, f"the hook keeps tensors: {what}", store.stmt))
    elif (
        registration.hook is not None
        and not _holds_object(registration)
        and not _on_every_module(registration)
    ):
        answers.append(refuted(Question.SIZE, "the hook holds nothing of the object, and keeps nothing"))
    else:
        answers.append(left_open(Question.SIZE, "what the hook keeps besides is not seen to be large"))
    holds = "it and all that it keeps" if _holds_object(registration) else "what it keeps"
    return Suspicion(
        registration.call,
        registration.call.method,
        f"the handle of this hook is dropped: the hook stays on the module as long as that lives, with {holds}",
        f"each `{owner.name}` leaves its own hook behind, which runs at every forward and is never removed",
        "what the object keeps, activations above all, for each object that was ever made",
        tuple(answers),
        related=tuple(RelatedNode("the same of this hook", one.call) for one in group[1:]),
    )


def _part_of_its_work(file: FileAnalysis, owner: ir.Class, store: Store | None) -> Iterator[Answer]:
    """Whether the object and the module are one for good: an optimizer of it, or a network that the hook works for."""
    info = file.owners.get(owner)
    if info is None:
        return
    if any(name.endswith("Optimizer") for name in info.base_names):
        yield refuted(Question.MEANT, "an optimizer is made for its network, and lives as long")
    forward = owner.methods.get("forward")
    if store is not None and forward is not None and store.word in file.evidence[forward].words:
        yield refuted(Question.MEANT, "the network's own forward reads what the hook keeps", forward)


def _on_every_module(registration: Registration) -> bool:
    """Whether it is registered in a loop over all modules."""
    for loop in ir.loops_around(registration.function.body, registration.stmt) or ():
        if isinstance(loop, ir.For) and any(
            isinstance(part, ir.Call) and part.method in ("modules", "named_modules")
            for part in ir.walk(loop.iterable)
        ):
            return True
    return False


def _holds_object(registration: Registration) -> bool:
    """Whether the hook is a method, or speaks of the object."""
    own = own_name(registration.function)
    given = registration.call.args[0]
    if any(part.path == own for part in ir.walk(given)):
        return True
    hook = registration.hook
    return hook is not None and any(
        isinstance(part, ir.Name) and part.id == own
        for statement in ir.statements(hook.body)
        for part in ir.own_parts(statement)
    )


def _made_again(file: FileAnalysis, owner: ir.Class) -> Answer:
    """Whether the program makes more than one such object for a module that lives on."""
    made = list(_makings(file, owner))
    for function, statement in made:
        if ir.loops_around(function.body, statement) or file.called_in_data_loop & {function}:
            return proven(Question.REPEATS, f"a loop makes one `{owner.name}` after another", statement)
    if made and all(_is_once(file, function, statement) for function, statement in made):
        return refuted(Question.REPEATS, f"the program makes one `{owner.name}`", made[0][1])
    return left_open(
        Question.REPEATS,
        f"whether the program makes a second `{owner.name}` for the same module is not shown",
    )


def _is_once(file: FileAnalysis, function: ir.Function, statement: ir.Stmt) -> bool:
    """Whether an object is made by a program's own function, or by one that then runs its loop."""
    if function is file.module.body or function.name == "main":
        return True
    behind = False
    for other in ir.statements(function.body):
        behind |= other is statement
        if behind and isinstance(other, (ir.For, ir.While)):
            return True
    return False


def _makings(file: FileAnalysis, owner: ir.Class) -> Iterator[tuple[ir.Function, ir.Stmt]]:
    for function in file.module.functions:
        if owner.name in file.evidence[function].called:
            for statement, call in ir.calls(function.body):
                if call.method == owner.name:
                    yield function, statement
