"""`codemod alloc-conf`: expandable segments from the top of the program, checked."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from gpulint.codemods.kit import calls_kit, kit_name, trainer_calls
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
from gpulint.fix.imports import last_of_the_head
from gpulint.memory.alloc_conf import KEYS, NEW, OLD, parse
from gpulint.rule import Change, Insert, Replace
from gpulint.source.positions import nodes_below

_TARGETS = ("os.environ", "environ")


def alloc_conf(module: cst.Module) -> Iterator[Change]:
    """Call `memory.configure(expandable_segments=True)` at the start of a program that trains: in its main guard, or
    after the imports of a file that trains at module level, perhaps in functions that it calls there.

    Where the file sets the environment variable itself, to a constant and outside functions, the call takes that
    line's place with its settings, except `max_split_size_mb`, which works against expandable segments. Where it
    sets it in another way the file is left alone.
    """
    shape = read_shape(module)
    training = _training(module, shape)
    if not training or calls_kit(module, "configure"):
        return
    places = [s for s in walk(module) if isinstance(s, cst.SimpleStatementLine) and _sets(s)]
    anywhere = sum(isinstance(node, cst.SimpleStatementLine) and _sets(node) for node in nodes_below(module))
    # In a function the line may run when CUDA is in use already, which `configure` would refuse.
    runs = any(id(node) in training for part in shape.running(module) for node in walk(part))
    if anywhere > len(places) or not (places or main_guard(module) or runs):
        return
    name, imported = kit_name(module)
    if not places:
        yield _configured(module, f"{name}.configure(expandable_segments=True)", imported)
        return
    settings = _settings(places[0])
    if len(places) == len(places[0].body) == 1 and settings is not None:
        yield Replace(places[0], cst.parse_statement(f"{name}.configure({_arguments(settings)})"))


def _training(module: cst.Module, shape: Shape) -> set[int]:
    """The identities of the nodes that only a program which trains has: step loops, and calls that make an optimizer or
    a trainer."""
    loops, trainers = (place.loop for place in shape.steps), (call for call, _ in trainer_calls(module))
    return set(map(id, (*loops, *optimizers_made(module), *trainers)))


def _configured(module: cst.Module, code: str, imported: cst.CSTNode | None) -> Insert:
    """With a main guard the call goes into it: the file may also be imported, when CUDA is in use already."""
    guard = main_guard(module)
    if (
        guard is not None
        and isinstance(guard.body, cst.IndentedBlock)
        and not _uses_gpu_before(module, guard)
    ):
        return Insert(guard.body.body[0], cst.parse_statement(code), after=False)
    anchor = imported or last_of_the_head(module.body)
    if anchor is None:
        return Insert(module.body[0], cst.parse_statement(code), after=False)
    return Insert(anchor, cst.parse_statement(f"\n{code}"))


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
