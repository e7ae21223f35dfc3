"""The shape of a training script: step loops, epoch loops, validations, checkpoints. Only what is written there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import libcst as cst
from libcst import matchers

from gpulint.source.positions import child_nodes, nodes_below

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
    """A loop with the scope it stands in, the loops around it, outermost first, and the outermost `try` around it that
    has handlers."""

    loop: Loop
    scope: Scope
    around: tuple[Loop, ...] = ()
    guarded: cst.Try | None = None


@dataclass(slots=True)
class Shape:
    """What the codemods need to know. `epochs` are the outermost training loops, by identity of their node in
    the module; `steps` the loops of which one iteration is an optimizer step; `step_statements` the statements
    with that step, None where the parameters are updated by other means."""

    module: cst.Module
    steps: list[Place] = field(default_factory=list)
    epochs: list[Place] = field(default_factory=list)
    step_statements: list[tuple[Statement | None, Loop]] = field(default_factory=list)
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

    def running(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """What runs when this node does: itself, and the bodies of the module's functions that it reaches."""
        return [node, *(self.functions[name].body for name in self.reached(node))]

    def reached(self, *nodes: cst.CSTNode) -> set[str]:
        """The functions of the module that run when these nodes do."""
        found: set[str] = set()
        waiting = list(nodes)
        while waiting:
            for call in calls_in(waiting.pop()):
                name = call_name(call)
                if name not in found and self.calls(call, set(self.functions)):
                    found.add(name)
                    waiting.append(self.functions[name].body)
        return found


def read_shape(module: cst.Module) -> Shape:
    """Find the training loops of a module."""
    shape = Shape(module)
    loops: list[Place] = []
    _collect(module, module, (), None, loops, shape)
    stepping = _doing(set(), _does_step, shape)
    shape.steps = [place for place in loops if _is_step_loop(place, loops, stepping, shape)]
    shape.step_statements = [(_step_statement(one.loop, stepping, shape), one.loop) for one in shape.steps]
    # An epoch is a round of the outermost loop around the steps, or a call of the function that has them.
    outermost = {id(place.around[0]) for place in shape.steps if place.around}
    called = _doing({_name(p.scope) for p in shape.steps if not p.around} - {""}, _calls_one, shape)
    shape.epochs = [
        place
        for place in loops
        if not place.around and (id(place.loop) in outermost or _calls_one(place.loop, called, shape))
    ]
    covered = shape.reached(*(place.loop for place in shape.epochs))
    alone = (place for place in shape.steps if not place.around and _name(place.scope) not in covered)
    known = {id(place.loop) for place in shape.epochs}
    shape.epochs += (place for place in alone if id(place.loop) not in known)
    return shape


def _name(scope: Scope) -> str:
    return scope.name.value if isinstance(scope, cst.FunctionDef) else ""


def _collect(
    node: cst.CSTNode,
    scope: Scope,
    around: tuple[Loop, ...],
    guarded: cst.Try | None,
    found: list[Place],
    shape: Shape,
    in_class: bool = False,
) -> None:
    for child in child_nodes(node):
        if isinstance(child, cst.FunctionDef):
            shape.functions.setdefault(child.name.value, child)
            if in_class:
                shape.methods.add(child.name.value)
            _collect(child, child, (), None, found, shape)
        elif isinstance(child, (cst.For, cst.While)):
            found.append(Place(child, scope, around, guarded))
            _collect(child, scope, (*around, child), guarded, found, shape)
        elif isinstance(child, _HOLDERS):
            inside = isinstance(child, cst.ClassDef) or (in_class and isinstance(child, cst.IndentedBlock))
            catching = child if isinstance(child, cst.Try) and child.handlers and not around else None
            _collect(child, scope, around, guarded or catching, found, shape, inside)


def _doing(found: set[str], does: Callable[[cst.CSTNode, set[str], Shape], bool], shape: Shape) -> set[str]:
    """The functions that do something once when they are called, not in a loop of theirs: those in `found`, and those that
    do it in their own body or by a call of one of them."""
    for _ in range(3):
        before = len(found)
        for name, function in shape.functions.items():
            loops = (node for node in walk(function.body) if isinstance(node, (cst.For, cst.While)))
            if does(function.body, found, shape) and not any(does(loop, found, shape) for loop in loops):
                found.add(name)
        if len(found) == before:
            break
    return found


def _calls_one(node: cst.CSTNode, names: set[str], shape: Shape) -> bool:
    return any(shape.calls(call, names) for call in calls_in(node))


def _does_step(node: cst.CSTNode, stepping: set[str], shape: Shape) -> bool:
    """Backward and an optimizer's step, perhaps in a function that does both."""
    return _calls_one(node, stepping, shape) or (_has(node, "backward") and _has_step(node))


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


