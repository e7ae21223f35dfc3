"""Copies of weights that never lie idle on the GPU: handed over to another module at once, loaded back again and again, made
before the model was moved. And aliases that nothing trains any more."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets

_TRAINS = re.compile(r"(?i)^(?:backward|step|fit)$|train|epoch")


def waits_for_nothing(function: ir.Function, statement: ir.Stmt, holder: str, source: ir.Call) -> bool:
    """Whether the copy under a local name is used at once, or in all rounds of a search, or was never on the GPU."""
    model = source.func.base.path if isinstance(source.func, ir.Attr) else None
    if model is None or not holder.isidentifier():
        return False
    return (
        _is_handed_over(function, statement, holder, model)
        or _is_loaded_back(function, statement, holder, model)
        or _is_before_the_move(function, statement, model)
    )


def _is_handed_over(function: ir.Function, statement: ir.Stmt, holder: str, model: str) -> bool:
    """`state = deepcopy(old.state_dict()); …; new.load_state_dict(state)`, with no loop after it: one layer takes the place of
    another, and the copy goes with it."""
    around = [loop for loop in _loops(function.body) if statement in ir.statements(loop.body)]
    scope = list(ir.statements(around[-1].body if around else function.body))
    if any(isinstance(later, (ir.For, ir.While)) for later in scope[scope.index(statement) :]):
        return False
    readers = [other for other in scope if _reads(other, holder)]
    return bool(readers) and all(
        _loaded_by(reader, holder) not in (None, model) and _is_bound_beside(function, reader, holder)
        for reader in readers
    )


def _is_bound_beside(function: ir.Function, reader: ir.Stmt, name: str) -> bool:
    """Whether the reader's own block binds the name before it: other branches have copies of their own."""
    block = _block_of(function.body, reader) or []
    earlier = block[: block.index(reader)] if block else []
    return any(target.path == name for other in earlier for target in targets(other))


def _is_loaded_back(function: ir.Function, statement: ir.Stmt, holder: str, model: str) -> bool:
    """Each round of a loop that trains nothing changes the weights, looks at what comes of it, and puts the copy back: from
    the CPU that would be a transfer each round."""
    position = {id(other): number for number, other in enumerate(ir.statements(function.body))}
    for loop in _loops(function.body):
        if position[id(loop)] < position[id(statement)] or statement in ir.statements(loop.body):
            continue
        if any(_loaded_by(inner, holder) == model for inner in loop.body):
            if not any(_TRAINS.search(call.method) for _, call in ir.calls(loop.body)):
                return True
    return False


def _is_before_the_move(function: ir.Function, statement: ir.Stmt, model: str) -> bool:
    """`net = build(); start = deepcopy(net.state_dict()); net.cuda()`: a model is made on the CPU."""
    if "." in model or statement not in function.body:
        return False
    made = moved_after = False
    position = function.body.index(statement)
    for number, other in enumerate(function.body):
        for inner in ir.statements([other]):
            moves = any(
                call.method in ("to", "cuda") and _owner(call) == model for call in ir.own_calls(inner)
            )
            if number < position and moves:
                return False
            moved_after |= moves and inner is other
            if number < position and any(target.path == model for target in targets(inner)):
                if not isinstance(inner, ir.Assign) or not _makes_on_host(inner.value):
                    return False
                made = True
    return made and moved_after


def _makes_on_host(value: ir.Expr | None) -> bool:
    return isinstance(value, ir.Call) and not any(
        (isinstance(part, ir.Call) and part.method in ("to", "cuda"))
        or (isinstance(part, (ir.Name, ir.Attr)) and "device" in (part.path or "").rpartition(".")[2])
        or (isinstance(part, ir.Call) and any((name or "").startswith("device") for name, _ in part.keywords))
        for part in ir.walk(value)
    )


def is_of_its_round(guards: tuple[ir.Stmt, ...], source: ir.Call) -> bool:
    """Whether each round of the loop makes a new model: the weights of the last one's no longer change."""
    loop = next((guard for guard in reversed(guards) if isinstance(guard, (ir.For, ir.While))), None)
    model = source.func.base.path if isinstance(source.func, ir.Attr) else None
    if loop is None or model is None:
        return False
    values = [
        inner.value
        for inner in ir.statements(loop.body)
        if isinstance(inner, ir.Assign) and any(target.path == model for target in targets(inner))
    ]
    return bool(values) and all(_is_new(value, model) for value in values)


def _is_new(value: ir.Expr | None, model: str) -> bool:
    """`Net(sizes).start_from(net)`: what a class makes, whatever is done with it then."""
    while (
        isinstance(value, ir.Call)
        and isinstance(value.func, ir.Attr)
        and isinstance(value.func.base, ir.Call)
    ):
        value = value.func.base
    if not isinstance(value, ir.Call) or not value.method[:1].isupper():
        return False
    return not any(part.path == model for part in ir.walk(value))


def _loaded_by(statement: ir.Stmt, holder: str) -> str | None:
    """`net` of `net.load_state_dict(state)`."""
    for call in ir.own_calls(statement):
        if call.method == "load_state_dict" and any(argument.path == holder for argument in call.args):
            return _owner(call)
    return None


def _owner(call: ir.Call) -> str | None:
    return call.func.base.path if isinstance(call.func, ir.Attr) else None


def _reads(statement: ir.Stmt, name: str) -> bool:
    bound = {id(target) for target in targets(statement)}
    return any(
        isinstance(part, ir.Name) and part.id == name and id(part) not in bound
        for part in ir.own_parts(statement)
    )


def _loops(block: list[ir.Stmt]) -> Iterator[ir.For | ir.While]:
    for statement in ir.statements(block):
        if isinstance(statement, (ir.For, ir.While)):
            yield statement


def _block_of(block: list[ir.Stmt], wanted: ir.Stmt) -> list[ir.Stmt] | None:
    """The block in which a statement stands."""
    if wanted in block:
        return block
    for statement in block:
        for inner in statement.blocks():
            found = _block_of(inner, wanted)
            if found is not None:
                return found
    return None
