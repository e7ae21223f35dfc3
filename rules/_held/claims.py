"""What GPU101, GPU104 and GPU107 claim of what is kept with its graph: one query, told by the place that keeps it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from gpulint.rules._held.against import read_by
from gpulint.rules._held.report import Held, calls_of, grows_for_certain, report

from gpulint.analysis.asked import Asked
from gpulint.analysis.domain.values import Value, in_text_order
from gpulint.analysis.evaluate.consumers import Use, consumers, goes_backward_by
from gpulint.analysis.evaluate.frames import Frame, settled
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.queries.amounts import is_over_batches, size_of
from gpulint.analysis.queries.calls import leading_to
from gpulint.analysis.queries.effects import Place, effects_before, place_of
from gpulint.analysis.queries.grad_mode import grad_mode
from gpulint.analysis.queries.networks.forwards import forward_of
from gpulint.analysis.queries.networks.placed import placed
from gpulint.analysis.queries.networks.runs import is_of_module, modes_within, runs_of
from gpulint.analysis.queries.networks.trained import frozen
from gpulint.analysis.queries.outcome import outcome
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.queries.stores.emptied import emptied
from gpulint.analysis.queries.stores.graph_state import (
    GraphState,
    backwards,
    graph_state,
    made_backward,
    runs_within,
)
from gpulint.analysis.queries.stores.on_device import is_joined
from gpulint.analysis.queries.stores.stores import (
    Owner,
    Round,
    Store,
    bounded,
    chosen_by_author,
    collected,
    emptying,
    entries,
    given_to_keep,
    graph_in,
    latest,
    owner_of,
    returns,
    stores,
)
from gpulint.analysis.syntax.nodes import arguments, key_of
from gpulint.answers import (
    Answer,
    Question,
    confidence_of,
    doubts_of,
    left_open,
    proven,
    refuted,
    until_refuted,
)
from gpulint.claims import Claim
from gpulint.rule import Claimed, Rule

_MODES = frozenset({"evaluates", "trains"})
_MOST_DOUBTS = 2  # of more things that are taken for so nothing is told
_MANY_SLOTS = 1_000  # as good as no bound
_READ_ONLY = frozenset("reads cuts tested dropped saved deleted stored attribute bound written".split())
_KEEPING = frozenset({"stored", "returned", "given", "computed", "too much"})


class HeldRule(Rule):
    """A rule that tells a part of what they find together."""

    runtime_claim = Claim("drift")
    doubts = True

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        work = lambda: list(_all_held(asked))  # noqa: E731
        found = settled(asked.evaluator, asked.root(asked.file.body), Held, work)  # once for all of them
        for one in (held for held in found if held.code == self.code):
            written = partial(report, asked, one, options.get("style", "auto"))
            about = (one.store.value, one.store.frame)
            yield Claimed(one.at, ast.unparse(one.store.container), one.answers, written, about)


def _all_held(asked: Asked) -> Iterator[Held]:
    told: set[Any] = set()
    for function in (asked.file.body, *asked.file.functions):
        for store in stores(asked.evaluator, function):
            held = _held(asked, function, store)
            if held is None:
                continue
            owner = owner_of(asked.evaluator, store.container, store.frame, store.at)
            code = _code_of(asked, store, owner, held)
            answers = until_refuted(_answers(asked, function, store, owner, held))
            if len(doubts_of(answers)) > _MOST_DOUBTS:
                continue
            holds = confidence_of(answers) is not None
            state = graph_state(asked.evaluator, store, owner, calls_of(held)) if holds else None
            for at in _places(asked, store):
                if at not in told:
                    yield Held(code, at, store, owner, held, state, answers)
                if state is not None:
                    told.add(at)
    for function in asked.file.functions:
        yield from _left_by(asked, function, told)


def _left_by(asked: Asked, function: Function, told: set[Any]) -> Iterator[Held]:
    """What a function leaves to others: to its object, to the framework, in a dict of figures, or by what it returns."""
    evaluator = asked.evaluator
    for store in given_to_keep(evaluator, function):
        of_network = function.takes_self and evaluator.names.is_part_of_modules(function.cls)
        several = graph_in(evaluator, evaluator.value_of(store.value, store.frame))
        joined = any(one.kind != "tensor" for one in several) and is_joined(evaluator, store, store.value)
        sure = (one for one in several if not one.assumptions and (joined or one.kind == "tensor"))
        held = several if of_network else tuple(sure)
        if store.at not in told and held:
            code = "GPU107" if of_network else "GPU101"
            yield _of(code, store, held, _of_given(asked, store, held, of_network))
    for store, held in _kept_by(asked, function, collected):
        told.add(store.at)
        yield _of("GPU101", store, held, _of_collected(asked, function, held))
    for store in entries(evaluator, function):
        value = evaluator.value_of(store.value, store.frame)
        held = graph_in(evaluator, value)
        no_number = value.kind in ("tensor", "unknown") and made_backward(evaluator, store)
        if store.at not in told and (held or no_number):
            one = _of("GPU101", store, held, _of_entry(asked, function, store, held))
            if confidence_of(one.answers) is not None:
                told.update((store.frame.flow.statement_of(store.at), function))
            yield one
    for store, held in _kept_by(asked, function, latest):
        kind = evaluator.value_of(store.value, store.frame).kind
        if store.at not in told and kind in ("tensor", "unknown"):
            told.add(store.at)
            yield _of("GPU101", store, held, _of_latest(asked, store, held))
    for store, held in _kept_by(asked, function, returns):
        made = {node for one in held for node, _ in one.origins}
        made |= {each.function for one in held for _, frame in one.origins if frame for each in frame.around}
        if told.isdisjoint({*made, function}):
            answers = _of_returned(asked, function, store, held)
            yield replace(_of("GPU101", store, held, answers), at=_put_together(store))


def _kept_by(asked: Asked, function: Function, several: Any) -> Iterator[tuple[Store, tuple[Value, ...]]]:
    """Stores of a kind that a function makes of what has a graph, with the values that have it."""
    for store in several(asked.evaluator, function):
        held = _held(asked, function, store)
        if held is not None:
            yield store, held


def _of(code: str, store: Store, held: tuple[Value, ...], answers: Iterator[Answer]) -> Held:
    """A claim on what is left to others, whoever keeps it."""
    return Held(code, store.at, store, None, held, None, until_refuted(answers))


def _put_together(store: Store) -> Any:
    """Where what is returned is put together: the display that its name was given, or the return itself."""
    flow = store.frame.flow
    *_, whole = flow.stands_for(store.value)
    several = [one.value for one in flow.reaching(whole)] if isinstance(whole, ast.Name) else [whole]
    displays = (one for one in several if isinstance(one, (ast.Tuple, ast.Dict, ast.List)))
    return next((flow.statement_of(one) for one in displays), store.at)


def _code_of(asked: Asked, store: Store, owner: Owner, held: tuple[Value, ...]) -> str:
    of_network = any(asked.evaluator.names.is_module(cls) for cls, _ in owner.attributes)
    if store.way == "averaged" and (of_network or all(_are_weights(asked, one) for one in held)):
        return "GPU107"
    return "GPU101" if asked.is_here(store.frame) else "GPU104"


def _runs_in(function: Function, use: Use) -> bool:
    """Whether a use is one of a function, or of what it calls."""
    inside = any(where.function is function for where in use.frame.around)
    return inside or use.frame.function.name in function.flow.calls  # of all calls of what it calls


def _in_loop(function: Function, use: Use) -> bool:
    """Whether a use runs in a loop of a function, or of what it calls for that."""
    places = use.frame.leading_to(use.node)
    own = [at for at, (_, where) in enumerate(places) if where.function is function]
    return any(where.flow.loops(node) for node, where in places[: own[0] + 1 if own else 1])


def _places(asked: Asked, store: Store) -> list[Any]:
    """Where a store is told: in the function that is asked about; of entries of a dict that another function of the file fills, where
    they are put into it."""
    at = store.at
    for call, where in store.frame.chain():
        given = arguments(call) if isinstance(call, ast.Call) else []
        if found := [one for value in given for one in _entries_of(asked, value, where)]:
            return found
        at = call
    return [at]


def _entries_of(asked: Asked, node: Any, frame: Frame) -> Iterator[Any]:
    """The statements of another function of the file that put what has a graph into a dict."""
    value = asked.evaluator.value_of(node, frame)
    for made, where in in_text_order(value.origins) if value.kind == "dict" else ():
        if where is None or not asked.is_here(where) or where.function is frame.function:
            continue
        keys = {one.key for one in where.flow.given.get(made, ()) if not one.path}
        put = [(one.value, one.statement) for one in where.flow.stores if key_of(one.target.value) in keys]
        put += [(one, one) for one in made.values] if isinstance(made, ast.Dict) else []
        yield from (at for one, at in put if graph_in(asked.evaluator, asked.evaluator.value_of(one, where)))


def _of_given(asked: Asked, store: Store, held: tuple[Value, ...], takes_in: bool) -> Iterator[Answer]:
    """On what it stands that an object keeps what others give it, with its graph; `takes_in`: with its own of all calls before."""
    by = grad_mode(asked.evaluator, store.at, store.frame)
    if by.mode == "off" or asked.evaluator.grad_is_off(store.value, store.frame):
        yield refuted(Question.GRAD, "grad is off there", by.by)
    owner = owner_of(asked.evaluator, store.container, store.frame, store.at)
    if owner.kind not in ("object", "outer"):
        yield refuted(Question.OUTLIVES, "neither an object nor the module keeps it")
    given = all(isinstance(node, ast.arg) for one in held for node, _ in one.origins)
    gone = emptied(asked.evaluator, asked.multiplicity, owner)
    if gone is not None and (gone.when == "step" if takes_in else not given):
        clause = f"`{owner.key}` is emptied, as often as whoever calls wants"
        yield refuted(Question.OUTLIVES, clause, gone.by)
    uses = consumers(asked.evaluator, store.value, store.frame, "graph") if not takes_in else ()
    roles = {one.role for one in uses} & {"backward", "fed", "returned"}
    if roles:
        verdict = left_open if roles == {"returned"} else refuted
        yield verdict(Question.BACKWARD, "who gets it may go backward through it")
    more = ", and takes itself in" if takes_in else ""
    yield proven(Question.OUTLIVES, f"`{owner.key}` outlives the call{more}")
    of_layer = given and store.frame.function.name != "forward"  # which is given what others have made
    if not takes_in or of_layer:
        yield left_open(Question.GRAPH, "whether what it is given has a graph is up to who calls")
    for one in min((value.assumptions for value in held), key=len):
        yield left_open(Question.GRAPH, one.clause)
    yield from reached(asked.evaluator, store.frame.function)


def _is_attribute(use: Use) -> bool:
    """Whether a value is stored in an attribute of a class, and not in a record that is made of it, or under a name."""
    return isinstance(use.owner, tuple) and isinstance(use.owner[0], Class)


def _of_entry(asked: Asked, function: Function, store: Store, held: tuple[Value, ...]) -> Iterator[Answer]:
    """On what it stands that a dict of figures takes one along with its graph, which whoever gets it may keep."""
    uses = consumers(asked.evaluator, store.value, store.frame, "graph")
    if any(one.role in ("backward", "fed") for one in uses):
        yield refuted(Question.BACKWARD, "a backward goes through the entry")
    puts = [one for one in uses if one.frame.function is not function and _stays(asked, one)]
    if any(asked.is_here(one.frame) for one in puts):
        yield refuted(Question.OUTLIVES, "whoever gets it is in sight: what it is put into is told there")
    away = puts or [
        one
        for one in uses
        if (one.role == "returned" and not asked.evaluator.callers(one.frame.function))
        or (one.role == "stored" and _is_attribute(one) and len(one.path) == 1)
        or (one.role == "given" and (one.path or isinstance(one.frame.flow.parents.get(one.node), ast.Expr)))
    ]
    if not away:
        yield refuted(Question.OUTLIVES, "the dict is read in sight, and dropped")
    freed = made_backward(asked.evaluator, store)
    beside = goes_backward_by(asked.evaluator, function) or any(len(one.path) > 1 for one in away)
    if not freed and not beside:
        yield refuted(Question.BACKWARD, "whoever gets it may go backward through it")
    yield proven(Question.GRAPH, "the entries beside it are cut, or are numbers")
    clause = "what it is put into may be emptied" if puts else "whoever gets the dict may read it and drop it"
    yield left_open(Question.OUTLIVES, clause, away[0].node if asked.is_here(away[0].frame) else None)
    yield from reached(asked.evaluator, function)


def _of_latest(asked: Asked, store: Store, held: tuple[Value, ...]) -> Iterator[Answer]:
    """On what it stands that an object keeps what a forward made, with its graph, until the next one."""
    origins = calls_of(held)
    yield from _off(asked, origins, store)
    if all(one.size == "scalar" for one in held):
        yield refuted(Question.SIZE, "it is one number, and the next takes its place")
    freed = any(backwards(asked.evaluator, *one) for one in origins)
    if freed and not asked.evaluator.names.is_part_of_modules(store.frame.function.cls):
        yield refuted(Question.SIZE, "a backward frees its graph, and the next takes its place")
    for use in read_by(asked, store):
        if use.role not in _READ_ONLY:
            dropped = use.role == "given" and isinstance(use.frame.flow.parents.get(use.node), ast.Expr)
            clause = "whoever reads it may go backward through it"
            yield (left_open if dropped else refuted)(Question.BACKWARD, clause, use.node)
    yield proven(Question.OUTLIVES, f"`{ast.unparse(store.container)}` outlives the call")
    yield left_open(Question.READS, "who reads it out of sight may want its graph")
    for one in min((value.assumptions for value in held), key=len):
        yield left_open(Question.GRAPH, one.clause)
    yield from reached(asked.evaluator, store.frame.function)


def _stays(asked: Asked, use: Use) -> bool:
    """Whether a use puts a value into a container, and not under a name of an object, that outlives the call that does."""
    if use.role != "stored" or not isinstance(use.owner, tuple) or not isinstance(use.owner[0], ast.AST):
        return False
    owner = owner_of(asked.evaluator, use.owner[0], use.frame, use.node)
    return owner.kind != "local" or bool(owner.rounds and owner.frame is not use.frame)


def _of_collected(asked: Asked, function: Function, held: tuple[Value, ...]) -> Iterator[Answer]:
    """On what it stands that the framework keeps a value of each step until the epoch's end, with its graph."""
    yield from _off(asked, calls_of(held))
    yield proven(Question.OUTLIVES, f"what `{function.name}` returns is kept until the epoch's end")
    if function.name.startswith("training"):
        yield left_open(Question.GRAPH, "some versions of the framework detach what they collect")
    yield from reached(asked.evaluator, function)


