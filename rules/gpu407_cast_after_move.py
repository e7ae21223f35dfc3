from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from gpulint.analysis.asked import Asked
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Class
from gpulint.analysis.queries.loads import weights_matter
from gpulint.analysis.queries.networks.placed import Placed, placed
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.queries.steps import trains_in
from gpulint.analysis.syntax.nodes import arguments, called_on, key_of, keyword
from gpulint.answers import Answer, Question, Verdict, left_open, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.rule import Change, Claimed, Cost, RelatedNode, Remove, Repair, Replace, Report, Rule

_KEEPS: Final = frozenset({"eval", "train", "requires_grad_"})
_OWN: Final = ("to", "cuda", "half", "bfloat16", "_apply")  # methods of a class that may do more


class CastAfterMove(Rule):
    """
    ## What it does
    Finds networks that are moved to the GPU in float32 and cast to a narrower type there: `net.cuda().half()`,
    `net.to(device).to(torch.bfloat16)`, also in two statements with nothing between them that computes with the network.

    It is told without a doubt where the network is seen to be large and to be made in float32. With a doubt it also tells of
    networks of unknown size, of those that are loaded without a `dtype`, of casts under a condition, and of programs that train: what
    those take later may be more.

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
    The fix casts before it moves. Safe where the network's class is seen to have no `to`, `cuda` or `half` of its own: the host rounds
    as the GPU does, bit for bit. Unsafe where the class is not seen, or has one.
    Nothing is offered where the cast stands under a condition.
    """

    code = "GPU407"
    name = "cast-after-move"
    runtime_claim = Claim("transient", device_only=True)
    triggers = ((b"half", b"float16", b"bfloat16", b"float8"), (b"cuda", b".to("), (b"torch",))
    doubts = True

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function in asked.file.parts:
            frame = asked.root(function)
            casts: list[Any] = [one for one in function.flow.every_call if _narrows(asked, one, frame)]
            for cast in casts:
                where = placed(asked.evaluator, cast.func.value, frame)
                if name := _name(cast, where.at, frame):
                    answers = until_refuted(_answers(asked, cast, where, frame))
                    yield Claimed(cast, name, answers, partial(_report, asked, cast, where.at, name, frame))


def _narrows(asked: Asked, call: Any, frame: Frame) -> bool:
    """`net.half()`, `net.to(torch.bfloat16)`; not `net.to(device, torch.half)`, which casts on the way."""
    table = asked.evaluator.table
    row = table.own("module", call.func.attr) if called_on(call) is not None else None
    given = arguments(call)
    if row is None or len(given) > 1:
        return False
    named = str(asked.evaluator.value_of(given[0], frame).ref).partition("torch.")[2] if given else ""
    narrow = table.own("narrow-types", named) is not None if given else row.does == "narrows"
    return narrow and asked.evaluator.value_of(call.func.value, frame).kind == "module"


def _name(cast: Any, move: Any, frame: Frame) -> str:
    """What a network goes by that is moved whenever it is cast, and that nothing computes with in between; empty where it is not so."""
    flow, base = frame.flow, cast.func.value
    first, end = flow.statement_of(move), flow.statement_of(cast)
    if called_on(move) is None or len(arguments(move)) > 1 or first not in flow.order:
        return ""
    between = range(flow.order[first] + 1, flow.order[end])
    uses = flow.uses.get(key_of(base) or "", ())
    inside = [flow.parents.get(one) for one in uses if flow.order[flow.statement_of(one)] in between]
    target: Any = getattr(end, "targets", [base])[0]
    name = key_of(base) or key_of(move.func.value) or key_of(target) or ""
    kept = all(getattr(one, "attr", "") in _KEEPS for one in inside)
    return name if kept and flow.blocks[first] in flow.around(end) else ""


def _answers(asked: Asked, cast: Any, where: Placed, frame: Frame) -> Iterator[Answer]:
    evaluator, network = asked.evaluator, asked.evaluator.value_of(cast.func.value, frame)
    if where.device != "cuda":
        verdict = refuted if where.device == "host" else left_open
        yield verdict(Question.DEVICE, "nothing shows that it is moved to a GPU")
    for made, maker in network.calls:
        full = str(evaluator.value_of(made.func, maker).ref)
        if any(keyword(made, one) is not None for one in evaluator.table.knows("weight-types")):
            yield refuted(Question.SIZE, "its loader is told the type of the weights", made)
        elif full.startswith("transformers.") or full.endswith((".load", "from_pretrained")):
            yield left_open(Question.SIZE, "of which type the loaded network is, the code does not say", made)
    yield weights_matter(evaluator, network, "the network", Verdict.REFUTED)
    if trains_in(asked.steps, evaluator, asked.file):
        yield left_open(Question.TRAINED, "what the training takes later may be more")
    if _is_conditional(cast, where.at, frame):
        yield left_open(Question.REACHED, "the cast stands under a condition", frame.flow.statement_of(cast))
    yield from reached(evaluator, frame.function)


def _is_conditional(cast: Any, move: Any, frame: Frame) -> bool:
    return list(frame.flow.around(cast)) != list(frame.flow.around(move))


def _report(asked: Asked, cast: Any, move: Any, name: str, frame: Frame) -> Report:
    return Report(
        cast,
        f"`{name}` is cast where it has been moved to: the GPU has all its wide weights first",
        "cast on the host, or by the call that moves, `.to(device, dtype)`, each tensor arrives in its narrow type",
        Cost(
            "all weights in their wide type on the GPU, beside the first of the narrow ones",
            "205 MiB at the peak, 88 MiB cast first, for a network of 173 MiB in float32; H200, torch 2.11",
        ),
        related=(RelatedNode("it is moved here", move),),
        repair=partial(_repair, asked, cast, move, frame),
    )


def _repair(asked: Asked, cast: Any, move: Any, frame: Frame) -> Repair | None:
    """The cast in front of the move."""
    statement = frame.flow.statement_of(cast)
    targets = [key_of(one) for one in getattr(statement, "targets", ())]
    alone = isinstance(statement, (ast.Expr, ast.Assign)) and statement.value is cast
    chain = move in ast.walk(cast)
    if _is_conditional(cast, move, frame):
        return None
    if not chain and not (alone and targets in ([], [key_of(cast.func.value)])):
        return None
    late: Any = asked.node(cast)
    moved: Any = asked.node(move)
    first = _on(moved, _on(late, moved.func.value))
    changes: tuple[Change, ...] = (Replace(moved, first), Remove(asked.node(statement)))
    if chain:
        changes = (Replace(late, late.func.value.deep_replace(moved, first)),)
    return Repair.unless(_why_unsafe(asked, cast, frame), "cast it before it is moved", changes)


def _on(call: Any, base: Any) -> Any:
    """The same method of another object."""
    return call.with_changes(func=call.func.with_changes(value=base))


def _why_unsafe(asked: Asked, cast: Any, frame: Frame) -> str:
    network = asked.evaluator.value_of(cast.func.value, frame)
    if isinstance(network.ref, Class):
        own = next((one for one in _OWN if asked.evaluator.method(network.ref, one)), None)
        return f"`{network.ref.name}` has a `{own}` of its own" if own is not None else ""
    known = asked.evaluator.calling.made_by(network) is not None
    return "" if known else "a `to` or `half` of the network's own class may do more"
