"""`lru_cache` on a method: the cache is the class's, and keeps every object whose method was called, network and all. On a
function that is given a network it keeps that one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.lifetimes.reaching_back import own_name
from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.analysis.torch.holders import HOLDS_NETWORKS
from gpulint.analysis.values.values import Kind
from gpulint.answers import Answer, Question, left_open, proven
from gpulint.rule import Cost

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

COST = Cost(
    "the network on the GPU after the last reference to it is gone, once for each that the cache has seen",
    "32 MiB for each object with an 8-layer MLP; H200, torch 2.11",
)
# What keeps its arguments as keys of one cache for all calls. `cachetools.cachedmethod` asks the object for its own.
_CACHES = frozenset(
    "functools.cache functools.lru_cache cachetools.cached cachetools.func.lru_cache cachetools.func.ttl_cache "
    "async_lru.alru_cache".split()
)


def method_caches(file: FileAnalysis) -> list[Suspicion]:
    """Memoised methods of objects that hold a network, and memoised functions that are given one."""
    found: list[Suspicion] = []
    for function in file.module.functions:
        if not function.decorators:
            continue
        if function.cls is None:
            found += _of_function(file, function)
            continue
        decorator = _cache(file, function)
        held = None if decorator is None else _held(file, function, function.cls)
        if decorator is not None and held is not None:
            found.append(_suspicion(file, function, function.cls, decorator, held))
    return found


def _of_function(file: FileAnalysis, function: ir.Function) -> Iterator[Suspicion]:
    """`@lru_cache` on `embed(model, text)`."""
    decorator = _decorator(file, function)
    evidence = file.evidence[function]
    given = next((param.name for param in function.params if _is_network(param, evidence.modules)), None)
    if decorator is None or given is None:
        return
    yield Suspicion(
        decorator,
        function.name,
        f"the cache of `{function.name}` keeps the network `{given}` that it is given",
        "each argument of a cached call is kept as a key: cache by what names the network, or hold the cache beside it",
        COST,
        (
            proven(Question.SIZE, f"`{given}` is a network"),
            left_open(
                Question.OUTLIVES, f"whether the program is done with `{given}` before it ends is not shown"
            ),
        ),
    )


def _is_network(param: ir.Param, modules: set[str]) -> bool:
    """Whether a parameter is declared to be a network, or treated as one."""
    declared = None if param.annotation is None else param.annotation.path
    return param.name in modules or (declared or "").rpartition(".")[2] == "Module"


def _cache(file: FileAnalysis, function: ir.Function) -> ir.Expr | None:
    names = {decorator.path for decorator in function.decorators}
    if names & {"staticmethod", "classmethod"} or not own_name(function):
        return None
    return _decorator(file, function)


def _decorator(file: FileAnalysis, function: ir.Function) -> ir.Expr | None:
    for decorator in function.decorators:
        path = decorator.func.path if isinstance(decorator, ir.Call) else decorator.path
        if path is not None and file.names.qualify(path) in _CACHES:
            return decorator
    return None


def _held(file: FileAnalysis, function: ir.Function, cls: ir.Class) -> Answer | None:
    """Whether the object holds a network."""
    info = file.class_of(function)
    if info is None:
        return None
    if info.is_module:
        return proven(Question.SIZE, f"`{cls.name}` is a network itself")
    for one in info.ancestors():
        if one.modules or any(value.kind is Kind.MODULE for value in one.attrs.values()):
            return proven(Question.SIZE, "the object holds a network")
    own = own_name(function)
    for method in cls.methods.values():
        for path in sorted(file.evidence[method].stored | _called_on(method)):
            if path.startswith(f"{own}.") and HOLDS_NETWORKS.search(path.partition(".")[2]):
                return left_open(Question.SIZE, f"that `{path}` holds a network is told by its name alone")
    return None


def _called_on(method: ir.Function) -> set[str]:
    """The places on which a method calls methods: `self.agent` of `self.agent.report()`."""
    return {
        call.func.base.path
        for _, call in ir.calls(method.body)
        if isinstance(call.func, ir.Attr)
        and call.func.base.path is not None
        and call.func.base.path.count(".") == 1
    }


def _suspicion(
    file: FileAnalysis, function: ir.Function, cls: ir.Class, decorator: ir.Expr, held: Answer
) -> Suspicion:
    return Suspicion(
        decorator,
        function.name,
        f"the cache of `{cls.name}.{function.name}` belongs to the class and keeps its `{own_name(function)}` alive, with all that it holds",
        "each argument of a cached call is kept as a key, the object too: keep the result on the object instead",
        COST,
        (held, _let_go(file, cls)),
    )


def _let_go(file: FileAnalysis, cls: ir.Class) -> Answer:
    """Whether the program is seen to make one such object after another."""
    for function in file.module.functions:
        if cls.name in file.evidence[function].called:
            for statement, call in ir.calls(function.body):
                if call.method == cls.name and ir.loops_around(function.body, statement):
                    return proven(
                        Question.OUTLIVES, f"a loop makes one `{cls.name}` after another", statement
                    )
    return left_open(
        Question.OUTLIVES, f"whether the program is done with a `{cls.name}` before it ends is not shown"
    )
