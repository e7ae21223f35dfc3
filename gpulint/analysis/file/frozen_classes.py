"""What a class freezes of its objects: all parameters, where an argument of the constructor says so or nothing else is
asked, or a network that it holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.reading import unwrapped
from gpulint.analysis.file.lookup import class_made
from gpulint.analysis.file.weights.parameters import parts_with_weights
from gpulint.analysis.values.arguments import bind_sources, is_static
from gpulint.analysis.values.constants import NO_CONSTANTS, Constants, given_constants, truth

if TYPE_CHECKING:
    from gpulint.analysis.file.classes import ClassInfo


def is_made_frozen(info: ClassInfo, call: ir.Call | None, depth: int = 2) -> bool:
    """Whether the constructor freezes every parameter of a module, as it is called here; without a call, as its defaults
    say. A method of the class that thaws them leaves that to who calls it."""
    for one in info.ancestors():
        init = one.cls.methods.get("__init__")
        if init is not None and (settled := _settles(one, "", call if one is info else None)) is not None:
            return settled
    with_weights = parts_with_weights(info, call) if info.is_module else frozenset()
    return bool(with_weights) and all(is_part_frozen(info, attr, call, depth) for attr in with_weights)


def is_part_frozen(info: ClassInfo, attr: str, call: ir.Call | None = None, depth: int = 2) -> bool:
    """Whether the constructor of a class freezes the network that it stores under this name, `self.ema = deepcopy(model)`, or
    stores one that freezes itself, and nothing thaws it again."""
    for one in info.ancestors():
        settled = _settles(one, f".{attr}", None)
        if settled is not None:
            return settled
    return depth > 0 and any(_stores_frozen(one, attr, call, depth) for one in info.ancestors())


def _stores_frozen(info: ClassInfo, attr: str, call: ir.Call | None, depth: int) -> bool:
    """Whether all that a class stores under a name are modules of the project that freeze themselves as they are made."""
    stored: list[bool] = []
    for method in info.cls.methods.values():
        own = f"{method.params[0].name}.{attr}" if method.params else ""
        if any(not _is_off(value, method, None) for value in _of_all_parameters(method, f".{attr}", None)):
            return False
        known = _known(method, call) if method.name == "__init__" else NO_CONSTANTS
        for statement in _reached(method.body, known, unknown=True):
            if isinstance(statement, ir.Assign) and any(target.path == own for target in statement.targets):
                stored.append(is_frozen_object(method, statement.value, depth - 1))
    return bool(stored) and all(stored)


def is_frozen_object(function: ir.Function, value: ir.Expr | None, depth: int = 2) -> bool:
    """Whether a value is a module of the project that freezes itself as it is made: `Encoder(weights).to(device)`."""
    value = unwrapped(value) if value is not None else None
    made = class_made(function, value) if isinstance(value, ir.Call) else None
    return isinstance(value, ir.Call) and made is not None and is_made_frozen(made, value, depth)


def freezes_itself(info: ClassInfo, call: ir.Call) -> bool:
    """Whether a call of a class's own method, or of Lightning's `freeze`, switches off the grad of all parameters:
    `net.requires_grad(False)`."""
    methods = (one.cls.methods.get(call.method) for one in info.lineage())
    method = next((method for method in methods if method is not None), None)
    if method is None:
        return call.method == "freeze" and any(one.is_lightning for one in info.lineage())
    modes = list(_of_all_parameters(method, "", call))
    return bool(modes) and all(_is_off(mode, method, call) for mode in modes)


def _settles(info: ClassInfo, part: str, call: ir.Call | None) -> bool | None:
    """Whether the constructor freezes the object, or that part of it, for good; None where it says nothing about that."""
    init = info.cls.methods.get("__init__")
    if init is None:
        return None
    found: list[bool] = []
    run = _run_by(info, init, call)
    for method, by in run:
        found += [_is_off(value, method, by) for value in _of_all_parameters(method, part, by)]
    if not found:
        return None
    others = (method for method in info.cls.methods.values() if all(method is not one for one, _ in run))
    return all(found) and not any(
        not _is_off(value, method, None)
        for method in others
        for value in _of_all_parameters(method, part, None)
    )


def decided_by_argument(info: ClassInfo) -> str:
    """The argument of the constructor that is False unless somebody gives it, and says whether some parameters require
    grad; empty where there is none."""
    for one in info.ancestors():
        init = one.cls.methods.get("__init__")
        for param in init.params if init is not None else ():
            if not (isinstance(param.default, ir.Const) and param.default.value is False):
                continue
            places = {param.name} | _attributes_of(init, param.name)
            values = (value for method in one.cls.methods.values() for value in _requirements(method))
            if any(value.path in places for value in values):
                return param.name
    return ""


def _run_by(
    info: ClassInfo, init: ir.Function, call: ir.Call | None
) -> list[tuple[ir.Function, ir.Call | None]]:
    """The constructor, and the methods of the class that it may call as it is called itself, each with the call."""
    found: list[tuple[ir.Function, ir.Call | None]] = [(init, call)]
    own = init.params[0].name if init.params else "self"
    for statement in _reached(init.body, _known(init, call), unknown=True):
        for inner in ir.own_calls(statement):
            method = info.cls.methods.get(inner.method)
            mine = method is not None and not is_static(method) and inner.func.path == f"{own}.{inner.method}"
            if method is not None and mine:
                found.append((method, inner))
    return found


def _of_all_parameters(method: ir.Function, part: str, call: ir.Call | None) -> Iterator[ir.Expr]:
    """What a method, called so, sets `requires_grad` to for all the parameters of its object, or of a part of it: `.ema`."""
    own = f"{method.params[0].name if method.params else 'self'}{part}"
    for statement in _reached(method.body, _known(method, call)):
        yield from required_of(statement, own)
        if isinstance(statement, ir.Assign) and any(target.path == own for target in statement.targets):
            if statement.value is not None and part:
                yield from requirement(statement.value)


def _reached(block: list[ir.Stmt], known: Constants, unknown: bool = False) -> Iterator[ir.Stmt]:
    """The statements that run once, in the branches that constants choose; with `unknown` all that may run."""
    for statement in block:
        yield statement
        chosen = truth(statement.test, known) if isinstance(statement, ir.If) else None
        if isinstance(statement, ir.If) and chosen is not None:
            yield from _reached(statement.body if chosen else statement.orelse, known, unknown)
        elif unknown:
            for inner in statement.blocks():
                yield from _reached(inner, known, unknown)


def _known(method: ir.Function, call: ir.Call | None) -> Constants:
    """What the arguments are that a call gives as constants, or leaves at their defaults, and the attributes they become."""
    if call is not None:
        known = dict(given_constants(method, call, True, NO_CONSTANTS, method.home.evidence[method].assigned))
    else:
        defaults = {param.name: param.default for param in method.params}
        known = {name: d.value for name, d in defaults.items() if isinstance(d, ir.Const)}
    return known | {path: value for name, value in known.items() for path in _attributes_of(method, name)}


def required_of(statement: ir.Stmt, path: str) -> Iterator[ir.Expr]:
    """What a statement sets `requires_grad` to for all parameters of a network: by a loop or a comprehension over them, or by
    `net.requires_grad_(mode)`."""
    if isinstance(statement, ir.For):
        if _iterates_all(statement.iterable, path):
            yield from _set_to(statement.body)
    elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Comp):
        comp = statement.value
        if len(comp.clauses) == 1 and _iterates_all(comp.clauses[0][1], path):
            yield from (mode for element in comp.elements for mode in requirement(element))
    elif isinstance(statement, ir.ExprStmt):
        yield from requirement(statement.value, path)


def switched_by_loop(statement: ir.For) -> tuple[str, bool] | None:
    """The network of `for p in net.parameters(): p.requires_grad = False`, with whether that freezes all of it: where a
    condition chooses, or the mode is True or unknown, some may be trained. None for any other loop."""
    iterable = statement.iterable
    if not (isinstance(iterable, ir.Call) and iterable.method in ("parameters", "named_parameters")):
        return None
    owner = iterable.func.base.path if isinstance(iterable.func, ir.Attr) else None
    modes = list(_set_to(list(ir.statements(statement.body))))
    if owner is None or not modes:
        return None
    always = list(_set_to(statement.body))
    off = [isinstance(mode, ir.Const) and mode.value is False for mode in modes]
    return owner, bool(always) and all(off)


def requirement(expr: ir.Expr, own: str | None = None) -> Iterator[ir.Expr]:
    """The mode in `own.eval().requires_grad_(mode)`, whatever else is in the chain; of anything where none is named."""
    mode: ir.Expr | None = None
    while isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr):
        if expr.method == "requires_grad_" and mode is None:
            mode = expr.argument(0, "requires_grad") or ir.Const(expr.origin, True)
        expr = expr.func.base
    if mode is not None and own in (None, expr.path):
        yield mode


def _iterates_all(iterable: ir.Expr, own: str) -> bool:
    return isinstance(iterable, ir.Call) and iterable.func.path in (
        f"{own}.parameters",
        f"{own}.named_parameters",
    )


def _set_to(block: list[ir.Stmt]) -> Iterator[ir.Expr]:
    """What a block, conditions in it left out, sets a `requires_grad` to."""
    for statement in block:
        if isinstance(statement, ir.Assign) and statement.value is not None:
            if any(isinstance(t, ir.Attr) and t.attr == "requires_grad" for t in statement.targets):
                yield statement.value
        elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
            call = statement.value
            if call.method == "requires_grad_":
                yield call.argument(0, "requires_grad") or ir.Const(call.origin, True)


def _is_off(value: ir.Expr, method: ir.Function, call: ir.Call | None) -> bool:
    """Whether a value is False: by itself, or as the method's argument that the call gives or leaves out."""
    if isinstance(value, ir.Name):
        param = next((param for param in method.params if param.name == value.id), None)
        if param is None:
            return False
        given = bind_sources(method, call, True).get(value.id) if call is not None else None
        value = given if given is not None else param.default or value
    return isinstance(value, ir.Const) and value.value is False


def _attributes_of(init: ir.Function | None, name: str) -> set[str]:
    """`self.trainable` of `self.trainable = trainable`."""
    return {
        target.path
        for statement in (ir.statements(init.body) if init is not None else ())
        if isinstance(statement, ir.Assign) and statement.value is not None and statement.value.path == name
        for target in statement.targets
        if target.path is not None
    }


def _requirements(method: ir.Function) -> Iterator[ir.Expr]:
    """Everything that a method gives for a `requires_grad`."""
    for statement in ir.statements(method.body):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            if any(isinstance(t, ir.Attr) and t.attr == "requires_grad" for t in statement.targets):
                yield statement.value
        for call in ir.own_calls(statement):
            value = call.keyword("requires_grad")
            if call.method == "requires_grad_":
                value = call.argument(0, "requires_grad")
            if value is not None:
                yield value
