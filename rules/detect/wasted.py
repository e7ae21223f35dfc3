"""Graphs that a training step builds for nobody: forwards whose result is only detached."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.rules.detect.auxiliary import SWITCHES_GRAD, untrained_forwards
from gpulint.rules.detect.unseen.networks import Networks
from gpulint.rules.detect.unseen.sights import Sight, sights

from gpulint.analysis.code import ir
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.facts import (
    Forward,
    ForwardMode,
    ForwardModule,
    ForwardResult,
    FunctionFacts,
    Loop,
)
from gpulint.analysis.questions.backward.cutting import Uses, mixes
from gpulint.analysis.questions.grad.freezing import (
    Switched,
    may_be_frozen,
    thawed_by_context,
)
from gpulint.analysis.questions.grad.frozen_networks import classes_bound, handed_frozen
from gpulint.analysis.questions.grad.no_graph import gives_graph, is_weightless
from gpulint.analysis.values.arguments import bind_sources
from gpulint.analysis.values.values import Grad, Site
from gpulint.answers import Answer

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

# Who switches requires_grad by hand decides about graphs in a way that no name shows.
SWITCHING = SWITCHES_GRAD | {"register_forward_hook"}


@dataclass(slots=True)
class WastedForward:
    """A forward of the training step whose result never reaches a backward. `alone`: nothing else of its statement
    could want a graph, so that the whole statement can go under no_grad. `untrained`: a backward goes through it, but
    no optimizer steps the network, and nothing before it wants a gradient. `unread`: nothing reads its result. `handed`: what its callers say of it."""

    facts: FunctionFacts
    forward: Forward
    alone: bool
    untrained: bool = False
    unread: bool = False
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
    networks = Networks(file)
    found: list[WastedForward] = []
    for facts in functions:
        function = facts.function
        if facts.role.is_test or function.name == "test" or not _trains(file, facts):
            continue
        switched = Switched(function, SWITCHING)
        if facts.role.is_module_forward and not facts.has_backward and not gives_graph(file, function):
            continue  # it acts or predicts, whatever else trains; grad is its callers' business
        uses: Uses | None = None
        wasted: list[Forward] = []
        unread: set[int] = set()
        behind = list(_behind_calls(file, facts, networks))
        through = {id(one.call) for one in (*facts.forwards, *behind) if one.module.proven}
        for forward in (*facts.forwards, *behind):
            if forward.mode.evaluating and forward.mode.after_training:
                continue  # an evaluation, which is another rule's
            thawed = thawed_by_context(file, forward)
            if thawed is False or (not thawed and switched.concerns(forward.module.path)):
                continue
            if facts.needs_grad and _differentiates(networks, forward):
                continue
            if _may_be_wasted(facts, forward) and _in_step(facts, forward):
                uses = uses or Uses(file, function, through)
                if uses.is_cut(forward):
                    wasted.append(forward)
                elif uses.is_unread(forward) and not facts.role.is_module_forward:
                    wasted.append(forward)
                    unread.add(id(forward))
        seen: set[int] = set()
        for forward in wasted:
            if id(forward.stmt) not in seen:
                seen.add(id(forward.stmt))
                alone = _is_alone(facts, forward, wasted)
                found.append(WastedForward(facts, forward, alone, unread=id(forward) in unread))
    found = [item for item in found if not may_be_frozen(file, item.forward)]
    for facts, forward in untrained_forwards(file, functions):
        alone = _is_alone(facts, forward, [forward])
        found.append(WastedForward(facts, forward, alone, untrained=True))
    for item in found:
        said = handed_frozen(file, item.forward.function, item.forward.module.path)
        item.handed = () if said is None else (said,)
    return found


# --- networks that run behind a method or a helper -------------------------------------------------------------------


def _behind_calls(file: FileAnalysis, facts: FunctionFacts, networks: Networks) -> Iterator[Forward]:
    """The calls of a training step that run a network out of its sight, `self.coder.encode(x)` and `sample(coder, 8)`, where
    the method or the function is seen, and to give a graph for certain and do nothing else with it."""
    function = facts.function
    if facts.role.is_module_forward or not facts.has_backward:
        return
    known = {id(forward.call) for forward in facts.forwards}
    around: list[Sight] = []
    for statement, call in ir.calls(function.body):
        if id(call) in known or not (call.args or call.keywords):
            continue
        callee = _behind(file, function, call, networks)
        if callee is None or callee is function or not _only_gives_graph(callee):
            continue
        around = around or sights(file, function)
        sight = next((one for one in around if one.statement is statement), None)
        loops = _loops_of(facts, sight) if sight is not None else None
        if sight is None or loops is None or sight.grad is not Grad.ENABLED or sight.rescuing:
            continue
        for path in _networks_behind(function, call, callee):
            made = [one for one in classes_bound(file, function, path) if isinstance(one, ClassInfo)]
            module = ForwardModule(path, True, network=made[0] if made else None)
            mode = ForwardMode(Grad.ENABLED, False, trains_nearby=True)
            site = Site(call, "call", function, path)
            yield Forward(function, statement, call, site, loops, mode, ForwardResult(), module)


def _behind(
    file: FileAnalysis, function: ir.Function, call: ir.Call, networks: Networks
) -> ir.Function | None:
    """The function that a call runs: by its name, or the method of the class of the object."""
    found = networks.callee(function, call)
    owner = call.func.base.path if isinstance(call.func, ir.Attr) else None
    if found is not None or owner is None:
        return found
    classes = classes_bound(file, function, owner)
    methods = [one.method(call.method) if isinstance(one, ClassInfo) else None for one in classes]
    return methods[0] if len(methods) == 1 else None


def _only_gives_graph(callee: ir.Function) -> bool:
    """Whether a function runs a network with grad as its caller has it, gives what that makes, and leaves it nowhere else."""
    home: FileAnalysis = callee.home
    summary = home.summary(callee)
    if summary is None or callee.is_generator or home.may_switch_grad(callee) or callee.name == "forward":
        return False
    acts = summary.backwards or summary.steps or summary.autograd_grad or summary.stores or summary.keeps
    return summary.runs and not acts and gives_graph(home, callee)


def _networks_behind(function: ir.Function, call: ir.Call, callee: ir.Function) -> Iterator[str]:
    """What a call runs: the networks that it is given, those of the object that it is a method of, or that object."""
    home: FileAnalysis = callee.home
    summary = home.summary(callee)
    own = function.params[0].name if function.cls is not None and function.params else ""
    base = call.func.base.path if isinstance(call.func, ir.Attr) else None
    sources = bind_sources(callee, call, callee.cls is not None)
    for path in sorted(summary.forward_paths) if summary is not None else ():
        given = sources.get(path.partition(".")[0])
        if given is not None and given.path is not None:
            yield given.path
        elif base is not None and base == own:
            yield path
        elif base is not None:
            yield base
            return


def _loops_of(facts: FunctionFacts, sight: Sight) -> tuple[Loop, ...] | None:
    """The loops around a statement, where its backward runs as often: in the innermost of them, and in what branches
    off there every so many rounds. None where it does not."""
    for backward in facts.backwards:
        if [loop.stmt for loop in backward.loops[-1:]] == list(sight.loops[-1:]):
            if all(
                _holds(branch, backward.stmt) for branch, _ in sight.branches if _asks_now_and_then(branch)
            ):
                return backward.loops
    return None


def _holds(branch: ir.If, statement: ir.Stmt) -> bool:
    return any(inner is statement for inner in ir.statements([branch]))


def _asks_now_and_then(branch: ir.If) -> bool:
    """`if step % every == 0:`, `if self.training:`"""
    return any(
        (isinstance(part, ir.Op) and part.op in ("%", "==", "cmp")) or part.path == "self.training"
        for part in ir.walk(branch.test)
    )


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


def _differentiates(networks: Networks, forward: Forward) -> bool:
    """Whether what is called takes gradients by itself, which it could not without a graph."""
    network = forward.module.network
    callee = networks.callee(forward.function, forward.call)
    if callee is None and isinstance(network, ClassInfo):
        callee = network.method("forward")
    summary = callee.home.summary(callee) if callee is not None else None
    return summary is not None and summary.autograd_grad


def _goes_backward_itself(facts: FunctionFacts, forward: Forward) -> bool:
    """`self._train_critic(data)`, a method that goes backward through what it makes before it gives it."""
    cls, path = facts.function.cls, forward.module.path or ""
    method = cls.methods.get(path.partition(".")[2]) if cls is not None else None
    known: FunctionFacts | None = facts.function.home.facts.get(method) if method is not None else None
    return known is not None and known.has_backward


def _is_alone(facts: FunctionFacts, forward: Forward, wasted: list[Forward]) -> bool:
    statement = forward.stmt
    if not isinstance(statement, (ir.Assign, ir.AugAssign, ir.ExprStmt)):
        return False
    if any(other.stmt is statement and other not in wasted for other in facts.forwards):
        return False
    if any(backward.stmt is statement for backward in facts.backwards):
        return False
    return not mixes(facts, forward)
