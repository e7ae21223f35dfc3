"""What a forward hook keeps for the backward hook, kept also where no backward will come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.lifetimes.hooked import Store, registered, stores, takes_out
from gpulint.rules.detect.lifetimes.reaching_back import own_name, scope
from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.answers import Answer, Question, left_open, proven

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


def uneaten(file: FileAnalysis) -> list[Suspicion]:
    """Forward hooks that add what only a backward hook takes out again, without asking whether grad is on."""
    eaters = [one.hook for one in registered(file) if one.backward and one.hook is not None]
    if not eaters:
        return []
    return [
        _suspicion(file, store)
        for store in stores(file)
        if store.adds
        and not store.registration.backward
        and (store.kept.device or store.kept.graph)
        and not _asks(store.hook)
        and _is_eaten(file, store, eaters)
    ]


def _asks(hook: ir.Function) -> bool:
    """Whether the hook looks if grad is on: `torch.is_grad_enabled()`, `output.requires_grad`."""
    given = {param.name for param in hook.params}
    for statement in ir.statements(hook.body):
        for part in ir.own_parts(statement):
            if isinstance(part, ir.Attr) and part.attr == "is_grad_enabled":
                return True
            if isinstance(part, ir.Attr) and part.attr in ("requires_grad", "grad_fn"):
                if any(isinstance(inner, ir.Name) and inner.id in given for inner in ir.walk(part.base)):
                    return True
    return False


def _is_eaten(file: FileAnalysis, store: Store, eaters: list[ir.Function]) -> bool:
    """Whether a backward hook, or a method that it calls, takes out what is added, and nothing else does."""
    reached: list[ir.Function] = []
    for eater in eaters:
        reached += [eater, *_called_by(file, eater)]
    taking = [f for f in scope(file, store.hook) if f is not store.hook and takes_out(f, store.word)]
    return bool(taking) and all(any(function is one for one in reached) for function in taking)


def _called_by(file: FileAnalysis, hook: ir.Function) -> Iterator[ir.Function]:
    own = own_name(hook)
    for other in scope(file, hook):
        if other.name in file.evidence[hook].called and own:
            yield other


def _suspicion(file: FileAnalysis, store: Store) -> Suspicion:
    return Suspicion(
        store.value,
        store.place,
        f"the hook adds to `{store.place}` at every forward, and only a backward takes it out again",
        "a forward without a backward, in an evaluation say, leaves its activations there: ask `torch.is_grad_enabled()`",
        "one activation of each hooked layer, for every batch that no backward follows",
        (
            proven(Question.OUTLIVES, "nothing but the backward hook takes out what is kept"),
            _evaluates(file),
        ),
    )


def _evaluates(file: FileAnalysis) -> Answer:
    """Whether forwards without a backward are seen to run over batches."""
    for facts in file.function_facts:
        for forward in facts.forwards:
            if forward.loops and (forward.mode.evaluating or forward.mode.grad.name == "DISABLED"):
                return proven(
                    Question.REACHED, "batches are evaluated while the hooks are there", forward.stmt
                )
    return left_open(
        Question.REACHED, "whether forwards without a backward run while the hooks are there is not shown"
    )
