"""How much what a forward saves is: how often it runs, what its network is made of, and whether it is on a GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any, Final

from gpulint.analysis.domain.values import Graph, Value, in_text_order
from gpulint.analysis.evaluate.consumers import goes_backward_by
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import CallSite, Frame
from gpulint.analysis.evaluate.weights import trips, weight
from gpulint.analysis.project.file import Function
from gpulint.analysis.queries.multiplicity import BATCH_HOOKS, ends_at_once
from gpulint.analysis.queries.networks.placed import moved_anywhere
from gpulint.analysis.queries.networks.runs import Run, entered, runs_of
from gpulint.analysis.queries.stores.filled import filled
from gpulint.analysis.syntax.nodes import argument, arguments, keyword, last_name
from gpulint.answers import Answer, Question, least_open, left_open, minor, proven
from gpulint.units import format_bytes

_FEW: Final = 16  # rounds
_MOST_ABOVE: Final = 60  # functions that lead to one
NARROW: Final = 4_000_000  # weights
TOY: Final = 250_000
_KEEPS: Final = frozenset("to cuda float half double contiguous permute type clone detach long".split())


def said(least: int) -> str:
    """A number of weights in words, with what they take."""
    number = f"{least / 1_000_000:,.1f} million" if least >= 1_000_000 else f"{least:,}"
    return f"at least {number} weights, {format_bytes(4 * least)} in float32"


def amounts(evaluator: Evaluator, run: Run) -> Iterator[Answer]:
    """What shows whether a forward saves enough to matter on a GPU, and what leaves it open that it is on one."""
    yield from _of_rounds(evaluator, run)
    yield from of_device(evaluator, run)
    yield _of_size(evaluator, run)


def _of_size(evaluator: Evaluator, run: Run) -> Answer:
    """What shows how much one forward saves."""
    found = weight(evaluator, run.network)
    if found.least < NARROW and is_of_one_sample(evaluator, run):
        return minor(Question.SIZE, "one sample at a time goes through it")
    if found.mixes and found.rows and found.whole and 0 < found.least < TOY:
        return minor(Question.SIZE, f"the network has {said(found.least)}")
    if found.mixes:
        return proven(Question.SIZE, "pictures or sequences go through it")
    if found.whole and 0 < found.least < NARROW:
        return minor(Question.SIZE, f"the network has {said(found.least)}, and nothing but linear layers")
    if found.least >= NARROW:
        return proven(Question.SIZE, f"the network has {said(found.least)}")
    if through_batches(evaluator, run):
        return proven(Question.SIZE, "batches go through it")
    clause = "the code shows neither a large network nor batches that go through it"
    return minor(Question.SIZE, clause)


def amounts_of(evaluator: Evaluator, made: Iterable[tuple[Any, Frame | None]]) -> Iterator[Answer]:
    """The same of a graph that these calls have made: of the forward that leaves least open."""
    found = [tuple(amounts(evaluator, run)) for run in _runs_of(evaluator, made)]
    yield from min(found, key=least_open, default=(_UNSEEN,))


def size_of(evaluator: Evaluator, made: Iterable[tuple[Any, Frame | None]]) -> Answer:
    """What shows how much a graph that these calls have made has saved."""
    found = [_of_size(evaluator, run) for run in _runs_of(evaluator, made)]
    return min(found, key=lambda one: one.minor, default=_UNSEEN)


_UNSEEN: Final = minor(Question.SIZE, "how much the graph has saved is not seen")


def _runs_of(evaluator: Evaluator, made: Iterable[tuple[Any, Frame | None]]) -> Iterator[Run]:
    """The forwards of networks among calls, in the order of the text."""
    calls = [(node, where) for node, where in made if isinstance(node, ast.Call) and where is not None]
    calls.sort(key=lambda one: (one[0].lineno, one[0].col_offset, one[0].end_col_offset or 0))
    return (run for one in calls for run in runs_of(evaluator, *one))


def _of_rounds(evaluator: Evaluator, run: Run) -> Iterator[Answer]:
    flow, function = run.frame.flow, run.frame.function
    loops = flow.loops(run.call)
    counts = (trips(evaluator, one, run.frame) for one in loops)
    few = bool(loops) and all(one is not None and one <= _FEW for one in counts)
    if few and runs_once(evaluator, function):
        yield minor(Question.REPEATS, "its loop has as few rounds as the text says", loops[0])
    elif loops and ends_at_once(loops[0]) and not loops[1:]:
        yield minor(Question.REPEATS, "its loop ends with the first round", loops[0])
    elif loops or function.is_module:
        return
    elif runs_once(evaluator, function):
        yield minor(Question.REPEATS, f"`{function.name}` runs once, which may be too little to matter")
    elif not repeats(evaluator, function):
        yield minor(Question.REPEATS, f"no loop is seen to run `{function.name}`")


def runs_once(evaluator: Evaluator, function: Function) -> bool:
    """Whether a function runs once where the script runs: only from where that starts, in no loop."""
    return all(
        one.is_module or (one.cls is None and bool(sites) and all(map(ends_at_once, _loops_around(sites))))
        for one, sites in _above(evaluator, function)
    )


def _loops_around(sites: Iterable[CallSite]) -> list[Any]:
    return [loop for site in sites for loop in site.frame.flow.loops(site.call)]


def repeats(evaluator: Evaluator, function: Function) -> bool:
    """Whether a loop is seen to run a function, or whether somebody out of sight calls it, who may do so in one."""
    return any(
        one.name in BATCH_HOOKS or not (sites or one.is_module) or bool(_loops_around(sites))
        for one, sites in _above(evaluator, function)
    )


def _above(evaluator: Evaluator, function: Function) -> Iterator[tuple[Function, tuple[CallSite, ...]]]:
    """A function and those that lead to it, nearest first, each once with the calls of it."""
    found = {function: None}
    queue = [function]
    for one in queue:
        sites = evaluator.callers(one)
        yield one, sites
        more = [site.frame.function for site in sites if site.frame.function not in found]
        if len(found) < _MOST_ABOVE:
            queue += dict.fromkeys(more)
            found.update(dict.fromkeys(more))


def through_batches(evaluator: Evaluator, run: Run) -> bool:
    """Whether batches go through a run, for all that is seen."""
    above = list(_above(evaluator, run.frame.function))
    places = [(run.call, run.frame), *((site.call, site.frame) for _, sites in above for site in sites)]
    loops = ((loop, frame) for call, frame in places for loop in frame.flow.loops(call))
    by_name = any(one.name in BATCH_HOOKS for one, _ in above)
    return by_name or any(is_over_batches(evaluator, loop, frame) for loop, frame in loops)


def is_of_one_sample(evaluator: Evaluator, run: Run) -> bool:
    """Whether a network is given a batch of one, or what runs it is, or makes one in a method of its own."""
    calls = [(run.inner, run.where), (run.call, run.frame)]
    inner = entered(evaluator, run) if run.method not in ("", "forward") else None
    calls += [(one, inner) for one in inner.flow.calls.get("forward", ())] if inner is not None else []
    return any(_is_one_sample(evaluator, one, frame) for call, frame in calls for one in call.args[:1])


def _is_one_sample(evaluator: Evaluator, node: Any, frame: Frame, depth: int = 4) -> bool:
    """Whether an expression makes a batch of one: `x[None]`, `x.unsqueeze(0)`, wherever it is moved to then."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in ("unsqueeze", "unsqueeze_"):
            where = argument(node, 0, "dim")
            return where is not None and evaluator.value_of(where, frame).const == 0
        return node.func.attr in _KEEPS and _is_one_sample(evaluator, node.func.value, frame, depth)
    if isinstance(node, ast.BinOp):
        return _is_one_sample(evaluator, node.left, frame, depth)
    if isinstance(node, ast.Subscript):
        first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        return isinstance(first, ast.Constant) and first.value is None
    made = frame.flow.reaching(node) if isinstance(node, ast.Name) and depth else ()
    given = [one.value for one in made if one.kind == "assign" and not one.path]
    known = 0 < len(made) == len(given)
    return known and all(_is_one_sample(evaluator, one, frame, depth - 1) for one in given)


