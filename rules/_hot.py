"""What the rules about calls in every step share: how a call is named that a helper makes, and how it goes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gpulint.analysis.questions.repeats.hot import made_in
from gpulint.rule import RelatedNode, Remove, Repair

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.analysis.file.facts import HotCall


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
    """Takes the call out, where it stands alone."""
    if not call.removable:
        return None
    return Repair.unless(call.unproven, "remove the call", (Remove(call.stmt.node),))
