"""What becomes of what a forward gives: a backward goes through it, it is only read, or it goes where nobody sees."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Final

from gpulint.analysis.evaluate.consumers import Use, consumers
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, settled
from gpulint.analysis.project.file import Function
from gpulint.analysis.queries.calls import entered
from gpulint.analysis.queries.grad_mode import grad_mode
from gpulint.analysis.queries.networks.runs import Run
from gpulint.analysis.syntax.flow import Flow
from gpulint.analysis.syntax.nodes import arguments, called_on

_DECIDING: Final = frozenset({"reads", "cuts", "saved", "tested"})
_HANDED: Final = frozenset({"given", "too much", "optimized", "copied"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """The uses that decide: backwards through it; those that only read or cut it; those out of sight; what is returned to callers that
    nobody sees; where it is stored. `handed` is all that goes out of sight, for what comes back too; `undetached` is one that torch
    refuses for what has a graph."""

    wanted: tuple[Use, ...]
    read: tuple[Use, ...]
    unseen: tuple[Use, ...]
    handed: tuple[Use, ...]
    returned: tuple[Use, ...]
    stored: tuple[Use, ...]
    undetached: Use | None

    @property
    def by_choice(self) -> Use | None:
        """Where it is cut under a condition, and goes on with its graph where that does not hold."""
        cuts = (one for one in self.read if self.returned and one.name in ("detach", "data"))
        return next((one for one in cuts if _is_chosen_there(one)), None)

    @property
    def is_read_only(self) -> bool:
        """Whether nothing of it goes on with its graph."""
        return not (self.wanted or self.unseen or self.returned)


def _is_chosen_there(use: Use) -> bool:
    """Whether a use is one side of a conditional expression."""
    node, parents = use.node, use.frame.flow.parents
    while isinstance(above := parents.get(node), (ast.Attribute, ast.Call)):
        node = above
    return isinstance(above, ast.IfExp)


def outcome(evaluator: Evaluator, node: Any, frame: Frame, path: tuple[Any, ...] = ()) -> Outcome:
    """What becomes of the graph of what an expression gives, or of what is in it under a path."""
    return settled(evaluator, frame, ("outcome", node, path), lambda: _outcome(evaluator, node, frame, path))  # type: ignore[no-any-return]


def _outcome(evaluator: Evaluator, node: Any, frame: Frame, path: tuple[Any, ...]) -> Outcome:
    found = consumers(evaluator, node, frame, "graph", path)

    def of(*roles: str) -> tuple[Use, ...]:
        return tuple(one for one in found if one.role in roles)

    stepping = tuple(one for one in of("given") if steps(evaluator, one))
    out = (one for one in found if one.role in _HANDED or (one.role == "method" and one.path))
    handed = tuple(one for one in out if one not in stepping)
    return Outcome(
        of("backward") + stepping,
        of(*_DECIDING),
        tuple(one for one in handed if not _is_for_its_value(one)),
        handed,
        of("returned"),
        of("stored", "computed"),
        next((one for one in found if _is_refused(evaluator, one)), None),
    )


def _is_refused(evaluator: Evaluator, use: Use) -> bool:
    """Whether torch would refuse what is done to what has a graph: that an entry has none says nothing of the others."""
    on = called_on(use.node) if use.does == "refuses graphs" else None
    assumptions = evaluator.value_of(on, use.frame).assumptions if on is not None else ()
    return on is not None and not any(isinstance(one.at, ast.Subscript) for one in assumptions)


def _is_for_its_value(use: Use) -> bool:
    """Whether what is not seen is called for what it gives, whose uses tell then: `loss = self.criterion(out, y)`."""
    above = use.frame.flow.parents.get(use.node)
    return use.role != "too much" and isinstance(use.node, ast.Call) and not isinstance(above, ast.Expr)


def steps(evaluator: Evaluator, use: Use) -> bool:
    """Whether what is not seen is given an optimizer beside: it takes a step."""
    given = arguments(use.node) if isinstance(use.node, ast.Call) else ()
    return any(evaluator.value_of(one, use.frame).kind in ("optimizer", "scaler") for one in given)


def place_in(function: Function, node: Any, frame: Frame) -> Any:
    """Where a function gets to a node: the node itself, or the call that leads to it; None where it does not."""
    return next((one for one, outer in frame.leading_to(node) if outer.function is function), None)


@dataclass(frozen=True, slots=True)
class Phase:
    """A run of a function in which no backward goes through what it goes through in others: `frame` is of a call that chooses it, or
    of the function where it shows by itself that there are both, None where nobody is seen to choose; `by` is the condition around the backward that does."""

    frame: Frame | None
    by: Any


def phase_of(evaluator: Evaluator, run: Run, places: list[tuple[Any, Frame]]) -> Phase | None:
    """Such a phase of a run whose own function goes backward, at these places, under a condition that is not around the run."""
    flow = run.frame.flow
    around = {_spelled(test) for test, _ in flow.conditions(run.call)}
    tests: list[list[tuple[Any, bool]]] = []  # around each of the backwards
    for at in places:
        node = place_in(run.frame.function, *at)
        if node not in flow.parents:
            return None
        tests.append([one for one in flow.conditions(node) if _spelled(one[0]) not in around])
    own = [node for node, where in places if where is run.frame]
    called = entered(evaluator, run.frame, 3 if own else 1)  # from further out less of what is called is seen
    # else it runs there, whatever is seen of values
    without = (one for one in called if all(evaluator.is_dead(node, one) for node in own))
    others = [one for one in without if not outcome(evaluator, run.inner, one).wanted]
    if others:
        on = (one for one in others if grad_mode(evaluator, run.call, one).mode == "on")
        return Phase(next(on, others[0]), None)
    both = [_gone_through(evaluator, more, run.frame) for more in tests]
    if both and None not in both:
        return Phase(run.frame, both[0])
    chosen = [next((one for one, _ in more if _is_chosen(one, run.frame)), None) for more in tests]
    sides = {wanted for more in tests for one, wanted in more if one in chosen}
    if None in chosen or len(sides) != 1:
        return None
    shown = _evaluates_else(flow, chosen[0], *sides) and evaluator.callers(run.frame.function)
    return Phase(run.frame if shown else None, chosen[0])


def _evaluates_else(flow: Flow, test: Any, wanted: bool) -> bool:
    """Whether a network is put into eval mode where a condition does not hold."""
    around = (one for call in flow.calls.get("eval", ()) for one in flow.conditions(call))
    return any(_spelled(one) == _spelled(test) and holds is not wanted for one, holds in around)


def _gone_through(evaluator: Evaluator, tests: list[tuple[Any, bool]], frame: Frame) -> Any:
    """The first of some conditions that compares what a loop goes through with one of several texts: `for phase in ("train", "val")`."""
    for test, wanted in tests:
        if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Name):
            continue
        against = evaluator.value_of(test.comparators[0], frame).const
        for one in frame.flow.reaching(test.left):
            items = getattr(one.value, "elts", ()) if one.kind == "loop" else ()
            equal = [evaluator.value_of(item, frame).const == against for item in items]
            if isinstance(test.ops[0], ast.Eq) and wanted and False in equal:
                return test
    return None


def _spelled(test: Any) -> str:
    """A condition as it is written, whichever way round."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    return ast.unparse(test)


def _is_chosen(test: Any, frame: Frame) -> bool:
    """Whether a condition compares something with a text, or asks for a flag, that the function is given or that a loop goes through."""
    kinds = {one.kind for one in frame.flow.bound_in(test)}
    texts = (isinstance(one, ast.Constant) and isinstance(one.value, str) for one in ast.walk(test))
    is_text = isinstance(test, ast.Compare) and any(texts)
    return (is_text or isinstance(test, ast.Name)) and kinds <= {"parameter", "loop"}
