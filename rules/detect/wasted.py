"""Graphs that a training step builds for nobody: forwards whose result is only detached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.rules.detect.auxiliary import SWITCHES_GRAD, untrained_forwards

from gpulint.analysis.code import ir
from gpulint.analysis.file.facts import Forward, FunctionFacts
from gpulint.analysis.questions.backward.cutting import Uses, mixes
from gpulint.analysis.questions.grad.freezing import may_be_frozen, thawed_by_context
from gpulint.analysis.questions.grad.frozen_networks import handed_frozen
from gpulint.analysis.questions.grad.no_graph import gives_graph, is_weightless
from gpulint.analysis.values.values import Grad
from gpulint.answers import Answer

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

# Who switches requires_grad by hand decides about graphs in a way that no name shows.
SWITCHING = SWITCHES_GRAD | {"register_forward_hook"}


@dataclass(slots=True)
class WastedForward:
    """A forward of the training step whose result never reaches a backward. `alone`: nothing else of its statement
    could want a graph, so that the whole statement can go under no_grad. `untrained`: a backward goes through it, but
    no optimizer steps the network, and nothing before it wants a gradient. `handed`: what its callers say of it."""

    facts: FunctionFacts
    forward: Forward
    alone: bool
    untrained: bool = False
    handed: tuple[Answer, ...] = ()

    @property
    def in_step(self) -> bool:
        """Whether it runs as often as the backward: not once an epoch beside a loop that trains."""
        loops = self.forward.loops
        return (
            not loops or any(b.loops[-1:] == loops[-1:] for b in self.facts.backwards) or loops[-1].steps > 0
        )


# --- forwards only detached ----------------------------------------------------------------------------------------


def wasted_forwards(file: FileAnalysis) -> list[WastedForward]:
    """Forwards in training code, with grad enabled, of which only detached values or numbers remain."""
    functions = file.function_facts
    found: list[WastedForward] = []
    for facts in functions:
        function = facts.function
        if facts.role.is_test or function.name == "test" or facts.needs_grad or not _trains(file, facts):
            continue
        switching = bool(words_beside(file, function) & SWITCHING)
        if facts.role.is_module_forward and not facts.has_backward and not gives_graph(file, function):
            continue  # it acts or predicts, whatever else trains; grad is its callers' business
        uses: Uses | None = None
        wasted: list[Forward] = []
        for forward in facts.forwards:
            if forward.mode.evaluating and forward.mode.after_training:
                continue  # an evaluation, which is another rule's
            thawed = thawed_by_context(file, forward)
            if thawed is False or (switching and not thawed):
                continue
            if _may_be_wasted(facts, forward) and _in_step(facts, forward):
                uses = uses or Uses(file, function)
                if uses.is_cut(forward):
                    wasted.append(forward)
        seen: set[int] = set()
        for forward in wasted:
            if id(forward.stmt) not in seen:
                seen.add(id(forward.stmt))
                found.append(WastedForward(facts, forward, _is_alone(facts, forward, wasted)))
    found = [item for item in found if not may_be_frozen(file, item.forward)]
    for facts, forward in untrained_forwards(file, functions):
        alone = _is_alone(facts, forward, [forward])
        found.append(WastedForward(facts, forward, alone, untrained=True))
    for item in found:
        said = handed_frozen(file, item.forward.function, item.forward.module.path)
        item.handed = () if said is None else (said,)
    return found


def _trains(file: FileAnalysis, facts: FunctionFacts) -> bool:
    """Whether the function is a training step, or a module's forward, of which training runs are made."""
    if facts.has_backward or facts.steps or facts.role.is_module_forward:
        return True
    return file.framework_backward(facts.function)


def _in_step(facts: FunctionFacts, forward: Forward) -> bool:
    """Whether a backward or an optimizer's step runs as often as the forward: the same loop's, or the same function's."""
    if forward.loops:
        return forward.mode.trains_nearby
    return (
        not facts.has_backward or facts.steps > 0 or any(not backward.loops for backward in facts.backwards)
    )


def _may_be_wasted(facts: FunctionFacts, forward: Forward) -> bool:
    if forward.mode.grad is not Grad.ENABLED or forward.site is None or not forward.module.proven:
        return False
    if is_weightless(forward.module.network) or _goes_backward_itself(facts, forward):
        return False
    if not forward.call.args and not forward.call.keywords:
        return False  # a module without input makes parameters
    # A branch of a module's forward may be there for evaluation alone, which its caller guards.
    return not forward.mode.phased and not (facts.role.is_module_forward and forward.mode.guarded)


def _goes_backward_itself(facts: FunctionFacts, forward: Forward) -> bool:
    """`self._train_critic(data)`, a method that goes backward through what it makes before it gives it."""
    cls, path = facts.function.cls, forward.module.path or ""
    method = cls.methods.get(path.partition(".")[2]) if cls is not None else None
    known: FunctionFacts | None = facts.function.home.facts.get(method) if method is not None else None
    return known is not None and known.has_backward


def words_beside(file: FileAnalysis, function: ir.Function) -> set[str]:
    """The words of the function and of the methods beside it."""
    if function.cls is None:
        return file.evidence[function].words
    return {word for method in function.cls.methods.values() for word in file.evidence[method].words}


def _is_alone(facts: FunctionFacts, forward: Forward, wasted: list[Forward]) -> bool:
    statement = forward.stmt
    if not isinstance(statement, (ir.Assign, ir.AugAssign, ir.ExprStmt)):
        return False
    if any(other.stmt is statement and other not in wasted for other in facts.forwards):
        return False
    if any(backward.stmt is statement for backward in facts.backwards):
        return False
    return not mixes(facts, forward)