def _of_returned(asked: Asked, function: Function, store: Store, held: tuple[Value, ...]) -> Iterator[Answer]:
    """On what it stands that a step gives back what a backward went through, with its graph."""
    evaluator = asked.evaluator
    freed = [use for one in calls_of(held) for use in backwards(evaluator, *one)]
    own = [one for one in freed if _runs_in(function, one) and isinstance(one.node, ast.Call)]
    if goes_backward_by(asked.evaluator, function):
        yield refuted(Question.BACKWARD, "the framework goes backward through it")
    if not own or function.name == "forward":
        yield refuted(Question.BACKWARD, "whoever gets it may go backward through it")
    if any(_in_loop(function, one) for one in own):
        yield refuted(Question.REPEATS, "it is no step, but runs through many")
    sites = evaluator.callers(function)
    takers = [one for one in sites if graph_in(evaluator, evaluator.value_of(one.call, one.frame))]
    here = any(one.frame.function.file is function.file for one in sites)
    made = [frame.function for one in held for _, frame in in_text_order(one.origins) if frame is not None]
    if here and function not in made:
        yield refuted(Question.REACHED, "it is told where it is made")
    seen = here or all(one.certain for one in sites)
    uses = consumers(evaluator, store.value, store.frame, "graph") if takers else []
    kept = [one for one in uses if one.role in _KEEPING]
    if here:
        kept = [one for one in kept if one.frame.function.file is not function.file]
    if takers and seen and not kept:
        yield refuted(Question.OUTLIVES, "whoever gets it reads a number of it at once", takers[0].call)
    guesses = (guess for one in held for guess in one.assumptions if guess.at is not None)
    yield from (left_open(Question.GRAPH, one.clause) for one in guesses)
    yield proven(Question.GRAPH, "a backward has gone through it")
    yield left_open(Question.OUTLIVES, "whoever gets it may keep it, or read a number of it at once")
    yield from reached(asked.evaluator, function)


