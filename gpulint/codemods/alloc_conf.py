"""`codemod alloc-conf`: expandable segments from the top of the program, checked."""

from __future__ import annotations

import ast
from typing import Any

import libcst as cst

from gpulint.codemods.editing import (
    Plan,
    calls_kit,
    import_of,
    kit_name,
    statement,
    trainer_calls,
    with_import,
)
from gpulint.codemods.shape import (
    Shape,
    call_name,
    calls_in,
    dotted,
    main_guard,
    optimizers_made,
    read_shape,
    walk,
)
from gpulint.memory.alloc_conf import KEYS, NEW, OLD, parse
from gpulint.source.positions import nodes_below

_TARGETS = ("os.environ", "environ")


def alloc_conf(module: cst.Module) -> cst.Module:
    """Call `memory.configure(expandable_segments=True)` at the start of a program that trains: in its main guard, or
    after the imports of a file that trains at module level, perhaps in functions that it calls there.

    Where the file sets the environment variable itself, to a constant and outside functions, the call takes that
    line's place with its settings, except `max_split_size_mb`, which works against expandable segments. Where it
    sets it in another way the file is left alone.
    """
    shape = read_shape(module)
    training = _training(module, shape)
    if not training or calls_kit(module, "configure"):
        return module
    places = [s for s in walk(module) if isinstance(s, cst.SimpleStatementLine) and _sets(s)]
    anywhere = sum(isinstance(node, cst.SimpleStatementLine) and _sets(node) for node in nodes_below(module))
    # In a function the line may run when CUDA is in use already, which `configure` would refuse.
    runs = any(id(node) in training for part in shape.running(module) for node in walk(part))
    if anywhere > len(places) or not (places or main_guard(module) or runs):
        return module
    name, imported = kit_name(module)
    if not places:
        return _configured(module, name, imported)
    settings = [_settings(place) for place in places]
    if len(places) != 1 or settings[0] is None or len(places[0].body) != 1:
        return module
    call_text = f"{name}.configure({_arguments(settings[0])})"
    if places[0] not in module.body:
        plan = Plan()
        plan.change[id(places[0])] = lambda node: node.with_changes(body=statement(call_text).body)
        return plan.carry_out(module, name, imported)
    # The old line may stand before `import gpulint`, which has to come first: the import goes to its place.
    line = statement(call_text)
    first = [] if imported else [import_of(name)]
    plan = Plan()
    plan.change[id(places[0])] = lambda node: cst.FlattenSentinel(_in_place(node, first, line))
    return plan.carry_out(module, name, True)


def _training(module: cst.Module, shape: Shape) -> set[int]:
    """The identities of the nodes that only a program which trains has: step loops, and calls that make an optimizer or
    a trainer."""
    loops, trainers = (place.loop for place in shape.steps), (call for call, _ in trainer_calls(module))
    return set(map(id, (*loops, *optimizers_made(module), *trainers)))


def _in_place(
    node: cst.SimpleStatementLine, first: list[cst.SimpleStatementLine], line: cst.SimpleStatementLine
) -> list[Any]:
    new = [*first, line.with_changes(trailing_whitespace=node.trailing_whitespace)]
    new[0] = new[0].with_changes(leading_lines=node.leading_lines)
    return new


def _configured(module: cst.Module, name: str, imported: bool) -> cst.Module:
    """With a main guard the call goes into it: the file may also be imported, when CUDA is in use already."""
    code = f"{name}.configure(expandable_segments=True)"
    guard = main_guard(module)
    if guard is None or not isinstance(guard.body, cst.IndentedBlock) or _uses_gpu_before(module, guard):
        return with_import(module, name, statement(code), imported=imported)
    plan = Plan()
    plan.put_before(guard.body.body[0], code)
    return plan.carry_out(module, name, imported)


def _uses_gpu_before(module: cst.Module, guard: cst.If) -> bool:
    """Whether statements at module level may start CUDA before the guard is reached."""
    before = module.body[: list(module.body).index(guard)]
    running = [each for each in before if not isinstance(each, (cst.FunctionDef, cst.ClassDef))]
    return any(call_name(call) in ("cuda", "to") for statement in running for call in calls_in(statement))


def _sets(line: cst.SimpleStatementLine) -> bool:
    return any(_value(small) is not None for small in line.body)


def _value(small: cst.BaseSmallStatement) -> cst.BaseExpression | None:
    """What a statement sets the variable to: an assignment to os.environ, `setdefault`, or `putenv`."""
    if isinstance(small, cst.Assign) and len(small.targets) == 1:
        target = small.targets[0].target
        if isinstance(target, cst.Subscript) and dotted(target.value) in _TARGETS:
            return small.value if _names_it(target.slice[0].slice) else None
    if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
        call = small.value
        setter = dotted(call.func) in ("os.environ.setdefault", "environ.setdefault", "os.putenv")
        if setter and len(call.args) == 2 and _text(call.args[0].value) in (OLD, NEW):
            return call.args[1].value
    return None


def _names_it(index: cst.BaseSlice) -> bool:
    return isinstance(index, cst.Index) and _text(index.value) in (OLD, NEW)


def _text(node: cst.BaseExpression) -> str | None:
    if not isinstance(node, (cst.SimpleString, cst.ConcatenatedString)):
        return None
    value = node.evaluated_value
    return value if isinstance(value, str) else None


def _settings(line: cst.SimpleStatementLine) -> dict[str, str] | None:
    value = next((found for small in line.body if (found := _value(small)) is not None), None)
    text = _text(value) if value is not None else None
    if text is None:
        return None
    try:
        settings = parse(text)
    except ValueError:
        return None
    if not set(settings) <= KEYS:
        return None
    settings.pop("max_split_size_mb", None)
    if settings.get("backend", "native") == "native":
        settings.setdefault("expandable_segments", "True")
    return settings


def _arguments(settings: dict[str, str]) -> str:
    ordered = sorted(settings.items(), key=lambda item: item[0] != "expandable_segments")
    return ", ".join(f"{key}={_literal(value)}" for key, value in ordered)


def _literal(value: str) -> str:
    if value.lower() in ("true", "false"):
        return value.capitalize()
    try:
        return repr(ast.literal_eval(value)) if not value.startswith("[") else repr(value)
    except (ValueError, SyntaxError):
        return repr(value)
