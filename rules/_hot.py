"""What the rules about calls in every step share: which calls, how often they are made, where it is told, and how they go."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from gpulint.rules._forwards import in_eval_mode

from gpulint.analysis.asked import Asked
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Function
from gpulint.analysis.queries.calls import calls_doing
from gpulint.analysis.queries.grad_mode import grad_mode
from gpulint.analysis.queries.intended import beside_a_phase, intended
from gpulint.analysis.queries.multiplicity import Repeats
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.syntax.nodes import LOOPS, last_name
from gpulint.answers import Answer, Question, left_open, minor, proven, refuted, until_refuted
from gpulint.rule import Claimed, Cost, RelatedNode, Remove, Repair, Report, Rule

_LOOKS = frozenset({"is_available", "device_count", "hasattr", "isinstance", "len"})
_CLEANS = frozenset({"empties cache", "collects", "synchronizes"})
_PLAIN = (ast.Expr, ast.If, ast.With, ast.Pass, ast.Import, ast.ImportFrom)
_LEAST = 0.01  # of a step's time: a call that costs less is not told


@dataclass(frozen=True, slots=True)
class HotCall:
    """A call and one way in which it runs again. It is told `at` a call in the function of `where`: itself, or the one that the loop of
    steps makes."""

    call: ast.Call
    frame: Frame
    repeats: Repeats
    at: ast.Call
    where: Frame

    @property
    def every(self) -> int | None:
        """In every how many steps it is made; None where their number is not seen."""
        return 1 if self.repeats.rate == "step" else self.repeats.period


@dataclass(frozen=True, slots=True)
class Habit:
    """What a call in every step does: its event in the table, the end of the message, the reason, the cost. `slowdown` is how many times
    as long a step of the 4-layer language model takes with it. `meant` says what of its own speaks for it that a call is meant where it
    stands, and `kept` in a clause what else it may be there for, where nobody sees what it would do to leave it out."""

    does: str
    message: str
    reason: str
    cost: Cost
    slowdown: float
    meant: Callable[[Asked, HotCall], Iterable[Answer]] = lambda asked, made: ()
    kept: Callable[[Asked, HotCall], str] = lambda asked, made: ""

    def share(self, every: int | None) -> float | None:
        """The part of a step's time that a call takes which is made in every so many; None where their number is not seen."""
        return (self.slowdown - 1) / every if every else None

    def amortised(self, every: int | None, at: Any, filename: str) -> Answer:
        """What a call costs that is made in every so many steps of a loop; its answer is minor unless it is in every one."""
        share = self.share(every)
        if share is None:
            clause = "how many steps lie between two calls, the code does not say"
            return minor(Question.REPEATS, clause, at, filename)
        if share < _LEAST:
            clause = f"it is made once in {every} steps, which is less than {100 * _LEAST:.0f} % of a step"
            return refuted(Question.REPEATS, clause, at, filename)
        holds = proven if every == 1 else minor
        return holds(Question.REPEATS, f"it is made {_how_often(every)}", at, filename)

    def cost_of(self, every: int | None) -> Cost:
        """What a call costs that is made in every so many steps."""
        share = self.share(every)
        if every == 1:
            return self.cost
        part = "time in some of the steps, and no memory gained"
        if share is not None:
            part = f"1/{every} of what it costs in every step: {100 * share:.1f} % of a step of a 4-layer language model"
        return Cost(part, f"in every step: {self.cost.measured}")


class HotRule(Rule):
    """A rule about calls that some habits have in hot loops."""

    doubts = True
    habits: ClassVar[tuple[Habit, ...]]

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for habit, made in ((one, made) for one in self.habits for made in _made(asked, one.does)):
            answers = until_refuted(_answers(asked, habit, made))
            yield Claimed(made.at, asked.called(made.at), answers, partial(_report, asked, habit, made))


def _how_often(every: int | None) -> str:
    return "in every step" if every == 1 else f"every {every or 'so many'} steps"


def _made(asked: Asked, does: str) -> Iterator[HotCall]:
    """The calls that are an event, in the file and in functions of other files that it calls, each way in which they run."""
    names = asked.evaluator.table.doing({does})
    files = {file for name in names for file in asked.program.searched(name, asked.file)}
    for file in sorted(files, key=lambda one: one.path):
        is_wanted = None if file is asked.file else partial(_is_called_here, asked)
        for call, frame in calls_doing(asked.evaluator, file, {does}, is_wanted):
            for repeats in asked.multiplicity.of(call, frame):
                at, where = _place(asked, call, frame, repeats)
                if asked.is_here(where) and (file is asked.file or repeats.calls):
                    yield HotCall(call, frame, repeats, at, where)


def _is_called_here(asked: Asked, function: Function) -> bool:
    """Whether a call of the file runs a function of another one."""
    calls = ((call.func, asked.root(caller)) for caller, call in asked.file.calls_named(function.name))
    return any(asked.evaluator.value_of(*one).ref is function for one in calls)


def _place(asked: Asked, call: ast.Call, frame: Frame, repeats: Repeats) -> tuple[ast.Call, Frame]:
    """Where it is told: beside the step, or at the call that the loop of steps makes."""
    ways = ((call, frame), *repeats.calls)
    beside = (one for one in ways if asked.steps.of(one[1].function) or one[1] is repeats.frame)
    return next(beside, (call, frame))


