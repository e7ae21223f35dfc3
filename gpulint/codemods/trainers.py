"""Trainers of frameworks, which have their loops out of sight: they get a callback instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import libcst as cst

from gpulint.codemods.shape import dotted

# Where a Trainer comes from, and which callback of Monitor it takes.
_FRAMEWORKS: Final = {
    "lightning": "lightning_callback",
    "lightning.pytorch": "lightning_callback",
    "pytorch_lightning": "lightning_callback",
    "transformers": "huggingface_callback",
}
_CLASSES: Final = {"Trainer", "Seq2SeqTrainer"}


def trainer_calls(module: cst.Module) -> Iterator[tuple[cst.Call, str]]:
    """The calls that make a trainer and can be given a callback, with the name of the callback that they take."""
    known = _names(module)
    found = _Calls()
    module.visit(found)
    for call in found.calls:
        callback = known.get(dotted(call.func))
        if callback is not None and _takes_one(call):
            yield call, callback


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
        trailing = isinstance(last.comma, cst.Comma)
        closing = (
            last.comma.whitespace_after if isinstance(last.comma, cst.Comma) else last.whitespace_after_arg
        )
        between, closing = _between(call.whitespace_before_args, closing)
        new = (
            new.with_changes(comma=cst.Comma(whitespace_after=closing))
            if trailing
            else new.with_changes(whitespace_after_arg=closing)
        )
        args[-1] = last.with_changes(
            comma=cst.Comma(whitespace_after=between), whitespace_after_arg=cst.SimpleWhitespace("")
        )
    return call.with_changes(args=[*args, new])


def _appended(held: cst.List, value: cst.BaseExpression) -> cst.List:
    if not held.elements:
        return held.with_changes(elements=[cst.Element(value)])
    last = held.elements[-1]
    between, closing = _between(held.lbracket.whitespace_after, held.rbracket.whitespace_before)
    return held.with_changes(
        elements=[
            *held.elements[:-1],
            last.with_changes(comma=cst.Comma(whitespace_after=between)),
            cst.Element(value, comma=last.comma),
        ],
        rbracket=held.rbracket.with_changes(whitespace_before=closing),
    )


def _between(
    opening: cst.BaseParenthesizableWhitespace, closing: cst.BaseParenthesizableWhitespace
) -> tuple[cst.BaseParenthesizableWhitespace, cst.BaseParenthesizableWhitespace]:
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


def _takes_one(call: cst.Call) -> bool:
    """Not where the callbacks may come out of sight: in `**options`, or in a variable."""
    for arg in call.args:
        if arg.star:
            return False
        if _keyword(arg) == "callbacks" and not isinstance(arg.value, cst.List):
            return False
    return True


def _keyword(arg: cst.Arg) -> str:
    return arg.keyword.value if arg.keyword is not None else ""


def _names(module: cst.Module) -> dict[str, str]:
    """The dotted names under which a framework's trainer can be called here, with its callback."""
    imports = _Imports()
    module.visit(imports)
    return imports.names


class _Imports(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, str] = {}

    def visit_Import(self, node: cst.Import) -> None:
        for alias in node.names:
            self._module(alias.evaluated_name, alias.evaluated_alias or alias.evaluated_name)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        if node.module is None or node.relative or isinstance(node.names, cst.ImportStar):
            return
        source = dotted(node.module)
        for alias in node.names:
            name, here = alias.evaluated_name, alias.evaluated_alias or alias.evaluated_name
            if source in _FRAMEWORKS and name in _CLASSES:
                self.names[here] = _FRAMEWORKS[source]
            self._module(f"{source}.{name}", here)  # from lightning import pytorch as pl

    def _module(self, source: str, here: str) -> None:
        if source in _FRAMEWORKS:
            self.names.update({f"{here}.{name}": _FRAMEWORKS[source] for name in _CLASSES})


class _Calls(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[cst.Call] = []

    def visit_Call(self, node: cst.Call) -> None:
        self.calls.append(node)
