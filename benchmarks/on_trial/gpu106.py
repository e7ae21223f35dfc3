"""GPU106 as it would ask the engine: caches without a bound that keep what a network gave. One screen, no mechanism: it was seen to be
right about real code once in thirteen readings. It meets the plain forms, and leaves:

- `setdefault` and `update`, dicts in dicts, dicts that a caller hands in, hooks, and caches that are objects of a class of their own.
- Bounds, and what empties a dict of the module, where they stand in another file; `del cache[key]` where nothing else bounds it.
- `cachetools.cached` with anything but a display of an empty dict, `alru_cache`, and whatever decorators of the project memoise.
- Objects that hold a network by way of another object, or by name alone, whose methods are memoised.
- A graph that is kept in an object's dict under a counter, which GPU101 tells as well: one of the two has to give way.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gpulint.rules.gpu106_cached_tensor import CachedTensor
from on_trial.emptied import emptied
from on_trial.stores import graph_in, owner_of

from gpulint.analysis.evaluate.consumers import consumers
from gpulint.analysis.queries.grad_mode import grad_mode
from gpulint.analysis.queries.networks.forwards import Forward, forward_of
from gpulint.analysis.queries.networks.placed import placed
from gpulint.analysis.queries.networks.trained import frozen
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.syntax.nodes import argument, key_of, last_name
from gpulint.answers import Answer, Question, doubts_of, left_open, minor, proven, refuted, until_refuted
from gpulint.findings import Severity
from gpulint.rule import Claimed, Cost, Repair, Replace, Report

if TYPE_CHECKING:
    from gpulint.analysis.asked import Asked
    from gpulint.analysis.domain.values import Value
    from gpulint.analysis.evaluate.frames import Frame
    from gpulint.analysis.project.file import Function

_GRAPH: Final = Cost("every activation behind it, for each new key", "34 MiB for an 8-layer MLP; H200, torch 2.11")  # fmt: skip
_BYTES: Final = Cost("its own bytes on the device, for each new key", "2 MiB for 512 × 1,024 floats; H200, torch 2.11")  # fmt: skip
_NETWORK: Final = Cost("the network, once for each that the cache has seen", "32 MiB for each 8-layer MLP; H200, torch 2.11")  # fmt: skip
_MEMOISING: Final = frozenset({"functools.cache", "functools.lru_cache", "cachetools.cached"})
_COMPUTING: Final = frozenset({"computed", "fed", "called", "backward", "given"})


class CachedTensorOnTrial(CachedTensor):
    """GPU106 as it would ask the engine. What it says of itself, and its example, are those of the rule that it may take the place of."""

    asks = True

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function in asked.file.functions:
            yield from _memoised(asked, function)
            yield from _stored(asked, function)


# -- what is kept


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a cache is given: `runs` are the forwards behind it, `graphs` what has a graph in it."""

    node: Any
    frame: Frame
    value: Value
    runs: list[Forward]
    graphs: list[Value]


def _kept(asked: Asked, node: Any, frame: Frame) -> _Kept | None:
    """What an expression gives a cache, where that has a graph, or is a network's output on the device; None else."""
    value, runs = asked.evaluator.value_of(node, frame), list(_runs(asked, node, frame, set()))
    graphs = [one for one in graph_in(asked.evaluator, value) if _modes(asked, one) - {"off"}]
    if graphs and not (runs and all(frozen(asked.evaluator, one.network) is not None for one in runs)):
        return _Kept(node, frame, value, runs, graphs)
    parts = value.parts if value.kind == "tuple" and value.parts else (value,)
    there = [one for one in parts if one.kind in ("tensor", "unknown") and one.device != "host"]
    large = any(one.size == "batch" or (runs and one.size == "?" and one.kind == "tensor") for one in there)
    return _Kept(node, frame, value, runs, []) if large else None