def _held(asked: Asked, function: Function, store: Store) -> tuple[Value, ...] | None:
    """The values with a graph that are stored, where the function that is asked about made them."""
    if store.way == "slot":
        return None
    added = store.way in ("added", "averaged")
    if added and asked.evaluator.grad_is_off(store.at, store.frame):
        return None  # a sum without grad has no graph
    value = asked.evaluator.value_of(store.value, store.frame)
    value = asked.evaluator.element(value) if store.elements else value
    several = graph_in(asked.evaluator, value, added=added)
    found = tuple(one for one in several if one.calls or _are_weights(asked, one))
    if not found or all(_are_weights(asked, one) for one in found):
        return found or None
    made_in = {frame.around[-1].function for one in found for _, frame in one.origins if frame is not None}
    callers = {site.frame.function for site in asked.evaluator.callers(function)}
    is_forward = function.cls is not None and function.name == "forward"
    if function not in made_in and not is_forward and made_in & callers:
        return None  # told where it comes from
    made = [frame for one in found for _, frame in one.calls]
    if store.frame.caller is not None and any(store.frame in frame.around for frame in made):
        return None  # told of the function that is called, which makes of it what it keeps
    return found


def _are_weights(asked: Asked, value: Value) -> bool:
    """Whether a value has no graph but that of weights: those of networks, whoever made them, and parameters."""
    kinds = {asked.evaluator.thing(*one).kind for one in value.origins if one[1] is not None}
    return bool(kinds) and kinds <= {"module", "parameter"}


