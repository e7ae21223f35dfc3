"""The kit's name in a module, and callbacks for trainers of frameworks, which have their loops out of sight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import libcst as cst

from gpulint.codemods.shape import all_calls, dotted, full_names, walk
from gpulint.fix.nodes import around_last, with_argument
from gpulint.source.positions import nodes_below

KIT = "gpulint"


def kit_name(module: cst.Module) -> tuple[str, cst.CSTNode | None]:
    """The name of `gpulint.memory` in this module, and the statement of its top level that imports it. Where `memory`
    means something else here, the kit is called `gpu_memory`."""
    at_load = [one for one in module.body if not isinstance(one, (cst.FunctionDef, cst.ClassDef))]
    for statement in at_load:
        for node in walk(statement):
            if isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
                ours = node.module is not None and dotted(node.module) == KIT
                for alias in node.names if ours else ():
                    if alias.evaluated_name == "memory":
                        return alias.evaluated_alias or "memory", statement
    return ("gpu_memory" if _binds(module, "memory") else "memory"), None


def _binds(module: cst.Module, name: str) -> bool:
    """Whether anything in a module makes this name: assignments, parameters, imports, definitions, loops."""
    for node in nodes_below(module):
        if isinstance(node, cst.ImportAlias) and node.asname is None:
            if node.evaluated_name.split(".")[0] == name:
                return True
            continue
        bound = node.target if isinstance(node, _BINDING) else node.name if isinstance(node, _NAMED) else None
        if bound is not None and not isinstance(bound, (cst.Attribute, cst.Subscript)):
            if any(isinstance(one, cst.Name) and one.value == name for one in (bound, *walk(bound))):
                return True
    return False


_BINDING = (cst.AssignTarget, cst.AnnAssign, cst.NamedExpr, cst.For, cst.CompFor)
_NAMED = (cst.Param, cst.FunctionDef, cst.ClassDef, cst.AsName)


def calls_kit(module: cst.Module, *functions: str) -> bool:
    """Whether the module calls one of these functions of the kit already."""
    name, imported = kit_name(module)
    if not imported:
        return False
    wanted = {f"{name}.{function}" for function in functions}
    return any(dotted(call.func) in wanted for call in all_calls(module))


# Where a Trainer comes from, and which callback of Monitor it takes.
_FRAMEWORKS: Final = {
    "lightning": "lightning_callback",
    "lightning.pytorch": "lightning_callback",
    "pytorch_lightning": "lightning_callback",
    "transformers": "huggingface_callback",
}
_CLASSES: Final = {"Trainer", "Seq2SeqTrainer"}


def trainer_calls(module: cst.Module) -> Iterator[tuple[cst.Call, str]]:
    """The calls that make a trainer, with the name of the callback that it takes."""
    full_name = full_names(module)
    for call in all_calls(module):
        framework, _, made = full_name(call.func).rpartition(".")
        if made in _CLASSES and framework in _FRAMEWORKS:
            yield call, _FRAMEWORKS[framework]


def with_callback(call: cst.Call, code: str) -> cst.Call:
    """The call with one more callback, in the layout that its arguments have."""
    value = cst.parse_expression(code)
    given = next((arg.value for arg in call.args if _keyword(arg) == "callbacks"), cst.List([]))
    assert isinstance(given, cst.List)
    return with_argument(call, "callbacks", _appended(given, value))


def _appended(held: cst.List, value: cst.BaseExpression) -> cst.List:
    if not held.elements:
        return held.with_changes(elements=[cst.Element(value)])
    *others, last = held.elements
    between, closing = around_last(held.lbracket.whitespace_after, held.rbracket.whitespace_before)
    last, new = last.with_changes(comma=cst.Comma(whitespace_after=between)), cst.Element(value, last.comma)
    bracket = held.rbracket.with_changes(whitespace_before=closing)
    return held.with_changes(elements=[*others, last, new], rbracket=bracket)


def takes_callback(call: cst.Call) -> bool:
    """Whether a trainer's call can be given one more. Not where the callbacks may come out of sight: in `**options`, or in a variable."""
    return not any(
        arg.star or (_keyword(arg) == "callbacks" and not isinstance(arg.value, cst.List))
        for arg in call.args
    )


def _keyword(arg: cst.Arg) -> str:
    return arg.keyword.value if arg.keyword is not None else ""