def _modes(asked: Asked, value: Value) -> set[str]:
    """What grad is where a graph is made; empty where nobody is seen to make one."""
    made = [one for one in value.origins if isinstance(one[0], ast.Call) and one[1] is not None]
    return {grad_mode(asked.evaluator, *one).mode for one in made}


def _runs(asked: Asked, node: Any, frame: Frame, seen: set[Any]) -> Iterator[Forward]:
    """The forwards that an expression is made of, also by way of names."""
    for one in ast.walk(node):
        run = forward_of(asked.evaluator, one, frame) if isinstance(one, ast.Call) else None
        if run is not None:
            yield run
        for found in frame.flow.reaching(one) if isinstance(one, ast.Name) else ():
            if found.kind in ("assign", "loop") and found not in seen:
                seen.add(found)
                yield from _runs(asked, found.value, frame, seen)


def _of_kept(asked: Asked, kept: _Kept) -> Iterator[Answer]:
    """On what it stands that what is kept has a graph, or is on the device."""
    surest = min(kept.graphs, key=lambda one: len(one.assumptions), default=None)
    if surest is not None:
        if _modes(asked, surest) & {"mixed", "open"}:
            yield left_open(Question.GRAD, "whether grad is on where it is made is not shown")
        yield from (left_open(Question.GRAPH, one.clause) for one in surest.assumptions)
        yield proven(Question.GRAPH, "it is made with grad enabled")
    places = [placed(asked.evaluator, one.expression, one.frame) for one in kept.runs]
    given = [asked.evaluator.value_of(x, one.frame).device for one in kept.runs for x in one.call.args]
    hows = {one.how for one in places}
    if "cuda" in (kept.value.device, *given, *(one.device for one in places)):
        yield proven(Question.DEVICE, "it is made on the GPU")
    elif hows == {"moved"} and all(one.device == "host" for one in places):
        yield refuted(Question.DEVICE, "it is computed on the host")
    elif kept.graphs or "moved" in hows:
        yield proven(Question.DEVICE, "nothing moves it to the host")
    elif "made" in hows:
        yield minor(Question.DEVICE, "nothing moves it to the host, nor is its network seen to go to a GPU")
    else:
        yield left_open(Question.DEVICE, "whether it is on a GPU is not shown")
    yield from reached(asked.evaluator, kept.frame.function)


# -- functions that are memoised


def _memoised(asked: Asked, function: Function) -> Iterator[Claimed]:
    """The cache of a function: for what it gives, where nothing bounds it, and for a network among its arguments."""
    around = asked.root(function.cls.body if function.cls else function.parent or function.file.body)
    for by in function.node.decorator_list if function.parameters else ():
        func, name = by.func if isinstance(by, ast.Call) else by, function.name
        if asked.evaluator.value_of(func, around).ref not in _MEMOISING:
            continue
        given = [one.value for one in function.flow.returns if one.value is not None and _is_unbounded(by)]
        found = [one for node in given if (one := _kept(asked, node, asked.root(function))) is not None]
        if found and len(function.parameters) > function.takes_self:
            bound = proven(Question.OUTLIVES, "the cache has no bound, and lives as long as the process")
            yield _claim(asked, by, name, "argument", found[0], (bound, *_of_kept(asked, found[0])))
        if holder := _network_given(asked, function):
            clause = f"whether the program is done with `{holder}` before it ends is not shown"
            answers = (left_open(Question.OUTLIVES, clause), *reached(asked.evaluator, function))
            text = f"the cache of `{name}` keeps `{holder}` alive, with the network that it is or holds"
            why = "each argument of a cached call is kept as a key: cache by what names the network, or on the object"
            yield Claimed(by, name, answers, partial(Report, by, text, why, _NETWORK, subject=name))


def _is_unbounded(decorator: Any) -> bool:
    if not isinstance(decorator, ast.Call):
        return last_name(decorator) == "cache"
    most = argument(decorator, 0, "maxsize") or argument(decorator, 0, "cache")
    return (isinstance(most, ast.Constant) and most.value is None) or isinstance(most, ast.Dict)


