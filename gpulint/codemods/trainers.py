"""Trainers of frameworks, which have their loops out of sight: they get a callback instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import libcst as cst

from gpulint.codemods.shape import all_calls, full_names

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


def takes_callback(call: cst.Call) -> bool:
    """Whether a trainer's call can be given one more. Not where the callbacks may come out of sight: in `**options`, or in a variable."""
    for arg in call.args:
        if arg.star:
            return False
        if _keyword(arg) == "callbacks" and not isinstance(arg.value, cst.List):
            return False
    return True


def _keyword(arg: cst.Arg) -> str:
    return arg.keyword.value if arg.keyword is not None else ""