def _answers(
    asked: Asked, function: Function, store: Store, owner: Owner, held: tuple[Value, ...]
) -> Iterator[Answer]:
    """On what it stands that a value outlives its step with its graph, the cheap questions first."""
    origins = calls_of(held)
    leaves = all(_are_weights(asked, one) for one in held)
    bound = bounded(asked.evaluator, store)
    if bound is not None and bound.most is None:
        clause = f"`{owner.key}` holds so many at most: how many is not seen"
        yield left_open(Question.OUTLIVES, clause, bound.by)
    elif bound is not None and (bound.most or 0) < _MANY_SLOTS:
        yield refuted(Question.OUTLIVES, f"`{owner.key}` holds so many at most", bound.by)
    if (chosen := chosen_by_author(store.value)) is not None:
        yield refuted(Question.MEANT, "whether it is cut off is for a condition to say", chosen)
    yield from _repeats(asked, store, owner, {(store.value, store.frame)} if leaves else origins)
    state = graph_state(asked.evaluator, store, owner, origins)
    yield from _grad(asked, origins, state, store)
    yield from _of_state(asked, store, owner, state, held)
    for value in min(([one] for one in held), key=lambda one: len(one[0].assumptions)):
        yield from _assumed(asked, store, value, state)  # one graph that it keeps for certain is enough
    yield from reached(asked.evaluator, function)