def _answers(asked: Asked, habit: Habit, made: HotCall) -> Iterator[Answer]:
    repeats, evaluator = made.repeats, asked.evaluator
    filename = "" if asked.is_here(repeats.frame) else repeats.frame.function.file.path
    if repeats.rate in ("step", "every nth"):
        yield habit.amortised(made.every, repeats.loop, filename)
        phase = beside_a_phase(evaluator, asked.steps, made.call, made.frame)
        if phase is not None:
            yield refuted(Question.REPEATS, "a whole phase stands beside it, which costs more", phase)
        if repeats.work == "forward":
            yield _without_training(asked, made)
    elif repeats.rate == "phase":
        yield refuted(Question.REPEATS, "a round of this loop is a whole phase", repeats.loop, filename)
    else:
        yield refuted(Question.REPEATS, "no loop of steps is seen to run it")
    yield from habit.meant(asked, made)
    yield from intended(evaluator, asked.steps, made.call, made.frame, repeats)
    for flag, wanted in repeats.flags:
        if not _decides_about_steps(asked, flag, wanted, repeats):
            yield _under(flag, repeats)
    yield from reached(evaluator, made.where.function)


def _without_training(asked: Asked, made: HotCall) -> Answer:
    """What it matters in a loop that does not train: little in an evaluation, and for all that is seen nothing in others."""
    frame = made.repeats.frame
    evaluates = in_eval_mode(asked, ((one.node, frame) for one in asked.steps.of(frame.function)))
    sites = ((made.call, made.frame), *made.repeats.calls)
    off = any(grad_mode(asked.evaluator, node, where).mode == "off" for node, where in sites)
    if isinstance(made.repeats.loop, LOOPS) and (evaluates or off):
        return minor(Question.REPEATS, "the loop evaluates: nothing shows that it matters")
    why = "the loop does not train: its rounds may take so long that the call does not matter"
    return left_open(Question.REPEATS, why)


def _under(flag: ast.AST, repeats: Repeats) -> Answer:
    """What a condition that the code does not decide says: where it changes within the loop, it holds in some rounds only."""
    flow = repeats.frame.flow
    bound = {found.statement for found in flow.bound_in(flag)} & flow.blocks.keys()
    changes = repeats.loop in bound or any(repeats.loop in flow.loops(one) for one in bound)
    if changes or any(isinstance(one, ast.Call) for one in ast.walk(flag)):
        return refuted(Question.REPEATS, f"it runs in some rounds only, where `{ast.unparse(flag)}`", flag)
    return left_open(Question.REACHED, f"it runs only where `{ast.unparse(flag)}` says so", flag)


def _decides_about_steps(asked: Asked, flag: ast.AST, wanted: bool, repeats: Repeats) -> bool:
    """Whether a condition is that of a step as well, which pays then."""
    flow, events = repeats.frame.flow, asked.steps.of(repeats.frame.function)
    owners = {block.owner for one in events if one.work == repeats.work for block in flow.around(one.node)}
    return flag in flow.parents and (not wanted or flow.statement_of(flag) in owners)


def _report(asked: Asked, habit: Habit, made: HotCall) -> Report:
    call, function = made.call, made.frame.function
    here = asked.is_here(made.frame)
    what = f"`{asked.source(made.at)}`"
    related: tuple[RelatedNode, ...] = ()
    if made.at is not call:
        elsewhere = "" if here else f" in {os.path.basename(function.file.path)}"
        what = f"`{ast.unparse(call.func)}()`, which {what} runs{elsewhere},"
        message = f"`{function.qualname}` calls it here"
        related = (RelatedNode(message, call if here else None, function.file.path, call.lineno),)
    return Report(
        made.at,
        f"{what} {_how_often(made.every)} {habit.message}",
        habit.reason,
        habit.cost_of(made.every),
        repair=(lambda: _repair(asked, habit, made)) if here else None,
        related=related,
    )


def _repair(asked: Asked, habit: Habit, made: HotCall) -> Repair | None:
    """Takes the call out, where it stands alone, and an `if` that decides about nothing else."""
    flow, at = made.where.flow, made.at
    statement = flow.statement_of(at)
    if not isinstance(statement, ast.Expr) or statement.value is not at or at.args or at.keywords:
        return None
    if not _only_cleans(asked, made):
        return None
    block = flow.blocks[statement]
    whole: ast.stmt = statement
    owner = block.owner
    if isinstance(owner, ast.If) and block.arm == "body" and owner.body == [statement] and not owner.orelse:
        is_elif = flow.blocks[owner].arm == "orelse" and len(flow.blocks[owner].statements) == 1
        calls = (one for one in ast.walk(owner.test) if isinstance(one, ast.Call))
        only_looks = all(last_name(one.func) in _LOOKS for one in calls)
        whole = owner if only_looks and not is_elif else statement
    before = block.statements[: block.statements.index(statement)][-1:]
    dropped = "the memory of what is deleted just before may be wanted at once"
    why = dropped if before and isinstance(before[0], ast.Delete) else habit.kept(asked, made)
    return Repair.unless(why, "remove the call", (Remove(asked.node(whole)),))


def _only_cleans(asked: Asked, made: HotCall) -> bool:
    """Whether what the call that is told runs does nothing but clean up, on the way down to the call that is meant."""
    for call, where in ((made.call, made.frame), *made.repeats.calls):
        if call is made.at:
            return True
        flow = where.function.flow
        others = (one for one in flow.every_call if one is not call and last_name(one.func) not in _LOOKS)
        if any(asked.evaluator.does(one, where) not in _CLEANS for one in others):
            return False
        if not all(isinstance(one, _PLAIN) or one is where.function.node for one in flow.blocks):
            return False
    return False