def _network_given(asked: Asked, function: Function) -> str:
    """The parameter of a function that is a network or, of a method, an object that holds one; empty where none is."""
    init = asked.evaluator.method(function.cls, "__init__") if function.cls and function.takes_self else None
    for one, begin in ((function, ""), *([(init, f"{init.self_name}.")] if init is not None else [])):
        for key, definitions in one.flow.definitions.items():
            fits = key.startswith(begin) if begin else definitions[0].kind == "parameter"
            values = (asked.evaluator.definition(each, asked.root(one)) for each in definitions if fits)
            if any(value.kind == "module" for value in values):
                return function.self_name if begin else key
    return ""


# -- dicts


def _stored(asked: Asked, function: Function) -> Iterator[Claimed]:
    """What a dict of the module, of a class or of an object is given under keys that the code computes."""
    frame = asked.root(function)
    for store in function.flow.stores:
        whole = key_of(store.target.value)
        if store.path or isinstance(store.target.slice, ast.Constant) or whole is None:
            continue
        if any(key_of(one) == whole for one in ast.walk(store.value)):
            continue  # it takes itself in: a total, or an average
        made = asked.evaluator.value_of(store.target.value, frame)
        if made.kind != "dict" or not made.origins or not all(_is_empty(node) for node, _ in made.origins):
            continue
        kept = _kept(asked, store.value, frame)
        if kept is not None and not asked.evaluator.is_dead(store.statement, frame):
            yield _claim(asked, store.statement, whole, "key", kept, _of_dict(asked, store, made, kept))


def _is_empty(made: Any) -> bool:
    return not made.keys if isinstance(made, ast.Dict) else isinstance(made, ast.Call) and not made.keywords


def _of_dict(asked: Asked, store: Any, made: Value, kept: _Kept) -> Iterator[Answer]:
    """On what it stands that a dict grows with what it keeps."""
    owner = owner_of(asked.evaluator, store.target.value, kept.frame, store.statement)
    if owner.kind not in ("outer", "object"):
        yield refuted(Question.OUTLIVES, "it lives no longer than what calls")
    gone = emptied(asked.evaluator, asked.multiplicity, owner)
    by = gone.by if gone is not None else _limited(kept.frame.function, owner.key.rpartition(".")[2])
    if by is not None:
        yield refuted(Question.OUTLIVES, f"entries of `{owner.key}` are taken out, or counted", by)
    shared = all(isinstance(frame.function.node, (ast.Module, ast.ClassDef)) for _, frame in made.origins)
    part = isinstance(store.value, ast.Subscript) and not isinstance(store.value.slice, ast.Constant)
    key = _key(asked, store, kept)
    if not shared and key != "counted" and not (key and (kept.graphs or part)):
        yield refuted(Question.REPEATS, f"`{owner.key}` is its object's, and may have few keys")
    with_graph = kept.graphs and key != "asked"
    uses = consumers(asked.evaluator, kept.node, kept.frame, "graph") if with_graph else ()
    if any(one.role in ("backward", "fed") for one in uses):
        yield refuted(Question.BACKWARD, "a backward, or a forward, goes through what is kept")
    if key == "counted" or (key == "asked" and (shared or not part)):
        yield proven(Question.REPEATS, "it is stored under each new key")
    else:
        yield left_open(Question.REPEATS, "whether its keys ever repeat, the code does not show")
    yield proven(Question.OUTLIVES, f"nothing empties `{owner.key}`, and nothing bounds it")
    yield from _of_kept(asked, kept)