def all_calls(module: cst.Module) -> list[cst.Call]:
    """Every call in a module, those in functions and classes too."""
    return [node for node in nodes_below(module) if isinstance(node, cst.Call)]


def full_names(module: cst.Module) -> Callable[[cst.BaseExpression], str]:
    """Answers what names and attributes stand for by the module's imports: `torch.optim.SGD` for `optim.SGD`."""
    imported: dict[str, str] = {}
    for node in nodes_below(module):
        if isinstance(node, cst.Import):
            imported |= {one.evaluated_alias: one.evaluated_name for one in node.names if one.evaluated_alias}
        elif isinstance(node, cst.ImportFrom) and node.module is not None and not node.relative:
            for one in () if isinstance(node.names, cst.ImportStar) else node.names:
                here = one.evaluated_alias or one.evaluated_name
                imported[here] = f"{dotted(node.module)}.{one.evaluated_name}"

    def full_name(node: cst.BaseExpression) -> str:
        first, dot, rest = dotted(node).partition(".")
        return f"{imported.get(first, first)}{dot}{rest}"

    return full_name


def optimizers_made(module: cst.Module) -> list[cst.Call]:
    """The calls of a module that make an optimizer of torch's."""
    full_name = full_names(module)
    made = ((call, full_name(call.func).rpartition(".")) for call in all_calls(module))
    return [call for call, (package, _, name) in made if package == "torch.optim" and name != "lr_scheduler"]


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
    one statement step in different ways (try, if and else), or a loop steps several optimizers, that whole statement.
    Without an optimizer the last statement that reads gradients, which is what updates the parameters."""
    for statement in reversed(body_of(loop)):
        nodes = [statement, *walk(statement)]
        found = [n for n in nodes if isinstance(n, cst.SimpleStatementLine) and _steps_in(n, stepping, shape)]
        if found:
            looped = any(isinstance(n, (cst.For, cst.While)) and _steps_in(n, stepping, shape) for n in nodes)
            either = isinstance(statement, cst.If) and statement.orelse is not None
            return found[0] if len(found) == 1 and not looped and not either else statement
    return next((statement for statement in reversed(body_of(loop)) if _reads_gradients(statement)), None)


def _reads_gradients(statement: Statement) -> bool:
    return any(isinstance(node, cst.Attribute) and node.attr.value == "grad" for node in walk(statement))


def _steps_in(node: cst.CSTNode, stepping: set[str], shape: Shape) -> bool:
    return _has_step(node) or _calls_one(node, stepping, shape)


def body_of(block: Loop | cst.If | cst.Else) -> list[Statement]:
    """The statements directly in a loop or a branch; empty for one on one line."""
    if not isinstance(block.body, cst.IndentedBlock):
        return []
    return [s for s in block.body.body if isinstance(s, (cst.SimpleStatementLine, cst.BaseCompoundStatement))]


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
    if not isinstance(statement, (cst.With, cst.For)) or _has(statement, "backward"):
        return False
    nodes = [statement, *walk(statement)]
    guarded = any(isinstance(n, cst.With) and any(_is_no_grad(i.item) for i in n.items) for n in nodes)
    return guarded and any(isinstance(node, cst.For) for node in nodes)


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
        return _evaluates(function, shape)
    return bool(_VALIDATION.fullmatch(name)) and bool(call.args or isinstance(call.func, cst.Attribute))


def _evaluates(function: cst.FunctionDef, shape: Shape) -> bool:
    nodes = [node for part in shape.running(function.body) for node in walk(part)]
    called = {call_name(node) for node in nodes if isinstance(node, cst.Call)}
    decorators = (one.decorator for one in function.decorators)
    called_ones = (one.func if isinstance(one, cst.Call) else one for one in decorators)
    decorated = any(dotted(one).rpartition(".")[2] in _NO_GRAD for one in called_ones)
    loops = any(isinstance(node, (cst.For, cst.While)) for node in nodes)
    return loops and not called & {"backward", "step"} and (decorated or bool(called & {*_NO_GRAD, "eval"}))


def saves_checkpoint(statement: Statement, shape: Shape) -> bool:
    """Whether a statement of an epoch writes a checkpoint, perhaps under a condition, into a file that it opens, or in a
    function of the module that does not train."""
    if not isinstance(statement, (cst.SimpleStatementLine, cst.If, cst.With)):
        return False
    calls = [call for node in shape.running(statement) for call in calls_in(node)]
    saves = any(dotted(call.func) == "torch.save" or call_name(call) in _SAVING for call in calls)
    return saves and not any(call_name(call) == "backward" for call in calls)


def main_guard(module: cst.Module) -> cst.If | None:
    """The `if __name__ == "__main__":` of a module."""
    branches = (one for one in module.body if isinstance(one, cst.If))
    return next((one for one in branches if matchers.findall(one.test, matchers.Name("__name__"))), None)