def _assumed(asked: Asked, store: Store, value: Value, state: GraphState) -> Iterator[Answer]:
    """What is taken for so of the value; that a backward goes through it shows that it has a graph."""
    for one in value.assumptions:
        if state.state in ("freed", "retained"):
            if one.at is None or _is_gone_through(asked, one.at, store, value):
                continue
        elif one.at is not None and not isinstance(one.at, ast.Subscript):
            yield refuted(Question.GRAPH, one.clause)
        yield left_open(Question.GRAPH, one.clause)


def _is_gone_through(asked: Asked, node: Any, store: Store, value: Value) -> bool:
    """Whether a backward goes through what a node gives, or through the same entry where the function reads it elsewhere."""
    frames = {store.frame, *(frame for _, frame in value.origins if frame is not None)}
    for frame in (where for one in frames for where in one.around if node in where.flow.parents):
        read = frame.flow.of_kind(ast.Subscript) if isinstance(node, ast.Subscript) else [node]
        same = (one for one in read if ast.unparse(one) == ast.unparse(node))
        if any(backwards(asked.evaluator, one, frame) for one in same):
            return True
    return False


def _repeats(asked: Asked, store: Store, owner: Owner, origins: set[Any]) -> Iterator[Answer]:
    many = [one for one in owner.rounds if not _is_of_one_step(asked, store, one)]
    own = set(store.frame.around)
    made_here = any(frame in own for _, frame in origins)
    of_caller = [one for one in many if made_here and one.frame not in own]
    inside = [one for one in many if any(runs_within(node, frame, one) for node, frame in origins)]
    fresh = [one for one in many if one in inside or one in of_caller]
    if not fresh:
        yield from _by_calls(asked, owner)
    gone = emptied(asked.evaluator, asked.multiplicity, owner) if owner.kind != "local" else None
    if gone is not None and gone.when == "step":
        yield refuted(Question.OUTLIVES, f"`{owner.key}` is emptied in each step", gone.by)
    if fresh:
        yield proven(Question.OUTLIVES, f"`{owner.key}` outlives the rounds that fill it", fresh[0].loop)


