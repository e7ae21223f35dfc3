from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from gpulint.analysis.asked import Asked
from gpulint.analysis.domain.values import Device
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Class
from gpulint.analysis.queries.effects import effects_before, place_of
from gpulint.analysis.queries.loads import weights_matter
from gpulint.analysis.queries.networks.placed import placed
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.queries.steps import trains_in
from gpulint.analysis.syntax.nodes import arguments, called_on, key_of, keyword
from gpulint.answers import Answer, Question, Verdict, left_open, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.rule import Claimed, Cost, RelatedNode, Remove, Repair, Replace, Report, Rule

_CHANGES: Final = frozenset({"moves", "narrows"})


class CastAfterMove(Rule):
    """
    ## What it does
    Finds networks that are moved to the GPU in float32 and cast to a narrower type there: `net.cuda().half()`,
    `net.to(device).to(torch.bfloat16)`, also in two statements with nothing between them that computes with the network.

    It is told without a doubt where the network is seen to be large and to be made in float32. With a doubt it also tells of
    networks of unknown size, of those that transformers loads without a `dtype`, of casts under a condition, and of
    programs that train: what those take later may be more.

    ## Why is this bad
    All wide weights are on the GPU before the first is cast, so the program needs more than twice the memory that the network
    takes afterwards; and what they took stays reserved. A network that fits in half precision runs out of memory while
    it is loaded. Cast first, or with `.to(device, dtype)`, each tensor arrives in its narrow type.

    ## What it costs
    A language model of 173 MiB in float32: peak 205 MiB and 258 MiB reserved afterwards where it is moved and then cast, to
    float16 as to bfloat16; 88 MiB and 140 MiB where it is cast first or by the call that moves it, in which time it is there
    a little sooner as well: 28.3 instead of 32.0 ms. The weights are the same, bit for bit, also where they round, overflow
    or underflow (NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import torch
    from torchvision.models import vit_l_16

    model = vit_l_16().cuda().half()

    @torch.no_grad()
    def predict(images):
        return model(images.cuda().half()).argmax(-1).cpu()
    ```

    ## Use instead
    ```python
    import torch
    from torchvision.models import vit_l_16

    model = vit_l_16().half().cuda()

    @torch.no_grad()
    def predict(images):
        return model(images.cuda().half()).argmax(-1).cpu()
    ```

    ## Fix safety
    Safe where the two calls follow on each other and the network's class has no `to`, `cuda` or `half` of its own: the host
    rounds as the GPU does, bit for bit. Unsafe where the class is not seen, and where something stands between the two.
    Nothing is offered where the cast stands under a condition.
    """

    code = "GPU407"
    name = "cast-after-move"
    runtime_claim = Claim("transient", device_only=True)
    triggers = ((b"half", b"float16", b"bfloat16", b"float8"), (b"cuda", b".to("), (b"torch",))
    doubts = True

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function in asked.file.parts:
            for cast in function.flow.every_call:
                late = _late(asked, cast, asked.root(function))
                if late is not None:
                    answers = until_refuted(_answers(asked, late))
                    yield Claimed(cast, late.name, answers, partial(_report, asked, late))


@dataclass(frozen=True, slots=True)
class _Late:
    """A cast of a network behind its move to a device; `between` are the methods that are called of it meanwhile."""

    cast: Any
    move: Any
    frame: Frame
    name: str
    device: Device
    between: tuple[str, ...]

    @property
    def is_conditional(self) -> bool:
        around = self.frame.flow.around
        return list(around(self.cast)) != list(around(self.move))


def _late(asked: Asked, cast: Any, frame: Frame) -> _Late | None:
    evaluator, flow = asked.evaluator, frame.flow
    if not _narrows(asked, cast, frame) or evaluator.is_dead(cast, frame):
        return None
    base = cast.func.value
    last = next(effects_before(evaluator, place_of(evaluator, base, frame), _CHANGES), None)
    where = placed(evaluator, base, frame)
    if last is None or where.at is not last.node or len(arguments(last.node)) > 1:
        return None
    move = last.node
    first, end = flow.order[flow.statement_of(move)], flow.order[flow.statement_of(cast)]
    meanwhile = (one for one in flow.every_call if first < flow.order.get(flow.statement_of(one), 0) < end)
    own = (one for one in meanwhile if any(key_of(part) == key_of(base) for part in ast.walk(one)))
    between = tuple(getattr(one.func, "attr", "") for one in own)
    rows = evaluator.table.knows("module")
    plain = all(one in rows and rows[one].gives in ("receiver", "none") for one in between)
    bound = flow.statement_of(cast)
    target = key_of(bound.targets[0]) if isinstance(bound, ast.Assign) else None
    name = key_of(base) or key_of(move.func.value) or target
    always = set(flow.around(move)) <= set(flow.around(cast))
    return _Late(cast, move, frame, name, where.device, between) if name and plain and always else None


