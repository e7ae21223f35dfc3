"""The processes of one run: which of them count as ranks, and how the run as a whole has ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from gpulint.runtime.record.result import CUT_OFF, ENDED_WELL, LEFT_ALONE, End, RankResult

_IDLE = ("no-steps", "no-torch")  # how a process ends that only starts others


class Ranks(NamedTuple):
    """The processes that count, in order and numbered, and those that took no step beside them."""

    ranks: tuple[RankResult, ...]
    others: tuple[RankResult, ...]


def of_run(results: Sequence[RankResult], end: End) -> Ranks:
    """Workers that train are ranks, in the order in which they were made. Without any it is torchrun that numbers them. `end` is how
    the run has ended."""
    counted = _counted(results)
    others = tuple(result for result in results if not any(result is one for one in counted))
    if end.reason in ENDED_WELL:
        counted = [_excused(result) for result in counted]
    if not any(result.process for result in counted):
        return Ranks(tuple(sorted(counted, key=lambda result: result.rank)), others)
    ordered = sorted(counted, key=lambda result: result.process)
    size = max(len(ordered), *(result.world_size for result in ordered))
    numbered = (replace(result, rank=rank, world_size=size) for rank, result in enumerate(ordered))
    return Ranks(tuple(numbered), others)


def _excused(result: RankResult) -> RankResult:
    if result.end.reason in (*ENDED_WELL, *_IDLE):
        return result
    note = CUT_OFF if result.end.reason == "killed" else LEFT_ALONE
    return replace(result, notes=(*result.notes, note))


def _counted(results: Sequence[RankResult]) -> list[RankResult]:
    """All but the workers that neither stepped nor failed; where workers stepped, also without a starter that did neither."""
    training = any(result.process and result.samples for result in results)
    return [
        result
        for result in results
        if result.samples
        or (not result.process and not training)
        or (result.end.reason not in (*ENDED_WELL, *_IDLE, "killed") and not training)
    ]


def end_of(results: Sequence[RankResult], number: int) -> End | None:
    """How a run has ended, by the reports of its processes in the order in which they came; None where none says it. `number` of
    processes were there."""
    training = any(result.process and result.samples for result in results)
    stopped = False
    for result in results:
        failed = result.end.reason not in ENDED_WELL
        if failed and not stopped and not (training and result.end.reason in _IDLE):
            return _named(result, results) if number > 1 else result.end
        stopped = stopped or result.end.reason == "stopped"
    counted = _counted(results)
    return next((r.end for r in counted if r.end.reason == "stopped"), counted[0].end if counted else None)


def _named(result: RankResult, results: Sequence[RankResult]) -> End:
    """How a process has ended, with a word of which it is."""
    workers = any(one.process for one in results)
    if workers and not result.process:
        return result.end
    who = f"worker {'.'.join(map(str, result.process))}" if result.process else f"rank {result.rank}"
    return replace(result.end, message=f"{who}: {result.end.message}")