def _is_of_one_step(asked: Asked, store: Store, one: Round) -> bool:
    """Whether a loop has a few rounds, runs through parts of a network, or is of a forward: what that makes goes backward together."""
    function = one.frame.function
    if function.name == "forward" and is_of_module(asked.evaluator, function):
        return True
    few = asked.multiplicity.trips(one.loop, one.frame) is not None
    once = one.frame is store.frame and asked.multiplicity.is_once(store.at, one.loop, one.frame)
    return few or once or asked.steps.is_over_parts(one.loop, one.frame)


def _is_of_networks(one: Round, origins: set[Any]) -> bool:
    """Whether each round of a loop runs another network: one that the loop runs through."""
    flow = one.frame.flow
    own = [node for node, frame in origins if frame is one.frame and one.loop in flow.loops(node)]
    bound = ([found for found in flow.bound_in(node.func) if found.kind == "loop"] for node in own)
    return bool(own) and all(one.loop in [_loop_of(flow, found) for found in each] for each in bound)


def _loop_of(flow: Any, definition: Any) -> Any:
    above = flow.parents.get(definition.value)
    return flow.parents.get(above) if isinstance(above, ast.comprehension) else definition.statement


def _by_calls(asked: Asked, owner: Owner) -> Iterator[Answer]:
    if owner.kind == "local":
        yield refuted(Question.OUTLIVES, "it lives no longer than what is put into it")
    if owner.kind == "object" and not _is_own(asked, owner):
        yield refuted(Question.OUTLIVES, f"`{owner.key}` is the framework's, which may keep a few at most")
    around = [one for one in owner.frame.flow.loops(owner.at) if isinstance(one, ast.stmt)]
    rates = {one.rate for one in asked.multiplicity.of(around[-1] if around else owner.at, owner.frame)}
    if rates & {"step", "every nth"}:
        yield proven(Question.OUTLIVES, f"`{owner.key}` outlives the step")
    elif rates & {"phase", "?"}:
        if emptied(asked.evaluator, asked.multiplicity, owner) is not None:
            yield refuted(Question.OUTLIVES, f"`{owner.key}` is emptied, as often as whoever calls wants")
        yield left_open(Question.REPEATS, "how often it is called is not in sight")
    else:
        yield refuted(Question.REPEATS, "it runs once")


