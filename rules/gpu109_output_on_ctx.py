from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from gpulint.analysis.asked import Asked
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.syntax.flow import Definition
from gpulint.answers import Answer, Question, left_open, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.rule import Claimed, Cost, Repair, Replace, Report, Rule

_COST = Cost(
    "what it returns, and without a backward all that its graph has saved, of every call until Python's collector comes",
    "a peak of 132 instead of 100 MiB in training, 544 instead of 68 MiB without a backward, for an 8-layer MLP; H200, torch 2.11",
)

_Made = tuple[Any, tuple[Any, ...]]  # an expression, and the path to a part of what it gives


class OutputOnCtx(Rule):
    """
    ## What it does
    Finds a custom `torch.autograd.Function` that keeps what it returns as an attribute of `ctx`, in `forward` or in
    `setup_context`, alone or in a list or tuple.

    With a doubt it tells of those whose `backward` lets go of the attribute: then only that stays which nobody goes backward through.

    ## Why is this bad
    What an operation returns holds its node of the graph, the node is `ctx`, and `ctx` holds what was returned: a circle. No
    reference count falls to zero when the program lets go of it, after a backward as little as without one. All that the node and the
    nodes before it have saved waits for Python's garbage collector, which counts objects and knows nothing of the GPU's memory.
    `save_for_backward` knows its own outputs, and makes no circle.

    ## What it costs
    An operation behind an 8-layer MLP, batch 512 × 1,024, that keeps its output so: the peak of 60 training steps is 132 MiB, and 100 MiB with
    `save_for_backward`; where no backward follows it is 544 MiB, and 68 MiB with it, as each graph waits for the collector
    with all that it has saved (NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import torch

    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.y = y
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.y
    ```

    ## Use instead
    ```python
    import torch

    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]
    ```

    ## Fix safety
    Saving it with `save_for_backward` is offered for one tensor, where nothing else is saved so, and only `backward` reads the attribute. It is unsafe: torch then
    refuses a backward after the tensor was changed in place, which went unnoticed before, and one through a graph that is freed.
    """

    code = "GPU109"
    name = "output-on-ctx"
    runtime_claim = Claim("garbage")
    triggers = ((b"Function",), (b"def forward", b"def setup_context"), (b"def backward",), (b"torch",))
    doubts = True

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for cls in asked.file.classes:
            if asked.evaluator.calling.is_operation(cls):
                several = [one for name, one in cls.methods.items() if name in ("forward", "setup_context")]
                for method in several:
                    yield from (_claimed(asked, cls, method, one) for one in _kept(method))


def _kept(method: Function) -> Iterator[Definition]:
    """Where an operation gives an attribute of its `ctx` what it returns, or what is returned already."""
    if len(method.parameters) < 2 or "staticmethod" not in method.decorators:
        return
    flow, ctx = method.flow, method.parameters[0].arg
    returned: set[_Made] = {(method.parameters[-1], ())}
    if method.name == "forward":  # what it is given is no result of its own
        returned = {each for one in flow.returns for each in _made_as(method, one.value)}
        returned = {one for one in returned if not isinstance(one[0], ast.arg)}
    for key, definitions in flow.definitions.items():
        for one in definitions if key.startswith(f"{ctx}.") else ():
            if one.kind == "assign" and _meet(returned, _made_as(method, one.value, one.path)):
                yield one


def _made_as(method: Function, node: Any, path: tuple[Any, ...] = (), depth: int = 5) -> set[_Made]:
    """The expressions that the parts of an expression are the results of, or are taken from by a path, whatever names they go by."""
    if isinstance(node, (ast.Tuple, ast.List)):
        picked = path and isinstance(path[0], int) and path[0] < len(node.elts)  # `ctx.a, ctx.b = a, b`
        parts = [(node.elts[path[0]], path[1:])] if picked else [(one, path) for one in node.elts]
    elif isinstance(node, (ast.Name, ast.Attribute)):
        bound = [one for one in method.flow.reaching(node) if one.kind in ("assign", "parameter")]
        parts = [(one.node if one.kind == "parameter" else one.value, (*one.path, *path)) for one in bound]
    else:
        is_made = isinstance(node, (ast.expr, ast.arg)) and not isinstance(node, ast.Constant)
        return {(node, path)} if is_made else set()
    return set().union(*(_made_as(method, *one, depth - 1) for one in parts if depth))


