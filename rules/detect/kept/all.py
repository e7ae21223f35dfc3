"""All that is kept in one file, each place once: where two tell of one line, the one with the fewer doubts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.consumed import consumed, read_without_graph
from gpulint.rules.detect.kept.edges import edges
from gpulint.rules.detect.kept.returned import returned
from gpulint.rules.detect.kept.running import running
from gpulint.rules.detect.kept.statistics import statistics
from gpulint.rules.detect.kept.stored import stored
from gpulint.rules.detect.kept.unseen_steps import unseen_steps

from gpulint.answers import Verdict

if TYPE_CHECKING:
    from gpulint.rules.detect.kept.record import Kept

    from gpulint.analysis.file.program import FileAnalysis

_KINDS = (consumed, statistics, returned, running, edges, stored, unseen_steps, read_without_graph)


def everything(file: FileAnalysis) -> list[Kept]:
    """What the file keeps, or gives away, with a graph."""
    best: dict[int, Kept] = {}
    # A script that only calls a trainer of another file need not import torch itself.
    for kind in _KINDS if file.uses_torch else (unseen_steps,):
        for kept in kind(file):
            row = kept.at.row
            if row not in best or _doubts(kept) < _doubts(best[row]):
                best[row] = kept
    return list(best.values())


def _doubts(kept: Kept) -> int:
    verdicts = [answer.verdict for answer in kept.answers]
    return 99 if Verdict.REFUTED in verdicts else verdicts.count(Verdict.OPEN)