def _is_own(asked: Asked, owner: Owner) -> bool:
    """Whether a class of the project sets the attribute that a container is reached by."""
    cls, name = owner.attributes[-1]
    bases = [one for one in asked.program.lineage(cls) if isinstance(one, str)]
    return not name or not bases or bool(asked.evaluator.fields(cls, name))


def _off(asked: Asked, origins: set[Any], store: Store | None = None) -> Iterator[Answer]:
    """That grad is off wherever something is made: for all who get to where it is kept, if the same call makes it."""
    modes = [grad_mode(asked.evaluator, *one) for one in origins]
    if store is not None and all(store.frame in where.around for _, where in origins):
        kept = grad_mode(asked.evaluator, store.at, store.frame)
        modes = [kept if one.mode == "mixed" else one for one in modes]
    if all(one.mode == "off" for one in modes):
        yield refuted(Question.GRAD, "grad is off where it is made", modes[0].by if modes else None)


def _grad(asked: Asked, origins: set[Any], state: GraphState, store: Store) -> Iterator[Answer]:
    live = state.state == "live"  # a backward shows that grad is on, and that something is trained
    if origins:
        yield from _off(asked, origins, store)
    runs = [run for one in origins if (run := forward_of(asked.evaluator, *one)) is not None]
    if runs and len(runs) == len(origins):
        within = [one for node, frame in origins for one in runs_of(asked.evaluator, node, frame)]
        if within and all(modes_within(asked.evaluator, one) == {"off"} for one in within):
            yield refuted(Question.GRAD, "the network switches grad off itself")
        if live and all(frozen(asked.evaluator, one.network) is not None for one in runs):
            yield refuted(Question.TRAINED, "no weight behind it wants gradients")
        places = [placed(asked.evaluator, one.expression, one.frame) for one in runs]
        if all(one.device == "host" and one.how == "moved" for one in places):
            yield refuted(Question.DEVICE, "it is computed on the host")
    if live and any(grad_mode(asked.evaluator, *one).mode == "open" for one in origins):
        yield left_open(Question.GRAD, "whether grad is on where it is made is not shown")


def _of_state(
    asked: Asked, store: Store, owner: Owner, state: GraphState, held: tuple[Value, ...]
) -> Iterator[Answer]:
    origins = calls_of(held)
    if state.by is not None and state.state in ("consumed", "together", "fed"):
        gotten_to = state.by.frame.function in leading_to(asked.evaluator, store.frame.function)
        if (not gotten_to or state.state == "fed") and _evaluates(asked, origins):
            state = replace(state, state="live")  # in eval mode it is made for no backward
    if state.state in ("consumed", "together"):
        yield refuted(Question.BACKWARD, "a later backward goes through all of it")
    if state.state == "none":
        yield refuted(Question.GRAPH, "it becomes an array as it is, which nothing with a graph does")
    if state.state == "fed":
        yield refuted(Question.BACKWARD, "it goes into the next forward")
    if state.state != "live":
        yield proven(Question.GRAPH, f"graph {state.state} by backward")
        if state.state == "freed":
            yield from _few_rounds(asked, store, owner)
        return
    rounds = [one for one in owner.rounds if not _is_of_one_step(asked, store, one)]
    if rounds and _is_of_networks(rounds[0], origins):
        yield refuted(Question.REPEATS, "each round runs another network", rounds[0].loop)
    if state.unseen and not _evaluates(asked, origins):
        several = any(is_over_batches(asked.evaluator, one.loop, one.frame) for one in owner.rounds)
        # what nothing empties keeps those of earlier steps too
        if store.way == "put" and owner.kind == "object":
            several |= emptied(asked.evaluator, asked.multiplicity, owner) is None
        verdict = left_open if several else refuted  # of the terms of one loss whoever gets them makes a sum
        yield verdict(Question.BACKWARD, "who gets it may go backward through it", state.unseen[0].node)
    if state.beside and not state.unseen and not _evaluates(asked, origins):
        clause = "what is made of the same forward is returned, and who gets that may go backward"
        yield left_open(Question.BACKWARD, clause, state.beside[0].node)
    handed = [use for one in origins for use in outcome(asked.evaluator, *one).unseen]
    if handed:
        clause = "what it is made of goes to code that is not seen, which may go backward"
        yield left_open(Question.BACKWARD, clause, handed[0].node)
    yield proven(Question.GRAPH, "no backward goes through it")
    if not grows_for_certain(asked, owner, state):
        yield size_of(asked.evaluator, origins)