def _meet(several: set[_Made], others: set[_Made]) -> bool:
    """Whether one of some things is one of others, or a part of it."""
    pairs = ((a, b) for made, a in several for other, b in others if made is other)
    return any(a[: len(b)] == b[: len(a)] for a, b in pairs)


def _claimed(asked: Asked, cls: Class, method: Function, kept: Definition) -> Claimed:
    answers = until_refuted(_answers(cls, method, kept))
    return Claimed(kept.node, kept.key, answers, partial(_report, asked, cls, method, kept))


def _answers(cls: Class, method: Function, kept: Definition) -> Iterator[Answer]:
    made = _made_as(method, kept.value, kept.path)
    for call in method.flow.calls.get("mark_non_differentiable", ()):
        if any(_meet(made, _made_as(method, one)) for one in call.args):
            yield refuted(Question.GRAPH, "no gradients flow to it, so it has no node of the graph", call)
    clause = f"it is returned: its graph holds `{method.parameters[0].arg}`, which holds it"
    yield proven(Question.OUTLIVES, clause)
    for other, key in _elsewhere(cls, method, kept):
        if dropped := other.flow.definitions.get(key):
            clause = f"`{other.name}` lets go of it: only what nobody goes backward through stays"
            yield left_open(Question.OUTLIVES, clause, dropped[0].node)


def _elsewhere(cls: Class, method: Function, kept: Definition) -> list[tuple[Function, str]]:
    """The other methods of an operation, each with its own name for the attribute."""
    name = kept.key.partition(".")[2]
    others = (one for one in cls.methods.values() if one is not method and one.parameters)
    return [(one, f"{one.parameters[0].arg}.{name}") for one in others]


def _report(asked: Asked, cls: Class, method: Function, kept: Definition) -> Report:
    return Report(
        kept.node,
        f"`{kept.key}` keeps what `{cls.name}` returns, in a circle that only the garbage collector breaks",
        "what it returns holds its graph, the graph holds this attribute: `save_for_backward` makes no circle",
        _COST,
        repair=partial(_repair, asked, cls, method, kept),
    )


def _repair(asked: Asked, cls: Class, method: Function, kept: Definition) -> Repair | None:
    from gpulint.fix.nodes import expression, statement

    reads = [(one, use) for one, key in _elsewhere(cls, method, kept) for use in one.flow.uses.get(key, ())]
    saves = any("save_for_backward" in one.words for one in cls.methods.values())
    single = isinstance(kept.statement, ast.Assign) and len(kept.statement.targets) == 1
    named = isinstance(kept.value, ast.Name) and not method.flow.uses.get(kept.key)
    if saves or not (single and named) or any(one.name != "backward" for one, _ in reads):
        return None
    back = cls.methods.get("backward")
    if back is None or len(back.parameters) != 2 or back.node.args.vararg is not None:
        return None  # it may be several tensors
    ctx = method.parameters[0].arg
    saving = statement(f"{ctx}.save_for_backward({kept.value.id})")
    changes = (
        Replace(asked.node(kept.statement), saving),
        *(
            Replace(asked.node(use), expression(f"{one.parameters[0].arg}.saved_tensors[0]"))
            for one, use in reads
        ),
    )
    why = "torch then refuses a backward after a change in place, or through a graph that is freed"
    return Repair("unsafe", f"save it: `{ctx}.save_for_backward({kept.value.id})`", changes, why)
