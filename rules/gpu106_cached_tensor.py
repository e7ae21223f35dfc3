from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from gpulint.rules._held.mended import by_methods

from gpulint.analysis.asked import Asked
from gpulint.analysis.evaluate.consumers import consumers
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Function
from gpulint.analysis.queries.grad_mode import grad_mode
from gpulint.analysis.queries.graphs.carried import graph_calls
from gpulint.analysis.queries.lifetime import emptied
from gpulint.analysis.queries.networks.behind import behind
from gpulint.analysis.queries.networks.placed import placed
from gpulint.analysis.queries.networks.trained import frozen
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.syntax.nodes import argument, key_of, last_name
from gpulint.answers import Answer, Question, doubts_of, left_open, minor, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Claimed, Cost, Repair, Report, Rule

_COSTS: Final = {
    True: Cost("every activation behind it, for each new key", "34 MiB for an 8-layer MLP; H200, torch 2.11"),
    False: Cost(
        "its own bytes on the device, for each new key", "2 MiB for 512 × 1,024 floats; H200, torch 2.11"
    ),
}
_COMPUTING: Final = frozenset({"computed", "fed", "called", "backward", "given"})


class CachedTensor(Rule):
    """
    ## What it does
    Finds caches without a bound that keep a network's outputs on the device: `@cache` and `@lru_cache(maxsize=None)` on
    a function that returns them, and a dict of the module or of a class in which a key is looked up, and which is filled with them key by key.

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
        (b"torch", b"lru_cache", b"functools.cache"),
        (b" in ", b".get(", b"lru_cache", b"@cache", b"functools.cache"),
    )

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function in asked.file.functions:
            frame = asked.root(function)
            for at, name, node in (*_memoised(asked, function), *_stored(asked, frame)):
                modes = _modes(asked, node, frame)
                if modes is not None and not asked.evaluator.is_dead(node, frame):
                    answers = until_refuted(_answers(asked, node, frame, modes))
                    severity = Severity.ERROR if modes and not doubts_of(answers) else Severity.WARNING
                    mended = partial(_repair, asked, name, node, frame, bool(modes))
                    repair = mended if isinstance(at, ast.stmt) else None
                    report = partial(_report, at, name, bool(modes), severity, repair)
                    yield Claimed(at, name, answers, report)


def _memoised(asked: Asked, function: Function) -> Iterator[tuple[Any, str, Any]]:
    """What a function gives in the end whose cache has no bound, with the decorator."""
    around = asked.root(function.cls.body if function.cls else function.parent or function.file.body)
    given = [one.value for one in function.flow.returns if one.value is not None]
    for by in function.node.decorator_list if len(function.parameters) > function.takes_self else ():
        target = asked.evaluator.value_of(by.func if isinstance(by, ast.Call) else by, around).ref
        row = asked.evaluator.table.function(target)
        if row is not None and row.does == "memoises" and _is_unbounded(by):
            yield from ((by, function.name, one) for one in given[-1:])


def _is_unbounded(decorator: Any) -> bool:
    if not isinstance(decorator, ast.Call):
        return last_name(decorator) == "cache"
    most = argument(decorator, 0, "maxsize")
    return isinstance(most, ast.Constant) and most.value is None


def _stored(asked: Asked, frame: Frame) -> Iterator[tuple[Any, str, Any]]:
    """What a dict of the module or of a class is given, with the statement, under keys that are looked up in it, and that nothing takes out."""
    for store in frame.flow.stores:
        container, name = store.target.value, key_of(store.target.value)
        asks = [one for one in frame.flow.of_kind(ast.Compare) if key_of(one.comparators[0]) == name]
        looked_up = asks or list(frame.flow.calls_on({name}, "get"))
        itself = frame.flow.takes_in(store.value, name)  # a total, or an average
        if (
            not looked_up
            or itself
            or store.path
            or name is None
            or isinstance(store.target.slice, ast.Constant)
        ):
            continue
        made = asked.evaluator.value_of(container, frame)
        where = [one.function.node for _, one in made.origins if one is not None]
        shared = bool(where) and all(isinstance(one, (ast.Module, ast.ClassDef)) for one in where)
        if shared and made.kind == "dict" and not any(emptied(asked.evaluator, container, frame)):
            yield store.statement, name, store.value


def _modes(asked: Asked, node: Any, frame: Frame) -> set[Any] | None:
    """What grad is where the graph of what a cache is given is made; none where that is a network's output on the device without a graph;
    None where it is neither."""
    evaluator, value = asked.evaluator, asked.evaluator.value_of(node, frame)
    runs = behind(evaluator, node, frame)
    modes = {mode for one in graph_calls(value) if (mode := grad_mode(evaluator, *one).mode) != "off"}
    if all(frozen(evaluator, one.network) is not None for one in runs):
        modes = set()
    large = value.size == "batch" or (bool(runs) and value.size == "?" and value.kind == "tensor")
    there = value.kind in ("tensor", "unknown") and large and value.device != "host"
    return modes if modes or there else None


def _answers(asked: Asked, node: Any, frame: Frame, modes: set[Any]) -> Iterator[Answer]:
    """On what it stands that what is kept has a graph, or is on the device."""
    evaluator, value = asked.evaluator, asked.evaluator.value_of(node, frame)
    yield proven(Question.OUTLIVES, "nothing empties the cache, and nothing bounds it")
    uses = consumers(evaluator, node, frame, "graph") if modes and value.assumptions else ()
    if not any(one.role == "fed" for one in uses):  # what goes into a network is a tensor
        yield from (left_open(Question.GRAPH, one.clause) for one in value.assumptions if modes)
    places = [placed(evaluator, one.expression, one.frame) for one in behind(evaluator, node, frame)]
    moved = any(one.how == "moved" for one in places)
    if moved and all(one.device == "host" for one in places):
        yield refuted(Question.DEVICE, "it is computed on the host")
    elif not (moved or modes or value.device == "cuda"):
        doubt = minor if any(one.how == "made" for one in places) else left_open
        yield doubt(Question.DEVICE, "nothing moves it to the host, nor is its network seen to go to a GPU")
    yield from reached(evaluator, frame.function)


def _report(at: Any, name: str, graph: bool, severity: Severity, repair: Any) -> Report:
    how = "together with its autograd graph" if graph else "on the device"
    return Report(
        at,
        f"the cache `{name}` keeps a network's output for every new key, {how}",
        "it has no bound, and nothing empties it",
        _COSTS[graph],
        severity,
        repair,
    )


def _repair(asked: Asked, name: str, node: Any, frame: Frame, graph: bool) -> Repair | None:
    uses = consumers(asked.evaluator, node, frame, "storage")
    stays = any(one.role in _COMPUTING for one in uses)
    methods = (*(("detach",) if graph else ()), *(() if stays else ("cpu",)))
    if not methods or asked.evaluator.value_of(node, frame).kind != "tensor":
        return None
    where = "has no graph then, and somebody may train on it" if stays else "is then on the CPU"
    title = "keep it without its graph: `.detach()`" if stays else "keep it on the host"
    return by_methods(asked, (node,), methods, title, f"what is taken out of `{name}` {where}")
