from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from gpulint.analysis.evaluate.consumers import consumers
from gpulint.analysis.queries.intended import beside_a_phase
from gpulint.analysis.queries.networks.forwards import forward_of
from gpulint.analysis.queries.networks.placed import placed
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.queries.waits import read_by
from gpulint.analysis.syntax.nodes import LOOPS, last_name
from gpulint.answers import Answer, Question, left_open, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Claimed, Cost, RelatedNode, Report, Rule

if TYPE_CHECKING:
    from gpulint.analysis.asked import Asked
    from gpulint.analysis.evaluate.frames import Frame
    from gpulint.analysis.project.file import Function


class SyncPerElement(Rule):
    """
    ## What it does
    Finds loops inside a step that read a tensor of that step element by element: `.item()`, `float()`, `.cpu()` or
    `.tolist()` of one element at a time. One `.item()` a step is in order and not reported. How many elements
    there are, the code seldom says: it is told with that doubt.

    ## Why is this bad
    Each read waits for the GPU and copies a few bytes on its own. The whole tensor takes one wait and one copy.

    ## What it costs
    A step with 64 `.item()` takes 2.19 ms, with one `.tolist()` 1.71 ms (8-layer MLP, NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Linear(8, 1).cuda().eval()


    @torch.no_grad()
    def scores(loader):
        rows = []
        for inputs, names in loader:
            predicted = model(inputs.cuda()).squeeze(1)
            for index, name in enumerate(names):
                rows.append((name, predicted[index].item()))
        return rows
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    model = nn.Linear(8, 1).cuda().eval()


    @torch.no_grad()
    def scores(loader):
        rows = []
        for inputs, names in loader:
            predicted = model(inputs.cuda()).squeeze(1).tolist()
            for index, name in enumerate(names):
                rows.append((name, predicted[index]))
        return rows
    ```

    ## Fix safety
    There is no automatic fix: what else uses the tensor decides whether a list can take its place.
    """

    code = "GPU504"
    name = "sync-per-element"
    severity = Severity.WARNING
    runtime_claim = Claim("time", ("Tensor.item", "Tensor.tolist", "Tensor.cpu"))
    doubts = True
    triggers = (
        (b"torch", b"lightning"),
        (b".item()", b"float(", b"int(", b".cpu()", b".tolist()"),
        (b" in range(", b" in enumerate(", b" in zip(", b".detach():", b" for "),
        (b".backward(", b".eval()", b"no_grad", b"inference_mode", b"training_step"),
        (b"cuda", b"device", b"accelerator", b"fabric", b"gpu"),
    )

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function in (asked.file.body, *asked.file.functions):
            for found in _reads(asked, function):
                answers = until_refuted(_answers(asked, found))
                what = asked.source(found.tensor, 200)
                yield Claimed(found.calls[0], what, answers, partial(_report, asked, found))


@dataclass(frozen=True, slots=True)
class _Reads:
    """The `calls` that read the elements of a tensor one by one, in the rounds of a loop."""

    calls: list[ast.Call]
    tensor: Any
    loop: Any
    frame: Frame


def _reads(asked: Asked, function: Function) -> Iterator[_Reads]:
    frame, flow = asked.root(function), function.flow
    found: dict[tuple[Any, str], _Reads] = {}
    rows = [*asked.evaluator.table.knows("tensor").items(), *asked.evaluator.table.knows("builtins").items()]
    names = {name for name, row in rows if row.reads or row.device in ("host", "argument")}
    calls = [one for name in names for one in flow.calls.get(name, ()) if flow.loops(one)]
    for call in sorted(calls, key=lambda one: (one.lineno, one.col_offset)):
        read = read_by(asked.evaluator, call, frame)
        for loop in flow.loops(call) if read is not None else ():
            tensor = _whole(asked, read, frame, loop)
            if tensor is not None:
                key = (loop, ast.unparse(tensor))
                found.setdefault(key, _Reads([], tensor, loop, frame)).calls.append(call)
                break
    yield from found.values()


