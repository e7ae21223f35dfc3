"""What the rules about calls in every step share: how a call is named that a helper makes, and how it goes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.questions.repeats.hot import made_in
from gpulint.rule import RelatedNode, Remove, Repair

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.analysis.file.facts import HotCall

_LOOKS = frozenset({"is_available", "device_count", "hasattr", "isinstance", "len"})


def named(facts: FileFacts, call: HotCall) -> tuple[str, tuple[RelatedNode, ...]]:
    """The call as a message names it, with the place where a helper makes it."""
    made = made_in(call)
    if made is None or call.via is None:
        return f"`{facts.source(call.call)}`", ()
    elsewhere = call.via.home.module is not facts.module
    where = f" in {os.path.basename(call.via.home.filename)}" if elsewhere else ""
    message = f"`{call.name}()`, which `{facts.source(call.call)}` runs{where},"
    related = RelatedNode(
        f"`{call.via.qualname}` calls it here", None if elsewhere else made, call.via.home.filename, made.row
    )
    return message, (related,)


def removal(call: HotCall) -> Repair | None:
    """Takes the call out, where it stands alone, and an `if` that decides about nothing else."""
    if not call.removable:
        return None
    whole = _deciding_about(call.function, call.stmt) or call.stmt
    return Repair.unless(call.unproven, "remove the call", (Remove(whole.node),))


def _deciding_about(function: ir.Function, stmt: ir.Stmt) -> ir.Stmt | None:
    """The `if` of which the statement is all, where its test only looks: `if torch.cuda.is_available():`."""
    return next(
        (
            owner
            for block in _blocks(function.body)
            for owner in block
            if isinstance(owner, ir.If)
            and owner.body == [stmt]
            and not owner.orelse
            and all(call.method in _LOOKS for call in ir.own_calls(owner))
        ),
        None,
    )


def _blocks(block: list[ir.Stmt]) -> Iterator[list[ir.Stmt]]:
    """The block and those in it; an `elif` is a part of its `if`, and stands in none."""
    yield block
    for statement in block:
        for inner in statement.blocks():
            elif_alone = isinstance(statement, ir.If) and inner is statement.orelse and len(inner) == 1
            if elif_alone and isinstance(inner[0], ir.If):
                yield from (part for one in inner[0].blocks() for part in _blocks(one))
            else:
                yield from _blocks(inner)
