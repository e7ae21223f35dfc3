"""Networks that are frozen where they are made, or where the object that holds them is: on data they build no graph, whatever
the grad mode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import pairs, targets
from gpulint.analysis.code.reading import unwrapped
from gpulint.analysis.file.calls.effort import kept
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.frozen_classes import (
    freezes_itself,
    is_frozen_object,
    is_part_frozen,
    required_of,
    requirement,
    switched_by_loop,
)
from gpulint.analysis.file.lookup import qualified
from gpulint.analysis.file.reaching import fits
from gpulint.analysis.torch import frameworks
from gpulint.analysis.values.arguments import bind_sources
from gpulint.analysis.values.values import FROZEN, Kind, Val
from gpulint.answers import Answer, Question, Verdict, left_open, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_CALLERS = 3  # who hands over, who hands it to him, and who to that one
_SWITCHES = re.compile(rb"requires_grad")


def is_frozen(file: FileAnalysis, function: ir.Function, path: str) -> bool:
    """Whether a network, or what it is a part of, is frozen for all that a function of the file can tell: by its maker, by
    statements beside, by the class of what holds it, by who hands it over."""
    parts = path.removesuffix(".forward").removesuffix(".module").split(".")
    own = function.params[0].name if function.cls is not None and function.params else ""
    shortest = 2 if parts[0] == own else 1
    owners = [".".join(parts[:length]) for length in range(len(parts), shortest - 1, -1)]
    return any(
        frozen_where_made(file, function, owner) or _is_frozen_part(file, function, owner) for owner in owners
    ) or _is_given_frozen(file, function, parts[0])


def frozen_where_made(file: FileAnalysis, function: ir.Function, path: str) -> bool:
    """Whether a network is frozen wherever it is bound, in every branch: in the chain that makes it, or by statements
    beside."""
    own = function.cls
    functions = own.methods.values() if own is not None and "." in path else (function,)
    bound = False
    for method in functions:
        if any(_thaws(statement, path) for statement in ir.statements(method.body)):
            return False
        for block in ir.every_block(method.body):
            for position, statement in enumerate(block):
                if not isinstance(statement, ir.Assign) or statement.value is None:
                    continue
                if any(target.path == path for target in statement.targets):
                    if unwrapped(statement.value).path == path:
                        continue  # `net = net.to(device)`
                    bound = True
                    value = statement.value
                    frozen = _gives_frozen(method, value)
                    frozen = frozen or any(_freezes(file, method, s, path) for s in block[position:])
                    held = value.path is not None and _is_frozen_part(file, method, value.path)
                    if not (frozen or held or _is_none(value)):
                        return False
    return bound


def _is_given_frozen(file: FileAnalysis, function: ir.Function, name: str) -> bool:
    param = next((param for param in function.params if param.name == name), None)
    value = file.param_value(function, param) if param is not None else None
    if value is not None and value.has(FROZEN):
        return True
    said = handed_frozen(file, function, name)
    return said is not None and said.verdict is Verdict.REFUTED


@kept
def handed_frozen(
    file: FileAnalysis, function: ir.Function, path: str, depth: int = _CALLERS
) -> Answer | None:
    """What those say who hand a network over, also from other files: each has frozen it before, or some have. None where
    nobody has, or they are not seen."""
    name = path.removesuffix(".forward").removesuffix(".module")
    if not depth or all(param.name != name for param in function.params) or _is_bound(function, name):
        return None
    project = file.project
    if project is None or not project.contains(file.filename, _SWITCHES):
        return None
    others = project.files_calling(file.filename, function)
    said = [
        _is_frozen_before(caller, statement, argument, depth)
        for home in (file, *(others or ()))
        for caller, statement, argument in handing(home, function, name)
    ]
    given = [frozen for frozen in said if frozen is not None]
    if not any(given):
        return None
    if others is not None and all(given):
        return refuted(Question.TRAINED, f"all who call `{function.name}` have frozen `{name}`")
    return left_open(
        Question.TRAINED, f"some who call a `{function.name}` have frozen what is `{name}` there"
    )


def handing(
    home: FileAnalysis, function: ir.Function, name: str
) -> Iterator[tuple[ir.Function, ir.Stmt, ir.Expr | None]]:
    """The calls of a file that may run a function, or make an object by it where it is a constructor, also one of a class
    below, each with what it gives for a parameter."""
    makes = function.cls is not None and function.name == "__init__"
    called = function.cls.name if function.cls is not None and makes else function.name
    sites = home.calls_named(called)
    if makes:
        below = (site for site in home.calls_named("__init__") if _is_below(site.caller, function))
        sites = [*sites, *below]
    for caller, statement, call in sites:
        if caller is not function and fits(function, call):
            yield caller, statement, bind_sources(function, call, function.cls is not None).get(name)


def _is_below(caller: ir.Function, made: ir.Function) -> bool:
    """Whether a constructor may hand on to that of a class above its own."""
    info = caller.home.class_of(caller) if caller.name == "__init__" and caller.cls is not None else None
    return info is not None and any(one.cls is made.cls for one in info.ancestors())


def _is_frozen_before(caller: ir.Function, at: ir.Stmt, given: ir.Expr | None, depth: int) -> bool | None:
    """Whether a caller has frozen what it gives by the time of a statement, with nothing in between that thaws it, or got it
    so itself. None where it only hands it on and nothing calls it."""
    path = given.path if given is not None else None
    if path is None:
        return given is not None and _gives_frozen(caller, given)
    frozen: bool | None = None
    for statement in ir.statements(caller.body):
        if statement is at:
            break
        if isinstance(statement, ir.Assign) and any(target.path == path for target in statement.targets):
            same = statement.value is not None and unwrapped(statement.value).path == path
            frozen = (
                frozen if same else statement.value is not None and _gives_frozen(caller, statement.value)
            )
        elif modes := list(required_of(statement, path)):
            off = all(map(_is_false, modes))
            frozen = off and (frozen is True or _leads_to(caller.body, statement, at))
        elif frozen and _thaws_part(statement, f"{path}."):
            frozen = False
    if frozen is None:
        if any(param.name == path for param in caller.params) and _is_uncalled(caller):
            return None
        said = handed_frozen(caller.home, caller, path, depth - 1)
        return said is not None and said.verdict is Verdict.REFUTED
    return frozen


def _gives_frozen(function: ir.Function, value: ir.Expr) -> bool:
    """Whether a value is a network that is frozen as it is made, by a call of its chain or by its class."""
    return _made_frozen(value) or (is_frozen_object(function, value) and not function.home.thaws)


def _is_uncalled(function: ir.Function) -> bool:
    """Whether nothing in the project speaks of a function."""
    home: FileAnalysis = function.home
    own = (evidence for one, evidence in home.evidence.items() if one is not function)
    return (
        home.project is not None
        and not any(function.name in evidence.called | evidence.words for evidence in own)
        and not home.project.speaks_of(home.filename, function)
    )


def _thaws_part(statement: ir.Stmt, own: str) -> bool:
    """`net.head = nn.Linear(512, 10)`, `net.head.requires_grad_(True)`, or the same for each of its parameters."""
    if isinstance(statement, ir.Assign):
        return any((target.path or "").startswith(own) for target in statement.targets)
    if isinstance(statement, ir.For):
        owner, off = switched_by_loop(statement) or ("", True)
        return owner.startswith(own) and not off
    return any(
        call.method == "requires_grad_"
        and (call.func.path or "").startswith(own)
        and not all(map(_is_false, requirement(call)))
        for call in ir.own_calls(statement)
    )


def _leads_to(body: list[ir.Stmt], first: ir.Stmt, at: ir.Stmt) -> bool:
    """Whether no condition stands between a statement and a later one: the later is in its block, or further in."""
    for block in ir.every_block(body):
        if any(one is first for one in block):
            return any(one is at for one in ir.statements(block))
    return False


def _is_bound(function: ir.Function, name: str) -> bool:
    home: FileAnalysis = function.home
    return name in home.evidence[function].assigned


def _is_frozen_part(file: FileAnalysis, function: ir.Function, path: str) -> bool:
    """`helper.averaged_model`, of an object whose class freezes it."""
    owner, _, attr = path.rpartition(".")
    return bool(owner) and any(
        attr in frameworks.FROZEN_PARTS.get(made, ()) if isinstance(made, str) else is_part_frozen(made, attr)
        for made in classes_bound(file, function, owner)
    )


def _called(file: FileAnalysis, function: ir.Function, made: ir.Call) -> Val | None:
    full = qualified(file, function, made.func.path)
    value = file.imported_value(full) if full is not None else None
    if value is None and full is not None:
        return Val(Kind.QUALIFIED, ref=full)
    if value is None and isinstance(made.func, ir.Name):
        value = file.free_name(function, made.func.id)
    # What calling a network gives is its result.
    return value if value is None or value.kind is not Kind.MODULE else None


def classes_bound(file: FileAnalysis, function: ir.Function, path: str) -> list[Any]:
    """The classes of an object: by its annotation, or by what makes it, in the function or in one around it. Of a library's the
    qualified name."""
    found: list[Val | None] = []
    param = next((param for param in function.params if param.name == path), None)
    if param is None and function.parent is not None and path.isidentifier():
        if all(t.path != path for one in ir.statements(function.body) for t in targets(one)):
            return classes_bound(file, function.parent, path)
    if param is not None:
        found.append(file.param_value(function, param))
    methods = function.cls.methods.values() if function.cls is not None and "." in path else (function,)
    for method in methods:
        for statement in ir.statements(method.body):
            for target, value in pairs(statement) if isinstance(statement, ir.Assign) else ():
                made = unwrapped(value) if target.path == path else None
                if isinstance(made, ir.Call):
                    found.append(_called(file, method, made))
    return [value.ref for value in found if value is not None and isinstance(value.ref, (str, ClassInfo))]


def made_without_grad(function: ir.Function, path: str) -> bool:
    """Whether a network is made frozen wherever a function binds it, or copied from one that is; who trains it switches grad
    on for as long as that takes."""
    values = [
        statement.value
        for statement in ir.statements(function.body)
        if isinstance(statement, ir.Assign) and statement.value is not None
        if any(target.path == path for target in statement.targets)
    ]
    return bool(values) and all(
        _made_frozen(value) or _copies_frozen(function, value, path) for value in values
    )


def _copies_frozen(function: ir.Function, value: ir.Expr, path: str) -> bool:
    while isinstance(value, ir.Call) and value.method != "deepcopy" and isinstance(value.func, ir.Attr):
        value = value.func.base
    source = value.args[0].path if isinstance(value, ir.Call) and value.args else None
    return source is not None and source != path and made_without_grad(function, source)


def _is_none(value: ir.Expr) -> bool:
    return isinstance(value, ir.Const) and value.value is None


def _thaws(statement: ir.Stmt, path: str) -> bool:
    """`self.net.requires_grad_()`, with True or with a variable."""
    return any(not _is_false(mode) for call in ir.own_calls(statement) for mode in requirement(call, path))


def _made_frozen(value: ir.Expr) -> bool:
    """`Net().eval().requires_grad_(False).to(device)`."""
    return any(map(_is_false, requirement(value)))


def _freezes(file: FileAnalysis, function: ir.Function, statement: ir.Stmt, path: str) -> bool:
    """`net.requires_grad_(False)`, the same for each of its parameters, or a method of its class that does so."""
    modes = list(required_of(statement, path))
    if modes:
        return all(map(_is_false, modes))
    call = statement.value if isinstance(statement, ir.ExprStmt) else None
    if not isinstance(call, ir.Call) or not isinstance(call.func, ir.Attr) or call.func.base.path != path:
        return False
    classes = [made for made in classes_bound(file, function, path) if isinstance(made, ClassInfo)]
    return bool(classes) and all(freezes_itself(made, call) for made in classes)


def _is_false(mode: ir.Expr) -> bool:
    return isinstance(mode, ir.Const) and mode.value is False
