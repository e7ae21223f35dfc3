"""What a run saw besides growth: memory that nothing touches, cycles, host memory, contexts of workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpulint.reports.document import Block, Say, card_at
from gpulint.runtime.parent.standing import context_text, host_text, idle_text, tied_text
from gpulint.runtime.parent.verdict import Verification
from gpulint.source.sources import Sources

_MOST: Final = 8


def standing(verification: Verification, sources: Sources) -> Iterator[Block]:
    """What is held at a line, each in a card, and what else there is to say."""
    for one in verification.idle[:_MOST]:
        facts = ("holder", one.what.text + ranks_text(one.ranks)), ("born", ", ".join(one.what.born))
        where = sources, one.what.file, one.what.line
        yield card_at(*where, "untouched", "warn", idle_text(one), *facts)
    for tie in verification.tied[:_MOST]:
        cut, where = tie.what.cut, (sources, tie.what.file, tie.what.line)
        facts = ("cut", cut and cut + ranks_text(tie.ranks)), ("born", ", ".join(tie.what.born))
        yield card_at(*where, "in cycles", "warn", tied_text(tie), *facts)
    if verification.unjudged:
        yield Say(verification.unjudged, "bad", "not judged")
    for growth in verification.host_growth:
        yield Say(host_text(growth) + ranks_text(growth.ranks), "warn", "on the host")
    for context in verification.run.contexts:
        yield Say(context_text(context), "warn", "worker on the GPU")
    limited = verification.gate is not None and verification.gate.limits.untouched is not None
    doubts = dict.fromkeys(rank.besides.doubt for rank in verification.run.ranks)
    for doubt in filter(None, doubts) if verification.idle or limited else ():
        yield Say(f"Of memory that nothing touches not all is known: {doubt}.", "mute", "note")


def ranks_text(ranks: tuple[int, ...]) -> str:
    return f" (rank {', '.join(map(str, ranks))})" if ranks else ""
