"""How often a call runs: once in every step, in every n-th, once a phase, or once.

A loop of steps is one whose own rounds each run a step of training or a forward; one that has loops of steps in it is a loop of phases.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from gpulint.analysis.evaluate.consumers import goes_backward_by
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, remembered
from gpulint.analysis.evaluate.weights import run_through, trips
from gpulint.analysis.project.file import Function
from gpulint.analysis.queries.calls import entered
from gpulint.analysis.queries.networks.behind import made_of
from gpulint.analysis.queries.steps import Event, Steps
from gpulint.analysis.syntax.nodes import LOOPS, iterated, key_of, last_name, names_in

Rate = Literal["step", "every nth", "phase", "once", "?"]
FEW: Final = 8  # rounds of an inner loop that are still part of one step
MOST_OUTWARD: Final = 5  # calls that are followed outwards

# Methods that Lightning, and whoever is like it, runs for each batch.
BATCH_HOOKS = frozenset(
    "training_step validation_step test_step predict_step on_train_batch_end on_train_batch_start on_validation_batch_end optimizer_step "
    "on_before_zero_grad on_after_backward on_step_end on_batch_end after_train_iter".split()
)
_ENVIRONMENT = frozenset(
    "is_available is_initialized device_count get_rank is_main_process hasattr isinstance len".split()
)


@dataclass(frozen=True, slots=True)
class Repeats:
    """The rate, the loop that makes it, with the function it stands in; `work` is what its rounds do. `period` counts the rounds of
    one run, where that is known. `flags` are conditions that nobody can say hold."""

    rate: Rate
    loop: Any
    frame: Frame
    work: str = ""
    period: int | None = None
    flags: tuple[Any, ...] = ()
    calls: tuple[Any, ...] = field(default=())


class Multiplicity:
    """Answers how often calls run, for one file and what it reaches."""

    def __init__(self, evaluator: Evaluator, steps: Steps) -> None:
        self.evaluator = evaluator
        self._steps = steps

    def of(self, node: Any, frame: Frame) -> list[Repeats]:
        """Each way in which a call runs again, by what runs its function."""
        found = lambda: list(self._ways(node, frame, (), (), None, (), set()))  # noqa: E731
        return remembered(frame.memo, (Multiplicity, node), [], found)  # type: ignore[no-any-return]

    def _ways(
        self,
        node: Any,
        frame: Frame,
        flags: tuple[Any, ...],
        seen: tuple[Function, ...],
        every: Any,
        calls: tuple[Any, ...],
        gone: set[Any],
    ) -> Iterator[Repeats]:
        """`gone`: the calls outwards that have been followed, each once, whichever way leads to it."""
        function = frame.function
        flow = function.flow
        loops = flow.loops(node)
        conditions = list(flow.conditions(node))
        for position, loop in enumerate(loops):
            inside = [one for one in conditions if loop in flow.loops(one[0])]
            rate = self.of_loop(loop, frame, node)
            if rate == "none" and position == 0 and seen and self._trains(seen[-1]):
                rate = "train"  # each round calls what is a step, whichever class's method it is
            found, more, rare = self._held(inside, frame)
            if found == "never":
                return
            flags_here = (*flags, *more)
            if rate == "few":
                continue
            if rate == "none":  # whatever it says of its own rounds, some of them run
                conditions = [one for one in conditions if one not in inside]
                flags = flags_here
                continue
            if rate == "phase":
                yield Repeats("phase", loop, frame, rate, flags=flags_here, calls=calls)
            elif found == "once":
                yield Repeats("once", loop, frame, rate, calls=calls)
            else:
                yield self._in_steps(loop, frame, rate, rare or every, flags_here, calls)
            return
        found, more, rare = self._held(conditions, frame)
        if found in ("never", "once"):
            yield Repeats("once", None, frame, calls=calls)
            return
        flags = (*flags, *more)
        every = rare or every
        is_hook = function.name in BATCH_HOOKS and function.cls is not None
        if is_hook or goes_backward_by(self.evaluator, function):
            trains = "train" in function.name or function.name.startswith(("on_", "optimizer"))
            work = "train" if trains else "forward"
            yield self._in_steps(function.node, frame, work, every, flags, calls)
            return
        # Lightning, or whoever is like it, runs it as an epoch begins or ends
        if function.cls is not None and function.name.endswith(("_epoch_start", "_epoch_end")):
            yield Repeats("phase", function.node, frame, flags=flags, calls=calls)
            return
        sites = self.evaluator.callers(function) if function not in seen and len(seen) < MOST_OUTWARD else ()
        if not sites and self._is_step(function):
            yield self._in_steps(function.node, frame, "train", every, flags, calls)
            return
        for site in sites:
            if site.call not in gone:
                gone.add(site.call)
                outwards = (*calls, (site.call, site.frame))
                yield from self._ways(site.call, site.frame, flags, (*seen, function), every, outwards, gone)
        if not sites:
            events = self._steps.of(function)
            trains = any(one.work == "train" and (one.loops or one.within) for one in events)
            begins = function.is_module or trains  # a whole training
            around = (one for call, where in ((node, frame), *calls) for one in where.flow.loops(call))
            loop = next(around, None) if begins else None
            yield Repeats("once" if begins and loop is None else "?", loop, frame, flags=flags, calls=calls)

    def _in_steps(
        self, loop: Any, frame: Frame, work: str, every: Any, flags: tuple[Any, ...], calls: tuple[Any, ...]
    ) -> Repeats:
        """In each round of a loop of steps, or in every so many where a condition counts them."""
        kind: Rate = "every nth" if every else "step"
        return Repeats(kind, loop, frame, work, self.period(every, frame), flags, calls)

    def _is_step(self, function: Function) -> bool:
        """Whether a function that nobody is seen to call is one step: it trains outside of any loop, and not what it has made."""
        makes = (
            function.is_module
            or function.name == "__init__"
            or any(one.own for one in self._steps.of(function))
        )
        is_forward = function.name == "forward" and function.cls is not None
        return not makes and (is_forward or self._trains(function))

    def _trains(self, function: Function) -> bool:
        """Whether each call of a function takes a step of training, outside of any loop."""
        events = self._steps.of(function)
        return any(one.work == "train" and not (one.loops or one.within) for one in events)

    # -- loops

    def of_loop(self, loop: Any, frame: Frame, node: Any) -> str:
        """What the rounds of a loop are: `train` or `forward` steps, each with a loop of phases inside none; `phase`; `few` rounds within
        one step; `none` where they run no network."""
        events = self._steps.of(frame.function)
        inside = [one for one in events if loop in one.loops]
        direct = [one for one in inside if self._is_direct(one, loop, frame)]
        nested = [one for one in inside if one not in direct]
        heavy = [one for one in nested if not self.is_rare(one.node, loop, frame)]
        if not isinstance(loop, LOOPS) and not inside:
            return "none"
        steps = [one for one in direct if one.work == "train"]
        if not all(one.gathers for one in steps):  # it is one step, however many backwards there are to it
            heavy = [one for one in heavy if not (one.gathers and self._is_counted(one, loop, frame))]
        if any(one.work == "train" or not steps or one.over_data for one in heavy) or _tries_again(loop):
            return "phase"
        around = frame.flow.loops(loop)[:1]
        if steps:
            if self._is_tried(node, loop, frame) or all(one.loops[0] is not loop for one in steps):
                return "phase"  # several steps each round, or as many rounds as it takes until one works
            beside = any(one.work == "train" and [*one.loops[:1]] == around for one in events)
            return "few" if beside and around and self.trips(loop, frame) is not None else "train"
        if direct and self._is_chain(loop, frame, direct):
            return "few"
        if direct:
            return "phase" if self._runs_over_networks(loop, frame, direct) else "forward"
        return "few" if around and not inside else "none"

    def _is_tried(self, node: Any, loop: Any, frame: Frame) -> bool:
        """Whether the loop ends with the first round in which what is called says so: `if fits(model, size): return size`."""
        flow = frame.function.flow
        owner = flow.statement_of(node)
        ends = isinstance(owner, ast.If) and isinstance(owner.body[-1], (ast.Return, ast.Break))
        return ends and flow.blocks[owner].owner is loop

    def _is_direct(self, event: Event, loop: Any, frame: Frame) -> bool:
        """Whether an event happens in each round of a loop, not in a loop of its own: few rounds are none."""
        inner = event.loops[: event.loops.index(loop)]
        parts = (self.trips(one, frame) is not None or self._steps.is_over_parts(one, frame) for one in inner)
        return not event.within and all(parts)

    def _is_counted(self, event: Event, loop: Any, frame: Frame) -> bool:
        """Whether the loops within one in which an event happens do no more than count: the parts of a batch."""
        inner = event.loops[: event.loops.index(loop)]
        data = (one for one in inner if self._steps.is_over_data(one, frame.function))
        return not (event.over_data or any(isinstance(one, ast.While) for one in inner) or any(data))

    def trips(self, loop: Any, frame: Frame) -> int | None:
        """The number of rounds, where it is known and small: also of a display that all who call the function give it."""
        through, count = run_through(loop, frame.flow), trips(self.evaluator, loop, frame)
        bound = frame.flow.reaching(through) if isinstance(through, ast.Name) else ()
        by = entered(self.evaluator, frame) if [one.kind for one in bound] == ["parameter"] else ()
        given = [(where.argument(through.id) or (None,))[0] for where in by]
        written: list[Any] = [getattr(one, "elts", None) for one in given]
        if written and None not in written:
            return max(map(len, written))
        shown = isinstance(iterated(loop), (ast.Tuple, ast.List))  # what is written out is few
        return count if count is not None and (shown or count <= FEW) else None

    def _is_chain(self, loop: Any, frame: Frame, direct: list[Event]) -> bool:
        """Whether each part of a network is given what the one before has made of it, `for block in blocks: x = block(x)`: one forward."""
        given = ((event.node, one) for event in direct for one in event.node.args)
        fed = (node is made for node, one in given for made, _ in made_of(self.evaluator, one, frame))
        return self._steps.is_over_parts(loop, frame) and any(fed)

    def _runs_over_networks(self, loop: Any, frame: Frame, direct: list[Event]) -> bool:
        """Whether each round is about another network: what it runs is what it runs through, or made in the round."""
        if self._steps.is_over_parts(loop, frame):
            return True
        for target in (self.evaluator.value_of(event.node.func, frame) for event in direct):
            here = [node for node, where in target.calls if where is frame and loop in frame.flow.loops(node)]
            if not here or len(here) < len(target.origins):
                return False
        return True

    def is_rare(self, node: Any, loop: Any, frame: Frame) -> bool:
        """Whether an event stands under a condition within the loop: a validation now and then."""
        inside = [test for test, _ in frame.flow.conditions(node) if loop in frame.flow.loops(test)]
        counted = any(self._modulo(test, frame) is not None for test in inside)
        return counted or any(self.evaluator.truth(test, frame) is None for test in inside)

    # -- conditions

    def _held(self, conditions: list[tuple[Any, bool]], frame: Frame) -> tuple[str, tuple[Any, ...], Any]:
        """What conditions say together: `always`, `once` or `never`; those that are open; and the one that counts rounds."""
        flags: list[Any] = []
        counter: Any = None
        for test, wanted in conditions:
            together = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and wanted
            parts = test.values if together else [test]
            periodic = [part for part in parts if self._modulo(part, frame) is not None]
            counter = next((part for part in reversed(periodic) if _selects(part, wanted)), counter)
            counted = {name for part in periodic for name in names_in(part)}
            for part in parts:
                if part in periodic or counted & names_in(part):
                    continue  # `step > 0` beside a remainder of the step
                holds = self.evaluator.truth(part, frame)
                if holds is (not wanted):
                    return "never", (), None
                if holds is not None or self._is_environment(part):
                    continue
                if not _is_once(part):
                    flags.append((part, wanted))
                elif wanted:  # else all rounds but one
                    return "once", (), None
        return "always", tuple(flags), counter

    def _is_environment(self, test: Any) -> bool:
        calls = [one for one in ast.walk(test) if isinstance(one, ast.Call)]
        if calls and all(last_name(one.func) in _ENVIRONMENT for one in calls):
            return True
        texts = {one.value for one in ast.walk(test) if isinstance(one, ast.Constant)}
        return bool(texts & {"cuda", "cpu", "mps"})

    def _modulo(self, test: Any, frame: Frame) -> Any:
        """The divisor of a condition on a remainder, whatever its name: `step % every == 0`, `not step % every`."""
        test = frame.flow.unaliased(test)
        if isinstance(test, ast.BoolOp):
            found = [self._modulo(one, frame) for one in test.values]
            return next((one for one in found if one is not None), None)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._modulo(test.operand, frame)
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
            test = test.left if isinstance(test.left, ast.BinOp) else test.comparators[0]
        if isinstance(test, ast.BinOp) and isinstance(test.op, ast.Mod):
            return test.right
        return None

    def is_once(self, node: Any, loop: Any, frame: Frame) -> bool:
        """Whether a node runs in one round of a loop only: a count has to be one number, or the round is the last."""
        inside = [one for one in frame.flow.conditions(node) if loop in frame.flow.loops(one[0])]
        return ends_at_once(loop) or self._held(inside, frame)[0] == "once"

    def counts(self, test: Any, frame: Frame) -> bool:
        """Whether a condition is one on a remainder: it holds every so many rounds."""
        return self._modulo(test, frame) is not None

    def period(self, counter: Any, frame: Frame) -> int | None:
        """The divisor of a condition on a remainder, where it is known."""
        divisor = self._modulo(counter, frame) if counter is not None else None
        if divisor is None:
            return None
        const = self.evaluator.value_of(divisor, frame).const
        return const if isinstance(const, int) else None


def _tries_again(loop: Any) -> bool:
    """Whether a loop ends with the first round that does not fail: `while True: try: return run() except …: size //= 2`."""
    asked = names_in(loop.test) if isinstance(loop, ast.While) else set()
    for statement in loop.body if isinstance(loop, LOOPS) else ():
        if not isinstance(statement, ast.Try) or not statement.handlers:
            continue
        last = [block[-1] for block in (statement.body, statement.orelse) if block]
        settles = any(isinstance(one, ast.Assign) and key_of(one.targets[0]) in asked for one in last)
        if settles or any(isinstance(one, (ast.Return, ast.Break)) for one in last):
            return True
    return False


def _selects(test: Any, wanted: bool) -> bool:
    """Whether a condition on a remainder lets few rounds through: `i % n == 0` where it holds, `i % n` where it does not."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _selects(test.operand, not wanted)
    if isinstance(test, ast.Compare):
        return isinstance(test.ops[0], ast.Eq) == wanted
    if isinstance(test, ast.BinOp):
        return not wanted
    return wanted


def _is_once(test: Any) -> bool:
    """Whether a condition on a count holds in one round, or in two: `step == 1`, `step == 0 or step == last - 1`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return all(map(_is_once, test.values))
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    right = test.comparators[0]
    if isinstance(right, ast.Constant) and isinstance(right.value, int):
        return True
    return isinstance(right, ast.BinOp) and isinstance(right.op, ast.Sub)  # the last round


def ends_at_once(loop: Any) -> bool:
    """Whether the first round of a loop leaves it."""
    body = getattr(loop, "body", None)
    return isinstance(body, list) and isinstance(body[-1], (ast.Break, ast.Return, ast.Raise))
