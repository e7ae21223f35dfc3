"""How large a network is: the weights of its layers, as far as their sizes are constants, and what the table says of a library's."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Final

from gpulint.analysis.domain.values import Value, in_text_order
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, settled
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.syntax.flow import Definition, Flow
from gpulint.analysis.syntax.nodes import argument, key_of, keyword, last_name

LARGE: Final = 10_000_000  # weights from which one more copy is much beside a training
SMALL: Final = 1_000_000
UNSEEN: Final = float("inf")  # layers
_DEEPEST: Final = 12
# The sizes that `nn.Transformer` is given, in order, with what they are by default.
_TRANSFORMER: Final = {
    "d_model": 512, "nhead": 8, "num_encoder_layers": 6, "num_decoder_layers": 6, "dim_feedforward": 2048,
}  # fmt: skip
_ADDING: Final = frozenset({"add_module", "register_module", "register_parameter", "setattr", "Parameter"})


@dataclass(frozen=True, slots=True)
class Weight:
    """At least so many weights; `whole` where no more are out of sight; `mixes` where layers see more than rows: "pictures" for
    convolutions, else "sequences" for attention and recurrence; `rows` where some see rows. `layers`: at most so many with weights,
    `UNSEEN` where some are out of sight."""

    least: int
    whole: bool
    mixes: str = ""
    rows: bool = False
    layers: float = UNSEEN

    @property
    def is_none(self) -> bool:
        """Whether there is none at all, as far as it can be seen."""
        return self.whole and not self.least


def weight(evaluator: Evaluator, value: Value) -> Weight:
    """How many weights a network has, whichever of its origins it is: the smallest of them."""
    return _whichever(evaluator, value, _DEEPEST)


def _whichever(evaluator: Evaluator, value: Value, depth: int) -> Weight:
    found = [_of_origin(evaluator, node, frame, depth) for node, frame in in_text_order(value.origins)]
    return _together(found, min, max) if found else Weight(0, False)


def _of_origin(evaluator: Evaluator, node: Any, frame: Frame | None, depth: int) -> Weight:
    if not isinstance(node, ast.Call) or frame is None or depth <= 0:
        return Weight(0, False)
    key = (Weight, node, depth)
    return settled(evaluator, frame, key, lambda: _of_call(evaluator, node, frame, depth))  # type: ignore[no-any-return]


def _of_call(evaluator: Evaluator, node: ast.Call, frame: Frame, depth: int) -> Weight:
    made = evaluator.value_of(node.func, frame)
    if made.kind == "class" and isinstance(made.ref, Class):
        return _of_class(evaluator, made.ref, node, frame, depth)
    name = made.full_name.rpartition(".")[2]
    row = evaluator.table.own("class.methods", name) or evaluator.table.function(made.full_name)
    if not name or row is None:
        return Weight(0, False)
    if row.gives == "copy" and node.args:
        return _of_value(evaluator, node.args[0], frame, depth)
    if row.weights == "large":
        return Weight(LARGE, True, "pictures")
    if row.weights == "none":
        return Weight(0, True, layers=0)
    if row.weights == "parts":
        return _together([_of_value(evaluator, one, frame, depth) for one in node.args])
    found = _of_layer(evaluator, name, node, frame)
    mixes = row.weights if row.weights in ("pictures", "sequences") else ""
    return Weight(found.least, found.whole, mixes, row.weights == "rows", found.layers)


def _of_value(evaluator: Evaluator, node: Any, frame: Frame, depth: int) -> Weight:
    if isinstance(node, ast.Starred):
        node = node.value
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return _repeated(_of_value(evaluator, node.elt, frame, depth), trips(evaluator, node, frame))
    if isinstance(node, (ast.List, ast.Tuple)):
        return _together([_of_value(evaluator, one, frame, depth) for one in node.elts])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _together([_of_value(evaluator, one, frame, depth) for one in (node.left, node.right)])
    value = evaluator.value_of(node, frame)
    if value.kind == "list" and isinstance(node, (ast.Name, ast.Attribute)):
        return _of_list(evaluator, node, frame, depth)
    if value.kind == "list" and isinstance(node, ast.Call):
        return _of_returned(evaluator, node, frame, depth)
    if value.kind == "modules":  # the layers of another, or some of them
        return Weight(0, False, _whichever(evaluator, value, depth - 1).mixes)
    if value.kind != "module":
        known = value.kind in ("number", "text", "none")
        return Weight(0, known, layers=0 if known else UNSEEN)
    return _whichever(evaluator, value, depth - 1)


def _of_list(evaluator: Evaluator, node: Any, frame: Frame, depth: int) -> Weight:
    """What a list of layers is filled with: at first, by `+=`, and by its methods, as often as their loops run."""
    key, flow = key_of(node), frame.flow
    made = flow.definitions.get(key or "", ())
    given = [one.value for one in made if one.kind in ("assign", "augmented") and not one.path]
    given += [call.args[0] for call in flow.calls_on({key}, "append", "extend") if call.args]
    found = []
    for one in given if depth > 0 else ():
        part = _of_value(evaluator, one, frame, depth - 1)
        for loop in flow.loops(one):
            part = _repeated(part, trips(evaluator, loop, frame))
        found.append(part)
    return _together(found) if found else Weight(0, False)


def _of_returned(evaluator: Evaluator, call: ast.Call, frame: Frame, depth: int) -> Weight:
    """The layers of a list that a function of the project gives."""
    made = evaluator.value_of(call.func, frame).ref
    inner = evaluator.enter(made, call, frame, None) if isinstance(made, Function) else None
    if inner is None or depth <= 0:
        return Weight(0, False)
    returned = [one.value for one in inner.flow.returns if one.value is not None]
    found = [_of_value(evaluator, one, inner, depth - 1) for one in returned]
    return min(found, key=lambda one: one.least, default=Weight(0, False))


def run_through(loop: Any, flow: Flow) -> Any:
    """What a loop runs through, whether or not it counts that."""
    through = flow.iterated(loop)
    counts = isinstance(through, ast.Call) and last_name(through.func) == "enumerate" and through.args
    return through.args[0] if counts else through


def trips(evaluator: Evaluator, loop: Any, frame: Frame) -> int | None:
    """How often a loop runs, at most: of `range`, of `islice`, or of a display."""
    through = run_through(loop, frame.flow)
    name = last_name(through.func) if isinstance(through, ast.Call) else ""
    if name in ("range", "trange", "islice") and through.args:
        end = through.args[0 if len(through.args) == 1 else 1]
        count = evaluator.value_of(end, frame).const if name != "islice" or len(through.args) == 2 else None
        return count if isinstance(count, int) and 0 <= count < 1000 else None
    return len(through.elts) if isinstance(through, (ast.List, ast.Tuple)) else None


def _of_class(evaluator: Evaluator, cls: Class, node: ast.Call, frame: Frame, depth: int) -> Weight:
    init = evaluator.method(cls, "__init__")
    others = evaluator.program.library_bases(cls)
    plain = all(one in ("torch.nn.Module", "torch.nn.modules.module.Module", "object") for one in others)
    if init is None:
        return Weight(0, plain, layers=0 if plain else UNSEEN)
    inner = evaluator.enter(init, node, frame, evaluator.value_of(node, frame)) or evaluator.root(init)
    found: list[Weight] = []
    for call in init.flow.calls.get("__init__", ()):  # of a layer of a library that it derives from
        names = [one.rpartition(".")[2] for one in others]
        layers = (one for one in names if (row := evaluator.table.own("torch.nn", one)) and row.sizes)
        found += [_of_layer(evaluator, one, call, inner) for one in layers]
    for method in (init, *_helpers(evaluator, init)):
        frame = inner if method is init else evaluator.root(method)
        for key, definitions in method.flow.definitions.items():
            if key.startswith(f"{method.self_name}.") and key.count(".") == 1:
                found += [_of_attribute(evaluator, one, frame, depth) for one in definitions]
    summed = _together(found)
    # than by a layer in an attribute
    by_others = any(method.words & _ADDING for method in cls.methods.values())
    return Weight(0, False) if summed.is_none and (by_others or not plain) else summed


def _helpers(evaluator: Evaluator, init: Function) -> list[Function]:
    """The methods of its class that a constructor calls, and the constructors of the project that it derives from."""
    assert init.cls is not None
    found = [evaluator.method(init.cls, name) for name in init.flow.calls if name != "__init__"]
    bases = evaluator.program.lineage(init.cls)[1:] if "__init__" in init.flow.calls else ()
    found += [one.methods.get("__init__") for one in bases if isinstance(one, Class)]
    return [one for one in found if one is not None and one is not init and one.takes_self]


def _of_attribute(evaluator: Evaluator, definition: Definition, frame: Frame, depth: int) -> Weight:
    if definition.kind != "assign":
        return Weight(0, True, layers=0)
    value = evaluator.definition(definition, frame)
    if value.kind == "modules" or (value.kind == "module" and definition.path):
        return Weight(0, False, _whichever(evaluator, value, depth - 1).mixes)
    if value.kind == "module":
        return _of_value(evaluator, definition.value, frame, depth - 1)
    known = not (value.kind == "unknown" and isinstance(definition.value, ast.Call))
    return Weight(0, known, layers=0 if known else UNSEEN)


def _of_layer(evaluator: Evaluator, name: str, node: ast.Call, frame: Frame) -> Weight:
    if name == "Transformer":
        return _of_transformer(evaluator, node, frame)
    row = evaluator.table.own("torch.nn", name)
    if row is None or not row.sizes:
        norm = name.startswith(("BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm"))
        return Weight(0, norm, layers=1 if norm else UNSEEN)
    stacked = evaluator.value_of(times, frame).const if (times := keyword(node, "num_layers")) else 1
    layers = stacked if isinstance(stacked, int) else UNSEEN
    grouped = argument(node, 6, "groups") if row.sizes > 2 else None
    groups = evaluator.value_of(grouped, frame).const if grouped is not None else 1
    sizes = [evaluator.value_of(one, frame).const for one in node.args[: row.sizes]]
    if len(sizes) < row.sizes or not all(isinstance(one, int) and one for one in (*sizes, groups)):
        return Weight(0, False, layers=layers)
    more = sizes[2] ** row.power if row.sizes > 2 else row.power
    return Weight(sizes[0] * sizes[1] * more // groups, True, layers=layers)


def _of_transformer(evaluator: Evaluator, node: ast.Call, frame: Frame) -> Weight:
    """`nn.Transformer`: of its width, its layers, and twice its width times that of the layers between."""
    given = [(argument(node, at, name), default) for at, (name, default) in enumerate(_TRANSFORMER.items())]
    sizes = [evaluator.value_of(one, frame).const if one is not None else default for one, default in given]
    if not all(isinstance(one, int) for one in sizes):
        return Weight(0, False)
    width, _, encoders, decoders, between = sizes
    encoded, decoded = 4 * width + 2 * between, 8 * width + 2 * between  # of a layer, times its width
    return Weight(width * (encoders * encoded + decoders * decoded), True)


def _repeated(one: Weight, times: int | None) -> Weight:
    """So many of the same; at least one where nobody knows how many."""
    layers = one.layers * (times or 1) if times is not None else UNSEEN
    return Weight(one.least * (times or 1), one.whole and times is not None, one.mixes, one.rows, layers)


def _together(found: list[Weight], least: Any = sum, layers: Any = sum) -> Weight:
    """Several as one: all of them, or whichever of them it is."""
    return Weight(
        least(one.least for one in found),
        all(one.whole for one in found),
        min((one.mixes for one in found if one.mixes), default=""),  # pictures where some see them
        any(one.rows for one in found),
        layers(one.layers for one in found),
    )
