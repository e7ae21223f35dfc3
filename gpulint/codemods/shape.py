"""The shape of a training script: step loops, epoch loops, validations, checkpoints. Only what is written there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from gpulint.source.positions import child_nodes

Loop = cst.For | cst.While
Scope = cst.FunctionDef | cst.Module
Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement

_VALIDATION = re.compile(
    r"(?i)_?(?:validate|validation|evaluate|eval|val|test)(?:_(?:model|epoch|loop|step|one_epoch|loss|acc\w*|set))?"
    r"|(?:run_)?(?:validate|evaluate|eval|validation|val)_\w+|\w+_(?:validate|evaluate|eval|validation|validate_epoch)"
)
_NOT_AN_OPTIMIZER = re.compile(r"(?i)sched|prof|env|writer|timer|bar|pbar|progress|meter|monitor|warmup")
_HOLDERS = (cst.BaseCompoundStatement, cst.IndentedBlock, cst.Else, cst.Finally, cst.ExceptHandler)
_NO_GRAD = {"no_grad", "inference_mode"}
_SAVING = {"save_checkpoint", "save_state", "save_pretrained"}  # our own, accelerate's, transformers'


@dataclass(slots=True)
class Place:
    """A loop with the scope it stands in and the loops around it, outermost first."""

    loop: Loop
    scope: Scope
    around: tuple[Loop, ...] = ()


@dataclass(slots=True)
class Shape:
    """What the codemods need to know. `epochs` are the outermost training loops, by identity of their node in
    the module; `steps` the loops of which one iteration is an optimizer step; `step_statements` the statements
    with that step."""

    module: cst.Module
    steps: list[Place] = field(default_factory=list)
    epochs: list[Place] = field(default_factory=list)
    step_statements: list[tuple[Statement, Loop]] = field(default_factory=list)
    functions: dict[str, cst.FunctionDef] = field(default_factory=dict)
    methods: set[str] = field(default_factory=set)

    def calls(self, call: cst.Call, names: set[str]) -> bool:
        """Whether a call is of one of these functions of the module: of a method through an object, of `train` and
        `eval`, which every torch module has as well, only through `self`; of another function by its bare name."""
        name = call_name(call)
        if name not in names:
            return False
        if not isinstance(call.func, cst.Attribute):
            return name not in self.methods
        through_self = isinstance(call.func.value, cst.Name) and call.func.value.value == "self"
        return name in self.methods and (through_self or name not in ("train", "eval"))


def read_shape(module: cst.Module) -> Shape:
    """Find the training loops of a module."""
    shape = Shape(module)
    loops: list[Place] = []
    _collect(module, module, (), loops, shape)
    stepping = _stepping(shape)
    shape.steps = [place for place in loops if _is_step_loop(place, loops, stepping, shape)]
    training = {id(place.scope): _name(place.scope) for place in shape.steps}
    for place in shape.steps:
        outer = place.around[0] if place.around else None
        if outer is not None:
            _add(shape.epochs, Place(outer, place.scope))
    # An epoch may also be a call of the function that has the step loop.
    called = {name for name in training.values() if name}
    for place in loops:
        if not place.around and any(shape.calls(call, called) for call in calls_in(place.loop)):
            _add(shape.epochs, place)
    covered = {id(place.around[0]) for place in shape.steps if place.around}
    called_somewhere = {
        call_name(call)
        for place in shape.epochs
        for call in calls_in(place.loop)
        if shape.calls(call, called)
    }
    for place in shape.steps:
        if not place.around and _name(place.scope) not in called_somewhere and id(place.loop) not in covered:
            _add(shape.epochs, place)
    for place in shape.steps:
        statement = _step_statement(place.loop, stepping, shape)
        if statement is not None:
            shape.step_statements.append((statement, place.loop))
    return shape


def _add(places: list[Place], place: Place) -> None:
    if all(known.loop is not place.loop for known in places):
        places.append(place)


def _name(scope: Scope) -> str:
    return scope.name.value if isinstance(scope, cst.FunctionDef) else ""


def _collect(
    node: cst.CSTNode,
    scope: Scope,
    around: tuple[Loop, ...],
    found: list[Place],
    shape: Shape,
    in_class: bool = False,
) -> None:
    for child in child_nodes(node):
        if isinstance(child, cst.FunctionDef):
            shape.functions.setdefault(child.name.value, child)
            if in_class:
                shape.methods.add(child.name.value)
            _collect(child, child, (), found, shape)
        elif isinstance(child, (cst.For, cst.While)):
            found.append(Place(child, scope, around))
            _collect(child, scope, (*around, child), found, shape)
        elif isinstance(child, _HOLDERS):
            inside = isinstance(child, cst.ClassDef) or (in_class and isinstance(child, cst.IndentedBlock))
            _collect(child, scope, around, found, shape, inside)


def _stepping(shape: Shape) -> set[str]:
    """Functions that do one step when they are called: backward and an optimizer's step, not in a loop of theirs
    that does both. Also those that call such a function outside a loop."""
    found: set[str] = set()
    for _ in range(3):
        before = len(found)
        for name, function in shape.functions.items():
            loops = [node for node in walk(function.body) if isinstance(node, (cst.For, cst.While))]
            if _does_step(function.body, found, shape) and not any(
                _does_step(loop, found, shape) for loop in loops
            ):
                found.add(name)
        if len(found) == before:
            break
    return found


def _does_step(node: cst.CSTNode, stepping: set[str], shape: Shape) -> bool:
    if any(shape.calls(call, stepping) for call in calls_in(node)):
        return True
    return _has(node, "backward") and _has_step(node)


def _is_step_loop(place: Place, loops: list[Place], stepping: set[str], shape: Shape) -> bool:
    """The innermost loop around an optimizer's step that runs a backward pass too, both perhaps in a function that
    it calls; where the step is out of sight, the innermost around the backward, if gradients are zeroed in it (a
    loss that runs backward over pieces of its batch is no training loop)."""
    inner = [other.loop for other in loops if place.loop in other.around]
    if _does_step(place.loop, stepping, shape):
        return not any(_does_step(loop, stepping, shape) for loop in inner)
    if not (_has(place.loop, "backward") and _has(place.loop, "zero_grad")) or _name(place.scope) in stepping:
        return False
    around = any(_does_step(loop, stepping, shape) for loop in place.around)
    return not around and not any(_has(loop, "backward") for loop in inner)


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes below `node` that run when it runs: nested functions and classes left out."""
    for child in child_nodes(node):
        if isinstance(child, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            continue
        yield child
        yield from walk(child)


def calls_in(node: cst.CSTNode) -> Iterator[cst.Call]:
    """Every call that runs when `node` runs."""
    return (child for child in walk(node) if isinstance(child, cst.Call))


def call_name(call: cst.Call) -> str:
    """The last part of what is called: `step` of `self.optimizer.step()`."""
    function = call.func
    if isinstance(function, cst.Attribute):
        return function.attr.value
    return function.value if isinstance(function, cst.Name) else ""


def dotted(node: cst.BaseExpression) -> str:
    """`a.b.c` of names and attributes, else ""."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute) and (base := dotted(node.value)):
        return f"{base}.{node.attr.value}"
    return ""


def _has(node: cst.CSTNode, name: str) -> bool:
    return any(call_name(call) == name for call in calls_in(node))


def _is_step(call: cst.Call) -> bool:
    if call_name(call) != "step" or not isinstance(call.func, cst.Attribute):
        return False
    owner = call.func.value
    text = dotted(owner) or (dotted(owner.value) if isinstance(owner, cst.Subscript) else "")
    return bool(text) and _NOT_AN_OPTIMIZER.search(text) is None


def _has_step(node: cst.CSTNode) -> bool:
    return any(_is_step(call) for call in calls_in(node))


def _step_statement(loop: Loop, stepping: set[str], shape: Shape) -> Statement | None:
    """The last statement of a step loop with an optimizer's step in it, or a call that does one. Where branches of
    one statement step in different ways (try, if and else), or a loop steps several optimizers, that whole statement."""
    for statement in reversed(body_of(loop)):
        nodes = [statement, *walk(statement)]
        found = [n for n in nodes if isinstance(n, cst.SimpleStatementLine) and _steps_in(n, stepping, shape)]
        if found:
            looped = any(isinstance(n, (cst.For, cst.While)) and _steps_in(n, stepping, shape) for n in nodes)
            either = isinstance(statement, cst.If) and statement.orelse is not None
            return found[0] if len(found) == 1 and not looped and not either else statement
    return None


def _steps_in(node: cst.CSTNode, stepping: set[str], shape: Shape) -> bool:
    return _has_step(node) or any(shape.calls(call, stepping) for call in calls_in(node))


def body_of(loop: Loop) -> list[Statement]:
    """The statements directly in a loop; empty for a loop on one line."""
    if not isinstance(loop.body, cst.IndentedBlock):
        return []
    return [s for s in loop.body.body if isinstance(s, (cst.SimpleStatementLine, cst.BaseCompoundStatement))]


def validations(body: list[Statement], shape: Shape) -> list[bool]:
    """Which statements of an epoch run a validation: a call by its name or by what the called function does, or a
    loop under no_grad while a model is in eval mode (advantages and rollouts are loops under no_grad too)."""
    found, evaluating = [], False
    for statement in body:
        for call in calls_in(statement):
            if call_name(call) in ("eval", "train") and isinstance(call.func, cst.Attribute):
                evaluating = call_name(call) == "eval"
        inside = evaluating or any(call_name(call) == "eval" for call in calls_in(statement))
        found.append(_calls_validation(statement, shape) or (inside and _loops_without_grad(statement)))
    return found


def _loops_without_grad(statement: Statement) -> bool:
    nodes = [statement, *walk(statement)]
    guarded = any(isinstance(n, cst.With) and any(_is_no_grad(i.item) for i in n.items) for n in nodes)
    loops = any(isinstance(node, cst.For) for node in nodes)
    return (
        isinstance(statement, (cst.With, cst.For)) and guarded and loops and not _has(statement, "backward")
    )


def _calls_validation(statement: Statement, shape: Shape) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    return any(_is_validation_call(call, shape) for call in calls_in(statement))


def _is_no_grad(expression: cst.BaseExpression) -> bool:
    return isinstance(expression, cst.Call) and call_name(expression) in _NO_GRAD


def _is_validation_call(call: cst.Call, shape: Shape) -> bool:
    name = call_name(call)
    if name in ("eval", "train") and isinstance(call.func, cst.Attribute) and not call.args:
        return False
    function = shape.functions.get(name)
    if function is not None:
        return _evaluates(function)
    return bool(_VALIDATION.fullmatch(name)) and bool(call.args or isinstance(call.func, cst.Attribute))


def _evaluates(function: cst.FunctionDef) -> bool:
    if any(call_name(call) in ("backward", "step") for call in calls_in(function.body)):
        return False
    decorated = any(_under_no_grad(decorator.decorator) for decorator in function.decorators)
    loops = any(isinstance(node, (cst.For, cst.While)) for node in walk(function.body))
    guarded = any(call_name(call) in (*_NO_GRAD, "eval") for call in calls_in(function.body))
    return loops and (decorated or guarded)


def _under_no_grad(decorator: cst.BaseExpression) -> bool:
    return (
        call_name(decorator) if isinstance(decorator, cst.Call) else dotted(decorator).split(".")[-1]
    ) in _NO_GRAD


def saves_checkpoint(statement: Statement) -> bool:
    """Whether a statement of an epoch writes a checkpoint, perhaps under a condition."""
    return isinstance(statement, (cst.SimpleStatementLine, cst.If)) and any(
        dotted(call.func) == "torch.save" or call_name(call) in _SAVING for call in calls_in(statement)
    )


def is_entry(module: cst.Module) -> bool:
    """Whether a file is run, not imported: it has a main guard, or it trains at module level."""
    if main_guard(module) is not None:
        return True
    return any(isinstance(place.scope, cst.Module) for place in read_shape(module).steps)


def main_guard(module: cst.Module) -> cst.If | None:
    """The `if __name__ == "__main__":` of a module."""
    for statement in module.body:
        if isinstance(statement, cst.If) and any(
            isinstance(n, cst.Name) and n.value == "__name__" for n in walk(statement.test)
        ):
            return statement
    return None