def _narrows(asked: Asked, call: Any, frame: Frame) -> bool:
    """`net.half()`, `net.to(torch.bfloat16)`; not `net.to(device, torch.half)`, which casts on the way."""
    table = asked.evaluator.table
    row = table.own("module", call.func.attr) if called_on(call) is not None else None
    given = arguments(call)
    if row is None or row.does not in _CHANGES or len(given) > 1:
        return False
    named = str(asked.evaluator.value_of(given[0], frame).ref).partition("torch.")[2] if given else ""
    narrow = table.own("narrow-types", named) is not None if given else row.does == "narrows"
    return narrow and asked.evaluator.value_of(call.func.value, frame).kind == "module"


def _answers(asked: Asked, late: _Late) -> Iterator[Answer]:
    evaluator, cast, frame = asked.evaluator, late.cast, late.frame
    network = evaluator.value_of(cast.func.value, frame)
    if late.device == "host":
        yield refuted(Question.DEVICE, "it is moved to the host", late.move)
    elif late.device == "cuda":
        yield proven(Question.DEVICE, "it is moved to a GPU", late.move)
    else:
        yield left_open(Question.DEVICE, "whether it is moved to a GPU is not shown", late.move)
    for made, where in network.calls:
        yield from _was_wide(asked, made, where)
    yield weights_matter(evaluator, network, "the network", Verdict.REFUTED)
    if trains_in(asked.steps, evaluator, asked.file):
        why = "what the training takes later may be more than the network takes here"
        yield left_open(Question.TRAINED, why)
    if late.is_conditional:
        yield left_open(Question.REACHED, "the cast stands under a condition", frame.flow.statement_of(cast))
    yield from reached(evaluator, frame.function)


def _was_wide(asked: Asked, made: ast.Call, frame: Frame) -> Iterator[Answer]:
    """Whether the weights are float32 when they are moved, by what makes the network."""
    full = str(asked.evaluator.value_of(made.func, frame).ref)
    if any(keyword(made, one) is not None for one in asked.evaluator.table.knows("weight-types")):
        yield refuted(Question.SIZE, "its loader is told the type of the weights", made)
    elif any(one.arg is None for one in made.keywords) and full.endswith("from_pretrained"):
        yield left_open(Question.SIZE, "what else the loader is given may be a type", made)
    elif full.startswith("transformers."):
        yield left_open(Question.SIZE, "transformers from version 5 on loads the type that was saved", made)
    elif full.endswith(".load"):
        yield left_open(Question.SIZE, "of which type the loaded network is, the file says", made)
    else:
        yield proven(Question.SIZE, "what makes it is told of no narrower type")


def _report(asked: Asked, late: _Late) -> Report:
    statement_of = late.frame.flow.statement_of
    chain = statement_of(late.cast) is statement_of(late.move)
    return Report(
        late.cast,
        f"`{late.name}` is cast where it has been moved to: the GPU has all its wide weights first",
        "cast on the host, or by the call that moves, `.to(device, dtype)`, each tensor arrives in its narrow type",
        Cost(
            "all weights in their wide type on the GPU, beside the first of the narrow ones",
            "205 MiB at the peak, 88 MiB cast first, for a network of 173 MiB in float32; H200, torch 2.11",
        ),
        related=() if chain else (RelatedNode("it is moved here", late.move),),
        repair=lambda: _repair(asked, late, chain),
    )


def _repair(asked: Asked, late: _Late, chain: bool) -> Repair | None:
    """The cast in front of the move."""
    statement = late.frame.flow.statement_of(late.cast)
    targets = [key_of(one) for one in getattr(statement, "targets", ())]
    alone = isinstance(statement, (ast.Expr, ast.Assign)) and statement.value is late.cast
    if late.is_conditional or not (chain or (alone and targets in ([], [key_of(late.cast.func.value)]))):
        return None
    cast: Any = asked.node(late.cast)
    moved: Any = asked.node(late.move)
    first = _on(moved, _on(cast, moved.func.value))
    changes = (Replace(moved, first), Remove(asked.node(statement)))
    if chain:
        changes = (Replace(cast, cast.func.value.deep_replace(moved, first)),)  # type: ignore[assignment]
    return Repair.unless(_why_unsafe(asked, late), "cast it before it is moved", changes)


def _on(call: Any, base: Any) -> Any:
    """The same method of another object."""
    return call.with_changes(func=call.func.with_changes(value=base))


def _why_unsafe(asked: Asked, late: _Late) -> str:
    if set(late.between) - {"eval", "train", "requires_grad_"}:
        return "what is done to the network between the two is done to narrow weights then"
    network = asked.evaluator.value_of(late.cast.func.value, late.frame)
    if isinstance(network.ref, Class):
        own = next((one for one in _METHODS if asked.evaluator.method(network.ref, one)), None)
        return f"`{network.ref.name}` has a `{own}` of its own" if own is not None else ""
    if asked.evaluator.calling.made_by(network) is not None:
        return ""
    return "a `to` or `half` of the network's own class may do more"


_METHODS: Final = ("to", "cuda", "half", "bfloat16", "_apply")
