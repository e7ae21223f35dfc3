from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any

from gpulint.analysis.asked import Asked
from gpulint.analysis.domain.values import Value
from gpulint.analysis.evaluate.consumers import consumers
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.evaluate.weights import trips
from gpulint.analysis.project.file import Function
from gpulint.analysis.queries.intended import beside_a_phase
from gpulint.analysis.queries.multiplicity import Repeats
from gpulint.analysis.queries.networks.behind import behind, gone_through, rounds, source_of
from gpulint.analysis.queries.networks.forwards import forward_of
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.queries.stores.on_device import devices, each_of
from gpulint.analysis.queries.waits import read_one_by_one, reads, waits_for
from gpulint.analysis.syntax.flow import Definition
from gpulint.analysis.syntax.nodes import COMPREHENSIONS, called_on, key_of, last_name
from gpulint.answers import Answer, Question, left_open, minor, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.rule import Claimed, Cost, RelatedNode, Report, Rule


class SyncPerElement(Rule):
    """
    ## What it does
    Finds loops inside a step that read a tensor of that step element by element: `.item()`, `float()`, `.cpu()` or
    `.tolist()` of one element at a time, also in a lambda that is called for each: `ids.sort(key=lambda i: scores[i].item())`.
    What one loop indexes and another one within it, `valid[i][j].item()`, is told with that doubt where nothing shows that it is a tensor.
    It also tells where Python itself asks an element for a number, or whether it holds: where it is tested (`if done[i]:`), compared in a
    test or as the key of a sort, bounds a slice or a `range`, says how large something is (`torch.zeros(n)`), picks an item
    (`words[i] for i in ids`, `counts[label, guess] += 1`), or is put into a text; and what a function of the program reads of each that it is given.
    So do masks that pick (`row[row > 0]`), `nonzero` and their like, whose result is as large as the values say, `torch.equal`, `max(x)` and `map(int, x)`,
    and `torch.tensor(values)` of each in a list of tensors there. One `.item()` a step is in order and not reported.
    And loops that read a number of each of a network's parameters: `for p in model.parameters(): total += p.grad.norm().item()`, or
    `any(not torch.isfinite(p.grad).all() for p in params)`. These are notes: as many waits as the network has parameters. Stack the numbers
    on the GPU and read them once, `torch.stack(torch._foreach_norm(grads)).norm().item()`; `torch.nn.utils.clip_grad_norm_` gives it too.
    A loop within another one of the step is a *warning*. Any other, of which the code seldom says how many rounds it has, is a *note*,
    as is what a network has made that nothing moves to a GPU. What nothing shows to be there has a doubt.

    ## Why is this bad
    Each read waits for the GPU and copies a few bytes on its own. The whole tensor takes one wait and one copy.

    ## What it costs
    A step with 64 `.item()` takes 2.19 ms, with one `.tolist()` 1.71 ms (8-layer MLP, NVIDIA H200, torch 2.11). A step of a network of
    150 parameters takes 20.80 ms where the norm of each gradient is read, 15.69 ms where they are stacked and read once, 12.66 ms without.
    A step that tests 64 values one by one, `if value > 0`, takes 5.07 ms, with one `.tolist()` 2.75 ms.

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
    runtime_claim = Claim("time", ("Tensor.item", "Tensor.tolist", "Tensor.cpu"))
    doubts = True
    triggers = ((b"torch", b"lightning"), (b"for ", b"lambda"))  # where a step runs it, another file may say

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function in (asked.file.body, *asked.file.functions):
            for found in _reads(asked, function):
                answers = until_refuted(_answers(asked, found))
                what = asked.source(found.tensor, 200)
                yield Claimed(found.at[0], what, answers, partial(_report, asked, found))


@dataclass(frozen=True, slots=True)
class _Reads:
    """Where (`at`) what is in something is read one by one, in the rounds of a loop, or of a lambda that is called for each: the elements of
    a tensor, or a network's parameters. `each` is what a round picks; None of the tensors of a list, which the loop has filled."""

    at: list[ast.expr]
    tensor: Any
    each: Any
    loop: Any
    frame: Frame
    unless: list[str]  # of each: what is not shown, and would make it none

    def is_of_network(self, evaluator: Evaluator) -> bool:
        """Whether they are the parameters of a network."""
        return self.each is not None and evaluator.value_of(self.each, self.frame).kind == "parameter"

    def is_as_of_tensor(self, evaluator: Evaluator) -> bool:
        """Whether something that nobody sees is read as only tensors are, by more than one index: `x[i][j].item()`, and not `float(x[i])`."""
        func: Any = getattr(self.at[0], "func", None)
        row = evaluator.table.own("tensor", last_name(func))
        index = getattr(self.each, "slice", None)
        many = isinstance(index, ast.Tuple) or (index is not None and isinstance(self.tensor, ast.Subscript))
        is_unseen = self.value(evaluator, self.frame).kind == "unknown"
        return is_unseen and many and row is not None and waits_for(row)

    def value(self, evaluator: Evaluator, frame: Frame) -> Value:
        """What is read of: one tensor, or any of several."""
        value = evaluator.value_of(self.each if self.is_of_network(evaluator) else self.tensor, frame)
        return value if self.each is not None else each_of(evaluator, value)


