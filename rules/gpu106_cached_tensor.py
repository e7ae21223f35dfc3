from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from gpulint.rules._held.mended import by_methods

from gpulint.analysis.asked import Asked
from gpulint.analysis.domain.values import Value
from gpulint.analysis.evaluate.consumers import consumers
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Function
from gpulint.analysis.queries.grad_mode import Mode, grad_mode
from gpulint.analysis.queries.graphs.carried import graph_calls
from gpulint.analysis.queries.lifetime import emptied
from gpulint.analysis.queries.networks.behind import behind
from gpulint.analysis.queries.networks.forwards import Forward
from gpulint.analysis.queries.networks.placed import placed
from gpulint.analysis.queries.networks.trained import frozen
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.syntax.flow import Definition, Store
from gpulint.analysis.syntax.nodes import argument, key_of, last_name
from gpulint.answers import Answer, Question, doubts_of, left_open, minor, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Claimed, Cost, Repair, Report, Rule

_GRAPH: Final = Cost("every activation behind it, for each new key", "34 MiB for an 8-layer MLP; H200, torch 2.11")  # fmt: skip
_BYTES: Final = Cost("its own bytes on the device, for each new key", "2 MiB for 512 × 1,024 floats; H200, torch 2.11")  # fmt: skip
_NETWORK: Final = Cost("the network, once for each that the cache has seen", "32 MiB for each 8-layer MLP; H200, torch 2.11")  # fmt: skip
_COMPUTING: Final = frozenset({"computed", "fed", "called", "backward", "given"})


class CachedTensor(Rule):
    """
    ## What it does
    Finds caches without a bound that keep a network's outputs on the device: `@cache` and `@lru_cache(maxsize=None)` on
    a function that returns them, a dict of the module or of a class that is filled with them key by key, and a dict of
    an object that is filled with outputs and their autograd graphs.

    With doubts, each in words, it also tells of an object's dict that is filled under keys which may never repeat.
    With a doubt it also tells of `lru_cache` on a method of a network or of an object that holds one, and on a function that
    is given a network, which the cache keeps alive; and of parts of an output kept under their own keys: each is a view of the whole.

    ## Why is this bad
    The cache lives as long as the process and grows with every new key. An output with its autograd graph keeps every
    activation behind it as well: that is an *error*, and the second backward through it fails.

    ## What it costs
    Per new key, an 8-layer MLP, batch 512 × 1,024 (NVIDIA H200, torch 2.11):

    | cached | GPU | host |
    |---|---|---|
    | `net(x)` with grad enabled | 34.0 MiB | 42.7 KiB |
    | `net(x).cpu()` with grad enabled | 32.0 MiB | 2,090.5 KiB |
    | `net(x)` under `no_grad` | 2.0 MiB | 1.3 KiB |
    | `net(x).cpu()` under `no_grad` | 0 B | 2,048.8 KiB |

    Masks for a new length in every step, kept by an unbounded `lru_cache`: 291 KiB a step.

    One object after another with an 8-layer MLP, of which a memoised method is asked once: 32 MiB more for each with
    `lru_cache`, those of the last four with `lru_cache(maxsize=4)`, none with `cached_property`.

    ## Example
    ```python
    import torch
    from torchvision.models import resnet18

    net = resnet18().eval()
    FEATURES = {}

    @torch.no_grad()
    def features(name, image):
        if name not in FEATURES:
            FEATURES[name] = net(image)
        return FEATURES[name]
    ```

    ## Use instead
    ```python
    import torch
    from torchvision.models import resnet18

    net = resnet18().eval()
    FEATURES = {}

    @torch.no_grad()
    def features(name, image):
        if name not in FEATURES:
            FEATURES[name] = net(image).cpu()
        return FEATURES[name]
    ```

    Or bound the cache: `@lru_cache(maxsize=64)`.

    ## Fix safety
    Moving what a dict keeps to the host, detached where it has a graph, is unsafe: what is taken out of it is then on
    another device. Where that is computed with, it is only detached. Nothing is offered for decorators: what a good bound is, the code does not tell.
    """

    code = "GPU106"
    name = "cached-tensor"
    runtime_claim = Claim("drift")
    doubts = True
    triggers = (
        (b"torch", b"lru_cache", b"functools.cache", b"cachetools"),
        (b" in ", b".get(", b"lru_cache", b"@cache", b"functools.cache", b"cached("),
    )

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function in asked.file.functions:
            yield from _memoised(asked, function)
            for store in function.flow.stores:
                yield from _stored(asked, asked.root(function), store)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a cache is given: `runs` are the forwards behind it, `modes` what grad is where its graph is made, if it has one."""

    node: Any
    frame: Frame
    value: Value
    runs: list[Forward]
    modes: Collection[Mode]


def _kept(asked: Asked, node: Any, frame: Frame) -> _Kept | None:
    """What an expression gives a cache, where that has a graph, or is a network's output on the device; None else."""
    evaluator, value = asked.evaluator, asked.evaluator.value_of(node, frame)
    if value.kind == "parameter":  # weights are meant to stay, and have no graph of their own
        return None
    runs = behind(evaluator, node, frame)
    modes = {mode for one in graph_calls(value) if (mode := grad_mode(evaluator, *one).mode) != "off"}
    if runs and all(frozen(evaluator, one.network) is not None for one in runs):
        modes = set()
    parts = value.parts if value.kind == "tuple" and value.parts else (value,)
    there = [one for one in parts if one.kind in ("tensor", "unknown") and one.device != "host"]
    large = any(one.size == "batch" or (runs and one.size == "?" and one.kind == "tensor") for one in there)
    return _Kept(node, frame, value, runs, modes) if modes or large else None


