"""How large a network is: the weights of its layers, as far as their sizes are constants, and what the table says of a library's."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Final

from gpulint.analysis.domain.values import Value
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Class
from gpulint.answers import Answer, Question, left_open, proven

LARGE: Final = 10_000_000  # weights from which one more copy is much beside a training
SMALL: Final = 1_000_000
_DEEPEST: Final = 4
_LAYERS: Final = {
    "Linear": (2, 1), "Conv1d": (3, 1), "Conv2d": (3, 2), "Conv3d": (3, 3), "ConvTranspose2d": (3, 2), "Embedding": (2, 1),
    "LSTM": (2, 8), "GRU": (2, 6), "Bilinear": (3, 1),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Weight:
    """At least so many weights; `whole` where no more are out of sight."""

    least: int
    whole: bool


def weight(evaluator: Evaluator, value: Value) -> Weight:
    """How many weights a network has, whichever of its origins it is: the smallest of them."""
    found = [_of_origin(evaluator, node, frame, _DEEPEST) for node, frame in value.origins]
    if not found:
        return Weight(0, False)
    return Weight(min(one.least for one in found), all(one.whole for one in found))


def _of_origin(evaluator: Evaluator, node: Any, frame: Frame | None, depth: int) -> Weight:
    if not isinstance(node, ast.Call) or frame is None or not depth:
        return Weight(0, False)
    made = evaluator.value_of(node.func, frame)
    if made.kind == "class" and isinstance(made.ref, Class):
        return _of_class(evaluator, made.ref, node, frame, depth)
    if made.kind != "library" or not isinstance(made.ref, str):
        return Weight(0, False)
    row = evaluator.table.function(made.ref) or evaluator.table.own(
        "class.methods", made.ref.rpartition(".")[2]
    )
    if row is None:
        return Weight(0, False)
    if row.weights == "large":
        return Weight(LARGE, True)
    if row.weights == "none":
        return Weight(0, True)
    if row.weights == "parts":
        return _sum([_of_value(evaluator, one, frame, depth) for one in node.args])
    return _of_layer(evaluator, made.ref.rpartition(".")[2], node, frame)


def _of_value(evaluator: Evaluator, node: Any, frame: Frame, depth: int) -> Weight:
    if isinstance(node, ast.Starred):
        node = node.value
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        one = _of_value(evaluator, node.elt, frame, depth)
        iterated = node.generators[0].iter
        times = (
            evaluator.value_of(iterated.args[-1], frame).const
            if isinstance(iterated, ast.Call) and iterated.args
            else None
        )
        count = times if isinstance(times, int) and 0 < times < 1000 else 1
        return Weight(one.least * count, one.whole and isinstance(times, int))
    if isinstance(node, (ast.List, ast.Tuple)):
        return _sum([_of_value(evaluator, one, frame, depth) for one in node.elts])
    value = evaluator.value_of(node, frame)
    if value.kind != "module":
        return Weight(0, value.kind in ("number", "text", "none"))
    found = [_of_origin(evaluator, one, where, depth - 1) for one, where in value.origins]
    return Weight(
        min((one.least for one in found), default=0), bool(found) and all(one.whole for one in found)
    )


def _of_class(evaluator: Evaluator, cls: Class, node: ast.Call, frame: Frame, depth: int) -> Weight:
    init = evaluator.method(cls, "__init__")
    if init is None:
        return Weight(0, False)
    inner = evaluator.enter(init, node, frame, evaluator.value_of(node, frame)) or evaluator.root(init)
    found: list[Weight] = []
    for key, definitions in init.flow.definitions.items():
        if not key.startswith(f"{init.self_name}.") or key.count(".") > 1:
            continue
        for one in definitions:
            if one.kind == "assign" and not one.path:
                value = evaluator.value_of(one.value, inner)
                if value.kind == "module":
                    found.append(_of_value(evaluator, one.value, inner, depth - 1))
    return _sum(found) if found else Weight(0, False)


def _of_layer(evaluator: Evaluator, name: str, node: ast.Call, frame: Frame) -> Weight:
    shape = _LAYERS.get(name)
    if shape is None:
        return Weight(0, name.startswith(("BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm")))
    count, power = shape
    sizes = [evaluator.value_of(one, frame).const for one in node.args[:count]]
    if len(sizes) < count or not all(isinstance(one, int) for one in sizes):
        return Weight(0, False)
    product = 1
    for one in sizes[:2]:
        product *= one
    if name.startswith("Conv"):
        product *= sizes[2] ** power
    elif power > 1:
        product *= power
    return Weight(product, True)


def _sum(found: list[Weight]) -> Weight:
    return Weight(sum(one.least for one in found), all(one.whole for one in found))


def copy_matters(evaluator: Evaluator, value: Value) -> Answer:
    """Whether one more copy of a network's weights is much beside its training."""
    found = weight(evaluator, value)
    if found.least >= LARGE:
        return proven(Question.SIZE, "the network is large")
    if found.whole and found.least < SMALL:
        return left_open(Question.SIZE, f"the network has about {found.least:,} weights")
    return left_open(Question.SIZE, "how large it is, the code does not say")