def _reads(asked: Asked, function: Function) -> Iterator[_Reads]:
    evaluator, frame = asked.evaluator, asked.root(function)
    found: dict[tuple[Any, str], _Reads] = {}
    waits = reads(evaluator, frame, lambda node: rounds(evaluator, node, frame))
    for read in sorted(waits, key=lambda one: (one.at.lineno, one.at.col_offset)):
        for loop in rounds(evaluator, read.at, frame):
            picked = _picked(asked, read.of, frame, loop)
            if picked is not None:
                tensor, each = picked
                value = evaluator.value_of(tensor, frame)
                is_made = not any(isinstance(one, ast.Yield) for one, _ in value.origins)
                of_tensors = value.kind == "list" and is_made and each_of(evaluator, value).kind == "tensor"
                new = _Reads([], tensor, None if of_tensors else each, loop, frame, [])
                same = found.setdefault((loop, ast.unparse(tensor)), new)
                same.at.append(read.at)
                same.unless.append(read.unless)
                break
    yield from found.values()
    for call, given in read_one_by_one(evaluator, frame):
        is_list = evaluator.value_of(given, frame).kind == "list"
        loop = next(_filling(asked, given, frame), call) if is_list else call
        yield _Reads([call], given, None if is_list else given, loop, frame, [""])


def _filling(asked: Asked, node: Any, frame: Frame) -> Iterator[Any]:
    """What fills a list in its rounds."""
    flow = frame.flow
    nodes = [*ast.walk(node), *(one for one, _ in asked.evaluator.value_of(node, frame).origins)]
    yield from (one for one in nodes if isinstance(one, (ast.Lambda, *COMPREHENSIONS)))
    put = flow.calls_on((key_of(node),), "append", "insert")
    yield from (flow.loops(one)[0] for one in put if flow.loops(one))


def _picked(asked: Asked, node: Any, frame: Frame, loop: Any, depth: int = 6) -> tuple[Any, Any] | None:
    """The tensor, or the parameters, that an expression is, or is made of, one of: what a round of the loop picks, and what it picks it from."""
    flow, evaluator = frame.flow, asked.evaluator
    parts: list[Any] = []
    if not depth:
        return None
    if isinstance(node, ast.Attribute):
        is_of_tensor = evaluator.table.own("tensor.attributes", node.attr) is not None
        parts += [node.value] if is_of_tensor else []
    elif isinstance(node, ast.Name):
        is_count = evaluator.value_of(node, frame).kind == "number"  # `for c in range(n)`
        for one in flow.reaching(node) if not is_count else ():
            if _is_picked(asked, one, loop, frame):
                source, path = source_of(one, flow)
                if path and evaluator.value_of(node, frame).kind != "parameter":  # beside its name
                    return None
                return source or gone_through(evaluator, loop, frame)[0], node
            if one.kind == "assign" and not one.path and loop in rounds(evaluator, one.value, frame):
                parts.append(one.value)
    elif isinstance(node, ast.Subscript):
        cut = any(isinstance(one, ast.Slice) and (one.lower or one.upper) for one in ast.walk(node.slice))
        if _says(asked, node.slice, node.value, loop, frame, cut):
            return node.value, node
        parts.append(node.value)
    elif isinstance(node, (ast.BinOp, ast.Compare)):
        parts += ast.iter_child_nodes(node)
    elif isinstance(node, ast.Call):
        row = evaluator.row_of(node, frame)
        if row is not None and node.args:
            parts.append(node.args[0])
        elif isinstance(node.func, ast.Attribute):
            parts.append(node.func.value)
            row = evaluator.table.own("tensor", node.func.attr)
            if row is not None and row.does == "takes part":
                if any(_says(asked, one, parts[0], loop, frame, True) for one in node.args):
                    return parts[0], node
    found = (_picked(asked, one, frame, loop, depth - 1) for one in parts)
    picked = next((one for one in found if one is not None), None)
    if picked is None and isinstance(node, ast.Compare):  # `labels == c`
        left, other = node.left, node.comparators[0]
        is_tensor = evaluator.value_of(left, frame).kind == "tensor"
        if is_tensor and _stands(left, loop, frame) and _says(asked, other, left, loop, frame):
            return left, node
    return picked