def _few_rounds(asked: Asked, store: Store, owner: Owner) -> Iterator[Answer]:
    """Whether the nodes of freed graphs pile up: over an epoch, and not over a few rounds."""
    flow, loops = store.frame.flow, [one.loop for one in owner.rounds if one.frame is store.frame]
    for by in emptying(owner.key, owner.key, owner.frame) if owner.kind == "local" else ():
        own = {one.loop for one in owner.rounds if one.frame is owner.frame}
        if own & {*owner.frame.flow.loops(by)} and _has_step(asked, owner.frame, by):
            yield refuted(Question.OUTLIVES, f"`{owner.key}` is emptied every so many rounds", by)
    anew = _made_anew(asked, owner)
    if anew is not None:
        clause = f"`{owner.key}` is made anew for each batch, and the graphs are freed"
        yield left_open(Question.REPEATS, clause, anew)
    above = flow.blocks[flow.statement_of(store.at)].owner
    rare = isinstance(above, ast.If) and asked.multiplicity.counts(above.test, store.frame)
    if rare and loops and not _has_step(asked, store.frame, store.at):
        clause = "the graphs are freed, and only every so many rounds one is added"
        yield left_open(Question.REPEATS, clause, above)


def _made_anew(asked: Asked, owner: Owner) -> Any:
    """The loop over batches whose rounds make a local container anew, in the function or around a call of it."""
    if owner.kind != "local":
        return None
    loops = [(owner.birth, owner.frame)] if owner.birth is not None else []
    if not any(_is_over_data(asked, one.loop, one.frame) for one in owner.rounds) and not loops:
        sites = asked.evaluator.callers(owner.frame.function)
        loops = [(loop, one.frame) for one in sites for loop in one.frame.flow.loops(one.call)[:1]]
    return next((loop for loop, frame in loops if _is_over_data(asked, loop, frame)), None)


def _is_over_data(asked: Asked, loop: Any, frame: Frame) -> bool:
    return asked.multiplicity.trips(loop, frame) is None and asked.steps.is_over_data(loop, frame.function)


def _has_step(asked: Asked, frame: Frame, node: Any) -> bool:
    """Whether a step of training stands in the block of a node."""
    flow = frame.flow
    block = flow.blocks[flow.statement_of(node)]
    steps = (one.node for one in asked.steps.of(frame.function) if one.work == "train")
    return any(flow.blocks[flow.statement_of(one)] is block for one in steps)


def _evaluates(asked: Asked, origins: set[Any]) -> bool:
    """Whether a network behind a value is put into eval mode for it: in the function that asks it. What a function makes for itself is in eval mode on its own account."""
    for node, frame in origins:
        run = forward_of(asked.evaluator, node, frame)
        made = run.network.origins if run is not None else ()
        if run is None or all(isinstance(one, ast.Call) and where is frame for one, where in made):
            continue
        places = [place_of(asked.evaluator, run.expression, run.frame)]
        places += [Place("", run.network, call, where) for call, where in frame.chain()]
        last = next((one for place in places for one in effects_before(asked.evaluator, place, _MODES)), None)
        if last is not None and last.does == "evaluates":
            return True
    return False