def _whole(asked: Asked, node: Any, frame: Frame, loop: Any, depth: int = 6) -> Any:
    """The tensor that an expression is, or is made of, an element of: one that a round of the loop picks."""
    flow, evaluator = frame.flow, asked.evaluator
    if not depth:
        return None
    if isinstance(node, ast.Name):
        for one in flow.reaching(node):
            if one.kind == "loop" and one.value in _iterated(loop):
                return _element_of(one.value, one.path)
            if one.kind == "assign" and not one.path and loop in flow.loops(one.value):
                return _whole(asked, one.value, frame, loop, depth - 1)
    elif isinstance(node, ast.Subscript):
        names = [one for one in ast.walk(node.slice) if isinstance(one, ast.Name)]
        cut = any(isinstance(one, ast.Slice) and (one.lower or one.upper) for one in ast.walk(node.slice))
        if not cut and any(
            one.kind == "loop" and one.value in _iterated(loop)
            for name in names
            for one in flow.reaching(name)
        ):
            return node.value
        return _whole(asked, node.value, frame, loop, depth - 1)
    elif isinstance(node, ast.Call):
        if evaluator.row_of(node, frame) is not None and node.args:
            return _whole(asked, node.args[0], frame, loop, depth - 1)
        if isinstance(node.func, ast.Attribute):
            return _whole(asked, node.func.value, frame, loop, depth - 1)
    return None


def _iterated(loop: Any) -> list[Any]:
    """What a loop, or a comprehension, runs through."""
    return [loop.iter] if hasattr(loop, "iter") else [one.iter for one in getattr(loop, "generators", ())]


def _element_of(iterated: Any, path: tuple[Any, ...]) -> Any:
    """Of what the name is given elements, among all that a loop runs through: `for i, (x, y) in enumerate(zip(xs, ys))`."""
    while isinstance(iterated, ast.Call) and path and iterated.args:
        name, position = last_name(iterated.func), path[0]
        if name == "enumerate" and position == 1:
            iterated, path = iterated.args[0], path[1:]
        elif name == "zip" and position in range(len(iterated.args)):
            iterated, path = iterated.args[position], path[1:]
        else:
            break
    return iterated if not path else None


def _answers(asked: Asked, found: _Reads) -> Iterator[Answer]:
    evaluator, frame, loop, tensor = asked.evaluator, found.frame, found.loop, found.tensor
    value = evaluator.value_of(tensor, frame)
    if value.kind != "tensor" or not _is_one(asked, found):
        yield refuted(Question.TENSOR, f"nothing shows that `{ast.unparse(tensor)}` is one tensor")
    runs = [forward_of(evaluator, *one) for one in value.origins if isinstance(one[0], ast.Call)]
    devices = {value.device, *(placed(evaluator, one.expression, one.frame).device for one in runs if one)}
    if "host" in devices:
        yield refuted(Question.DEVICE, f"`{ast.unparse(tensor)}` is on the host")
    elif "cuda" not in devices:
        yield left_open(Question.DEVICE, f"whether `{ast.unparse(tensor)}` is on a GPU is not shown")
    if isinstance(loop, LOOPS) and any(loop in one.loops for one in asked.steps.of(frame.function)):
        yield refuted(Question.REPEATS, "each round is a step of its own", loop)
    ways = [one for one in asked.multiplicity.of(found.calls[0], frame) if one.rate in ("step", "every nth")]
    if not ways or asked.multiplicity.trips(loop, frame) is not None:
        yield refuted(Question.REPEATS, "no loop of steps is seen to run it so often")
    if (phase := beside_a_phase(evaluator, asked.steps, loop, frame)) is not None:
        yield refuted(Question.REPEATS, "a whole phase stands beside it, which costs more", phase)
    yield proven(Question.REPEATS, "each element is read by itself, in every step", loop)
    yield left_open(Question.SIZE, "how many elements there are, the code does not say")
    yield from reached(evaluator, frame.function, found.calls[0])


def _is_one(asked: Asked, found: _Reads) -> bool:
    """Whether what is read is one tensor: an operation gives one; of what a network gives others have to say so, beside the loop."""
    frame, node = found.frame, found.tensor
    for one in frame.flow.reaching(node) if isinstance(node, ast.Name) else ():
        node = one.value if one.kind == "assign" and not one.path else node
    if not isinstance(node, ast.Call) or forward_of(asked.evaluator, node, frame) is None:
        return True
    return any(
        use.row is not None and use.row.gives != "none" and found.loop not in use.frame.flow.loops(use.node)
        for use in consumers(asked.evaluator, node, frame, "object")
    )


def _report(asked: Asked, found: _Reads) -> Report:
    first, *others = found.calls
    return Report(
        first,
        f"`{asked.source(first)}` waits for the GPU once for each element of `{asked.source(found.tensor)}`",
        "take the whole tensor to the host before the loop: `.tolist()`, or `.cpu()`",
        Cost(
            "a wait for the GPU for each element, in every step",
            "2.19 ms a step with 64 `.item()`, 1.71 ms with one `.tolist()`, for an 8-layer MLP; H200, torch 2.11",
        ),
        subject=asked.source(found.tensor, 200),
        related=tuple(RelatedNode("and so does this", other) for other in others[:3]),
    )