def _says(asked: Asked, node: Any, base: Any, loop: Any, frame: Frame, cut: bool = False) -> bool:
    """Whether an expression says what a round takes of what stands before the loop: it has in it what the round is about (which is more than one of
    it where that is `cut` out), or what is counted in the rounds."""
    bound = frame.flow.bound_in(node)
    if not cut and any(_is_picked(asked, one, loop, frame) for one in bound):
        return True
    counted = any(one.kind == "augmented" and _is_in(loop, one, frame) for one in bound)
    return counted and _stands(base, loop, frame)


def _stands(node: Any, loop: Any, frame: Frame) -> bool:
    """Whether an expression is the same in each round of a loop."""
    return not any(_is_in(loop, one, frame) for one in frame.flow.bound_in(node))


def _is_in(loop: Any, definition: Definition, frame: Frame) -> bool:
    statement = definition.statement
    return statement is loop or (statement in frame.flow.blocks and loop in frame.flow.loops(statement))


def _is_picked(asked: Asked, definition: Definition, loop: Any, frame: Frame) -> bool:
    """Whether a definition is what a round is about."""
    if definition.kind == "parameter":
        return frame.flow.parents[definition.node] is loop
    return definition.kind == "loop" and definition.value in gone_through(asked.evaluator, loop, frame)


def _answers(asked: Asked, found: _Reads) -> Iterator[Answer]:
    evaluator, frame, loop, tensor = asked.evaluator, found.frame, found.loop, found.tensor
    value = found.value(evaluator, frame)
    whole = evaluator.value_of(found.at[0], frame)
    takes_all = (
        whole.kind in ("tensor", "array", "list") and whole.size != "scalar" and whole.device == "host"
    )
    in_rounds = found.each is None and loop in rounds(evaluator, found.at[0], frame)
    is_of_network = found.is_of_network(evaluator)
    if takes_all and (in_rounds or is_of_network):
        yield refuted(Question.READS, "all that is in each goes to the host, which takes the time")
    elif is_of_network or value.is_moved:
        pass  # nothing else that is moved has numbers: where anything may be asked for that, `unless` says so
    elif not _is_one(asked, found) or (value.kind != "tensor" and not found.is_as_of_tensor(evaluator)):
        yield refuted(Question.TENSOR, f"nothing shows that `{ast.unparse(tensor)}` is one tensor")
    elif all(found.unless) and value.device != "cuda" and _is_field(evaluator, tensor):
        yield refuted(Question.TENSOR, f"nothing shows that `{ast.unparse(tensor)}` is a tensor")
    elif value.kind != "tensor":
        yield left_open(Question.TENSOR, f"whether `{ast.unparse(tensor)}` is one tensor is not shown")
    if all(found.unless):
        yield left_open(Question.READS, found.unless[0])
    yield from (left_open(Question.TENSOR, one.clause, one.at) for one in value.assumptions)
    places = set(devices(evaluator, found.each if is_of_network else tensor, frame))
    if places == {"host"}:
        yield refuted(Question.DEVICE, f"`{ast.unparse(tensor)}` is on the host")
    elif "cuda" not in places or ("host" in places and _is_one_of_several(evaluator, frame)):
        of_network = is_of_network or behind(evaluator, tensor, frame)  # most are on a GPU
        says = minor if of_network else left_open
        yield says(Question.DEVICE, f"whether `{ast.unparse(tensor)}` is on a GPU is not shown")
    multiplicity = asked.multiplicity
    ways = multiplicity.of(found.at[0], frame)
    steps = (one for one in asked.steps.of(frame.function) if loop in one.loops)
    if any(not multiplicity.is_rare(one.node, loop, frame) for one in steps):
        yield refuted(Question.REPEATS, "each round is a step of its own", loop)
    fills = list(_filling(asked, tensor, frame)) if found.each is None else []
    few = any(multiplicity.trips(one, frame) is not None for one in (loop, *fills))
    few = few or any(asked.steps.is_over_parts(one, frame) for one in fills)
    if few or multiplicity.is_once(found.at[0], loop, frame):
        yield refuted(Question.REPEATS, "it reads no more than a few elements", loop)
    rare = "step" if found.is_of_network(evaluator) else "every nth"
    if not any(one.rate in ("step", rare) for one in ways):
        if not any(one.rate == "?" and one.loop is None for one in ways):
            yield refuted(Question.REPEATS, "no loop of steps runs it")
        yield left_open(Question.REPEATS, "that a loop of steps runs it is not shown")
    tests = [test for one in ways for test, _ in one.flags if test in frame.flow.parents]
    own = [test for test in tests if loop not in frame.flow.loops(test)]
    of_names = [one for one in tests if any(map(partial(_is_text, asked, frame), ast.walk(one)))]
    if found.is_of_network(evaluator) and (own or of_names):
        clause = (
            "a condition decides whether a step reads it" if own else "a name says which of them are read"
        )
        yield left_open(Question.REPEATS, clause, (own or of_names)[0])
    if (phase := beside_a_phase(evaluator, asked.steps, loop, frame)) is not None:
        yield refuted(Question.REPEATS, "a whole phase stands beside it, which costs more", phase)
    yield proven(Question.REPEATS, "each element is read by itself, in every step", loop)
    yield _amount(asked, found, [one for one in ways if one.rate == "step"])
    yield from reached(evaluator, frame.function)


