"""The kit's name in a module, and callbacks for trainers of frameworks, which have their loops out of sight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import libcst as cst

from gpulint.codemods.shape import all_calls, dotted, full_names, walk
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
    given = [index for index, arg in enumerate(call.args) if _keyword(arg) == "callbacks"]
    args = list(call.args)
    if given:
        held = args[given[0]].value
        assert isinstance(held, cst.List)
        args[given[0]] = args[given[0]].with_changes(value=_appended(held, value))
        return call.with_changes(args=args)
    new = cst.Arg(
        keyword=cst.Name("callbacks"),
        value=cst.List([cst.Element(value)]),
        equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
    )
    if args:
        last = args[-1]
        if isinstance(last.comma, cst.Comma):
            between, closing = _between(call.whitespace_before_args, last.comma.whitespace_after)
            new = new.with_changes(comma=cst.Comma(whitespace_after=closing))
        else:
            between, closing = _between(call.whitespace_before_args, last.whitespace_after_arg)
            new = new.with_changes(whitespace_after_arg=closing)
        comma = cst.Comma(whitespace_after=between)
        args[-1] = last.with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace(""))
    return call.with_changes(args=[*args, new])


def _appended(held: cst.List, value: cst.BaseExpression) -> cst.List:
    if not held.elements:
        return held.with_changes(elements=[cst.Element(value)])
    *others, last = held.elements
    between, closing = _between(held.lbracket.whitespace_after, held.rbracket.whitespace_before)
    last, new = last.with_changes(comma=cst.Comma(whitespace_after=between)), cst.Element(value, last.comma)
    bracket = held.rbracket.with_changes(whitespace_before=closing)
    return held.with_changes(elements=[*others, last, new], rbracket=bracket)


_Blank = cst.BaseParenthesizableWhitespace


def _between(opening: _Blank, closing: _Blank) -> tuple[_Blank, _Blank]:
    """What stands before a new last entry, and after it. A comment behind the entry that was the last one stays there;
    entries on lines of their own stay so."""
    if not isinstance(opening, cst.ParenthesizedWhitespace):
        return cst.SimpleWhitespace(" "), closing
    if not isinstance(closing, cst.ParenthesizedWhitespace):
        return opening.with_changes(first_line=cst.TrailingWhitespace()), closing
    return (
        opening.with_changes(first_line=closing.first_line, empty_lines=closing.empty_lines),
        closing.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[]),
    )


def takes_callback(call: cst.Call) -> bool:
    """Whether a trainer's call can be given one more. Not where the callbacks may come out of sight: in `**options`, or in a variable."""
    return not any(
        arg.star or (_keyword(arg) == "callbacks" and not isinstance(arg.value, cst.List))
        for arg in call.args
    )


def _keyword(arg: cst.Arg) -> str:
    return arg.keyword.value if arg.keyword is not None else ""
