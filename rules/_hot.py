"""What the rules about calls in every step share: how often one is made, how it is named that a helper makes, and how it goes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.answers import (
    Answer,
    Considered,
    Question,
    Verdict,
    confidence_of,
    doubts_of,
    left_open,
    proven,
    refuted,
    unweighed,
)
from gpulint.findings import Severity
from gpulint.rule import Cost, RelatedNode, Remove, Repair, Report

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.analysis.file.facts import HotCall
    from gpulint.answers import Place

_LOOKS = frozenset({"is_available", "device_count", "hasattr", "isinstance", "len"})
_LEAST = 0.01  # of a step's time: a call that costs less is not told


@dataclass(frozen=True, slots=True)
class Habit:
    """What a call in every step does: the end of the message, the reason, the cost. `slowdown` is how many times as long a step
    of the 4-layer language model takes with it."""

    message: str
    reason: str
    cost: Cost
    slowdown: float

    def share(self, every: int | None) -> float | None:
        """The part of a step's time that a call takes which is made in every so many; None where their number is not seen."""
        return (self.slowdown - 1) / every if every else None

    def amortised(self, every: int | None, at: Place | None) -> Answer:
        """What a call costs that is made in every so many steps of a loop; its answer is minor unless it is in every one."""
        share, is_minor = self.share(every), every != 1
        if share is None:
            clause = "in every how many steps it is made, the code does not say"
            return replace(unweighed(Question.REPEATS, clause, at), minor=True)
        if share < _LEAST:
            clause = f"it is made once in {every} steps, which is less than {100 * _LEAST:.0f} % of a step"
            return refuted(Question.REPEATS, clause, at)
        return replace(proven(Question.REPEATS, f"it is made {how_often(every)}", at), minor=is_minor)

    def answers(self, call: HotCall) -> tuple[Answer, ...]:
        """What is asked about a call: how often it is made, whether that costs anything, and what leaves that open."""
        at = call.loops[-1].stmt if call.loops else None
        often = refuted(Question.REPEATS, call.seldom, at) if call.seldom else self.amortised(call.every, at)
        doubted = call.doubt and often.verdict is not Verdict.REFUTED
        return (often, left_open(Question.MEANT, call.doubt)) if doubted else (often,)

    def cost_of(self, every: int | None) -> Cost:
        """What a call costs that is made in every so many steps."""
        share = self.share(every)
        if every == 1:
            return self.cost
        everywhere = f"in every step: {self.cost.measured}"
        if share is None:
            return Cost(
                "a part of what it costs in every step: how large a part, the code does not tell", everywhere
            )
        part = f"1/{every} of what it costs in every step"
        return Cost(f"{part}: {100 * share:.1f} % of a step of a 4-layer language model", everywhere)


def considered(facts: FileFacts, name: str, habit: Habit) -> Iterator[Considered]:
    """Each call of this name, told or not."""
    for call in facts.hot_calls(name):
        yield Considered(call.call, facts.called(call.call), habit.answers(call))


def reports(facts: FileFacts, calls: Iterable[HotCall], habit: Habit) -> Iterator[Report]:
    """Those of the calls that cost something: a warning in every step of a training, a note where nothing shows that it matters."""
    for call in calls:
        answers = habit.answers(call)
        if confidence_of(answers) is None:
            continue
        what, related = named(facts, call)
        yield Report(
            call.call,
            f"{what} {how_often(call.every)} {habit.message}",
            habit.reason,
            habit.cost_of(call.every),
            Severity.INFO if call.minor else None,
            repair=lambda call=call: removal(call),  # type: ignore[misc]
            doubts=doubts_of(answers),
            related=related,
            subject=facts.called(call.call),
        )


def how_often(every: int | None) -> str:
    """In words, in every how many steps something is done; None where their number is not seen."""
    return "in every step" if every == 1 else f"every {every or 'so many'} steps"


def named(facts: FileFacts, call: HotCall) -> tuple[str, tuple[RelatedNode, ...]]:
    """The call as a message names it, with the place where a helper makes it."""
    from gpulint.analysis.questions.repeats.hot import made_in

    made = made_in(call)
    if made is None or call.via is None:
        return f"`{facts.source(call.call)}`", ()
    elsewhere = call.via.home.module is not facts.module
    where = f" in {os.path.basename(call.via.home.filename)}" if elsewhere else ""
    message = f"`{call.name}()`, which `{facts.source(call.call)}` runs{where},"
    related = RelatedNode(
        f"`{call.via.qualname}` calls it here", None if elsewhere else made, call.via.home.filename, made.row
    )
    return message, (related,)


def removal(call: HotCall) -> Repair | None:
    """Takes the call out, where it stands alone, and an `if` that decides about nothing else."""
    if not call.removable:
        return None
    whole = _deciding_about(call.function, call.stmt) or call.stmt
    return Repair.unless(call.unproven, "remove the call", (Remove(whole.node),))


def _deciding_about(function: ir.Function, stmt: ir.Stmt) -> ir.Stmt | None:
    """The `if` of which the statement is all, where its test only looks: `if torch.cuda.is_available():`."""
    return next(
        (
            owner
            for block in _blocks(function.body)
            for owner in block
            if isinstance(owner, ir.If)
            and owner.body == [stmt]
            and not owner.orelse
            and all(call.method in _LOOKS for call in ir.own_calls(owner))
        ),
        None,
    )


def _blocks(block: list[ir.Stmt]) -> Iterator[list[ir.Stmt]]:
    """The block and those in it; an `elif` is a part of its `if`, and stands in none."""
    yield block
    for statement in block:
        for inner in statement.blocks():
            elif_alone = isinstance(statement, ir.If) and inner is statement.orelse and len(inner) == 1
            if elif_alone and isinstance(inner[0], ir.If):
                yield from (part for one in inner[0].blocks() for part in _blocks(one))
            else:
                yield from _blocks(inner)
