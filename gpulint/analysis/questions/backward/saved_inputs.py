"""What a loss saves for its backward: what it was given, or something that it has made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.lookup import qualified
from gpulint.analysis.torch.names import SAVES_INPUT, SAVES_SOFTMAX
from gpulint.answers import Answer, Question, left_open, proven, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


def scored(statement: ir.Stmt) -> ir.Call | None:
    """The call of `loss = criterion(…)`, of `loss = criterion(…) / steps`."""
    value = statement.value if isinstance(statement, ir.Assign) else None
    if isinstance(value, ir.Op) and value.op in ("/", "*"):
        value = value.operands[0]
    return value if isinstance(value, ir.Call) else None


def saved_logits(file: FileAnalysis, function: ir.Function, statement: ir.Stmt) -> Answer:
    """Whether the loss saves the very logits for its backward: then nothing is given back by letting go of them."""
    call = scored(statement)
    names = (
        {name.rpartition(".")[2] for name in _losses(file, function, call.func)}
        if call is not None
        else set()
    )
    if names and names <= SAVES_SOFTMAX:
        return proven(Question.BACKWARD, "a cross-entropy saves its log-softmax, and not the logits")
    saving = sorted(names & SAVES_INPUT)
    if saving and len(names) == len(saving):
        return refuted(Question.BACKWARD, f"`{saving[0]}` saves what it is given for its backward")
    return left_open(
        Question.BACKWARD, "whether the loss itself keeps the logits for its backward is not in sight"
    )


def _losses(file: FileAnalysis, function: ir.Function, loss: ir.Expr) -> set[str]:
    """The losses of torch that are called by a name, each by its full name: the function itself, or what the name is seen to be
    made of, in the class, in the function, around it, or in the file. Empty where one of them is something else."""
    full = qualified(file, function, loss.path)
    if full is not None:
        return {full} if full.startswith("torch.nn.") else set()
    info = file.class_of(function)
    owners = list(info.cls.methods.values()) if info is not None and isinstance(loss, ir.Attr) else []
    places = owners or [
        function,
        *([function.parent] if function.parent is not None else ()),
        file.module.body,
    ]
    found: set[str] = set()
    for place in places:
        for made in ir.statements(place.body):
            if isinstance(made, ir.Assign) and any(target.path == loss.path for target in targets(made)):
                inner = made.value
                while (
                    isinstance(inner, ir.Call)
                    and inner.method in ("to", "cuda")
                    and isinstance(inner.func, ir.Attr)
                ):
                    inner = inner.func.base
                name = qualified(file, place, inner.func.path) if isinstance(inner, ir.Call) else None
                if name is None or not name.startswith("torch.nn."):
                    return set()
                found.add(name)
    return found