def _limited(function: Function, name: str) -> Any:
    """What takes entries out of a dict of this name, or compares how many there are, in the functions of its file."""
    for one in (function.file.body, *function.file.functions):
        calls = [call for limit in ("len", "pop", "popitem") for call in one.flow.calls.get(limit, ())]
        for call in calls if name in one.words else ():
            on = call.func.value if isinstance(call.func, ast.Attribute) else next(iter(call.args), call)
            compared = last_name(call.func) != "len" or isinstance(one.flow.parents.get(call), ast.Compare)
            if compared and (key_of(on) or "").rpartition(".")[2] == name:
                return call
    return None


def _key(asked: Asked, store: Any, kept: _Kept) -> str:
    """What makes a key new: `asked`, the dict is asked for it; `counted`, it counts steps or calls; `named`, it is of a list that the
    function is given; empty where nothing does."""
    flow, found = kept.frame.flow, ""
    for use in flow.uses.get(key_of(store.target.value) or "", ()):
        above = flow.parents.get(use)
        looks = isinstance(above, ast.Compare) and isinstance(above.ops[0], (ast.In, ast.NotIn))
        if looks or (isinstance(above, ast.Attribute) and above.attr == "get"):
            return "asked"
    for node in ast.walk(store.target.slice):
        kinds = flow.definitions.get(key_of(node) or "", ()) if isinstance(node, ast.Attribute) else ()
        for one in flow.reaching(node) if isinstance(node, ast.Name) else kinds:
            if one.kind == "augmented" or (one.kind == "loop" and _counts_steps(asked, one, store, kept)):
                return "counted"
            run = one.value.args if isinstance(one.value, ast.Call) else [one.value]
            index = isinstance(one.value, ast.Call) and len(run) == 1 and one.path[:1] == (0,)
            names = run if one.kind == "loop" and not index else ()
            given = [each for name in names if isinstance(name, ast.Name) for each in flow.reaching(name)]
            found = "named" if any(each.kind == "parameter" for each in given) else found
    return found


def _counts_steps(asked: Asked, one: Any, store: Any, kept: _Kept) -> bool:
    """Whether a loop counts rounds that each run the same network."""
    called = {last_name(call.func) for call in ast.walk(one.value) if isinstance(call, ast.Call)}
    inside = one.statement in kept.frame.flow.loops(store.statement)
    if not inside or not called & {"range", "trange", "count"}:
        return False
    chosen = {key_of(name) for run in kept.runs for name in ast.walk(run.expression)}
    rate = asked.multiplicity.of_loop(one.statement, kept.frame, store.statement)
    return one.key not in chosen and rate in ("train", "forward")


# -- reports


def _claim(asked: Asked, at: Any, name: str, what: str, kept: _Kept, answers: Iterable[Answer]) -> Claimed:
    given = until_refuted(answers)
    holder = f"the cache of `{name}`" if what == "argument" else f"`{name}`"
    how = "together with its autograd graph" if kept.graphs else "on the device"
    report = partial(
        Report,
        at,
        f"{holder} keeps a network's output for every new {what}, {how}",
        "it has no bound, and nothing empties it",
        _GRAPH if kept.graphs else _BYTES,
        Severity.ERROR if kept.graphs and not doubts_of(given) else Severity.WARNING,
        partial(_repair, asked, kept, name) if what == "key" else None,
        subject=name,
    )
    return Claimed(at, name, given, report)


def _repair(asked: Asked, kept: _Kept, name: str) -> Repair | None:
    from gpulint.fix.nodes import method_chain

    uses = consumers(asked.evaluator, kept.node, kept.frame, "storage")
    stays = any(one.role in _COMPUTING for one in uses)
    methods = (*(("detach",) if kept.graphs else ()), *(() if stays else ("cpu",)))
    if not methods or kept.value.kind != "tensor":
        return None
    where = "has no graph then, and somebody may train on it" if stays else "is then on the CPU"
    title = "keep it without its graph: `.detach()`" if stays else "keep it on the host"
    node = asked.node(kept.node)
    change = Replace(node, method_chain(node, methods))
    return Repair("unsafe", title, (change,), f"what is taken out of `{name}` {where}")