def _of_kept(asked: Asked, kept: _Kept) -> Iterator[Answer]:
    """On what it stands that what is kept has a graph, or is on the device."""
    if kept.modes:
        uses = consumers(asked.evaluator, kept.node, kept.frame, "graph") if kept.value.assumptions else ()
        if not any(one.role == "fed" for one in uses):  # what goes into a network is a tensor
            yield from (left_open(Question.GRAPH, one.clause) for one in kept.value.assumptions)
        if kept.modes == {"on"}:
            yield proven(Question.GRAD, "it is made with grad enabled")
        else:
            yield left_open(Question.GRAD, "whether grad is on where it is made is not shown")
    places = [placed(asked.evaluator, one.expression, one.frame) for one in kept.runs]
    given = [asked.evaluator.value_of(x, one.frame).device for one in kept.runs for x in one.call.args]
    moved = any(one.how == "moved" for one in places)
    if "cuda" in (kept.value.device, *given, *(one.device for one in places)):
        yield proven(Question.DEVICE, "it is made on the GPU")
    elif moved and all(one.device == "host" for one in places):
        yield refuted(Question.DEVICE, "it is computed on the host")
    elif kept.modes or moved:
        yield proven(Question.DEVICE, "nothing moves it to the host")
    elif any(one.how == "made" for one in places):
        yield minor(Question.DEVICE, "nothing moves it to the host, nor is its network seen to go to a GPU")
    else:
        yield left_open(Question.DEVICE, "whether it is on a GPU is not shown")
    yield from reached(asked.evaluator, kept.frame.function)


def _memoised(asked: Asked, function: Function) -> Iterator[Claimed]:
    """The cache of a function: for what it gives, where nothing bounds it, and for a network among its arguments."""
    around = asked.root(function.cls.body if function.cls else function.parent or function.file.body)
    for by in function.node.decorator_list if function.parameters else ():
        target = asked.evaluator.value_of(by.func if isinstance(by, ast.Call) else by, around).ref
        row = asked.evaluator.table.function(target)
        if row is None or row.does != "memoises":
            continue
        given = [one.value for one in function.flow.returns if one.value is not None and _is_unbounded(by)]
        found = [one for node in given if (one := _kept(asked, node, asked.root(function))) is not None]
        if found and len(function.parameters) > function.takes_self:
            bound = proven(Question.OUTLIVES, "the cache has no bound, and lives as long as the process")
            yield _claim(asked, by, function.name, "argument", found[0], (bound, *_of_kept(asked, found[0])))
        if holder := _network_given(asked, function):
            clause = f"whether the program is done with `{holder}` before it ends is not shown"
            answers = (left_open(Question.OUTLIVES, clause), *reached(asked.evaluator, function))
            text = (
                f"the cache of `{function.name}` keeps `{holder}` alive, with the network that it is or holds"
            )
            why = "each argument of a cached call is kept as a key: cache by what names the network, or on the object"
            report = partial(Report, by, text, why, _NETWORK)
            yield Claimed(by, function.name, answers, report)


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


def _stored(asked: Asked, frame: Frame, store: Store) -> Iterator[Claimed]:
    """What a dict of the module, of a class or of an object is given under a key that the code computes."""
    whole = key_of(store.target.value)
    itself = frame.flow.takes_in(store.value, whole)  # a total, or an average
    if store.path or isinstance(store.target.slice, ast.Constant) or whole is None or itself:
        return
    made = asked.evaluator.value_of(store.target.value, frame)
    if made.kind != "dict" or not made.origins or not all(_is_empty(node) for node, _ in made.origins):
        return
    kept = _kept(asked, store.value, frame)
    if kept is not None and not asked.evaluator.is_dead(store.statement, frame):
        yield _claim(asked, store.statement, whole, "key", kept, _of_dict(asked, store, made, kept))


def _is_empty(made: Any) -> bool:
    return not made.keys if isinstance(made, ast.Dict) else isinstance(made, ast.Call) and not made.keywords