def _amount(asked: Asked, found: _Reads, ways: list[Repeats]) -> Answer:
    """How many elements there are: many where the loop is in another within the step; else nothing shows more than a few."""
    frame, loop = found.frame, found.loop
    if found.is_of_network(asked.evaluator):
        return minor(Question.SIZE, "as many as the network has parameters", loop)
    count = trips(asked.evaluator, loop, frame)
    if count is not None:
        return minor(Question.SIZE, f"the loop has {count:,} rounds", loop)
    if any(_is_within(asked, found, way) for way in ways or [Repeats("?", None, frame)]):
        return proven(Question.SIZE, "the loop is in another one within the step", loop)
    return minor(Question.SIZE, "one wait for each round: how many there are, the code does not say", loop)


def _is_within(asked: Asked, found: _Reads, way: Repeats) -> bool:
    """Whether the loop is in another one within the step."""
    first = found.at[0] if found.each is not None else found.loop
    sites = ((first, found.frame), *way.calls)
    around = [(one, where) for node, where in sites for one in where.flow.loops(node)]
    inner = takewhile(lambda one: one[0] is not way.loop, around)
    return any(one is not found.loop and asked.multiplicity.trips(one, where) is None for one, where in inner)


def _is_text(asked: Asked, frame: Frame, node: Any) -> bool:
    return isinstance(node, ast.Name) and asked.evaluator.value_of(node, frame).kind == "text"


def _is_field(evaluator: Evaluator, node: Any) -> bool:
    """Whether an expression is a field of something by a name that says nothing of it."""
    kinds = ("tensor.attributes", "module.outputs")
    return isinstance(node, ast.Attribute) and not any(evaluator.table.own(one, node.attr) for one in kinds)


def _is_one_of_several(evaluator: Evaluator, frame: Frame) -> bool:
    """Whether a function is a method of one of several classes, of which a caller has one: what that gives it, it may give to another's."""
    on = ((called_on(site.call), site.frame) for site in evaluator.callers(frame.function))
    return any(one is not None and evaluator.value_of(one, where).others for one, where in on)


def _is_one(asked: Asked, found: _Reads) -> bool:
    """Whether what is read is one tensor, or each of a list of them: an operation gives one; of what a network gives others have to say so,
    beside the loop."""
    frame, node = found.frame, found.frame.flow.unaliased(found.tensor)
    if found.each is None:
        return True
    if not isinstance(node, ast.Call) or forward_of(asked.evaluator, node, frame) is None:
        called = last_name(node.func) if isinstance(node, ast.Call) else ""
        return asked.evaluator.table.own("dict", called) is None  # `losses.values()`
    return any(
        use.row is not None and use.row.gives != "none" and found.loop not in use.frame.flow.loops(use.node)
        for use in consumers(asked.evaluator, node, frame, "object")
    )


def _report(asked: Asked, found: _Reads) -> Report:
    first, *others = found.at
    what = "element of "
    remedy = "take all of them to the host at once, before the loop: `.tolist()` or `.cpu()` of one tensor, `torch.stack` of several"
    measured = (
        "2.19 ms a step with 64 `.item()`, 1.71 ms with one `.tolist()`, for an 8-layer MLP; H200, torch 2.11"
    )
    if found.each is None:
        remedy = "`torch.stack` leaves them on the GPU"
    elif found.is_of_network(asked.evaluator):
        what, remedy = "of ", "`torch.stack` what is worked out of each on the GPU, and read that once"
        measured = "20.80 ms a step with one `.item()` for each of 150 parameters, 15.69 ms with one for all; H200, torch 2.11"
    return Report(
        first,
        f"`{asked.source(first)}` waits for the GPU once for each {what}`{asked.source(found.tensor)}`",
        remedy,
        Cost("a wait for the GPU for each of them, in every step", measured),
        related=tuple(RelatedNode("and so does this", other) for other in others[:3]),
    )