def is_tried_out(evaluator: Evaluator, run: Run) -> bool:
    """Whether all that a run is given is made up for its shape: zeros, ones, and what is as good."""
    made = [filled(evaluator, one, run.where) for one in arguments(run.inner)]
    even = ("alike", "draws evenly")
    fitted = any(evaluator.value_of(one, run.where).graph is Graph.LIVE for one in arguments(run.inner))
    return bool(made) and not fitted and all(one and not one.data and one.how in even for one in made)


def is_over_batches(evaluator: Evaluator, loop: Any, frame: Frame) -> bool:
    through = frame.flow.iterated(loop)
    if through is None:
        return False
    value = evaluator.value_of(through, frame)
    if value.kind == "loader" and _gives_single(evaluator, value):
        return False
    if value.kind == "loader" or evaluator.element(value).size == "batch":
        return True
    target = getattr(loop, "target", None)
    parts = [*ast.walk(through), *(ast.walk(target) if target is not None else ())]
    words = {last_name(one) for one in parts}
    return any(part in word.lower() for word in words for part in ("load", "batch")) or "dl" in words


def _gives_single(evaluator: Evaluator, loader: Value) -> bool:
    """Whether a loader gives one sample at a time, as torch's does where nobody asks for more."""
    for node, frame in in_text_order(loader.origins):
        if not isinstance(node, ast.Call) or frame is None or last_name(node.func) != "DataLoader":
            return False
        size, other = argument(node, 1, "batch_size"), keyword(node, "batch_sampler")
        if other is not None or any(one.arg is None for one in node.keywords):
            return False
        if size is not None and evaluator.value_of(size, frame).const != 1:
            return False
    return bool(loader.origins)


def of_device(evaluator: Evaluator, run: Run) -> Iterator[Answer]:
    """That nothing shows that a forward runs on a GPU."""
    given = [evaluator.value_of(one, run.where) for one in run.inner.args if not isinstance(one, ast.Starred)]
    if any(one.device == "cuda" for one in given) or goes_backward_by(evaluator, run.frame.function):
        return  # a framework sees to it, or what is on a GPU goes through no network that is not
    if moved_anywhere(evaluator, run.named, run.where).device == "host":
        yield left_open(Question.DEVICE, "nothing moves the network to a GPU")