def _of_dict(asked: Asked, store: Store, made: Value, kept: _Kept) -> Iterator[Answer]:
    """On what it stands that a dict grows with what it keeps."""
    name = key_of(store.target.value) or ""
    shared = all(isinstance(frame.function.node, (ast.Module, ast.ClassDef)) for _, frame in made.origins)
    if not shared and not name.startswith(f"{kept.frame.function.self_name}."):
        yield refuted(Question.OUTLIVES, "it lives no longer than what calls")
    for by, _, _ in emptied(asked.evaluator, store.target.value, kept.frame):
        yield refuted(Question.OUTLIVES, f"entries of `{name}` are taken out, or counted", by)
    above = [kept.frame.flow.parents.get(use) for use in kept.frame.flow.uses.get(name, ())]
    compared = [one.ops[0] for one in above if isinstance(one, ast.Compare)]
    looked_up = any(isinstance(one, (ast.In, ast.NotIn)) for one in compared)
    looked_up = looked_up or any(getattr(one, "attr", "") == "get" for one in above)
    yield _of_keys(asked, store, kept, shared, looked_up)
    uses = () if looked_up or not kept.modes else consumers(asked.evaluator, kept.node, kept.frame, "graph")
    if any(one.role in ("backward", "fed") for one in uses):
        yield refuted(Question.BACKWARD, "a backward, or a forward, goes through what is kept")
    yield proven(Question.OUTLIVES, f"nothing empties `{name}`, and nothing bounds it")
    yield from _of_kept(asked, kept)


def _of_keys(asked: Asked, store: Store, kept: _Kept, shared: bool, looked_up: bool) -> Answer:
    """Whether what is stored is stored under new keys again and again."""
    key = [one for node in ast.walk(store.target.slice) for one in _bound(kept.frame, node)]
    part = isinstance(store.value, ast.Subscript) and not isinstance(store.value.slice, ast.Constant)
    lasting = shared or (kept.modes and not part)
    if (looked_up and lasting) or any(_counts(asked, one, store, kept) for one in key):
        return proven(Question.REPEATS, "it is stored under each new key")
    new = looked_up or any(_is_of_given(asked, one, kept.frame) for one in key)
    if not shared and not (new and (part or kept.modes)):
        return refuted(Question.REPEATS, "the dict is its object's, and may have few keys")
    return left_open(Question.REPEATS, "whether its keys ever repeat, the code does not show")


def _bound(frame: Frame, node: Any) -> Iterable[Definition]:
    if isinstance(node, ast.Attribute):
        return frame.flow.definitions.get(key_of(node) or "", ())
    return frame.flow.reaching(node) if isinstance(node, ast.Name) else ()


def _counts(asked: Asked, one: Definition, store: Store, kept: _Kept) -> bool:
    """Whether a name counts calls, or the rounds of a loop that each run the same network."""
    networks = {key_of(name) for run in kept.runs for name in ast.walk(run.expression)}
    around = one.kind == "loop" and one.statement in kept.frame.flow.loops(store.statement)
    if not around or one.key in networks:
        return one.kind == "augmented"
    rate = asked.multiplicity.of_loop(one.statement, kept.frame, store.statement)
    return asked.evaluator.definition(one, kept.frame).kind == "number" and rate in ("train", "forward")


def _is_of_given(asked: Asked, one: Definition, frame: Frame) -> bool:
    """Whether a loop goes through what the function is given, and does not count it."""
    bound = frame.flow.bound_in(one.value) if one.kind == "loop" else ()
    given = [each for each in bound if each.kind == "parameter"]
    own = frame.function.self_name
    return any(each.key != own for each in given) and asked.evaluator.definition(one, frame).kind != "number"


def _claim(asked: Asked, at: Any, name: str, what: str, kept: _Kept, answers: Iterable[Answer]) -> Claimed:
    given = until_refuted(answers)
    holder = f"the cache of `{name}`" if what == "argument" else f"`{name}`"
    how = "together with its autograd graph" if kept.modes else "on the device"
    report = partial(
        Report,
        at,
        f"{holder} keeps a network's output for every new {what}, {how}",
        "it has no bound, and nothing empties it",
        _GRAPH if kept.modes else _BYTES,
        Severity.ERROR if kept.modes and not doubts_of(given) else Severity.WARNING,
        partial(_repair, asked, kept, name) if what == "key" else None,
    )
    return Claimed(at, name, given, report)


def _repair(asked: Asked, kept: _Kept, name: str) -> Repair | None:
    uses = consumers(asked.evaluator, kept.node, kept.frame, "storage")
    stays = any(one.role in _COMPUTING for one in uses)
    methods = (*(("detach",) if kept.modes else ()), *(() if stays else ("cpu",)))
    if not methods or kept.value.kind != "tensor":
        return None
    where = "has no graph then, and somebody may train on it" if stays else "is then on the CPU"
    title = "keep it without its graph: `.detach()`" if stays else "keep it on the host"
    return by_methods(asked, (kept.node,), methods, title, f"what is taken out of `{name}` {where}")
